//! `weir-agent rdma-perf pingpong`: sends messages back and forth by RDMA, as ibv_rc_pingpong does.

use clap::Args;
use rdma::pingpong::{PingpongOptions, PingpongOutcome, pingpong};
use roce::packet::Mtu;
use serde::Serialize;

use super::{MeetingArgs, QueuePairAddress, by_name, mtu, print_ends, print_losses};

/// Options of the ping-pong test, with ibv_rc_pingpong's names.
#[derive(Debug, Clone, Args)]
pub struct PingpongArgs {
    #[command(flatten)]
    meeting: MeetingArgs,
    /// Length of a message in bytes.
    #[arg(short, long, default_value_t = 4096, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    size: u32,
    /// Path MTU in bytes: 256, 512, 1024, 2048 or 4096, the same at both ends.
    #[arg(short, long, default_value = "1024", value_name = "BYTES", value_parser = mtu)]
    mtu: Mtu,
    /// Number of receives posted at once.
    #[arg(short, long, default_value_t = 500, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(2..))]
    rx_depth: u16,
    /// Number of messages in each direction.
    #[arg(short = 'n', long, default_value_t = 1000, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    iters: u64,
}

pub fn run(args: &PingpongArgs) -> anyhow::Result<()> {
    let mut provider = args.meeting.open()?;
    let options = PingpongOptions {
        port: args.meeting.tcp_port,
        size: args.size,
        iterations: args.iters,
        mtu: args.mtu,
        receives: args.rx_depth.into(),
        patience: args.meeting.patience(),
    };
    let outcome = pingpong(&mut *provider, args.meeting.host.as_deref(), &options)?;
    if args.meeting.json {
        println!(
            "{}",
            serde_json::to_string(&Report::new(&outcome, &options))?
        );
    } else {
        print_text(&outcome, &options);
    }
    anyhow::ensure!(
        outcome.wrong == 0,
        "{} messages differ from those that the peer sends",
        outcome.wrong
    );
    Ok(())
}

#[derive(Serialize)]
struct Report {
    local: QueuePairAddress,
    remote: QueuePairAddress,
    size: u32,
    iterations: u64,
    bytes: u64,
    took_s: f64,
    bits_per_s: f64,
    us_per_iteration: f64,
    wrong: u64,
    counters: serde_json::Map<String, serde_json::Value>,
}

fn ends(outcome: &PingpongOutcome) -> [QueuePairAddress; 2] {
    [&outcome.own, &outcome.peer].map(|at| QueuePairAddress::new(at.qpn, at.psn, at.gid))
}

impl Report {
    fn new(outcome: &PingpongOutcome, options: &PingpongOptions) -> Self {
        let took_s = outcome.took.as_secs_f64();
        let [local, remote] = ends(outcome);
        Self {
            local,
            remote,
            size: options.size,
            iterations: options.iterations,
            bytes: outcome.bytes,
            took_s,
            bits_per_s: outcome.bytes as f64 * 8.0 / took_s,
            us_per_iteration: took_s * 1e6 / options.iterations as f64,
            wrong: outcome.wrong,
            counters: by_name(outcome.counters.as_ref()),
        }
    }
}

fn print_text(outcome: &PingpongOutcome, options: &PingpongOptions) {
    print_ends(ends(outcome));
    let (took_s, iterations) = (outcome.took.as_secs_f64(), options.iterations);
    println!(
        "{} bytes in {took_s:.2} seconds = {:.2} Mbit/s",
        outcome.bytes,
        outcome.bytes as f64 * 8e-6 / took_s
    );
    println!(
        "{iterations} messages each way in {took_s:.2} seconds = {:.2} us each",
        took_s * 1e6 / iterations as f64
    );
    print_losses(outcome.counters.as_ref());
}
