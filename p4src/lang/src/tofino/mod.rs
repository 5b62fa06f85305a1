//! The resources of a Tofino that a TNA program needs, and constructs that no Tofino can execute.
//!
//! Every figure is a **lower bound**: the cost with any compiler, for the program as written. The final placement costs
//! more: tables that cannot share a stage, padding of containers, ways of hash tables, copies. A program beyond a limit is
//! therefore certainly illegal, and one within it may still not fit. docs/tofino.md gives the measured gap to the bound.

mod expr;
mod field_path;
mod flow;
mod items;
mod limits;
mod memory;
mod parser;
mod salu;
mod text;

pub use limits::{Chip, ChipLimits};

use crate::diagnostics::{Code, Diagnostic};
use crate::ir::{Arch, Package, PackageArg, Program};
use crate::source::{Location, Span};
use flow::{Flow, Node};
use items::{bus_items, dependency_item, memory_items, packet_items};

/// The resources that a program needs, compared with those of a chip.
#[derive(Debug, Clone)]
pub struct Report {
    /// Resources of one pipe of the chip.
    pub limits: ChipLimits,
    /// The use of resources, one element per pipe of the program.
    pub pipes: Vec<Pipe>,
    /// Errors for constructs that are certainly illegal, warnings for constructs that may be.
    pub faults: Vec<Diagnostic>,
}

/// The resources that one pipe needs.
#[derive(Debug, Clone)]
pub struct Pipe {
    /// Name of the pipeline instance in the program.
    pub name: String,
    /// Resources with their use, always in the same order.
    pub items: Vec<Item>,
    /// Number of stages that the resources alone need: the maximum over all resources of amount used / amount per stage.
    pub stages_by_resources: u64,
    /// Number of stages needed with dependencies: nothing is placed before the stage at which its inputs are known.
    pub stages: u64,
    /// Number of passes through the pipe that a packet needs: `stages` divided by the number of stages of the chip, rounded up.
    pub passes: u64,
    /// The longest dependency chain: (stage, object, source position) of each step.
    pub critical_path: Vec<(u32, String, Location)>,
}

/// The use of one resource of a pipe, such as SRAM blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Name of the resource.
    pub name: &'static str,
    /// Lower bound of the amount that the program uses.
    pub used: u64,
    /// Amount that the pipe has; `None` if it is unknown.
    pub available: Option<u64>,
    /// The source line that uses most of the resource, and the amount that it uses; `None` if no line uses any.
    pub most: Option<(Location, u64)>,
}

impl Item {
    /// Used amount divided by available amount; `None` if the latter is unknown or 0.
    pub fn share(&self) -> Option<f64> {
        self.available
            .filter(|a| *a > 0)
            .map(|a| self.used as f64 / a as f64)
    }
}

/// The reason why there is no resource report for a program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotTofino {
    /// The program is for another architecture than TNA.
    #[error("the program is not for Tofino: it includes neither tna.p4 nor t2na.p4")]
    Architecture,
    /// The package instance `main` contains no `Pipeline`.
    #[error("`main` has no pipeline with an ingress control")]
    NoPipe,
}

/// Computes the resources of the chip that a program needs.
pub fn analyse(program: &Program, chip: Chip) -> Result<Report, NotTofino> {
    if !matches!(program.arch, Arch::Tna | Arch::T2na) {
        return Err(NotTofino::Architecture);
    }
    let limits = chip.limits();
    let mut packages = Vec::new();
    pipes(&program.main, &mut packages);
    if packages.is_empty() {
        return Err(NotTofino::NoPipe);
    }
    let mut faults = Vec::new();
    let pipes = packages
        .iter()
        .map(|package| pipe(program, package, &limits, &mut faults))
        .collect();
    faults.sort_by_key(|d| (d.span.start, d.message.clone()));
    faults.dedup_by(|a, b| a.span == b.span && a.message == b.message);
    Ok(Report {
        limits,
        pipes,
        faults,
    })
}

