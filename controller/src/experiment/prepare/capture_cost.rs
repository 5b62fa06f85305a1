//! Computes for `weir plan` which ports a run will capture, and how much memory the captures take. Reads only the page size.

use std::fmt;

use serde::Serialize;
use testbeds::capture::{LinkSize, page_bytes, ring_bytes};

use super::recorded::{Reasons, Record, Recorded, recorded};
use crate::experiment::Planned;

/// Maximum number of faults, triggers or flows that a line of the text names.
const MOST_NAMES: usize = 4;

/// The ports that a run of a scenario captures, and the memory of their capture rings.
#[derive(Debug, Serialize)]
pub struct Captures {
    /// The command that captures the ports: `weir run` or `weir between`.
    command: &'static str,
    /// Memory of all capture rings together, in bytes.
    ring_bytes: u64,
    /// The captured ports, sorted by switch name and port number.
    ports: Vec<CapturedPort>,
}

/// A port that a run captures.
#[derive(Debug, Serialize)]
struct CapturedPort {
    #[serde(flatten)]
    recorded: Recorded,
    /// Memory of the port's capture ring in bytes.
    ring_bytes: u64,
}

impl Captures {
    /// Lists the captures of `weir run`, or of `weir between` if the topology is a wire.
    pub fn from_planned(planned: &Planned) -> Captures {
        let topology = &planned.scenario.topology;
        let (command, record) = match topology.wire {
            true => ("weir between", Record::for_between(&planned.scenario)),
            false => ("weir run", Record::for_run(&planned.scenario)),
        };
        let recorded = recorded(planned, record);
        let link = |of: &Recorded| {
            let mut ports = topology.ports(&of.switch);
            let link = ports.find(|port| port.number == of.port)?.link;
            Some(LinkSize {
                // The rates of interfaces that exist are unknown.
                rate_bps: (!topology.wire).then_some(link.rate_bps),
                mtu: link.mtu,
            })
        };
        let links: Vec<LinkSize> = recorded.iter().filter_map(link).collect();
        let rings = ring_bytes(&links, page_bytes());
        Captures {
            command,
            ring_bytes: rings.iter().sum(),
            ports: recorded
                .into_iter()
                .zip(rings)
                .map(|(recorded, ring_bytes)| CapturedPort {
                    recorded,
                    ring_bytes,
                })
                .collect(),
        }
    }
}

impl fmt::Display for Captures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (command, rings) = (self.command, mebibytes(self.ring_bytes));
        match self.ports.len() {
            0 => return writeln!(f, "captures of `{command}`: none is needed"),
            1 => writeln!(f, "captures of `{command}`: 1 port, {rings} of rings")?,
            count => writeln!(
                f,
                "captures of `{command}`: {count} ports, {rings} of rings"
            )?,
        }
        // Ports of a switch with the same reason are one line.
        let mut lines: Vec<(&str, String, Vec<&CapturedPort>)> = Vec::new();
        for port in &self.ports {
            let of = &port.recorded;
            let reason = reason(&of.reasons);
            let known = lines
                .iter_mut()
                .find(|line| line.0 == of.switch && line.1 == reason);
            match known {
                Some((.., ports)) => ports.push(port),
                None => lines.push((&of.switch, reason, vec![port])),
            }
        }
        for (switch, reason, ports) in lines {
            let numbers: Vec<String> = ports
                .iter()
                .map(|port| port.recorded.port.to_string())
                .collect();
            let word = if numbers.len() == 1 { "port" } else { "ports" };
            let rings = mebibytes(ports.iter().map(|port| port.ring_bytes).sum());
            let numbers = numbers.join(", ");
            writeln!(f, "  {switch} {word} {numbers}: {rings}; {reason}")?;
        }
        Ok(())
    }
}

/// Formats a size in bytes: `64.0 MiB`.
fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// Describes why a port is captured: to prove faults, otherwise to prove triggers, otherwise to count frames of flows.
fn reason(reasons: &Reasons) -> String {
    let Reasons {
        faults,
        triggers,
        restarts,
        flows,
    } = reasons;
    let acting = faults.iter().chain(restarts);
    let acting: Vec<&str> = acting.map(String::as_str).collect();
    if !acting.is_empty() {
        return format!("for the proof of {}", names("fault", &acting));
    }
    if !triggers.is_empty() {
        let triggers: Vec<&str> = triggers.iter().map(String::as_str).collect();
        return format!("for the proof of {}", names("trigger", &triggers));
    }
    let flows: Vec<&str> = flows.iter().map(String::as_str).collect();
    format!("for the counts of {}", names("flow", &flows))
}

/// Formats names with their noun: `fault a`, `faults a, b`, `faults a, b, c, d and 3 others`.
fn names(what: &str, names: &[&str]) -> String {
    let (first, others) = names.split_at(names.len().min(MOST_NAMES));
    let plural = if names.len() == 1 { "" } else { "s" };
    let first = first.join(", ");
    match others.len() {
        0 => format!("{what}{plural} {first}"),
        1 => format!("{what}{plural} {first} and 1 other"),
        count => format!("{what}{plural} {first} and {count} others"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Kind;

    fn captures(text: &str) -> Captures {
        let scenario = scenario::load("t.yaml", text).unwrap_or_else(|why| panic!("{why}"));
        let planned = Planned::new(scenario, Kind::Embedded);
        Captures::from_planned(&planned.unwrap_or_else(|why| panic!("{why}")))
    }

    const NEAR_AND_FAR: &str = "weir: 1
name: t
topology:
  switches: [near, far]
  hosts: [a, b]
  links:
    - {ends: [a, near], rate: 100Mbit/s}
    - {ends: [near, far]}
    - {ends: [far, b], rate: 1Mbit/s}
";

    #[test]
    fn each_reason_is_a_line_with_its_ports_and_their_memory() {
        let text = format!(
            "{NEAR_AND_FAR}flows: {{f: {{from: a, to: b, filter: udp}}}}\n\
             faults: [{{id: lost, flows: f, effect: drop, where: near}}]\n"
        );
        let captures = captures(&text);
        assert_eq!(
            captures.to_string(),
            "captures of `weir run`: 3 ports, 80.1 MiB of rings\n  \
               far port 2: 1.0 MiB; for the counts of flow f\n  \
               near ports 1, 2: 79.1 MiB; for the proof of fault lost\n"
        );
        let json = serde_json::to_value(&captures).expect("JSON");
        assert_eq!(json["ports"][0]["switch"], "far");
        assert_eq!(json["ports"][0]["flows"][0], "f");
        assert_eq!(json["ports"][0]["ring_bytes"], 1 << 20);
        assert_eq!(json["ports"][1]["faults"][0], "lost");
    }

    #[test]
    fn a_scenario_of_which_nothing_is_asked_needs_no_captures() {
        let nothing = "captures of `weir run`: none is needed\n";
        assert_eq!(captures(NEAR_AND_FAR).to_string(), nothing);
        let wire = "weir: 1\nname: t\ntopology: {wire: [left, right]}\n";
        let nothing = "captures of `weir between`: none is needed\n";
        assert_eq!(captures(wire).to_string(), nothing);
    }

    #[test]
    fn many_names_are_counted() {
        assert_eq!(names("flow", &["a"]), "flow a");
        assert_eq!(names("flow", &["a", "b", "c", "d"]), "flows a, b, c, d");
        let many = ["a", "b", "c", "d", "e", "f"];
        assert_eq!(names("flow", &many[..5]), "flows a, b, c, d and 1 other");
        assert_eq!(names("flow", &many), "flows a, b, c, d and 2 others");
    }
}
