//! The blast radius of a plan: an upper bound on what its faults may hit, and the check against the limits in the file.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use super::Injection;
use crate::diagnostic::{Code, Sink, few_names};
use crate::model::decision::probability;
use crate::model::disruption::{Disruption, Subject};
use crate::model::selection::{Counted, Selection};
use crate::model::{Fault, Flow, Scenario};

/// The flows, hosts and links that one fault may hit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reach {
    /// The fault's name.
    pub fault: String,
    /// Names of the flows that the fault acts on.
    pub flows: Vec<String>,
    /// Hosts that send or receive these flows.
    pub hosts: Vec<String>,
    /// Each link on the paths of these flows, as `a-sw`.
    pub links: Vec<String>,
    /// How many packets of each flow the fault may hit.
    #[serde(flatten)]
    pub extent: Extent,
    /// If `extent` counts packets per key of a flow: plural noun for the keys (`connections`); otherwise `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per: Option<String>,
}

/// How many packets of a flow a fault may hit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// At most this number of packets of the flow.
    Packets(u64),
    /// This fraction (0 to 1) of the flow's packets, however many come; an average if packets or keys are selected at random.
    Share(f64),
    /// The named command of the workload; the fault hits no packets.
    Command(String),
    /// The named switch as a whole; the fault hits no packets.
    Switch(String),
}

impl Extent {
    fn from_selection(selection: &Selection) -> Extent {
        match selection {
            Selection::Never => Extent::Packets(0),
            Selection::Always => Extent::Share(1.0),
            Selection::Counted(counted) => Extent::from_counted(counted),
            Selection::Probability { limit } => Extent::Share(probability(*limit)),
            Selection::Share(share) => Extent::Share(probability(share.limit)),
            Selection::Psn(psn) => psn.packets().map_or(Extent::Share(1.0), Extent::Packets),
            Selection::GilbertElliott(chain) => {
                let [to_bad, to_good, bad] =
                    [chain.to_bad, chain.to_good, chain.loss_bad].map(probability);
                let good = chain.loss_good.map_or(0.0, probability);
                let is_bad = to_bad / (to_bad + to_good);
                Extent::Share(is_bad * bad + (1.0 - is_bad) * good)
            }
        }
    }

    fn from_counted(counted: &Counted) -> Extent {
        let fires = counted.fires().iter();
        let packets = fires
            .map(|range| u64::from(*range.end()) - u64::from(*range.start()) + 1)
            .sum();
        let last = counted.last();
        let is_open = counted.fires().iter().any(|range| *range.end() == last);
        match (last, is_open) {
            (u32::MAX, true) => Extent::Share(1.0),
            (u32::MAX, false) => Extent::Packets(packets),
            (last, _) => Extent::Share(packets as f64 / (f64::from(last) + 1.0)),
        }
    }
}

/// The reach of each fault that a plan injects, in declared order.
pub(super) fn reaches(scenario: &Scenario, injections: &[Injection]) -> Vec<Reach> {
    let faults = scenario.faults.iter();
    let reach = |fault: &Fault| {
        let here = injections.iter().filter(|point| point.fault == fault.id);
        let (mut flows, mut hosts, mut links) = Default::default();
        for point in here {
            let flow = scenario.flows.iter().find(|flow| flow.name == point.flow);
            let Some(flow) = flow else { continue };
            add(flow, &point.switch, &mut flows, &mut hosts, &mut links);
        }
        let extent = Extent::from_selection(&fault.selection);
        let keys = fault.keys.as_ref();
        let keys = keys.filter(|_| matches!(extent, Extent::Packets(_)));
        (!flows.is_empty()).then(|| Reach {
            per: keys.map(|keys| keys.one.clone()),
            fault: fault.id.clone(),
            flows: flows.into_iter().collect(),
            hosts: hosts.into_iter().collect(),
            links: links.into_iter().collect(),
            extent,
        })
    };
    let disruptions = scenario.disruptions.iter();
    let disrupted = disruptions.map(|disruption| disruption_reach(scenario, disruption));
    faults.filter_map(reach).chain(disrupted).collect()
}

/// The reach of a fault on a program or switch: the host that runs the program, or every flow that may cross the switch.
fn disruption_reach(scenario: &Scenario, disruption: &Disruption) -> Reach {
    let mut reach = Reach {
        fault: disruption.id.clone(),
        flows: Vec::new(),
        hosts: Vec::new(),
        links: Vec::new(),
        extent: Extent::Command(disruption.does.subject().name().to_owned()),
        per: None,
    };
    let Subject::Switch(switch) = disruption.does.subject() else {
        reach.hosts = disruption
            .host(scenario)
            .map(str::to_owned)
            .into_iter()
            .collect();
        return reach;
    };
    reach.extent = Extent::Switch(switch.to_owned());
    let topology = &scenario.topology;
    let mut hosts = BTreeSet::new();
    for to in &topology.hosts {
        let routes = topology.routes_to(&to.name);
        for from in topology.hosts.iter().filter(|from| from.name != to.name) {
            let crosses = match &scenario.ways {
                Some(ways) => {
                    let ways = ways.between(&from.name, &to.name);
                    ways.iter()
                        .any(|way| way.switches.iter().any(|on| on == switch))
                }
                None => {
                    let path = routes.path_from(&from.name);
                    path.is_some_and(|path| path.contains(&switch))
                }
            };
            if crosses {
                hosts.extend([from.name.clone(), to.name.clone()]);
            }
        }
    }
    reach.hosts = hosts.into_iter().collect();
    let links = topology.links.iter();
    let links = links.filter(|link| link.ends.iter().any(|end| end == switch));
    let links: BTreeSet<String> = links
        .map(|link| {
            let mut ends = [link.ends[0].as_str(), link.ends[1].as_str()];
            ends.sort_unstable();
            ends.join("-")
        })
        .collect();
    reach.links = links.into_iter().collect();
    reach
}

