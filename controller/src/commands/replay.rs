//! `weir replay RUN`: judges a run again from its folder, or executes it again.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use controller::progress::Progress;
use controller::report::table::Table;
use controller::report::text::report;
use controller::report::{Check, Verdict};
use controller::run_folder::replay::{Checked, Replayed};
use controller::run_folder::{self, StoredRun, replay};
use controller::target::Kind;
use serde_json::json;

use super::colour::stdout_colour;
use super::{FAILED, fail, print, print_json, protocols, run};
use crate::cli;

/// Performs `weir replay`.
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

fn offline(args: &cli::Replay, kept: &StoredRun) -> Result<ExitCode, ExitCode> {
    let name = &kept.planned.scenario.name;
    Progress::without_bar(name, args.json).judge(kept.evidence.frames().1);
    let replayed = match replay::replay(kept).map_err(fail)? {
        Replayed::Judged(judged) => judged,
        Replayed::Checked(checked) => return checked_only(args, kept, &checked),
    };
    let unproved = replayed
        .conclusion
        .faults
        .iter()
        .filter(|fault| !fault.proved)
        .map(|fault| (&fault.id, &fault.reason));
    let disruptions = replayed.conclusion.disruptions.iter();
    let disruptions = disruptions.filter(|fault| !fault.proved);
    let disruptions = disruptions.map(|fault| (&fault.id, &fault.reason));
    let unproved: Vec<_> = unproved.chain(disruptions).collect();
    if args.json {
        print_json(&json!({
            "run": args.run,
            "scenario": kept.stored.scenario,
            "identical": replayed.difference.is_none(),
            "events": replayed.events,
            "difference": replayed.difference,
            "faults": replayed.conclusion.faults,
            "disruptions": replayed.conclusion.disruptions,
            "triggers": replayed.conclusion.triggers,
        }))?;
    } else {
        let events = replayed.events;
        let mut text = match &replayed.difference {
            None => format!(
                "{}: {events} events, the same as in the run's log\n",
                args.run.display()
            ),
            Some(difference) => {
                let line =
                    |line: &Option<String>| line.clone().unwrap_or_else(|| "nothing".to_owned());
                format!(
                    "{}: line {} of the log differs\n  the run:   {}\n  replayed:  {}\n",
                    args.run.join(run_folder::EVENTS).display(),
                    difference.line,
                    line(&difference.stored),
                    line(&difference.replayed)
                )
            }
        };
        for (id, reason) in &unproved {
            let reason = reason.as_deref().unwrap_or("no reason given");
            text += &format!("{id}: not proved: {reason}\n");
        }
        for trigger in replayed
            .conclusion
            .triggers
            .iter()
            .filter(|trigger| !trigger.proved)
        {
            let reason = trigger.reason.as_deref().unwrap_or("no reason given");
            text += &format!("trigger {}: not proved: {reason}\n", trigger.name);
        }
        print(text)?;
    }
    let all_are_proved = unproved.is_empty()
        && replayed
            .conclusion
            .triggers
            .iter()
            .all(|trigger| trigger.proved);
    Ok(match replayed.difference.is_none() && all_are_proved {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(FAILED),
    })
}

/// Prints the comparison of a run's log with the frames in its folder, if the folder does not have every frame.
fn checked_only(
    args: &cli::Replay,
    kept: &StoredRun,
    checked: &Checked,
) -> Result<ExitCode, ExitCode> {
    let is_sound = checked.difference.is_none();
    if args.json {
        print_json(&json!({
            "run": args.run,
            "scenario": kept.stored.scenario,
            "judged_again": false,
            "consistent": is_sound,
            "checked": checked,
        }))?;
    } else {
        let Checked {
            passed,
            kept: frames,
            events,
            found,
            ..
        } = checked;
        let run = args.run.display();
        let mut text = format!(
            "{run}: not judged again: the folder has {frames} of the {passed} judged frames; `captures: all` keeps all\n"
        );
        text += &match &checked.difference {
            Some(difference) => format!("{run}: {difference}\n"),
            None => format!(
                "{run}: {events} events, as many as the switches counted; the captures contain {found} of their frames, as \
                 logged\n"
            ),
        };
        print(text)?;
    }
    Ok(match is_sound {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(FAILED),
    })
}