fn pipes<'p>(package: &'p Package, found: &mut Vec<&'p Package>) {
    if package
        .args
        .iter()
        .any(|(name, arg)| name == "ingress" && matches!(arg, PackageArg::Control(_)))
    {
        found.push(package);
    }
    for (_, arg) in &package.args {
        if let PackageArg::Package(inner) = arg {
            pipes(inner, found);
        }
    }
}

fn pipe(
    program: &Program,
    package: &Package,
    limits: &ChipLimits,
    faults: &mut Vec<Diagnostic>,
) -> Pipe {
    let control = |name: &str| {
        package.args.iter().find_map(|(n, arg)| match arg {
            PackageArg::Control(id) if n == name => Some(*id),
            _ => None,
        })
    };
    let flows: Vec<(&'static str, Flow)> = [
        ("ingress", control("ingress")),
        ("egress", control("egress")),
    ]
    .into_iter()
    .filter_map(|(name, id)| Some((name, flow::walk(program, id?))))
    .collect();
    let mut items = Vec::new();
    for (name, found) in &flows {
        dependency_item(program, name, found, limits, &mut items, faults);
    }
    let stages = memory_items(program, &flows, limits, &mut items, faults);
    bus_items(program, &flows, limits, &mut items);
    packet_items(program, package, &flows, limits, &mut items);
    for item in &items {
        over(program, item, limits, &flows, faults);
    }

    let depth = flows
        .iter()
        .map(|(_, f)| u64::from(f.depth()))
        .max()
        .unwrap_or(0);
    let together = stages.1.max(depth);
    let deepest = flows.iter().max_by_key(|(_, f)| f.depth());
    Pipe {
        name: package.name.clone(),
        items,
        stages_by_resources: stages.0,
        stages: together,
        passes: together.div_ceil(limits.stages).max(1),
        critical_path: deepest
            .map(|(_, f)| described(program, f))
            .unwrap_or_default(),
    }
}

fn described(program: &Program, flow: &Flow) -> Vec<(u32, String, Location)> {
    let name = |node: Node| match node {
        Node::Table(control, table) => format!(
            "table {}",
            program.controls[control.index()].tables[table.index()].name
        ),
        Node::Register(id) => format!("register {}", program.externs[id.index()].name),
        Node::Statistics(id) => format!("counter {}", program.externs[id.index()].name),
        Node::Alu => "instruction".to_owned(),
    };
    flow.critical_path()
        .into_iter()
        .map(|op| (op.stage, name(op.node), program.source.location(op.span)))
        .collect()
}

/// Resources, by name in [`Pipe::items`], whose excess is no error: a compiler can split, overlay or spread their use.
const SOFT: [&str; 3] = [
    "parser bytes per state, ingress",
    "parser bytes per state, egress",
    "PHV words computed",
];

fn over(
    program: &Program,
    item: &Item,
    limits: &ChipLimits,
    flows: &[(&'static str, Flow)],
    faults: &mut Vec<Diagnostic>,
) {
    let Some(available) = item.available else {
        return;
    };
    if item.used <= available || SOFT.contains(&item.name) {
        return;
    }
    let span = match &item.most {
        Some((at, _)) => span_of(program, flows, at),
        None => Span::default(),
    };
    faults.push(Diagnostic::error(
        Code::Limit,
        span,
        format!(
            "{}: the program needs at least {} of the {available} in a pipe of {}",
            item.name, item.used, limits.name
        ),
    ));
}

/// A statement's or table's span that starts at this source position; an empty span if there is none.
fn span_of(program: &Program, flows: &[(&'static str, Flow)], at: &Location) -> Span {
    let ops = flows.iter().flat_map(|(_, f)| {
        f.ops
            .iter()
            .map(|op| op.span)
            .chain(f.nodes.values().map(|(_, s)| *s))
    });
    let states = program
        .parsers
        .iter()
        .flat_map(|p| p.states.iter())
        .flat_map(|s| s.body.iter().map(|stmt| stmt.span).chain([s.span]));
    let tables = program
        .controls
        .iter()
        .flat_map(|c| c.tables.iter().map(|t| t.span));
    ops.chain(states)
        .chain(tables)
        .find(|span| program.source.location(*span) == *at)
        .unwrap_or_default()
}