fn add(
    flow: &Flow,
    switch: &str,
    flows: &mut BTreeSet<String>,
    hosts: &mut BTreeSet<String>,
    links: &mut BTreeSet<String>,
) {
    flows.insert(flow.name.clone());
    let paths = flow.paths.iter();
    for path in paths.filter(|path| path.switches.iter().any(|on| on == switch)) {
        hosts.extend([path.from.clone(), path.to.clone()]);
        let nodes: Vec<&str> = path.nodes().collect();
        for link in nodes.windows(2) {
            // A link counts once for both directions.
            let mut ends = [link[0], link[1]];
            ends.sort_unstable();
            links.insert(ends.join("-"));
        }
    }
}

/// Refuses a plan whose faults reach further than the file allows.
pub(super) fn check(sink: &mut Sink<'_>, scenario: &Scenario, reaches: &[Reach]) {
    let Some(allowed) = &scenario.blast_radius else {
        return;
    };
    let span = |reach: &Reach| {
        let mut faults = scenario.faults.iter();
        let fault = faults.find(|fault| fault.id == reach.fault);
        let mut disruptions = scenario.disruptions.iter();
        let disruption = disruptions.find(|of| of.id == reach.fault);
        let spans = fault.map(|fault| fault.span);
        spans
            .or(disruption.map(|of| of.span))
            .unwrap_or(allowed.span)
    };
    for reach in reaches {
        if let Some(hosts) = &allowed.hosts {
            let is_allowed = |host: &&String| hosts.iter().any(|name| name.value == **host);
            let beyond: Vec<&str> = reach
                .hosts
                .iter()
                .filter(|host| !is_allowed(host))
                .map(String::as_str)
                .collect();
            if !beyond.is_empty() {
                let message = format!(
                    "fault `{}` reaches {}; `blast_radius.hosts` allows {}",
                    reach.fault,
                    few_names(beyond.iter().copied()),
                    few_names(hosts.iter().map(|host| host.value.as_str()))
                );
                let hint = match &reach.extent {
                    Extent::Command(_) | Extent::Switch(_) => {
                        "add hosts to `blast_radius.hosts`, or name another command or switch"
                    }
                    _ => {
                        "take hosts out of `from` and `to` of its flows, or add them to `blast_radius.hosts`"
                    }
                };
                sink.error(Code::BlastRadius, span(reach), message)
                    .hint(hint);
            }
        }
        if let (Some(most), Extent::Share(share)) = (&allowed.share, &reach.extent)
            && *share > most.value
        {
            let message = format!(
                "fault `{}` may hit {} of a flow; `blast_radius.share` allows {}",
                reach.fault,
                percent(*share),
                percent(most.value)
            );
            sink.error(Code::BlastRadius, span(reach), message)
                .hint("select fewer packets, or raise `blast_radius.share`");
        }
    }
    let flows: BTreeSet<&String> = reaches.iter().flat_map(|reach| &reach.flows).collect();
    if let Some(most) = &allowed.flows
        && flows.len() as u64 > most.value
    {
        let message = format!(
            "{} flows may be hit; `blast_radius.flows` allows {}",
            flows.len(),
            most.value
        );
        sink.error(Code::BlastRadius, most.span, message)
            .hint("a flow with several hosts in `from` or `to` counts once for each pair");
    }
}

fn percent(share: f64) -> String {
    let percent = (share * 1e8).round() / 1e6;
    format!("{percent}%")
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.fault)?;
        match &self.extent {
            Extent::Packets(packets) => match &self.per {
                Some(one) => write!(f, "{packets} packets of each {one}, of ")?,
                None => write!(f, "{packets} packets of each of ")?,
            },
            Extent::Share(share) => write!(f, "{} of ", percent(*share))?,
            Extent::Command(name) => write!(f, "command {name}")?,
            Extent::Switch(name) => write!(f, "switch {name}")?,
        }
        let list = |all: &[String]| match all.len() {
            0..=8 => all.join(", "),
            many => format!("{}, … ({many} in all)", all[..8].join(", ")),
        };
        write!(f, "{}; hosts {}", list(&self.flows), list(&self.hosts))?;
        match self.links.is_empty() {
            true => Ok(()),
            false => write!(f, "; links {}", list(&self.links)),
        }
    }
}
