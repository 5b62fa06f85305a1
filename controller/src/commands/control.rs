//! `weir control FILE`: executes a scenario on running switches that weir has not started, in a network that weir has not
//! built.
//!
//! The caller controls the command by lines: the command prints `ready` when everything is written and no fault is armed, waits
//! for `go`, prints `going`, and follows the timeline until its standard input ends. Then it disarms all faults and prints one
//! JSON object. If the input ends without a `go`, it executes nothing and returns an error.
//!
//! The line `scenario FILE` replaces the running scenario by another one, while the switches keep forwarding: the command
//! prints `replaced` with one line of JSON, then `going`; or it prints `refused`, and nothing has changed.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use controller::experiment::Planned;
use controller::experiment::carry_out::guard::{Aborted, Guard, GuardVerdict};
use controller::experiment::carry_out::limits::{LimitReached, TimeLimit};
use controller::experiment::carry_out::timeline::{Activity, Proceed, Timeline};
use controller::experiment::fleet::change::Change;
use controller::experiment::fleet::replace::Replacement;
use controller::experiment::fleet::{Fleet, FleetError};
use controller::target::Kind;
use scenario::plan::Over;
use scenario::{Diagnostics, file::elsewhere};
use serde::Serialize;

use super::{ABORTED, fail, load, print, print_json, show};
use crate::cli::Control;

/// The JSON object that the command prints at the end of a scenario.
#[derive(Serialize)]
struct Report {
    scenario: String,
    seed: u64,
    /// Number of packets on which no fault acted at the switches, because the lease of the faults had ended.
    lapsed: u64,
    /// Why the scenario was aborted; `None` if it was not.
    aborted: Option<Aborted>,
    /// Keys of the scenario's file that have no effect in `weir control`.
    ignored: Vec<&'static str>,
    /// Number of hits of each fault, in declared order, as the switches counted them.
    faults: Vec<FaultCount>,
    /// How often each trigger fired, in declared order; without triggers that the switches do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    triggers: Vec<TriggerCount>,
}

#[derive(Serialize)]
struct TriggerCount {
    name: String,
    on: u64,
}

#[derive(Serialize)]
struct FaultCount {
    id: String,
    fired: u64,
}

/// The JSON object that the command prints when a scenario was replaced by another one.
#[derive(Serialize)]
struct Replaced<'a> {
    old: Report,
    switches: Vec<Change>,
    faults: &'a Over,
}

/// Performs `weir control`: executes the scenario, and those that replace it.
pub fn main(args: &Control) -> ExitCode {
    run(args).map_or_else(|code| code, |()| ExitCode::SUCCESS)
}

fn run(args: &Control) -> Result<(), ExitCode> {
    if cli_io::disk::is_stdin(&args.file) {
        return Err(fail(
            "`control` reads `go` from its standard input, so the scenario must be a file: give its path instead of `-`",
        ));
    }
    let switches = args.target.switches_elsewhere().map_err(fail)?;
    let mut planned = plan(args, &args.file, switches.kind)?;
    let addresses = addresses(args, &planned)?;
    for (switch, address) in &addresses {
        cli_io::stderr::tell(format_args!("weir: connecting to {switch} at {address}\n"));
    }
    let p4src = args.p4src.as_deref();
    let mut fleet = Fleet::attach(&planned, &addresses, &switches, p4src).map_err(fail)?;
    print("ready\n")?;
    let lines = lines_of_stdin();
    if !await_go(&lines) {
        fleet.set_epoch(0).map_err(fail)?;
        return Err(fail(
            "the standard input ended before a line `go`: the scenario did not start, and all faults are disarmed",
        ));
    }
    loop {
        let mut others = Others {
            lines: &lines,
            prepare: &|file| prepare(args, Path::new(file), &planned, switches.kind),
            next: None,
        };
        let aborted = carry_out(&planned, &mut fleet, &mut others)?;
        let is_aborted = aborted.is_some();
        let next = others.next;
        let report = report(&planned, &mut fleet, aborted).map_err(fail)?;
        let Some(next) = next.filter(|_| !is_aborted) else {
            print_json(&report)?;
            return match is_aborted {
                true => Err(ExitCode::from(ABORTED)),
                false => Ok(()),
            };
        };
        let switches = fleet.replace(&next).map_err(fail)?;
        let replaced = Replaced {
            old: report,
            switches,
            faults: &next.over,
        };
        let replaced = serde_json::to_string(&replaced)
            .map_err(|error| fail(format_args!("cannot write JSON: {error}")))?;
        print(format_args!("replaced {replaced}\n"))?;
        planned = next.planned;
    }
}

