//! Stuck chunks and ranks.

use std::slice::from_ref;

use super::*;

#[test]
fn who_is_missing_is_named_with_the_time_and_the_port() {
    // Worker 2 has sent chunk 5, but not 6 and 7.
    let seen = switch(&[(4, 7), (5, 7), (6, 3), (7, 3)], [10, 10]);
    let waiting = [rank(0, Some((6, 40.0))), rank(1, Some((6, 38.0)))];
    assert_eq!(
        wrong(from_ref(&seen), &waiting),
        [
            "slot 2 of job 3 has waited for worker 2 for 40 ms, last seen on port 3 with chunk #5, from which no frame arrived within \
          1.0 s (chunk #6, and one more slot the same)"
        ]
    );
    // The rank itself reports its state.
    let [one, two] = waiting.clone();
    let all = [one, two, rank(2, None)];
    let told = wrong(from_ref(&seen), &all);
    assert_names(
        &told[0],
        ". Rank 2 runs (process 72), but has contributed nothing",
    );
    let mut dead = all.clone();
    dead[2].after.as_mut().unwrap().failed = Some("it is tired".to_owned());
    let told = wrong(from_ref(&seen), &dead);
    assert_eq!(told[0], "it has given up: it is tired");
    assert_names(&told[1], "Rank 2 has given up: it is tired");
    let mut sends = all.clone();
    sends[2] = rank(2, Some((6, 30.0)));
    let told = wrong(&[switch(&[(6, 3)], [10, 14])], &sends);
    assert_names(
        &told[0],
        "never seen on port 3, from which 4 frames arrived",
    );
    assert_names(
        &told[0],
        "Rank 2 has sent its part: the frames do not arrive at this switch",
    );
    // No rank was asked: the readings show a minimum duration.
    let asks = switch(&[(4, 7), (5, 7), (6, 3), (7, 3)], [10, 14]);
    let found = judge(&[asks], &[], APART);
    let told = found
        .iter()
        .find(|finding| finding.level == Level::Wrong)
        .unwrap();
    assert!(
        told.text
            .starts_with("slot 2 of job 3 has waited for worker 2 for more than 1.0 s"),
        "{told}"
    );
    assert!(told.hint.as_ref().unwrap().contains("--rank"), "{told}");
    // All ranks were asked, and none waits: nothing is stuck.
    let idle = [0, 1, 2].map(|number| rank(number, None));
    let found = judge(&[seen], &idle, APART);
    assert_eq!(texts(&found, Level::Wrong), Vec::<&str>::new());
    assert_names(
        texts(&found, Level::Note)[0],
        "an earlier use of the job left it",
    );
}

/// A job that has finished, or went on from host to host, leaves cells that are not full: no rank sends, so none waits.
#[test]
fn cells_that_nobody_asks_for_are_no_hang() {
    let left = |arrived| switch(&[(4, 7), (5, 7), (6, 3), (7, 3)], arrived);
    let passed = |before: u64, after: u64, arrived| {
        let (mut seen, guarded) = (left(arrived), guarded(None, [0, 0], 0));
        let look = |guard: Option<GuardReading>, count| {
            let mut guard = guard.unwrap();
            let cell = scenario::plan::names::guard::outcome_cell(
                JOB,
                scenario::plan::names::guard::Guarded::Passed,
            );
            guard.outcomes[cell as usize] = count;
            Some(guard)
        };
        seen.before.guard = look(guarded.before.guard, before);
        seen.after.guard = look(guarded.after.guard, after);
        seen
    };
    let mut uncounted = left([0, 0]);
    uncounted.before.arrived.clear();
    uncounted.after.arrived.clear();
    for (seen, hangs) in [
        (left([10, 10]), false),
        (left([10, 11]), true),
        (uncounted, true),
        // A guard knows the job of each frame: frames of others do not count.
        (passed(5, 5, [10, 90]), false),
        (passed(5, 6, [10, 11]), true),
    ] {
        let found = judge(from_ref(&seen), &[], APART);
        let (level, told) = match hangs {
            true => (Level::Wrong, "slot 2 of job 3 has waited for worker 2"),
            false => (
                Level::Note,
                "slot 2 of job 3 holds chunk #6 without worker 2, and within 1.0 s no rank sent anything",
            ),
        };
        let found = texts(&found, level);
        assert!(
            found.iter().any(|text| text.starts_with(told)),
            "{hangs}: {found:?}"
        );
        // The doctor relies on a rank that reports that it waits.
        let waiting = [rank(0, Some((6, 40.0)))];
        assert_eq!(wrong(&[seen], &waiting).len(), 1);
    }
}

#[test]
fn what_moves_does_not_hang() {
    let mut seen = switch(&[(6, 3)], [1, 2]);
    seen.before = switch(&[(6, 1)], [1, 1]).before;
    let mut ranks = [rank(0, Some((6, 900.0)))];
    assert_eq!(
        wrong(from_ref(&seen), &ranks).len(),
        1,
        "the rank waits for the same"
    );
    ranks[0].before = rank(0, Some((5, 900.0))).before;
    assert_eq!(wrong(&[seen], &ranks), Vec::<String>::new());
}

#[test]
fn what_ranks_wait_for_and_no_switch_misses() {
    let waiting = [rank(0, Some((6, 2500.0)))];
    let about = |cells: &[(u32, u64)]| wrong(&[switch(cells, [0, 0])], &waiting).join("\n");
    for (cells, expected) in [
        (
            &[(6, 7)][..],
            "slot 2 of job 3 has waited 2.5 s for chunk #6, which is complete at switch sw: the switch's frames do not \
             arrive here",
        ),
        (
            &[],
            "of which switch sw has nothing: the ranks' frames do not arrive there",
        ),
        (
            &[(14, 7)],
            "but holds #14 at switch sw: another use of the job has begun",
        ),
    ] {
        let told = about(cells);
        assert_names(&told, expected);
    }
    // In a tree, the answer has to come from the switch above.
    let mut below = switch(&[(6, 7)], [0, 0]);
    below.after.told.jobs.get_mut(&JOB).unwrap().up = Some((9, 1));
    let told = wrong(&[below.clone()], &waiting);
    assert_names(
        &told[0],
        "is complete at switch sw: the switch above has not answered",
    );
    let mut top = switch(&[], [0, 0]);
    top.name = "top".to_owned();
    let told = wrong(&[below, top], &waiting);
    assert_names(&told[0], "of which switch top has nothing");
    // Without any switch, the finding uses what the rank knows from its switch.
    let told = wrong(&[], &waiting);
    assert_names(
        &told[0],
        "the switch has not reported whose part is missing",
    );
    let mut missing = waiting.clone();
    let after = missing[0].after.as_mut().unwrap();
    after.waits.as_mut().unwrap().misses = vec![1, 2];
    let told = wrong(&[], &missing);
    assert_eq!(
        told,
        [
            "slot 2 of job 3 has waited for workers 1 and 2 for 2.5 s (chunk #6), as the switch reports"
        ]
    );
}

/// Chunk numbers wrap.
#[test]
fn the_oldest_chunk_is_told_across_the_end_of_numbers() {
    let seen = switch(&[(u32::MAX - 1, 3), (u32::MAX, 3), (0, 3)], [0, 3]);
    let told = wrong(&[seen], &[]);
    assert_names(&told[0], "(chunk #4294967294, and 2 more slots the same)");
}
