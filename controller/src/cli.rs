//! The arguments of each command of `weir`, as clap parses them; their doc comments are the help texts.

pub mod collectives;
#[cfg(feature = "testbed")]
pub mod job;
pub mod p4;
pub mod route;
pub mod simulate;

use bmv2::cache::Cache;
use bmv2::tools::{MissingTool, Tools};
#[cfg(feature = "testbed")]
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use controller::experiment::Switches;
use controller::target::Kind;
#[cfg(feature = "testbed")]
use scenario::model::Captures;
use std::path::PathBuf;

/// Sum gradients inside the network; inject declared faults into exactly the chosen flows, and prove which packets they hit.
#[derive(Debug, Parser)]
#[command(name = "weir", version, after_help = EXIT_CODES)]
pub struct Cli {
    /// The command of `weir` to perform.
    #[command(subcommand)]
    pub command: Command,
    /// Log progress on standard error; -vv: also details for developers; without, only warnings. RUST_LOG=FILTER, such as
    /// softswitch=debug, overrides this flag
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

const EXIT_CODES: &str = "Exit codes: 0 passed, 1 an expectation failed, 2 could not run, 3 aborted by a condition of the scenario.";

/// The commands of `weir`, with their arguments.
#[derive(Debug, Subcommand)]
pub enum Command {
    #[cfg(feature = "testbed")]
    /// Train a model through a switch with and without aggregation and under faults, and compare the results
    Demo(Demo),
    #[cfg(feature = "testbed")]
    /// Run a scenario, and prove which packets its faults hit
    Run(Run),
    #[cfg(feature = "testbed")]
    /// Join two existing interfaces by a wire that injects a scenario's faults. Ctrl-C ends it. However it ends, the
    /// interfaces return to their original state
    Between(Between),
    #[cfg(feature = "testbed")]
    /// Judge a run again from the folder that `run --out` wrote; with --live, run it again and compare which packets were hit
    Replay(Replay),
    /// Run a scenario on switches that are already running, and report which faults fired
    Control(Control),
    #[cfg(feature = "testbed")]
    /// Admit jobs to a running switch that sums their values, and release what they hold
    #[command(subcommand)]
    Job(job::Job),
    /// Diagnose what hangs, where and why: this host, switches, ranks. Changes nothing
    Doctor(Doctor),
    /// Check scenario files, each alone and all together; uses no network
    Validate(Validate),
    /// Show what a scenario would do: injection points, table entries, timeline; uses no network
    Plan(Plan),
    /// Plan which switches sum which workers' gradients, and at what rate each worker can send; uses no network
    Route(route::Route),
    /// Predict how long collectives of a network's hosts take; uses no network
    #[command(subcommand)]
    Collectives(collectives::Collectives),
    /// Simulate a scenario's training, or all-reduces of its job, in virtual time; uses no network
    Simulate(simulate::Simulate),
    #[cfg(feature = "testbed")]
    /// Start the embedded software switch by itself
    Switch(softswitch::cli::Args),
    /// Check, print, format or run a P4 program
    #[command(subcommand)]
    P4(p4::P4),
    /// Print the JSON Schema of scenario files, for editors
    Schema {
        /// Print the reference in Markdown instead
        #[arg(long)]
        reference: bool,
        /// Print the schema of workload files instead
        #[arg(long, conflicts_with = "reference")]
        workload: bool,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages
    Man {
        /// Folder for the pages; created if it does not exist
        folder: PathBuf,
    },
    /// Run a worker or parameter server (started by `demo` and `run`)
    #[command(hide = true, subcommand)]
    Agent(host_agent::agent::AgentCommand),
    #[cfg(feature = "testbed")]
    /// Restore the interfaces when `between` has ended (started by it)
    #[command(hide = true)]
    Keeper,
    #[cfg(feature = "testbed")]
    /// Run a client of a workload (started by `run`)
    #[command(hide = true)]
    Client(testbeds::redis::ClientArgs),
}

#[cfg(feature = "testbed")]
/// How `weir demo` connects hosts and switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Links {
    /// Virtual Ethernet between network namespaces
    Veth,
    /// Sockets between processes, which need no namespaces
    Memory,
}

#[cfg(feature = "testbed")]
/// Arguments of `weir demo`.
#[derive(Debug, Args)]
pub struct Demo {
    /// Links between hosts and switches
    #[arg(long, value_enum, default_value_t = Links::Veth)]
    pub links: Links,
    /// Seed of every random decision: initial weights, batches, faults
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Number of training iterations; with fewer than 15, accuracy and faults miss the goals that the demo checks
    #[arg(long, default_value_t = 30,
        value_parser = clap::value_parser!(u32).range(i64::from(controller::demo::MIN_ITERATIONS)..=10_000))]
    pub iterations: u32,
    /// Path of the HTML report
    #[arg(long, default_value = "weir-demo.html")]
    pub report: PathBuf,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
    /// Folder whose P4 sources replace the built-in ones
    #[arg(long, value_name = "FOLDER")]
    pub p4src: Option<PathBuf>,
}

