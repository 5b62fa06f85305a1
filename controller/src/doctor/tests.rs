//! Each possible error of a switch, as its entries and cells would show it, with the finding for it.

use std::collections::BTreeMap;
use std::slice::from_ref;
use std::time::Duration;

use aggregation::job::{ChunkId, JobConfig, JobId};
use host_agent::doctor::{Finding, Level};
use host_agent::metrics::{Role, Status, Waits};
use p4lang::runtime::{MulticastGroup, Replica, TableEntry, entry};
use scenario::names::{aggregate, forward};
use scenario::topology::Mac;

use super::*;

const JOB: u16 = 3;
const WINDOW: u32 = 4;
const BASE: u32 = 8;
const GROUP: u32 = 5;
const APART: Duration = Duration::from_secs(1);

fn exact(table: &str, key: &[(&str, u128)], action: &str, params: &[(&str, u128)]) -> TableEntry {
    let key: Vec<_> = key
        .iter()
        .map(|(field, value)| (*field, p4lang::runtime::Match::exact(*value)))
        .collect();
    entry(table, &key, 0, action, params)
}

fn job_entry(number: u16, all: u128, base: u32) -> TableEntry {
    exact(
        aggregate::JOBS,
        &[(aggregate::KEY_JOB, number.into())],
        aggregate::AGGREGATE_JOB,
        &[
            (aggregate::ALL_WORKERS, all),
            (aggregate::BASE, base.into()),
            (aggregate::WINDOW, WINDOW.into()),
            (aggregate::SLOT_MASK, u128::from(WINDOW) - 1),
        ],
    )
}

/// Job 3 on a switch below another one.
fn part_entry() -> TableEntry {
    let mut entry = job_entry(JOB, 0b111, BASE);
    aggregate::AGGREGATE_PART.clone_into(&mut entry.action.name);
    for (name, value) in [(aggregate::UP_PORT, 9), (aggregate::UP_WORKER, 1)] {
        let value = p4lang::runtime::Value::from(value as u128);
        entry.action.params.push((name.to_owned(), value));
    }
    entry
}

/// Worker n is at port n + 1.
fn member_entry(job: u16, worker: u16, probe: u128, bit: u128) -> TableEntry {
    exact(
        aggregate::MEMBERS,
        &[
            (aggregate::KEY_JOB, job.into()),
            (aggregate::KEY_WORKER, worker.into()),
            (aggregate::KEY_PROBE, probe),
            (aggregate::KEY_PORT, u128::from(worker) + 1),
        ],
        aggregate::MEMBER,
        &[(aggregate::WORKER_BIT, bit)],
    )
}

fn way(mac: Mac, action: &str, params: &[(&str, u128)]) -> TableEntry {
    exact(
        forward::TABLE,
        &[(forward::KEY, mac.value())],
        action,
        params,
    )
}

/// Entries and groups of a switch that sums an all-reduce of three ranks.
#[derive(Clone)]
struct Entries(Vec<TableEntry>, Vec<MulticastGroup>);

impl Entries {
    fn right() -> Entries {
        let to_group = [(forward::GROUP, u128::from(GROUP))];
        let mut entries = vec![
            job_entry(JOB, 0b111, BASE),
            way(Mac::of_job(JOB), forward::MULTICAST, &to_group),
            way(Mac::of_sum(JOB), forward::MULTICAST, &to_group),
            way(Mac::of_question(JOB), forward::BACK, &[]),
        ];
        for worker in 0..3 {
            entries.push(member_entry(JOB, worker, 0, 1 << worker));
            entries.push(member_entry(JOB, worker, 1, 0));
        }
        let replica = |port| Replica { port, instance: 0 };
        let group = MulticastGroup {
            id: GROUP,
            replicas: [1, 2, 3].map(replica).to_vec(),
        };
        Entries(entries, vec![group])
    }

    fn without(mut self, gone: &TableEntry) -> Entries {
        let before = self.0.len();
        self.0.retain(|entry| entry != gone);
        assert_eq!(self.0.len(), before - 1, "{gone:?}");
        self
    }

