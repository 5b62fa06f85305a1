//! Training runs that follow from a seed.

use aggregation::server::Mode;
use aggregation::{CellIndex, JobId};
use cluster::drawn::{self, inputs};
use cluster::{
    self, CellState, Compare, Config, Faults, Node, Report, SlotSwitch, SwitchModel, Violation,
};

use super::p4_switch::{Admission, P4Switch, VALUES};

/// Every choice of a run follows from its seed.
pub fn chaotic(seed: u64) -> Config {
    chaotic_of(VALUES, seed)
}

/// The same, with frames of so many values.
pub fn chaotic_of(values: usize, seed: u64) -> Config {
    let pick = |what: u64, options: u64| drawn::pick(seed, 0x0051_0751, what, options);
    let workers = match pick(1, 100) {
        0..=97 => 1 + pick(2, 8) as u16,
        _ => 9 + pick(3, 24) as u16,
    };
    let mut config = Config::new(seed, workers, Mode::Switch);
    config.job.job = JobId(pick(4, 1 << 16) as u16);
    config.job.window = 1 << pick(5, 4);
    config.job.values_per_packet = values as u16;
    // One to four chunks, the last often not full.
    config.job.values_per_round = 1 + pick(6, 4 * values as u64) as usize;
    drawn::chaotic(config)
}

/// The same, and one node stops for ever.
pub fn deadly(seed: u64) -> Config {
    drawn::deadly(chaotic(seed))
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
