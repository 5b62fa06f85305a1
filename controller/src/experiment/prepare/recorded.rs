//! Determines which ports of the switches a run records, and why; reads nothing but the plan.
//!
//! A recorded port costs a ring of memory and processor time for each frame, so a run records only what its verdict or its
//! report needs. A run without faults, restarts and flows records nothing.

use std::collections::{BTreeMap, BTreeSet};

use scenario::model::disruption::Subject;
use scenario::model::overlap::Allowed;
use scenario::model::{Captures, Flow, Path, Scenario};
use serde::Serialize;

use crate::experiment::Planned;

/// Which ports of the switches a run records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// The ports that the verdict and the report of `weir run` need.
    Asked,
    /// Only the ports that the verdict on faults needs: for `weir demo`, and for `weir between`, which may last for days.
    Faults,
    /// All ports of all switches: `captures: all`.
    Everything,
}

impl Record {
    /// Which ports `weir between` records for a scenario.
    pub fn for_between(scenario: &Scenario) -> Record {
        match scenario.captures {
            Captures::All => Record::Everything,
            Captures::Hits | Captures::None => Record::Faults,
        }
    }

    /// Which ports `weir run` records for a scenario.
    pub fn for_run(scenario: &Scenario) -> Record {
        match scenario.captures {
            Captures::All => Record::Everything,
            Captures::Hits | Captures::None => Record::Asked,
        }
    }
}

/// A port that a run records, with the reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recorded {
    /// Name of the port's switch.
    pub switch: String,
    /// Number of the port.
    pub port: u32,
    /// Why the port is recorded.
    #[serde(flatten)]
    pub reasons: Reasons,
}

/// Why a port is recorded; all lists are empty if only `captures: all` requests the port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Reasons {
    /// Names of the faults that act at the port's switch: all frames that entered and left the switch are needed to prove them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// Names of the triggers at the port's switch: to prove them, the judge replays the frames that they count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<String>,
    /// Names of the faults that restart the port's switch: they are proved if no frame leaves the switch while it is down.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub restarts: Vec<String>,
    /// Declared names of the flows whose frames enter or leave the network at the port.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<String>,
}

/// The ports that a run of a scenario records, sorted by switch name and port number.
pub fn recorded(planned: &Planned, record: Record) -> Vec<Recorded> {
    let scenario = &planned.scenario;
    let mut ports: BTreeMap<(String, u32), Reasons> = BTreeMap::new();
    for switch in &scenario.topology.switches {
        let whole = of_switch(planned, switch);
        if record != Record::Everything && whole == Reasons::default() {
            continue;
        }
        for port in scenario.topology.ports(switch) {
            ports.insert((switch.clone(), port.number), whole.clone());
        }
    }
    if record != Record::Faults {
        for flow in &scenario.flows {
            for end in ends(scenario, flow) {
                add(&mut ports.entry(end).or_default().flows, &flow.declared);
            }
        }
    }
    let ports = ports.into_iter();
    ports
        .map(|((switch, port), reasons)| Recorded {
            switch,
            port,
            reasons,
        })
        .collect()
}

/// The reasons to record all ports of this switch; all lists are empty if there is none.
fn of_switch(planned: &Planned, name: &str) -> Reasons {
    let mut reasons = Reasons::default();
    if let Some(switch) = planned.plan.switch(name) {
        for unit in &switch.units {
            add(&mut reasons.faults, &unit.fault);
        }
        for trigger in &switch.triggers {
            add(&mut reasons.triggers, &trigger.name);
        }
    }
    for disruption in &planned.scenario.disruptions {
        if disruption.does.subject() == Subject::Switch(name) {
            add(&mut reasons.restarts, &disruption.id);
        }
    }
    reasons
}

/// The ports (switch and number) at which frames of a flow enter and leave the network; empty if a switch sums the frames, as
/// the judge does not count such a flow.
///
/// All flows are in the report anyway, so an expectation on a flow, or its protection, needs no further port.
fn ends(scenario: &Scenario, flow: &Flow) -> Vec<(String, u32)> {
    let mut paths = flow.paths.iter();
    if paths.any(|path| path.switches.iter().any(|switch| scenario.sums(switch))) {
        return Vec::new();
    }
    let topology = &scenario.topology;
    let hosts: BTreeSet<&str> = match may_leave_anywhere(scenario, flow) {
        true => topology.hosts.iter().map(|host| &*host.name).collect(),
        false => ends_of(&flow.paths).collect(),
    };
    let mut ends = Vec::new();
    for switch in &topology.switches {
        let ports = topology.ports(switch);
        let ports = ports.filter(|port| hosts.contains(port.peer));
        ends.extend(ports.map(|port| (switch.clone(), port.number)));
    }
    ends
}

