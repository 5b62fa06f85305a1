//! Small operations, which a rank's caller submits and completes in its own thread, over cables to a switch.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::{Switch, endpoint, job};
use aggregation::WorkerId;
use aggregation::rank::{Setup, Values};
use aggregation::rto::Retransmission;
use cluster::ranks::RankSlotSwitch;
use host_agent::collective::{CollectiveError, Config, Member, Pending};
use host_agent::frames::{Cable, Endpoint, WhenFull};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

/// Maximum wait for an operation that must complete.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ranks of a job, with the switch's ends of their cables.
fn ranks(workers: u16, retransmission: Retransmission) -> (Vec<Cable>, Vec<Member>) {
    ranks_at(workers, retransmission, SockType::Datagram)
}

/// Ranks of a job, with the switch's ends of their cables, which are sockets of this type.
fn ranks_at(
    workers: u16,
    retransmission: Retransmission,
    cables: SockType,
) -> (Vec<Cable>, Vec<Member>) {
    let peers: Vec<Endpoint> = (0..workers).map(endpoint).collect();
    let pairs = (0..workers).map(|rank| {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (a, b) = socketpair(AddressFamily::Unix, cables, None, flags).unwrap();
        // A switch loses frames for a full link. If it blocked, it would wait for ranks that wait for it.
        fcntl(&a, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        let config = Config {
            setup: Setup {
                dead_after_ns: Some(1_000_000_000),
                ..Setup::under_one_switch(job(workers), WorkerId(rank), retransmission)
            },
            me: endpoint(rank),
            peers: peers.clone(),
        };
        let cable = |socket: OwnedFd| Cable::new(socket, "cable", WhenFull::Wait);
        (cable(a), Member::start(config, cable(b)).unwrap())
    });
    pairs.unzip()
}

/// The switch at these ranks. It loses every `loses`th frame that it sends.
fn network(workers: u16, loses: Option<u64>) -> (Switch, Vec<Member>) {
    let retransmission = Retransmission {
        floor_ns: 20_000_000,
        initial_ns: 50_000_000,
        ..Retransmission::of_ranks()
    };
    let (ports, members) = ranks(workers, retransmission);
    let switch = Switch::start(ports, RankSlotSwitch::new(job(workers)), loses);
    (switch, members)
}

fn submit(member: &Member, value: i32, length: usize) -> Pending {
    let values = Values::Integers(vec![value; length]);
    member.all_reduce(values).unwrap()
}

/// Waits for sums that are all of this value.
fn await_sum(pending: Pending, value: i32, length: usize) {
    let sums = pending.wait(PATIENCE).unwrap();
    assert_eq!(sums.values, Values::Integers(vec![value; length]));
}

/// Waits until the rank has completed this many operations, without driving it.
fn await_operations(member: &Member, operations: u64) {
    let begun = Instant::now();
    while member.counters().0.operations < operations {
        assert!(begun.elapsed() < PATIENCE, "{:?}", member.counters());
        std::thread::yield_now();
    }
}

#[test]
fn operations_complete_whether_their_callers_wait_late_or_never() {
    let (_switch, members) = network(2, None);
    let late: Vec<_> = members.iter().map(|member| submit(member, 1, 3)).collect();
    for member in &members {
        await_operations(member, 1);
        drop(submit(member, 2, 300));
    }
    for pending in late {
        await_sum(pending, 2, 3);
    }
    let last: Vec<_> = members.iter().map(|member| submit(member, 3, 3)).collect();
    for pending in last {
        await_sum(pending, 6, 3);
    }
    for member in &members {
        assert_eq!(member.counters().0.operations, 3);
    }
}

#[test]
fn callers_of_one_rank_wait_in_several_threads() {
    let (_switch, members) = network(2, None);
    for round in 0..50 {
        let pending: Vec<_> = (0..4)
            .flat_map(|operation| members.iter().map(move |member| (operation, member)))
            .map(|(operation, member)| (operation, submit(member, operation, 5)))
            .collect();
        std::thread::scope(|scope| {
            // In some rounds, callers wait for later operations first.
            let (first, second): (Vec<_>, Vec<_>) = pending
                .into_iter()
                .partition(|(operation, _)| (operation + round) % 4 < 2);
            for (operation, pending) in first.into_iter().chain(second) {
                scope.spawn(move || await_sum(pending, 2 * operation, 5));
            }
        });
    }
    for member in &members {
        assert_eq!(member.counters().0.operations, 200);
    }
}

#[test]
fn small_and_large_operations_keep_their_order() {
    let (_switch, members) = network(2, None);
    // The operations up to 16,384 values are small.
    let lengths = [1, 100_000, 5, 3, 16_384, 16_385, 700];
    for waits_at_once in [false, true] {
        std::thread::scope(|scope| {
            for member in &members {
                scope.spawn(move || {
                    let mut pending = Vec::new();
                    for (value, length) in (1..).zip(lengths) {
                        let submitted = submit(member, value, length);
                        match waits_at_once {
                            true => await_sum(submitted, 2 * value, length),
                            false => pending.push((submitted, value, length)),
                        }
                    }
                    for (pending, value, length) in pending {
                        await_sum(pending, 2 * value, length);
                    }
                });
            }
        });
    }
}

#[test]
fn a_lost_frame_is_repaired_while_no_caller_waits() {
    // The switch loses one of the two SUMs of the second operation.
    let (_switch, members) = network(2, Some(3));
    let both = |member: &Member| [1, 2].map(|value| submit(member, value, 3));
    let pending: Vec<_> = members.iter().map(both).collect();
    for member in &members {
        await_operations(member, 2);
    }
    let probes: u64 = members.iter().map(|rank| rank.counters().0.probes).sum();
    assert!(probes > 0);
    for [first, second] in pending {
        await_sum(first, 2, 3);
        await_sum(second, 4, 3);
    }
}

/// The caller that submits an operation sets the timer of the rank's thread, which sleeps.
#[test]
fn an_unanswered_operation_is_probed_while_no_caller_waits() {
    let delay_of_a_probe = |()| {
        let (_switch, members) = network(2, None);
        // The thread answers, and sleeps while no operation is under way.
        members[0].observer().status();
        let first: Vec<_> = members.iter().map(|member| submit(member, 1, 3)).collect();
        first.into_iter().for_each(|first| await_sum(first, 2, 3));
        let begun = Instant::now();
        let _pending = submit(&members[0], 1, 3);
        while members[0].counters().0.probes == 0 {
            assert!(begun.elapsed() < PATIENCE);
            std::thread::yield_now();
        }
        begun.elapsed()
    };
    let mut delays = [(); 5].map(delay_of_a_probe);
    delays.sort_unstable();
    // The timeout is at most 50 ms. Without a timer, the thread wakes after half a second.
    assert!(delays[2] < Duration::from_millis(300), "{delays:?}");
}

#[test]
fn an_operation_completes_after_a_wait_for_it_has_timed_out() {
    let (_switch, members) = network(2, None);
    let first = submit(&members[0], 1, 3);
    for timeout in [0, 30, 1] {
        assert!(first.wait_for(Duration::from_millis(timeout)).is_none());
    }
    drop(submit(&members[1], 1, 3));
    for member in &members {
        await_operations(member, 1);
    }
    await_sum(first, 2, 3);
}

/// The rank's thread may receive the frame that a driving caller waits for: it then wakes the caller.
#[test]
fn an_observer_does_not_delay_a_caller() {
    // So late that no retransmission hides a delay.
    let retransmission = Retransmission {
        floor_ns: 20_000_000_000,
        initial_ns: 20_000_000_000,
        ..Retransmission::of_ranks()
    };
    let (ports, members) = ranks(2, retransmission);
    let _switch = Switch::start(ports, RankSlotSwitch::new(job(2)), None);
    let observer = members[0].observer();
    let is_over = AtomicBool::new(false);
    let slow = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                observer.status();
            }
        });
        let callers = [0, 1].map(|rank| {
            let member = &members[rank];
            scope.spawn(move || {
                let is_slow = |value: &i32| {
                    let begun = Instant::now();
                    await_sum(submit(member, *value, 3), 2 * value, 3);
                    begun.elapsed() >= Duration::from_millis(400)
                };
                (0..1000).filter(is_slow).count()
            })
        });
        let slow = callers.map(|caller| caller.join());
        is_over.store(true, Ordering::Relaxed);
        slow.map(Result::unwrap)
    });
    // A caller that the thread does not wake waits for half a second, here more than a hundred times.
    assert!(slow.iter().all(|slow| *slow < 20), "{slow:?}");
}

