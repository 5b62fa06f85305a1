//! Which frames were hit, by their place in the captures.

use std::collections::HashMap;
use std::sync::Arc;

use parser_gen::psn::{Packet, Place};
use scenario::replay::{Classified, Engine, Passage, Rewritten};
use serde::{Deserialize, Serialize};

use super::epochs::Judged;
use super::judge::Errors;
use super::trace::Arrival;

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
    /// What it is of an RDMA connection, where a fault takes packets of one.
    pub packet: Option<Packet>,
    /// Its first bytes; all that were recorded, where the fault changes some.
    pub bytes: Box<[u8]>,
    /// How long it was.
    pub wire_len: u32,
}

/// Whether a fault was right about a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Default)]
pub struct Ordinals {
    by_flow: Vec<u64>,
    by_key: HashMap<(usize, Arc<[u8]>), u64>,
}

impl Ordinals {
    /// The number of a frame at each injection that looks at it.
    pub fn of(
        &mut self,
        engine: &Engine,
        passage: &Passage,
        frame: &Classified,
    ) -> Vec<(usize, u64)> {
        let met = passage.verdicts().flat_map(|verdict| &verdict.met);
        let numbered = met.map(|injection| (*injection, self.count(engine, frame, *injection)));
        numbered.collect()
    }

    /// An injection looks at a frame: its number.
    pub fn count(&mut self, engine: &Engine, frame: &Classified, injection: usize) -> u64 {
        let number = match engine.key_of(frame, injection) {
            Some(key) => self.by_key.entry((injection, key)).or_default(),
            None => {
                if self.by_flow.len() <= injection {
                    self.by_flow.resize(injection + 1, 0);
                }
                &mut self.by_flow[injection]
            }
        };
        *number += 1;
        *number
    }
}

/// A frame that came to a switch, and what became of it.
pub struct Found<'a> {
    /// Where it came to.
    pub switch: &'a str,
    pub arrival: &'a Arrival,
    /// What had to become of it.
    pub judged: &'a Judged,
    /// Its number at each injection.
    pub ordinals: &'a [(usize, u64)],
    /// By exit, when its copies left.
    pub left: &'a [Vec<u64>],
    pub errors: &'a Errors,
}

/// What hit a frame, or had to.
pub fn of_frame(engine: &Engine, found: &Found<'_>) -> Vec<Hit> {
    let (arrival, errors, passage) = (found.arrival, found.errors, &found.judged.passage);
    // Nothing is known of a frame whose end no fault explains.
    if errors.stray {
        return Vec::new();
    }
    let due = passage.verdicts().flat_map(|verdict| &verdict.hits);
    let due = due.map(|injection| match errors.missed.contains(injection) {
        true => (*injection, Outcome::Missed),
        false if passage.has_exit() => (*injection, Outcome::Hit),
        false => (*injection, Outcome::Unforwarded),
    });
    let wrong = errors.collateral.iter();
    let all: Vec<_> = due
        .chain(wrong.map(|injection| (*injection, Outcome::Collateral)))
        .collect();
    if all.is_empty() {
        return Vec::new();
    }
    let left_as = engine.leaves_as(&passage.ingress, arrival.recorded());
    let ordinal = |injection: usize| {
        let mut ordinals = found.ordinals.iter();
        ordinals
            .find(|(of, _)| *of == injection)
            .map_or(0, |(_, number)| *number)
    };
    all.into_iter()
        .map(|(injection, outcome)| Hit {
            injection,
            switch: found.switch.to_owned(),
            port: arrival.port,
            frame: arrival.number as usize,
            ordinal: ordinal(injection),
            place: passage
                .verdicts()
                .find_map(|verdict| verdict.place_for(injection)),
            is_told: arrival.frame.told.is_some(),
            epoch: found.judged.epoch,
            at_ns: arrival.at_ns,
            left: (passage.exits.iter().zip(found.left))
                .map(|((port, _), times)| (*port, times.clone()))
                .collect(),
            left_as: left_as.clone(),
            outcome,
            packet: arrival.packet,
            bytes: arrival.bytes.clone(),
            wire_len: arrival.wire_len,
        })
        .collect()
}
