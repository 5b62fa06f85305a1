//! `weir job`: admits, renews, releases and lists jobs on a running switch (docs/jobs.md).

use std::process::ExitCode;
use std::time::Duration;

use admission::{Grant, Request};
use controller::jobs::{JobsError, Setup, Switch};
use scenario::units::show_duration;
use serde::Serialize;

use super::{fail, print, print_json};
use crate::cli::job::{Admit, At, Job, Keep};

/// The JSON object that is printed for an admitted job.
#[derive(Serialize)]
struct AdmittedJob {
    #[serde(flatten)]
    grant: Grant,
    /// Environment variables for each rank of the job, by rank.
    environment: Vec<std::collections::BTreeMap<&'static str, String>>,
}

impl AdmittedJob {
    fn new(grant: Grant) -> Self {
        let ranks = 0..grant.ports.len();
        let environment = ranks.map(|rank| grant.environment(rank).into_iter().collect());
        Self {
            environment: environment.collect(),
            grant,
        }
    }
}

/// Performs a subcommand of `weir job` on a switch.
pub fn main(job: &Job) -> ExitCode {
    run(job).map_or_else(|code| code, |()| ExitCode::SUCCESS)
}

fn run(job: &Job) -> Result<(), ExitCode> {
    match job {
        Job::Setup(args) => {
            let tenants = match (args.no_tenants, args.tenants.is_empty()) {
                (true, _) => Some(Vec::new()),
                (false, true) => None,
                (false, false) => Some(args.tenants.clone()),
            };
            let setup = Setup {
                hosts: args.hosts.clone(),
                tenants,
                replace: args.replace,
            };
            let is_loaded = at(&args.at)?.set_up(&setup).map_err(fail)?;
            let at = &args.at.address;
            match is_loaded {
                true => print(format_args!("loaded the program into the switch at {at}\n")),
                false => print(format_args!("the switch at {at} keeps its program\n")),
            }
        }
        Job::Admit(args) => admit(args),
        Job::Renew(args) => {
            admission::check_lease(args.lease.ns()).map_err(fail)?;
            let renewed = at(&args.at)?.renew(&args.name, args.lease.ns());
            let grant = renewed.map_err(fail)?;
            let message = match args.lease.ns() {
                Some(ns) => format!(
                    "job {} may send for another {}\n",
                    grant.name,
                    show_duration(ns)
                ),
                None => format!("job {} may send until it is released\n", grant.name),
            };
            print_grant(grant, args.json, &message)
        }
        Job::Keep(args) => keep(args),
        Job::Release(args) => {
            let released = at(&args.at)?.release(&args.name);
            let grant = released.map_err(fail)?;
            let message = format!("job {} is released\n", grant.name);
            print_grant(grant, args.json, &message)
        }
        Job::Env(args) => {
            let grant = at(&args.at)?.named(&args.name).map_err(fail)?;
            let variables = grant.environment(args.rank);
            if variables.is_empty() {
                let (name, ranks) = (&args.name, grant.ports.len());
                return Err(fail(format_args!(
                    "job `{name}` has {ranks} ranks, numbered from 0; there is no rank {}",
                    args.rank
                )));
            }
            let line = |(name, value)| format!("export {name}={value}\n");
            print(variables.into_iter().map(line).collect::<String>())
        }
        Job::List(args) => {
            let listing = at(&args.at)?.list().map_err(fail)?;
            match args.json {
                true => print_json(&listing),
                false => print(listing),
            }
        }
    }
}

fn at(at: &At) -> Result<Switch, ExitCode> {
    Switch::connect(&at.address, at.device_id).map_err(fail)
}

fn admit(args: &Admit) -> Result<(), ExitCode> {
    let request = Request {
        name: args.name.clone(),
        number: args.number,
        tenant: args.tenant.clone(),
        ports: args.ports.clone(),
        window: args.window,
        rate_bps: args.rate,
        lease_ns: args.lease.ns(),
    };
    // A switch that does not answer is waited for, so requests that it would refuse in any case are rejected first.
    request.check().map_err(fail)?;
    let grant = at(&args.at)?.admit(&request).map_err(fail)?;
    let mut message = String::new();
    for (rank, port) in grant.ports.iter().enumerate() {
        let variables = grant.environment(rank).into_iter();
        let variables = variables.map(|(name, value)| format!(" {name}={value}"));
        message += &format!("port {port}:{}\n", variables.collect::<String>());
    }
    print_grant(grant, args.json, &message)
}

fn print_grant(grant: Grant, as_json: bool, message: &str) -> Result<(), ExitCode> {
    match as_json {
        true => print_json(&AdmittedJob::new(grant)),
        false => print(message),
    }
}

/// Renews a job's lease until a signal ends the command, then releases the job. It opens a new session each time, so that other
/// controllers can use the switch in between. If the switch does not answer, it retries while the lease lasts.
fn keep(args: &Keep) -> Result<(), ExitCode> {
    let lease_ns = u64::try_from(args.lease.as_nanos()).unwrap_or(u64::MAX);
    admission::check_lease(Some(lease_ns)).map_err(fail)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| fail(format_args!("cannot start a runtime: {error}")))?;
    let renew = || at_of(args).and_then(|mut switch| switch.renew(&args.name, Some(lease_ns)));
    renew().map_err(fail)?;
    print(format_args!("keeping job {}\n", args.name))?;
    let mut ends = runtime.block_on(async { Signals::new() }).map_err(fail)?;
    let mut since_renewed = Duration::ZERO;
    let step = args.lease / 3;
    while !runtime.block_on(ends.within(step)) {
        match renew() {
            Ok(_) => since_renewed = Duration::ZERO,
            // The switch's refusal is final.
            Err(error @ JobsError::Refused(_)) => return Err(fail(error)),
            Err(error) => {
                since_renewed += step;
                if since_renewed >= args.lease {
                    return Err(fail(format_args!("the lease has expired: {error}")));
                }
                cli_io::stderr::tell(format_args!("weir: {error}; retrying\n"));
            }
        }
    }
    at_of(args)
        .and_then(|mut switch| switch.release(&args.name))
        .map_err(fail)?;
    print(format_args!("job {} is released\n", args.name))
}

fn at_of(args: &Keep) -> Result<Switch, JobsError> {
    Switch::connect(&args.at.address, args.at.device_id)
}

/// Receives the signals that end `weir job keep`: SIGINT, SIGTERM, SIGHUP.
struct Signals([tokio::signal::unix::Signal; 3]);

impl Signals {
    fn new() -> Result<Self, std::io::Error> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self([
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ]))
    }

    /// Waits for a signal, for at most `time`; returns whether one arrived.
    async fn within(&mut self, time: Duration) -> bool {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => true,
            _ = terminate.recv() => true,
            _ = hangup.recv() => true,
            () = tokio::time::sleep(time) => false,
        }
    }
}
