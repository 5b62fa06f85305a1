//! Remarks of a report on the load of the machine, if the load distorts the figures of a run.

use super::percent;
use crate::experiment::observe::machine::MachineLoad;

/// Adds the machine's load during the run to `reasons`, the reasons why figures are distorted; adds nothing to an empty list.
pub fn with_machine(mut reasons: Vec<String>, run: &str, load: &MachineLoad) -> Vec<String> {
    if !reasons.is_empty() {
        reasons.push(machine(run, load));
    }
    reasons
}

fn machine(run: &str, load: &MachineLoad) -> String {
    format!(
        "the machine: {} of its processor time was used during {run}, {} by other processes, {} was taken by the hypervisor; \
         the load average before was {:.1}{}",
        percent(load.busy_share),
        percent(load.others_share),
        percent(load.stolen_share),
        load.load_before,
        priorities(load)
    )
}

/// Formats the scheduling priority of each switch: `; priority of core: real-time, of edge: ordinary`.
fn priorities(load: &MachineLoad) -> String {
    let switches = load.switch_priorities.iter();
    let named: Vec<String> = switches
        .map(|(switch, priority)| format!("of {switch}: {priority}"))
        .collect();
    match named.is_empty() {
        true => String::new(),
        false => format!("; priority {}", named.join(", ")),
    }
}
