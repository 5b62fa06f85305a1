//! Short queues, and the reaction of ranks to them.

use aggregation::job::{ChunkId, Job, JobConfig, JobId};
use aggregation::rank::{Fallback, Values};
use aggregation::server::Mode;
use aggregation::{Retransmission, WorkerId};
use cluster::ranks::{AllReduceConfig, AllReduceReport, RankEnd, RankSlotSwitch, run};
use cluster::{Faults, Forwarder, Policer, Rate, WorkerEnd, answer_with_sums};
use test_support::runs_all;

const VALUES: usize = 256;
/// Rate of each link.
const BITS_PER_S: u64 = 1_000_000_000;
/// Length of a frame with that many values, in bytes.
const FRAME: u64 = 1090;

fn config(workers: u16) -> AllReduceConfig {
    let job = JobConfig {
        job: JobId(7),
        workers,
        window: 256,
        values_per_packet: VALUES as u16,
        values_per_round: 0,
        first_chunk: ChunkId(0),
    };
    AllReduceConfig {
        retransmission: Retransmission::of_ranks(),
        dead_after_ns: Some(5_000_000_000),
        delay_ns: 20_000,
        pause_ns: 0,
        ..AllReduceConfig::new(1, job, Faults::NONE)
    }
}

/// Whether this run covers a number of workers: a simulation's cost grows with them.
fn covers(workers: u16) -> bool {
    runs_all() || workers <= 16
}

/// All ranks sum this many chunks.
fn sum(config: &AllReduceConfig, switch: &mut RankSlotSwitch, chunks: usize) -> AllReduceReport {
    let inputs =
        |_: usize, rank: WorkerId| Values::Integers(vec![i32::from(rank.0); VALUES * chunks]);
    let report = run(config, switch, 1, &inputs).unwrap();
    for end in &report.ends {
        assert_eq!(*end, RankEnd::Done);
    }
    report
}

/// While no switch sums, each rank receives the values of all others for its part of the chunks, over one link with a queue
/// of 256 KB. Each link carries 2 (n − 1) / n times the values, for any n.
#[test]
fn incast_does_not_collapse() {
    let took_ns = |workers: u16, chunks: usize| {
        let mut config = config(workers);
        config.rate = Some(Rate {
            bits_per_s: BITS_PER_S,
            queue_bytes: 256_000,
            mark_bytes: Some(64_000),
        });
        config.fallback = Some(Fallback::IF_SILENT);
        let job = Job::new(config.job).unwrap();
        let mut switch = RankSlotSwitch::new(job).silent(0..u64::MAX, None);
        let report = sum(&config, &mut switch, chunks);
        assert!(report.counters[0].by_hosts >= chunks as u64);
        (report.ended_ns, report.network.overflowed)
    };
    let mut of_two = None;
    for workers in [2, 8, 16, 32, 64].into_iter().filter(|&n| covers(n)) {
        // Both runs take the same time until they notice that there is no switch, and for the start.
        let (few, more) = (1000, 3000);
        let (short_ns, _) = took_ns(workers, few);
        let (long_ns, lost) = took_ns(workers, more);
        let chunks = 2 * u64::from(workers - 1) * (more - few) as u64 / u64::from(workers);
        let least_ns = chunks * FRAME * 8_000_000_000 / BITS_PER_S;
        let share = least_ns as f64 / (long_ns - short_ns) as f64;
        println!("{workers} ranks: {share:.3} of the link, {lost} frames lost");
        let of_two = *of_two.get_or_insert(share);
        assert!(share > 0.8 * of_two, "{workers}: {share} of {of_two}");
    }
}

/// Workers send to one server over links with queues of `takes` frames that mark from `marks_at` frames on. Returns the time
/// of completion, if all completed, and the number of frames lost.
fn at_one_server(
    workers: u16,
    [takes, marks_at]: [u64; 2],
    chunks: usize,
    fixed_window: bool,
) -> (Option<u64>, u64) {
    let base = cluster::Config::new(1, workers, Mode::Direct);
    let config = cluster::Config {
        job: JobConfig {
            window: 64,
            values_per_packet: VALUES as u16,
            values_per_round: VALUES * chunks,
            ..base.job
        },
        rounds: 1,
        retransmission: Retransmission::default(),
        delay_ns: 20_000,
        compute_ns: 0,
        rate: Some(Rate {
            bits_per_s: BITS_PER_S,
            queue_bytes: takes * FRAME,
            mark_bytes: Some(marks_at * FRAME),
        }),
        fixed_window,
        ..base
    };
    let mut switch = Forwarder::new(config.checked_job().unwrap());
    let inputs = |_: u64, rank: WorkerId| vec![f32::from(rank.0); VALUES * chunks];
    let report = cluster::run(&config, &mut switch, answer_with_sums, inputs).unwrap();
    let mut ends = report.workers.iter().map(|worker| &worker.end);
    let is_done = ends.all(|end| *end == WorkerEnd::Finished);
    (
        is_done.then_some(report.ended_ns),
        report.network.overflowed,
    )
}

