//! Arguments of the subcommands of `weir p4`, as clap parses them.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Subcommands of `weir p4`.
#[derive(Debug, Subcommand)]
pub enum P4 {
    /// Report a program's errors, reads of headers that may be invalid, and reads of values that are never set
    Check(P4File),
    /// Print a program's P4Info
    Info(P4Info),
    /// Print a program with its included files as one text; #line directives keep the positions
    Preprocess(P4File),
    /// Format source files in place, in the style of this repository; comments stay
    Fmt(P4Fmt),
    /// Print a program's parsers and controls as a graph in DOT, for Graphviz: `| dot -Tsvg`
    Graph(P4Graph),
    /// Print a lower bound of the resources that a TNA program needs on a Tofino
    Resources(P4Resources),
    #[cfg(feature = "testbed")]
    /// Send packets through a program, and print the packets that leave it
    Run(P4Run),
}

/// Arguments of `weir p4 graph`.
#[derive(Debug, Args)]
pub struct P4Graph {
    /// The P4 program to draw.
    #[command(flatten)]
    pub source: P4File,
    /// Path of the graph; without, the standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[cfg(feature = "testbed")]
/// Arguments of `weir p4 run`.
#[derive(Debug, Args)]
pub struct P4Run {
    /// The P4 program to run.
    #[command(flatten)]
    pub source: P4File,
    /// A packet in hexadecimal digits; may be repeated
    #[arg(long = "packet", required = true, value_name = "HEX", value_parser = hexadecimal)]
    pub packets: Vec<Hex>,
    /// Port at which the packets arrive
    #[arg(long, default_value_t = 0)]
    pub port: u32,
    /// Path of the table entries in JSON: [{"table": "ingress.t", "key": {"hdr.x.a": 1}, "action": "ingress.a", "params": {}}],
    /// or the `entries.json` that `weir plan FILE --emit-p4 FOLDER` writes
    #[arg(long, value_name = "FILE")]
    pub entries: Option<PathBuf>,
    /// Explain each packet: states, headers, tables, entries, actions, externs, verdict
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "text", value_name = "FORM")]
    pub trace: Option<softswitch::trace::Form>,
    /// Executor of the program; both: exit code 1 if their results differ. --trace and --poison always use the reference
    #[arg(long, value_enum, default_value_t = Executor::Fast)]
    pub executor: Executor,
    /// Fill undefined values with a pattern of this seed instead of zeroes, and report each that affects a decision
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "1", value_name = "SEED")]
    pub poison: Option<u64>,
}

#[cfg(feature = "testbed")]
/// The executors that can run a P4 program.
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
/// Bytes of a packet, written in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hex(pub Vec<u8>);

#[cfg(feature = "testbed")]
fn hexadecimal(text: &str) -> Result<Hex, String> {
    softswitch::p4_run::bytes(text).map(Hex)
}

/// Arguments of `weir p4 info`.
#[derive(Debug, Args)]
pub struct P4Info {
    /// The P4 program whose P4Info is printed.
    #[command(flatten)]
    pub source: P4File,
    /// Format of the P4Info message
    #[arg(long, value_enum, default_value_t = MessageFormat::Text)]
    pub format: MessageFormat,
}

/// Format in which a protobuf message is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MessageFormat {
    /// Protobuf's text format
    Text,
    /// Protobuf's binary format
    Binary,
}

/// When diagnostics and traces are colored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Arguments of `weir p4 fmt`.
#[derive(Debug, Args)]
pub struct P4Fmt {
    /// Paths of the sources; `-` formats the standard input to the standard output
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Change nothing; print unformatted files, with exit code 1 if there are any
    #[arg(long)]
    pub check: bool,
}

/// A Tofino chip, by its number of stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Chip {
    /// 12 stages
    Tofino,
    /// 20 stages
    Tofino2,
}

/// Arguments of `weir p4 resources`.
#[derive(Debug, Args)]
pub struct P4Resources {
    /// The P4 program whose resources are estimated.
    #[command(flatten)]
    pub source: P4File,
    /// The chip; without, the one whose declarations the program includes
    #[arg(long, value_enum)]
    pub target: Option<Chip>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
}

/// Arguments of several subcommands: a P4 program, and how its source is preprocessed.
#[derive(Debug, Args)]
pub struct P4File {
    /// Path of the program; `-` is the standard input, with includes relative to the current folder
    pub file: PathBuf,
    /// Folder in which #include looks for files; may be repeated
    #[arg(short = 'I', value_name = "FOLDER")]
    pub include: Vec<PathBuf>,
    /// Macro to define, as NAME (1) or NAME=VALUE; may be repeated
    #[arg(short = 'D', value_name = "MACRO")]
    pub define: Vec<String>,
    /// When diagnostics and traces are colored
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub color: Color,
}
