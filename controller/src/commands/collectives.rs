//! `weir collectives plan TOPOLOGY`: reads a network, and prints the predicted course of a collective of its hosts.

use std::process::ExitCode;

use controller::collectives::{Inner, Request, plan, svg};
use planner::{Network, NodeId};
use scenario::diagnostic::nearest;

use super::{fail, network, print, print_json};
use crate::cli::collectives::{Collectives, Plan};

/// Performs `weir collectives plan`.
pub fn main(command: &Collectives) -> ExitCode {
    let Collectives::Plan(args) = command;
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(code) => code,
    }
}

fn run(args: &Plan) -> Result<(), ExitCode> {
    let network = network(&args.topology)?;
    let hosts = hosts(&network, args)?;
    let links = |host: &NodeId| network.adjacent(*host).len();
    let fewest = hosts.iter().map(links).min().unwrap_or(1).max(1);
    let inner = args.gpus.map(|gpus| Inner {
        gpus: gpus as usize,
        nics: args.nics.map_or(fewest, |nics| nics as usize),
        by: args.inside.into(),
    });
    let asked = Request {
        kind: args.collective,
        bytes: args.size,
        root: args.root,
        inner,
        message_ns: args.message.as_nanos() as u64,
        algorithms: (args.algorithm.as_ref()).map_or(Vec::new(), |only| only.0.clone()),
        numbering: args.numbering,
    };
    let planned = plan(&network, &hosts, &asked).map_err(fail)?;
    if let Some(path) = &args.svg {
        let (file, chosen) = (args.topology.display(), &planned.chosen);
        let title = format!("{file}: {} by {chosen}", planned.collective);
        std::fs::write(path, svg(&network, &planned, &title))
            .map_err(|error| fail(format_args!("cannot write {}: {error}", path.display())))?;
    }
    match args.json {
        true => print_json(&planned),
        false => print(&planned),
    }
}

/// The hosts that have ranks, in the order of the ranks, as the command line selects them.
fn hosts(network: &Network, args: &Plan) -> Result<Vec<NodeId>, ExitCode> {
    let mut hosts: Vec<NodeId> = Vec::new();
    for name in &args.hosts {
        let named = scenario::hosts_named(network, name);
        if named.is_empty() {
            return Err(fail(unknown(network, name)));
        }
        if let Some(twice) = named.iter().find(|host| hosts.contains(host)) {
            let twice = network.name(*twice);
            return Err(fail(format_args!("--hosts: `{twice}` is named twice")));
        }
        hosts.extend(named);
    }
    if args.hosts.is_empty() {
        hosts.extend(network.hosts());
    }
    let Some(ranks) = args.ranks.map(|ranks| ranks as usize) else {
        return Ok(hosts);
    };
    let each = args.gpus.unwrap_or(1) as usize;
    let there = hosts.len() * each;
    if ranks > there {
        return Err(fail(format_args!(
            "--ranks {ranks}: {} hosts have {there} ranks: use at most {there}",
            hosts.len()
        )));
    }
    if ranks % each != 0 {
        return Err(fail(format_args!(
            "--ranks {ranks}: each host has {each} ranks: use a multiple of {each}"
        )));
    }
    hosts.truncate(ranks / each);
    Ok(hosts)
}

fn unknown(network: &Network, name: &str) -> String {
    if network.node(name).is_ok() {
        return format!("--hosts: `{name}` is a switch, not a host");
    }
    let all = network.hosts().map(|host| network.name(host));
    match nearest(name, all) {
        Some(near) => format!("--hosts: there is no host `{name}`\nhint: did you mean `{near}`?"),
        None => format!("--hosts: there is no host `{name}`"),
    }
}
