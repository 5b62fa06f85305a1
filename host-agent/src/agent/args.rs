//! The arguments of agents, shared by `weir-agent` and `weir agent`.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use aggregation::Retransmission;
use aggregation::job::{ChunkId, Job, JobConfig, JobError, JobId, WorkerId};
use aggregation::server::Part;
use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::frames::{Cable, Endpoint, Frames, Io, Mac, WhenFull, open_interface};
use crate::metrics::Address;
use crate::train::{PARAMETERS, Recipe};

const MILLISECOND_NS: u64 = 1_000_000;

/// Settings that must be equal at all agents of a job.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct JobArgs {
    /// Number of the job.
    #[arg(long, default_value_t = 1)]
    pub job: u16,
    /// Number of workers.
    #[arg(long)]
    pub workers: u16,
    /// Maximum number of a worker's chunks in flight; a power of two.
    #[arg(long, default_value_t = 16)]
    pub window: u32,
    /// Number of the first chunk. A job that reuses the number of an earlier job on the same switch begins after that job's
    /// chunks.
    #[arg(long, default_value_t = 0)]
    pub first_chunk: u32,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub recipe: Recipe,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub retransmission: RetransmissionArgs,
}

impl JobArgs {
    /// Builds the job from these settings, and validates it.
    pub fn job(&self) -> Result<Job, JobError> {
        Job::under_one_switch(JobConfig {
            job: JobId(self.job),
            workers: self.workers,
            window: self.window,
            values_per_packet: wire::VALUES_PER_PACKET as u16,
            values_per_round: PARAMETERS,
            first_chunk: ChunkId(self.first_chunk),
        })
    }
}

/// Retransmission timeouts, and their limit.
#[derive(Debug, Clone, Copy, PartialEq, Args)]
pub struct RetransmissionArgs {
    /// Minimum timeout of a retransmission.
    #[arg(long, default_value_t = 200, value_name = "MS")]
    pub timeout_floor_ms: u64,
    /// Timeout until the first round-trip time is measured.
    #[arg(long, default_value_t = 1_000, value_name = "MS")]
    pub timeout_initial_ms: u64,
    /// Maximum timeout: repeated timeouts double it up to this value.
    #[arg(long, default_value_t = 2_000, value_name = "MS")]
    pub timeout_ceiling_ms: u64,
    /// Number of timeouts of one chunk after which a worker gives up.
    #[arg(long, default_value_t = 10)]
    pub max_timeouts: u32,
}

impl RetransmissionArgs {
    pub(super) fn settings(&self) -> Retransmission {
        Retransmission {
            floor_ns: self.timeout_floor_ms.saturating_mul(MILLISECOND_NS),
            initial_ns: self.timeout_initial_ms.saturating_mul(MILLISECOND_NS),
            ceiling_ns: self.timeout_ceiling_ms.saturating_mul(MILLISECOND_NS),
            max_timeouts: self.max_timeouts,
            ..Retransmission::default()
        }
    }
}

/// Connection of an agent to the network.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct LinkArgs {
    /// The interface to send and receive on.
    #[arg(long, required_unless_present = "link_fd", value_name = "NAME")]
    pub iface: Option<String>,
    /// Descriptor of an inherited socket that carries frames, instead of an interface.
    #[arg(long, conflicts_with = "iface", value_name = "NUMBER")]
    pub link_fd: Option<i32>,
    /// This agent's Ethernet address.
    #[arg(long)]
    pub mac: Mac,
    /// This agent's IPv4 address.
    #[arg(long)]
    pub ip: Ipv4Addr,
    /// Wait for a line on the standard input before the start; further lines are orders.
    #[arg(long)]
    pub wait: bool,
    /// Serve metrics for Prometheus, and the status for `weir doctor`, at this address: 127.0.0.1:9477, or unix:PATH.
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<Address>,
}

impl LinkArgs {
    /// Ethernet and IPv4 address of this agent.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint {
            mac: self.mac,
            ip: self.ip,
        }
    }

    pub(super) fn open(&self) -> anyhow::Result<Box<dyn Frames>> {
        match (&self.iface, self.link_fd) {
            (Some(name), _) => Ok(open_interface(name, Io::Pnet)
                .with_context(|| format!("cannot open the interface {name}"))?
                .frames),
            (None, Some(number)) => Ok(Box::new(
                Cable::inherited(number, WhenFull::Wait)
                    .with_context(|| format!("descriptor {number} is not a cable"))?,
            )),
            (None, None) => anyhow::bail!("neither an interface nor a descriptor is given"),
        }
    }
}

/// A worker.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct WorkerArgs {
    /// Rank of this worker, from 0.
    #[arg(long)]
    pub rank: u16,
    /// The server's Ethernet address.
    #[arg(long)]
    pub server_mac: Mac,
    /// The server's IPv4 address.
    #[arg(long)]
    pub server_ip: Ipv4Addr,
    /// If each switch sums one part of the job: this worker's part, and its number in the part.
    #[arg(long, value_name = "NUMBER/CHILD", requires = "via")]
    pub part: Option<PlaceInPart>,
    /// Destination Ethernet address of the updates, by which the switches of the part recognise them; without, the server's.
    #[arg(long, value_name = "MAC")]
    pub via: Option<Mac>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub job: JobArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub link: LinkArgs,
}

