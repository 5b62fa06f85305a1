//! Time until ranks recover after a switch has forgotten all its cells.

use aggregation::Retransmission;
use aggregation::job::{ChunkId, Job, JobConfig, JobId, WorkerId};
use aggregation::rank::{Fallback, Values};
use cluster::ranks::{AllReduceConfig, AllReduceReport, RankEnd, RankSlotSwitch, Recovery, run};
use cluster::{Faults, Rate};
use test_support::seeds;

const MS: u64 = 1_000_000;
const SEEDS: u64 = 40;

/// A silence of the switch, and its restart.
#[derive(Debug, Clone, Copy)]
struct Restart {
    silent_from_ns: u64,
    at_ns: u64,
}

/// Four ranks with the default timeouts of ranks, on links of 1 Gbit/s: a thousand chunks take 9 ms.
fn report(seed: u64, chunks: usize, loss: f64, restart: Option<Restart>) -> AllReduceReport {
    let job = JobConfig {
        job: JobId(7),
        workers: 4,
        window: 64,
        values_per_packet: 256,
        values_per_round: 0,
        first_chunk: ChunkId(0),
    };
    let faults = Faults {
        loss,
        ..Faults::NONE
    };
    let mut config = AllReduceConfig::new(seed, job, faults);
    config.retransmission = Retransmission::of_ranks();
    config.delay_ns = 20_000;
    config.pause_ns = MS;
    config.dead_after_ns = Some(5_000 * MS);
    config.fallback = Some(Fallback::IF_SILENT);
    config.rate = Some(Rate {
        bits_per_s: 1_000_000_000,
        queue_bytes: 4 << 20,
        mark_bytes: None,
    });
    let mut switch = RankSlotSwitch::new(Job::new(job).unwrap());
    if let Some(Restart {
        silent_from_ns,
        at_ns,
    }) = restart
    {
        config.watched_ns = vec![at_ns];
        switch = switch
            .silent(silent_from_ns..at_ns, None)
            .restarting(at_ns, 0);
    }
    let inputs = |_: usize, rank: WorkerId| Values::Integers(vec![i32::from(rank.0); 256 * chunks]);
    let report = run(&config, &mut switch, 1, &inputs).unwrap();
    let is_done = report.ends.iter().all(|end| *end == RankEnd::Done);
    assert!(is_done, "{:?}", report.ends);
    assert_eq!(switch.restarts_left(), 0);
    report
}

/// The switch is silent for `silent_ns`, possibly 0, and then restarts.
fn in_the_middle(seed: u64, silent_ns: u64, loss: f64) -> Recovery {
    // Additional chunks for the time in which hosts sum.
    let chunks = 4000 + (silent_ns / MS) as usize * 40;
    let silent_from_ns = 5 * MS + seed * 137_000;
    let at_ns = silent_from_ns + silent_ns;
    let restart = Restart {
        silent_from_ns,
        at_ns,
    };
    let report = report(seed, chunks, loss, Some(restart));
    let recovery = report.recoveries[0];
    let took_ns = recovery.took_ns.expect("it goes on");
    assert!(at_ns + took_ns < report.ended_ns, "it was over before");
    recovery
}

/// The switch restarts while ranks wait for their last chunks, which no later chunk overtakes.
fn at_the_end(seed: u64) -> Recovery {
    let undisturbed_ns = report(seed, 600, 0.0, None).ended_ns;
    let at_ns = undisturbed_ns - 60_000 - seed * 8_000;
    let restart = Restart {
        silent_from_ns: at_ns,
        at_ns,
    };
    report(seed, 600, 0.0, Some(restart)).recoveries[0]
}

/// Every chunk in flight has its sum within two of the ranks' timeouts at that time.
#[test]
fn a_restart_is_noticed_within_two_timeouts() {
    type Case<'a> = (&'a str, &'a dyn Fn(u64) -> Recovery);
    let cases: [Case<'_>; 5] = [
        ("at once", &|seed| in_the_middle(seed, 0, 0.0)),
        ("at once, 1 % lost", &|seed| in_the_middle(seed, 0, 0.01)),
        ("silent for 15 ms", &|seed| {
            in_the_middle(seed, 15 * MS, 0.0)
        }),
        ("silent for 100 ms", &|seed| {
            in_the_middle(seed, 100 * MS, 0.0)
        }),
        ("at once, at the end", &at_the_end),
    ];
    for (name, recovery) in cases {
        let all = seeds(0..SEEDS).map(|seed| {
            let recovery = recovery(seed);
            let took = recovery.in_timeouts().expect("it goes on");
            (took, recovery.timeout_ns)
        });
        let mut all: Vec<(f64, u64)> = all.collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (median, longest) = (all[all.len() / 2].0, all[all.len() - 1]);
        let timeout_ms = longest.1 as f64 / MS as f64;
        println!(
            "{name}: median {median:.2} timeouts, longest {:.2}, of {timeout_ms:.1} ms",
            longest.0
        );
        assert!(longest.0 <= 2.0, "{name}: {}", longest.0);
    }
    // At the end, ranks notice the restart by a timeout.
    assert!(seeds(0..SEEDS).any(|seed| at_the_end(seed).in_timeouts() > Some(0.5)));
}