    fn and(mut self, entry: TableEntry) -> Entries {
        self.0.push(entry);
        self
    }

    fn told(&self) -> SwitchJobs {
        SwitchJobs::new(true, &self.0, &self.1)
    }
}

fn texts(findings: &[Finding], level: Level) -> Vec<&str> {
    let found = findings.iter().filter(|finding| finding.level == level);
    found.map(|finding| &finding.text[..]).collect()
}

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
            "it has no entry of a job: it sums nothing",
        ),
        (
            right().without(&job).and(job_entry(JOB, 0, BASE)),
            "job 3: it has no members: no chunk is ever complete",
        ),
        (
            right()
                .without(&member_entry(JOB, 1, 0, 2))
                .without(&member_entry(JOB, 1, 1, 0)),
            "job 3: no entry names a port of worker 1: the switch takes no update from there",
        ),
        (
            right().without(&job).and(job_entry(JOB, 0b11, BASE)),
            "job 3: worker 2 is a member, but a complete chunk lacks it",
        ),
        (
            right().without(&member_entry(JOB, 1, 1, 0)),
            "job 3: worker 1 may send updates by port 2, but no requests",
        ),
        (
            right()
                .without(&member_entry(JOB, 1, 1, 0))
                .and(member_entry(JOB, 1, 1, 2)),
            "job 3: the switch takes requests of worker 1 by port 2 for updates: they set the bits 0x2",
        ),
        (
            right()
                .without(&member_entry(JOB, 1, 0, 2))
                .and(member_entry(JOB, 1, 0, 4)),
            "job 3: worker 1's updates by port 2 set the bits 0x4, not 0x2",
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
        assert!(told.contains(expected), "{expected:?} is not in {told:?}");
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
    assert!(
        told.contains("its window of 6 is not a power of two"),
        "{told}"
    );
    let told = consistent::judge("sw", &SwitchJobs::default(), None);
    assert!(
        told[0].text.contains("its program sums nothing"),
        "{told:?}"
    );
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
        ["its program is loaded, and no job is admitted"]
    );
    assert_eq!(found.len(), 1, "{found:?}");
}

const NOW_NS: u64 = 50_000_000_000;

