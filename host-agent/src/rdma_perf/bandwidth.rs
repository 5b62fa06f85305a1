//! `weir-agent rdma-perf write`, `send`, `read`: measure bandwidths of RDMA, as perftest does.

use std::time::Duration;

use clap::Args;
use rdma::perftest::{BandwidthOptions, BandwidthOutcome, Report, Verb, bandwidth};
use roce::packet::Mtu;
use serde::Serialize;

use super::perftest::PerftestArgs;
use super::{MeetingArgs, QueuePairAddress, by_name, ends, mtu, print_ends, print_losses};

/// Options of the bandwidth tests, with perftest's names.
#[derive(Debug, Clone, Args)]
pub struct BandwidthArgs {
    #[command(flatten)]
    meeting: MeetingArgs,
    /// Length of a message in bytes, the same at both ends.
    #[arg(short, long, default_value_t = 65_536, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    size: u32,
    /// Number of messages, the same at both ends; without, 5000 for write and 1000 for the others, as in perftest.
    #[arg(short = 'n', long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    iters: Option<u64>,
    /// Path MTU: 256, 512, 1024, 2048 or 4096; without, the interface's. The smaller value of both ends applies.
    #[arg(short, long, value_name = "BYTES", value_parser = mtu)]
    mtu: Option<Mtu>,
    /// Maximum number of messages in flight.
    #[arg(short, long, default_value_t = 128, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    tx_depth: u16,
    /// For send: number of receives posted at once.
    #[arg(short, long, default_value_t = 512, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(2..))]
    rx_depth: u16,
    /// Duration of sending in seconds, instead of --iters; give it at both ends.
    #[arg(short = 'D', long, value_name = "SECONDS", conflicts_with_all = ["iters", "all"], value_parser = clap::value_parser!(u64).range(1..=86_400))]
    duration: Option<u64>,
    /// Send in both directions at once, and report the sum of both; give it at both ends.
    #[arg(short, long)]
    bidirectional: bool,
    /// Print bandwidths in Gbit/s instead of MiB/s.
    #[arg(long = "report_gbits")]
    report_gbits: bool,
    #[command(flatten)]
    perftest: PerftestArgs,
}

pub fn run(verb: Verb, args: &BandwidthArgs) -> anyhow::Result<()> {
    anyhow::ensure!(
        verb != Verb::Send || !args.bidirectional || args.duration.is_none(),
        "send: with -b and -D, neither end knows when the other one ends: give a number of messages, `-n`"
    );
    let mut provider = args.meeting.open()?;
    let defaults = BandwidthOptions::new(verb);
    let options = BandwidthOptions {
        port: args.meeting.tcp_port,
        size: args.size,
        iterations: args.iters.unwrap_or(defaults.iterations),
        mtu: args.mtu,
        posted: args.tx_depth.into(),
        receives: args.rx_depth.into(),
        patience: args.meeting.patience(),
        all_sizes: args.perftest.all,
        duration: args.duration.map(Duration::from_secs),
        is_bidirectional: args.bidirectional,
        reports_gbits: args.report_gbits,
    };
    let outcome = bandwidth(&mut *provider, verb, args.meeting.host.as_deref(), &options)?;
    if args.meeting.json {
        println!(
            "{}",
            serde_json::to_string(&BandwidthSummary::new(&outcome))?
        );
    } else {
        print_text(&outcome, args.report_gbits);
    }
    Ok(())
}

#[derive(Serialize)]
struct BandwidthSummary {
    local: QueuePairAddress,
    remote: QueuePairAddress,
    mtu: usize,
    /// Whether this end has measured; otherwise its peer has.
    measured_here: bool,
    #[serde(flatten)]
    total: OfSize,
    /// Results by message size, with `--all`; otherwise empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sizes: Vec<OfSize>,
    counters: serde_json::Map<String, serde_json::Value>,
}

#[derive(Serialize)]
struct OfSize {
    size: u64,
    iterations: u64,
    peak_mib_per_s: f64,
    average_mib_per_s: f64,
    million_messages_per_s: f64,
}

impl From<&Report> for OfSize {
    fn from(report: &Report) -> Self {
        Self {
            size: report.size,
            iterations: report.iterations,
            peak_mib_per_s: report.peak,
            average_mib_per_s: report.average,
            million_messages_per_s: report.rate,
        }
    }
}

fn figures(outcome: &BandwidthOutcome) -> Report {
    let nothing = Report {
        size: 0,
        iterations: 0,
        peak: 0.0,
        average: 0.0,
        rate: 0.0,
    };
    outcome.measured.or(outcome.told).unwrap_or(nothing)
}

impl BandwidthSummary {
    fn new(outcome: &BandwidthOutcome) -> Self {
        let [local, remote] = ends(&outcome.own, &outcome.peer);
        Self {
            local,
            remote,
            mtu: outcome.mtu.bytes(),
            measured_here: outcome.measured.is_some(),
            total: OfSize::from(&figures(outcome)),
            sizes: match &outcome.sizes[..] {
                [] | [_] => Vec::new(),
                all => all.iter().map(OfSize::from).collect(),
            },
            counters: by_name(outcome.counters.as_ref()),
        }
    }
}

fn print_text(outcome: &BandwidthOutcome, in_gbits: bool) {
    print_ends(ends(&outcome.own, &outcome.peer));
    println!("  MTU {}", outcome.mtu.bytes());
    println!("{}", head(in_gbits));
    let only = [figures(outcome)];
    let reports = match outcome.sizes.len() {
        0 => &only[..],
        _ => &outcome.sizes,
    };
    for report in reports {
        println!("{}", line(report, in_gbits));
    }
    print_losses(outcome.counters.as_ref());
}

/// The column headers of perftest's bandwidth table.
fn head(in_gbits: bool) -> &'static str {
    match in_gbits {
        true => " #bytes     #iterations    BW peak[Gb/sec]   BW average[Gb/sec]  MsgRate[Mpps]",
        false => " #bytes     #iterations    BW peak[MiB/s]    BW average[MiB/s]   MsgRate[Mpps]",
    }
}

fn line(report: &Report, in_gbits: bool) -> String {
    let report = match in_gbits {
        true => report.in_gbits(),
        false => *report,
    };
    format!(
        " {:<10} {:<14} {:<17.2} {:<19.2} {:.6}",
        report.size, report.iterations, report.peak, report.average, report.rate
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_aligned_with_their_unit() {
        let report = Report {
            size: 65_536,
            iterations: 5000,
            peak: 11_920.93,
            average: 11_444.09,
            rate: 0.183_105,
        };
        for (in_gbits, peak, average) in
            [(false, "11920.93", "11444.09"), (true, "100.00", "96.00")]
        {
            let (head, line) = (head(in_gbits), line(&report, in_gbits));
            for (title, value) in [
                ("#bytes", "65536"),
                ("BW peak", peak),
                ("BW average", average),
                ("MsgRate", "0.183105"),
            ] {
                let at = head.find(title).unwrap();
                assert!(line[at..].starts_with(value), "{value}:\n{head}\n{line}");
            }
        }
    }
}
