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
        let missing = format!("`{python}` has no package `p4runtime`");
        test_support::skip("the_same_as_pypi_p4runtime", &missing);
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