#[test]
fn a_dead_rank_is_an_error_of_a_waiting_caller_and_of_later_ones() {
    let (_switch, mut members) = network(2, None);
    let waiting = submit(&members[0], 1, 3);
    drop(members.pop());
    let begun = Instant::now();
    let error = waiting.wait(PATIENCE).unwrap_err();
    assert!(matches!(error, CollectiveError::Rank(_)), "{error}");
    assert!(begun.elapsed() < PATIENCE / 2);
    assert_eq!(later_error(&members[0]).to_string(), error.to_string());
}

/// Error of an operation after the rank has failed, from its submission or from the wait for its sums.
fn later_error(member: &Member) -> CollectiveError {
    let submitted = member.all_reduce(Values::Integers(vec![1]));
    let ended = submitted.and_then(|pending| pending.wait(PATIENCE));
    ended.unwrap_err()
}

/// Both the caller and the rank's thread may notice first that the link has failed.
#[test]
fn a_failed_link_is_an_error_of_a_waiting_caller_and_of_later_ones() {
    for waits_first in [false, true] {
        let (mut ports, mut members) = ranks_at(1, Retransmission::of_ranks(), SockType::SeqPacket);
        let (port, member) = (ports.remove(0), members.remove(0));
        let waiting = submit(&member, 1, 3);
        if waits_first {
            assert!(waiting.wait_for(Duration::from_millis(20)).is_none());
        }
        let error = std::thread::scope(|scope| {
            let caller = scope.spawn(move || waiting.wait(PATIENCE).unwrap_err());
            drop(port);
            caller.join().unwrap()
        });
        assert!(matches!(error, CollectiveError::Io(_)), "{error}");
        assert_eq!(later_error(&member).to_string(), error.to_string());
    }
}

#[test]
fn a_caller_learns_that_the_rank_was_closed() {
    let (_switch, mut members) = network(2, None);
    let member = members.swap_remove(0);
    let waiting = submit(&member, 1, 3);
    assert!(waiting.wait_for(Duration::from_millis(20)).is_none());
    let begun = Instant::now();
    let caller = std::thread::spawn(move || waiting.wait(PATIENCE).unwrap_err());
    drop(member);
    let error = caller.join().unwrap();
    assert!(matches!(error, CollectiveError::Closed), "{error}");
    assert!(begun.elapsed() < PATIENCE / 2);
}
