//! Reads the switches' counts of lost, received, sent and unparsed frames.

use proof::{Loser, Loss};
use scenario::model::expect::metric::{Metric, Metrics, SwitchMetric};
use scenario::plan::SwitchPlan;
use scenario::plan::names;

use crate::experiment::fleet::FleetError;
use crate::experiment::prepare::Testbed;
use crate::target::PortCount;

/// Frames that the switches report as lost (on arrival, in queues, on sending), or as passed after the faults' lease had ended.
pub fn losses(testbed: &mut Testbed<'_>) -> Result<Vec<Loss>, FleetError> {
    let mut losses = Vec::new();
    for switch in &testbed.planned.plan.switches {
        let mut add = |port, frames, by| {
            if frames > 0 {
                let switch = switch.name.clone();
                losses.push(Loss {
                    switch,
                    port,
                    frames,
                    by,
                    since_ns: None,
                });
            }
        };
        for count in testbed.fleet.port_counts(&switch.name)? {
            add(Some(count.port), count.rx_lost_frames, Loser::ReceiveRing);
            add(Some(count.port), count.tx_lost_frames, Loser::Transmit);
        }
        add(
            None,
            testbed.fleet.queue_losses(&switch.name)?,
            Loser::Queue,
        );
        add(None, testbed.fleet.lapsed(&switch.name)?, Loser::Lease);
    }
    Ok(losses)
}

/// Number of received, sent, marked and unparsed frames of each switch, as metrics.
pub fn metrics(testbed: &mut Testbed<'_>) -> Result<Metrics, FleetError> {
    let mut metrics = Metrics::new();
    for SwitchPlan { name, .. } in &testbed.planned.plan.switches {
        let mut insert = |what, count: u64| {
            metrics.insert(Metric::switch(name, what), count as f64);
        };
        let ports = testbed.fleet.port_counts(name)?;
        let sum = |count: fn(&PortCount) -> u64| ports.iter().map(count).sum();
        insert(SwitchMetric::Received, sum(|port| port.rx_frames));
        insert(SwitchMetric::Sent, sum(|port| port.tx_frames));
        insert(SwitchMetric::Marked, sum(|port| port.tx_marked_frames));
        let program = testbed.fleet.program(name);
        let notes = program.map_or(Vec::new(), |program| program.notes.clone());
        let cells = testbed.fleet.counter(name, names::classify::NOTES)?;
        let noted = notes
            .iter()
            .filter_map(|note| cells.get(usize::from(note.code)));
        insert(SwitchMetric::Unparsed, noted.map(|cell| cell.packets).sum());
    }
    Ok(metrics)
}
