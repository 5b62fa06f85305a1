//! `weir between IF1 IF2`: inserts a wire with faults between two interfaces, and restores the interfaces afterwards.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use controller::experiment::prepare::{Record, WireEnds};
use controller::experiment::{Conditions, Planned, Switches};
use controller::progress::Progress;
use controller::scenario_run::ScenarioRun;
use controller::target::Kind;
use controller::{run_folder, scenario_run};
use nix::sys::signal::{SigSet, Signal};
use scenario::Scenario;
use scenario::model::topology::{HostAt, Side};
use testbeds::bed::Wiring;
use testbeds::edge::{self, Before, EdgeError, Keeper, Mark, Splice, TakenState};
use testbeds::net::Netlink;

use super::colour::stdout_colour;
use super::report_file::ReportFile;
use super::{ERROR, exit_code, fail, load, print, print_json, show};
use crate::cli;

/// Name of the hidden command that [`Keeper::start`] runs.
const KEEPER: &str = "keeper";

/// The scenario that runs if the user gives none: a wire without faults.
const JUST_A_WIRE: &str = "weir: 1\nname: wire\ntopology: {wire: [left, right]}\n";

/// Flag that a signal sets to end the wire.
static STOP: AtomicBool = AtomicBool::new(false);

/// Performs `weir between`: runs the wire until its end.
pub fn main(args: &cli::Between) -> ExitCode {
    run(args).unwrap_or_else(|code| code)
}

/// Performs the hidden command `keeper`: restores the interfaces when the process of the wire has ended.
pub fn keeper() -> ExitCode {
    match edge::keep() {
        Ok(()) => ExitCode::SUCCESS,
        // The process that reads the keeper's answer reports the rest.
        Err(EdgeError::NotBack(what)) => print_error(what),
        Err(error) => print_error(error),
    }
}

fn print_error(what: impl std::fmt::Display) -> ExitCode {
    cli_io::stderr::tell(format_args!("{what}\n"));
    ExitCode::from(ERROR)
}

fn run(args: &cli::Between) -> Result<ExitCode, ExitCode> {
    let planned = plan(args)?;
    let ends = Ends::from_args(args, &planned.scenario)?;
    // First, because other outputs may go into this folder.
    let out = args.out.as_deref();
    let _begun = out
        .map(|folder| run_folder::begin(folder, &planned.scenario))
        .transpose()
        .map_err(fail)?;
    let report = match &args.scenario {
        Some(_) => Some(ReportFile::open(&args.report)?),
        None => None,
    };
    listen().map_err(fail)?;
    let weir = Path::new(Conditions::ITSELF);
    let Taken {
        interfaces,
        keeper,
        marks,
    } = take(weir, ends).map_err(fail)?;
    let interfaces = interfaces.each_ref().map(String::as_str);
    let switches = Switches::default();
    let conditions = Conditions {
        wiring: Wiring::Veth,
        p4src: args.p4src.as_deref(),
        switches: &switches,
        record: Record::for_between(&planned.scenario),
        out: args.out.as_deref(),
        between: Some(WireEnds {
            interfaces,
            length: args.length,
            stop: &STOP,
        }),
        weir,
    };
    let mut progress = Progress::new(args.json);
    let result = scenario_run::run(&planned, conditions, &mut progress);
    // The switch has ended by now; the report can wait, the machines cannot.
    let back = keeper.finish();
    drop(marks);
    let shown = result
        .map_err(fail)
        .and_then(|result| write_results(args, &planned, &result, report));
    // The results are reported even if this fails.
    back.map_err(fail)?;
    shown
}

/// Prints the results of the wire's run, and writes them into the report and the run's folder.
fn write_results(
    args: &cli::Between,
    planned: &Planned,
    result: &ScenarioRun,
    report: Option<ReportFile>,
) -> Result<ExitCode, ExitCode> {
    if args.json {
        print_json(&scenario_run::json(planned, result))?;
    } else {
        print(scenario_run::show(planned, result, stdout_colour()))?;
    }
    let page = scenario_run::page(planned, result);
    if let Some(folder) = &args.out {
        let target = Kind::Embedded.to_string();
        run_folder::write(folder, &target, planned, result, &page).map_err(fail)?;
    }
    if let Some(report) = report {
        report.write(&page, args.json)?;
    }
    Ok(exit_code(result))
}