/// The node that sums the updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ServerMode {
    /// A switch sums all updates.
    Switch,
    /// The server itself sums all updates.
    Direct,
    /// Each switch sums one part, and the server sums the parts.
    Parts,
}

/// A worker's position in a part of a job, as text: `2/0` is number 0 in part 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PlaceInPart {
    /// The part's number.
    pub number: JobId,
    /// Number by which the part's switch knows the worker.
    pub child: WorkerId,
}

impl FromStr for PlaceInPart {
    type Err = String;

    fn from_str(text: &str) -> Result<PlaceInPart, String> {
        let parsed = text.split_once('/').and_then(|(number, child)| {
            Some(PlaceInPart {
                number: JobId(number.parse().ok()?),
                child: WorkerId(child.parse().ok()?),
            })
        });
        parsed
            .ok_or_else(|| "use the number of a part and a number in it, such as `2/0`".to_owned())
    }
}

impl fmt::Display for PlaceInPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number.0, self.child.0)
    }
}

impl From<PlaceInPart> for String {
    fn from(place: PlaceInPart) -> String {
        place.to_string()
    }
}

impl TryFrom<String> for PlaceInPart {
    type Error = String;

    fn try_from(text: String) -> Result<PlaceInPart, String> {
        text.parse()
    }
}

/// A part of a job, as text: `2:0,1,5` is part 2, in which a switch sums the updates of ranks 0, 1 and 5.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PartOf(pub Part);

impl FromStr for PartOf {
    type Err = String;

    fn from_str(text: &str) -> Result<PartOf, String> {
        let parsed = text.split_once(':').and_then(|(number, ranks)| {
            let ranks = ranks.split(',').map(|rank| rank.parse().map(WorkerId));
            Some(Part {
                number: JobId(number.parse().ok()?),
                workers: ranks.collect::<Result<_, _>>().ok()?,
            })
        });
        let part = parsed
            .ok_or_else(|| "use the number of a part and its ranks, such as `2:0,1,5`".to_owned());
        part.map(PartOf)
    }
}

impl fmt::Display for PartOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranks = self.0.workers.iter().map(|rank| rank.0.to_string());
        write!(
            f,
            "{}:{}",
            self.0.number.0,
            ranks.collect::<Vec<_>>().join(",")
        )
    }
}

impl From<PartOf> for String {
    fn from(part: PartOf) -> String {
        part.to_string()
    }
}

impl TryFrom<String> for PartOf {
    type Error = String;

    fn try_from(text: String) -> Result<PartOf, String> {
        text.parse()
    }
}

/// A parameter server.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ServerArgs {
    /// The node that sums the updates.
    #[arg(long)]
    pub mode: ServerMode,
    /// Addresses of a worker; repeat in the order of the ranks.
    #[arg(long = "peer", value_name = "MAC/IP", required = true)]
    pub peers: Vec<Endpoint>,
    /// A part that a switch sums; repeat for each part.
    #[arg(
        long = "part",
        value_name = "NUMBER:RANKS",
        required_if_eq("mode", "parts")
    )]
    pub parts: Vec<PartOf>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub job: JobArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub link: LinkArgs,
}

/// The reference run without a network.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ReferenceArgs {
    /// Number of simulated workers.
    #[arg(long)]
    pub workers: u16,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub recipe: Recipe,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::AgentCommand;
    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        command: AgentCommand,
    }

    fn parse(text: &str) -> Result<AgentCommand, clap::Error> {
        Line::try_parse_from(text.split_whitespace()).map(|line| line.command)
    }

    const WORKER: &str = "x worker --rank 1 --workers 2 --server-mac 02:00:00:00:00:09 --server-ip 10.0.0.9 \
                          --mac 02:00:00:00:00:01 --ip 10.0.0.1";

    #[test]
    fn a_link_is_an_interface_or_a_descriptor() {
        assert!(parse(&format!("{WORKER} --iface eth0")).is_ok());
        assert!(parse(&format!("{WORKER} --link-fd 3")).is_ok());
        assert!(parse(WORKER).is_err());
        assert!(parse(&format!("{WORKER} --iface eth0 --link-fd 3")).is_err());
    }

    #[test]
    fn a_server_needs_its_peers() {
        let server =
            "x server --mode direct --workers 1 --mac 02:00:00:00:00:09 --ip 10.0.0.9 --iface eth0";
        assert!(parse(server).is_err());
        let Ok(AgentCommand::Server(args)) =
            parse(&format!("{server} --peer 02:00:00:00:00:01/10.0.0.1"))
        else {
            panic!()
        };
        assert_eq!(args.peers[0].ip, Ipv4Addr::new(10, 0, 0, 1));
        assert!(parse(&format!("{server} --peer 10.0.0.1")).is_err());
        let parts = server.replace("direct", "parts") + " --peer 02:00:00:00:00:01/10.0.0.1";
        assert!(parse(&parts).is_err(), "no part is given");
        assert!(parse(&format!("{parts} --part 2:0")).is_ok());
        assert!(parse(&format!("{parts} --part 2:0,x")).is_err());
    }
}
