//! `weir doctor`: reads this host, switches and ranks twice, and reports errors and chunks that do not move in between.
//!
//! Exit code 0 if nothing is wrong, 1 if something is wrong, 2 if the check itself fails.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use controller::doctor::{RankReadings, Session, SwitchReading, SwitchReadings, judge};
use host_agent::doctor::{self, Finding, Level, Wanted};
use host_agent::frames::Io;
use host_agent::metrics::{self, Status};
use host_agent::serve::Client;
use serde::Serialize;
use tokio::runtime::Runtime;

use super::{FAILED, fail, print, print_json};
use crate::cli::{Device, Doctor};

/// Timeout for a rank to answer.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct Report<'a> {
    healthy: bool,
    findings: &'a [Finding],
    /// Status of each rank that answered the second request.
    ranks: Vec<&'a Status>,
}

/// Performs `weir doctor`, and prints the findings.
pub fn main(args: &Doctor) -> ExitCode {
    run(args).unwrap_or_else(|code| code)
}

fn run(args: &Doctor) -> Result<ExitCode, ExitCode> {
    names_differ(&args.switches)?;
    let (switches, mut findings) = sessions(&args.switches)?;
    let before: Vec<_> = switches.iter().map(|(_, session)| session.look()).collect();
    let asked: Vec<_> = args
        .ranks
        .iter()
        .map(|rank| metrics::fetch(rank, PATIENCE))
        .collect();
    if !switches.is_empty() || !args.ranks.is_empty() {
        std::thread::sleep(args.apart);
    }
    let ranks = args
        .ranks
        .iter()
        .zip(asked)
        .map(|(address, before)| RankReadings {
            address: address.to_string(),
            before: before.map_err(|error| error.to_string()),
            after: metrics::fetch(address, PATIENCE).map_err(|error| error.to_string()),
        });
    let ranks: Vec<RankReadings> = ranks.collect();
    let mut seen = Vec::new();
    for ((device, session), before) in switches.iter().zip(before) {
        let looked: Result<(SwitchReading, SwitchReading), _> =
            before.and_then(|before| Ok((before, session.look()?)));
        match looked {
            Ok((before, after)) => seen.push(SwitchReadings {
                name: device.name.clone(),
                before,
                after,
            }),
            Err(error) => findings.push(unreached(device, &error)),
        }
    }
    findings.extend(host(args, &ranks)?);
    findings.extend(judge(&seen, &ranks, args.apart));
    let healthy = findings.iter().all(|finding| finding.level < Level::Wrong);
    if args.json {
        print_json(&Report {
            healthy,
            findings: &findings,
            ranks: ranks.iter().filter_map(RankReadings::status).collect(),
        })?;
    } else {
        // Errors come last, where the user looks.
        findings.sort_by_key(|finding| finding.level);
        let lines: Vec<String> = findings
            .iter()
            .map(|finding| format!("{finding}\n"))
            .collect();
        print(lines.concat())?;
    }
    Ok(match healthy {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(FAILED),
    })
}

fn names_differ(switches: &[Device]) -> Result<(), ExitCode> {
    for (at, switch) in switches.iter().enumerate() {
        if switches[..at].iter().any(|other| other.name == switch.name) {
            let name = &switch.name;
            return Err(fail(format_args!(
                "--switch {name} is given twice: a switch has one address"
            )));
        }
    }
    Ok(())
}

type Sessions<'a> = Vec<(&'a Device, Session)>;

/// Opens a session with each switch, and returns findings on the switches that do not answer.
fn sessions(devices: &[Device]) -> Result<(Sessions<'_>, Vec<Finding>), ExitCode> {
    let (mut open, mut findings): (Sessions<'_>, _) = (Vec::new(), Vec::new());
    if devices.is_empty() {
        return Ok((open, findings));
    }
    let runtime =
        Runtime::new().map_err(|error| fail(format_args!("cannot start a runtime: {error}")))?;
    let runtime = Arc::new(runtime);
    for (number, device) in (1..).zip(devices) {
        let open_as = |id| Session::open(Arc::clone(&runtime), &device.address, id);
        let session = match device.id {
            Some(id) => open_as(id),
            // A run numbers its switches from 1; a switch that a user started by hand has 0.
            None => open_as(number).or_else(|error| open_as(0).map_err(|_| error)),
        };
        match session {
            Ok(session) => open.push((device, session)),
            Err(error) => findings.push(unreached(device, &error)),
        }
    }
    Ok((open, findings))
}

fn unreached(device: &Device, error: &impl std::fmt::Display) -> Finding {
    let hint = "its device id may be neither 0 nor its position among --switch: add the id, as in NAME=IP:PORT/ID";
    let finding = Finding::wrong(&format!("switch {}", device.name), error.to_string());
    match device.id {
        None => finding.hint(hint),
        Some(_) => finding,
    }
}

/// Checks this host if the user asked for that, or if the user named neither switches nor ranks.
fn host(args: &Doctor, ranks: &[RankReadings]) -> Result<Vec<Finding>, ExitCode> {
    let is_alone = args.switches.is_empty() && args.ranks.is_empty();
    if args.interface.is_none() && !is_alone && args.peers.is_empty() {
        return Ok(Vec::new());
    }
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let interface = args
        .interface
        .clone()
        .or_else(|| variable("WEIR_INTERFACE"));
    let interface = interface.unwrap_or_else(|| "eth0".to_owned());
    let io = match (args.io, variable("WEIR_IO")) {
        (Some(io), _) => io,
        (None, Some(name)) => name
            .parse()
            .map_err(|wrong| fail(format_args!("WEIR_IO: {wrong}")))?,
        (None, None) => Io::Auto,
    };
    let agent = variable("WEIR_AGENT").map(|path| {
        let client = Client::connect(Path::new(&path));
        let reply = client.and_then(|client| client.whereabouts(Some(&interface)));
        (path, reply.map_err(|error| error.to_string()))
    });
    let facts = doctor::facts(&interface);
    Ok(doctor::judge(
        &facts,
        &Wanted {
            interface,
            agent,
            io,
            values: args.values,
            peers: args.peers.clone(),
            ranks: ranks
                .iter()
                .filter_map(RankReadings::status)
                .map(|status| status.process)
                .collect(),
        },
    ))
}
