//! Switches and ranks with each possible error, and the finding for it.

mod contradictions;
mod dropped_frames;
mod stuck;
mod wrong_entries;

use std::collections::BTreeMap;
use std::time::Duration;

use aggregation::job::{ChunkId, JobConfig, JobId};
use host_agent::doctor::{Finding, Level};
use host_agent::metrics::{Role, Status, Waits};
use p4lang::runtime::{MulticastGroup, Replica, TableEntry, entry};
use scenario::model::topology::Mac;
use scenario::plan::names::{aggregate, forward};

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

const NOW_NS: u64 = 50_000_000_000;

/// Job 3 with a lease for ports 1 to 3, the numbers of dropped strangers in both readings, and the number of late frames.
fn guarded(until_ns: Option<u64>, strangers: [u64; 2], lapsed: u64) -> SwitchReadings {
    let mut seen = switch(&[], [0, 0]);
    let guard = |strangers: u64| {
        let cell = |outcome| scenario::plan::names::guard::outcome_cell(JOB, outcome) as usize;
        let mut outcomes = vec![0; 1024];
        outcomes[cell(scenario::plan::names::guard::Guarded::Stranger)] = strangers;
        outcomes[cell(scenario::plan::names::guard::Guarded::Lapsed)] = lapsed;
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

fn assert_names(text: &str, expected: &str) {
    assert!(text.contains(expected), "{expected:?} is not in {text:?}");
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
