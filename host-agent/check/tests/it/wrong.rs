//! The prototype has errors, and so has our protocol without any one of its rules.

use check::configurations::{prototype, rules};
use check::slots::Rule;
use check::{Found, Search, Wrong};

#[test]
fn the_prototype() {
    let found = prototype().map(|(name, bounds, search)| {
        let report = bounds.explore(search).expect("a sound model");
        report
            .found
            .unwrap_or_else(|| panic!("{name} was not found"))
    });
    let [duplicate, loss, slots] = &found;
    assert!(
        matches!(&duplicate.wrong, Wrong::Sum(_)),
        "{}",
        duplicate.trace
    );
    assert_eq!(
        duplicate.trace.to_string(),
        "  1. worker 0 gets its next task; sends UPDATE #1 of 0 (1001 0) to the switch
  2. the switch receives UPDATE #1 of 0 (1001 0) from worker 0: #1, 1 arrivals, [1001, 0]
  3. the switch receives UPDATE #1 of 0 (1001 0) from worker 0: #1, 2 arrivals, [2002, 0]; \
sends SUM #1 with {} (2002 0) to the server
  4. the server receives SUM #1 with {} (2002 0) from the switch; \
sends RESULT #1 with {} (2002 0) to worker 0, worker 1
  5. worker 0 receives RESULT #1 with {} (2002 0) from the server
"
    );
    assert_eq!(loss.wrong, Wrong::Stuck);
    assert_eq!(slots.wrong, Wrong::Leaked);
}

/// Effect of a missing rule.
#[derive(Debug, PartialEq)]
enum Shows {
    /// A wrong sum.
    Sum,
    /// No progress.
    Stuck,
    /// A rank gives up, because the switch reports that its chunk is older than the cell's owner.
    GivesUp,
}

#[test]
fn every_rule_is_needed() {
    for (rule, bounds) in rules() {
        let report = bounds.explore(Search::ALL).expect("a sound model");
        let Some(Found { wrong, trace }) = report.found else {
            panic!("nothing is wrong without {rule:?}");
        };
        let expected = match rule {
            Rule::Overwrite
            | Rule::FreshBitmap
            | Rule::Nobody
            | Rule::Bitmap
            | Rule::Scale
            | Rule::Flag
            | Rule::Nothing
            | Rule::Full
            | Rule::Port
            | Rule::Probe
            | Rule::Closed
            | Rule::Opened
            | Rule::Forgotten
            | Rule::Kept
            | Rule::Up => Shows::Sum,
            Rule::Versions | Rule::Window | Rule::Admission => Shows::GivesUp,
            Rule::Stale
            | Rule::TakeOver
            | Rule::Again
            | Rule::Told
            | Rule::Repeat
            | Rule::Peers
            | Rule::Asked => Shows::Stuck,
            Rule::None => unreachable!("it is none"),
        };
        let shows = match &wrong {
            Wrong::Sum(_) => Shows::Sum,
            Wrong::Stuck => Shows::Stuck,
            Wrong::Unexpected(what) if what.contains("holds a later chunk") => Shows::GivesUp,
            Wrong::Unexpected(_) | Wrong::Leaked => panic!("without {rule:?}: {wrong}\n{trace}"),
        };
        assert_eq!(shows, expected, "without {rule:?}: {wrong}\n{trace}");
        assert!(trace.0.len() <= 27, "without {rule:?}: {wrong}\n{trace}");
    }
}
