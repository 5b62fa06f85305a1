//! `weir replay RUN`: a run judged again from its folder, or carried out again.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use controller::report::table::Table;
use controller::report::text::report;
use controller::report::{Check, Verdict};
use controller::run_folder::{self, Kept, replay};
use controller::target::Kind;
use serde_json::json;

use super::p4::stdout_colour;
use super::{FAILED, fail, print, print_json, run};
use crate::cli;

/// Judges a run again.
pub fn main(args: &cli::Replay) -> ExitCode {
    replay(args).unwrap_or_else(|code| code)
}

fn replay(args: &cli::Replay) -> Result<ExitCode, ExitCode> {
    let kept = run_folder::load(&args.run).map_err(fail)?;
    match &args.live {
        Some(folder) => live(args, &kept, folder),
        None => offline(args, &kept),
    }
}

fn offline(args: &cli::Replay, kept: &Kept) -> Result<ExitCode, ExitCode> {
    let replayed = replay::replay(kept);
    let unproved = replayed
        .conclusion
        .faults
        .iter()
        .filter(|fault| !fault.is_proved());
    let unproved: Vec<_> = unproved.collect();
    if args.json {
        print_json(&json!({
            "run": args.run,
            "scenario": kept.stored.scenario,
            "identical": replayed.difference.is_none(),
            "events": replayed.events,
            "difference": replayed.difference,
            "faults": replayed.conclusion.faults,
            "triggers": replayed.conclusion.triggers,
        }))?;
    } else {
        let events = replayed.events;
        let mut text = match &replayed.difference {
            None => format!(
                "{}: {events} events, as the run has them\n",
                args.run.display()
            ),
            Some(difference) => {
                let line =
                    |line: &Option<String>| line.clone().unwrap_or_else(|| "nothing".to_owned());
                format!(
                    "{}: line {} of the log is another one\n  the run:   {}\n  replayed:  {}\n",
                    args.run.join(run_folder::EVENTS).display(),
                    difference.line,
                    line(&difference.stored),
                    line(&difference.replayed)
                )
            }
        };
        for fault in &unproved {
            let reason = fault.reason.as_deref().unwrap_or("it is not proved");
            text += &format!("{}: not proved: {reason}\n", fault.id);
        }
        for trigger in replayed
            .conclusion
            .triggers
            .iter()
            .filter(|trigger| !trigger.proved)
        {
            let reason = trigger.reason.as_deref().unwrap_or("it is not proved");
            text += &format!("trigger {}: not proved: {reason}\n", trigger.name);
        }
        print(text)?;
    }
    Ok(match replayed.difference.is_none() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(FAILED),
    })
}

/// Carries the scenario out once more, and holds the ordinals that were hit against those of the run.
fn live(args: &cli::Replay, kept: &Kept, folder: &Path) -> Result<ExitCode, ExitCode> {
    let file = PathBuf::from(&kept.stored.file);
    let is_there = std::fs::read_to_string(&file);
    if !is_there.is_ok_and(|text| text == kept.planned.scenario.text) {
        return Err(fail(format_args!(
            "{} is not what it was when it ran, and what it names stands beside it: put {} in its place",
            file.display(),
            args.run.join(run_folder::SCENARIO).display()
        )));
    }
    let kind = Kind::from_str(&kept.stored.target, false).map_err(fail)?;
    let again = cli::Run {
        file,
        report: None,
        json: false,
        pcap: None,
        out: Some(folder.to_owned()),
        p4src: None,
        target: cli::Target::of(kind),
        protocols: cli::Protocols {
            protocols: args.protocols.protocols.clone(),
        },
    };
    let telling = match args.json {
        true => run::Telling::Nothing,
        false => run::Telling::All,
    };
    run::run(&again, telling)?;
    let second = run_folder::load(folder).map_err(fail)?;
    let (before, after) = (replay::replay(kept), replay::replay(&second));
    let compared = replay::compare((kept, &before.conclusion), (&second, &after.conclusion));
    let differs = compared.iter().any(|flow| !flow.differing.is_empty());
    if args.json {
        print_json(
            &json!({ "run": args.run, "live": folder, "identical": !differs, "flows": compared }),
        )?;
    } else {
        let mut table = Table::new([
            "fault",
            "flow",
            "met",
            "met again",
            "hit in both",
            "in one alone",
        ]);
        for flow in &compared {
            let alone = match &flow.not_compared {
                Some(_) => "not compared".to_owned(),
                None => match flow.differing.as_slice() {
                    [] => "none".to_owned(),
                    ordinals => ordinals
                        .iter()
                        .take(8)
                        .map(|n| format!("#{n}"))
                        .collect::<Vec<_>>()
                        .join(", "),
                },
            };
            table.row([
                flow.fault.clone(),
                flow.flow.clone(),
                flow.met[0].to_string(),
                flow.met[1].to_string(),
                flow.alike.to_string(),
                alone,
            ]);
        }
        let title = format!("weir replay {}", kept.stored.scenario);
        let said = "of the packets that both runs had, each fault hit the same";
        let verdict = Verdict {
            checks: vec![Check::new(!differs, said)],
            ..Verdict::default()
        };
        print(report(&title, &verdict, &[table], stdout_colour()))?;
    }
    Ok(if differs {
        ExitCode::from(FAILED)
    } else {
        ExitCode::SUCCESS
    })
}
