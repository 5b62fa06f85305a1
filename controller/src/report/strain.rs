//! Remarks of a report on the machine, if its load distorts a run's figures.

use super::percent;
use crate::experiment::observe::machine::MachineLoad;

/// Adds the machine's load during the run to the reasons, if there are any.
pub fn with_machine(mut reasons: Vec<String>, run: &str, strain: &MachineLoad) -> Vec<String> {
    if !reasons.is_empty() {
        reasons.push(machine(run, strain));
    }
    reasons
}

fn machine(run: &str, strain: &MachineLoad) -> String {
    format!(
        "the machine: {} of its processors' time was used during {run}, {} by others, {} was taken by the machine below; \
         the load before was {:.1}{}",
        percent(strain.busy_share),
        percent(strain.others_share),
        percent(strain.stolen_share),
        strain.load_before,
        priorities(strain)
    )
}

/// Formats as `; priority of core: real-time, of edge: ordinary`.
fn priorities(strain: &MachineLoad) -> String {
    let switches = strain.switch_priorities.iter();
    let named: Vec<String> = switches
        .map(|(switch, priority)| format!("of {switch}: {priority}"))
        .collect();
    match named.is_empty() {
        true => String::new(),
        false => format!("; priority {}", named.join(", ")),
    }
}