/// Loads and plans a scenario for running switches; prints warnings on keys that have no effect here.
fn plan(args: &Control, file: &Path, kind: Kind) -> Result<Planned, ExitCode> {
    let scenario = load(file, &args.protocols.protocols)?;
    let (file, text) = (scenario.file.clone(), scenario.text.clone());
    let refused = |errors: Diagnostics| show(&errors, &file, &text);
    let warnings = elsewhere::check(&scenario).map_err(refused)?;
    show(&warnings, &file, &text);
    Planned::elsewhere(scenario, kind).map_err(refused)
}

/// Follows a scenario's timeline until its end, and disarms all faults. Returns why it was aborted; `None` if it was not.
fn carry_out(
    planned: &Planned,
    fleet: &mut Fleet,
    others: &mut Others<'_>,
) -> Result<Option<Aborted>, ExitCode> {
    let timeline = Timeline::new(&planned.plan.timeline);
    let limit = TimeLimit::from_scenario(&planned.scenario);
    let mut guard = Guard::new(planned);
    let mut aborted = None;
    let followed = timeline.follow(fleet, others, |_, fleet, elapsed, awaited| {
        limit.check(elapsed, || "the standard input is still open".to_owned())?;
        Ok(match guard.check(elapsed, fleet, awaited, |_| {})? {
            GuardVerdict::GoOn => Proceed::GoOn,
            GuardVerdict::Holds => Proceed::Holds,
            GuardVerdict::Aborted(why) => {
                aborted = Some(why);
                Proceed::End
            }
        })
    });
    // Nothing stays armed, even after an error.
    let disarmed = fleet.disarm();
    followed.map_err(fail)?;
    disarmed.map_err(fail)?;
    Ok(aborted)
}

/// Loads and plans the scenario that is to replace the running one; prints the error if that is impossible.
fn prepare(
    args: &Control,
    file: &Path,
    planned: &Planned,
    kind: Kind,
) -> Result<Replacement, ExitCode> {
    let new = plan(args, file, kind)?;
    Replacement::prepare(planned, new, kind, args.p4src.as_deref()).map_err(fail)
}

/// Waits for the line `go`; returns false if the input ends before. All other lines are ignored.
fn await_go(lines: &Receiver<String>) -> bool {
    lines.iter().any(|line| {
        let is_go = line.trim() == "go";
        if !is_go {
            cli_io::stderr::tell(format_args!("weir: ignored: expected `go`\n"));
        }
        is_go
    })
}

/// Activity during the timeline: traffic of other programs, until the standard input ends or another scenario comes.
struct Others<'a> {
    lines: &'a Receiver<String>,
    /// Prepares the scenario of a file to replace the running one.
    prepare: &'a dyn Fn(&str) -> Result<Replacement, ExitCode>,
    /// The scenario that is to replace the running one; `None` while there is none.
    next: Option<Replacement>,
}

/// Why the timeline ended early.
#[derive(Debug, thiserror::Error)]
enum ControlError {
    /// A switch or its session returned an error.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// The scenario ran longer than `limits.time`.
    #[error(transparent)]
    Limit(#[from] LimitReached),
}

impl Activity for Others<'_> {
    type Error = ControlError;

