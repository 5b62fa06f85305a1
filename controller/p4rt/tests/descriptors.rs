//! Our declarations against those in PyPI's `p4runtime` package: an independent one, from the protocol's authors.
//!
//! The interpreter is `$WEIR_PYTHON`, else `python3`. Without the package the test is skipped by name.

use std::io::Write as _;
use std::process::{Command, Stdio};

#[test]
fn the_same_as_pypi_p4runtime() {
    let python = std::env::var("WEIR_PYTHON").unwrap_or_else(|_| "python3".into());
    let importable = Command::new(&python)
        .args(["-c", "import p4.v1.p4runtime_pb2, google.rpc.code_pb2"])
        .output();
    if !importable.is_ok_and(|output| output.status.success()) {
        skip(&format!("`{python}` has no package `p4runtime`"));
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/descriptors.py");
    let mut child = Command::new(&python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python just ran");
    child
        .stdin
        .take()
        .expect("piped")
        .write_all(p4rt::DESCRIPTORS)
        .expect("python reads");
    let output = child.wait_with_output().expect("python ends");
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{out}{err}");
    assert!(out.contains("6 files agree"), "{out}{err}");
}

/// Notes, in the test command's summary, that this was not tested.
fn skip(missing: &str) {
    let line = format!("SKIPPED the_same_as_pypi_p4runtime: {missing}");
    println!("{line}");
    if let Some(path) = std::env::var_os("WEIR_TEST_SKIPS")
        && let Ok(mut file) = std::fs::OpenOptions::new().append(true).open(path)
    {
        let _ = writeln!(file, "{line}");
    }
}
