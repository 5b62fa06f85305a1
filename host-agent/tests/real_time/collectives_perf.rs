//! `weir-agent collectives-perf`: four ranks as processes in separate network namespaces, in real time: the behavior of ranks
//! when another one has departed.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;
use test_support::namespace::{beyond, in_namespace, ip};

const RANKS: usize = 4;

fn agent(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir-agent"));
    command.arg("collectives-perf").args(arguments);
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn bridge() {
    ip("link add hub type bridge stp_state 0 forward_delay 0 mcast_snooping 0");
    ip("link set hub mtu 4200 up");
}

/// Starts a rank in its own namespace, which a thread keeps until `end` is dropped.
fn start(rank: usize, arguments: Vec<String>) -> (Child, mpsc::Sender<()>) {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    start_command(rank, agent(&arguments))
}

fn start_command(rank: usize, mut command: Command) -> (Child, mpsc::Sender<()>) {
    ip(&format!(
        "link add port{rank} mtu 4200 type veth peer name nic{rank} mtu 4200"
    ));
    ip(&format!("link set port{rank} master hub up"));
    let (told, child) = mpsc::channel();
    let (end, ends) = mpsc::channel::<()>();
    beyond(&format!("nic{rank}"), move || {
        ip(&format!("address add 10.9.0.{}/24 dev nic{rank}", rank + 1));
        ip(&format!("link set nic{rank} up"));
        told.send(command.spawn().unwrap()).unwrap();
        let _ = ends.recv();
    });
    (child.recv().unwrap(), end)
}

/// Runs all ranks to their end; `words`: further arguments of each rank.
fn run(store: &Path, words: impl Fn(usize) -> Vec<&'static str>) -> Vec<Output> {
    let children: Vec<_> = (0..RANKS)
        .map(|rank| start(rank, arguments(store, rank, &words(rank))))
        .collect();
    let outputs = children
        .into_iter()
        .map(|(child, _end)| child.wait_with_output().unwrap());
    let outputs = outputs.collect();
    for rank in 0..RANKS {
        test_support::namespace::remove(&format!("port{rank}"));
    }
    outputs
}

fn arguments(store: &Path, rank: usize, words: &[&str]) -> Vec<String> {
    let own = [
        "--rank".to_owned(),
        rank.to_string(),
        "--ranks".to_owned(),
        RANKS.to_string(),
        "--store".to_owned(),
        store.display().to_string(),
        "--patience".to_owned(),
        "4".to_owned(),
    ];
    let words = words.iter().map(|word| (*word).to_owned());
    words.chain(own).collect()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn all_collectives_are_right_and_printed_as_by_nccl_tests() {
    if !in_namespace("all_collectives_are_right_and_printed_as_by_nccl_tests") {
        return;
    }
    bridge();
    let few = ["-b", "1K", "-e", "64K", "-f", "8", "-n", "2", "-w", "1"];
    let one = [
        "-b", "1K", "-e", "1K", "-n", "2", "-w", "1", "-g", "1", "-t", "1",
    ];
    let every = [&["all_reduce", "-o", "all", "-d", "all"][..], &one].concat();
    let roots = [&["broadcast", "-r", "all", "-d", "all"][..], &one].concat();
    let reduces = [&["reduce", "-r", "-1", "-o", "all"][..], &one].concat();
    let cases: [(&[&str], f64); 11] = [
        (&["all_reduce", "-d", "float", "-o", "sum"], 1.5),
        (
            &[
                "all_reduce",
                "-d",
                "bfloat16",
                "-o",
                "prod",
                "--algorithm",
                "ring",
            ],
            1.5,
        ),
        (
            &["reduce_scatter", "-d", "half", "-o", "max", "-q", "3"],
            0.75,
        ),
        (&["reduce", "-d", "int8", "-r", "2"], 1.0),
        (
            &[
                "all_gather",
                "-d",
                "double",
                "--algorithm",
                "recursive-doubling",
            ],
            0.75,
        ),
        (&["alltoall", "-d", "uint64"], 0.75),
        (&["broadcast", "-d", "int32", "-r", "3"], 1.0),
        (&["barrier"], 1.0),
        (&every, 1.5),
        (&roots, 1.0),
        (&reduces, 1.0),
    ];
    for (number, (words, factor)) in cases.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let json = number != 0;
        let outputs = run(&folder.path().join("store"), |_| {
            let json: &[&str] = if json { &["--json"] } else { &[] };
            let few = if words.contains(&"-b") { &[][..] } else { &few };
            [words, few, json].concat()
        });
        for (rank, output) in outputs.iter().enumerate() {
            assert!(output.status.success(), "{words:?}: {}", stderr(output));
            if json {
                let report: Value = serde_json::from_slice(&output.stdout).unwrap();
                assert_eq!(report["out_of_bounds"], 0, "{report}");
                assert_eq!(report["rank"], rank);
                let rows = report["rows"].as_array().unwrap();
                // One row per type and operation, per type and root, or per operation and root; otherwise one per size.
                let expected = match (words[0], words.contains(&"all"), words.contains(&"-1")) {
                    ("barrier", ..) => 1,
                    ("all_reduce", true, _) => 10 * 4,
                    ("broadcast", true, _) => 10 * RANKS,
                    ("reduce", true, true) => 4 * RANKS,
                    _ => 3,
                };
                assert_eq!(rows.len(), expected, "{report}");
                let kind = |row: &Value| {
                    format!(
                        "{} {} {} {}",
                        row["size"], row["type"], row["redop"], row["root"]
                    )
                };
                let kinds: std::collections::BTreeSet<String> = rows.iter().map(kind).collect();
                assert_eq!(kinds.len(), expected, "{report}");
                for row in rows.iter().flat_map(|row| [row, &row["in_place"]]) {
                    let of = |key: &str| row[key].as_f64().unwrap();
                    let busbw = of("algbw_gb_per_s") * factor;
                    assert!((of("busbw_gb_per_s") - busbw).abs() < 1e-9, "{row}");
                    assert!(of("time_us") > 0.0, "{row}");
                    assert_eq!(row["wrong"], 0, "{row}");
                }
            }
        }
        if json {
            continue;
        }
        let table = String::from_utf8_lossy(&outputs[0].stdout);
        let rows: Vec<Vec<&str>> = table
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows.len(), 3, "{table}");
        assert_eq!(
            rows[2][..5],
            ["65536", "16384", "float", "sum", "-1"],
            "{table}"
        );
        assert_eq!(
            (rows[2].len(), rows[2][8], rows[2][12]),
            (13, "0", "0"),
            "{table}"
        );
        assert!(table.contains("# Out of bounds values : 0 OK\n"), "{table}");
        assert!(outputs[1].stdout.is_empty(), "{table}");
    }
}

