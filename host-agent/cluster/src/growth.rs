//! Simulates all-reduces on a tree of switches; divides their duration by a lower bound, the time to send a rank's values.

use aggregation::Retransmission;
use aggregation::job::{ChunkId, Job, JobConfig, JobId, WorkerId};
use aggregation::rank::Values;

use crate::ranks::{AllReduceConfig, AllReduceConfigError, Racks, RankEnd, RankSlotSwitch, run};
use crate::{Faults, Rate};

const BITS_PER_S: u64 = 10_000_000_000;
const DELAY_NS: u64 = 5_000;
const VALUES: usize = 256;

/// Size of a simulated all-reduce: ranks in racks below one topmost switch. All links have the same rate and delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Number of ranks in all racks together.
    pub ranks: u16,
    /// Number of ranks in each rack; the ranks of a rack share a switch.
    pub rack: u16,
    /// Number of chunks of values that each rank contributes; a chunk has 256 values.
    pub chunks: usize,
}

/// Simulated duration, divided by the time in which a link carries a rank's values without headers; `None` if a rank failed.
pub fn time_by_bound(size: Size) -> Result<Option<f64>, AllReduceConfigError> {
    let job = JobConfig {
        job: JobId(7),
        workers: size.ranks,
        window: 256,
        values_per_packet: VALUES as u16,
        values_per_round: 0,
        first_chunk: ChunkId(0),
    };
    let (racks, rate) = (
        Racks { size: size.rack },
        Rate {
            bits_per_s: BITS_PER_S,
            queue_bytes: 4 << 20,
            mark_bytes: None,
        },
    );
    let mut config = AllReduceConfig::new(1, job, Faults::NONE);
    config.retransmission = Retransmission::of_ranks();
    config.delay_ns = DELAY_NS;
    config.pause_ns = 0;
    config.rate = Some(rate);
    config.racks = Some(racks);
    let mut switch = RankSlotSwitch::tree(Job::new(job)?, racks).with_rate(rate, DELAY_NS);
    let values = VALUES * size.chunks;
    let inputs = |_: usize, rank: WorkerId| Values::Integers(vec![i32::from(rank.0); values]);
    let report = run(&config, &mut switch, 1, &inputs)?;
    let is_done = report.ends.iter().all(|end| *end == RankEnd::Done);
    let bound_ns = values as f64 * 32.0 * 1e9 / BITS_PER_S as f64;
    Ok(is_done.then_some(report.ended_ns as f64 / bound_ns))
}
