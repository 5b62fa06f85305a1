//! Arguments of `weir collectives`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use collectives::Algorithm;
use collectives::cost::choose::Numbering;
use controller::collectives::{CollectiveKind, InsideBy, NUMBERINGS, algorithms, words};
use scenario::units::Dimension;

/// Collectives of hosts.
#[derive(Debug, Subcommand)]
pub enum Collectives {
    /// Say by which algorithm a collective of a network's hosts is the fastest, how long it takes, and what each link carries
    Plan(Plan),
}

/// How long a collective takes.
#[derive(Debug, Args)]
#[command(after_help = "What is modelled: docs/rdma.md, \"What a schedule costs\".")]
pub struct Plan {
    /// The network: a scenario or its topology (YAML), GraphML, or NetworkX's node-link JSON; `-` is the standard input
    pub topology: PathBuf,
    /// Which collective
    #[arg(
        long,
        default_value = "all_reduce",
        value_name = "COLLECTIVE",
        value_enum
    )]
    pub collective: CollectiveKind,
    /// Of the vector; of all shards together; of what a rank has for all others
    #[arg(long, default_value = "64MB", value_name = "SIZE", value_parser = size)]
    pub size: u64,
    /// Hosts that take part, in the order of ranks; a `*` stands for any letters. Without: all, in the file's order
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub hosts: Vec<String>,
    /// Only so many ranks, on the first hosts
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks: Option<u32>,
    /// Ranks of each host, a GPU each; without, a host is a rank
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub gpus: Option<u32>,
    /// NICs of each host, which its ranks share; without, as many as it has links. Of more than links each link is there several
    /// times
    #[arg(long, value_name = "NUMBER", requires = "gpus", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub nics: Option<u32>,
    /// What joins the ranks of a host
    #[arg(long, value_enum, default_value_t = Inside::Nvlink, requires = "gpus", value_name = "KIND")]
    pub inside: Inside,
    /// The rank that has it, or gets it
    #[arg(long, default_value_t = 0, value_name = "RANK")]
    pub root: usize,
    /// What a message costs a rank, whatever its length, such as 200ns
    #[arg(long, default_value = "0s", value_name = "TIME", value_parser = time)]
    pub message: Duration,
    /// This algorithm alone
    #[arg(
        long,
        value_name = "ALGORITHM",
        value_parser = PossibleValuesParser::new(words()).map(|word| Only(algorithms(&word)))
    )]
    pub algorithm: Option<Only>,
    /// Ranks numbered so alone
    #[arg(
        long,
        value_name = "NUMBERS",
        value_parser = PossibleValuesParser::new(NUMBERINGS.map(|(word, _)| word)).map(|word| numbering(&word))
    )]
    pub numbering: Option<Numbering>,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// Draw the network, how full its links are, and who sends when, into this SVG file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// Algorithms of one word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Only(pub Vec<Algorithm>);

/// What joins the ranks of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Inside {
    /// NVLink of an H100; GPUs and NICs in PCIe 5.0 slots
    Nvlink,
    /// PCIe 4.0 alone
    Pcie,
    /// A memory that copies 80 Gbit/s altogether
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

// clap takes no other words.
fn numbering(word: &str) -> Numbering {
    let mut all = NUMBERINGS.into_iter();
    let found = all.find(|(of, _)| *of == word);
    found.map_or(Numbering::Plain, |(_, numbering)| numbering)
}

/// No collective is larger.
const LARGEST: u64 = 1 << 40;

fn size(text: &str) -> Result<u64, String> {
    let bytes = super::quantity(text, Dimension::Size)?;
    match bytes {
        1..=LARGEST => Ok(bytes),
        _ => Err("1B to 1.1TB are planned for".to_owned()),
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let ns = super::quantity(text, Dimension::Duration)?;
    match Duration::from_nanos(ns) {
        time if time <= Duration::from_secs(1) => Ok(time),
        _ => Err("a message costs at most a second".to_owned()),
    }
}
