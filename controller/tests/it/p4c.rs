//! p4c, where it is installed, takes p4src and generated P4 as it is.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::*;
use parser_gen::{Arch, Filter, Flow, Library, Options};

/// None, and filters that between them need every protocol of the library.
const FILTER_SETS: [&[&str]; 2] = [
    &[],
    &[
        "tcp.dport == 6379 && redis.command == \"GET\"",
        "redis.command in {\"SET\", \"DEL\"} && redis.key startswith \"cart:\"",
        "agg.kind == 1 && agg.worker == 3",
        "vlan.id == 5 && ip.dst == 10.0.0.0/8 && tcp.dport in {22, 8000..8999}",
        "ipv6.src == 2001:db8::/32 && udp",
        "roce.opcode == 4 && !(ip.ecn == 3)",
    ],
];

/// Writes a whole program; the folder's include path is `include`.
fn write(folder: &Path, arch: Arch, filters: &[&str], aggregate: bool) -> PathBuf {
    let library = Library::builtin();
    let flow = |(index, text): (usize, &&str)| Flow {
        name: format!("flow_{index}"),
        filter: Filter::parse(&library, text).unwrap_or_else(|error| panic!("{error}")),
    };
    let flows: Vec<_> = filters.iter().enumerate().map(flow).collect();
    let generated =
        parser_gen::generate(&library, &flows, &Options::aggregating(aggregate)).unwrap();
    for (path, text) in parser_gen::program(arch, &generated) {
        let file = folder.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    folder.join(arch.main_path())
}

/// Compiles every program with a tool; its warnings may be many, its errors none. Includes that it does not find among its
/// own (`tna.p4` everywhere, `psa.p4` where it is not installed) are ours.
fn accepted_by(tool: &str, arch: Arch, options: &[&str]) {
    let include = repository("p4src/include");
    for filters in FILTER_SETS {
        for aggregate in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let main = write(folder.path(), arch, filters, aggregate);
            let output = Command::new(tool)
                .current_dir(folder.path())
                .args(["--std", "p4-16"])
                .args(options)
                .arg("-I")
                .arg(&include)
                .arg(&main)
                .output();
            let output = output.unwrap_or_else(|error| panic!("{tool}: {error}"));
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success(),
                "{tool} {options:?} {filters:?} aggregate {aggregate}: {said}"
            );
        }
    }
}

#[test]
fn p4c_bm2_psa_compiles_the_psa_program() {
    if has_program("p4c-bm2-psa takes the PSA program", "p4c-bm2-psa") {
        accepted_by("p4c-bm2-psa", Arch::Psa, &["-o", "out.json"]);
    }
}

#[test]
fn p4c_bm2_ss_compiles_the_v1model_program() {
    if has_program("p4c-bm2-ss takes the v1model program", "p4c-bm2-ss") {
        accepted_by("p4c-bm2-ss", Arch::V1model, &["-o", "out.json"]);
    }
}

#[test]
fn p4test_takes_all_three_programs() {
    if has_program("p4test takes the PSA, v1model and TNA programs", "p4test") {
        for arch in [Arch::Psa, Arch::V1model, Arch::Tna] {
            accepted_by("p4test", arch, &[]);
        }
    }
}

/// What the tests above hand over is complete and right for our own compiler, so that only p4c's opinion is new there.
#[test]
fn our_own_compiler_takes_the_same_programs() {
    for arch in [Arch::Psa, Arch::V1model, Arch::Tna] {
        for filters in FILTER_SETS {
            let folder = tempfile::tempdir().unwrap();
            let main = write(folder.path(), arch, filters, true);
            let finished = run(folder.path(), &["p4", "check", &main.display().to_string()]);
            finished.expect_code(PASSED);
        }
    }
}
