//! Common helpers of the cluster tests.

pub mod mutant;

use aggregation::Job;
use aggregation::server::Mode;
use cluster::drawn::inputs;
use cluster::{self, Config, Forwarder, PartSwitches, Report, SlotSwitch, Violation};

/// Runs the reference implementation: its slots in the switch or in the server.
pub fn run_reference(config: &Config) -> Report {
    let job = Job::new(config.job).unwrap();
    if !config.parts.is_empty() {
        let mut switches = PartSwitches::new(config.job, &config.parts).unwrap();
        return run_with(config, &mut switches);
    }
    match config.mode {
        Mode::Switch => run_with(config, &mut SlotSwitch::new(job)),
        Mode::Direct => run_with(config, &mut Forwarder::new(job)),
    }
}

/// Runs a configuration with any switch.
pub fn run_with(config: &Config, switch: &mut impl cluster::SwitchModel) -> Report {
    cluster::run(config, switch, cluster::answer_with_sums, inputs(config)).unwrap()
}

/// Violations in a run.
pub fn violations(config: &Config, report: &Report) -> Vec<Violation> {
    cluster::check(config, inputs(config), report)
}

/// Runs the reference implementation, and asserts that there is no violation.
pub fn expect_right(config: &Config) -> Report {
    let report = run_reference(config);
    let violations = violations(config, &report);
    assert!(
        violations.is_empty(),
        "{config:#?}: {violations:#?}\n{report:#?}"
    );
    report
}