    fn begin(&mut self) -> Result<(), ControlError> {
        // A reader that is gone does not need the line.
        let _unread = print("going\n");
        Ok(())
    }

    fn poll(&mut self, most: Duration) -> Result<ControlFlow<()>, ControlError> {
        let line = match self.lines.recv_timeout(most) {
            Err(RecvTimeoutError::Disconnected) => return Ok(ControlFlow::Break(())),
            Err(RecvTimeoutError::Timeout) => return Ok(ControlFlow::Continue(())),
            Ok(line) => line,
        };
        let Some(file) = line.trim().strip_prefix("scenario ") else {
            cli_io::stderr::tell(format_args!("weir: ignored: expected `scenario FILE`\n"));
            return Ok(ControlFlow::Continue(()));
        };
        match (self.prepare)(file.trim()) {
            Ok(next) => {
                self.next = Some(next);
                Ok(ControlFlow::Break(()))
            }
            // The reason was reported before.
            Err(_) => {
                let _unread = print("refused\n");
                Ok(ControlFlow::Continue(()))
            }
        }
    }
}

fn report(
    planned: &Planned,
    fleet: &mut Fleet,
    aborted: Option<Aborted>,
) -> Result<Report, FleetError> {
    let mut fired: BTreeMap<&str, u64> = BTreeMap::new();
    let counts = fleet.fired(&planned.plan)?;
    for (injection, packets) in planned.plan.injections.iter().zip(counts) {
        *fired.entry(&injection.fault).or_default() += packets;
    }
    let faults = planned.scenario.faults.iter();
    let turned = fleet.triggers(planned)?;
    let switches = planned.plan.switches.iter();
    let counted = switches.flat_map(|switch| &switch.triggers);
    let mut counted: Vec<_> = counted.filter(|named| named.counter.is_some()).collect();
    counted.sort_by_key(|named| named.index);
    let mut lapsed = 0;
    for switch in &planned.plan.switches {
        lapsed += fleet.lapsed(&switch.name)?;
    }
    Ok(Report {
        lapsed,
        aborted,
        ignored: elsewhere::ignored(&planned.scenario),
        scenario: planned.scenario.name.clone(),
        seed: planned.scenario.seed,
        faults: faults
            .map(|fault| FaultCount {
                id: fault.id.clone(),
                fired: fired.get(fault.id.as_str()).copied().unwrap_or(0),
            })
            .collect(),
        triggers: counted
            .into_iter()
            .map(|named| TriggerCount {
                name: named.name.clone(),
                on: turned[named.index].on,
            })
            .collect(),
    })
}

/// Address of each switch of the plan, by the switch's name; an error if an address is missing or belongs to no switch.
fn addresses(args: &Control, planned: &Planned) -> Result<BTreeMap<String, String>, ExitCode> {
    let mut given: BTreeMap<String, String> = BTreeMap::new();
    for (name, address) in &args.switches {
        if let Some(before) = given.insert(name.clone(), address.clone()) {
            return Err(fail(format_args!(
                "--switch {name} is given twice, as {before} and as {address}: a switch has one address"
            )));
        }
    }
    let names: Vec<&str> = planned
        .plan
        .switches
        .iter()
        .map(|switch| switch.name.as_str())
        .collect();
    if let Some(missing) = names.iter().find(|name| !given.contains_key(**name)) {
        return Err(fail(format_args!(
            "the address of switch {missing} is missing: add --switch {missing}=HOST:PORT"
        )));
    }
    if let Some(stray) = given.keys().find(|name| !names.contains(&name.as_str())) {
        let names = names.join(", ");
        return Err(fail(format_args!(
            "--switch {stray}: the scenario has no such switch; it has {names}"
        )));
    }
    Ok(given)
}

/// Lines of the standard input, which a thread reads; the channel ends with the input.
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
