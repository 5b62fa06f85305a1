//! Counts of the switches that are not counts of faults.

use std::collections::BTreeMap;

use proof::{Loser, Loss};
use scenario::expect::metric::{Metric, Metrics, SwitchMetric};
use scenario::names;

use crate::experiment::fleet::FleetError;
use crate::experiment::prepare::Testbed;

/// Frames that the switches report as lost.
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

/// Packet counts of the switches, as metrics.
pub fn metrics(testbed: &mut Testbed<'_>) -> Result<Metrics, FleetError> {
    let mut metrics = Metrics::new();
    for switch in &testbed.planned.plan.switches {
        let counts = testbed.fleet.port_counts(&switch.name)?;
        let received: u64 = counts.iter().map(|port| port.rx_frames).sum();
        let sent: u64 = counts.iter().map(|port| port.tx_frames).sum();
        let marked: u64 = counts.iter().map(|port| port.tx_marked_frames).sum();
        let program = testbed.fleet.program(&switch.name);
        let notes = program.map_or(Vec::new(), |program| program.notes.clone());
        let cells = testbed
            .fleet
            .counter(&switch.name, names::classify::NOTES)?;
        let noted = notes
            .iter()
            .filter_map(|note| cells.get(usize::from(note.code)));
        let values = BTreeMap::from([
            (SwitchMetric::Received, received),
            (SwitchMetric::Sent, sent),
            (SwitchMetric::Marked, marked),
            (SwitchMetric::Unparsed, noted.map(|cell| cell.packets).sum()),
        ]);
        metrics.extend(
            values
                .into_iter()
                .map(|(what, count)| (Metric::switch(&switch.name, what), count as f64)),
        );
    }
    Ok(metrics)
}
