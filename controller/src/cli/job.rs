//! `weir job`: jobs on a switch that runs already.

use clap::{Args, Subcommand};
use controller::jobs::Host;
use scenario::job::SLOTS;
use scenario::units::Dimension;
use std::time::Duration;

/// `weir job`
#[derive(Debug, Subcommand)]
pub enum Job {
    /// Give a switch the program that sums, the hosts that it reaches, and tenants with slots of their own
    Setup(Setup),
    /// Admit a job, or say who has what it asks for; prints what its ranks are to have in their environment
    Admit(Admit),
    /// Make a job's lease last longer
    Renew(Renew),
    /// Renew a job's lease again and again; Ctrl-C, or SIGTERM, releases the job
    Keep(Keep),
    /// Take back what a job has
    Release(Named),
    /// Print what a rank is to have in its environment, for `eval`
    Env(Env),
    /// Say which jobs there are, what they hold, and which ports spoke for jobs of others
    List(List),
}

/// Which switch.
#[derive(Debug, Args)]
pub struct At {
    /// Where the switch serves P4Runtime
    #[arg(
        long = "switch",
        value_name = "IP:PORT",
        default_value = "127.0.0.1:9559"
    )]
    pub address: String,
    /// The device id that it was started with
    #[arg(long, value_name = "ID", default_value_t = 0)]
    pub device_id: u64,
}

/// `weir job setup`
#[derive(Debug, Args)]
pub struct Setup {
    /// Which switch
    #[command(flatten)]
    pub at: At,
    /// A host and the port that it is behind, such as 1=02:00:00:00:00:01; once for each
    #[arg(long = "host", value_name = "PORT=MAC", value_parser = clap::value_parser!(Host))]
    pub hosts: Vec<Host>,
    /// Who has slots that are nobody else's, such as lab=256 or lab=256,rate=1Gbit/s,jobs=4; once for each, in the place of all
    /// there were
    #[arg(long = "tenant", value_name = "NAME=SLOTS[,rate=RATE][,jobs=N]", value_parser = tenant)]
    pub tenants: Vec<admission::Tenant>,
    /// No tenant has slots of its own any more
    #[arg(long, conflicts_with = "tenants")]
    pub no_tenants: bool,
    /// End what another program does on the switch
    #[arg(long)]
    pub replace: bool,
}

/// `weir job admit`
#[derive(Debug, Args)]
pub struct Admit {
    /// The job's name
    pub name: String,
    /// Which switch
    #[command(flatten)]
    pub at: At,
    /// The ports that its ranks are behind, by rank, such as 1,2,5
    #[arg(long, value_name = "PORTS", value_delimiter = ',', required = true)]
    pub ports: Vec<u32>,
    /// Chunks that a rank may have under way, a power of two: so many slots of the switch are the job's
    #[arg(long, value_name = "SLOTS", default_value_t = 256,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(SLOTS)))]
    pub window: u32,
    /// What all its frames together may be, such as 100Mbit/s; what is more is marked (ECN), then dropped
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub rate: Option<u64>,
    /// In whose slots
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,
    /// The job's number on the wire; the lowest that is free, if not given
    #[arg(long, value_name = "NUMBER")]
    pub number: Option<u16>,
    /// For how long
    #[command(flatten)]
    pub lease: Lease,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// For how long.
#[derive(Debug, Args)]
pub struct Lease {
    /// How long the job may send, from now on, unless it is renewed
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = super::duration)]
    pub lease: Duration,
    /// The job may send until it is released
    #[arg(long, conflicts_with = "lease")]
    pub no_lease: bool,
}

impl Lease {
    /// In nanoseconds; `None`: until it is released.
    pub fn ns(&self) -> Option<u64> {
        let ns = || u64::try_from(self.lease.as_nanos()).unwrap_or(u64::MAX);
        (!self.no_lease).then(ns)
    }
}

/// `weir job renew`
#[derive(Debug, Args)]
pub struct Renew {
    /// The job's name
    pub name: String,
    /// Which switch
    #[command(flatten)]
    pub at: At,
    /// For how long
    #[command(flatten)]
    pub lease: Lease,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// `weir job keep`
#[derive(Debug, Args)]
pub struct Keep {
    /// The job's name
    pub name: String,
    /// Which switch
    #[command(flatten)]
    pub at: At,
    /// How long the job may go on after this command has died. It replaces the lease that the job has, a longer one too, and
    /// is renewed three times within this time
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = super::duration)]
    pub lease: Duration,
}

/// `weir job release`
#[derive(Debug, Args)]
pub struct Named {
    /// The job's name
    pub name: String,
    /// Which switch
    #[command(flatten)]
    pub at: At,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// `weir job env`
#[derive(Debug, Args)]
pub struct Env {
    /// The job's name
    pub name: String,
    /// Which of its ranks
    pub rank: usize,
    /// Which switch
    #[command(flatten)]
    pub at: At,
}

/// `weir job list`
#[derive(Debug, Args)]
pub struct List {
    /// Which switch
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
        .map_err(|_| format!("`{slots}` is no number of slots"))?;
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
                let jobs = text.parse();
                tenant.jobs = Some(jobs.map_err(|_| format!("`{text}` is no number of jobs"))?);
            }
            _ => return Err(format!("`{part}` is neither rate=RATE nor jobs=N")),
        }
    }
    Ok(tenant)
}
