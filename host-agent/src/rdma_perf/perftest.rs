//! Options that all of perftest's programs accept, and that have no effect here or are refused with an alternative.

use clap::Args;

/// Options that scripts pass to every program of perftest.
#[derive(Debug, Clone, Args)]
pub struct PerftestArgs {
    /// Accepted without effect: lets perftest tolerate a varying CPU frequency, on which no measurement here depends.
    #[arg(short = 'F', long = "CPU-freq")]
    any_clock: bool,
    /// Measure all powers of two from 2 bytes to 8 MiB, instead of --size; give it at both ends.
    #[arg(short, long)]
    pub all: bool,
    /// Number of queue pairs; only 1 is supported.
    #[arg(short, long, default_value = "1", value_name = "NUMBER", value_parser = queue_pairs)]
    qp: u32,
    /// Transport service; only RC is supported.
    #[arg(short, long, default_value = "RC", value_name = "SERVICE", value_parser = service)]
    connection: String,
    #[arg(short = 'i', long = "ib-port", hide = true, value_parser = device_port)]
    device_port: Option<u32>,
    #[arg(short = 'x', long = "gid-index", hide = true, value_parser = gid_index)]
    gid_index: Option<u32>,
    #[arg(short = 'R', long = "rdma_cm", hide = true, value_parser = rdma_cm, num_args = 0, default_missing_value = "")]
    rdma_cm: Option<String>,
}

fn queue_pairs(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(1) => Ok(1),
        _ => Err(
            "a test has one queue pair: start several pairs of programs, each with a --port of its own, or measure several \
             queue pairs with `collectives-perf --qps`"
                .to_owned(),
        ),
    }
}

fn service(text: &str) -> Result<String, String> {
    match text {
        "RC" => Ok(text.to_owned()),
        _ => Err(
            "weir tests reliable connections only: leave the option out at both ends".to_owned(),
        ),
    }
}

fn device_port(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(1) => Ok(1),
        _ => Err("name the port's interface instead: `-d NAME`".to_owned()),
    }
}

fn gid_index(_: &str) -> Result<u32, String> {
    Err("the GID is that of the interface's IPv4 address: leave the option out, and name the interface with `-d`".to_owned())
}

fn rdma_cm(_: &str) -> Result<String, String> {
    Err("the programs meet over TCP, not by rdma_cm: leave the option out at both ends".to_owned())
}