#[test]
fn ranks_that_were_asked_for_different_things_say_so() {
    if !in_namespace("ranks_that_were_asked_for_different_things_say_so") {
        return;
    }
    bridge();
    let folder = tempfile::tempdir().unwrap();
    let outputs = run(&folder.path().join("store"), |rank| {
        let op = if rank == 2 { "max" } else { "sum" };
        vec!["all_reduce", "-b", "1K", "-e", "1K", "-o", op]
    });
    for (rank, output) in outputs.iter().enumerate() {
        assert_eq!(output.status.code(), Some(2), "{}", stderr(output));
        let other = if rank == 2 { 0 } else { 2 };
        let said = format!("rank {other} has another collective");
        assert!(stderr(output).contains(&said), "{rank}: {}", stderr(output));
    }
}

#[test]
fn ranks_report_a_dead_rank_in_bounded_time() {
    if !in_namespace("ranks_report_a_dead_rank_in_bounded_time") {
        return;
    }
    bridge();
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let words = ["all_reduce", "-b", "64K", "-e", "64K", "-n", "1000000"];
    let mut ranks: Vec<_> = (0..RANKS)
        .map(|rank| start(rank, arguments(&store, rank, &words)))
        .collect();
    let begin = Instant::now();
    while !(0..RANKS).all(|rank| store.join(format!("ready-{rank}")).exists()) {
        assert!(begin.elapsed() < Duration::from_secs(30), "nobody is ready");
        std::thread::sleep(Duration::from_millis(5));
    }
    let (mut gone, _end) = ranks.remove(1);
    gone.kill().unwrap();
    gone.wait().unwrap();
    let killed = Instant::now();
    for (child, _end) in ranks {
        let output = child.wait_with_output().unwrap();
        let (said, took) = (stderr(&output), killed.elapsed());
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(took < Duration::from_secs(20), "{took:?}: {said}");
        let last = said.lines().last().unwrap();
        assert!(last.starts_with("collectives-perf: "), "{said}");
        for word in ["rank ", "completions"] {
            assert!(last.contains(word), "{word}: {said}");
        }
    }
}

