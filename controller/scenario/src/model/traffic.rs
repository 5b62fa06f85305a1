//! Derives from a workload which packets it may send, to find faults whose flows never have a packet.

use parser_gen::Filter;

use crate::model::overlap;
use crate::model::protocols::Protocols;
use crate::model::topology::Host;
use crate::model::workload::{Redis, Workload};
use crate::model::{Fault, Flow, Scenario};

/// The reason why the workload sends no packet of the fault's flows, for users; `None` if it may send some.
pub(crate) fn no_packets(scenario: &Scenario, fault: &Fault) -> Option<String> {
    let mut flows = fault.flows.iter().map(|index| &scenario.flows[*index]);
    let first = flows.next()?;
    let why = no_packet_of(scenario, first)?;
    flows
        .all(|flow| no_packet_of(scenario, flow).is_some())
        .then_some(why)
}

fn no_packet_of(scenario: &Scenario, flow: &Flow) -> Option<String> {
    if !scenario.probes.is_empty() || !scenario.protocols.own().is_empty() {
        // Probes send packets of their own, and a user's protocol may parse a service's port in an unknown way.
        return None;
    }
    let streams = match scenario.workload.as_ref()? {
        Workload::Redis(redis) => redis_streams(scenario, redis),
        Workload::Training(training) => {
            let workers = training.workers.iter();
            workers
                .flat_map(|worker| {
                    let both = [(worker, &training.server), (&training.server, worker)];
                    both.map(|(from, to)| WorkloadStream::new(scenario, from, to, "agg", &[]))
                })
                .flatten()
                .collect()
        }
        // The traffic of these workloads is unknown.
        Workload::Commands(_) | Workload::Idle { .. } => return None,
    };
    let passes = |stream: &&WorkloadStream| stream.may_pass(&scenario.protocols, &flow.filter);
    if streams
        .iter()
        .filter(passes)
        .any(|stream| stream.crosses_a_switch)
    {
        return None;
    }
    if let Some(local) = streams.iter().find(passes) {
        return Some(format!(
            "packets of flow `{}` stay on host `{}` and cross no switch",
            flow.name, local.host
        ));
    }
    let unused = match &scenario.workload {
        Some(Workload::Redis(redis)) => format!(
            "the workload is Redis between port {} of `{}` and its clients{}",
            redis.port,
            redis.server,
            if streams.iter().any(|stream| stream.has("redis")) {
                ""
            } else {
                "; filters read `redis.` fields only at the port that protocol `redis` declares"
            }
        ),
        _ => "the workload is a training, which only has packets between its workers and their server".to_owned(),
    };
    Some(format!(
        "no packet of the workload belongs to flow `{}`: {unused}",
        flow.name
    ))
}

/// The packets of a workload from one host to another, as far as their fields are known.
struct WorkloadStream {
    host: String,
    crosses_a_switch: bool,
    fields: Vec<(&'static str, u128)>,
    /// Names of protocols that the packets certainly do not have.
    absent: Vec<String>,
}

impl WorkloadStream {
    /// The packets between two hosts, given by name; `carries` is their innermost protocol. `None` if a host is unknown.
    fn new(
        scenario: &Scenario,
        from: &str,
        to: &str,
        carries: &str,
        ports: &[(&'static str, u16)],
    ) -> Option<WorkloadStream> {
        let (from, to) = (scenario.topology.host(from)?, scenario.topology.host(to)?);
        let address = |host: &Host| u128::from(host.ip.to_bits());
        let mut fields = vec![("ip.src", address(from)), ("ip.dst", address(to))];
        fields.extend(
            ports
                .iter()
                .map(|(field, port)| (*field, u128::from(*port))),
        );
        Some(WorkloadStream {
            host: from.name.clone(),
            crosses_a_switch: from.name != to.name,
            fields,
            absent: absent(&scenario.protocols, carries),
        })
    }

    fn has(&self, protocol: &str) -> bool {
        !self.absent.iter().any(|absent| absent == protocol)
    }

    fn may_pass(&self, protocols: &Protocols, filter: &Filter) -> bool {
        let absent: Vec<&str> = self.absent.iter().map(String::as_str).collect();
        overlap::Allowed::new(protocols, filter).allows(&self.fields, &absent)
    }
}

/// Names of the protocols that IPv4 packets with this innermost protocol cannot have. VLAN tags may be present or not.
fn absent(library: &Protocols, innermost: &str) -> Vec<String> {
    let mut present = library.implied_by(innermost);
    present.insert("ip");
    let protocols = library.protocols().iter();
    let names = protocols.map(|protocol| protocol.filter.as_str());
    let cannot_be_there = |name: &&str| {
        let is_apart = present.iter().any(|other| !library.coexist(name, other));
        let is_inside = library.implied_by(name).contains(innermost);
        !present.contains(name) && (is_apart || is_inside)
    };
    names.filter(cannot_be_there).map(str::to_owned).collect()
}

fn redis_streams(scenario: &Scenario, redis: &Redis) -> Vec<WorkloadStream> {
    let is_read = is_read_as_redis(&scenario.protocols, redis.port);
    let both = redis.clients.iter().flat_map(|client| {
        let asks = if is_read { "redis" } else { "tcp" };
        [
            WorkloadStream::new(
                scenario,
                &client.host,
                &redis.server,
                asks,
                &[("tcp.dport", redis.port)],
            ),
            WorkloadStream::new(
                scenario,
                &redis.server,
                &client.host,
                "tcp",
                &[("tcp.sport", redis.port)],
            ),
        ]
    });
    both.flatten().collect()
}

/// Whether the protocol library parses this TCP port as Redis; tests it with a frame.
fn is_read_as_redis(library: &Protocols, port: u16) -> bool {
    let payload = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
    let mut frame = vec![0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 0x08, 0x00];
    frame.extend([0x45, 0]);
    frame.extend((40 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend(40_000_u16.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 0xFF, 0xFF, 0, 0, 0, 0]);
    frame.extend(payload);
    let values = library.dissect(&frame, 1);
    Filter::parse(library, "redis").is_ok_and(|redis| redis.matches(&values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_packet_does_not_have_follows_from_the_library() {
        let library = Protocols::builtin();
        for (innermost, are_there) in [
            ("redis", &["eth", "ip", "tcp", "redis"][..]),
            ("tcp", &["eth", "ip", "tcp"]),
            ("agg", &["eth", "ip", "udp", "agg"]),
        ] {
            let absent = absent(&library, innermost);
            // Tags may be present or not; the rest is certain.
            for protocol in library.protocols() {
                let name = protocol.filter.as_str();
                let open = ["switch", "vlan", "inner_vlan"].contains(&name);
                let expected = !are_there.contains(&name) && !open;
                assert_eq!(
                    absent.iter().any(|a| a == name),
                    expected,
                    "{innermost} {name}"
                );
            }
        }
    }
}
