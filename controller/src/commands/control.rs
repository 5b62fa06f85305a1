//! `weir control FILE`: a scenario carried out on switches that somebody else has started, in a network that somebody
//! else has made.
//!
//! Talks by lines: `ready` once everything is written and nothing is armed; then it waits for `go`, says `going`, and
//! follows the timeline until its standard input ends. Then it disarms everything and prints one JSON object.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::{fail, load, print, print_json, show};
use crate::cli::Control;
use crate::experiment::fleet::Fleet;
use crate::experiment::timeline::Timeline;
use crate::experiment::{Conditions, Planned, training};
use testbeds::bed::Wiring;

/// How often the timeline is looked at.
const TURN: Duration = Duration::from_millis(5);

/// What fired.
#[derive(Serialize)]
struct Report {
    scenario: String,
    seed: u64,
    /// In declared order.
    faults: Vec<Fired>,
}

#[derive(Serialize)]
struct Fired {
    id: String,
    fired: u64,
}

/// Carries a scenario out.
pub fn main(args: &Control) -> ExitCode {
    run(args).map_or_else(|code| code, |()| ExitCode::SUCCESS)
}

fn run(args: &Control) -> Result<(), ExitCode> {
    let switches = args.target.switches_elsewhere().map_err(fail)?;
    let scenario = load(&args.file)?;
    let (file, text) = (scenario.file.clone(), scenario.text.clone());
    let planned =
        Planned::of(scenario, switches.kind).map_err(|errors| show(&errors, &file, &text))?;
    let addresses = addresses(args, &planned)?;
    for (switch, address) in &addresses {
        softswitch::stderr::tell(format_args!("weir: connecting to {switch} at {address}\n"));
    }
    let conditions = Conditions {
        wiring: Wiring::Veth,
        p4src: args.p4src.as_deref(),
        switches: &switches,
        stall_switch: false,
    };
    let mut fleet = Fleet::attach(&planned.plan, &addresses, conditions).map_err(fail)?;
    if let (Some(training), Some(switch)) = (planned.training(), planned.aggregator()) {
        let entries = training::aggregation_entries(&planned.scenario, training, switch);
        fleet.insert(switch, entries).map_err(fail)?;
    }
    print("ready\n")?;
    let lines = lines_of_stdin();
    if lines.recv().is_ok_and(|line| line.trim() == "go") {
        let mut timeline = Timeline::new(&planned.plan.timeline);
        let start = Instant::now();
        timeline.advance(Duration::ZERO, &mut fleet).map_err(fail)?;
        print("going\n")?;
        loop {
            match lines.recv_timeout(TURN) {
                Err(RecvTimeoutError::Disconnected) => break,
                // Nothing else is understood.
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            }
            timeline
                .advance(start.elapsed(), &mut fleet)
                .map_err(fail)?;
        }
    }
    fleet.set_epoch(0).map_err(fail)?;
    print_json(&report(&planned, &mut fleet).map_err(fail)?)
}

fn report(
    planned: &Planned,
    fleet: &mut Fleet,
) -> Result<Report, crate::experiment::fleet::FleetError> {
    let mut fired: BTreeMap<&str, u64> = BTreeMap::new();
    for injection in &planned.plan.injections {
        let cells = fleet.counter(&injection.switch, &injection.counter)?;
        let packets = cells.get(injection.cell).map_or(0, |cell| cell.packets);
        *fired.entry(&injection.fault).or_default() += packets;
    }
    let faults = planned.scenario.faults.iter();
    Ok(Report {
        scenario: planned.scenario.name.clone(),
        seed: planned.scenario.seed,
        faults: faults
            .map(|fault| Fired {
                id: fault.id.clone(),
                fired: fired.get(fault.id.as_str()).copied().unwrap_or(0),
            })
            .collect(),
    })
}

/// The address of each switch of the plan, no more and no less.
fn addresses(args: &Control, planned: &Planned) -> Result<BTreeMap<String, String>, ExitCode> {
    let given: BTreeMap<String, String> = args.switches.iter().cloned().collect();
    let names: Vec<&str> = planned
        .plan
        .switches
        .iter()
        .map(|switch| switch.name.as_str())
        .collect();
    if let Some(missing) = names.iter().find(|name| !given.contains_key(**name)) {
        return Err(fail(format_args!(
            "where is switch {missing}? Say --switch {missing}=HOST:PORT"
        )));
    }
    if let Some(stray) = given.keys().find(|name| !names.contains(&name.as_str())) {
        let names = names.join(", ");
        return Err(fail(format_args!(
            "the scenario has no switch {stray}; it has {names}"
        )));
    }
    Ok(given)
}

/// Standard input, line by line; the end of the channel is its end.
fn lines_of_stdin() -> Receiver<String> {
    let (sender, lines) = mpsc::sync_channel(16);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}
