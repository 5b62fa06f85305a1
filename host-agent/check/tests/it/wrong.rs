//! Something is wrong with the prototype, and with ours without any one rule.

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
        "  1. worker 0 is given what comes next; sends UPDATE #1 of 0 (1001 0) to the switch
  2. the switch gets UPDATE #1 of 0 (1001 0) from worker 0: #1, 1 arrivals, [1001, 0]
  3. the switch gets UPDATE #1 of 0 (1001 0) from worker 0: #1, 2 arrivals, [2002, 0]; \
sends SUM #1 with {} (2002 0) to the server
  4. the server gets SUM #1 with {} (2002 0) from the switch; \
sends RESULT #1 with {} (2002 0) to worker 0, worker 1
  5. worker 0 gets RESULT #1 with {} (2002 0) from the server
"
    );
    assert_eq!(loss.wrong, Wrong::Stuck);
    assert_eq!(slots.wrong, Wrong::Leaked);
}

/// What shows without a rule: a sum that is none, or that nobody gets any further.
#[test]
fn every_rule_is_needed() {
    for (rule, bounds) in rules() {
        let report = bounds.explore(Search::ALL).expect("a sound model");
        let Some(Found { wrong, trace }) = report.found else {
            panic!("nothing is wrong without {rule:?}");
        };
        let is_sum = match rule {
            Rule::Overwrite
            | Rule::FreshBitmap
            | Rule::Nobody
            | Rule::Bitmap
            | Rule::Scale
            | Rule::Flag
            | Rule::Nothing
            | Rule::Full
            | Rule::Port
            | Rule::Probe => true,
            Rule::Stale
            | Rule::TakeOver
            | Rule::Again
            | Rule::Versions
            | Rule::Window
            | Rule::Told
            | Rule::Repeat
            | Rule::Admission
            | Rule::Peers => false,
            Rule::None => unreachable!("it is none"),
        };
        let is_as_expected = match &wrong {
            Wrong::Sum(_) => is_sum,
            Wrong::Stuck => !is_sum,
            Wrong::Unexpected(_) | Wrong::Leaked => false,
        };
        assert!(is_as_expected, "without {rule:?}: {wrong}\n{trace}");
        assert!(trace.0.len() <= 20, "without {rule:?}: {wrong}\n{trace}");
    }
}