/// The server's link is well used after the start, whose cost is the same for few chunks and for more. 64 workers with one chunk
/// each fill a queue of 64 frames; if it marks, no worker has a second chunk in flight, which is less than the link carries.
#[test]
fn the_incast_of_64_workers_at_one_server_does_not_collapse() {
    let sizes: &[_] = match runs_all() {
        true => &[
            (8, [128, 80], 0.95),
            (64, [128, 80], 0.9),
            (64, [64, 32], 0.8),
        ],
        false => &[(8, [128, 80], 0.95), (64, [64, 32], 0.8)],
    };
    for &(workers, queue, least) in sizes {
        let (few, more) = (300, 1200);
        let (short_ns, lost_at_first) = at_one_server(workers, queue, few, false);
        let (long_ns, lost) = at_one_server(workers, queue, more, false);
        let frames = u64::from(workers) * (more - few) as u64;
        let least_ns = frames * FRAME * 8_000_000_000 / BITS_PER_S;
        let (short_ns, long_ns) = (short_ns.unwrap(), long_ns.unwrap());
        let share = least_ns as f64 / (long_ns - short_ns) as f64;
        let (fixed_ns, fixed_lost) = at_one_server(workers, queue, more, true);
        println!(
            "{workers} workers, queues of {}: {share:.3} of the link, {lost} frames lost, {lost_at_first} of them at first, \
             {long_ns} ns; with a fixed window {fixed_lost}, {fixed_ns:?} ns",
            queue[0]
        );
        assert!(share > least, "{workers}: {share}");
        assert!(lost - lost_at_first < frames / 100, "{workers}: {lost}");
        // With a fixed window the job gives up, or takes several times as long.
        assert!(
            fixed_ns.is_none_or(|fixed_ns| fixed_ns > 3 * long_ns),
            "{workers}: {fixed_ns:?}"
        );
    }
}

/// Ranks whose links have short, marking queues fill the links and lose nothing; without a window they lose much.
#[test]
fn marks_keep_queues_short() {
    const CHUNKS: usize = 8000;
    for workers in [2, 8, 32, 64].into_iter().filter(|&n| covers(n)) {
        let mut config = config(workers);
        config.rate = Some(Rate {
            bits_per_s: BITS_PER_S,
            queue_bytes: 64_000,
            mark_bytes: Some(20_000),
        });
        let mut switch = RankSlotSwitch::new(Job::new(config.job).unwrap());
        let report = sum(&config, &mut switch, CHUNKS);
        let least_ns = CHUNKS as u64 * FRAME * 8_000_000_000 / BITS_PER_S;
        let share = least_ns as f64 / report.ended_ns as f64;
        let congestion = report.counters[0].congestion;
        println!("{workers} ranks: {share:.3} of the link, {congestion:?}");
        assert_eq!(report.network.overflowed, 0);
        assert!(congestion.marks > 0 && congestion.least_window < 64);
        assert!(share > 0.9, "{share}");
        config.fixed_window = true;
        let mut switch = RankSlotSwitch::new(Job::new(config.job).unwrap());
        let fixed = sum(&config, &mut switch, CHUNKS);
        let (lost, took) = (
            fixed.network.overflowed,
            fixed.ended_ns as f64 / report.ended_ns as f64,
        );
        println!("with a fixed window: {lost} frames lost, {took:.2} times as long");
        assert!(lost > u64::from(workers) * CHUNKS as u64 / 100, "{lost}");
    }
}

/// A job that a meter limits to a rate reaches that rate, whether the meter marks before it drops or not.
#[test]
fn a_job_gets_its_rate() {
    const BYTES_PER_S: u64 = 2_400_000;
    const CHUNKS: usize = 6000;
    for unmarked_bytes in [Some(280_000), None] {
        let mut config = config(2);
        let burst_bytes = 2 * 2 * 256 * FRAME;
        config.rate = Some(Rate {
            bits_per_s: 1_000_000_000,
            queue_bytes: 4 << 20,
            mark_bytes: None,
        });
        config.policer = Some(Policer {
            bytes_per_s: BYTES_PER_S,
            burst_bytes,
            unmarked_bytes,
        });
        let mut switch = RankSlotSwitch::new(Job::new(config.job).unwrap());
        let report = sum(&config, &mut switch, CHUNKS);
        let values = 2 * CHUNKS as u64 * FRAME - burst_bytes;
        let allowed = report.ended_ns as f64 / 1e9 * BYTES_PER_S as f64;
        let share = values as f64 / allowed;
        println!(
            "{unmarked_bytes:?}: {share:.3} of the rate, {} frames lost",
            report.network.overflowed
        );
        assert!(share > 0.9, "{share}");
    }
}
