//! The protocol has no errors within small bounds. `cargo xtask model-check` explores the large ones.

use check::all_reduce::AllReduceBounds as AllReduce;
use check::all_reduce::Operation;
use check::configurations::{Bounds, configurations};
use check::slots::Rule;
use check::{Report, Search};

/// Explores a configuration, and asserts that the search was complete and found no error.
fn expect_right(name: &str, bounds: &Bounds) -> Report {
    let report = bounds
        .explore(Search::ALL)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    if let Some(found) = &report.found {
        panic!("{name}: {}\n{}", found.wrong, found.trace);
    }
    assert!(report.complete, "{name}");
    report
}

#[test]
fn small_configurations() {
    for row in configurations().iter().filter(|row| !row.is_large) {
        let report = expect_right(row.name, &row.bounds);
        assert!(
            report.states > 30 && report.ended > 0,
            "{}: {report:?}",
            row.name
        );
        // Without losses, one timeout brings progress. After a restart, a rank that missed a sum first sends its values, and
        // then asks others; with hosts, an asked rank gives its values. For a chunk that was closed long ago, the switch
        // first reports that others have it.
        let most = match row.name {
            "restart" | "hosts" | "hosts-cut" => 2,
            name if name.starts_with("deadline") => 4,
            _ => 1,
        };
        assert!(
            (1..=most).contains(&report.periods),
            "{}: {}",
            row.name,
            report.periods
        );
    }
}

#[test]
fn the_models_slots_equal_the_reference_slots() {
    let rows = configurations();
    let rows = rows
        .iter()
        // A tree always has the real slots.
        .filter(|row| !row.is_large && row.name != "restart" && row.name != "tree");
    for row in rows.filter(|row| row.name != "server-sums") {
        let anew = row.bounds.clone().without(Rule::None);
        let report = expect_right(row.name, &row.bounds);
        let again = expect_right(row.name, &anew);
        let counts = |report: &Report| (report.states, report.transitions, report.ended);
        assert_eq!(counts(&report), counts(&again), "{}", row.name);
    }
}

/// A restart of the switch stops no rank: the ranks get from each other what it has forgotten.
#[test]
fn progress_continues_after_a_restart() {
    let rows = configurations();
    let row = rows.iter().find(|row| row.name == "restart");
    let report = expect_right("restart", &row.expect("a row").bounds);
    assert_eq!((report.broken, report.broken_and_stuck), (0, 0));
}

/// Fields left out of a state do not affect behavior.
#[test]
fn equal_states_do_the_same() {
    let search = Search {
        compares: true,
        ..Search::ALL
    };
    for name in [
        "two-ranks",
        "guesses-apart",
        "crash",
        "restart",
        "deadline",
        "deadline-restart",
        "server-apart",
        "tree",
    ] {
        let rows = configurations();
        let row = rows.iter().find(|row| row.name == name).expect("a row");
        let report = row.bounds.explore(search);
        let report = report.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(report.complete, "{name}");
    }
}

#[test]
fn an_exceeded_bound_is_an_error() {
    let search = Search {
        max_states: 20,
        ..Search::ALL
    };
    let bounds = Bounds::AllReduce(AllReduce::new(2, 1, vec![Operation::Integers(1); 2]));
    let report = bounds.explore(search).expect("a sound model");
    assert!(!report.complete && report.found.is_none());
}