/// Job 3 with a lease for ports 1 to 3, the numbers of dropped strangers in both readings, and the number of late frames.
fn guarded(until_ns: Option<u64>, strangers: [u64; 2], lapsed: u64) -> SwitchReadings {
    let mut seen = switch(&[], [0, 0]);
    let guard = |strangers: u64| {
        let cell = |outcome| scenario::names::guard::outcome_cell(JOB, outcome) as usize;
        let mut outcomes = vec![0; 1024];
        outcomes[cell(scenario::names::guard::Guarded::Stranger)] = strangers;
        outcomes[cell(scenario::names::guard::Guarded::Lapsed)] = lapsed;
        GuardReading {
            grants: vec![admission::Grant {
                number: JOB,
                name: "digits".to_owned(),
                tenant: None,
                base: BASE,
                window: WINDOW,
                rate_bps: None,
                ports: vec![1, 2, 3],
                until_ns,
            }],
            now_ns: Some(NOW_NS),
            outcomes,
            strangers: vec![0, 0, 0, 0, strangers, 7],
        }
    };
    seen.before.guard = Some(guard(strangers[0]));
    seen.after.guard = Some(guard(strangers[1]));
    seen
}

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
            "job 3 (`digits`): the switch dropped 5 of its frames within 1.0 s: they arrived by port 4, but its ranks are \
             behind ports 1, 2, 3",
        ),
        (
            guarded(None, [0, 1], 0),
            Level::Wrong,
            "job 3 (`digits`): the switch dropped 1 of its frames within 1.0 s: they arrived by port 4, but its ranks are \
             behind ports 1, 2, 3",
        ),
        (
            guarded(later, [7, 7], 0),
            Level::Note,
            "job 3 (`digits`): 7 of its frames arrived by ports other than ports 1, 2, 3, none of them within 1.0 s",
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

/// A switch with these cells, by slot and version of job 3.
fn switch(cells: &[(u32, u64)], arrived: [u64; 2]) -> SwitchReadings {
    let mut held = Cells {
        owners: vec![0; 32],
        bitmaps: vec![0; 32],
    };
    let told = Entries::right().told();
    for (chunk, bitmap) in cells {
        let at = told.jobs[&JOB].cell(*chunk);
        held.owners[at] = *chunk;
        held.bitmaps[at] = *bitmap;
    }
    let look = |came| SwitchReading {
        told: told.clone(),
        cells: Ok(held.clone()),
        arrived: (1..=3).map(|port| (port, came)).collect::<BTreeMap<_, _>>(),
        guard: None,
        foreign: 0,
    };
    SwitchReadings {
        name: "sw".to_owned(),
        before: look(arrived[0]),
        after: look(arrived[1]),
    }
}

fn rank(number: u16, waits: Option<(u32, f64)>) -> RankReadings {
    let job = aggregation::Job::new(JobConfig {
        job: JobId(JOB),
        workers: 3,
        window: WINDOW,
        values_per_packet: 256,
        values_per_round: 0,
        first_chunk: ChunkId(0),
    });
    let mut status = Status::new(Role::Rank, &job.unwrap(), Some(number));
    status.process = 70 + u32::from(number);
    status.child = Some((number, 3));
    status.address = Some(format!("02:00:00:00:00:0{number}/10.0.0.{number}"));
    status.waits = waits.map(|(chunk, since_ms)| Waits {
        chunk,
        slot: (chunk % WINDOW) as u16,
        since_ms,
        misses: Vec::new(),
    });
    RankReadings {
        address: format!("127.0.0.1:{number}"),
        before: Ok(status.clone()),
        after: Ok(status),
    }
}

fn wrong(switches: &[SwitchReadings], ranks: &[RankReadings]) -> Vec<String> {
    let found = judge(switches, ranks, APART);
    let wrong = texts(&found, Level::Wrong).into_iter();
    wrong.map(str::to_owned).collect()
}

#[test]
fn who_is_missing_is_named_with_the_time_and_the_port() {
    // Worker 2 has sent chunk 5, but not 6 and 7.
    let seen = switch(&[(4, 7), (5, 7), (6, 3), (7, 3)], [10, 10]);
    let waiting = [rank(0, Some((6, 40.0))), rank(1, Some((6, 38.0)))];
    assert_eq!(
        wrong(from_ref(&seen), &waiting),
        [
            "slot 2 of job 3 has waited for worker 2 for 40 ms, last seen on port 3 with chunk #5, by which no frame arrived within \
          1.0 s (chunk #6, and one more slot the same)"
        ]
    );
    // The rank itself reports its state.
    let [one, two] = waiting.clone();
    let all = [one, two, rank(2, None)];
    let told = wrong(from_ref(&seen), &all);
    assert!(
        told[0].ends_with(". Rank 2 runs (process 72), and has contributed nothing"),
        "{told:?}"
    );
    let mut dead = all.clone();
    dead[2].after.as_mut().unwrap().failed = Some("it is tired".to_owned());
    let told = wrong(from_ref(&seen), &dead);
    assert_eq!(told[0], "it has given up: it is tired");
    assert!(
        told[1].ends_with("Rank 2 has given up: it is tired"),
        "{told:?}"
    );
    let mut sends = all.clone();
    sends[2] = rank(2, Some((6, 30.0)));
    let told = wrong(&[switch(&[(6, 3)], [10, 14])], &sends);
    assert!(
        told[0].contains("never seen on port 3, by which 4 frames arrived"),
        "{told:?}"
    );
    assert!(
        told[0].ends_with("Rank 2 has sent it: its frames do not arrive here"),
        "{told:?}"
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
    assert!(
        texts(&found, Level::Note)[0].contains("an earlier use of the job left it"),
        "{found:?}"
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
            let cell =
                scenario::names::guard::outcome_cell(JOB, scenario::names::guard::Guarded::Passed);
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
            "and holds #14 at switch sw: another use of the job has begun",
        ),
    ] {
        let told = about(cells);
        assert!(told.contains(expected), "{expected:?} is not in {told:?}");
    }
    // In a tree, the answer has to come from the switch above.
    let mut below = switch(&[(6, 7)], [0, 0]);
    below.after.told.jobs.get_mut(&JOB).unwrap().up = Some((9, 1));
    let told = wrong(&[below.clone()], &waiting);
    assert!(
        told[0].contains("is complete at switch sw: the switch above has not answered"),
        "{told:?}"
    );
    let mut top = switch(&[], [0, 0]);
    top.name = "top".to_owned();
    let told = wrong(&[below, top], &waiting);
    assert!(
        told[0].contains("of which switch top has nothing"),
        "{told:?}"
    );
    // Without any switch, the finding uses what the rank knows from its switch.
    let told = wrong(&[], &waiting);
    assert!(
        told[0].contains("the switch has not reported whose part is missing"),
        "{told:?}"
    );
    let mut missing = waiting.clone();
    missing[0]
        .after
        .as_mut()
        .unwrap()
        .waits
        .as_mut()
        .unwrap()
        .misses = vec![1, 2];
    let told = wrong(&[], &missing);
    assert_eq!(
        told,
        [
            "slot 2 of job 3 has waited for workers 1 and 2 for 2.5 s (chunk #6), as the switch reports"
        ]
    );
}

#[test]
fn ranks_that_contradict_each_other() {
    let healthy = [0, 1, 2].map(|number| rank(number, None));
    assert_eq!(wrong(&[], &healthy), Vec::<String>::new());
    let mut twice = healthy.clone();
    twice[2] = rank(1, None);
    twice[2].after.as_mut().unwrap().process = 99;
    assert!(wrong(&[], &twice)[0].starts_with("rank 1 runs 2 times, at "));
    let mut other = healthy.clone();
    other[1].after.as_mut().unwrap().ranks = 4;
    other[2].after.as_mut().unwrap().window = 8;
    assert_eq!(
        wrong(&[], &other),
        [
            "rank 0 reports a job of 3 ranks, rank 1 one of 4",
            "rank 0 reports a window of 4, rank 2 one of 8"
        ]
    );
    let mut late = healthy.clone();
    late[0].after.as_mut().unwrap().age_ms = 3200.0;
    late[1].after = Err("nothing answers".to_owned());
    let told = wrong(&[], &late);
    assert_eq!(
        told,
        [
            "its status is 3.2 s old: process 70 computes or hangs",
            "nothing answers"
        ]
    );
    let mut lossy = healthy;
    let counters = &mut lossy[0].after.as_mut().unwrap().counters;
    counters.insert("weir_lost_frames_total".to_owned(), 12);
    let found = judge(&[], &lossy, APART);
    assert!(
        texts(&found, Level::Note)[0].contains("dropped 12 frames"),
        "{found:?}"
    );
}

/// Chunk numbers wrap.
#[test]
fn the_oldest_chunk_is_told_across_the_end_of_numbers() {
    let seen = switch(&[(u32::MAX - 1, 3), (u32::MAX, 3), (0, 3)], [0, 3]);
    let told = wrong(&[seen], &[]);
    assert!(
        told[0].contains("(chunk #4294967294, and 2 more slots the same)"),
        "{told:?}"
    );
}

#[test]
fn times_and_numbers_as_people_say_them() {
    let times = [(0.04, "40 ms"), (2.5, "2.5 s"), (600.0, "10 min")];
    for (seconds, said) in times {
        assert_eq!(spoken(Duration::from_secs_f64(seconds)), said);
    }
    assert_eq!(workers(&[]), "nobody");
    assert_eq!(workers(&[4]), "worker 4");
    assert_eq!(workers(&[4, 5, 6]), "workers 4, 5 and 6");
}
