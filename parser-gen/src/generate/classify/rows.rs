//! Turns a decision diagram into match tables: a table is a run of consecutive levels, its rows are the paths through them.
//!
//! One table is enough if the paths are few: that is one stage on Tofino. Where many branches meet again, there are more paths
//! than edges; the diagram is then cut, and a table hands the node that a packet has reached (its state) to the next table.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use super::columns::{self, Cell, LevelColumns};
use super::pieces::{self, Code, Piece, SKIP, Span};
use crate::diagram::{Diagram, EdgeTarget};

/// Number of rows that a table may always have, whatever its levels are: some blocks of TCAM.
const MAX_ROWS: u64 = 4096;

/// Number of rows that a table may have for each edge of its levels in the diagram.
const ROWS_PER_EDGE: u64 = 2;

/// Number of counting steps per allowed row after which counting a table's rows is given up.
const STEPS_PER_ROW: u64 = 4;

/// Run of consecutive levels of the diagram that becomes one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LevelRun {
    /// Rows of the table in order: the first row that matches decides.
    pub rows: Vec<Path>,
    /// Whether the table's rows match the state that an earlier table set.
    pub has_state: bool,
}

/// Path through a run of levels: one row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path {
    /// State in which the path begins; 0 in the first run of levels.
    pub from: u32,
    /// Values that the path matches in each column of the table.
    pub cells: Vec<Cell>,
    pub to: Step,
}

/// End of a path through a run of levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The packet's class, which may be 0.
    Class(u32),
    /// A later table decides, by this state.
    State(u32),
}

/// Cuts the levels of a diagram into runs, one for each table.
pub(super) fn cut(diagram: &Diagram, places: &[LevelColumns], num_columns: usize) -> Vec<LevelRun> {
    if diagram.root == EdgeTarget::NONE {
        return Vec::new();
    }
    let mut cutter = Cutter {
        diagram,
        places,
        branches: HashMap::new(),
        steps: 0,
    };
    let mut runs = Vec::new();
    let mut from = vec![(0, diagram.root)];
    let (mut begin, mut states) = (0, 0);
    while !from.is_empty() {
        let end = cutter.end(&from, begin);
        let mut walk = Walk {
            cutter: &mut cutter,
            end,
            cells: vec![Cell::Any; num_columns],
            rows: Vec::new(),
            left: BTreeSet::new(),
        };
        for (state, to) in &from {
            walk.paths(*state, *to, Some(EdgeTarget::NONE));
        }
        let left: BTreeMap<u32, u32> = walk.left.into_iter().zip(states + 1..).collect();
        states += left.len() as u32;
        for row in &mut walk.rows {
            if let Step::State(node) = &mut row.to {
                *node = left[node];
            }
        }
        runs.push(LevelRun {
            rows: walk.rows,
            has_state: begin > 0,
        });
        from = left
            .into_iter()
            .map(|(node, state)| (state, EdgeTarget::Node(node)))
            .collect();
        begin = end;
    }
    runs
}

/// Branches of a diagram's node that a table's rows distinguish at the node's level.
type Branches = Rc<[Branch]>;

#[derive(Debug, Clone, Copy)]
struct Branch {
    piece: Piece,
    /// Target in the diagram of packets that match the row.
    to: EdgeTarget,
    /// Target, by later rows, of packets that match this row, but none of the rows for deeper levels.
    otherwise: Otherwise,
}

/// Target of packets by later rows; `None` if later rows lead to several targets, so that all packets need rows of their own.
type Otherwise = Option<EdgeTarget>;

struct Cutter<'a> {
    diagram: &'a Diagram,
    places: &'a [LevelColumns],
    /// Branches computed so far, by their node and by the target of packets without rows for the node.
    branches: HashMap<(EdgeTarget, Otherwise), Branches>,
    /// Steps left for counting rows before the rows count as too many.
    steps: u64,
}

