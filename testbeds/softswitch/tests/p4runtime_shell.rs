//! An independent client: `p4runtime-shell` from PyPI sets the pipeline, writes, reads, and gets its error trailer.
//!
//! The interpreter is `$WEIR_PYTHON`, else `python3`. Without the package the test is skipped by name.

mod support;

use std::process::Command;
use support::*;

#[test]
fn p4runtime_shell_drives_the_switch() {
    let python = std::env::var("WEIR_PYTHON").unwrap_or_else(|_| "python3".into());
    let importable = Command::new(&python)
        .args(["-c", "import p4runtime_sh.shell"])
        .output();
    if !importable.is_ok_and(|output| output.status.success()) {
        eprintln!(
            "skipped: p4runtime_shell_drives_the_switch: `{python}` has no package `p4runtime-shell`"
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (info, config) = (
        folder.path().join("p4info.txt"),
        folder.path().join("config.p4"),
    );
    std::fs::write(
        &info,
        p4rt::text::p4info(&p4rt::p4info::to_proto(&p4info())),
    )
    .unwrap();
    std::fs::write(&config, PROGRAM).unwrap();
    let (instance, one, two) = switch(None);
    let output = Command::new(&python)
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/p4runtime_shell.py"
        ))
        .args([instance.address().to_string(), DEVICE.to_string()])
        .args([&info, &config])
        .output()
        .expect("python just ran");
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{out}{err}");
    assert!(out.ends_with("all checks passed\n"), "{out}{err}");
    // What the script left behind forwards.
    assert!(one.send(&[0, 0, 0, 0, 0, 2, 0, 0]));
    assert_eq!(
        two.receive(std::time::Duration::from_secs(10)),
        Some(vec![0, 0, 0, 0, 0, 2, 0, 0])
    );
}
