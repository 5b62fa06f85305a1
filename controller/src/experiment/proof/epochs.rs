//! Which epoch each frame met, and so what had to be done to it.
//!
//! A switch takes the frames of a port in order, so a write of an epoch splits them in two. The captures say where only up to
//! a few frames: those that came before the write was confirmed, and after the last that is known to have been processed
//! before it was sent. Each place in between is tried. What the switch was seen to do from there on tells the right one,
//! because a split one frame off shifts the ordinals of all that follow. Frames that cannot be told apart give no evidence.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use scenario::effect::Fate;
use scenario::replay::{Classified, Engine, Passage, State};

use super::super::fleet::EpochWrite;
use super::STAMP_NS;
use super::judge::{Share, deal, due_ns, is_as_expected};
use super::trace::{Identity, SwitchTrace};

/// No frame waits for its switch longer than this: a switch that was stopped for longer fails its run by other signs.
const BACKLOG_NS: u64 = 1_000_000_000;
/// Splits that are followed at once; the truth fits best, so it is among the best.
const MAX_HYPOTHESES: usize = 256;
/// A split is given up when it explains so many frames less than the best.
const MAX_MISFITS_BEHIND: u32 = 16;

/// What the frames of one port met, if a split is right.
#[derive(Debug, Clone)]
pub struct Replay {
    /// What had to be done to each frame, by its index in the trace. Frames that no unit looks at are left out.
    pub passages: Vec<(usize, Passage)>,
    /// How often each injection had to hit.
    pub hits: Vec<u64>,
}

/// A port's frames between the sending and the confirmation of a write: either epoch may have met them.
pub fn boundaries(
    trace: &SwitchTrace<'_>,
    port: &Range<usize>,
    exits: &dyn Fn(usize) -> Vec<u32>,
    writes: &[EpochWrite],
) -> Vec<Range<usize>> {
    let arrivals = &trace.arrivals;
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for write in writes {
        let after = port
            .clone()
            .rfind(|i| arrivals[*i].at_ns <= write.confirmed_ns.saturating_add(STAMP_NS));
        let end = after.map_or(port.start, |last| last + 1);
        let oldest = write.sent_ns.saturating_sub(BACKLOG_NS);
        let was_done = |i: &usize| {
            let arrival = &arrivals[*i];
            let has_left = || {
                let left = exits(*i)
                    .into_iter()
                    .filter_map(|exit| trace.left(exit, arrival.identity).first().copied())
                    .min();
                left.is_some_and(|at_ns| at_ns < write.sent_ns)
            };
            arrival.at_ns < oldest || (trace.is_unique(arrival.identity) && has_left())
        };
        let done = (port.start..end).rfind(was_done);
        let start = done.map_or(port.start, |last| last + 1);
        // Writes are confirmed one after the other.
        let before = ranges.last().cloned().unwrap_or(port.start..port.start);
        ranges.push(start.max(before.start)..end.max(before.end));
    }
    ranges
}

