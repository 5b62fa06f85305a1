//! Converts an imported graph, with its attributes, into a network.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::graph::{Attributes, Edge, Graph, Node};
use super::quantity::Dimension;
use super::{Hosts, ImportError, ImportErrorKind, Imported, Names, Options, Report};
use crate::network::{Host, Link, MAX_LINKS, MAX_NODES, Network, NetworkError, NodeId, Switch};

pub fn assemble(graph: &Graph<'_>, options: &Options) -> Result<Imported, ImportError> {
    for (count, what, most) in [
        (graph.nodes.len(), "nodes", MAX_NODES),
        (graph.edges.len(), "edges", 2 * MAX_LINKS),
    ] {
        if count > most {
            return Err(ImportErrorKind::TooLarge { count, what, most }.at(graph.text, 0));
        }
    }
    let mut report = Report::default();
    let nodes = nodes_by_id(graph)?;
    let joins = pair(graph, &nodes)?;
    let units = Units::from_graph(graph, options)?;

    let mut network = Network::new();
    let ids = add_nodes(graph, options, &joins, &units, &mut network, &mut report)?;
    let mut seen = BTreeSet::new();
    for join in &joins {
        let link = read_link(graph, options, join, &ids, &units, &mut report)?;
        let [a, b] = link.ends;
        report.parallel += usize::from(!seen.insert([a.min(b), a.max(b)]));
        let added = network.add_link(link);
        added.map_err(|error| ImportErrorKind::Network(error).at(graph.text, join.edge.at))?;
    }
    if let Hosts::Attach {
        per_switch,
        rate_bps,
    } = options.hosts
    {
        let attached = attach(&mut network, options, per_switch, rate_bps);
        attached.map_err(|error| ImportErrorKind::Network(error).at(graph.text, 0))?;
    }
    report.parts = parts(&network);
    Ok(Imported { network, report })
}

/// Units of rates and delays that the file writes without a unit; `None`: a number without a unit is an error.
struct Units {
    rate_bps: Option<u64>,
    delay_ns: Option<u64>,
}

impl Units {
    fn from_graph(graph: &Graph<'_>, options: &Options) -> Result<Units, ImportError> {
        let unit = |name: &str, dimension: Dimension, given: Option<u64>| {
            let Some(said) = graph.attributes.find(name) else {
                return Ok(given);
            };
            let unit = dimension.unit(said.value.trim());
            unit.map(Some)
                .ok_or_else(|| said.wanted(graph.text, name, dimension.wanted_unit()))
        };
        Ok(Units {
            rate_bps: unit("rate_unit", Dimension::Rate, options.rate_unit_bps)?,
            delay_ns: unit("delay_unit", Dimension::Delay, options.delay_unit_ns)?,
        })
    }
}

/// A link: an edge of the file, and the edge in the other direction, if the file has one.
struct Join<'g> {
    edge: &'g Edge,
    back: Option<&'g Edge>,
    /// Indices of the edge's two ends among the nodes.
    ends: [usize; 2],
}

fn nodes_by_id<'g>(graph: &'g Graph<'_>) -> Result<BTreeMap<&'g str, usize>, ImportError> {
    let mut nodes = BTreeMap::new();
    for (place, node) in graph.nodes.iter().enumerate() {
        if nodes.insert(node.id.as_str(), place).is_some() {
            return Err(ImportErrorKind::IdTwice(node.id.clone()).at(graph.text, node.at));
        }
    }
    Ok(nodes)
}

/// Joins directed edges to links: the n-th edge from a to b and the n-th edge from b to a are one link.
fn pair<'g>(
    graph: &'g Graph<'_>,
    nodes: &BTreeMap<&str, usize>,
) -> Result<Vec<Join<'g>>, ImportError> {
    let mut joins: Vec<Join<'g>> = Vec::new();
    // For each direction, edges without a reverse so far.
    let mut waiting: BTreeMap<[usize; 2], VecDeque<usize>> = BTreeMap::new();
    for edge in &graph.edges {
        let mut ends = [0; 2];
        for (place, (id, at)) in ends.iter_mut().zip(&edge.ends) {
            let unknown = || ImportErrorKind::UnknownEnd(id.clone()).at(graph.text, *at);
            *place = *nodes.get(id.as_str()).ok_or_else(unknown)?;
        }
        let [a, b] = ends;
        if edge.is_directed {
            let opposite = waiting.get_mut(&[b, a]);
            if let Some(there) = opposite.and_then(VecDeque::pop_front) {
                joins[there].back = Some(edge);
                continue;
            }
            waiting.entry(ends).or_default().push_back(joins.len());
        }
        joins.push(Join {
            edge,
            back: None,
            ends,
        });
    }
    Ok(joins)
}

