//! `weir plan FILE`: shows a scenario's plan, and writes its P4 programs and table entries if the user asks for them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use controller::experiment::Planned;
use controller::experiment::fleet::change::Change;
use controller::experiment::fleet::replace::Replacement;
#[cfg(feature = "testbed")]
use controller::experiment::prepare::capture_cost::Captures;
use controller::program;
use controller::target::Kind;
use p4lang::tofino::{self, Chip};
use parser_gen::Arch;
use scenario::plan::{Over, SwitchPlan};
use scenario::{Plan, Scenario, TargetModel};
use serde::Serialize;

use super::topology::Network;
use super::{ERROR, fail, load, print, print_json, show};
use crate::cli::{self, PlanFor};

/// Performs `weir plan`.
pub fn main(args: &cli::Plan) -> ExitCode {
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(code) => code,
    }
}

fn run(args: &cli::Plan) -> Result<(), ExitCode> {
    let scenario = load(&args.file, &args.protocols.protocols)?;
    let target = Target::new(args.target);
    let plan = match args.with.is_empty() {
        true => alone(&scenario, target)?,
        false => together(args, &scenario, target)?,
    };
    let over = match &args.over {
        Some(old) => Some(replacement(args, old, target, (&scenario, &plan))?),
        None => None,
    };
    if args.topology {
        print_json(&Network::new(&scenario))?;
    } else if args.json {
        print_json(&Shown {
            plan: &plan,
            captures: captures(args, target, (&scenario, &plan)),
            over: over.as_ref(),
        })?;
    } else if let Some(over) = &over {
        print(format_args!("{plan}\n{over}"))?;
    } else {
        print(&plan)?;
        if let Some(captures) = captures(args, target, (&scenario, &plan)) {
            print(format_args!("\n{captures}"))?;
        }
        if let Target::Chip(chip, _) = target {
            costs(&plan, chip)?;
        }
    }
    match &args.emit_p4 {
        Some(folder) => emit(&plan, target, folder),
        None => Ok(()),
    }
}

fn alone(scenario: &Scenario, target: Target) -> Result<Plan, ExitCode> {
    // No run captures frames at a chip, so its plan needs no proof.
    let plan = match target {
        Target::Here(kind) => scenario::plan_to_prove(scenario, &kind.model()),
        Target::Chip(_, model) => scenario::plan(scenario, &model),
    };
    plan.map_err(|diagnostics| show(&diagnostics, &scenario.file, &scenario.text))
}

/// Plans a scenario together with those of `--with`, which run on the same switches; returns the plan of the first one.
fn together(args: &cli::Plan, scenario: &Scenario, target: Target) -> Result<Plan, ExitCode> {
    let others = args.with.iter();
    let others = others.map(|file| load(file, &args.protocols.protocols));
    let others: Vec<Scenario> = others.collect::<Result<_, _>>()?;
    let all: Vec<&Scenario> = std::iter::once(scenario).chain(&others).collect();
    let model = match target {
        Target::Here(kind) => kind.model(),
        Target::Chip(_, model) => model,
    };
    let mut plans = match scenario::plan_together(&all, &model) {
        Ok(plans) => plans,
        Err(diagnostics) => {
            for diagnostic in &diagnostics.0 {
                let of = all.iter().find(|one| one.file == diagnostic.file);
                let source = of.map_or(scenario.source(), |one| one.source());
                cli_io::stderr::tell(format_args!("{}\n", diagnostic.render(&source)));
            }
            return Err(ExitCode::from(ERROR));
        }
    };
    Ok(plans.swap_remove(0))
}

/// Target of a plan: a kind of switch that weir can control, or a Tofino chip.
#[derive(Clone, Copy)]
enum Target {
    Here(Kind),
    Chip(Chip, TargetModel),
}

impl Target {
    fn new(wanted: PlanFor) -> Target {
        match wanted {
            PlanFor::Embedded => Target::Here(Kind::Embedded),
            PlanFor::SimpleSwitchGrpc => Target::Here(Kind::SimpleSwitchGrpc),
            PlanFor::PsaSwitch => Target::Here(Kind::PsaSwitch),
            PlanFor::Tofino => Target::Chip(Chip::Tofino, TargetModel::TOFINO),
            PlanFor::Tofino2 => Target::Chip(Chip::Tofino2, TargetModel::TOFINO2),
        }
    }

    fn arch(self) -> Arch {
        match self {
            Target::Here(kind) => kind.arch(),
            Target::Chip(..) => Arch::Tna,
        }
    }

