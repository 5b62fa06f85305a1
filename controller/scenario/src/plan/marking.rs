//! Lists switch ports that mark packets in a long queue (ECN), and refuses them where captures follow packets.

use super::{Injection, TargetModel};
use crate::diagnostic::{Code, Sink};
use crate::model::Scenario;
use crate::model::topology::{Link, Topology};

/// For each marking port of a switch: the port's number, and the number of waiting frames from which it marks (ECN).
#[must_use]
pub fn port_marks(topology: &Topology, switch: &str) -> Vec<(u32, u32)> {
    let ports = topology.ports(switch);
    ports
        .filter_map(|port| Some((port.number, port.link.mark_at?)))
        .collect()
}

/// Refuses marking ports if the target cannot mark, or if a flow passes them: captures at a flow's two ends must be equal.
pub(super) fn check(sink: &mut Sink<'_>, scenario: &Scenario, target: &TargetModel) {
    let mut told = Refusals::default();
    if !target.marks_queues {
        for link in scenario
            .topology
            .links
            .iter()
            .filter(|link| link.mark_at.is_some())
        {
            let message = "this target cannot mark packets (ECN): only an embedded switch that weir starts can";
            told.refuse(sink, link, message.to_owned(), "leave `ecn` out");
        }
        return;
    }
    for flow in &scenario.flows {
        let hops = flow.paths.iter().flat_map(|path| {
            let onward = path.nodes().skip(2);
            path.switches.iter().zip(onward).flat_map(|(switch, next)| {
                let ports = scenario.topology.ports(switch);
                ports.filter(move |port| port.peer == next)
            })
        });
        for port in hops.filter(|port| port.link.mark_at.is_some()) {
            let message = format!(
                "flow `{}` passes a port with `ecn`: a frame that the port marks differs between the captures at the flow's ends, so weir cannot match it",
                flow.declared
            );
            told.refuse(sink, port.link, message, HINT);
        }
    }
}

/// Refuses marking ports on switches where faults act: a packet must leave such a switch as it came.
pub(super) fn check_provable(sink: &mut Sink<'_>, scenario: &Scenario, injections: &[Injection]) {
    let mut told = Refusals::default();
    for injection in injections {
        let ports = scenario.topology.ports(&injection.switch);
        for port in ports.filter(|port| port.link.mark_at.is_some()) {
            let message = format!(
                "fault `{}` acts on switch `{}`, which has a port with `ecn`: the mark changes a frame, and the proof of the fault would take the change for an effect",
                injection.fault, injection.switch
            );
            told.refuse(sink, port.link, message, HINT);
        }
    }
}

const HINT: &str = "write `ecn` only for links of switches without faults, and only where no flow leaves the switch through that link";

/// Position of the marking threshold that was reported last: links that inherit the same threshold are reported only once.
#[derive(Default)]
struct Refusals(Option<crate::diagnostic::Span>);

impl Refusals {
    fn refuse(&mut self, sink: &mut Sink<'_>, link: &Link, message: String, hint: &str) {
        if self.0.replace(link.mark_span) != Some(link.mark_span) {
            sink.error(Code::Topology, link.mark_span, message)
                .hint(hint);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plans a file in which one switch marks towards `b`; `rest` is appended to the file.
    fn planned(rest: &str, target: &TargetModel) -> Result<(), String> {
        let text = format!(
            "weir: 1
name: marks
topology:
  switches: [near, far]
  hosts: [a, b, s]
  links: [[a, near], [near, far], {{ends: [b, far], ecn: 20}}, [s, far]]
{rest}"
        );
        let scenario = crate::load("s.yaml", &text).map_err(|error| error.to_string())?;
        let ports = port_marks(&scenario.topology, "far");
        assert_eq!(ports, [(2, 20)]);
        assert_eq!(port_marks(&scenario.topology, "near"), []);
        let planned = crate::plan(&scenario, target);
        planned.map(drop).map_err(|error| error.to_string())
    }

    fn refused(rest: &str, target: &TargetModel) -> String {
        let said = planned(rest, target).unwrap_err();
        assert!(said.contains("s.yaml:6:57: "), "{said}");
        said
    }

    #[test]
    fn what_captures_follow_does_not_pass_a_port_that_marks() {
        let target = &TargetModel::EMBEDDED;
        planned("", target).unwrap();
        planned(
            "flows: {back: {from: b, to: a}, beside: {from: a, to: s}}",
            target,
        )
        .unwrap();
        let said = refused("flows: {towards: {from: a, to: b}}", target);
        assert!(
            said.contains("flow `towards` passes a port with `ecn`"),
            "{said}"
        );
    }

    #[test]
    fn a_switch_with_faults_does_not_mark() {
        let faults = |place: &str| {
            format!(
                "flows: {{beside: {{from: a, to: s}}}}\nfaults: [{{id: gone, flows: beside, where: {place}, effect: drop}}]"
            )
        };
        planned(&faults("near"), &TargetModel::EMBEDDED).unwrap();
        let said = refused(&faults("far"), &TargetModel::EMBEDDED);
        assert!(
            said.contains("fault `gone` acts on switch `far`, which has a port with `ecn`"),
            "{said}"
        );
    }

    #[test]
    fn other_targets_mark_nothing() {
        let said = refused("", &TargetModel::SIMPLE_SWITCH_GRPC);
        assert!(
            said.contains("this target cannot mark packets (ECN)"),
            "{said}"
        );
    }
}
