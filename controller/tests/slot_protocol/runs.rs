//! Training runs that follow from a seed.

use aggregation::server::Mode;
use aggregation::{CellIndex, ChunkId, JobId, WorkerId};
use cluster::{
    self, CellState, Compare, Config, Death, Faults, Node, Report, SlotSwitch, SwitchModel,
    Violation,
};

use crate::p4_switch::{Admission, P4Switch, VALUES, mix};

/// Every choice of a run follows from its seed.
pub fn chaotic(seed: u64) -> Config {
    let pick = |what: u64, options: u64| mix(seed, what, 0x0051_0751) % options;
    let workers = match pick(1, 100) {
        0..=97 => 1 + pick(2, 8) as u8,
        _ => 9 + pick(3, 24) as u8,
    };
    let mut config = Config::new(seed, workers, Mode::Switch);
    config.job.job = JobId(pick(4, 1 << 16) as u16);
    config.job.window = 1 << pick(5, 4);
    config.job.values_per_packet = VALUES as u16;
    // One to four chunks, the last often not full.
    config.job.values_per_round = 1 + pick(6, 4 * VALUES as u64) as usize;
    config.rounds = 1 + pick(7, 3);
    config.job.first_chunk = match pick(8, 4) {
        0 => ChunkId(0),
        1 => ChunkId(u32::MAX - pick(9, 20) as u32),
        2 => ChunkId((1 << 31) - pick(9, 20) as u32),
        _ => ChunkId(pick(9, 1 << 32) as u32),
    };
    let share = |what: u64, percent: u64| {
        (pick(what, 4) != 0) as u64 as f64 * pick(what + 1, percent + 1) as f64 / 100.0
    };
    config.faults = Faults {
        loss: share(20, 30),
        duplicate: share(22, 20),
        reorder: share(24, 50),
        // From a few frames to many windows.
        reorder_ns: 10_000 << pick(26, 9),
    };
    config.retransmission.fast_threshold = [0, 2, 8][pick(27, 3) as usize];
    config.compute_ns = 1000 << pick(28, 10);
    config
}

/// The same, and one node stops for ever.
pub fn deadly(seed: u64) -> Config {
    let mut config = chaotic(seed);
    let pick = |what: u64, options: u64| mix(seed, what, 0xDEAD) % options;
    config.retransmission.max_timeouts = 12;
    let node = match pick(1, 8) {
        0 => Node::Server,
        _ => Node::Worker(WorkerId(pick(2, u64::from(config.job.workers)) as u8)),
    };
    let at_ns = pick(3, 100_000 << pick(4, 5));
    config.deaths.push(Death { node, at_ns });
    config
}

/// Copies that come windows after their chunk was complete.
pub fn late(seed: u64) -> Config {
    let mut config = chaotic(seed);
    config.job.window = 1 << (seed % 2);
    config.job.values_per_round = 4 * VALUES;
    config.rounds = 3;
    config.compute_ns = 1000;
    config.faults = Faults {
        loss: 0.002,
        duplicate: 0.4,
        reorder: 0.2,
        reorder_ns: 1_500_000,
    };
    config
}

/// A worker's values of a round, of many magnitudes.
fn inputs(config: &Config) -> impl Fn(u64, WorkerId) -> Vec<f32> + Copy {
    let (seed, length) = (config.seed, config.job.values_per_round);
    move |round, worker| {
        let value = |index: usize| {
            let block = (index / VALUES) as u64;
            let magnitude = mix(seed, block, round);
            // Workers want different exponents; a block may be zero for one, or for all.
            let own = mix(magnitude, u64::from(worker.0), 1) % 9;
            if magnitude.is_multiple_of(7) || own == 8 {
                return 0.0;
            }
            let bits = mix(seed, round << 8 | u64::from(worker.0), index as u64);
            let unit = (bits >> 40) as f32 / (1u64 << 24) as f32 - 0.5;
            unit * 2f32.powi((magnitude % 40 + own) as i32 - 24)
        };
        (0..length).map(value).collect()
    }
}

pub fn run(config: &Config, switch: &mut impl SwitchModel) -> (Report, Vec<Violation>) {
    let report = cluster::run(config, switch, cluster::answer_with_sums, inputs(config))
        .expect("the settings are a job");
    let violations = cluster::check(config, inputs(config), &report);
    (report, violations)
}

/// A switch whose cells nobody may look into.
struct Closed<S>(S);

impl<S: SwitchModel> SwitchModel for Closed<S> {
    fn handle(&mut self, now_ns: u64, from: Node, payload: &[u8], out: &mut Vec<(Node, Vec<u8>)>) {
        self.0.handle(now_ns, from, payload, out);
    }

    fn cell(&self, _cell: CellIndex) -> Option<CellState> {
        None
    }
}

/// Job after job in the same cells, of which an admission writes owners and bitmaps only; frames are compared.
pub fn run_in_used_cells(p4: P4Switch, config: &Config) -> (P4Switch, Report, u64, bool) {
    let job = config.checked_job().expect("a job");
    let admission = if config.seed.is_multiple_of(2) {
        Admission::LeftBehind
    } else {
        Admission::Owned
    };
    let mut p4 = p4;
    p4.admit(job, admission);
    let mut both = Compare::new(job, Closed(p4), Closed(SlotSwitch::new(job)));
    let (report, violations) = run(config, &mut both);
    let right = both.mismatches.is_empty() && violations.is_empty();
    (both.first.0, report, both.compared, right)
}
