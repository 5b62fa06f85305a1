//! What [`Watched`] finds, and what it overlooks: of a program that leaves something behind, and of others on the machine.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use test_support::namespace::{in_namespace, ip};

use crate::support::leftovers::Watched;
use crate::support::*;

/// A shell that carries out a script, watched.
fn script(script: &str) -> Watched {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    Watched::command(command)
}

#[test]
fn all_that_is_left_is_found() {
    let _turn = beside();
    let test = "what is left is found";
    if !has_program(test, "nsenter") || !in_namespace(test) {
        return;
    }
    let leaves = "ip link add stays type veth peer name other; ip netns add stays; touch /run/file; \
                  touch \"$TMPDIR/stays\"; setsid sleep 996 >/dev/null 2>&1 &";
    let run = AssertUnwindSafe(|| script(leaves).run());
    let panic = catch_unwind(run).expect_err("something is left");
    let said = panic.downcast::<String>().unwrap();
    for what in [
        "interface stays",
        "interface other",
        "file /run/netns/stays",
        "file /run/file",
        "file stays in TMPDIR",
        ": sleep 996",
    ] {
        assert!(said.contains(what), "{what}: {said}");
    }
    let finished = script("ip link add goes type veth peer name other; ip link delete goes").run();
    finished.expect_code(0);
}

/// Also while the watched program runs: it waits until the machine has changed.
#[test]
fn what_others_do_on_the_machine_disturbs_nothing() {
    let _turn = beside();
    if !in_namespace("what_others_do_on_the_machine_disturbs_nothing") {
        return;
    }
    // This machine's `/run` is the test's own.
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "tmpfs", "/run"])
        .status();
    assert!(mounted.unwrap().success());
    let folder = tempfile::tempdir().unwrap();
    let changed = folder.path().join("changed");
    let wait = format!("while ! test -e {}; do sleep 0.01; done", changed.display());
    let finished = script(&wait).run_while(|_| {
        ip("netns add theirs");
        ip("link add theirs type veth peer name others");
        std::fs::write(&changed, "").unwrap();
    });
    finished.expect_code(0);
}
