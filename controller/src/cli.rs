//! The command line: arguments, and nothing else.

pub mod collectives;
#[cfg(feature = "testbed")]
pub mod job;
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

/// Aggregate gradients inside the network; inject declared faults into exactly the chosen flows, and prove it.
#[derive(Debug, Parser)]
#[command(name = "weir", version, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
    /// Say more on standard error: -v what is going on, -vv also what is of use to developers; RUST_LOG=FILTER, such as
    /// softswitch=debug, overrides it. Without: warnings
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

const EXIT_CODES: &str = "Exit codes: 0 passed, 1 an expectation failed, 2 could not run, 3 aborted by a condition of the scenario.";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    #[cfg(feature = "testbed")]
    /// Train a model through the switch, with and without aggregation, under faults, and compare
    Demo(Demo),
    #[cfg(feature = "testbed")]
    /// Run a scenario file and prove what its faults did
    Run(Run),
    #[cfg(feature = "testbed")]
    /// Be a wire between two interfaces that exist, with a scenario's faults in it. Ctrl-C ends it; every ending puts the
    /// interfaces back
    Between(Between),
    #[cfg(feature = "testbed")]
    /// Judge a run again from the folder that `run --out` wrote; with --live, carry it out again and compare what was hit
    Replay(Replay),
    /// Carry a scenario out on switches that are running already, and tell what fired
    Control(Control),
    #[cfg(feature = "testbed")]
    /// Admit jobs whose values a switch sums that runs already, and take back what they have
    #[command(subcommand)]
    Job(job::Job),
    /// Say what hangs where, and why: this host, switches, ranks. Changes nothing
    Doctor(Doctor),
    /// Check scenario files, alone and against each other; touches no network
    Validate(Validate),
    /// Show what a scenario file would do: injection points, entries, timeline; touches no network
    Plan(Plan),
    /// Say which switches sum which workers' gradients in a network, and what every worker can send; touches no network
    Route(route::Route),
    /// Say how long collectives of a network's hosts take; touches no network
    #[command(subcommand)]
    Collectives(collectives::Collectives),
    /// Say how long a scenario's training takes, or sums of its job, in virtual time; touches no network
    Simulate(simulate::Simulate),
    #[cfg(feature = "testbed")]
    /// Start the embedded software switch alone
    Switch(softswitch::cli::Args),
    /// Look at a P4 program
    #[command(subcommand)]
    P4(P4),
    /// Print the JSON Schema of scenario files, for editors
    Schema {
        /// Print the reference for people instead, in Markdown
        #[arg(long)]
        reference: bool,
        /// Print the schema of workload files
        #[arg(long, conflicts_with = "reference")]
        workload: bool,
    },
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a folder
    Man {
        /// Folder, made if missing
        folder: PathBuf,
    },
    /// A worker or parameter server (started by `demo` and `run`)
    #[command(hide = true)]
    #[command(subcommand)]
    Agent(host_agent::agent::AgentCommand),
    #[cfg(feature = "testbed")]
    /// Puts interfaces back when `between` has ended (started by it)
    #[command(hide = true)]
    Keeper,
    #[cfg(feature = "testbed")]
    /// A client of a workload (started by `run`)
    #[command(hide = true)]
    Client(testbeds::redis::ClientArgs),
}

#[cfg(feature = "testbed")]
/// How hosts and switches are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Links {
    /// Virtual Ethernet between network namespaces
    Veth,
    /// Sockets between processes: needs no namespaces
    Memory,
}

#[cfg(feature = "testbed")]
/// `weir demo`
#[derive(Debug, Args)]
pub struct Demo {
    /// How hosts and switches are connected
    #[arg(long, value_enum, default_value_t = Links::Veth)]
    pub links: Links,
    /// Seed of everything: the model, the batches, the faults
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Iterations of training; with fewer than 15 neither accuracy nor faults reach the goals that the demo checks
    #[arg(long, default_value_t = 30,
        value_parser = clap::value_parser!(u32).range(i64::from(controller::demo::MIN_ITERATIONS)..=10_000))]
    pub iterations: u32,
    /// Where the report goes
    #[arg(long, default_value = "weir-demo.html")]
    pub report: PathBuf,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
    /// Use the P4 text of this folder instead of the built-in one
    #[arg(long, value_name = "FOLDER")]
    pub p4src: Option<PathBuf>,
}