impl Cutter<'_> {
    fn level(&self, to: EdgeTarget) -> usize {
        match to {
            EdgeTarget::Node(node) => self.diagram.nodes[node as usize].level,
            EdgeTarget::Class(_) => usize::MAX,
        }
    }

    /// Target of packets by later rows, if `to` needs rows of its own; `None` if packets reach `to`
    /// anyway. If later rows test earlier levels than `to` does, their targets count as several.
    fn need(&self, to: EdgeTarget, otherwise: Otherwise) -> Option<Otherwise> {
        match otherwise {
            Some(other) if other == to => None,
            Some(other) if self.level(other) < self.level(to) => Some(None),
            otherwise => Some(otherwise),
        }
    }

    /// Branches of a node. A row is needed only where its target differs from that of later rows.
    fn branches(&mut self, node: u32, otherwise: Otherwise) -> Branches {
        let key = (EdgeTarget::Node(node), otherwise);
        if let Some(known) = self.branches.get(&key) {
            return known.clone();
        }
        let diagram = self.diagram;
        let node = &diagram.nodes[node as usize];
        let beside = match otherwise {
            Some(EdgeTarget::Node(other)) => Some(&diagram.nodes[other as usize]),
            _ => None,
        };
        let place = &self.places[node.level];
        let branches = beside
            .filter(|other| other.level == node.level)
            .and_then(|other| apart(&node.edges, &other.edges, place))
            .unwrap_or_else(|| {
                // If later rows branch at this level too, they lead to several targets.
                let is_one = beside.is_none_or(|other| other.level > node.level);
                nested(&node.edges, otherwise.filter(|_| is_one), place)
            });
        self.branches.insert(key, branches.clone());
        branches
    }

    /// Level before which a run from these nodes ends: the last level for which the run has few enough rows.
    fn end(&mut self, from: &[(u32, EdgeTarget)], begin: usize) -> usize {
        let all = self.diagram.levels.len();
        if self.fits(from, begin, all) {
            return all;
        }
        let first = from.iter().map(|(_, to)| self.level(*to)).min();
        // A run of one level never has more rows than edges.
        let mut end = first.unwrap_or(begin) + 1;
        while end + 1 < all && self.fits(from, begin, end + 1) {
            end += 1;
        }
        end
    }

    fn fits(&mut self, from: &[(u32, EdgeTarget)], begin: usize, end: usize) -> bool {
        let nodes = self.diagram.nodes.iter();
        let within = nodes.filter(|node| (begin..end).contains(&node.level));
        let edges: u64 = within.map(|node| node.edges.len() as u64).sum();
        let limit = MAX_ROWS.max(ROWS_PER_EDGE * edges);
        // Each step accounts for at least one row, which earlier steps share.
        self.steps = limit.saturating_mul(STEPS_PER_ROW);
        let mut counts = HashMap::new();
        let rows = from
            .iter()
            .map(|(_, to)| self.rows(&mut counts, *to, Some(EdgeTarget::NONE), end));
        rows.fold(0, u64::saturating_add) <= limit
    }

    /// Number of rows for the paths from `to` to level `end`; `u64::MAX` once they are certainly too many.
    fn rows(
        &mut self,
        counts: &mut HashMap<(EdgeTarget, Otherwise), u64>,
        to: EdgeTarget,
        otherwise: Otherwise,
        end: usize,
    ) -> u64 {
        let Some(otherwise) = self.need(to, otherwise) else {
            return 0;
        };
        let node = match to {
            EdgeTarget::Node(node) if self.level(to) < end => node,
            _ => return 1,
        };
        if let Some(known) = counts.get(&(to, otherwise)) {
            return *known;
        }
        if self.steps == 0 {
            return u64::MAX;
        }
        self.steps -= 1;
        let branches = self.branches(node, otherwise);
        let rows = branches
            .iter()
            .map(|branch| self.rows(counts, branch.to, branch.otherwise, end));
        let rows = rows.fold(0, u64::saturating_add);
        counts.insert((to, otherwise), rows);
        rows
    }
}

