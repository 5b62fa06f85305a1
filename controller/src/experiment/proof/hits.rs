//! Which frames were hit, by their place in the captures.

use std::collections::HashMap;
use std::sync::Arc;

use parser_gen::psn::Place;
use scenario::replay::{Classified, Engine, Passage, Rewritten};
use serde::Serialize;

use super::judge::Errors;
use super::trace::SwitchTrace;

/// A fault hit a frame, or had to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Index into [`scenario::Plan::injections`].
    pub injection: usize,
    /// Where the frame came in.
    pub switch: String,
    /// By which port.
    pub port: u32,
    /// Its number, from 1, among the frames that came in there, as packet analysers count.
    pub frame: usize,
    /// Its number, from 1, among those of its flow, or of its key in the flow, that the fault looked at; 0 if it did not.
    pub ordinal: u64,
    /// Where it stands in its RDMA connection, where the fault selects by that.
    pub place: Option<Place>,
    /// Whether the switch had been told where that connection begins.
    pub is_told: bool,
    /// The step that was in force.
    pub epoch: u16,
    /// When it came, in nanoseconds since 1970.
    pub at_ns: u64,
    /// When it left, by port, in ascending order.
    pub left: Vec<(u32, Vec<u64>)>,
    /// What had to leave of it, if that is not what came, as far as it was recorded.
    pub left_as: Option<Rewritten>,
    /// Whether the fault was right about it.
    pub outcome: Outcome,
}

/// Whether a fault was right about a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It had to hit it, and did.
    Hit,
    /// It had to hit it, and nothing shows whether it did: the switch's entries forward the frame nowhere.
    Unforwarded,
    /// It had to hit it, and did not.
    Missed,
    /// It had to spare it, and did not.
    Collateral,
}

/// How many frames each injection has looked at, by key where keys are numbered.
#[derive(Debug, Default)]
pub struct Ordinals(HashMap<(usize, Arc<[u8]>), u64>);

impl Ordinals {
    /// The number of a frame at each injection that looks at it.
    pub fn of(
        &mut self,
        engine: &Engine,
        passage: &Passage,
        frame: &Classified,
    ) -> HashMap<usize, u64> {
        let met = passage.verdicts().flat_map(|verdict| &verdict.met);
        let numbered = met.map(|injection| {
            let key = engine.key_of(frame, *injection).unwrap_or_default();
            let number = self.0.entry((*injection, key)).or_default();
            *number += 1;
            (*injection, *number)
        });
        numbered.collect()
    }
}

/// A frame that came to a switch, and what became of it.
pub struct Judged<'a> {
    /// Where it came to.
    pub switch: &'a str,
    /// Its index in the trace.
    pub index: usize,
    /// The step that was in force.
    pub epoch: u16,
    pub passage: &'a Passage,
    /// Its number at each injection.
    pub ordinals: &'a HashMap<usize, u64>,
    /// By exit, when its copies left.
    pub left: &'a [Vec<u64>],
    pub errors: &'a Errors,
    /// Whether the switch had been told where its RDMA connection begins.
    pub is_told: bool,
}

/// What hit a frame, or had to.
pub fn of_frame(engine: &Engine, trace: &SwitchTrace<'_>, judged: &Judged<'_>) -> Vec<Hit> {
    let (index, errors, passage) = (judged.index, judged.errors, judged.passage);
    // Nothing is known of a frame whose end no fault explains.
    if errors.stray {
        return Vec::new();
    }
    let arrival = &trace.arrivals[index];
    let left_as = engine.leaves_as(&passage.ingress, arrival.recorded());
    let due = passage.verdicts().flat_map(|verdict| &verdict.hits);
    let due = due.map(|injection| match errors.missed.contains(injection) {
        true => (*injection, Outcome::Missed),
        false if passage.has_exit() => (*injection, Outcome::Hit),
        false => (*injection, Outcome::Unforwarded),
    });
    let wrong = errors.collateral.iter();
    due.chain(wrong.map(|injection| (*injection, Outcome::Collateral)))
        .map(|(injection, outcome)| Hit {
            injection,
            switch: judged.switch.to_owned(),
            port: arrival.port,
            frame: arrival.number + 1,
            ordinal: judged.ordinals.get(&injection).copied().unwrap_or(0),
            place: passage
                .verdicts()
                .find_map(|verdict| verdict.place_for(injection)),
            is_told: judged.is_told,
            epoch: judged.epoch,
            at_ns: arrival.at_ns,
            left: (passage.exits.iter().zip(judged.left))
                .map(|((port, _), times)| (*port, times.clone()))
                .collect(),
            left_as: left_as.clone(),
            outcome,
        })
        .collect()
}
