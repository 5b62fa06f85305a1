//! `weir control FILE`: a scenario carried out on switches that somebody else has started, in a network that somebody
//! else has made.
//!
//! Talks by lines: `ready` once everything is written and nothing is armed; then it waits for `go`, says `going`, and
//! follows the timeline until its standard input ends. Then it disarms everything and prints one JSON object. Without a `go`
//! nothing is carried out, and that is an error.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use controller::experiment::Planned;
use controller::experiment::fleet::{Fleet, FleetError};
use controller::experiment::guard::{Aborted, Guard, Look};
use controller::experiment::limits::{LimitReached, TimeLimit};
use controller::experiment::timeline::{Activity, Timeline, Turned};
use serde::Serialize;

use super::{ABORTED, fail, load, print, print_json, show};
use crate::cli::Control;

/// What fired.
#[derive(Serialize)]
struct Report {
    scenario: String,
    seed: u64,
    /// Packets that came while the lease of the faults had run out.
    lapsed: u64,
    /// Why it was broken off, if it was.
    aborted: Option<Aborted>,
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
    if cli_io::disk::is_stdin(&args.file) {
        return Err(fail(
            "`control` is told `go` on its standard input, so the scenario must be a file",
        ));
    }
    let switches = args.target.switches_elsewhere().map_err(fail)?;
    let scenario = load(&args.file, &args.protocols.protocols)?;
    let (file, text) = (scenario.file.clone(), scenario.text.clone());
    let planned = Planned::elsewhere(scenario, switches.kind)
        .map_err(|errors| show(&errors, &file, &text))?;
    let addresses = addresses(args, &planned)?;
    for (switch, address) in &addresses {
        cli_io::stderr::tell(format_args!("weir: connecting to {switch} at {address}\n"));
    }
    let p4src = args.p4src.as_deref();
    let mut fleet = Fleet::attach(&planned, &addresses, &switches, p4src).map_err(fail)?;
    print("ready\n")?;
    let mut others = Others {
        lines: lines_of_stdin(),
    };
    if !others.await_go() {
        fleet.set_epoch(0).map_err(fail)?;
        return Err(fail(
            "the standard input ended before it said `go`: nothing was carried out, all faults are disarmed",
        ));
    }
    let timeline = Timeline::new(&planned.plan.timeline);
    let limit = TimeLimit::of(&planned.scenario);
    let mut guard = Guard::of(&planned);
    let mut aborted = None;
    let followed = timeline.follow(&mut fleet, &mut others, |_, fleet, elapsed, awaited| {
        limit.check(elapsed, || "the standard input is still open".to_owned())?;
        Ok(match guard.look(elapsed, fleet, awaited, |_| {})? {
            Look::GoOn => Turned::GoOn,
            Look::Holds => Turned::Holds,
            Look::Aborted(why) => {
                aborted = Some(why);
                Turned::End
            }
        })
    });
    // Whatever happened: nothing stays armed.
    let disarmed = fleet.disarm();
    followed.map_err(fail)?;
    disarmed.map_err(fail)?;
    let is_aborted = aborted.is_some();
    let report = report(&planned, &mut fleet, aborted).map_err(fail)?;
    print_json(&report)?;
    match is_aborted {
        true => Err(ExitCode::from(ABORTED)),
        false => Ok(()),
    }
}

/// What goes on in a network that is not ours, for as long as the standard input lasts.
struct Others {
    lines: Receiver<String>,
}

impl Others {
    /// Whether `go` came before the end. Nothing else is understood.
    fn await_go(&self) -> bool {
        self.lines.iter().any(|line| {
            let is_go = line.trim() == "go";
            if !is_go {
                cli_io::stderr::tell(format_args!("weir: expected `go`\n"));
            }
            is_go
        })
    }
}

/// Why it comes to an early end.
#[derive(Debug, thiserror::Error)]
enum ControlError {
    /// A switch.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// `limits.time`.
    #[error(transparent)]
    Limit(#[from] LimitReached),
}

impl Activity for Others {
    type Error = ControlError;

    fn begin(&mut self) -> Result<(), ControlError> {
        // Who cannot read it has no use for it.
        let _unread = print("going\n");
        Ok(())
    }

    fn turn(&mut self, most: Duration) -> Result<ControlFlow<()>, ControlError> {
        match self.lines.recv_timeout(most) {
            Err(RecvTimeoutError::Disconnected) => Ok(ControlFlow::Break(())),
            Ok(_) | Err(RecvTimeoutError::Timeout) => Ok(ControlFlow::Continue(())),
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
    let mut lapsed = 0;
    for switch in &planned.plan.switches {
        lapsed += fleet.lapsed(&switch.name)?;
    }
    Ok(Report {
        lapsed,
        aborted,
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
