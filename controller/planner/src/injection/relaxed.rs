//! Proves by a linear relaxation that a large placement problem has no solution.
//!
//! A variable is the share to which a block is placed at a switch. A block's shares on each of its paths add up to 1, so,
//! unlike with options, no set of switches is left out. A charge that several blocks share is present at a switch to the
//! greatest of their shares there, which is much tighter than splitting it evenly ([`super::bound`]). Orders and clashes are
//! rows as well. Opening costs and limits that always hold are left out: a contradiction here is one in the problem.

use std::collections::{BTreeMap, BTreeSet};

use super::blocks::{BlockId, Blocks};
use super::candidates::Candidates;
use super::problem::{ChargeId, ChoiceId, Problem, SwitchId};
use super::refusal::{Conflict, Refusal};
use crate::solve::{Cmp, Model, Row, Sense, Var, conflict};

/// Maximum number of variables of a linear program that is solved.
const MOST: usize = 12_000;

/// Constraint of the placement problem that a row of the linear program expresses.
#[derive(Debug, Clone, Copy)]
enum Rule {
    /// On each path, the block's shares at the path's switches add up to 1; or a shared charge is present where the block is.
    Block(BlockId),
    /// Limit of a switch's resource, by its index in [`Blocks::limits`].
    Limit(usize),
    /// Order of two choices, by its index in [`Problem::orders`].
    Order(usize),
    Clash(usize),
}

/// Reason why there is certainly no placement; `None` if the relaxation has a solution, or is too large to solve.
pub(super) fn refute(blocks: &Blocks<'_>, candidates: &[Candidates]) -> Option<Refusal> {
    let program = Program::new(blocks, candidates)?;
    let rows = conflict(&program.model);
    if rows.is_empty() {
        return None;
    }
    Some(Refusal::from_conflict(program.conflict(blocks, &rows)))
}

struct Program<'b, 'p> {
    blocks: &'b Blocks<'p>,
    model: Model,
    /// For each block of faults, the variables for its share at each switch.
    at: Vec<BTreeMap<SwitchId, Var>>,
    /// For each row of the linear program, the constraint that it expresses.
    rules: Vec<Rule>,
    /// Variables of the rows added so far, to avoid duplicates.
    known: BTreeSet<Vec<Var>>,
}

impl<'b, 'p> Program<'b, 'p> {
    fn new(blocks: &'b Blocks<'p>, candidates: &[Candidates]) -> Option<Program<'b, 'p>> {
        let mut program = Program {
            blocks,
            model: Model::new(Sense::Minimize),
            at: Vec::new(),
            rules: Vec::new(),
            known: BTreeSet::new(),
        };
        for block in 0..blocks.blocks.len() {
            program.stand(block, candidates);
        }
        program.keep_limits();
        program.keep_rules();
        (program.model.variables() <= MOST).then_some(program)
    }

    fn constrain(&mut self, rule: Rule, terms: Vec<(Var, f64)>, cmp: Cmp, rhs: f64) {
        self.model.constrain(terms, cmp, rhs);
        self.rules.push(rule);
    }

    /// Adds a block's variables, and for each of its paths a row that the path crosses one of the block's switches.
    fn stand(&mut self, block: BlockId, candidates: &[Candidates]) {
        let problem = self.blocks.problem;
        let of = &self.blocks.blocks[block];
        let paths = of.members.iter();
        let paths = paths.flat_map(|choice| &problem.choices[*choice].paths);
        let paths: BTreeSet<_> = paths.map(|path| &problem.paths[*path]).collect();
        let is_cut = of.members.iter().any(|choice| candidates[*choice].cut);
        let switches: BTreeSet<SwitchId> = match is_cut {
            true => paths.iter().flat_map(|path| path.iter().copied()).collect(),
            false => of
                .options
                .iter()
                .flat_map(|place| place.switches.iter().copied())
                .collect(),
        };
        let at: BTreeMap<SwitchId, Var> = switches
            .into_iter()
            .map(|switch| (switch, self.model.variable(0.0, 1.0, 0.0)))
            .collect();
        for path in paths {
            let crossed = path.iter().filter_map(|switch| at.get(switch));
            let crossed: Vec<Var> = crossed.copied().collect();
            if self.known.insert(crossed.clone()) {
                let terms = crossed.into_iter().map(|var| (var, 1.0));
                self.constrain(Rule::Block(block), terms.collect(), Cmp::Eq, 1.0);
            }
        }
        self.at.push(at);
    }