/// Executes the scenario once more, and compares which packets (by number in their flow) the faults hit in both runs.
fn live(args: &cli::Replay, kept: &StoredRun, folder: &Path) -> Result<ExitCode, ExitCode> {
    let is_same = |a: &Path, b: &Path| matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b);
    if is_same(&args.run, folder) {
        return Err(fail(format_args!(
            "--live {} is the folder of the run itself: use another folder",
            folder.display()
        )));
    }
    let file = PathBuf::from(&kept.stored.file);
    let scenario = &kept.planned.scenario;
    let changed = |what: &Path, kept: &str| {
        fail(format_args!(
            "{} has changed since the run; to run it again, replace it by the run's copy: {}",
            what.display(),
            args.run.join(kept).display()
        ))
    };
    let is_there = std::fs::read_to_string(&file);
    if !is_there.is_ok_and(|text| text == scenario.text) {
        return Err(changed(&file, run_folder::SCENARIO));
    }
    if let Some(ran) = &scenario.workload_file {
        let named = scenario::named_workload(&scenario.file, &scenario.text).unwrap_or_default();
        let given = protocols::named(&file, &scenario.text).workload;
        if !given.is_some_and(|now| now.is_ok_and(|now| now.text == ran.text)) {
            let path = file.with_file_name(named);
            return Err(changed(&path, run_folder::WORKLOAD));
        }
    }
    if let Some(ran) = &scenario.topology_file {
        let named = scenario::named_topology(&scenario.file, &scenario.text).unwrap_or_default();
        let given = protocols::named(&file, &scenario.text).topology;
        if !given.is_some_and(|now| now.is_ok_and(|now| now.text == ran.text)) {
            let kept = run_folder::topology_file(&named);
            return Err(changed(&file.with_file_name(named), kept));
        }
    }
    let kind = Kind::from_str(&kept.stored.target, false).map_err(fail)?;
    let again = cli::Run {
        file,
        report: None,
        json: false,
        out: Some(folder.to_owned()),
        captures: Some(scenario.captures),
        p4src: None,
        target: cli::Target::new(kind),
        protocols: cli::Protocols {
            protocols: args.protocols.protocols.clone(),
        },
    };
    let printed = match args.json {
        true => run::Printed::Nothing,
        false => run::Printed::All,
    };
    run::run(&again, printed)?;
    let second = run_folder::load(folder).map_err(fail)?;
    let compared = replay::compare(kept, &second);
    let disruptions = replay::compare_disruptions(kept, &second);
    let differs = compared.iter().any(|flow| !flow.differing.is_empty())
        || disruptions.iter().any(|disruption| !disruption.as_planned);
    let is_compared =
        compared.iter().any(|flow| flow.not_compared.is_none()) || !disruptions.is_empty();
    if args.json {
        print_json(
            &json!({ "run": args.run, "live": folder, "identical": !differs && is_compared, "flows": compared,
                    "disruptions": disruptions }),
        )?;
    } else {
        let mut table = Table::new([
            "fault",
            "flow",
            "met",
            "met again",
            "hit in both",
            "in only one",
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
        let mut others = Table::new([
            "fault",
            "on",
            "due",
            "carried out",
            "due again",
            "carried out",
        ]);
        for disruption in &disruptions {
            others.row([
                disruption.fault.clone(),
                disruption.on.clone(),
                disruption.due[0].to_string(),
                disruption.carried[0].to_string(),
                disruption.due[1].to_string(),
                disruption.carried[1].to_string(),
            ]);
        }
        let claim = match disruptions.is_empty() {
            true => "each fault hit the same packets in both runs, as far as both runs had them",
            false => {
                "each fault hit the same packets in both runs, as far as both runs had them; and both runs disrupted programs and switches as planned"
            }
        };
        let claim = match is_compared {
            true => claim,
            false => {
                "nothing was compared: the connections of the two runs differ, so each run is proved on its own"
            }
        };
        let verdict = Verdict {
            checks: vec![Check::new(!differs && is_compared, claim)],
            ..Verdict::default()
        };
        print(report(&title, &verdict, &[table, others], stdout_colour()))?;
    }
    Ok(match differs || !is_compared {
        true => ExitCode::from(FAILED),
        false => ExitCode::SUCCESS,
    })
}
