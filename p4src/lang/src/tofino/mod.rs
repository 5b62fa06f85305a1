//! What a TNA program takes of a Tofino, and what no Tofino can do.
//!
//! Everything here is a **lower bound**: what any compiler must spend, given how the program is written. Final placement
//! costs more: tables that cannot share a stage, padding of containers, ways of hash tables, copies. So a program beyond a
//! limit is certainly illegal, and one within it may still not fit. docs/tofino.md says how far off the bound was found to be.

mod flow;
mod limits;
mod memory;
mod parser;
mod place;
mod salu;
mod text;

pub use limits::{Chip, Limits};

use std::collections::BTreeMap;

use crate::diagnostics::{Code, Diagnostic};
use crate::ir::{Arch, Package, PackageArg, Program};
use crate::source::{Location, Span};
use flow::{Flow, Node};
use memory::Blocks;

/// What a program takes.
#[derive(Debug, Clone)]
pub struct Report {
    /// Of which chip.
    pub limits: Limits,
    /// Per pipe.
    pub pipes: Vec<Pipe>,
    /// What is certainly illegal, and what looks so.
    pub faults: Vec<Diagnostic>,
}

/// What one pipe takes.
#[derive(Debug, Clone)]
pub struct Pipe {
    /// The instance's name.
    pub name: String,
    /// By resource, always in the same order.
    pub items: Vec<Item>,
    /// Stages that the resources alone need: the largest of used over available in a stage.
    pub stages_by_resources: u64,
    /// Stages that resources and dependencies need together: nothing stands before the stage that its inputs are known in.
    pub stages: u64,
    /// How often a packet must pass: stages over those of the chip, and stateful ALUs likewise.
    pub passes: u64,
    /// The longest chain of dependencies: stage, what, and where.
    pub critical_path: Vec<(u32, String, Location)>,
}

/// A resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Name.
    pub name: &'static str,
    /// At least so much.
    pub used: u64,
    /// What the pipe has; `None`: not known.
    pub available: Option<u64>,
    /// The source line that costs most, and how much.
    pub most: Option<(Location, u64)>,
}

impl Item {
    /// Used over available.
    pub fn share(&self) -> Option<f64> {
        self.available
            .filter(|a| *a > 0)
            .map(|a| self.used as f64 / a as f64)
    }
}

/// Why there is no report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotTofino {
    /// Another architecture's program.
    #[error("this program is not written for TNA (it includes no tna.p4 or t2na.p4)")]
    Architecture,
    /// No `Pipeline` in `main`.
    #[error("main has no pipeline with an ingress control")]
    NoPipe,
}

/// Looks at a program.
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

/// Costs by place.
#[derive(Default)]
struct Costs(Vec<(u64, Span)>);

impl Costs {
    fn add(&mut self, amount: u64, span: Span) {
        if amount > 0 {
            self.0.push((amount, span));
        }
    }

    fn total(&self) -> u64 {
        self.0.iter().map(|(amount, _)| amount).sum()
    }

    /// The line with the largest sum, the first of several.
    fn most(&self, program: &Program) -> Option<(Location, u64, Span)> {
        let mut lines: BTreeMap<(String, u32), (u64, Span)> = BTreeMap::new();
        for (amount, span) in &self.0 {
            let at = program.source.location(*span);
            lines.entry((at.file, at.line)).or_insert((0, *span)).0 += amount;
        }
        let (amount, span) = lines
            .into_values()
            .min_by_key(|(amount, span)| (u64::MAX - amount, *span))?;
        Some((program.source.location(span), amount, span))
    }

    fn item(&self, program: &Program, name: &'static str, available: Option<u64>) -> Item {
        let most = self.most(program).map(|(at, amount, _)| (at, amount));
        Item {
            name,
            used: self.total(),
            available,
            most,
        }
    }
}

/// What needs room in a stage, with the first stage that it can stand in.
#[derive(Default)]
struct Packing(Vec<(u32, u64)>);

impl Packing {
    /// Stages that hold all of it, if each holds `per_stage`: for every stage, those before it and what cannot stand there.
    fn stages(&self, per_stage: u64) -> u64 {
        let mut least: Vec<u32> = self.0.iter().map(|(stage, _)| *stage).collect();
        least.sort_unstable();
        least.dedup();
        let needed = least.iter().map(|first| {
            let rest: u64 = self
                .0
                .iter()
                .filter(|(stage, _)| stage >= first)
                .map(|(_, n)| n)
                .sum();
            u64::from(first.saturating_sub(1)) + rest.div_ceil(per_stage.max(1))
        });
        needed.max().unwrap_or(0)
    }

