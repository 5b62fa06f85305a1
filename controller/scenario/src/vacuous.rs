//! Faults without hits, and the reasons: a run in which nothing happened proves nothing.
//!
//! The traffic of a workload is known before the run, so `check` warns of flows that no packet of it belongs to. After
//! the run, [`reason`] gives the reason why a fault did not hit.

use std::ops::RangeInclusive;

use parser_gen::Filter;

use crate::diagnostic::{Code, Sink};
use crate::model::{Fault, Flow, Scenario};
use crate::overlap;
use crate::protocols::Protocols;
use crate::selection::Selection;
use crate::topology::Host;
use crate::units::show_duration;
use crate::workload::{Redis, Workload};
use crate::yaml::{Kind, Node};

/// Warns of faults that cannot hit anything, according to the file.
pub(crate) fn check(sink: &mut Sink<'_>, scenario: &Scenario) {
    check_disruptions(sink, scenario);
    check_expectations(sink, scenario);
    for fault in &scenario.faults {
        if scenario.expects_nothing_of(&fault.id) {
            continue;
        }
        let why = start_after_end(scenario, &fault.epochs).or_else(|| no_packets(scenario, fault));
        if let Some(why) = why {
            let message = format!("fault `{}` will hit nothing: {why}", fault.id);
            sink.warning(Code::Suspicious, fault.span, message)
                .hint(format!(
                    "the run then fails, unless it expects `fault.{}.fired == 0`",
                    fault.id
                ));
        }
    }
}

/// Warns of expectations whose outcome is known before the run.
fn check_expectations(sink: &mut Sink<'_>, scenario: &Scenario) {
    for line in &scenario.expectations {
        let told = match line.foregone() {
            Some(true) => "holds",
            Some(false) => "fails",
            None => continue,
        };
        let message = format!("`{}` {told} whatever happens", line.text);
        sink.warning(Code::Suspicious, line.span, message)
            .hint("compare a metric with what it is to be, such as `fault.ID.fired == 3`");
    }
}

/// Warns of empty sections.
pub(crate) fn check_sections<'n>(
    sink: &mut Sink<'_>,
    sections: impl Iterator<Item = (&'static str, &'n Node)>,
) {
    for (name, node) in sections {
        let is_empty = match &node.kind {
            Kind::List(items) => items.is_empty(),
            Kind::Map(entries) => entries.is_empty(),
            _ => false,
        };
        if is_empty {
            let message = format!("`{name}` is empty, which has no effect");
            sink.warning(Code::Suspicious, node.span, message)
                .hint("leave it out");
        }
    }
}

/// Warns of disruptions that cannot take place.
fn check_disruptions(sink: &mut Sink<'_>, scenario: &Scenario) {
    for disruption in &scenario.disruptions {
        if scenario.expects_nothing_of(&disruption.id) {
            continue;
        }
        if let Some(why) = start_after_end(scenario, &disruption.epochs) {
            let message = format!("fault `{}` will not be carried out: {why}", disruption.id);
            sink.warning(Code::Suspicious, disruption.span, message);
        }
    }
}

/// The reason why a fault hit none of the packets that it met. `armed` says whether an epoch was in force.
#[must_use]
pub fn reason(scenario: &Scenario, fault: &Fault, met: u64, armed: impl Fn(u16) -> bool) -> String {
    if fault.selection == Selection::Never {
        return "its probability is 0".to_owned();
    }
    if !fault.epochs.iter().cloned().flatten().any(armed) {
        return too_late(scenario, &fault.epochs);
    }
    if met == 0 {
        return no_packets(scenario, fault)
            .or_else(|| {
                let trigger = &scenario.triggers.get(fault.when?)?.name;
                let why = format!("no packet of its flows came while trigger `{trigger}` was on");
                Some(why)
            })
            .unwrap_or_else(|| {
                let what = match fault.selection {
                    Selection::Psn(_) => {
                        "data packet of an RDMA connection (SEND, WRITE, answer to a READ)"
                    }
                    _ => "packet",
                };
                format!("no {what} of its flows came while it was armed")
            });
    }
    let packets = match met {
        1 => "the 1 packet".to_owned(),
        met => format!("the {met} packets"),
    };
    let drawn = |limit: u32| {
        let expected = met as f64 * (f64::from(limit) + 1.0) / 4_294_967_296.0;
        format!("none of {packets} that it met was drawn, where {expected:.2} are to be expected")
    };
    match &fault.selection {
        Selection::Counted(counted) => match (counted.first_ordinal(), &fault.keys) {
            (Some(n), Some(keys)) => format!(
                "it selects packet {n} of {} each, and of none of them it met as many: {met} in all",
                keys.of
            ),
            (Some(n), None) => format!("it selects packet {n} of a flow, and met {met} in all"),
            (None, _) => format!("it met {met}"),
        },
        Selection::Probability { limit } => drawn(*limit),
        Selection::Share(share) => format!(
            "it met {packets} of its flows, and their {} are not among the {share}",
            share.of
        ),
        Selection::Psn(psn) => format!(
            "it selects {psn} of each RDMA connection, and none of {packets} of data that it met stands there"
        ),
        Selection::GilbertElliott(_) => format!("its channel lost none of {packets} that it met"),
        Selection::Always | Selection::Never => format!("it met {met}"),
    }
}

