//! `weir-agent rdma-perf write-lat`, `send-lat`, `read-lat`: measure latencies of RDMA, as perftest does.

use clap::Args;
use rdma::perftest::{Latencies, LatencyOptions, LatencyOutcome, Verb, latency};
use roce::packet::Mtu;
use serde::Serialize;

use super::perftest::PerftestArgs;
use super::{MeetingArgs, QueuePairAddress, by_name, ends, mtu, print_ends, print_losses};

/// Options of the latency tests, with perftest's names.
#[derive(Debug, Clone, Args)]
pub struct LatencyArgs {
    #[command(flatten)]
    meeting: MeetingArgs,
    /// Length of a message in bytes, the same at both ends.
    #[arg(short, long, default_value_t = 2, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    size: u32,
    /// Number of messages of each side, the same at both ends.
    #[arg(short = 'n', long, default_value_t = 1000, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(2..=100_000_000))]
    iters: u64,
    /// Path MTU: 256, 512, 1024, 2048 or 4096; without, the interface's. The smaller value of both ends applies.
    #[arg(short, long, value_name = "BYTES", value_parser = mtu)]
    mtu: Option<Mtu>,
    #[command(flatten)]
    perftest: PerftestArgs,
    #[arg(short = 'D', long, hide = true, value_parser = duration)]
    duration: Option<u64>,
}

fn duration(_: &str) -> Result<u64, String> {
    Err("both ends need the number of messages: use `-n`, not `-D`".to_owned())
}

pub fn run(verb: Verb, args: &LatencyArgs) -> anyhow::Result<()> {
    let mut provider = args.meeting.open()?;
    let options = LatencyOptions {
        port: args.meeting.tcp_port,
        size: args.size,
        iterations: args.iters,
        mtu: args.mtu,
        patience: args.meeting.patience(),
        all_sizes: args.perftest.all,
    };
    let outcome = latency(&mut *provider, verb, args.meeting.host.as_deref(), &options)?;
    if args.meeting.json {
        let told = LatencySummary::new(&outcome, args);
        println!("{}", serde_json::to_string(&told)?);
    } else {
        print_text(&outcome, args);
    }
    Ok(())
}

#[derive(Serialize)]
struct LatencySummary {
    local: QueuePairAddress,
    remote: QueuePairAddress,
    mtu: usize,
    size: u32,
    iterations: u64,
    /// Latencies in microseconds; `None` at the end whose memory is read.
    #[serde(flatten)]
    latencies: Option<Microseconds>,
    /// Results by message size, with `--all`; otherwise empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sizes: Vec<OfSize>,
    counters: serde_json::Map<String, serde_json::Value>,
}

#[derive(Serialize)]
struct OfSize {
    size: u32,
    #[serde(flatten)]
    latencies: Microseconds,
}

#[derive(Serialize)]
struct Microseconds {
    t_min_us: f64,
    t_max_us: f64,
    t_typical_us: f64,
    t_avg_us: f64,
    t_stdev_us: f64,
    percentile_99_us: f64,
    percentile_99_9_us: f64,
}

impl From<Latencies> for Microseconds {
    fn from(of: Latencies) -> Self {
        Self {
            t_min_us: of.min,
            t_max_us: of.max,
            t_typical_us: of.typical,
            t_avg_us: of.average,
            t_stdev_us: of.deviation,
            percentile_99_us: of.percentile_99,
            percentile_99_9_us: of.percentile_99_9,
        }
    }
}

impl LatencySummary {
    fn new(outcome: &LatencyOutcome, args: &LatencyArgs) -> Self {
        let [local, remote] = ends(&outcome.own, &outcome.peer);
        Self {
            local,
            remote,
            mtu: outcome.mtu.bytes(),
            size: outcome.sizes.last().map_or(args.size, |(size, _)| *size),
            iterations: args.iters,
            latencies: outcome.measured.map(Microseconds::from),
            sizes: match &outcome.sizes[..] {
                [] | [_] => Vec::new(),
                all => (all.iter())
                    .map(|(size, of)| OfSize {
                        size: *size,
                        latencies: Microseconds::from(*of),
                    })
                    .collect(),
            },
            counters: by_name(outcome.counters.as_ref()),
        }
    }
}

fn print_text(outcome: &LatencyOutcome, args: &LatencyArgs) {
    print_ends(ends(&outcome.own, &outcome.peer));
    println!("  MTU {}", outcome.mtu.bytes());
    match &outcome.sizes[..] {
        [] => println!("  measured at the client"),
        sizes => {
            println!(
                " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   \
                 99% percentile[usec]   99.9% percentile[usec]"
            );
            for (size, of) in sizes {
                println!(
                    " {size:<6} {:<14} {:<14.2} {:<12.2} {:<16.2} {:<14.2} {:<15.2} {:<22.2} {:.2}",
                    args.iters,
                    of.min,
                    of.max,
                    of.typical,
                    of.average,
                    of.deviation,
                    of.percentile_99,
                    of.percentile_99_9
                );
            }
        }
    }
    print_losses(outcome.counters.as_ref());
}