    fn total(&self) -> u64 {
        self.0.iter().map(|(_, n)| n).sum()
    }
}

fn pipe(
    program: &Program,
    package: &Package,
    limits: &Limits,
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

fn dependency_item(
    program: &Program,
    name: &str,
    flow: &Flow,
    limits: &Limits,
    items: &mut Vec<Item>,
    faults: &mut Vec<Diagnostic>,
) {
    let label = if name == "ingress" {
        "dependency depth, ingress"
    } else {
        "dependency depth, egress"
    };
    let last = flow
        .critical_path()
        .last()
        .map(|op| (program.source.location(op.span), u64::from(op.stage)));
    items.push(Item {
        name: label,
        used: flow.depth().into(),
        available: Some(limits.stages),
        most: last,
    });
    for (register, here, first) in &flow.twice {
        let register = &program.externs[register.index()].name;
        faults.push(
            Diagnostic::error(
                Code::Architecture,
                *here,
                format!("`{register}` is executed a second time on one path: a packet may execute a register once"),
            )
            .label(*first, "the first time"),
        );
    }
}

/// Tables, memories and ALUs; the stages they need, alone and with what they wait for.
fn memory_items(
    program: &Program,
    flows: &[(&'static str, Flow)],
    limits: &Limits,
    items: &mut Vec<Item>,
    faults: &mut Vec<Diagnostic>,
) -> (u64, u64) {
    let [
        mut tables,
        mut ternary,
        mut sram,
        mut tcam,
        mut map_ram,
        mut alus,
        mut statistics,
    ] = std::array::from_fn(|_| Costs::default());
    let [
        mut p_tables,
        mut p_ternary,
        mut p_sram,
        mut p_tcam,
        mut p_map,
        mut p_alus,
        mut p_statistics,
    ] = std::array::from_fn(|_| Packing::default());
    for (_, found) in flows {
        for (node, (stage, span)) in &found.nodes {
            let mut blocks = Blocks::default();
            match node {
                Node::Table(control, id) => {
                    let table = &program.controls[control.index()].tables[id.index()];
                    blocks = memory::table(program, control.index(), table);
                    tables.add(1, table.span);
                    p_tables.0.push((*stage, 1));
                    if blocks.tcam > 0 {
                        ternary.add(1, table.span);
                        p_ternary.0.push((*stage, 1));
                    }
                }
                Node::Register(id) => {
                    blocks = memory::cells(program, &program.externs[id.index()]);
                    alus.add(1, *span);
                    p_alus.0.push((*stage, 1));
                    // A logical table addresses one stateful ALU.
                    if !found.in_tables.contains(id) {
                        tables.add(1, *span);
                        p_tables.0.push((*stage, 1));
                    }
                    faults.extend(salu::check(program, *id, limits));
                }
                Node::Statistics(id) => {
                    blocks = memory::cells(program, &program.externs[id.index()]);
                    statistics.add(1, *span);
                    p_statistics.0.push((*stage, 1));
                }
                Node::Alu => {}
            }
            sram.add(blocks.sram, *span);
            tcam.add(blocks.tcam, *span);
            map_ram.add(blocks.map_ram, *span);
            p_sram.0.push((*stage, blocks.sram));
            p_tcam.0.push((*stage, blocks.tcam));
            p_map.0.push((*stage, blocks.map_ram));
        }
    }
    let all = [
        ("logical tables", &tables, limits.tables, &p_tables),
        (
            "ternary tables",
            &ternary,
            limits.ternary_tables,
            &p_ternary,
        ),
        ("SRAM blocks", &sram, limits.sram, &p_sram),
        ("TCAM blocks", &tcam, limits.tcam, &p_tcam),
        ("map RAMs", &map_ram, limits.map_ram, &p_map),
        ("stateful ALUs", &alus, limits.stateful_alus, &p_alus),
        (
            "statistics ALUs",
            &statistics,
            limits.statistics_alus,
            &p_statistics,
        ),
    ];
    let mut stages = (0, 0);
    for (name, costs, per_stage, packing) in all {
        items.push(costs.item(program, name, Some(per_stage * limits.stages)));
        stages.0 = stages.0.max(packing.total().div_ceil(per_stage));
        stages.1 = stages.1.max(packing.stages(per_stage));
    }
    stages
}

/// Crossbars and hash distribution. A field that several stages match on is counted once.
fn bus_items(
    program: &Program,
    flows: &[(&'static str, Flow)],
    limits: &Limits,
    items: &mut Vec<Item>,
) {
    let [mut exact, mut ternary, mut hash] = std::array::from_fn(|_| Costs::default());
    for (_, found) in flows {
        found
            .exact
            .values()
            .for_each(|(bits, span)| exact.add(bits.div_ceil(8), *span));
        found
            .ternary
            .values()
            .for_each(|(bits, span)| ternary.add(bits.div_ceil(8), *span));
        found
            .hash_bits
            .values()
            .for_each(|(bits, span)| hash.add(bits.div_ceil(16), *span));
    }
    items.push(exact.item(
        program,
        "exact crossbar bytes",
        Some(limits.exact_crossbar * limits.stages),
    ));
    items.push(ternary.item(
        program,
        "ternary crossbar bytes",
        Some(limits.ternary_crossbar * limits.stages),
    ));
    items.push(hash.item(
        program,
        "hash distribution units",
        Some(limits.hash_distribution * limits.stages),
    ));
}

/// Parsers and containers.
fn packet_items(
    program: &Program,
    package: &Package,
    flows: &[(&'static str, Flow)],
    limits: &Limits,
    items: &mut Vec<Item>,
) {
    let mut phv = Costs::default();
    for (which, rows_name, widest_name) in [
        (
            "ingress_parser",
            "parser rows, ingress",
            "parser bytes a state, ingress",
        ),
        (
            "egress_parser",
            "parser rows, egress",
            "parser bytes a state, egress",
        ),
    ] {
        let id = package.args.iter().find_map(|(n, arg)| match arg {
            PackageArg::Parser(id) if n == which => Some(*id),
            _ => None,
        });
        let Some(id) = id else { continue };
        let parsed = parser::parser(program, id, limits);
        let mut rows = Costs::default();
        parsed.rows.iter().for_each(|(n, span)| rows.add(*n, *span));
        parsed.bits.iter().for_each(|(n, span)| phv.add(*n, *span));
        items.push(rows.item(program, rows_name, Some(limits.parser_rows)));
        // A state that extracts more is split into several rows, which are counted: no limit of its own.
        items.push(Item {
            name: widest_name,
            used: parsed.widest.0,
            available: limits.parser_extract_bytes,
            most: Some((program.source.location(parsed.widest.1), parsed.widest.0)),
        });
    }
    // What one entry writes is written in one stage, and alive together as far as anything comes of it.
    for (_, found) in flows {
        let live = found.live();
        let tables = found.nodes.keys().filter_map(|node| match node {
            Node::Table(control, id) => {
                let table = &program.controls[control.index()].tables[id.index()];
                let wanted = |var| live.iter().any(|place| place.root == (control.0, var));
                Some((
                    memory::action_data(program, control.index(), table, wanted),
                    table.span,
                ))
            }
            _ => None,
        });
        if let Some((bits, span)) =
            tables.max_by_key(|(bits, span)| (*bits, std::cmp::Reverse(*span)))
        {
            phv.add(bits, span);
        }
    }
    items.push(phv.item(program, "PHV bits", Some(limits.phv_bits)));
    let mut words = Costs::default();
    for (_, found) in flows {
        found.words.values().for_each(|span| words.add(1, *span));
    }
    items.push(words.item(program, "PHV words computed", Some(limits.phv_words)));
}

/// Names in [`Pipe::items`] that may be exceeded: what a compiler can split, overlay or spread over rows.
const SOFT: [&str; 3] = [
    "parser bytes a state, ingress",
    "parser bytes a state, egress",
    "PHV words computed",
];

fn over(
    program: &Program,
    item: &Item,
    limits: &Limits,
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
            "{}: at least {} of {available} that a pipe of {} has",
            item.name, item.used, limits.name
        ),
    ));
}

/// A span that starts at this place.
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