#[cfg(feature = "testbed")]
/// `weir run`
#[derive(Debug, Args)]
pub struct Run {
    /// The scenario; `-` is the standard input
    pub file: PathBuf,
    /// Where the report goes; without it weir-run.html, or the run's folder if there is one
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
    /// Write all of the run into this folder: events, captures with comments, reports, evidence for `weir replay`, and what
    /// the workload's commands write, as NAME.stdout and NAME.stderr, while they do
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Which frames the run keeps, in place of what `captures` of the scenario says
    #[arg(long, value_name = "WHICH",
        value_parser = PossibleValuesParser::new(Captures::WORDS).try_map(|word| word.parse::<Captures>()))]
    pub captures: Option<Captures>,
    /// Use the P4 text of this folder instead of the built-in one
    #[arg(long, value_name = "FOLDER")]
    pub p4src: Option<PathBuf>,
    /// Which switches
    #[command(flatten)]
    pub target: Target,
    /// Protocols of one's own
    #[command(flatten)]
    pub protocols: Protocols,
}

#[cfg(feature = "testbed")]
/// `weir replay`
#[derive(Debug, Args)]
pub struct Replay {
    /// The folder of the run
    pub run: PathBuf,
    /// Carry the scenario out again, with this folder for the new run, and compare which packets each fault hit
    #[arg(long, value_name = "FOLDER")]
    pub live: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
    /// Protocols of one's own that the run had
    #[command(flatten)]
    pub protocols: Protocols,
}

/// Protocols of one's own.
#[derive(Debug, Args)]
pub struct Protocols {
    /// Let filters know the protocols of this folder's *.yaml (docs/protocols.md), may be repeated
    #[arg(long, value_name = "FOLDER")]
    pub protocols: Vec<PathBuf>,
}

#[cfg(feature = "testbed")]
/// `weir between`
#[derive(Debug, Args)]
pub struct Between {
    /// The interface of the first side that the scenario's `wire` names; without both, the scenario says what its sides are
    #[arg(requires = "other", required_unless_present = "scenario")]
    pub one: Option<String>,
    /// The interface of the second side
    pub other: Option<String>,
    /// The faults in the wire; `-` is the standard input. Without: just a wire, and what passed it
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// End after so long, such as 600s, instead of at Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub length: Option<std::time::Duration>,
    /// Where the report of a scenario goes
    #[arg(long, default_value = "weir-between.html")]
    pub report: PathBuf,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
    /// Protocols of the user's own
    #[command(flatten)]
    pub protocols: Protocols,
    /// Write all of the run into this folder: events, captures with comments, reports, evidence for `weir replay`; needs a
    /// scenario
    #[arg(long, value_name = "FOLDER", requires = "scenario")]
    pub out: Option<PathBuf>,
    /// Which frames the run keeps, in place of what `captures` of the scenario says; needs a scenario
    #[arg(long, value_name = "WHICH", requires = "scenario",
        value_parser = PossibleValuesParser::new(Captures::WORDS).try_map(|word| word.parse::<Captures>()))]
    pub captures: Option<Captures>,
    /// Use the P4 text of this folder instead of the built-in one
    #[arg(long, value_name = "FOLDER")]
    pub p4src: Option<PathBuf>,
}

/// A quantity in its dimension's smallest unit, or why it is none and what to write.
fn quantity(text: &str, dimension: scenario::units::Dimension) -> Result<u64, String> {
    scenario::units::parse(text, dimension).map_err(|error| match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    })
}

fn duration(text: &str) -> Result<std::time::Duration, String> {
    match quantity(text, scenario::units::Dimension::Duration)? {
        0 => Err("it is longer than 0s; found 0s".to_owned()),
        ns => Ok(std::time::Duration::from_nanos(ns)),
    }
}

/// Which switches run, and where the programs are that they take.
#[derive(Debug, Args)]
pub struct Target {
    /// What the switches are
    #[arg(long = "target", value_enum, default_value_t = Kind::Embedded, value_name = "KIND")]
    pub kind: Kind,
    /// Look for BMv2's and p4c's programs in this folder before the PATH, may be repeated
    #[arg(long, value_name = "FOLDER")]
    pub bmv2_dir: Vec<PathBuf>,
    /// Call p4c even for a program that it has compiled before, and keep nothing in the user's cache
    #[arg(long)]
    pub no_p4c_cache: bool,
    /// Write the logs of BMv2's switches into this folder
    #[arg(long, value_name = "FOLDER")]
    pub bmv2_log: Option<PathBuf>,
}

/// `weir control`
#[derive(Debug, Args)]
pub struct Control {
    /// The scenario
    pub file: PathBuf,
    /// Where a switch of the scenario is, once for each: P4Runtime's address, psa_switch's Thrift. Device ids count from 1
    #[arg(long = "switch", required = true, value_name = "NAME=IP:PORT", value_parser = switch_address)]
    pub switches: Vec<(String, String)>,
    /// Use the P4 text of this folder instead of the built-in one
    #[arg(long, value_name = "FOLDER")]
    pub p4src: Option<PathBuf>,
    /// Which switches
    #[command(flatten)]
    pub target: Target,
    /// Protocols of one's own
    #[command(flatten)]
    pub protocols: Protocols,
}

