//! Plans several paths to a host: the switch's table entries, and the refusal of targets and faults that do not support them.

use p4lang::runtime::{FieldMatch, Match, TableEntry};

use parser_gen::engine::Action;

use super::TargetModel;
use super::runtime::call;
use crate::diagnostic::{Code, Sink};
use crate::model::Scenario;
use crate::model::effect::Effect;
use crate::model::routing::{ToHost, Ways};
use crate::plan::names::forward;

/// The P4 fields that determine a packet's path: Ethernet type, Ethernet source, and the flow's five-tuple.
const STEERING: [(&str, &str); 11] = [
    ("hdr.ethernet", "src"),
    ("hdr.ethernet", "ether_type"),
    ("hdr.ipv4", "ihl"),
    ("hdr.ipv4", "frag_offset"),
    ("hdr.ipv4", "protocol"),
    ("hdr.ipv4", "src"),
    ("hdr.ipv4", "dst"),
    ("hdr.tcp", "src_port"),
    ("hdr.tcp", "dst_port"),
    ("hdr.udp", "src_port"),
    ("hdr.udp", "dst_port"),
];

/// Bytes of a frame up to the end of the TCP header without options: Ethernet, IPv4, TCP.
const WITH_PORTS: u16 = 54;

/// Refuses targets whose program supports only one path. Also refuses faults that change a field on which the path depends: a
/// changed packet could leave the planned paths of its flow.
pub(super) fn check(sink: &mut Sink<'_>, scenario: &Scenario, target: &TargetModel) {
    let Some(ways) = &scenario.ways else {
        return;
    };
    let span = scenario.topology.routing_span;
    if !target.has_several_ways {
        sink.error(
            Code::Topology,
            span,
            "this target's program supports only one path to each host".to_owned(),
        )
        .hint("write `routing: shortest`, or use the embedded switch or BMv2, which support several paths");
        return;
    }
    for fault in &scenario.faults {
        if let Effect::Truncate(cut) = &fault.effect
            && cut.to_bytes < WITH_PORTS
        {
            let message = format!(
                "fault `{}` cuts packets to {} bytes, which removes the TCP or UDP ports by which later switches choose a path",
                fault.id, cut.to_bytes
            );
            sink.error(Code::Effect, fault.span, message).hint(format!(
                "write {WITH_PORTS} bytes or more, which keeps the headers of Ethernet, IPv4 and TCP"
            ));
        }
        let Action::Rewrite(rewrite) = fault.effect.action() else {
            continue;
        };
        if let Some((header, field)) = rewrite.fields().find(|field| STEERING.contains(field)) {
            let header = header.trim_start_matches("hdr.");
            let message = format!(
                "fault `{}` changes `{field}` of {header}, by which switches choose between paths",
                fault.id
            );
            sink.error(Code::Effect, fault.span, message)
                .hint("write `routing: shortest`: all packets then take one path");
        }
    }
    for switch in &scenario.topology.switches {
        let most = forward::MAX_NEXT_HOPS;
        let entries = ways.told(switch).next_hops.len();
        if entries > most {
            let message = format!(
                "switch `{switch}` would need {entries} entries for next hops; it has {most}"
            );
            sink.error(Code::Capacity, span, message);
        }
    }
}

/// The table entries for every host, and for the lists of ports to which the hosts' entries refer.
pub(super) fn entries(scenario: &Scenario, ways: &Ways, switch: &str) -> Vec<TableEntry> {
    let told = ways.told(switch);
    let mut entries = Vec::new();
    let hosts = &scenario.topology.hosts;
    for (host, way) in hosts.iter().zip(&told.hosts) {
        let (action, params) = match *way {
            ToHost::Nowhere => continue,
            ToHost::Port(port) => (forward::UNICAST, vec![(forward::PORT, port)]),
            ToHost::Spread {
                port,
                list,
                ways,
                turn,
            } => {
                let params = vec![
                    (forward::PORT, port),
                    (forward::LIST, list.into()),
                    (forward::NUM_WAYS, ways.into()),
                    (forward::TURN, turn.into()),
                ];
                (forward::SPREAD, params)
            }
            ToHost::Between { port, target } => {
                let params = vec![(forward::PORT, port), (forward::TARGET, target.into())];
                (forward::BETWEEN, params)
            }
        };
        let key = vec![exact(forward::KEY, host.mac.value())];
        entries.push(entry(forward::TABLE, key, action, &params));
    }
    for (host, origin) in hosts.iter().zip(&told.origins) {
        let key = vec![exact(forward::KEY_SOURCE, host.mac.value())];
        let params = [(forward::ORIGIN, u32::from(*origin))];
        entries.push(entry(forward::ORIGINS, key, forward::FROM, &params));
    }
    for ((origin, target), (list, ways)) in &told.pairs {
        let key = vec![
            exact(forward::KEY_ORIGIN, u128::from(*origin)),
            exact(forward::KEY_TARGET, u128::from(*target)),
        ];
        let params = [
            (forward::LIST, u32::from(*list)),
            (forward::NUM_WAYS, u32::from(*ways)),
        ];
        entries.push(entry(forward::PAIRS, key, forward::AMONG, &params));
    }
    for ((list, way), port) in &told.next_hops {
        let key = vec![
            exact(forward::KEY_LIST, u128::from(*list)),
            exact(forward::KEY_WAY, u128::from(*way)),
        ];
        let params = [(forward::PORT, *port)];
        entries.push(entry(forward::NEXT_HOPS, key, forward::UNICAST, &params));
    }
    entries
}

fn exact(field: &str, value: u128) -> FieldMatch {
    FieldMatch {
        field: field.to_owned(),
        value: Match::exact(value),
    }
}

fn entry(table: &str, key: Vec<FieldMatch>, action: &str, params: &[(&str, u32)]) -> TableEntry {
    let params: Vec<(&str, u128)> = params
        .iter()
        .map(|(name, value)| (*name, u128::from(*value)))
        .collect();
    TableEntry {
        table: table.to_owned(),
        key,
        priority: 0,
        action: call(action.to_owned(), &params),
    }
}