    fn keep_limits(&mut self) {
        let problem = self.blocks.problem;
        // By switch: the blocks that may need each charge there.
        let mut there: BTreeMap<SwitchId, BTreeMap<ChargeId, Vec<BlockId>>> = BTreeMap::new();
        for (block, at) in self.at.iter().enumerate() {
            for switch in at.keys() {
                for charge in &self.blocks.blocks[block].charges {
                    let needing = there
                        .entry(*switch)
                        .or_default()
                        .entry(*charge)
                        .or_default();
                    needing.push(block);
                }
            }
        }
        for (switch, charges) in there {
            let costs = |resource: usize| {
                let charges = charges.keys();
                charges.filter_map(move |charge| {
                    let mut cost = problem.charges[*charge].cost.iter();
                    let (_, cost) = cost.find(|(of, _)| *of == resource)?;
                    Some((*charge, *cost))
                })
            };
            let mut present: BTreeMap<ChargeId, Var> = BTreeMap::new();
            for resource in 0..problem.resources.len() {
                let row = self.blocks.row(switch, resource);
                let limit = self.blocks.limits[row];
                let most = costs(resource).fold(0_u64, |sum, (_, cost)| sum.saturating_add(cost));
                if most <= limit {
                    continue;
                }
                let mut terms = Vec::new();
                for (charge, cost) in costs(resource) {
                    let var = match present.get(&charge) {
                        Some(var) => *var,
                        None => self.share(switch, &charges[&charge]),
                    };
                    present.insert(charge, var);
                    terms.push((var, cost as f64));
                }
                self.constrain(Rule::Limit(row), terms, Cmp::Le, limit as f64);
            }
        }
    }

    /// Variable for the share (0 to 1) to which a switch holds a charge: at least the share of each block that needs it there.
    fn share(&mut self, switch: SwitchId, needing: &[BlockId]) -> Var {
        if let [alone] = needing {
            return self.at[*alone][&switch];
        }
        let there = self.model.variable(0.0, 1.0, 0.0);
        for block in needing {
            let own = self.at[*block][&switch];
            let terms = vec![(own, 1.0), (there, -1.0)];
            self.constrain(Rule::Block(*block), terms, Cmp::Le, 0.0);
        }
        there
    }

    fn keep_rules(&mut self) {
        let problem = self.blocks.problem;
        let mut of: BTreeMap<ChoiceId, BlockId> = BTreeMap::new();
        for (block, about) in self.blocks.blocks.iter().enumerate() {
            of.extend(about.members.iter().map(|choice| (*choice, block)));
        }
        for (number, (before, after)) in problem.orders.iter().enumerate() {
            if let (Some(a), Some(b)) = (of.get(before), of.get(after)) {
                self.order(number, (*before, *a), (*after, *b));
            }
        }
        for (number, (first, second)) in problem.clashes.iter().enumerate() {
            let (Some(a), Some(b)) = (of.get(first), of.get(second)) else {
                continue;
            };
            let both = self.at[*a].iter();
            let both = both.filter_map(|(switch, var)| Some([*var, *self.at[*b].get(switch)?]));
            for pair in both.collect::<Vec<_>>() {
                let terms = pair.map(|var| (var, 1.0)).to_vec();
                self.constrain(Rule::Clash(number), terms, Cmp::Le, 1.0);
            }
        }
    }

    /// Adds rows for an order of two choices: where a path crosses the second, it crosses the first there or before.
    fn order(
        &mut self,
        number: usize,
        (before, a): (ChoiceId, BlockId),
        (after, b): (ChoiceId, BlockId),
    ) {
        let problem: &Problem = self.blocks.problem;
        let of = |choice: ChoiceId| &problem.choices[choice].paths;
        for path in of(after).iter().filter(|path| of(before).contains(path)) {
            let mut crossed: Vec<Var> = Vec::new();
            for switch in &problem.paths[*path] {
                crossed.extend(self.at[a].get(switch));
                let Some(second) = self.at[b].get(switch) else {
                    continue;
                };
                let row: Vec<Var> = std::iter::once(*second)
                    .chain(crossed.iter().copied())
                    .collect();
                if a == b || !self.known.insert(row.clone()) {
                    continue;
                }
                let terms = row.into_iter().enumerate();
                let terms = terms.map(|(place, var)| (var, if place == 0 { 1.0 } else { -1.0 }));
                self.constrain(Rule::Order(number), terms.collect(), Cmp::Le, 0.0);
            }
        }
    }

    fn conflict(&self, blocks: &Blocks<'_>, rows: &[Row]) -> Conflict {
        let problem = blocks.problem;
        let resources = problem.resources.len();
        let mut conflict = Conflict::default();
        let rules = rows.iter().filter_map(|row| self.rules.get(row.index()));
        let mut of_blocks: BTreeSet<BlockId> = BTreeSet::new();
        for rule in rules {
            match rule {
                Rule::Block(block) => {
                    of_blocks.insert(*block);
                }
                Rule::Limit(row) => conflict.limits.push((row / resources, row % resources)),
                Rule::Order(number) => conflict.orders.push(problem.orders[*number]),
                Rule::Clash(number) => conflict.clashes.push(problem.clashes[*number]),
            }
        }
        for list in [&mut conflict.orders, &mut conflict.clashes] {
            list.sort_unstable();
            list.dedup();
        }
        for block in of_blocks {
            let members = &blocks.blocks[block].members;
            conflict.choices.extend(members);
            if members.len() > 1 {
                conflict.ties.push(members.clone());
            }
            let pinned = |choice: &&ChoiceId| problem.choices[**choice].pin.is_some();
            conflict.pins.extend(members.iter().filter(pinned));
        }
        conflict.choices.sort_unstable();
        conflict
    }
}
