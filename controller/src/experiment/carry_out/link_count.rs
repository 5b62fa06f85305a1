//! Counts the bytes on a host's link, at the switch and at the host, and checks that both counts agree.

use std::time::{Duration, Instant};

use testbeds::bed::BedError;
use testbeds::net::Counters;

use super::error::ExperimentError;
use crate::experiment::Planned;
use crate::experiment::prepare::Testbed;
use crate::target::PortCount;

/// Counts of frames and bytes on a host's link, as the switch and the host counted them.
#[derive(Debug, Clone, Copy, Default)]
pub struct LinkCount {
    switch: PortCount,
    host: Counters,
}

/// Maximum time after the workload's end for the counts of the switch and the host to become equal.
const SETTLING: Duration = Duration::from_secs(2);

impl LinkCount {
    /// Reads the present counts of the switch and the host.
    pub fn take(testbed: &mut Testbed<'_>, host: &str) -> Result<LinkCount, ExperimentError> {
        let topology = &testbed.planned.scenario.topology;
        let switch = switch_of(testbed.planned, host)?;
        let port = topology.next_hop(switch, host).map(|port| port.number);
        let counts = testbed.fleet.port_counts(switch)?;
        let count = counts
            .into_iter()
            .find(|count| Some(count.port) == port)
            .unwrap_or_default();
        Ok(LinkCount {
            switch: count,
            host: testbed.bed.host_counters(host)?,
        })
    }

    /// Bytes on the link since `before`, both directions together, once switch and host agree; an error if they never do.
    pub fn settled_bytes(
        testbed: &mut Testbed<'_>,
        host: &str,
        before: LinkCount,
    ) -> Result<u64, ExperimentError> {
        let start = Instant::now();
        loop {
            let now = LinkCount::take(testbed, host)?;
            let by_switch = [
                now.switch.rx_bytes - before.switch.rx_bytes,
                now.switch.tx_bytes - before.switch.tx_bytes,
            ];
            let by_host = [
                now.host.tx_bytes - before.host.tx_bytes,
                now.host.rx_bytes - before.host.rx_bytes,
            ];
            if by_switch == by_host {
                return Ok(by_switch[0] + by_switch[1]);
            }
            if start.elapsed() > SETTLING {
                return Err(ExperimentError::LinkCounters {
                    switch: switch_of(testbed.planned, host)?.to_owned(),
                    counted_by_switch: by_switch[0] + by_switch[1],
                    counted_by_host: by_host[0] + by_host[1],
                });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn switch_of<'a>(planned: &'a Planned, host: &str) -> Result<&'a str, ExperimentError> {
    let peer = planned
        .scenario
        .topology
        .links
        .iter()
        .find_map(|link| link.peer(host));
    Ok(peer.ok_or_else(|| BedError::Unknown(format!("link of {host}")))?)
}
