//! `weir-agent collectives-perf`: collective benchmarks with checks and with the options of nccl-tests, one process per rank.
//!
//! | file | contents |
//! |---|---|
//! | `element.rs` | element types, reductions, values with exact results |
//! | `sizes.rs` | the measured sizes, and their meaning for each collective |
//! | `meeting_point.rs` | the place where ranks meet |
//! | `run.rs` | a measuring rank |
//! | `table.rs` | output |

mod element;
mod meeting_point;
mod run;
mod sizes;
mod table;

use std::time::Duration;

use anyhow::Context;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use collectives::Algorithm;
use rdma::Way;
use roce::packet::Mtu;

use crate::rdma_perf::{PortArgs, mtu};
use element::{DataType, Op};
use meeting_point::MeetingPoint;
use sizes::{Kind, Range, Step, bytes};

pub use run::Wrong;

/// Options with nccl-tests' names.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "A time is that of a collective and of the barrier behind it. Exit codes: 0, 1 if an element was wrong, 2 if it could not be \
                  carried out."
)]
pub struct CollectivesPerfArgs {
    /// The collective.
    #[arg(value_name = "COLLECTIVE", value_enum)]
    kind: Kind,
    /// This rank, from 0.
    #[arg(long, env = "RANK", value_name = "NUMBER")]
    rank: usize,
    /// Number of ranks.
    #[arg(long, env = "WORLD_SIZE", value_name = "NUMBER", value_parser = ranks)]
    ranks: usize,
    /// Meeting place of the ranks: a folder that all can access, empty or not yet existing; tcp://HOST:PORT, where rank 0
    /// listens; or torch://HOST:PORT/NAME, torch's store there, with a new name for each run. Without, that of torchrun.
    #[arg(long, value_name = "PLACE")]
    store: Option<MeetingPoint>,
    /// Minimum size in bytes, such as 8, 64K, 32M, 1G (powers of 1,024).
    #[arg(short = 'b', long, default_value = "32M", value_name = "BYTES", value_parser = bytes)]
    minbytes: u64,
    /// Maximum size in bytes.
    #[arg(short = 'e', long, default_value = "32M", value_name = "BYTES", value_parser = bytes)]
    maxbytes: u64,
    /// Increment from one size to the next, in bytes.
    #[arg(short = 'i', long, default_value = "1M", value_name = "BYTES", value_parser = step)]
    stepbytes: u64,
    /// Factor from one size to the next; overrides --stepbytes.
    #[arg(short = 'f', long, value_name = "FACTOR", value_parser = clap::value_parser!(u64).range(2..))]
    stepfactor: Option<u64>,
    /// Number of measured iterations per size.
    #[arg(short = 'n', long, default_value_t = 20, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    iters: u32,
    /// Number of unmeasured iterations before them.
    #[arg(
        short = 'w',
        long = "warmup_iters",
        default_value_t = 5,
        value_name = "NUMBER"
    )]
    warmup_iters: u32,
    /// Number of additional runs per size whose results are checked; 0: none.
    #[arg(short = 'c', long, default_value_t = 1, value_name = "NUMBER")]
    check: u32,
    /// Reduction of the values; all: each in turn.
    #[arg(short = 'o', long, default_value = "sum", value_name = "OP", value_parser = choice::<Op>())]
    op: Choice<Op>,
    /// Type of the values; all: each in turn.
    #[arg(short = 'd', long, default_value = "float", value_name = "TYPE", value_parser = choice::<DataType>())]
    datatype: Choice<DataType>,
    /// Root of broadcast and reduce; all: each rank in turn.
    #[arg(short = 'r', long, default_value = "0", value_name = "RANK", allow_negative_numbers = true, value_parser = root)]
    root: Root,
    /// GPUs per process, as in nccl-tests; only 1 is supported, since a process is one rank.
    #[arg(short = 'g', long = "ngpus", default_value = "1", value_name = "NUMBER", value_parser = one_rank)]
    ngpus: u32,
    /// Threads per process, as in nccl-tests; only 1 is supported, since a process is one rank.
    #[arg(short = 't', long = "nthreads", default_value = "1", value_name = "NUMBER", value_parser = one_rank)]
    nthreads: u32,
    /// The algorithm; without, the fastest by a cost model for ranks at one switch.
    #[arg(long, value_name = "ALGORITHM", value_parser = PossibleValuesParser::new(FLAT.map(Algorithm::word)).map(|word| algorithm(&word)))]
    algorithm: Option<Algorithm>,
    /// Name of the interface or RDMA device; without, the only interface that is up and has an IPv4 address.
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Provider: auto, verbs (a device, by libibverbs), rings, bundles (of frames), pnet, or udp, which needs no capability.
    #[arg(long, default_value = "auto", value_name = "WAY")]
    way: Way,
    /// Path MTU in bytes: 256, 512, 1024, 2048 or 4096; without, the largest that all ranks' interfaces carry.
    #[arg(short, long, value_name = "BYTES", value_parser = mtu)]
    mtu: Option<Mtu>,
    /// Number of queue pairs to each peer: they carry the messages, cut into parts of at least 64 KiB, in turn, each possibly
    /// on another path.
    #[arg(short, long, default_value_t = 1, value_name = "NUMBER", value_parser = qps)]
    qps: usize,
    /// Capacity in packets of a queue on the path; all traffic of a schedule through the queue shares it.
    #[arg(long, default_value_t = 128, value_name = "PACKETS", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    window: u32,
    /// Maximum time without progress, in seconds.
    #[arg(long, default_value_t = 30, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    patience: u64,
    /// Seed of queue pair numbers, PSNs and keys; without, random from the system.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Each rank prints one JSON object; without, rank 0 prints a table.
    #[arg(long)]
    json: bool,
}

