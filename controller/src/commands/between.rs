//! `weir between IF1 IF2`: a wire with faults in it, and the keeper that puts the interfaces back.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use controller::experiment::{Between, Conditions, Planned, Record, Switches, write_captures};
use controller::progress::Progress;
use controller::target::Kind;
use controller::{run_folder, scenario_run};
use nix::sys::signal::{SigSet, Signal};
use scenario::Scenario;
use testbeds::bed::Wiring;
use testbeds::edge::{self, Before, Keeper};
use testbeds::net::Netlink;

use super::p4::stdout_colour;
use super::report_file::ReportFile;
use super::{exit_code, fail, load, print, print_json, show};
use crate::cli;

/// The hidden command that [`Keeper::start`] runs.
const KEEPER: &str = "keeper";

/// What is run without a scenario.
const JUST_A_WIRE: &str = "weir: 1\nname: wire\ntopology: {wire: [left, right]}\n";

/// Set by a signal.
static STOP: AtomicBool = AtomicBool::new(false);

/// Runs a wire.
pub fn main(args: &cli::Between) -> ExitCode {
    run(args).unwrap_or_else(|code| code)
}

/// Puts interfaces back when the wire has ended.
pub fn keeper() -> ExitCode {
    match edge::keep() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(error),
    }
}

fn run(args: &cli::Between) -> Result<ExitCode, ExitCode> {
    let planned = plan(args.scenario.as_deref(), &args.protocols.protocols)?;
    let report = match &args.scenario {
        Some(_) => Some(ReportFile::open(&args.report)?),
        None => None,
    };
    if let Some(folder) = &args.pcap {
        std::fs::create_dir_all(folder)
            .map_err(|error| fail(format_args!("cannot make {}: {error}", folder.display())))?;
    }
    if let Some(folder) = &args.out {
        run_folder::begin(folder).map_err(fail)?;
    }
    listen().map_err(fail)?;
    let weir = Path::new(Conditions::ITSELF);
    let interfaces = [args.one.as_str(), args.other.as_str()];
    let netlink = Netlink::open().map_err(fail)?;
    let before = Before::of_pair(&netlink, interfaces).map_err(fail)?;
    // It knows how they were before anything is changed.
    let keeper = Keeper::start(weir, KEEPER, &before).map_err(fail)?;
    for interface in &before {
        interface.take(&netlink).map_err(fail)?;
    }
    let switches = Switches::default();
    let conditions = Conditions {
        wiring: Wiring::Veth,
        p4src: args.p4src.as_deref(),
        switches: &switches,
        record: Record::Faulting,
        out: None,
        between: Some(Between {
            interfaces,
            length: args.length,
            stop: &STOP,
        }),
        weir,
    };
    let mut progress = Progress::new(args.json);
    let result = scenario_run::run(&planned, conditions, &mut progress);
    // The switch has ended by now; what there is to say can wait, the machines cannot.
    keeper.finish().map_err(fail)?;
    let result = result.map_err(fail)?;
    if let Some(folder) = &args.pcap {
        write_captures(folder, &planned, &result.run).map_err(fail)?;
    }
    if args.json {
        print_json(&scenario_run::json(&result))?;
    } else {
        print(scenario_run::show(&planned, &result, stdout_colour()))?;
    }
    let page = scenario_run::page(&planned, &result).map_err(fail)?;
    if let Some(folder) = &args.out {
        let target = Kind::Embedded.to_string();
        run_folder::write(folder, &target, &planned, &result, &page).map_err(fail)?;
    }
    if let Some(report) = report {
        report.write(&page, args.json)?;
    }
    Ok(exit_code(&result))
}

fn plan(file: Option<&Path>, protocols: &[PathBuf]) -> Result<Planned, ExitCode> {
    let scenario = match file {
        Some(file) => load(file, protocols)?,
        None => builtin()?,
    };
    let (name, text) = (scenario.file.clone(), scenario.text.clone());
    if !scenario.topology.wire {
        return Err(fail(format_args!(
            "{name}: its topology is a network of its own, for `weir run`; between two machines it is `topology: {{wire: [left, right]}}`"
        )));
    }
    Planned::of(scenario, Kind::Embedded).map_err(|diagnostics| show(&diagnostics, &name, &text))
}

fn builtin() -> Result<Scenario, ExitCode> {
    scenario::load("built-in", JUST_A_WIRE)
        .map_err(|diagnostics| show(&diagnostics, "built-in", JUST_A_WIRE))
}

/// Has SIGINT, SIGTERM and SIGHUP end the wire in good order: one thread waits for them, all others, and the processes that
/// they start, do not get them.
fn listen() -> std::io::Result<()> {
    let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]
        .into_iter()
        .collect();
    signals.thread_block()?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            while signals.wait().is_err() {}
            STOP.store(true, Ordering::Relaxed);
        })?;
    Ok(())
}
