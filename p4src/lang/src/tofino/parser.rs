//! Counts the TCAM rows that a parser needs, and the packet bits that it has to keep.

use std::collections::BTreeMap;

use super::expr::width;
use super::limits::ChipLimits;
use crate::ir::{
    Keyset, LValue, ParserId, Program, StateId, Stmt, StmtKind, Target, Transition, Type,
};
use crate::source::Span;

/// The resources that a parser needs.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    /// For each state, (number of TCAM rows, span): one row per `select` case, more if it selects or extracts more than a row
    /// can. With a direct transition, one row per full row of extracted bytes: the state can be merged with its neighbors.
    pub rows: Vec<(u64, Span)>,
    /// The largest number of bytes that one state extracts, with the state's span.
    pub widest: (u64, Span),
    /// For each `extract` call on the path that extracts most: (bits of the header, span). All these headers are kept together.
    pub bits: Vec<(u64, Span)>,
}

pub(super) fn parser(program: &Program, id: ParserId, limits: &ChipLimits) -> Parsed {
    let mut parsed = Parsed::default();
    let mut walk = Walk {
        program,
        limits,
        parsed: &mut parsed,
        best: BTreeMap::new(),
        depth: 0,
    };
    let bits = walk.parser(id);
    parsed.bits = bits;
    parsed
}

/// Maximum nesting of parsers that apply parsers.
const MAX_DEPTH: usize = 16;

type Bits = Vec<(u64, Span)>;

struct Walk<'p, 'o> {
    program: &'p Program,
    limits: &'o ChipLimits,
    parsed: &'o mut Parsed,
    /// For each state, the header bits on the path from it that extracts most; `None` while they are computed (as in a loop).
    best: BTreeMap<(ParserId, StateId), Option<Bits>>,
    depth: usize,
}

impl Walk<'_, '_> {
    fn parser(&mut self, id: ParserId) -> Bits {
        if self.depth > MAX_DEPTH {
            return Vec::new();
        }
        self.depth += 1;
        self.best.retain(|(parser, _), _| *parser != id);
        let bits = self.state(id, StateId(0));
        self.depth -= 1;
        bits
    }

    fn state(&mut self, parser: ParserId, id: StateId) -> Bits {
        if let Some(known) = self.best.get(&(parser, id)) {
            return known.clone().unwrap_or_default();
        }
        self.best.insert((parser, id), None);
        let program = self.program;
        let Some(state) = program
            .parsers
            .get(parser.index())
            .and_then(|p| p.states.get(id.index()))
        else {
            return Vec::new();
        };
        let mut own: Bits = Vec::new();
        let mut inside: Bits = Vec::new();
        self.statements(&state.body, &mut own, &mut inside);
        let extracted: u64 = own.iter().map(|(bits, _)| bits.div_ceil(8)).sum();
        if extracted > self.parsed.widest.0 {
            self.parsed.widest = (extracted, state.span);
        }
        let mut rows = 1u64;
        let mut targets = Vec::new();
        match &state.transition {
            Transition::Direct(target) => targets.push(*target),
            Transition::Select { keys, cases } => {
                let bits: u64 = keys.iter().map(|k| width(&k.ty)).sum();
                let value_sets: u64 = cases
                    .iter()
                    .filter_map(|(sets, _)| match sets.as_slice() {
                        [Keyset::ValueSet(v)] => {
                            program.parsers[parser.index()].value_sets.get(v.index())
                        }
                        _ => None,
                    })
                    .map(|v| v.size.saturating_sub(1))
                    .sum();
                rows = (cases.len() as u64).max(1) + value_sets;
                rows += bits
                    .div_ceil(self.limits.parser_match_bits)
                    .saturating_sub(1);
                targets.extend(cases.iter().map(|(_, target)| *target));
            }
        }
        let most = self.limits.parser_extract_bytes;
        match state.transition {
            // The first state always takes a row.
            Transition::Direct(_) if id != StateId(0) => {
                rows = most.map_or(0, |most| extracted / most);
            }
            _ => rows += most.map_or(0, |most| extracted.div_ceil(most).saturating_sub(1)),
        }
        self.parsed.rows.push((rows, state.span));
        let mut best: Bits = Vec::new();
        for target in targets {
            if let Target::State(next) = target {
                let way = self.state(parser, next);
                if total(&way) > total(&best) {
                    best = way;
                }
            }
        }
        own.extend(inside);
        own.extend(best);
        self.best.insert((parser, id), Some(own.clone()));
        own
    }

    fn statements(&mut self, block: &[Stmt], own: &mut Bits, inside: &mut Bits) {
        for stmt in block {
            match &stmt.kind {
                StmtKind::Extract { header, .. } => {
                    own.push((header_bits(self.program, header), stmt.span))
                }
                StmtKind::If(arms, otherwise) => {
                    for arm in arms {
                        self.statements(&arm.before, own, inside);
                        self.statements(&arm.then, own, inside);
                    }
                    self.statements(otherwise, own, inside);
                }
                StmtKind::ApplyParser(id, _) => {
                    let bits = self.parser(*id);
                    inside.extend(bits);
                }
                _ => {}
            }
        }
    }
}

pub(super) fn total(bits: &Bits) -> u64 {
    bits.iter().map(|(bits, _)| bits).sum()
}

fn header_bits(program: &Program, header: &LValue) -> u64 {
    match &header.ty {
        Type::Struct(id) => program
            .types
            .get(id.index())
            .map_or(0, |t| t.fields.iter().map(|f| width(&f.ty)).sum()),
        _ => 0,
    }
}