/// Without torchrun's own store, rank 0 listens.
#[test]
fn ranks_meet_at_torchruns_store() {
    if !in_namespace("ranks_meet_at_torchruns_store") {
        return;
    }
    bridge();
    let children: Vec<_> = (0..RANKS)
        .map(|rank| {
            let mut command = agent(&["all_reduce", "-b", "64K", "-e", "64K", "-n", "1", "--json"]);
            command.env("RANK", rank.to_string());
            command.env("WORLD_SIZE", RANKS.to_string());
            command.env("MASTER_ADDR", "10.9.0.1");
            command.env("MASTER_PORT", "29500");
            start_command(rank, command)
        })
        .collect();
    for (rank, (child, _end)) in children.into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            (&report["rank"], &report["ranks"]),
            (&rank.into(), &RANKS.into())
        );
        assert_eq!(report["out_of_bounds"], 0);
    }
}

#[test]
fn invalid_options_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().display().to_string();
    for (words, said) in [
        (&["nonsense"][..], "invalid value 'nonsense'"),
        (&["all_reduce", "-d", "float8"], "invalid value 'float8'"),
        (&["all_reduce", "-o", "avg"], "invalid value 'avg'"),
        (&["all_reduce", "-f", "1"], "1 is not in 2.."),
        (&["all_reduce", "-i", "0"], "a step must be at least 1 byte"),
        (&["all_reduce", "-b", "1T"], "`1T` is not a number of bytes"),
        (
            &["all_reduce", "-b", "2M", "-e", "1M"],
            "--minbytes 2097152 is more than --maxbytes 1048576",
        ),
        (
            &["all_gather", "-b", "8", "-e", "15"],
            "less than one element of 4 bytes",
        ),
        (
            &["all_reduce", "-b", "4", "-e", "1G", "-i", "4"],
            "more than 1000 sizes",
        ),
        (&["reduce", "-r", "4"], "--root 4 of --ranks 4"),
        (
            &["alltoall", "--algorithm", "tree"],
            "--algorithm tree: alltoall has direct, pairwise",
        ),
        (&["all_reduce", "--rank", "4"], "--rank 4 of --ranks 4"),
        (
            &["all_reduce", "--ranks", "1"],
            "`1` is not a number from 2 to 256",
        ),
        (
            &["all_reduce", "-q", "0"],
            "`0` is not a number from 1 to 64",
        ),
        (&["all_reduce", "-g", "2"], "a process is one rank"),
        (&["all_reduce", "-t", "8"], "a process is one rank"),
        (
            &["reduce", "-r", "first"],
            "use the number of a rank, or `all`",
        ),
        (&["reduce", "-o", "every"], "min, max, all"),
        (&["all_reduce", "--interface", "no-such-if"], "no-such-if"),
        (
            &["all_reduce", "--store", "torch://h0"],
            "torch://HOST:PORT/NAME",
        ),
    ] {
        let has = |name: &str| words.contains(&name);
        let mut all = words.to_vec();
        for (name, value) in [("--rank", "0"), ("--ranks", "4"), ("--store", &store)] {
            if !has(name) {
                all.extend([name, value]);
            }
        }
        let output = agent(&all).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(
            stderr(&output).contains(said),
            "{words:?}: {}",
            stderr(&output)
        );
        assert!(output.stdout.is_empty());
    }
}