/// `weir doctor`
#[derive(Debug, Args)]
pub struct Doctor {
    /// Look at this host too, for a rank on this interface. Without --switch and --rank it is looked at anyway: WEIR_INTERFACE,
    /// or eth0
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,
    /// How frames are to come and go there: auto, rings or pnet; WEIR_IO without
    #[arg(long, value_name = "WAY")]
    pub io: Option<host_agent::frames::Io>,
    /// How many values a frame of the job has
    #[arg(long, default_value_t = wire::VALUES_PER_PACKET as u32, value_name = "NUMBER",
        value_parser = clap::value_parser!(u32).range(1..=16_384))]
    pub values: u32,
    /// Another rank that this host has to reach, may be repeated
    #[arg(long = "peer", value_name = "IP|MAC/IP")]
    pub peers: Vec<host_agent::doctor::Peer>,
    /// A switch that sums, by P4Runtime, may be repeated. Device ids count from 1 where none is said
    #[arg(long = "switch", value_name = "NAME=IP:PORT[/ID]", value_parser = device)]
    pub switches: Vec<Device>,
    /// Where a rank, worker or server shows its metrics (WEIR_METRICS, --metrics), may be repeated
    #[arg(long = "rank", value_name = "IP:PORT|unix:PATH")]
    pub ranks: Vec<host_agent::metrics::Address>,
    /// What has not moved for so long hangs
    #[arg(long = "for", default_value = "1s", value_name = "TIME", value_parser = duration)]
    pub apart: std::time::Duration,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// A switch, where it is, and which of those there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// `host:port`.
    pub address: String,
    /// Its id, if it was said.
    pub id: Option<u64>,
}

fn device(text: &str) -> Result<Device, String> {
    let (at, id) = match text.rsplit_once('/') {
        Some((at, id)) => {
            let wrong = || format!("`{id}` is no device id: ids are numbers");
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
        return Err("an IPv6 address stands in brackets, as in s1=[::1]:9559".to_owned());
    }
    match port.parse::<u16>() {
        Ok(port) if port > 0 => Ok((name.to_owned(), format!("{host}:{port}"))),
        _ => Err(format!("`{port}` is no port: ports are 1 to 65535")),
    }
}

impl Target {
    /// A kind of switch, found where it is to be found.
    #[cfg(feature = "testbed")]
    pub fn of(kind: Kind) -> Target {
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

    /// The same where the switches run already: only p4c is needed.
    pub fn switches_elsewhere(&self) -> Result<Switches, MissingTool> {
        let tools = self.tools();
        controller::target::bmv2::check_compiler(self.kind, &tools)?;
        Ok(Switches {
            kind: self.kind,
            tools,
            logs: None,
        })
    }

    /// The same, once it is known that the programs are there.
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

/// `weir validate`
#[derive(Debug, Args)]
pub struct Validate {
    /// The scenarios; `-` is the standard input
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Protocols of one's own
    #[command(flatten)]
    pub protocols: Protocols,
}

/// `weir plan`
#[derive(Debug, Args)]
pub struct Plan {
    /// The scenario; `-` is the standard input
    pub file: PathBuf,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// Print hosts, addresses, links and ports instead, as JSON
    #[arg(long)]
    pub topology: bool,
    /// Write the generated P4 programs, and the entries of their tables, into this folder
    #[arg(long, value_name = "FOLDER")]
    pub emit_p4: Option<PathBuf>,
    /// Also say what it would take to put it in the place of this one on running switches: whether only entries change, and
    /// which faults go on
    #[arg(long, value_name = "OLD", conflicts_with_all = ["topology", "emit_p4"])]
    pub over: Option<PathBuf>,
    /// Scenarios that run at the same time on switches of the same names: all are planned together, so that what they take of
    /// a switch adds up, and rules for the same packets stand on two switches or are refused
    #[arg(long = "with", value_name = "FILE", conflicts_with = "over")]
    pub with: Vec<PathBuf>,
    /// Which switches the plan is made for; of a Tofino it also says what the programs take, at least
    #[arg(long, value_enum, default_value_t = PlanFor::Embedded, value_name = "KIND")]
    pub target: PlanFor,
    /// Protocols of one's own
    #[command(flatten)]
    pub protocols: Protocols,
}

/// What a plan can be made for: more than what can be started here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum PlanFor {
    /// The software switch in this program
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

/// `weir p4`
#[derive(Debug, Subcommand)]
pub enum P4 {
    /// Check a program: its errors, and reads of headers that may be invalid and of values that nothing sets
    Check(P4File),
    /// Print a program's P4Info
    Info(P4Info),
    /// Print a program and all that it includes as one text; #line keeps the places
    Preprocess(P4File),
    /// Lay a source file out in the house style, in place; comments stay
    Fmt(P4Fmt),
    /// Write a program's parsers and controls as a graph in DOT, for Graphviz: `| dot -Tsvg`
    Graph(P4Graph),
    /// Say what a TNA program takes of a Tofino, at least
    Resources(P4Resources),
    #[cfg(feature = "testbed")]
    /// Send packets through a program and say what becomes of them
    Run(P4Run),
}

/// `weir p4 graph`
#[derive(Debug, Args)]
pub struct P4Graph {
    /// The program
    #[command(flatten)]
    pub source: P4File,
    /// Where to write it; to the standard output otherwise
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[cfg(feature = "testbed")]
/// `weir p4 run`
#[derive(Debug, Args)]
pub struct P4Run {
    /// The program
    #[command(flatten)]
    pub source: P4File,
    /// A packet in hexadecimal, may be repeated
    #[arg(long = "packet", required = true, value_name = "HEX", value_parser = hexadecimal)]
    pub packets: Vec<Hex>,
    /// The port at which packets come in
    #[arg(long, default_value_t = 0)]
    pub port: u32,
    /// Table entries in JSON: [{"table": "ingress.t", "key": {"hdr.x.a": 1}, "action": "ingress.a", "params": {}}], or the
    /// `entries.json` that `weir plan FILE --emit-p4 FOLDER` writes
    #[arg(long, value_name = "FILE")]
    pub entries: Option<PathBuf>,
    /// Explain each packet: states, headers, tables, entries, actions, externs, verdict
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "text", value_name = "FORM")]
    pub trace: Option<softswitch::trace::Form>,
    /// What runs the program: a register machine, a plain interpreter, or both, with exit code 1 where they differ. --trace and
    /// --poison always take the interpreter
    #[arg(long, value_enum, default_value_t = Executor::Fast)]
    pub executor: Executor,
    /// Fill undefined values with a pattern of this seed instead of zeroes, and say which of them decide anything
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "1", value_name = "SEED")]
    pub poison: Option<u64>,
}

