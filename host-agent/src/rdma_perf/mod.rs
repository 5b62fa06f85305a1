//! `weir-agent rdma-perf`: RDMA tests with the options of libibverbs' examples and of perftest, interoperable with both.
//!
//! | file | contents |
//! |---|---|
//! | `pingpong.rs` | messages back and forth, as ibv_rc_pingpong |
//! | `bandwidth.rs` | WRITEs, SENDs, READs, as ib_write_bw, ib_send_bw, ib_read_bw |
//! | `latency.rs` | one message at a time, as ib_write_lat, ib_send_lat, ib_read_lat |
//! | `perftest.rs` | perftest's options that all of its tests accept |

mod bandwidth;
mod latency;
mod perftest;
mod pingpong;

use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use rdma::perftest::{Keys, Verb};
use rdma::{Gid, Provider, Way};
use roce::packet::Mtu;
use roce::{Counters, Psn, Qpn};
use serde::Serialize;

use crate::connections::announce;
use crate::seed::from_system;

pub use bandwidth::BandwidthArgs;
pub use latency::LatencyArgs;
pub use pingpong::PingpongArgs;

/// `weir-agent rdma-perf`
#[derive(Debug, Clone, Args)]
pub struct RdmaPerfArgs {
    /// The test to run.
    #[command(subcommand)]
    pub test: RdmaTest,
}

/// Tests of RDMA.
#[derive(Debug, Clone, Subcommand)]
pub enum RdmaTest {
    /// Send messages back and forth over a reliable connection, as ibv_rc_pingpong does; interoperates with it.
    Pingpong(PingpongArgs),
    /// Measure the bandwidth of RDMA WRITEs, as ib_write_bw does; interoperates with it.
    Write(BandwidthArgs),
    /// Measure the bandwidth of SENDs, as ib_send_bw does; interoperates with it.
    Send(BandwidthArgs),
    /// Measure the bandwidth of RDMA READs, as ib_read_bw does; interoperates with it.
    Read(BandwidthArgs),
    /// Measure the latency of RDMA WRITEs, as ib_write_lat does; interoperates with it.
    WriteLat(LatencyArgs),
    /// Measure the latency of SENDs, as ib_send_lat does; interoperates with it.
    SendLat(LatencyArgs),
    /// Measure the latency of RDMA READs, as ib_read_lat does; interoperates with it.
    ReadLat(LatencyArgs),
}

impl RdmaPerfArgs {
    /// Runs the test to its end, and prints the results.
    pub fn run(&self) -> anyhow::Result<()> {
        match &self.test {
            RdmaTest::Pingpong(args) => pingpong::run(args),
            RdmaTest::Write(args) => bandwidth::run(Verb::Write, args),
            RdmaTest::Send(args) => bandwidth::run(Verb::Send, args),
            RdmaTest::Read(args) => bandwidth::run(Verb::Read, args),
            RdmaTest::WriteLat(args) => latency::run(Verb::Write, args),
            RdmaTest::SendLat(args) => latency::run(Verb::Send, args),
            RdmaTest::ReadLat(args) => latency::run(Verb::Read, args),
        }
    }
}

/// The peer, and the connection by which both ends exchange their parameters.
#[derive(Debug, Clone, Args)]
pub struct MeetingArgs {
    /// Name or address of the server; without, this end is the server.
    pub host: Option<String>,
    #[command(flatten)]
    port: PortArgs,
    /// TCP port of the server, for the exchange of parameters.
    #[arg(short = 'p', long = "port", default_value_t = rdma::talk::PORT, value_name = "PORT")]
    tcp_port: u16,
    /// Maximum time without progress of the peer, in seconds.
    #[arg(long, default_value_t = 30, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    patience: u64,
    /// Print the outcome as JSON.
    #[arg(long)]
    json: bool,
}

impl MeetingArgs {
    /// Opens this end's RDMA provider, and prints its description.
    fn open(&self) -> anyhow::Result<Box<dyn Provider>> {
        let provider = self.port.open()?;
        eprintln!("{}", provider.describe());
        Ok(provider)
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(self.patience)
    }
}

/// The port that packets go through.
#[derive(Debug, Clone, Args)]
pub struct PortArgs {
    /// Name of the interface or RDMA device; without, the only interface that is up and has an IPv4 address.
    #[arg(short = 'd', long, value_name = "NAME")]
    pub interface: Option<String>,
    /// Provider: auto, verbs (a device, by libibverbs), rings, bundles (of frames), pnet, or udp, which needs no capability, but requires weir at
    /// both ends.
    #[arg(long, default_value = "auto", value_name = "WAY")]
    pub way: Way,
    /// Seed of queue pair numbers, PSNs and keys; without, random from the system.
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
}

impl PortArgs {
    /// Opens the RDMA provider for this interface or device.
    pub(crate) fn open(&self) -> anyhow::Result<Box<dyn Provider>> {
        let seed = match self.seed {
            Some(seed) => seed,
            None => from_system().context("cannot read /dev/urandom")?,
        };
        let mut provider = rdma::open(self.interface.as_deref(), self.way, seed)?;
        announce(&mut *provider);
        Ok(provider)
    }
}

pub(crate) fn mtu(text: &str) -> Result<Mtu, String> {
    let mtu = text.parse().ok().and_then(Mtu::of_bytes);
    mtu.ok_or_else(|| format!("`{text}` is not one of 256, 512, 1024, 2048, 4096"))
}

/// Identification of a queue pair in the printed results.
#[derive(Serialize)]
struct QueuePairAddress {
    qpn: u32,
    psn: u32,
    gid: String,
}

impl QueuePairAddress {
    fn new(qpn: Qpn, psn: Psn, gid: Gid) -> Self {
        Self {
            qpn: qpn.bits(),
            psn: psn.bits(),
            gid: gid.to_string(),
        }
    }
}

/// The queue pairs of this end and of its peer, for the printed results.
fn ends(own: &Keys, peer: &Keys) -> [QueuePairAddress; 2] {
    [own, peer].map(|keys| QueuePairAddress::new(keys.qpn, keys.psn, keys.gid))
}

fn print_ends(ends: [QueuePairAddress; 2]) {
    for (which, QueuePairAddress { qpn, psn, gid }) in
        ["local address: ", "remote address:"].iter().zip(ends)
    {
        println!("  {which} QPN {qpn}, PSN {psn:#08x}, GID {gid}");
    }
}

/// Counters of an RDMA provider by name; empty if the provider does not count.
fn by_name(counters: Option<&Counters>) -> serde_json::Map<String, serde_json::Value> {
    let counters = counters.into_iter().flat_map(Counters::iter);
    counters
        .map(|(name, count)| (name.to_owned(), count.into()))
        .collect()
}

/// Prints the numbers of retransmissions and of gaps in received packets, if there were any.
fn print_losses(counters: Option<&Counters>) {
    let Some(counters) = counters else { return };
    let (again, gaps) = (counters.completer_retry_err, counters.out_of_seq_request);
    if again + gaps > 0 {
        println!("{again} retransmissions; {gaps} gaps in the received packets");
    }
}
