//! Each possible error in a switch's entries, with its finding.

use super::*;

#[test]
fn what_was_told_wrongly_is_named() {
    let wrong = |entries: Entries| {
        let found = consistent::judge("sw", &entries.told(), Some(16));
        texts(&found, Level::Wrong).join("\n")
    };
    let right = Entries::right;
    assert_eq!(wrong(right()), "");
    let found = consistent::judge("sw", &right().told(), Some(16));
    assert_eq!(
        texts(&found, Level::Fine),
        ["job 3: 3 members, 4 slots from 8, consistent"]
    );
    let to_group = [(forward::GROUP, u128::from(GROUP))];
    let group = way(Mac::of_job(JOB), forward::MULTICAST, &to_group);
    let sum = way(Mac::of_sum(JOB), forward::MULTICAST, &to_group);
    let question = way(Mac::of_question(JOB), forward::BACK, &[]);
    let mut small = right();
    small.1[0].replicas.remove(1);
    let mut none = right();
    none.1.clear();
    let job = job_entry(JOB, 0b111, BASE);
    let cases = [
        (
            Entries(Vec::new(), Vec::new()),
            "it has no entries for jobs, so it sums nothing",
        ),
        (
            right().without(&job).and(job_entry(JOB, 0, BASE)),
            "job 3: it has no members: no chunk is ever complete",
        ),
        (
            right()
                .without(&member_entry(JOB, 1, 0, 2))
                .without(&member_entry(JOB, 1, 1, 0)),
            "job 3: no entry names a port of worker 1: the switch accepts no updates from there",
        ),
        (
            right().without(&job).and(job_entry(JOB, 0b11, BASE)),
            "job 3: worker 2 is a member, but the bitmap of a complete chunk lacks its bit",
        ),
        (
            right().without(&member_entry(JOB, 1, 1, 0)),
            "job 3: worker 1 may send updates from port 2, but no requests",
        ),
        (
            right()
                .without(&member_entry(JOB, 1, 1, 0))
                .and(member_entry(JOB, 1, 1, 2)),
            "job 3: the switch treats requests of worker 1 from port 2 as updates: they set the bits 0x2",
        ),
        (
            right()
                .without(&member_entry(JOB, 1, 0, 2))
                .and(member_entry(JOB, 1, 0, 4)),
            "job 3: worker 1's updates from port 2 set the bits 0x4, not 0x2",
        ),
        (
            right().and(member_entry(9, 0, 0, 1)),
            "job 9 has members, but no entry sums it: its frames pass unchanged",
        ),
        (
            right().without(&job).and(job_entry(JOB, 0b111, 13)),
            "job 3: its slots end at 17, but the switch has only 16",
        ),
        (
            right().and(job_entry(4, 0, 10)),
            "job 4: it shares slots with job 3",
        ),
        (
            right().and(job_entry(259, 0, 0)),
            "job 259: its addresses are those of job 3: the numbers of the jobs are equal mod 256",
        ),
        (
            right().without(&group).without(&sum).without(&question),
            "job 3: no entry forwards 01:00:5e:57:45:03: the result does not reach its members",
        ),
        (
            right().without(&group).without(&job).and(part_entry()),
            "job 3: no entry forwards 01:00:5e:57:45:03: the result does not reach its members",
        ),
        (
            right().without(&sum),
            "job 3: no entry forwards 02:00:5e:57:45:03: its sum does not reach its members",
        ),
        (
            right().without(&sum).and(way(
                Mac::of_sum(JOB),
                forward::UNICAST,
                &[(forward::PORT, 7)],
            )),
            "job 3: 02:00:5e:57:45:03 goes to port 7, not to a multicast group",
        ),
        (
            right().without(&question),
            "job 3: 06:00:5e:57:45:03 does not go back to the sender: requests of ranks get no reply",
        ),
        (
            small,
            "job 3: port 2 is not in multicast group 5: the result does not reach worker 1",
        ),
        (
            none,
            "job 3: multicast group 5 does not exist: the result reaches no member",
        ),
    ];
    for (entries, expected) in cases {
        let told = wrong(entries);
        assert_names(&told, expected);
    }
    let window = exact(
        aggregate::JOBS,
        &[(aggregate::KEY_JOB, JOB.into())],
        aggregate::AGGREGATE_JOB,
        &[
            (aggregate::ALL_WORKERS, 0b111),
            (aggregate::BASE, 0),
            (aggregate::WINDOW, 6),
            (aggregate::SLOT_MASK, 5),
        ],
    );
    let told = wrong(right().without(&job).and(window));
    assert_names(&told, "its window of 6 is not a power of two");
    let told = consistent::judge("sw", &SwitchJobs::default(), None);
    assert_names(&told[0].text, "its program sums nothing");
    // A parameter server's job has no address for sums of ranks.
    let server = right().without(&sum).without(&question);
    assert_eq!(wrong(server), "");
}

/// A working job never has a finding of an error, however it was set up.
#[test]
fn what_works_is_fine() {
    let right = Entries::right;
    let to_group = [(forward::GROUP, u128::from(GROUP))];
    let group = way(Mac::of_job(JOB), forward::MULTICAST, &to_group);
    let sum = way(Mac::of_sum(JOB), forward::MULTICAST, &to_group);
    let question = way(Mac::of_question(JOB), forward::BACK, &[]);
    let mut until = job_entry(JOB, 0b111, BASE);
    aggregate::AGGREGATE_UNTIL.clone_into(&mut until.action.name);
    let job = job_entry(JOB, 0b111, BASE);
    for (what, entries) in [
        ("of a scenario", right()),
        ("of weir job", right().without(&group)),
        ("with deadlines", right().without(&job).and(until)),
        (
            "below another switch",
            right().without(&job).and(part_entry()),
        ),
        (
            "of a parameter server",
            right().without(&sum).without(&question),
        ),
    ] {
        let found = consistent::judge("sw", &entries.told(), Some(16));
        let fine = ["job 3: 3 members, 4 slots from 8, consistent"];
        assert_eq!(texts(&found, Level::Fine), fine, "{what}: {found:?}");
        assert_eq!(found.len(), 1, "{what}: {found:?}");
    }
    // A switch as docs/jobs.md starts it, before the first job.
    let idle = SwitchJobs {
        guards: true,
        ..SwitchJobs::new(true, &[], &[])
    };
    let found = consistent::judge("sw", &idle, Some(16));
    assert_eq!(
        texts(&found, Level::Fine),
        ["its program is loaded, but no job is admitted"]
    );
    assert_eq!(found.len(), 1, "{found:?}");
}
