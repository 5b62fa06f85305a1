//! Computes the use of each resource of a pipe, and the source line that uses most of it.

use std::collections::BTreeMap;

use super::flow::{Flow, Node};
use super::limits::ChipLimits;
use super::memory::{self, Blocks};
use super::{Item, parser, salu};
use crate::diagnostics::{Code, Diagnostic};
use crate::ir::{ExternId, Package, PackageArg, Program};
use crate::source::{Location, Span};

/// Amounts of one resource, with the source spans that use them.
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

    /// The source line that uses most of the resource: (position, amount, span); the first one if several use as much.
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

/// Amounts of a resource, each with the earliest stage in which it can be placed: (stage, amount).
#[derive(Default)]
struct Packing(Vec<(u32, u64)>);

impl Packing {
    /// Number of stages that all amounts need if each stage holds `per_stage`, and no amount comes before its earliest stage.
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

pub(super) fn dependency_item(
    program: &Program,
    name: &str,
    flow: &Flow,
    limits: &ChipLimits,
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
            // bf-p4c accepts some of these programs.
            Diagnostic::warning(
                Code::Architecture,
                *here,
                format!("`{register}` is executed a second time on one path: a stateful ALU runs once per packet"),
            )
            .label(*first, "the first time"),
        );
    }
}

/// Adds the use of tables, memories and ALUs to `items`. Returns the stages that these need: (without dependencies, with them).
pub(super) fn memory_items(
    program: &Program,
    flows: &[(&'static str, Flow)],
    limits: &ChipLimits,
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
                    // A logical table can address one stateful ALU.
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

/// Adds the use of crossbars and of hash distribution to `items`. A field that several stages match on counts once.
pub(super) fn bus_items(
    program: &Program,
    flows: &[(&'static str, Flow)],
    limits: &ChipLimits,
    items: &mut Vec<Item>,
) {
    let [mut exact, mut ternary, mut hash] = std::array::from_fn(|_| Costs::default());
    for (_, found) in flows {
        let is_moved = |id: &ExternId| found.is_distributed(*id);
        let mut carried: BTreeMap<_, _> = found.exact.iter().collect();
        for (_, hashed) in found.hashed.iter().filter(|(id, _)| is_moved(id)) {
            for (place, cost) in &hashed.inputs {
                carried.entry(place).or_insert(cost);
            }
        }
        carried
            .values()
            .for_each(|(bits, span)| exact.add(bits.div_ceil(8), *span));
        found
            .ternary
            .values()
            .for_each(|(bits, span)| ternary.add(bits.div_ceil(8), *span));
        for ((of, _), (bits, span)) in &found.hash_bits {
            if of.as_ref().is_none_or(is_moved) {
                hash.add(bits.div_ceil(16), *span);
            }
        }
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

/// Adds the use of parsers and PHV containers (the registers that hold a packet's fields) to `items`.
pub(super) fn packet_items(
    program: &Program,
    package: &Package,
    flows: &[(&'static str, Flow)],
    limits: &ChipLimits,
    items: &mut Vec<Item>,
) {
    let mut phv = Costs::default();
    for (which, rows_name, widest_name) in [
        (
            "ingress_parser",
            "parser rows, ingress",
            "parser bytes per state, ingress",
        ),
        (
            "egress_parser",
            "parser rows, egress",
            "parser bytes per state, egress",
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
        // A state that extracts more is split into several rows, which are counted, so there is no limit on this item.
        items.push(Item {
            name: widest_name,
            used: parsed.widest.0,
            available: limits.parser_extract_bytes,
            most: Some((program.source.location(parsed.widest.1), parsed.widest.0)),
        });
    }
    // The fields that one entry writes are written in one stage and, as far as their values are used, live at the same time.
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