    /// Text of each P4 source file of a switch's program, by path.
    fn sources(self, switch: &SwitchPlan) -> Result<BTreeMap<String, String>, ExitCode> {
        match self {
            Target::Here(kind) => {
                let program = program::build(kind.arch(), switch, None).map_err(fail)?;
                Ok(program.sources)
            }
            Target::Chip(chip, _) => {
                let (_, sources) = program::for_chip(chip, switch).map_err(fail)?;
                Ok(sources)
            }
        }
    }
}

/// The changes that replace the scenario of `--over` on running switches.
#[derive(Serialize)]
struct PlannedReplacement {
    old: String,
    switches: Vec<Change>,
    faults: Over,
}

/// The JSON object that `weir plan --json` prints.
#[derive(Serialize)]
struct Shown<'a, C: Serialize> {
    #[serde(flatten)]
    plan: &'a Plan,
    #[serde(skip_serializing_if = "Option::is_none")]
    captures: Option<C>,
    #[serde(skip_serializing_if = "Option::is_none")]
    over: Option<&'a PlannedReplacement>,
}

/// The ports that a run of the plan captures; `None` for a chip, `--with` or `--over`: there are no such runs with captures.
#[cfg(feature = "testbed")]
fn captures(
    args: &cli::Plan,
    target: Target,
    (scenario, plan): (&Scenario, &Plan),
) -> Option<Captures> {
    let Target::Here(_) = target else {
        return None;
    };
    let is_alone = args.with.is_empty() && args.over.is_none();
    is_alone.then(|| {
        Captures::from_planned(&Planned {
            scenario: scenario.clone(),
            plan: plan.clone(),
        })
    })
}

/// Returns `None`: without the feature `testbed`, weir captures nothing.
#[cfg(not(feature = "testbed"))]
fn captures(_: &cli::Plan, _: Target, _: (&Scenario, &Plan)) -> Option<String> {
    None
}

impl fmt::Display for PlannedReplacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "replacing {}", self.old)?;
        for change in &self.switches {
            writeln!(f, "  switch {}: {change}", change.switch)?;
        }
        write!(f, "{}", self.faults)
    }
}

fn replacement(
    args: &cli::Plan,
    old: &Path,
    target: Target,
    (scenario, plan): (&Scenario, &Plan),
) -> Result<PlannedReplacement, ExitCode> {
    let Target::Here(kind @ Kind::Embedded) = target else {
        return Err(fail(
            "--over: only the target `embedded` can replace a running scenario: use `--target embedded`",
        ));
    };
    let scenario_of_old = load(old, &args.protocols.protocols)?;
    let (file, text) = (scenario_of_old.file.clone(), scenario_of_old.text.clone());
    let old = Planned::new(scenario_of_old, kind).map_err(|errors| show(&errors, &file, &text))?;
    let new = Planned {
        scenario: scenario.clone(),
        plan: plan.clone(),
    };
    let next = Replacement::prepare(&old, new, kind, None).map_err(fail)?;
    Ok(PlannedReplacement {
        old: file,
        switches: next.changes(&old, kind).map_err(fail)?,
        faults: next.over,
    })
}

/// Prints a lower bound of the resources that each switch's program needs on the chip.
fn costs(plan: &Plan, chip: Chip) -> Result<(), ExitCode> {
    for switch in &plan.switches {
        let (compiled, _) = program::for_chip(chip, switch).map_err(fail)?;
        let report = tofino::analyse(&compiled.program, chip).map_err(fail)?;
        print(format_args!(
            "\nswitch {}: lower bound of its program's resources (docs/tofino.md)\n{report}",
            switch.name
        ))?;
    }
    Ok(())
}

/// Name of the file with the initial table entries of a program.
const ENTRIES: &str = "entries.json";

/// Writes the complete P4 program of each switch, ready for p4c, and its initial table entries.
fn emit(plan: &Plan, target: Target, folder: &Path) -> Result<(), ExitCode> {
    for switch in &plan.switches {
        let mut files = target.sources(switch)?;
        let entries = program::written(target.arch(), switch).map_err(fail)?;
        files.insert(ENTRIES.to_owned(), entries);
        for (path, text) in &files {
            let file = folder.join(&switch.name).join(path);
            let written = file
                .parent()
                .map_or(Ok(()), std::fs::create_dir_all)
                .and_then(|()| std::fs::write(&file, text));
            written
                .map_err(|error| fail(format_args!("cannot write {}: {error}", file.display())))?;
        }
    }
    Ok(())
}
