//! Frames that a switch drops.

use super::*;

/// A rank without answers is not reported as dead if the switch drops its frames.
#[test]
fn lapsed_leases_and_wrong_ports_are_named() {
    let lapsed = Some(NOW_NS - 12_000_000_000);
    let later = Some(NOW_NS + 1);
    let ended = "job 3 (`digits`): its lease ran out, or it was released, 12.0 s ago";
    let dropped = format!("{ended}; the switch has dropped 4 frames that ranks sent since");
    for (seen, level, expected) in [
        (guarded(lapsed, [0, 0], 4), Level::Wrong, &dropped[..]),
        // Once the job's entries are swept, its own ports are strangers.
        (guarded(lapsed, [0, 3], 1), Level::Wrong, &dropped),
        (guarded(lapsed, [0, 0], 0), Level::Note, ended),
        (
            guarded(later, [2, 7], 0),
            Level::Wrong,
            "job 3 (`digits`): the switch dropped 5 of its frames within 1.0 s: they arrived from port 4, but its ranks are \
             behind ports 1, 2, 3",
        ),
        (
            guarded(None, [0, 1], 0),
            Level::Wrong,
            "job 3 (`digits`): the switch dropped 1 of its frames within 1.0 s: they arrived from port 4, but its ranks are \
             behind ports 1, 2, 3",
        ),
        (
            guarded(later, [7, 7], 0),
            Level::Note,
            "job 3 (`digits`): 7 of its frames arrived from ports other than ports 1, 2, 3, none of them within 1.0 s",
        ),
    ] {
        let found = guard::judge(&seen, APART);
        assert_eq!(texts(&found, level), [expected], "{found:?}");
        assert_eq!(found.len(), 1, "{found:?}");
    }
    assert_eq!(guard::judge(&guarded(later, [0, 0], 0), APART), []);
    // Ranks of one job that have each other's ports: whatever the program.
    let mut swapped = switch(&[], [0, 0]);
    swapped.before.foreign = 2;
    swapped.after.foreign = 5;
    assert_eq!(
        wrong(&[swapped], &[]),
        ["the switch dropped 3 frames within 1.0 s: they name a rank that is behind another port"]
    );
    // The frames came before the first reading: the problem has ended, or was another job's.
    let mut before = switch(&[], [0, 0]);
    before.before.foreign = 5;
    before.after.foreign = 5;
    let found = guard::judge(&before, APART);
    assert_eq!(
        texts(&found, Level::Note),
        [
            "the switch dropped 5 frames that name a rank behind another port, none of them within 1.0 s"
        ]
    );
    assert_eq!(found.len(), 1, "{found:?}");
}