#[cfg(feature = "testbed")]
/// Arguments of `weir run`.
#[derive(Debug, Args)]
pub struct Run {
    /// Path of the scenario; `-` is the standard input
    pub file: PathBuf,
    /// Path of the HTML report; without, `report.html` in the folder of --out, or else weir-run.html
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
    /// Folder for everything that the run records: events, annotated captures, reports, evidence for `weir replay`, and the
    /// output of the workload's commands as NAME.stdout and NAME.stderr, written while they run
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Frames that the run keeps; overrides `captures` of the scenario
    #[arg(long, value_name = "WHICH",
        value_parser = PossibleValuesParser::new(Captures::WORDS).try_map(|word| word.parse::<Captures>()))]
    pub captures: Option<Captures>,
    /// Folder whose P4 sources replace the built-in ones
    #[arg(long, value_name = "FOLDER")]
    pub p4src: Option<PathBuf>,
    /// Kind of the switches that run the scenario, and where their programs are installed.
    #[command(flatten)]
    pub target: Target,
    /// Folders of protocols besides the built-in ones.
    #[command(flatten)]
    pub protocols: Protocols,
}

#[cfg(feature = "testbed")]
/// Arguments of `weir replay`.
#[derive(Debug, Args)]
pub struct Replay {
    /// Folder of the run, as `run --out` or `between --out` wrote it
    pub run: PathBuf,
    /// Run the scenario again, record the new run in this folder, and compare which packets each fault hit
    #[arg(long, value_name = "FOLDER")]
    pub live: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
    /// Folders of protocols that the run had besides the built-in ones.
    #[command(flatten)]
    pub protocols: Protocols,
}

/// Folders of protocols that a command reads besides the built-in ones.
#[derive(Debug, Args)]
pub struct Protocols {
    /// Folder whose *.yaml files define protocols for filters (docs/protocols.md); may be repeated
    #[arg(long, value_name = "FOLDER")]
    pub protocols: Vec<PathBuf>,
}

#[cfg(feature = "testbed")]
/// Arguments of `weir between`.
#[derive(Debug, Args)]
pub struct Between {
    /// Interface of the first side of the scenario's `wire`; without both interfaces, the scenario names them
    #[arg(requires = "other", required_unless_present = "scenario")]
    pub one: Option<String>,
    /// Interface of the second side
    pub other: Option<String>,
    /// Path of the scenario with the faults; `-` is the standard input. Without, the wire forwards and counts frames
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// Duration after which the wire ends, such as 600s; without, it ends at Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub length: Option<std::time::Duration>,
    /// Path of the scenario's HTML report
    #[arg(long, default_value = "weir-between.html")]
    pub report: PathBuf,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
    /// Folders of protocols besides the built-in ones.
    #[command(flatten)]
    pub protocols: Protocols,
    /// Folder for everything that the run records, as with `run --out`; requires --scenario
    #[arg(long, value_name = "FOLDER", requires = "scenario")]
    pub out: Option<PathBuf>,
    /// Frames that the run keeps; overrides `captures` of the scenario; requires --scenario
    #[arg(long, value_name = "WHICH", requires = "scenario",
        value_parser = PossibleValuesParser::new(Captures::WORDS).try_map(|word| word.parse::<Captures>()))]
    pub captures: Option<Captures>,
    /// Folder whose P4 sources replace the built-in ones
    #[arg(long, value_name = "FOLDER")]
    pub p4src: Option<PathBuf>,
}

