//! Switches with another set of ranks, and frames of strangers: ranks fail with an explanatory error, or ignore them.

use aggregation::Destination;
use aggregation::job::{ChunkId, Job, JobConfig, JobId, WorkerId};
use aggregation::rank::{Fallback, RankError, Values};
use cluster::Faults;
use cluster::ranks::{AllReduceConfig, AllReduceReport, RankEnd, RankSlotSwitch, RankSwitch, run};
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use wire::{Flags, Kind, Packet, Repr};

const WINDOW: u32 = 4;
const SECOND: u64 = 1_000_000_000;

fn job(workers: u16) -> JobConfig {
    JobConfig {
        job: JobId(7),
        workers,
        window: WINDOW,
        values_per_packet: 4,
        values_per_round: 0,
        first_chunk: ChunkId(u32::MAX - 40),
    }
}

fn input(operation: usize, rank: WorkerId) -> Values {
    let value = |index: i32| index * (i32::from(rank.0) + 1) + operation as i32;
    Values::Integers((0..30).map(value).collect())
}

fn sums(operation: usize, ranks: u16) -> Values {
    let all = i32::from(ranks * (ranks + 1) / 2);
    let value = |index: i32| index * all + operation as i32 * i32::from(ranks);
    Values::Integers((0..30).map(value).collect())
}

/// A switch, with a stranger beside it that sends almost valid frames to the ranks.
struct Beside {
    switch: RankSlotSwitch,
    ranks: u16,
    /// Percentage of frames that are accompanied by a stranger's frame; 0 without strangers.
    share: u32,
    rng: ChaCha8Rng,
}

impl Beside {
    fn new(told: u16, ranks: u16) -> Self {
        Self {
            switch: RankSlotSwitch::new(Job::new(job(told)).unwrap()),
            ranks,
            share: 0,
            rng: ChaCha8Rng::seed_from_u64(0),
        }
    }

    fn below(&mut self, limit: u32) -> u32 {
        self.rng.next_u32() % limit
    }

    /// A frame with one field wrong, so that it belongs to no chunk in flight.
    fn forged(&mut self, frame: &[u8]) -> Vec<u8> {
        let header = Repr::parse(&Packet::new_checked(frame).unwrap());
        let mut forged = header;
        // Before or beyond all chunks that any rank may send or keep, in the same slot.
        let windows = 2 * WINDOW * (2 + self.below(1 << 20));
        let wild = match self.below(2) {
            0 => header.chunk.wrapping_add(windows),
            _ => header.chunk.wrapping_sub(windows),
        };
        let kinds = [Kind::Ask, Kind::Here, Kind::Give, Kind::Given, Kind::Differ];
        match self.below(9) {
            0 => forged.job = header.job ^ 1 << self.below(16),
            1 => forged.slot = header.slot ^ 1 << self.below(16),
            2 => {
                forged.flags = header
                    .flags
                    .with(Flags::VERSION, !header.flags.contains(Flags::VERSION))
            }
            3 => forged.count = header.count.saturating_sub(1 + self.below(4) as u16),
            4 => forged.kind = [Kind::Update, Kind::Result][self.below(2) as usize],
            5 => forged.chunk = wild,
            6 => {
                forged.chunk = wild;
                forged.kind = kinds[self.below(5) as usize];
                forged.flags = Flags::from_bits(self.below(256) as u8);
                forged.worker = self.below(1024) as u16;
            }
            7 => {
                // From a window that these ranks have left behind or not reached.
                forged.kind = [Kind::Give, Kind::Given][self.below(2) as usize];
                forged.chunk = wild;
            }
            _ => {
                forged.kind = Kind::Differ;
                forged.chunk = wild | 1;
                forged.contributors = u64::from(self.below(100));
            }
        }
        let mut bytes = vec![0; forged.buffer_len()];
        forged.emit(&mut Packet::new_unchecked(&mut bytes[..]));
        let own = bytes.len().min(frame.len());
        bytes[wire::HEADER_LEN..own].copy_from_slice(&frame[wire::HEADER_LEN..own]);
        match self.below(16) {
            0 => bytes.truncate(self.below(bytes.len() as u32) as usize),
            1 => bytes[0] ^= 0x10 << self.below(4),
            _ => {}
        }
        bytes
    }
}

