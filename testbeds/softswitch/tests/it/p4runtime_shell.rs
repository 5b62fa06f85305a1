//! An independent client: `p4runtime-shell` from PyPI sets the pipeline, writes, reads, and receives its error trailer.
//!
//! The interpreter is `$WEIR_PYTHON`, else `python3`. Without the package the test is skipped by name.

use crate::support::*;
use std::process::Command;

#[test]
fn p4runtime_shell_drives_the_switch() {
    let python = std::env::var("WEIR_PYTHON").unwrap_or_else(|_| "python3".into());
    let importable = Command::new(&python)
        .args(["-c", "import p4runtime_sh.shell"])
        .output();
    if !importable.is_ok_and(|output| output.status.success()) {
        skip(
            "p4runtime_shell_drives_the_switch",
            &format!("`{python}` has no package `p4runtime-shell`"),
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
    // Frames that leave at port 2 come back at port 1, until the script ends.
    let (done, ended) = std::sync::mpsc::channel::<()>();
    let echo = std::thread::spawn(move || {
        while ended.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            if let Some(frame) = two.receive(std::time::Duration::from_millis(20)) {
                assert!(one.send(&frame));
            }
        }
        (one, two)
    });
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
    drop(done);
    let (one, two) = echo.join().unwrap();
    // The entries that the script left forward frames.
    let frame = [&[0, 0, 0, 0, 0, 2][..], &[0; 54]].concat();
    assert!(one.send(&frame));
    assert_eq!(two.receive(TIMEOUT), Some(frame));
}
