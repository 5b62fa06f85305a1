//! Arguments of `weir collectives plan`, as clap parses them.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use collectives::Algorithm;
use collectives::cost::choose::Numbering;
use controller::collectives::{CollectiveKind, InsideBy, NUMBERINGS, algorithms, words};
use scenario::units::Dimension;

/// Subcommands of `weir collectives`.
#[derive(Debug, Subcommand)]
pub enum Collectives {
    /// Find the fastest algorithm for a collective of a network's hosts; predict its time, and the bytes on each link
    Plan(Plan),
}

/// Arguments of `weir collectives plan`.
#[derive(Debug, Args)]
#[command(after_help = "The cost model: docs/rdma.md, \"What a schedule costs\".")]
pub struct Plan {
    /// Network: a scenario or its topology (YAML), GraphML, or NetworkX's node-link JSON; `-` is the standard input
    pub topology: PathBuf,
    /// The collective
    #[arg(
        long,
        default_value = "all_reduce",
        value_name = "COLLECTIVE",
        value_enum
    )]
    pub collective: CollectiveKind,
    /// Size of the vector, of all shards together (all_gather), or of what one rank has for all others (all_to_all)
    #[arg(long, default_value = "64MB", value_name = "SIZE", value_parser = size)]
    pub size: u64,
    /// Hosts of the ranks, in the order of the ranks; `*` matches any characters. Without, all hosts in the file's order
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub hosts: Vec<String>,
    /// Number of ranks, on the first hosts; without, all
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks: Option<u32>,
    /// Number of GPUs of each host, each of them a rank; without, each host is one rank
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub gpus: Option<u32>,
    /// Number of NICs of each host, which its ranks share; without, its number of links. With more NICs than links, each link
    /// exists several times
    #[arg(long, value_name = "NUMBER", requires = "gpus", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub nics: Option<u32>,
    /// Interconnect of the ranks of a host
    #[arg(long, value_enum, default_value_t = Inside::Nvlink, requires = "gpus", value_name = "KIND")]
    pub inside: Inside,
    /// Root of broadcast and reduce
    #[arg(long, default_value_t = 0, value_name = "RANK")]
    pub root: usize,
    /// Cost of a message at its rank, independent of its length, such as 200ns; at most 1s
    #[arg(long, default_value = "0s", value_name = "TIME", value_parser = time)]
    pub message: Duration,
    /// The only algorithm to consider
    #[arg(
        long,
        value_name = "ALGORITHM",
        value_parser = PossibleValuesParser::new(words()).map(|word| Only(algorithms(&word)))
    )]
    pub algorithm: Option<Only>,
    /// The only numbering of the ranks to consider
    #[arg(
        long,
        value_name = "NUMBERS",
        value_parser = PossibleValuesParser::new(NUMBERINGS.map(|(word, _)| word)).map(|word| numbering(&word))
    )]
    pub numbering: Option<Numbering>,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// Path of an SVG drawing: the network, the utilization of its links, and when each rank sends
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// Algorithms that one word of the command line names; `hierarchical` names several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Only(pub Vec<Algorithm>);

/// How the ranks of one host are connected with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Inside {
    /// NVLink of an H100; GPUs and NICs in PCIe 5.0 slots
    Nvlink,
    /// PCIe 4.0 only
    Pcie,
    /// Shared memory that copies 80 Gbit/s in total
    Memory,
}

impl From<Inside> for InsideBy {
    fn from(inside: Inside) -> InsideBy {
        match inside {
            Inside::Nvlink => InsideBy::NvLink,
            Inside::Pcie => InsideBy::Pcie,
            Inside::Memory => InsideBy::Memory,
        }
    }
}

// clap rejects other words.
fn numbering(word: &str) -> Numbering {
    let mut all = NUMBERINGS.into_iter();
    let found = all.find(|(of, _)| *of == word);
    found.map_or(Numbering::Plain, |(_, numbering)| numbering)
}

/// Maximum size of a collective's data in bytes.
const LARGEST: u64 = 1 << 40;

fn size(text: &str) -> Result<u64, String> {
    let bytes = super::quantity(text, Dimension::Size)?;
    match bytes {
        1..=LARGEST => Ok(bytes),
        _ => Err(format!("{bytes}B is out of range: expected 1B to 1.1TB")),
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let ns = super::quantity(text, Dimension::Duration)?;
    match Duration::from_nanos(ns) {
        time if time <= Duration::from_secs(1) => Ok(time),
        _ => Err("the cost of a message is at most 1s".to_owned()),
    }
}
