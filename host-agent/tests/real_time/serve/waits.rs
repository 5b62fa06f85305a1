//! Ranks that submit more than the capacity, and ranks that leave.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use aggregation::rank::{Reduction, Values};
use host_agent::collective::CollectiveError;
use host_agent::serve::{Client, RemotePending};
use test_support::namespace::in_namespace;

use super::daemon::{Folder, Running, daemon, serve};
use super::{PATIENCE, rank, switch};
use crate::support::endpoint;

/// A client that has joined.
fn joined(socket: &Path, number: u16) -> Client {
    let client = Client::connect(socket).unwrap();
    let peers = [endpoint(0), endpoint(1)];
    let gone_after = Duration::from_secs(5);
    client
        .join(&rank(number), 0, &peers, gone_after, None)
        .unwrap();
    client
}

fn give(client: &Client, value: u8, length: usize) -> RemotePending {
    let values = Values::Floats(vec![f32::from(value); length]);
    client.all_reduce_as(&values, Reduction::default()).unwrap()
}

fn are_twice(pending: Vec<RemotePending>, length: usize) {
    for (pending, value) in pending.into_iter().zip(1u8..) {
        let sums = pending.wait(PATIENCE).unwrap().values;
        assert_eq!(sums, Values::Floats(vec![2.0 * f32::from(value); length]));
    }
}

/// Number of memories of values that a process has open.
fn memories(running: &Running) -> usize {
    let open = std::fs::read_dir(format!("/proc/{}/fd", running.child.id())).unwrap();
    let names = open.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    names
        .filter(|name| name.to_string_lossy().contains("memfd:weir"))
        .count()
}

fn until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "it does not become so");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Together they exceed a MiB: most wait for capacity, and the other rank has submitted nothing.
#[test]
fn a_rank_that_waits_for_room_answers() {
    const LENGTH: usize = 200_000;
    if !in_namespace("a_rank_that_waits_for_room_answers") {
        return;
    }
    let _switch = switch();
    let folder = Folder::new("room");
    let running = daemon(&folder.socket(), &["--memory", "1"]);
    let [waits, late] = [0, 1].map(|number| joined(&folder.socket(), number));
    let pending: Vec<_> = (1..=4).map(|value| give(&waits, value, LENGTH)).collect();
    // Status requests are answered meanwhile, and change nothing.
    assert_eq!(waits.status().unwrap().rank, Some(0));
    let in_vain = give(&waits, 5, LENGTH);
    let told = in_vain.wait(Duration::from_millis(10)).unwrap_err();
    assert!(matches!(told, CollectiveError::Late { .. }), "{told:?}");
    assert_eq!(waits.status().unwrap().rank, Some(0));
    let others = (1..=5).map(|value| give(&late, value, LENGTH)).collect();
    are_twice(pending, LENGTH);
    are_twice(others, LENGTH);

    // A rank that leaves while it waits is released at once, and nothing of it remains.
    let dropped: Vec<_> = (1..=4).map(|value| give(&waits, value, LENGTH)).collect();
    until(|| memories(&running) == 4);
    drop((waits, dropped));
    until(|| memories(&running) == 0);
}

/// Each unanswered operation is an open file of the daemon.
#[test]
fn a_rank_gives_no_more_operations_than_the_daemon_may_have_open() {
    const LENGTH: usize = 10;
    if !in_namespace("a_rank_gives_no_more_operations_than_the_daemon_may_have_open") {
        return;
    }
    let _switch = switch();
    let folder = Folder::new("files");
    let socket = folder.socket();
    // The daemon uses 64 files itself and 8 per client, which leaves 5 operations for each.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 90; exec \"$0\" \"$@\""]);
    let serve = serve(&socket, &["--clients", "2"]);
    command.arg(serve.get_program()).args(serve.get_args());
    let mut running = Running::start(command);
    assert_eq!(running.says("\"event\":"), "\"ready\"}");

    let [waits, late] = [0, 1].map(|number| joined(&socket, number));
    std::thread::scope(|scope| {
        let given = scope.spawn(|| (1..=30).map(|value| give(&waits, value, LENGTH)).collect());
        until(|| memories(&running) == 5);
        assert_eq!(waits.status().unwrap().rank, Some(0));
        let others = scope.spawn(|| (1..=30).map(|value| give(&late, value, LENGTH)).collect());
        are_twice(given.join().unwrap(), LENGTH);
        are_twice(others.join().unwrap(), LENGTH);
    });

    // A blocked submission fails when its rank leaves.
    std::thread::scope(|scope| {
        let give = || {
            let values = Values::Floats(vec![1.0; LENGTH]);
            let mut given = Vec::new();
            loop {
                match waits.all_reduce_as(&values, Reduction::default()) {
                    Ok(pending) => given.push(pending),
                    Err(error) => return (given, error),
                }
            }
        };
        let given = scope.spawn(give);
        until(|| memories(&running) == 5);
        waits.close();
        let (given, error) = given.join().unwrap();
        assert!(matches!(error, CollectiveError::Closed), "{error:?}");
        assert_eq!(given.len(), 5);
    });
}

/// Its unfinished operations fail, and another process can take its place as soon as `close` returns, even if handles of the
/// sums still exist.
#[test]
fn a_rank_that_closes_has_left() {
    if !in_namespace("a_rank_that_closes_has_left") {
        return;
    }
    let _switch = switch();
    let folder = Folder::new("close");
    // The only seat is free when the previous client has left.
    let running = daemon(&folder.socket(), &["--clients", "1"]);
    for _ in 0..20 {
        let client = joined(&folder.socket(), 0);
        let pending = give(&client, 1, 10);
        client.close();
        assert_eq!(memories(&running), 0);
        let told = pending.wait(PATIENCE).unwrap_err();
        assert_eq!(told.to_string(), CollectiveError::Closed.to_string());
        let none = client.status().unwrap_err();
        assert!(matches!(none, CollectiveError::Closed), "{none:?}");
    }
}
