//! `weir-agent rdma-perf write`, `send`, `read`

use clap::Args;
use rdma::perftest::{Keys, Options, Outcome, Report, Verb, bandwidth};
use roce::packet::Mtu;
use serde::Serialize;

use super::{MeetingArgs, mtu};

/// Its options are perftest's.
#[derive(Debug, Clone, Args)]
pub struct BandwidthArgs {
    #[command(flatten)]
    meeting: MeetingArgs,
    /// Bytes of a message, the same at both ends.
    #[arg(short, long, default_value_t = 65_536, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    size: u32,
    /// Messages, the same at both ends; 5000 of write and 1000 of others, as in perftest.
    #[arg(short = 'n', long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    iters: Option<u64>,
    /// The path MTU: 256, 512, 1024, 2048 or 4096; without, what the interface carries. The smaller of both ends' counts.
    #[arg(short, long, value_name = "BYTES", value_parser = mtu)]
    mtu: Option<Mtu>,
    /// Messages under way.
    #[arg(short, long, default_value_t = 128, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    tx_depth: u16,
    /// Of send: receives that are posted at once.
    #[arg(short, long, default_value_t = 512, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(2..))]
    rx_depth: u16,
}

pub fn run(verb: Verb, args: &BandwidthArgs) -> anyhow::Result<()> {
    let mut provider = args.meeting.open()?;
    let defaults = Options::new(verb);
    let options = Options {
        port: args.meeting.tcp_port,
        size: args.size,
        iterations: args.iters.unwrap_or(defaults.iterations),
        mtu: args.mtu,
        posted: args.tx_depth.into(),
        receives: args.rx_depth.into(),
        patience: args.meeting.patience(),
    };
    let outcome = bandwidth(&mut *provider, verb, args.meeting.host.as_deref(), &options)?;
    if args.meeting.json {
        println!("{}", serde_json::to_string(&Told::of(&outcome))?);
    } else {
        print_text(&outcome);
    }
    Ok(())
}

#[derive(Serialize)]
struct Told {
    local: Port,
    remote: Port,
    mtu: usize,
    /// Who has measured: this end, or the other one.
    measured_here: bool,
    size: u64,
    iterations: u64,
    peak_mib_per_s: f64,
    average_mib_per_s: f64,
    million_messages_per_s: f64,
    counters: serde_json::Map<String, serde_json::Value>,
}

#[derive(Serialize)]
pub(super) struct Port {
    qpn: u32,
    psn: u32,
    gid: String,
}

impl Port {
    pub(super) fn of(keys: &Keys) -> Self {
        Self {
            qpn: keys.qpn.bits(),
            psn: keys.psn.bits(),
            gid: keys.gid.to_string(),
        }
    }
}

fn figures(outcome: &Outcome) -> Report {
    let nothing = Report {
        size: 0,
        iterations: 0,
        peak: 0.0,
        average: 0.0,
        rate: 0.0,
    };
    outcome.measured.or(outcome.told).unwrap_or(nothing)
}

impl Told {
    fn of(outcome: &Outcome) -> Self {
        let report = figures(outcome);
        let counters = outcome.counters.iter().flat_map(|counters| counters.iter());
        Self {
            local: Port::of(&outcome.own),
            remote: Port::of(&outcome.peer),
            mtu: outcome.mtu.bytes(),
            measured_here: outcome.measured.is_some(),
            size: report.size,
            iterations: report.iterations,
            peak_mib_per_s: report.peak,
            average_mib_per_s: report.average,
            million_messages_per_s: report.rate,
            counters: counters
                .map(|(name, count)| (name.to_owned(), count.into()))
                .collect(),
        }
    }
}

pub(super) fn print_keys(which: &str, at: &Keys) {
    let (qpn, psn) = (at.qpn, at.psn.bits());
    println!("  {which} QPN {qpn}, PSN {psn:#08x}, GID {}", at.gid);
}

fn print_text(outcome: &Outcome) {
    print_keys("local address: ", &outcome.own);
    print_keys("remote address:", &outcome.peer);
    let report = figures(outcome);
    println!("  MTU {}", outcome.mtu.bytes());
    println!(" #bytes     #iterations    BW peak[MiB/s]    BW average[MiB/s]   MsgRate[Mpps]");
    println!(
        " {:<10} {:<14} {:<17.2} {:<19.2} {:.6}",
        report.size, report.iterations, report.peak, report.average, report.rate
    );
    if let Some(counters) = &outcome.counters {
        super::print_losses(counters);
    }
}
