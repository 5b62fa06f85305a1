//! Computes how long the switches at the ends of a link hold frames, so that the link has its declared latency.

use serde::Serialize;

use super::TargetModel;
use crate::diagnostic::{Code, Sink};
use crate::model::Scenario;
use crate::model::topology::{Port, Topology};

/// Times for which a port of a switch holds each frame, so that the port's link has the declared latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PortLatency {
    /// Number of the switch's port.
    pub port: u32,
    /// Time for which the port holds each incoming frame, in nanoseconds.
    pub in_ns: u64,
    /// Time for which the port holds each outgoing frame, in nanoseconds.
    pub out_ns: u64,
}

/// How long a switch's ports hold frames, without ports whose link has no latency. Captures at the ports do not show it.
#[must_use]
pub fn port_latencies(topology: &Topology, switch: &str) -> Vec<PortLatency> {
    let ports = topology.ports(switch);
    let held = ports.map(|port| port_latency(topology, &port));
    held.filter(|held| held.in_ns > 0 || held.out_ns > 0)
        .collect()
}

/// How long one port holds frames. A host holds none, so its switch does so in both directions. Between two switches, only the
/// sender's port holds them.
fn port_latency(topology: &Topology, port: &Port<'_>) -> PortLatency {
    let latency_ns = port.link.latency_ns;
    PortLatency {
        port: port.number,
        in_ns: if topology.has_switch(port.peer) {
            0
        } else {
            latency_ns
        },
        out_ns: latency_ns,
    }
}

/// Refuses links with a latency if the target's ports cannot hold frames.
pub(super) fn check(sink: &mut Sink<'_>, scenario: &Scenario, target: &TargetModel) {
    if target.delays_links {
        return;
    }
    let slow = scenario.topology.links.iter();
    let mut told = None;
    for link in slow.filter(|link| link.latency_ns > 0) {
        // Links that inherit one latency are reported once.
        if told.replace(link.latency_span) != Some(link.latency_span) {
            let message = "this target cannot give links a latency: only the embedded switch can hold frames at its ports";
            sink.error(Code::Topology, link.latency_span, message.to_owned())
                .hint("leave `latency` out or set it to 0s, and add the latency outside weir with tc-netem(8)");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::topology::Link;

    #[test]
    fn each_direction_of_a_link_is_held_once() {
        let mut topology = Topology::training(1, 1);
        for link in &mut topology.links {
            link.latency_ns = 7;
        }
        let held = |switch: &str, peer: &str| {
            let port = topology.ports(switch).find(|port| port.peer == peer);
            let number = port.unwrap().number;
            let held = port_latencies(&topology, switch);
            let held = held.into_iter().find(|held| held.port == number).unwrap();
            (held.in_ns, held.out_ns)
        };
        assert_eq!(held("core", "w0"), (7, 7), "a host holds nothing");
        assert_eq!(held("core", "edge"), (0, 7));
        assert_eq!(held("edge", "core"), (0, 7));
    }

    #[test]
    fn links_without_latency_ask_for_nothing() {
        assert_eq!(Link::new("a", "b").latency_ns, 0);
        assert_eq!(port_latencies(&Topology::star("sw", &["a", "b"]), "sw"), []);
    }

    const SLOW: &str = "weir: 1
name: slow
topology:
  switches: [near, far]
  hosts: [a, s]
  links: [{ends: [a, near], latency: 1ms}, {ends: [s, far], latency: 4ms}, {ends: [near, far], latency: 2ms}]
flows: {all: {from: a, to: s}}
faults: [{id: late, flows: all, where: far, effect: {delay: 20ms}}]
";

    #[test]
    fn a_target_that_cannot_hold_frames_is_refused_with_the_place() {
        let scenario = crate::load("s.yaml", SLOW).unwrap();
        let refused = crate::plan(&scenario, &TargetModel::SIMPLE_SWITCH_GRPC).unwrap_err();
        let said = refused.to_string();
        assert!(
            said.contains("this target cannot give links a latency"),
            "{said}"
        );
        assert!(said.contains("s.yaml:6:38: "), "{said}");
    }
}