/// Parses a quantity such as `10ms` or `1Gbit/s` into the smallest unit of its dimension (ns, bit/s, bytes).
fn quantity(text: &str, dimension: scenario::units::Dimension) -> Result<u64, String> {
    scenario::units::parse(text, dimension).map_err(|error| match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    })
}

fn duration(text: &str) -> Result<std::time::Duration, String> {
    match quantity(text, scenario::units::Dimension::Duration)? {
        0 => Err("0s is too short: write a duration longer than 0s, such as 10s".to_owned()),
        ns => Ok(std::time::Duration::from_nanos(ns)),
    }
}

/// Arguments of several commands: the kind of switches, and where the programs for this kind are installed.
#[derive(Debug, Args)]
pub struct Target {
    /// Kind of switch
    #[arg(long = "target", value_enum, default_value_t = Kind::Embedded, value_name = "KIND")]
    pub kind: Kind,
    /// Folder in which BMv2 and p4c are looked up before PATH; may be repeated
    #[arg(long, value_name = "FOLDER")]
    pub bmv2_dir: Vec<PathBuf>,
    /// Run p4c even for a program that is in the user's cache, and add nothing to the cache
    #[arg(long)]
    pub no_p4c_cache: bool,
    /// Folder for the logs of BMv2's switches
    #[arg(long, value_name = "FOLDER")]
    pub bmv2_log: Option<PathBuf>,
}

/// Arguments of `weir control`.
#[derive(Debug, Args)]
pub struct Control {
    /// Path of the scenario
    pub file: PathBuf,
    /// Name and P4Runtime address (psa_switch: Thrift) of a switch; repeat for each switch. Device ids count from 1
    #[arg(long = "switch", required = true, value_name = "NAME=IP:PORT", value_parser = switch_address)]
    pub switches: Vec<(String, String)>,
    /// Folder whose P4 sources replace the built-in ones
    #[arg(long, value_name = "FOLDER")]
    pub p4src: Option<PathBuf>,
    /// Kind of the switches on which the scenario runs, and where p4c is installed.
    #[command(flatten)]
    pub target: Target,
    /// Folders of protocols besides the built-in ones.
    #[command(flatten)]
    pub protocols: Protocols,
}

/// Arguments of `weir doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Interface of a rank on this host; checks the host too. Without --switch and --rank, the host is checked in any case: on
    /// WEIR_INTERFACE, or eth0
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,
    /// Packet I/O of that rank: auto, bundles, rings, calls or pnet; without, WEIR_IO, or auto
    #[arg(long, value_name = "BACKEND")]
    pub io: Option<host_agent::frames::Io>,
    /// Number of values in a frame of the job
    #[arg(long, default_value_t = wire::VALUES_PER_PACKET as u32, value_name = "NUMBER",
        value_parser = clap::value_parser!(u32).range(1..=16_384))]
    pub values: u32,
    /// Address of another rank that this host must reach; may be repeated
    #[arg(long = "peer", value_name = "IP|MAC/IP")]
    pub peers: Vec<host_agent::doctor::Peer>,
    /// Name and P4Runtime address of a switch that sums; may be repeated. Without ID, device ids count from 1
    #[arg(long = "switch", value_name = "NAME=IP:PORT[/ID]", value_parser = device)]
    pub switches: Vec<Device>,
    /// Address at which a rank, worker or server serves its metrics (WEIR_METRICS, --metrics); may be repeated
    #[arg(long = "rank", value_name = "IP:PORT|unix:PATH")]
    pub ranks: Vec<host_agent::metrics::Address>,
    /// Time between the two readings; whatever makes no progress in it is reported as hanging
    #[arg(long = "for", default_value = "1s", value_name = "TIME", value_parser = duration)]
    pub apart: std::time::Duration,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// A switch that `weir doctor` reads: its name, its P4Runtime server, and its device id on that server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Name of the switch.
    pub name: String,
    /// Address of the switch's P4Runtime server, as `host:port`.
    pub address: String,
    /// Device id of the switch on its server; `None` to try its position among the arguments, from 1, and then 0.
    pub id: Option<u64>,
}