/// The reason why a fault of these epochs did not act: none of them was in force.
#[must_use]
pub fn too_late(scenario: &Scenario, epochs: &[RangeInclusive<u16>]) -> String {
    if let Some(condition) = awaited(scenario, epochs) {
        return format!("the run was over before its step began, which waits for `{condition}`");
    }
    let first = start_ns(scenario, epochs).map_or_else(String::new, |at_ns| {
        format!(", {} after the start", show_duration(at_ns))
    });
    format!("the run was over before its step began{first}")
}

/// The condition that a fault's first step waits for, or the last condition before it.
fn awaited<'s>(scenario: &'s Scenario, epochs: &[RangeInclusive<u16>]) -> Option<&'s str> {
    let first = *epochs.first()?.start();
    let mut before = scenario.epochs.iter().rev();
    before.find_map(|epoch| epoch.on.as_deref().filter(|_| epoch.epoch <= first))
}

fn start_ns(scenario: &Scenario, epochs: &[RangeInclusive<u16>]) -> Option<u64> {
    let first = *epochs.first()?.start();
    scenario.begins_ns(first)
}

fn start_after_end(scenario: &Scenario, epochs: &[RangeInclusive<u16>]) -> Option<String> {
    let at_ns = start_ns(scenario, epochs)?;
    let (end_ns, what) = match scenario.workload {
        Some(Workload::Idle { for_ns }) => (for_ns, "the workload ends after"),
        // The file does not determine how long the machines of a wire stay connected.
        _ if scenario.topology.wire && scenario.limits.time_span.is_none() => return None,
        _ => (scenario.limits.time_ns, "the run may take"),
    };
    (at_ns >= end_ns).then(|| {
        format!(
            "its step begins {} after the start, and {what} {}",
            show_duration(at_ns),
            show_duration(end_ns)
        )
    })
}

/// The reason why the workload sends no packet of a fault's flows; `None` if it may send some.
fn no_packets(scenario: &Scenario, fault: &Fault) -> Option<String> {
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
                    both.map(|(from, to)| Stream::new(scenario, from, to, "agg", &[]))
                })
                .flatten()
                .collect()
        }
        // The traffic of these workloads is unknown.
        Workload::Commands(_) | Workload::Idle { .. } => return None,
    };
    let passes = |stream: &&Stream| stream.may_pass(&scenario.protocols, &flow.filter);
    if streams
        .iter()
        .filter(passes)
        .any(|stream| stream.crosses_a_switch)
    {
        return None;
    }
    if let Some(local) = streams.iter().find(passes) {
        return Some(format!(
            "packets of flow `{}` stay on host `{}`, and cross no switch",
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
                "; a `redis.` field is only read at the port that the protocol has in filters"
            }
        ),
        _ => "the workload is the training of its workers with their server".to_owned(),
    };
    Some(format!(
        "no packet of the workload belongs to flow `{}`: {unused}",
        flow.name
    ))
}

/// Packets of a workload from one host to another.
struct Stream {
    host: String,
    crosses_a_switch: bool,
    fields: Vec<(&'static str, u128)>,
    /// Protocols that the packets do not have.
    absent: Vec<String>,
}

impl Stream {
    /// Creates a stream; `carries` is the innermost protocol of its packets.
    fn new(
        scenario: &Scenario,
        from: &str,
        to: &str,
        carries: &str,
        ports: &[(&'static str, u16)],
    ) -> Option<Stream> {
        let (from, to) = (scenario.topology.host(from)?, scenario.topology.host(to)?);
        let address = |host: &Host| u128::from(host.ip.to_bits());
        let mut fields = vec![("ip.src", address(from)), ("ip.dst", address(to))];
        fields.extend(
            ports
                .iter()
                .map(|(field, port)| (*field, u128::from(*port))),
        );
        Some(Stream {
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
        overlap::Allowed::of(protocols, filter).allows(&self.fields, &absent)
    }
}

/// The protocols that IPv4 packets with this innermost protocol do not have. Tags below IP may be present or not.
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

fn redis_streams(scenario: &Scenario, redis: &Redis) -> Vec<Stream> {
    let is_read = is_read_as_redis(&scenario.protocols, redis.port);
    let both = redis.clients.iter().flat_map(|client| {
        let asks = if is_read { "redis" } else { "tcp" };
        [
            Stream::new(
                scenario,
                &client.host,
                &redis.server,
                asks,
                &[("tcp.dport", redis.port)],
            ),
            Stream::new(
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

/// Whether the protocol library parses a TCP port as Redis; tested with a frame.
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