#[cfg(feature = "testbed")]
/// What runs a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Executor {
    /// A register machine
    Fast,
    /// A plain interpreter
    Reference,
    /// Both, block by block
    Both,
}

#[cfg(feature = "testbed")]
/// Bytes written in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hex(pub Vec<u8>);

#[cfg(feature = "testbed")]
fn hexadecimal(text: &str) -> Result<Hex, String> {
    softswitch::p4_run::bytes(text).map(Hex)
}

/// `weir p4 info`
#[derive(Debug, Args)]
pub struct P4Info {
    /// The program
    #[command(flatten)]
    pub source: P4File,
    /// How the message is written
    #[arg(long, value_enum, default_value_t = MessageFormat::Text)]
    pub format: MessageFormat,
}

/// How a protobuf message is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MessageFormat {
    /// Protobuf's text format
    Text,
    /// Protobuf's binary format
    Binary,
}

/// When to colour diagnostics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// `weir p4 fmt`
#[derive(Debug, Args)]
pub struct P4Fmt {
    /// The sources; `-` is the standard input, laid out on the standard output
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Change nothing; fail if a file is not laid out so
    #[arg(long)]
    pub check: bool,
}

/// A Tofino.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Chip {
    /// 12 stages
    Tofino,
    /// 20 stages
    Tofino2,
}

/// `weir p4 resources`
#[derive(Debug, Args)]
pub struct P4Resources {
    /// The program
    #[command(flatten)]
    pub source: P4File,
    /// Which chip; by default the one that the program includes the declarations of
    #[arg(long, value_enum)]
    pub target: Option<Chip>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
}

/// A P4 source and how to preprocess it.
#[derive(Debug, Args)]
pub struct P4File {
    /// The program; `-` is the standard input, and includes are looked for in the current folder
    pub file: PathBuf,
    /// A folder for #include, may be repeated
    #[arg(short = 'I', value_name = "FOLDER")]
    pub include: Vec<PathBuf>,
    /// A macro, NAME or NAME=VALUE, may be repeated
    #[arg(short = 'D', value_name = "MACRO")]
    pub define: Vec<String>,
    /// Whether diagnostics and traces are coloured
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub color: Color,
}