/// All ways to split the frames of a port that fit what was seen best; the first is the earliest.
pub fn replays(
    engine: &Engine,
    trace: &SwitchTrace<'_>,
    classified: &[Classified],
    port: &Range<usize>,
    boundaries: &[Range<usize>],
    writes: &[EpochWrite],
    injections: usize,
) -> Vec<Replay> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut hypotheses = vec![Hypothesis {
        writes_done: 0,
        state: engine.start(),
        hits: vec![0; injections],
        misfits: 0,
        last: None,
    }];
    for index in port.clone().filter(|i| !engine.ignores(&classified[*i])) {
        // Which writes must have been done when this frame was processed, and which may have been.
        let must = boundaries
            .iter()
            .take_while(|range| range.end <= index)
            .count();
        let may = boundaries
            .iter()
            .take_while(|range| range.start <= index)
            .count();
        let mut next: Vec<Hypothesis> = Vec::new();
        for hypothesis in &hypotheses {
            for done in hypothesis.writes_done.max(must)..=may.max(must) {
                let epoch = done
                    .checked_sub(1)
                    .map_or(0, |write: usize| writes[write].epoch);
                let mut follower = hypothesis.clone();
                follower.writes_done = done;
                let passage = engine.pass(&mut follower.state, &classified[index], epoch);
                let arrival = &trace.arrivals[index];
                if trace.is_unique(arrival.identity) && !is_as_expected(trace, arrival, &passage) {
                    follower.misfits += 1;
                }
                for hit in passage.verdicts().flat_map(|verdict| &verdict.hits) {
                    follower.hits[*hit] += 1;
                }
                let same = next.iter_mut().find(|other| {
                    other.writes_done == follower.writes_done
                        && other.hits == follower.hits
                        && other.state == follower.state
                });
                match same {
                    Some(other) if other.misfits <= follower.misfits => {}
                    other => {
                        nodes.push(Node {
                            parent: hypothesis.last,
                            index,
                            passage,
                        });
                        follower.last = Some(nodes.len() - 1);
                        match other {
                            Some(other) => *other = follower,
                            None => next.push(follower),
                        }
                    }
                }
            }
        }
        hypotheses = next;
        prune(&mut hypotheses);
    }
    let least = hypotheses.iter().map(|h| h.misfits).min();
    let best = hypotheses.iter().filter(|h| Some(h.misfits) == least);
    let mut replays: Vec<Replay> = best.map(|h| h.replay(&nodes)).collect();
    if replays.len() > 1 {
        // Frames that are alike say something together, and so does the order in which frames left: too much to ask at each
        // step.
        let misfits: Vec<usize> = replays
            .iter()
            .map(|replay| {
                misfits_of_alike(trace, classified, port, replay)
                    + misfits_of_order(engine, trace, classified, port, replay)
            })
            .collect();
        let least = misfits.iter().min().copied();
        let mut misfits = misfits.into_iter();
        replays.retain(|_| misfits.next() == least);
    }
    replays
}

/// How many of the frames that have their like did not leave as a replay says, if all of them are to be explained.
fn misfits_of_alike(
    trace: &SwitchTrace<'_>,
    classified: &[Classified],
    port: &Range<usize>,
    replay: &Replay,
) -> usize {
    let passages: BTreeMap<usize, &Passage> = replay
        .passages
        .iter()
        .map(|(index, passage)| (*index, passage))
        .collect();
    let mut alike: BTreeMap<(u32, Identity), Vec<Share>> = BTreeMap::new();
    for index in port.clone() {
        let arrival = &trace.arrivals[index];
        if trace.is_unique(arrival.identity) {
            continue;
        }
        for (position, (exit, _)) in classified[index].exits.iter().enumerate() {
            let passage = passages.get(&index);
            let fate = passage.map_or(Fate::UNTOUCHED, |passage| passage.ingress.fate);
            alike
                .entry((*exit, arrival.identity))
                .or_default()
                .push(Share {
                    came_ns: arrival.at_ns,
                    copies: passage.map_or(1, |passage| passage.leaving(position)),
                    due_ns: due_ns(arrival.at_ns, fate),
                });
        }
    }
    let misfits = alike.iter().map(|((exit, identity), shares)| {
        let dealt = deal(shares, trace.left(*exit, *identity));
        let wrong = shares.iter().zip(&dealt).filter(|(share, left)| {
            left.len() != share.copies || left.iter().any(|at| *at < share.due_ns)
        });
        wrong.count()
    });
    misfits.sum()
}

