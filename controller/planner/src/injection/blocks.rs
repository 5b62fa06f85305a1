//! Prepares a placement problem for search: choices that must have the same switches form a block, and each possible set of
//! switches is an option of the block. Some options of two blocks are incompatible.

use std::collections::{BTreeMap, BTreeSet};

use super::candidates::Candidates;
use super::problem::{ChargeId, ChoiceId, Problem, ResourceId, SwitchId};

/// Index of a block of faults in [`Blocks::blocks`].
pub(super) type BlockId = usize;

/// For each constraint of a problem, whether it is active. The search for a conflict deactivates them one by one.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub choices: Vec<bool>,
    pub pins: Vec<bool>,
    pub orders: Vec<bool>,
    pub ties: Vec<bool>,
    pub clashes: Vec<bool>,
    /// For each switch and resource, whether its limit is active.
    pub limits: Vec<bool>,
}

impl Held {
    /// All constraints of a problem are active.
    pub fn all(problem: &Problem) -> Held {
        Held {
            choices: vec![true; problem.choices.len()],
            pins: vec![true; problem.choices.len()],
            orders: vec![true; problem.orders.len()],
            ties: vec![true; problem.ties.len()],
            clashes: vec![true; problem.clashes.len()],
            limits: vec![true; problem.switches.len() * problem.resources.len()],
        }
    }
}

/// An option of a block of faults: the set of switches at which the block may be placed.
#[derive(Debug, Clone)]
pub(super) struct BlockOption {
    pub switches: Vec<SwitchId>,
    pub hops: u64,
}

/// Block: choices (a fault and some flows each) that have to be placed at the same switches.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub members: Vec<ChoiceId>,
    pub charges: Vec<ChargeId>,
    pub options: Vec<BlockOption>,
    /// Blocks whose options may be incompatible with this block's, each with the index of the pair in [`Blocks::pairs`].
    pub partners: Vec<(BlockId, usize)>,
}

/// Which options of two blocks of faults are compatible.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    /// Index of the pair's first block of faults: the lower of its two indices.
    pub first: BlockId,
    /// Number of options of the pair's second block of faults.
    pub width: usize,
    /// Whether two options are compatible: by the first block's option, then by the second block's.
    pub allowed: Vec<bool>,
}

/// A placement problem made ready for search.
#[derive(Debug, Clone)]
pub(super) struct Blocks<'p> {
    pub problem: &'p Problem,
    pub blocks: Vec<Block>,
    pub pairs: Vec<Pair>,
    /// Maximum amount that faults may take, by switch and resource.
    pub limits: Vec<u64>,
    /// Amount that is free before faults are placed, against which utilization is measured, by switch and resource.
    pub free: Vec<u64>,
    /// Whether some block of faults lacks options that might be better than those it has.
    pub cut: bool,
}