fn add_nodes(
    graph: &Graph<'_>,
    options: &Options,
    joins: &[Join<'_>],
    units: &Units,
    network: &mut Network,
    report: &mut Report,
) -> Result<Vec<NodeId>, ImportError> {
    let mut links = vec![0_usize; graph.nodes.len()];
    for end in joins.iter().flat_map(|join| join.ends) {
        links[end] += 1;
    }
    let mut named: BTreeMap<&str, &Node> = BTreeMap::new();
    let mut ids = Vec::with_capacity(graph.nodes.len());
    for (node, links) in graph.nodes.iter().zip(links) {
        let label = node.label.as_deref().filter(|label| !label.is_empty());
        report.unlabelled += usize::from(label.is_none());
        let name = match options.names {
            Names::Labels => label.unwrap_or(&node.id),
            Names::Ids => &node.id,
        };
        if let Some(first) = named.insert(name, node) {
            let kind = ImportErrorKind::NameTwice {
                name: name.to_owned(),
                first: first.id.clone(),
                second: node.id.clone(),
            };
            return Err(kind.at(graph.text, node.at));
        }
        let is_host = match declared(graph.text, &node.attributes)? {
            Some(is_host) => is_host,
            None => options.hosts == Hosts::Leaves && links == 1,
        };
        let added = if is_host {
            network.add_host(
                name,
                read_host(graph.text, &node.attributes, &options.host)?,
            )
        } else {
            let switch = read_switch(graph.text, &node.attributes, &options.switch, units)?;
            network.add_switch(name, switch)
        };
        ids.push(added.map_err(|error| ImportErrorKind::Network(error).at(graph.text, node.at))?);
    }
    Ok(ids)
}

/// Whether the file declares that a node is a host (`true`) or a switch; `None` if it declares
/// neither. Unknown words in `type` are ignored, since other files use it for other purposes.
fn declared(text: &str, attributes: &Attributes) -> Result<Option<bool>, ImportError> {
    for name in ["kind", "type"] {
        let Some(said) = attributes.find(name) else {
            continue;
        };
        match said.value.trim().to_ascii_lowercase().as_str() {
            "host" | "server" => return Ok(Some(true)),
            "switch" | "router" => return Ok(Some(false)),
            _ if name == "kind" => return Err(said.wanted(text, name, "`host` or `switch`")),
            _ => {}
        }
    }
    Ok(None)
}

fn read_host(text: &str, attributes: &Attributes, default: &Host) -> Result<Host, ImportError> {
    Ok(Host {
        gpus: attributes.integer(text, "gpus")?.unwrap_or(default.gpus),
        slots: attributes.integer(text, "slots")?.or(default.slots),
        busy: attributes.truth(text, "busy")?.unwrap_or(default.busy),
    })
}

fn read_switch(
    text: &str,
    attributes: &Attributes,
    default: &Switch,
    units: &Units,
) -> Result<Switch, ImportError> {
    let rate = |name| attributes.quantity(text, &[name], Dimension::Rate, units.rate_bps);
    let programmable = attributes.truth(text, "programmable")?;
    let memory = attributes.quantity(text, &["memory"], Dimension::Size, None)?;
    Ok(Switch {
        programmable: programmable.unwrap_or(default.programmable),
        throughput_bps: rate("throughput")?.or(default.throughput_bps),
        memory_bytes: memory.or(default.memory_bytes),
        stages: attributes.integer(text, "stages")?.or(default.stages),
        load_bps: rate("load")?.unwrap_or(default.load_bps),
    })
}

fn read_link(
    graph: &Graph<'_>,
    options: &Options,
    join: &Join<'_>,
    ids: &[NodeId],
    units: &Units,
    report: &mut Report,
) -> Result<Link, ImportError> {
    let text = graph.text;
    let there = &join.edge.attributes;
    let back = join.back.map(|edge| &edge.attributes);
    let names = || join.edge.ends.clone().map(|(id, _)| id);
    let both = |what, read: &dyn Fn(&Attributes) -> Result<Option<u64>, ImportError>| {
        let (one, other) = (read(there)?, back.map(read).transpose()?.flatten());
        match (one, other) {
            (Some(there), Some(back)) if there != back => {
                let [from, to] = names();
                let kind = ImportErrorKind::Asymmetric {
                    from,
                    to,
                    what,
                    there,
                    back,
                };
                Err(kind.at(text, join.back.map_or(0, |edge| edge.at)))
            }
            _ => Ok(one.or(other)),
        }
    };
    let rate = both("rate", &|attributes| read_rate(text, attributes, units))?;
    let delay = both("delay", &|attributes| {
        let names = ["delay", "latency"];
        attributes.quantity(text, &names, Dimension::Delay, units.delay_ns)
    })?;
    let rate_bps = match (rate, options.default_rate_bps) {
        (Some(rate), _) => rate,
        (None, Some(rate)) => {
            report.default_rates += 1;
            rate
        }
        (None, None) => {
            let [a, b] = names();
            return Err(ImportErrorKind::NoRate(a, b).at(text, join.edge.at));
        }
    };
    let load = |attributes: &Attributes, name| {
        attributes.quantity(text, &[name], Dimension::Rate, units.rate_bps)
    };
    let load_back = match back {
        Some(back) => load(back, "load")?,
        None => load(there, "load_back")?,
    };
    report.one_way += usize::from(join.edge.is_directed && back.is_none());
    Ok(Link {
        ends: join.ends.map(|end| ids[end]),
        rate_bps,
        delay_ns: delay.unwrap_or(options.default_delay_ns),
        loss: there.share(text, "loss")?.unwrap_or(0.0),
        load_bps: [load(there, "load")?.unwrap_or(0), load_back.unwrap_or(0)],
    })
}

/// Reads an edge's rate in bit/s: `rate` or an alias, or the Topology Zoo's attributes (bits per
/// second, or a number and its unit's letter). `None`: the edge has no rate.
fn read_rate(
    text: &str,
    attributes: &Attributes,
    units: &Units,
) -> Result<Option<u64>, ImportError> {
    let names = ["rate", "bandwidth", "capacity", "speed"];
    let rate = attributes.quantity(text, &names, Dimension::Rate, units.rate_bps)?;
    if rate.is_some() {
        return Ok(rate);
    }
    let raw = attributes.quantity(text, &["LinkSpeedRaw"], Dimension::Rate, Some(1))?;
    if raw.is_some() {
        return Ok(raw);
    }
    let letter = attributes.find("LinkSpeedUnits");
    let letter = letter.filter(|letter| !letter.value.trim().is_empty());
    let unit = match letter {
        None => units.rate_bps,
        Some(letter) => {
            let unit = Dimension::Rate.unit(&format!("{}bit/s", letter.value.trim()));
            let wrong = || letter.wanted(text, "LinkSpeedUnits", "K, M, G or T");
            Some(unit.ok_or_else(wrong)?)
        }
    };
    attributes.quantity(text, &["LinkSpeed"], Dimension::Rate, unit)
}

fn attach(
    network: &mut Network,
    options: &Options,
    per_switch: u32,
    rate_bps: u64,
) -> Result<(), NetworkError> {
    let switches: Vec<NodeId> = network.switches().collect();
    for switch in switches {
        let name = network.name(switch).to_owned();
        for number in 0..per_switch {
            let host = network.add_host(&format!("{name}-h{number}"), options.host.clone())?;
            network.connect(host, switch, rate_bps)?;
        }
    }
    Ok(())
}

fn parts(network: &Network) -> usize {
    let mut seen = vec![false; network.nodes().len()];
    let mut parts = 0;
    for start in network.ids() {
        parts += usize::from(!seen[start.index()]);
        let mut stack = vec![start];
        while let Some(node) = stack.pop() {
            if !std::mem::replace(&mut seen[node.index()], true) {
                let peers = network.adjacent(node).iter().map(|(_, peer)| *peer);
                stack.extend(peers.filter(|peer| !seen[peer.index()]));
            }
        }
    }
    parts
}