/// How many frames that a replay has spared were overtaken by others that it has spared: they were held.
fn misfits_of_order(
    engine: &Engine,
    trace: &SwitchTrace<'_>,
    classified: &[Classified],
    port: &Range<usize>,
    replay: &Replay,
) -> usize {
    let hit: BTreeSet<usize> = replay
        .passages
        .iter()
        .filter(|(_, passage)| !passage.ingress.hits.is_empty())
        .map(|(index, _)| *index)
        .collect();
    let Some(shortest) = engine.shortest_hold_ns() else {
        return 0;
    };
    let mut earliest_later: BTreeMap<u32, u64> = BTreeMap::new();
    let mut misfits = 0;
    for index in port.clone().rev().filter(|index| !hit.contains(index)) {
        let arrival = &trace.arrivals[index];
        if !trace.is_unique(arrival.identity) {
            continue;
        }
        for (exit, _) in &classified[index].exits {
            let [at] = trace.left(*exit, arrival.identity) else {
                continue;
            };
            let earliest = earliest_later.entry(*exit).or_insert(*at);
            misfits += usize::from(at.saturating_sub(*earliest) >= shortest / 2);
            *earliest = (*earliest).min(*at);
        }
    }
    misfits
}

fn prune(hypotheses: &mut Vec<Hypothesis>) {
    if let [_] = hypotheses[..] {
        return;
    }
    let least = hypotheses.iter().map(|h| h.misfits).min().unwrap_or(0);
    hypotheses.retain(|h| h.misfits <= least + MAX_MISFITS_BEHIND);
    if hypotheses.len() > MAX_HYPOTHESES {
        hypotheses.sort_by_key(|h| h.misfits);
        hypotheses.truncate(MAX_HYPOTHESES);
    }
}

/// A way to split the frames so far.
#[derive(Debug, Clone)]
struct Hypothesis {
    writes_done: usize,
    state: State,
    /// By injection.
    hits: Vec<u64>,
    /// Frames that were not seen to be treated as it says.
    misfits: u32,
    last: Option<usize>,
}

struct Node {
    parent: Option<usize>,
    index: usize,
    passage: Passage,
}

impl Hypothesis {
    fn replay(&self, nodes: &[Node]) -> Replay {
        let mut passages = Vec::new();
        let mut at = self.last;
        while let Some(node) = at.map(|at| &nodes[at]) {
            passages.push((node.index, node.passage.clone()));
            at = node.parent;
        }
        passages.reverse();
        Replay {
            passages,
            hits: self.hits.clone(),
        }
    }
}

/// Of each port's best replays the one with which the switch's own counts agree most, and the injections for which another
/// one agrees as well.
pub fn choose(candidates: Vec<Vec<Replay>>, fired: &[u64]) -> (Vec<Replay>, Vec<usize>) {
    let mut chosen: Vec<usize> = vec![0; candidates.len()];
    let mut ambiguous = Vec::new();
    for port in 0..candidates.len() {
        let others = |injection: usize| -> u64 {
            let rest = (0..candidates.len()).filter(|other| *other != port);
            rest.map(|other| candidates[other][chosen[other]].hits[injection])
                .sum()
        };
        let elsewhere: Vec<u64> = (0..fired.len()).map(others).collect();
        let distance = |replay: &Replay| -> u64 {
            let here = replay.hits.iter().zip(&elsewhere).zip(fired);
            here.map(|((here, elsewhere), fired)| (here + elsewhere).abs_diff(*fired))
                .sum()
        };
        let replays = &candidates[port];
        let Some(best) = (0..replays.len()).min_by_key(|i| distance(&replays[*i])) else {
            continue;
        };
        chosen[port] = best;
        let least = distance(&replays[best]);
        let rivals = replays.iter().filter(|replay| distance(replay) == least);
        for rival in rivals {
            let differs = |i: &usize| rival.hits[*i] != replays[best].hits[*i];
            ambiguous.extend((0..fired.len()).filter(differs));
        }
    }
    ambiguous.sort_unstable();
    ambiguous.dedup();
    let replays = candidates.into_iter().zip(chosen);
    let replays =
        replays.filter_map(|(mut port, best)| (best < port.len()).then(|| port.swap_remove(best)));
    (replays.collect(), ambiguous)
}