impl<'p> Blocks<'p> {
    /// Makes the blocks of faults of a problem in which only the constraints `held` are active. A block may have no option.
    pub fn new(problem: &'p Problem, candidates: &[Candidates], held: &Held) -> Blocks<'p> {
        let members = members(problem, held);
        let of_choice: BTreeMap<ChoiceId, BlockId> = members
            .iter()
            .enumerate()
            .flat_map(|(block, members)| members.iter().map(move |choice| (*choice, block)))
            .collect();
        let mut blocks: Vec<Block> = members
            .into_iter()
            .map(|members| block(problem, candidates, held, members))
            .collect();
        let wanted = wanted(problem, held, &of_choice);
        let mut pairs = Vec::new();
        for ((a, b), rules) in wanted {
            if a == b {
                let go = |place: &BlockOption| {
                    let mut rules = rules.iter();
                    rules.all(|rule| rule.allows(problem, &place.switches, &place.switches))
                };
                blocks[a].options.retain(go);
                continue;
            }
            let allowed = allowed(problem, &rules, &blocks[a], &blocks[b]);
            if allowed.iter().all(|allowed| *allowed) {
                continue;
            }
            let width = blocks[b].options.len();
            for (block, other) in [(a, b), (b, a)] {
                blocks[block].partners.push((other, pairs.len()));
            }
            pairs.push(Pair {
                first: a,
                width,
                allowed,
            });
        }
        let rows = (0..problem.switches.len())
            .flat_map(|switch| (0..problem.resources.len()).map(move |k| (switch, k)));
        Blocks {
            problem,
            blocks,
            pairs,
            limits: rows
                .clone()
                .zip(&held.limits)
                .map(|((switch, resource), held)| match held {
                    true => problem.limit(switch, resource),
                    false => u64::MAX,
                })
                .collect(),
            free: rows
                .map(|(switch, resource)| problem.free(switch, resource))
                .collect(),
            cut: candidates
                .iter()
                .zip(&held.choices)
                .any(|(of, held)| of.cut && *held),
        }
    }

    /// A looser problem, for lower bounds, without incompatible options. A block that lacks options may be at any one switch of
    /// its shortest path, which costs less than any missing option. A lower bound of this problem's cost also holds for the
    /// original.
    pub fn relaxed(&self, candidates: &[Candidates]) -> Blocks<'p> {
        let mut relaxed = self.clone();
        relaxed.pairs.clear();
        for block in &mut relaxed.blocks {
            block.partners.clear();
            let is_cut = |choice: &&ChoiceId| candidates[**choice].cut;
            let Some(&choice) = block.members.iter().find(is_cut) else {
                continue;
            };
            let paths = self.problem.choices[choice].paths.iter();
            let switches = paths.map(|path| &self.problem.paths[*path]);
            let shortest = switches.min_by_key(|switches| switches.len());
            let places = shortest.into_iter().flatten().map(|switch| BlockOption {
                switches: vec![*switch],
                hops: 0,
            });
            block.options = places.collect();
        }
        relaxed.cut = false;
        relaxed
    }

    /// Total number of options of all blocks of faults.
    pub fn size(&self) -> usize {
        self.blocks.iter().map(|block| block.options.len()).sum()
    }

    /// Whether two options of a pair of blocks are compatible: `own` is an option of `block`, `other` one of the other block.
    pub fn go_together(&self, pair: usize, block: BlockId, own: usize, other: usize) -> bool {
        let pair = &self.pairs[pair];
        let (first, second) = match pair.first == block {
            true => (own, other),
            false => (other, own),
        };
        pair.allowed[first * pair.width + second]
    }

    /// Index of a switch's resource in [`Blocks::limits`] and [`Blocks::free`].
    pub fn row(&self, switch: SwitchId, resource: ResourceId) -> usize {
        switch * self.problem.resources.len() + resource
    }

    /// For each choice, the switches at which its block's chosen option places it; empty if no block contains the choice.
    pub fn stands_at(&self, chosen: &[usize]) -> Vec<Vec<SwitchId>> {
        let mut at = vec![Vec::new(); self.problem.choices.len()];
        for (block, option) in self.blocks.iter().zip(chosen) {
            for member in &block.members {
                at[*member].clone_from(&block.options[*option].switches);
            }
        }
        at
    }
}

/// Groups of choices that have to be at the same switches, in the order of their first choices.
fn members(problem: &Problem, held: &Held) -> Vec<Vec<ChoiceId>> {
    let mut leader: Vec<ChoiceId> = (0..problem.choices.len()).collect();
    let find = |leader: &[ChoiceId], mut choice: ChoiceId| {
        while leader[choice] != choice {
            choice = leader[choice];
        }
        choice
    };
    let ties = problem.ties.iter().zip(&held.ties);
    for (tie, _) in ties.filter(|(_, held)| **held) {
        let mut active = tie.iter().filter(|choice| held.choices[**choice]);
        let Some(first) = active.next() else {
            continue;
        };
        for other in active {
            let (a, b) = (find(&leader, *first), find(&leader, *other));
            leader[a.max(b)] = a.min(b);
        }
    }
    let mut groups: BTreeMap<ChoiceId, Vec<ChoiceId>> = BTreeMap::new();
    for choice in (0..problem.choices.len()).filter(|choice| held.choices[*choice]) {
        groups
            .entry(find(&leader, choice))
            .or_default()
            .push(choice);
    }
    groups.into_values().collect()
}