fn device(text: &str) -> Result<Device, String> {
    let (at, id) = match text.rsplit_once('/') {
        Some((at, id)) => {
            let wrong = || format!("`{id}` is not a device id: expected a whole number, such as 1");
            (at, Some(id.parse().map_err(|_| wrong())?))
        }
        None => (text, None),
    };
    let (name, address) = switch_address(at)?;
    Ok(Device { name, address, id })
}

fn switch_address(text: &str) -> Result<(String, String), String> {
    let whole = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let parts = whole.and_then(|(name, at)| Some((name, at.rsplit_once(':')?)));
    let Some((name, (host, port))) = parts.filter(|(_, (host, _))| !host.is_empty()) else {
        return Err("expected NAME=IP:PORT, such as s1=127.0.0.1:9559".to_owned());
    };
    if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
        return Err("an IPv6 address needs brackets, as in s1=[::1]:9559".to_owned());
    }
    match port.parse::<u16>() {
        Ok(port) if port > 0 => Ok((name.to_owned(), format!("{host}:{port}"))),
        _ => Err(format!("`{port}` is not a port: expected 1 to 65535")),
    }
}

impl Target {
    /// Creates a target of this kind, for switches whose programs are looked up on PATH.
    #[cfg(feature = "testbed")]
    pub fn new(kind: Kind) -> Target {
        Target {
            kind,
            bmv2_dir: Vec::new(),
            no_p4c_cache: false,
            bmv2_log: None,
        }
    }

    fn tools(&self) -> Tools {
        let cache = if self.no_p4c_cache {
            None
        } else {
            Cache::of_user()
        };
        Tools::here(&self.bmv2_dir).caching(cache)
    }

    /// Kind and tools of switches that already run elsewhere; an error if p4c is needed but not installed.
    pub fn switches_elsewhere(&self) -> Result<Switches, MissingTool> {
        let tools = self.tools();
        controller::target::bmv2::check_compiler(self.kind, &tools)?;
        Ok(Switches {
            kind: self.kind,
            tools,
            logs: None,
        })
    }

    /// Kind and tools of switches that weir starts; an error if BMv2 or p4c is needed but not installed.
    #[cfg(feature = "testbed")]
    pub fn switches(&self) -> Result<Switches, MissingTool> {
        let tools = self.tools();
        controller::target::bmv2::check(self.kind, &tools)?;
        Ok(Switches {
            kind: self.kind,
            tools,
            logs: self.bmv2_log.clone(),
        })
    }
}

/// Arguments of `weir validate`.
#[derive(Debug, Args)]
pub struct Validate {
    /// Paths of the scenarios; `-` is the standard input
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Folders of protocols besides the built-in ones.
    #[command(flatten)]
    pub protocols: Protocols,
}

/// Arguments of `weir plan`.
#[derive(Debug, Args)]
pub struct Plan {
    /// Path of the scenario; `-` is the standard input
    pub file: PathBuf,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// Print hosts, addresses, links and ports as JSON instead
    #[arg(long)]
    pub topology: bool,
    /// Folder for the generated P4 programs and their table entries
    #[arg(long, value_name = "FOLDER")]
    pub emit_p4: Option<PathBuf>,
    /// Path of a running scenario; also shows what replaces it on running switches: whether only table entries change, and
    /// which faults continue
    #[arg(long, value_name = "OLD", conflicts_with_all = ["topology", "emit_p4"])]
    pub over: Option<PathBuf>,
    /// Path of a scenario that runs at the same time on switches of the same names; may be repeated. All are planned together:
    /// their resources on a switch add up, and rules for the same packets go to different switches or are refused
    #[arg(long = "with", value_name = "FILE", conflicts_with = "over")]
    pub with: Vec<PathBuf>,
    /// Kind of switch; for a Tofino, also shows a lower bound of the resources that the programs need
    #[arg(long, value_enum, default_value_t = PlanFor::Embedded, value_name = "KIND")]
    pub target: PlanFor,
    /// Folders of protocols besides the built-in ones.
    #[command(flatten)]
    pub protocols: Protocols,
}

/// Kinds of switches that `weir plan` can plan for, including those that weir cannot start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum PlanFor {
    /// The built-in software switch
    Embedded,
    /// BMv2 with v1model
    SimpleSwitchGrpc,
    /// BMv2 with PSA
    PsaSwitch,
    /// Tofino, with TNA
    Tofino,
    /// Tofino 2, with T2NA
    Tofino2,
}
