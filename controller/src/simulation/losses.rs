//! Converts faults that drop packets at random into losses of the simulation, which supports no other faults.

use std::net::Ipv4Addr;

use cluster::simulation::{Address, Half, Loss};
use parser_gen::filter::FieldValues;
use scenario::Plan;
use scenario::model::effect::Effect;
use scenario::model::selection::Selection;
use scenario::model::topology::{Host, Mac};
use scenario::model::{Direction, Fault, Flow, Scenario};
use scenario::plan::names::JOB;
use wire::Kind;

use super::refused::unknown;
use super::{SimulateError, address};

/// Fields of a simulated frame that a flow's filter may test.
const FIELDS: [&str; 3] = ["agg.kind", "ip.src", "ip.dst"];

/// Advice to the user of an unsupported fault.
const HINT: &str = "leave the fault out: the simulation supports only `drop` with `select: {probability: …}`, in the whole run";

/// Random losses at switches, each with the switch's name; an error for a fault that cannot be simulated.
pub fn from_plan(scenario: &Scenario, plan: &Plan) -> Result<Vec<(String, Loss)>, SimulateError> {
    let mut losses = Vec::new();
    for injection in &plan.injections {
        let fault = scenario.faults.iter().find(|f| f.id == injection.fault);
        let flow = scenario.flows.iter().find(|f| f.name == injection.flow);
        let (Some(fault), Some(flow)) = (fault, flow) else {
            continue;
        };
        let share = share(scenario, fault)?;
        let at = match injection.direction {
            Direction::Ingress => Half::Ingress,
            Direction::Egress => Half::Egress,
        };
        for (kind, from, to) in matching(scenario, flow, fault)? {
            let loss = Loss {
                kind: Some(kind),
                from: Some(from),
                to,
                share,
                at,
            };
            losses.push((injection.switch.clone(), loss));
        }
    }
    Ok(losses)
}

/// Share of the packets of its flows that a fault drops, from 0 to 1; an error for a fault that cannot be simulated.
fn share(scenario: &Scenario, fault: &Fault) -> Result<f64, SimulateError> {
    let refused = |why: &str| {
        let what = format!("the fault `{}`, {why},", fault.id);
        unknown(scenario, fault.span, &what, HINT)
    };
    let always = scenario.epochs.len() == 1 && fault.when.is_none();
    match (&fault.effect, &fault.selection) {
        (Effect::Drop(_), _) if !always => Err(refused("which does not act all the time")),
        (Effect::Drop(_), _) if fault.keys.is_some() => Err(refused("which has `per`")),
        (Effect::Drop(_), Selection::Probability { limit }) => {
            Ok((f64::from(*limit) + 1.0) / 2f64.powi(32))
        }
        (Effect::Drop(_), Selection::Never) => Ok(0.0),
        (Effect::Drop(_), Selection::Always) => Ok(1.0),
        (Effect::Drop(_), _) => Err(refused("which does not select by `probability`")),
        _ => Err(refused("which is not a `drop`")),
    }
}

/// Kind, sender and receiver of the frames that belong to a flow; no receiver if the kind does not go to one worker.
fn matching(
    scenario: &Scenario,
    flow: &Flow,
    fault: &Fault,
) -> Result<Vec<(Kind, Address, Option<Address>)>, SimulateError> {
    let (filter, fault) = (&flow.filter, (&fault.id, fault.span));
    let fields = filter.fields();
    if let Some(field) = fields.iter().find(|field| !FIELDS.contains(field)) {
        let what = format!("the fault `{}`, whose flow tests `{field}`,", fault.0);
        let hint = "describe the flow by `agg.kind`, `from` and `to`: simulated frames have no other fields";
        return Err(unknown(scenario, flow.span, &what, hint));
    }
    let Some(scenario::model::workload::Workload::Training(training)) = &scenario.workload else {
        let what = format!("the fault `{}` on an all-reduce", fault.0);
        return Err(unknown(scenario, fault.1, &what, "leave the fault out"));
    };
    let hosts = &scenario.topology.hosts;
    let Some(server) = hosts.iter().find(|host| host.name == training.server) else {
        return Ok(Vec::new());
    };
    let workers = hosts.iter();
    let workers = workers.filter(|host| training.workers.contains(&host.name));
    let workers: Vec<&Host> = workers.collect();
    let is_of = |kind: Kind, from: Ipv4Addr, to: Ipv4Addr| {
        let mut frame = FieldValues::new();
        frame.set_number("agg.kind", kind as u128);
        frame.set_number("ip.src", u128::from(u32::from(from)));
        frame.set_number("ip.dst", u128::from(u32::from(to)));
        filter.matches(&frame)
    };
    let mut found = Vec::new();
    for worker in &workers {
        // The Ethernet address does not matter: the IPv4 address is the server's.
        for kind in [Kind::Update, Kind::Sum] {
            if is_of(kind, worker.ip, server.ip) {
                found.push((kind, address(worker.mac), None));
            }
        }
        if is_of(Kind::Result, server.ip, worker.ip) {
            found.push((Kind::Result, address(server.mac), Some(address(worker.mac))));
        }
    }
    let everybody = Ipv4Addr::new(239, 87, 69, JOB as u8);
    if is_of(Kind::Result, server.ip, everybody) {
        let to = address(Mac::of_job(JOB));
        found.push((Kind::Result, address(server.mac), Some(to)));
    }
    Ok(found)
}