/// Branches for only the values at which two nodes of one level differ; `None` if nested rows are cheaper.
fn apart(
    edges: &[(u128, EdgeTarget)],
    others: &[(u128, EdgeTarget)],
    place: &LevelColumns,
) -> Option<Branches> {
    let mut targets: Vec<(EdgeTarget, EdgeTarget)> = vec![(EdgeTarget::NONE, EdgeTarget::NONE)];
    let mut codes: HashMap<(EdgeTarget, EdgeTarget), Code> = HashMap::new();
    let mut spans: Vec<Span> = Vec::new();
    let (mut edge, mut other, mut low) = (0, 0, 0);
    loop {
        let both = (edges[edge].1, others[other].1);
        let code = if both.0 == both.1 {
            SKIP
        } else {
            *codes.entry(both).or_insert_with(|| {
                targets.push(both);
                targets.len() as Code - 1
            })
        };
        let next = [edges.get(edge + 1), others.get(other + 1)];
        let next = next.into_iter().flatten().map(|(low, _)| *low).min();
        let high = next.map_or(place.max, |next| next - 1);
        match spans.last_mut() {
            Some(last) if last.2 == code => last.1 = high,
            _ => spans.push((low, high, code)),
        }
        let Some(next) = next else {
            break;
        };
        edge += usize::from(edges.get(edge + 1).is_some_and(|(low, _)| *low == next));
        other += usize::from(others.get(other + 1).is_some_and(|(low, _)| *low == next));
        low = next;
    }
    let parted = spans.iter().filter(|(.., code)| *code != SKIP);
    let parted: u128 = parted
        .map(|(low, high, _)| high - low)
        .fold(0, u128::saturating_add);
    if parted > place.max / 2 {
        return None;
    }
    let rows = pieces::rows(&spans, place.bits, place.style, false).into_iter();
    let branches = rows.map(|row| {
        let (to, otherwise) = targets[row.code as usize];
        Branch {
            piece: row.piece,
            to,
            otherwise: Some(otherwise),
        }
    });
    Some(branches.collect())
}

/// Branches of a node, whose rows may also match values that earlier rows decide.
fn nested(edges: &[(u128, EdgeTarget)], otherwise: Otherwise, place: &LevelColumns) -> Branches {
    let mut targets: Vec<EdgeTarget> = vec![otherwise.unwrap_or(EdgeTarget::NONE)];
    let mut codes: HashMap<EdgeTarget, Code> = HashMap::new();
    let ends = edges.iter().skip(1).map(|(low, _)| low - 1);
    let ends = ends.chain([place.max]);
    let spans: Vec<Span> = edges
        .iter()
        .zip(ends)
        .map(|((low, to), high)| {
            let code = if otherwise == Some(*to) {
                SKIP
            } else {
                *codes.entry(*to).or_insert_with(|| {
                    targets.push(*to);
                    targets.len() as Code - 1
                })
            };
            (*low, high, code)
        })
        .collect();
    let rows = pieces::rows(&spans, place.bits, place.style, true).into_iter();
    let branches = rows.map(|row| Branch {
        piece: row.piece,
        to: targets[row.code as usize],
        otherwise: match row.around {
            SKIP => otherwise,
            around => Some(targets[around as usize]),
        },
    });
    branches.collect()
}

struct Walk<'a, 'd> {
    cutter: &'a mut Cutter<'d>,
    end: usize,
    cells: Vec<Cell>,
    rows: Vec<Path>,
    /// Nodes behind the run of levels that its paths reach.
    left: BTreeSet<u32>,
}

impl Walk<'_, '_> {
    /// Appends the rows for packets in `state` that must reach `to`, and would reach `otherwise` without a row.
    fn paths(&mut self, state: u32, to: EdgeTarget, otherwise: Otherwise) {
        let Some(otherwise) = self.cutter.need(to, otherwise) else {
            return;
        };
        let step = match to {
            EdgeTarget::Node(node) if self.cutter.level(to) < self.end => {
                let places = self.cutter.places;
                let place = &places[self.cutter.level(to)];
                let before: Vec<Cell> = place.columns.iter().map(|c| self.cells[*c]).collect();
                for branch in self.cutter.branches(node, otherwise).iter() {
                    columns::ask(&mut self.cells, branch.piece, place);
                    self.paths(state, branch.to, branch.otherwise);
                    for (column, cell) in place.columns.iter().zip(&before) {
                        self.cells[*column] = *cell;
                    }
                }
                return;
            }
            EdgeTarget::Node(node) => {
                self.left.insert(node);
                Step::State(node)
            }
            EdgeTarget::Class(class) => Step::Class(class),
        };
        self.rows.push(Path {
            from: state,
            cells: self.cells.clone(),
            to: step,
        });
    }
}