/// The algorithms that `--algorithm` offers: those for ranks without a hierarchy.
const FLAT: [Algorithm; 9] = [
    Algorithm::Direct,
    Algorithm::Ring,
    Algorithm::RecursiveDoubling,
    Algorithm::Halving,
    Algorithm::HalvingDoubling,
    Algorithm::Pairwise,
    Algorithm::Tree,
    Algorithm::Chain,
    Algorithm::Dissemination,
];

/// Maximum number of ranks: each pair of ranks has queue pairs.
const MOST_RANKS: usize = 256;
/// Maximum number of queue pairs from a rank to each peer.
const MOST_QPS: usize = 64;

/// Values of an option that accepts one value of `T`, or `all`.
#[derive(Debug, Clone)]
struct Choice<T>(Vec<T>);

/// Parser of an option that accepts the names of `T`, or `all`.
fn choice<T: ValueEnum + Send + Sync + 'static>() -> impl TypedValueParser<Value = Choice<T>> {
    let words = T::value_variants().iter().filter_map(T::to_possible_value);
    let words = words.chain([PossibleValue::new("all")]);
    PossibleValuesParser::new(words).map(|word| match &word[..] {
        "all" => Choice(T::value_variants().to_vec()),
        one => Choice(T::from_str(one, false).into_iter().collect()),
    })
}

/// Root rank of a broadcast or reduce, as given by `--root`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Root {
    All,
    Rank(usize),
}

fn root(text: &str) -> Result<Root, String> {
    // nccl-tests uses -1 for all.
    match (text, text.parse()) {
        ("all" | "-1", _) => Ok(Root::All),
        (_, Ok(rank)) => Ok(Root::Rank(rank)),
        _ => Err("use the number of a rank, or `all`".to_owned()),
    }
}

fn one_rank(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(1) => Ok(1),
        _ => Err("a process is one rank: start a process for each, with its --rank".to_owned()),
    }
}

/// Name of an option's value on the command line.
fn word(value: &impl ValueEnum) -> String {
    let named = value.to_possible_value();
    named.map_or_else(String::new, |value| value.get_name().to_owned())
}

// clap accepts no other words.
fn algorithm(word: &str) -> Algorithm {
    Algorithm::of_word(word).unwrap_or(Algorithm::Direct)
}

fn ranks(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(ranks @ 2..=MOST_RANKS) => Ok(ranks),
        _ => Err(format!("`{text}` is not a number from 2 to {MOST_RANKS}")),
    }
}

fn qps(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(qps @ 1..=MOST_QPS) => Ok(qps),
        _ => Err(format!("`{text}` is not a number from 1 to {MOST_QPS}")),
    }
}

fn step(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        0 => Err("a step must be at least 1 byte".to_owned()),
        step => Ok(step),
    }
}

impl CollectivesPerfArgs {
    /// Runs the benchmark to its end, and prints the results.
    pub fn run(&self) -> anyhow::Result<()> {
        let (rank, ranks) = (self.rank, self.ranks);
        anyhow::ensure!(
            rank < ranks,
            "--rank {rank} of --ranks {ranks}: ranks count from 0"
        );
        if let (true, Root::Rank(root)) = (self.kind.has_root(), self.root) {
            anyhow::ensure!(
                root < ranks,
                "--root {root} of --ranks {ranks}: ranks count from 0"
            );
        }
        let said = || MeetingPoint::of_torchrun(|name| std::env::var(name).ok());
        let place = self.store.clone().or_else(said);
        let place = place
            .context("no store is given: use --store, or torchrun's MASTER_ADDR and MASTER_PORT")?;
        let range = Range {
            least: self.minbytes,
            most: self.maxbytes,
            step: match self.stepfactor {
                Some(factor) => Step::Times(factor),
                None => Step::Plus(self.stepbytes),
            },
        };
        let cases = run::cases(self, range)?;
        let port = PortArgs {
            interface: self.interface.clone(),
            way: self.way,
            seed: self.seed,
        };
        let mut provider = port.open()?;
        eprintln!("{}", provider.describe());
        let mut store = place.open(rank, ranks, self.patience())?;
        run::run(self, &cases, &mut *provider, &mut *store)
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(self.patience)
    }
}