impl RankSwitch for Beside {
    fn handle(
        &mut self,
        now_ns: u64,
        from: WorkerId,
        to: Destination,
        payload: &[u8],
        out: &mut Vec<(WorkerId, Vec<u8>)>,
    ) {
        let before = out.len();
        self.switch.handle(now_ns, from, to, payload, out);
        out.retain(|(to, _)| to.0 < self.ranks);
        let came = out[before.min(out.len())..].to_vec();
        for (_, frame) in &came {
            while self.below(100) < self.share {
                let to = WorkerId(self.below(self.ranks.into()) as u16);
                let forged = self.forged(frame);
                out.push((to, forged));
            }
        }
    }
}

fn run_on(switch: &mut Beside, config: &AllReduceConfig, operations: usize) -> AllReduceReport {
    run(config, switch, operations, &input).unwrap()
}

/// The switch has more ranks than there are, or fewer, with and without fallback to hosts: no rank hangs, and the ranks that
/// the switch answers fail with the reason.
#[test]
fn all_ranks_report_a_switch_with_other_ranks() {
    for fallback in [None, Some(Fallback::IF_SILENT)] {
        for (told, ranks) in [(3, 2), (2, 3), (4, 3), (64, 2), (1, 2)] {
            let config = AllReduceConfig {
                fallback,
                deadline_ns: 10 * SECOND,
                ..AllReduceConfig::new(1, job(ranks), Faults::NONE)
            };
            let report = run_on(&mut Beside::new(told, ranks), &config, 3);
            for (rank, end) in report.ends.iter().enumerate() {
                let RankEnd::Failed(error) = end else {
                    panic!("{told} told, {ranks} ranks, rank {rank}: {end:?}");
                };
                match error {
                    RankError::OtherRanks { is_waiting, .. } => {
                        assert_eq!(*is_waiting, told > ranks)
                    }
                    // The switch does not answer this rank; the others have ended.
                    error => assert!(rank >= usize::from(told), "{told} {ranks} {rank}: {error}"),
                }
            }
        }
    }
    let error = RankError::OtherRanks {
        chunk: ChunkId(7),
        ranks: 2,
        complete: aggregation::job::WorkerSet::first(2),
        is_waiting: true,
    };
    assert_eq!(
        error.to_string(),
        "the switch does not sum for the 2 ranks of this job (chunk #7: it has worker 0, worker 1, and waits for others): check \
         the number of ranks given to it"
    );
}

proptest! {
    /// A stranger's frames that belong to no chunk in flight, of all kinds, do no harm.
    #[test]
    fn almost_valid_frames_do_no_harm(seed: u64, ranks in 2_u16..5, share in 1_u32..80, by_hosts: bool) {
        let mut switch = Beside {
            share,
            rng: ChaCha8Rng::seed_from_u64(seed),
            ..Beside::new(ranks, ranks)
        };
        let fallback = Fallback { at_once: by_hosts, ..Fallback::IF_SILENT };
        let config = AllReduceConfig {
            fallback: Some(fallback),
            ..AllReduceConfig::new(seed, job(ranks), Faults::NONE)
        };
        let report = run_on(&mut switch, &config, 6);
        for (rank, end) in report.ends.iter().enumerate() {
            prop_assert_eq!(end, &RankEnd::Done);
            for (operation, told) in report.sums[rank].iter().enumerate() {
                prop_assert_eq!(&told.as_ref().unwrap().values, &sums(operation, ranks));
            }
        }
    }
}
