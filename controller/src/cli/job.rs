//! Arguments of the subcommands of `weir job`, as clap parses them.

use clap::{Args, Subcommand};
use controller::jobs::Host;
use scenario::model::job::SLOTS;
use scenario::units::Dimension;
use std::time::Duration;

/// Subcommands of `weir job`.
#[derive(Debug, Subcommand)]
pub enum Job {
    /// Load the summing program into a switch, and set its hosts and the slots of its tenants
    Setup(Setup),
    /// Admit a job, and print the environment variables of its ranks; a refusal names the holder of each resource
    Admit(Admit),
    /// Extend a job's lease
    Renew(Renew),
    /// Keep renewing a job's lease; Ctrl-C or SIGTERM releases the job
    Keep(Keep),
    /// End a job, and free its slots
    Release(Named),
    /// Print the environment variables of a rank, for `eval`
    Env(Env),
    /// List the jobs, what they hold, and the ports that sent packets of jobs of others
    List(List),
}

/// Arguments of all subcommands of `weir job`: the switch that they work on.
#[derive(Debug, Args)]
pub struct At {
    /// P4Runtime address of the switch
    #[arg(
        long = "switch",
        value_name = "IP:PORT",
        default_value = "127.0.0.1:9559"
    )]
    pub address: String,
    /// Device id of the switch, as it was started
    #[arg(long, value_name = "ID", default_value_t = 0)]
    pub device_id: u64,
}

/// Arguments of `weir job setup`.
#[derive(Debug, Args)]
pub struct Setup {
    /// The switch to prepare for jobs.
    #[command(flatten)]
    pub at: At,
    /// A host and its port, such as 1=02:00:00:00:00:01; repeat for each host
    #[arg(long = "host", value_name = "PORT=MAC", value_parser = clap::value_parser!(Host))]
    pub hosts: Vec<Host>,
    /// A tenant and its number of reserved slots, such as lab=256 or lab=256,rate=1Gbit/s,jobs=4; repeat for each tenant.
    /// Replaces all earlier tenants
    #[arg(long = "tenant", value_name = "NAME=SLOTS[,rate=RATE][,jobs=N]", value_parser = tenant)]
    pub tenants: Vec<admission::Tenant>,
    /// Remove all tenants
    #[arg(long, conflicts_with = "tenants")]
    pub no_tenants: bool,
    /// Replace another program that the switch runs
    #[arg(long)]
    pub replace: bool,
}

/// Arguments of `weir job admit`.
#[derive(Debug, Args)]
pub struct Admit {
    /// The job's name
    pub name: String,
    /// The switch that is to sum for the job.
    #[command(flatten)]
    pub at: At,
    /// Ports of its ranks, in the order of the ranks, such as 1,2,5
    #[arg(long, value_name = "PORTS", value_delimiter = ',', required = true)]
    pub ports: Vec<u32>,
    /// Maximum number of a rank's chunks in flight, a power of two, and number of the job's slots on the switch
    #[arg(long, value_name = "SLOTS", default_value_t = 256,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(SLOTS)))]
    pub window: u32,
    /// Maximum rate of all its frames together, such as 100Mbit/s; frames above it are marked (ECN), then dropped
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub rate: Option<u64>,
    /// Tenant whose slots the job uses
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,
    /// The job's number on the wire; without, the lowest free one
    #[arg(long, value_name = "NUMBER")]
    pub number: Option<u16>,
    /// Time after which the job may no longer send.
    #[command(flatten)]
    pub lease: Lease,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// Arguments of a job's lease: the time after which the job may no longer send.
#[derive(Debug, Args)]
pub struct Lease {
    /// Time for which the job may send from now on, unless it is renewed
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = super::duration)]
    pub lease: Duration,
    /// Let the job send until it is released
    #[arg(long, conflicts_with = "lease")]
    pub no_lease: bool,
}

impl Lease {
    /// Duration of the lease in nanoseconds; `None`: the job may send until it is released.
    pub fn ns(&self) -> Option<u64> {
        let ns = || u64::try_from(self.lease.as_nanos()).unwrap_or(u64::MAX);
        (!self.no_lease).then(ns)
    }
}

/// Arguments of `weir job renew`.
#[derive(Debug, Args)]
pub struct Renew {
    /// The job's name
    pub name: String,
    /// The switch that sums for the job.
    #[command(flatten)]
    pub at: At,
    /// The new lease, which begins now.
    #[command(flatten)]
    pub lease: Lease,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `weir job keep`.
#[derive(Debug, Args)]
pub struct Keep {
    /// The job's name
    pub name: String,
    /// The switch that sums for the job.
    #[command(flatten)]
    pub at: At,
    /// Time for which the job may send after this command has died. It replaces the job's present lease, even a longer one;
    /// the command renews it three times within this time
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = super::duration)]
    pub lease: Duration,
}

/// Arguments of `weir job release`.
#[derive(Debug, Args)]
pub struct Named {
    /// The job's name
    pub name: String,
    /// The switch that sums for the job.
    #[command(flatten)]
    pub at: At,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `weir job env`.
#[derive(Debug, Args)]
pub struct Env {
    /// The job's name
    pub name: String,
    /// The rank, from 0
    pub rank: usize,
    /// The switch that sums for the job.
    #[command(flatten)]
    pub at: At,
}

/// Arguments of `weir job list`.
#[derive(Debug, Args)]
pub struct List {
    /// The switch whose jobs are listed.
    #[command(flatten)]
    pub at: At,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

fn rate(text: &str) -> Result<u64, String> {
    super::quantity(text, Dimension::Rate)
}

fn tenant(text: &str) -> Result<admission::Tenant, String> {
    let mut parts = text.split(',');
    let first = parts.next().unwrap_or_default();
    let (name, slots) = first
        .split_once('=')
        .ok_or("expected NAME=SLOTS, such as lab=256")?;
    let slots = slots
        .parse()
        .map_err(|_| format!("`{slots}` is not a number of slots, such as 256"))?;
    let mut tenant = admission::Tenant {
        name: name.to_owned(),
        slots,
        rate_bps: None,
        jobs: None,
    };
    for part in parts {
        match part.split_once('=') {
            Some(("rate", text)) => tenant.rate_bps = Some(rate(text)?),
            Some(("jobs", text)) => {
                let wrong = |_| format!("`{text}` is not a number of jobs, such as 4");
                tenant.jobs = Some(text.parse().map_err(wrong)?);
            }
            _ => return Err(format!("`{part}` is unknown: expected rate=RATE or jobs=N")),
        }
    }
    Ok(tenant)
}
