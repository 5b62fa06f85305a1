//! Settings of the rank and its transport: from options, or from a scenario's environment.

use aggregation::Retransmission;
use aggregation::job::{ChunkId, Job, JobConfig, JobId, TreePosition, WorkerId};
use aggregation::rank::{Fallback, Setup};
use anyhow::{Context, Result, ensure};
use clap::Args;

use super::Dtype;
use crate::collective::Transport;
use crate::frames::{Endpoint, Io};

/// `weir-agent all-reduce`
#[derive(Debug, Clone, Args)]
pub struct AllReduceArgs {
    /// Number of the job; without, WEIR_JOB.
    #[arg(long, value_name = "NUMBER")]
    job: Option<u16>,
    /// This rank, from 0; without, WEIR_RANK.
    #[arg(long, value_name = "NUMBER")]
    rank: Option<u16>,
    /// Number of ranks; without, WEIR_RANKS.
    #[arg(long, value_name = "NUMBER")]
    ranks: Option<u16>,
    /// Maximum number of a rank's chunks in flight, a power of two; without, WEIR_WINDOW.
    #[arg(long, value_name = "NUMBER")]
    window: Option<u32>,
    /// The rank's number at its switch, and the numbers of children of that switch and of the topmost switch; without,
    /// WEIR_PLACE, or one switch sums all ranks.
    #[arg(long, value_name = "CHILD/SIBLINGS/TOP")]
    place: Option<String>,
    /// Number of the job's first chunk: on a switch whose cells an earlier job has used, beyond that job's chunks.
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    first_chunk: u32,
    /// The network interface; without, WEIR_INTERFACE, or eth0.
    #[arg(short = 'd', long, value_name = "NAME")]
    interface: Option<String>,
    /// Transport between this rank and its switch: udp, or rdma (WRITEs over RoCEv2); without, WEIR_TRANSPORT, or udp.
    #[arg(long, value_name = "TRANSPORT")]
    transport: Option<Transport>,
    /// Packet I/O: auto, bundles, rings, calls or pnet.
    #[arg(long, default_value_t = Io::Auto, value_name = "WAY")]
    pub(super) way: Io,
    /// Addresses of a rank; repeat in the order of the ranks. Ranks that know each other report a dead rank, and continue
    /// without a switch that does not answer.
    #[arg(long = "peer", value_name = "MAC/IP")]
    pub(super) peers: Vec<Endpoint>,
    /// Number of values per operation.
    #[arg(short = 'n', long, default_value_t = 1 << 20, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    values: u32,
    /// Type of the values: float32 or int32.
    #[arg(long, default_value = "float32", value_name = "TYPE")]
    pub(super) dtype: Dtype,
    /// Number of operations, run one after the other.
    #[arg(short, long, default_value_t = 1, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) iters: u32,
    /// Seed of the generated values; the same at all ranks, so that each can compute the expected sums.
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    pub(super) seed: u64,
    /// Do not check the sums.
    #[arg(long)]
    pub(super) no_check: bool,
    /// Maximum time to wait for the sums of an operation, in seconds.
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) patience: u64,
    /// Print the outcome as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

impl AllReduceArgs {
    /// Validated settings of the rank.
    pub(super) fn setup(&self) -> Result<Setup> {
        let values_per_packet = match env("WEIR_VALUES") {
            Some(said) => number("WEIR_VALUES", &said)?,
            None => wire::VALUES_PER_PACKET as u16,
        };
        let job = Job::new(JobConfig {
            job: JobId(required(self.job, "WEIR_JOB", "--job")?),
            workers: required(self.ranks, "WEIR_RANKS", "--ranks")?,
            window: required(self.window, "WEIR_WINDOW", "--window")?,
            values_per_packet,
            values_per_round: 0,
            first_chunk: ChunkId(self.first_chunk),
        })?;
        let rank: u16 = required(self.rank, "WEIR_RANK", "--rank")?;
        let ranks = job.workers();
        ensure!(
            rank < ranks,
            "rank {rank} of {ranks} ranks: ranks count from 0"
        );
        let peers = self.peers.len();
        ensure!(
            peers == 0 || peers == usize::from(ranks),
            "{peers} addresses for {ranks} ranks: give one address for each rank"
        );
        let setup = Setup::under_one_switch(job, WorkerId(rank), Retransmission::of_ranks());
        let place = match self.place.clone().or_else(|| env("WEIR_PLACE")) {
            Some(text) => place(&text)?,
            None => setup.place,
        };
        let knows_others = peers > 0;
        Ok(Setup {
            place,
            dead_after_ns: knows_others.then_some(GONE_AFTER_NS),
            fallback: knows_others.then_some(Fallback::IF_SILENT),
            ..setup
        })
    }

    pub(super) fn interface(&self) -> String {
        let said = self.interface.clone().or_else(|| env("WEIR_INTERFACE"));
        said.unwrap_or_else(|| "eth0".to_owned())
    }

    /// The transport between rank and switch, and where this choice comes from.
    pub(super) fn transport(&self) -> Result<(Transport, &'static str)> {
        if let Some(transport) = self.transport {
            return Ok((transport, "set by --transport"));
        }
        match env("WEIR_TRANSPORT") {
            None => Ok((Transport::Udp, "the default")),
            Some(text) => {
                let transport = text.parse().map_err(anyhow::Error::msg);
                Ok((
                    transport.context("WEIR_TRANSPORT")?,
                    "set by WEIR_TRANSPORT",
                ))
            }
        }
    }

    /// Number of values per operation.
    pub(super) fn length(&self) -> usize {
        self.values as usize
    }
}

/// Time in nanoseconds without a reply after which another rank is declared dead.
const GONE_AFTER_NS: u64 = 5_000_000_000;

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T> {
    let parsed = text.parse().ok();
    parsed.with_context(|| format!("{name}={text}: use a whole number"))
}

fn required<T: std::str::FromStr>(option: Option<T>, name: &str, flag: &str) -> Result<T> {
    match option {
        Some(number) => Ok(number),
        None => {
            let said = env(name);
            let said = said.with_context(|| format!("neither {flag} nor {name} is given"))?;
            number(name, &said)
        }
    }
}

fn place(text: &str) -> Result<TreePosition> {
    let wrong =
        || format!("{text}: a position in a tree of switches is CHILD/SIBLINGS/TOP, such as 0/2/2");
    let mut parts = text.split('/').map(|part| part.parse::<u16>().ok());
    let mut next = || parts.next().flatten().with_context(wrong);
    let small = |number: u16| u8::try_from(number).ok().with_context(wrong);
    let place = TreePosition {
        child: WorkerId(next()?),
        siblings: small(next()?)?,
        top: small(next()?)?,
    };
    ensure!(place.is_possible(), wrong());
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        let read = place("3/4/2").unwrap();
        assert_eq!((read.child.0, read.siblings, read.top), (3, 4, 2));
        for wrong in ["", "1/2", "4/4/4", "0/65/65", "0/0/0", "a/1/1"] {
            let told = place(wrong).unwrap_err().to_string();
            assert!(told.contains("CHILD/SIBLINGS/TOP"), "{wrong}: {told}");
        }
    }
}