/// The two places between which the wire is inserted: two interfaces, or a host and the rest of the network.
enum Ends {
    Interfaces([String; 2]),
    /// A host, and which side of the wire (0 or 1) it is.
    Host(HostAt, usize),
}

impl Ends {
    /// Determines the ends from the command line, or else from the scenario.
    fn from_args(args: &cli::Between, scenario: &Scenario) -> Result<Ends, ExitCode> {
        let given = args.one.clone().zip(args.other.clone());
        match (given, scenario.topology.sides.as_slice()) {
            (Some((one, other)), []) => Ok(Ends::Interfaces([one, other])),
            (None, [Side::Interface(one), Side::Interface(other)]) => {
                Ok(Ends::Interfaces([one.clone(), other.clone()]))
            }
            (None, [Side::Host(host), Side::Network]) => Ok(Ends::Host(host.clone(), 0)),
            (None, [Side::Network, Side::Host(host)]) => Ok(Ends::Host(host.clone(), 1)),
            (Some(_), _) => Err(fail(format_args!(
                "{}: its `wire` names both sides: leave IF1 and IF2 out",
                scenario.file
            ))),
            (None, _) => Err(fail(format_args!(
                "{}: its `wire` does not name an interface or host: use `weir between IF1 IF2 --scenario FILE`, or sides such as `{{name: web, netns: web}}`",
                scenario.file
            ))),
        }
    }
}

/// The interfaces that the wire uses, with the keeper that will restore them.
struct Taken {
    interfaces: [String; 2],
    keeper: Keeper,
    marks: Vec<Mark>,
}

/// Gives the interfaces' original state to a keeper, which restores it later, and then takes them for the wire.
fn take(weir: &Path, ends: Ends) -> Result<Taken, EdgeError> {
    let netlink = Netlink::open()?;
    edge::check_loopback(&netlink)?;
    match ends {
        Ends::Interfaces(interfaces) => {
            let names = interfaces.each_ref().map(String::as_str);
            let (before, marks) = Before::read_pair(&netlink, names)?;
            let kept = TakenState {
                before: before.to_vec(),
                splice: None,
            };
            let keeper = Keeper::start(weir, KEEPER, &kept, &marks)?;
            for interface in &kept.before {
                interface.take(&netlink)?;
            }
            Ok(Taken {
                interfaces,
                keeper,
                marks: marks.into(),
            })
        }
        Ends::Host(host, side) => {
            let (splice, outer, mark) = Splice::find(&netlink, &host)?;
            let mut marks = vec![mark];
            let kept = TakenState {
                before: vec![outer.clone()],
                splice: Some(splice.clone()),
            };
            let keeper = Keeper::start(weir, KEEPER, &kept, &marks)?;
            let (near, mark) = splice.take(&netlink)?;
            marks.push(mark);
            for interface in [&outer, &near] {
                interface.take(&netlink)?;
            }
            let mut interfaces = splice.ends().map(str::to_owned);
            if side == 1 {
                interfaces.reverse();
            }
            Ok(Taken {
                interfaces,
                keeper,
                marks,
            })
        }
    }
}

fn plan(args: &cli::Between) -> Result<Planned, ExitCode> {
    let scenario = match &args.scenario {
        Some(file) => load(file, &args.protocols.protocols)?,
        None => builtin()?,
    };
    let (name, text) = (scenario.file.clone(), scenario.text.clone());
    if !scenario.topology.wire {
        return Err(fail(format_args!(
            "{name}: its topology is a whole network: use `weir run`; a wire between two machines is `topology: {{wire: [left, right]}}`"
        )));
    }
    let scenario = scenario.with_captures(args.captures);
    Planned::new(scenario, Kind::Embedded).map_err(|diagnostics| show(&diagnostics, &name, &text))
}

fn builtin() -> Result<Scenario, ExitCode> {
    scenario::load("built-in", JUST_A_WIRE)
        .map_err(|diagnostics| show(&diagnostics, "built-in", JUST_A_WIRE))
}

/// Makes SIGINT, SIGTERM and SIGHUP end the wire cleanly: one thread waits for them; all other threads, and the processes that
/// they start, do not receive them.
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