fn ends_of(paths: &[Path]) -> impl Iterator<Item = &str> {
    let ends = paths.iter().flat_map(|path| [&path.from, &path.to]);
    ends.map(String::as_str)
}

/// Whether frames of a flow may leave the network to hosts that are not ends of the flow's paths, as multicast and broadcast
/// frames do. The judge counts such a frame as received if it leaves to any host.
///
/// If the flow's filter requires the IPv4 address of one host as destination, frames leave only to this host.
fn may_leave_anywhere(scenario: &Scenario, flow: &Flow) -> bool {
    // The judge does not count such frames of these flows.
    if scenario.topology.wire || flow.on.is_some() {
        return false;
    }
    let allowed = Allowed::new(&scenario.protocols, &flow.filter);
    let only = allowed.only(&[], "ip.dst");
    let mut hosts = scenario.topology.hosts.iter();
    let is_one = |address| hosts.any(|host| u128::from(host.ip.to_bits()) == address);
    !only.is_some_and(is_one)
}

/// Adds a name to a list that does not contain it.
fn add(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|other| other == name) {
        names.push(name.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Kind;

    /// `a`, `b` – left – middle – right – `c`, `d`.
    const CHAIN: &str = "weir: 1
name: chain
topology:
  switches: [left, middle, right]
  hosts: [a, b, c, d]
  links:
    - {ends: [a, left]}
    - {ends: [b, left]}
    - {ends: [left, middle]}
    - {ends: [middle, right]}
    - {ends: [right, c]}
    - {ends: [right, d]}
";

    fn planned(rest: &str) -> Planned {
        let text = format!("{CHAIN}{rest}");
        let scenario = scenario::load("t.yaml", &text).unwrap_or_else(|why| panic!("{why}"));
        Planned::new(scenario, Kind::Embedded).unwrap_or_else(|why| panic!("{why}"))
    }

    /// Each port and the names in its reasons.
    fn asked(rest: &str, record: Record) -> Vec<String> {
        let ports = recorded(&planned(rest), record).into_iter();
        let shown = ports.map(
            |Recorded {
                 switch,
                 port,
                 reasons,
             }| {
                let Reasons {
                    faults,
                    triggers,
                    restarts,
                    flows,
                } = reasons;
                let names = [faults, triggers, restarts, flows].map(|names| names.join(" "));
                format!("{switch} {port}: {}", names.join("|"))
            },
        );
        shown.collect()
    }

    #[test]
    fn a_run_without_faults_and_flows_records_nothing() {
        let idle = "workload: {idle: {for: 1s}}\n";
        assert_eq!(asked(idle, Record::Asked), [""; 0]);
        assert_eq!(asked(idle, Record::Faults), [""; 0]);
        let all = asked(idle, Record::Everything);
        assert_eq!(all.len(), 8);
        assert_eq!(all[0], "left 1: |||");
    }

    #[test]
    fn an_expectation_of_a_command_records_nothing() {
        let command = "workload: {commands: [{name: hello, host: a, run: 'true'}]}\n\
            expect: [command.hello.exit == 0, switch.left.received >= 0]\n";
        assert_eq!(asked(command, Record::Asked), [""; 0]);
    }

    #[test]
    fn all_ports_of_a_switch_are_recorded_where_a_fault_acts_and_none_of_the_others() {
        let fault = "flows: {f: {from: a, to: c, filter: udp}}\n\
            faults: [{id: lost, flows: f, effect: drop, where: middle}]\n";
        let middle = ["middle 1: lost|||", "middle 2: lost|||"];
        assert_eq!(asked(fault, Record::Faults), middle);
        // The ends of the flow are recorded as well.
        let ends = ["left 1: |||f", middle[0], middle[1], "right 2: |||f"];
        assert_eq!(asked(fault, Record::Asked), ends);
    }

    #[test]
    fn a_flow_across_three_switches_is_recorded_at_its_two_ends() {
        let flow = "flows: {f: {from: a, to: c, filter: udp}}\n";
        let ends = ["left 1: |||f", "right 2: |||f"];
        assert_eq!(asked(flow, Record::Asked), ends);
        assert_eq!(asked(flow, Record::Faults), [""; 0]);
        for more in ["protect: [f]\n", "expect: [flow.f.lost == 0]\n"] {
            assert_eq!(
                asked(&format!("{flow}{more}"), Record::Asked),
                ends,
                "{more}"
            );
        }
    }

    #[test]
    fn a_flow_of_several_pairs_is_recorded_at_all_of_their_ends() {
        let flow = "flows: {f: {from: [a, b], to: d, filter: udp}}\n";
        let ends = ["left 1: |||f", "left 2: |||f", "right 3: |||f"];
        assert_eq!(asked(flow, Record::Asked), ends);
    }

    /// A frame that `a` sends to all hosts counts as received if any host gets it.
    #[test]
    fn a_flow_that_may_go_to_all_hosts_is_recorded_at_all_hosts() {
        let hosts = ["left 1", "left 2", "right 2", "right 3"].map(|port| format!("{port}: |||f"));
        for filter in [
            "eth.type == 0x0806",
            "ip.src == 10.0.0.1",
            "ip.dst in {10.0.0.3, 10.0.0.4}",
        ] {
            let flow = format!("flows: {{f: {{filter: \"{filter}\"}}}}\n");
            assert_eq!(asked(&flow, Record::Asked), hosts, "{filter}");
        }
    }

    #[test]
    fn all_ports_of_a_switch_that_restarts_are_recorded() {
        let restart = "workload: {idle: {for: 9s}}\n\
            timeline: [{name: down, at: 1s, for: 1s}]\n\
            faults: [{id: reboot, effect: {restart: middle}, during: down}]\n";
        let middle = ["middle 1: ||reboot|", "middle 2: ||reboot|"];
        assert_eq!(asked(restart, Record::Asked), middle);
        assert_eq!(asked(restart, Record::Faults), middle);
    }

    /// The judge counts the same flows of every shipped scenario as it does with all ports recorded.
    #[test]
    #[allow(
        clippy::disallowed_methods,
        reason = "the scenarios are a folder of files"
    )]
    fn shipped_scenarios_have_their_flows_counted() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = folder.join("../testbeds/scenarios");
        let mut flows = 0;
        for entry in std::fs::read_dir(&folder).expect("scenarios") {
            let path = entry.expect("a file").path();
            if path.extension().is_none_or(|extension| extension != "yaml") {
                continue;
            }
            let file = path.display().to_string();
            let text = std::fs::read_to_string(&path).expect("a scenario");
            let given = scenario::Given::named(&file, &text, |name| {
                let file = folder.join(name);
                let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
                Ok((file.display().to_string(), text))
            });
            let scenario = scenario::load_with(&file, &text, &given);
            let scenario = scenario.unwrap_or_else(|why| panic!("{why}"));
            let planned =
                Planned::new(scenario, Kind::Embedded).unwrap_or_else(|why| panic!("{why}"));
            let topology = &planned.scenario.topology;
            let recorded = recorded(&planned, Record::Asked);
            let is_recorded = |switch: &str, host: &str| {
                let port = topology.next_hop(switch, host).map(|port| port.number);
                let mut recorded = recorded.iter();
                recorded.any(|of| of.switch == switch && Some(of.port) == port)
            };
            for flow in &planned.scenario.flows {
                let mut paths = flow.paths.iter();
                let sums = |switch: &String| planned.scenario.sums(switch);
                if paths.any(|path| path.switches.iter().any(sums)) {
                    continue;
                }
                flows += 1;
                for path in &flow.paths {
                    let ends = path.switches.first().zip(path.switches.last());
                    let (first, last) = ends.expect("a path has switches");
                    assert!(is_recorded(first, &path.from), "{file}: {}", flow.name);
                    assert!(is_recorded(last, &path.to), "{file}: {}", flow.name);
                }
            }
        }
        assert!(flows > 50, "{flows} flows");
    }
}