fn block(
    problem: &Problem,
    candidates: &[Candidates],
    held: &Held,
    members: Vec<ChoiceId>,
) -> Block {
    let sets = |choice: ChoiceId| match held.pins[choice] {
        true => &candidates[choice].pinned,
        false => &candidates[choice].sets,
    };
    let is_tied = members.len() > 1;
    let own: &[Vec<SwitchId>] = members.first().map_or(&[], |first| sets(*first));
    // Choices that share state are placed at one common switch.
    let common = own.iter().filter(|set| {
        !is_tied || set.len() == 1 && members.iter().all(|choice| sets(*choice).contains(set))
    });
    let options = common.map(|set| BlockOption {
        switches: set.clone(),
        hops: members.iter().map(|m| problem.hops(*m, set)).sum(),
    });
    let charges: BTreeSet<ChargeId> = members
        .iter()
        .flat_map(|choice| &problem.choices[*choice].charges)
        .copied()
        .collect();
    Block {
        options: options.collect(),
        charges: charges.into_iter().collect(),
        members,
        partners: Vec::new(),
    }
}

/// Constraint between two choices of the problem.
#[derive(Clone, Copy)]
enum Rule {
    /// Packets must meet the first choice before the second.
    Order(ChoiceId, ChoiceId),
    /// The two choices must share no switch.
    Apart,
}

impl Rule {
    /// Whether the first choice may be placed at one set of switches, and the second at the other.
    fn allows(self, problem: &Problem, first: &[SwitchId], second: &[SwitchId]) -> bool {
        match self {
            Rule::Order(a, b) => problem.in_order((a, first), (b, second)),
            Rule::Apart => first.iter().all(|switch| !second.contains(switch)),
        }
    }
}

/// Rules between choices of two blocks; `true` if the rule's first choice belongs to the second block.
struct Rules(Vec<(bool, Rule)>);

impl Rules {
    fn iter(&self) -> impl Iterator<Item = Rule> + '_ {
        self.0.iter().map(|(_, rule)| *rule)
    }
}

fn wanted(
    problem: &Problem,
    held: &Held,
    of_choice: &BTreeMap<ChoiceId, BlockId>,
) -> BTreeMap<(BlockId, BlockId), Rules> {
    let mut wanted: BTreeMap<(BlockId, BlockId), Rules> = BTreeMap::new();
    let orders = problem.orders.iter().zip(&held.orders);
    let orders = orders.map(|((a, b), held)| (*a, *b, Rule::Order(*a, *b), *held));
    let clashes = problem.clashes.iter().zip(&held.clashes);
    let clashes = clashes.map(|((a, b), held)| (*a, *b, Rule::Apart, *held));
    for (a, b, rule, held) in orders.chain(clashes) {
        let blocks = (of_choice.get(&a), of_choice.get(&b));
        let (Some(&first), Some(&second), true) = (blocks.0, blocks.1, held) else {
            continue;
        };
        let rules = wanted
            .entry((first.min(second), first.max(second)))
            .or_insert(Rules(Vec::new()));
        rules.0.push((first > second, rule));
    }
    wanted
}

fn allowed(problem: &Problem, rules: &Rules, a: &Block, b: &Block) -> Vec<bool> {
    let mut allowed = Vec::with_capacity(a.options.len() * b.options.len());
    for first in &a.options {
        for second in &b.options {
            let (first, second) = (&first.switches, &second.switches);
            allowed.push(rules.0.iter().all(|(turned, rule)| match turned {
                true => rule.allows(problem, second, first),
                false => rule.allows(problem, first, second),
            }));
        }
    }
    allowed
}
