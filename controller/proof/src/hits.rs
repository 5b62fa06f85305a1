//! Frames that faults hit, with their positions in the captures.

use std::collections::HashMap;
use std::sync::Arc;

use parser_gen::psn::{Packet, PsnPosition};
use scenario::replay::{Classified, Engine, Passage, Rewritten};
use serde::{Deserialize, Serialize};

use super::epochs::Judged;
use super::judge::Errors;
use super::trace::Arrival;

/// A frame that a fault hit or had to hit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Index into [`scenario::Plan::injections`].
    pub injection: usize,
    /// Name of the switch at which the frame arrived.
    pub switch: String,
    /// Ingress port.
    pub port: u32,
    /// Number of the frame, from 1, among those that arrived by this port, as packet analyzers count.
    pub frame: usize,
    /// Number of the frame, from 1, among those of its flow (or key) that the fault looked at; 0 if it did not look at this one.
    pub ordinal: u64,
    /// Position in the RDMA connection, if the fault selects by it.
    pub place: Option<PsnPosition>,
    /// Whether the switch had received an announcement of where that connection begins.
    pub is_told: bool,
    /// The epoch in force.
    pub epoch: u16,
    /// Time of arrival, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Departure times in nanoseconds since 1970, ascending, by port.
    pub left: Vec<(u32, Vec<u64>)>,
    /// The frame that had to leave, as far as it was recorded, if it differs from the frame that arrived.
    pub left_as: Option<Rewritten>,
    /// Whether the fault treated the frame correctly.
    pub outcome: Outcome,
    /// The RDMA packet, if a fault takes packets of its connection.
    pub packet: Option<Packet>,
    /// First bytes of the frame; all recorded bytes if the fault changes some.
    pub bytes: Box<[u8]>,
    /// Length on the link in bytes, without FCS.
    pub wire_len: u32,
}

/// Whether a fault treated a frame correctly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The fault had to hit the frame, and did.
    Hit,
    /// The fault had to hit the frame without visible effect: the switch's entries forward the frame nowhere.
    Unforwarded,
    /// The fault had to hit the frame, and did not.
    Missed,
    /// The fault had to spare the frame, and hit it.
    Collateral,
}

/// Number of frames that each injection has looked at, by key where keys are numbered.
#[derive(Debug, Clone, Default)]
pub struct Ordinals {
    by_flow: Vec<u64>,
    by_key: HashMap<(usize, Arc<[u8]>), u64>,
}

impl Ordinals {
    /// Counts a frame at each injection that looks at it, and returns its number there.
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

    /// Counts a frame at one injection, and returns its number there, from 1.
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

/// A frame that arrived at a switch, with its verdict.
pub struct Found<'a> {
    /// Name of the switch.
    pub switch: &'a str,
    pub arrival: &'a Arrival,
    /// The expected fate of the frame.
    pub judged: &'a Judged,
    /// Number of the frame at each injection.
    pub ordinals: &'a [(usize, u64)],
    /// Departure times of its copies, by exit.
    pub left: &'a [Vec<u64>],
    pub errors: &'a Errors,
}

/// The hits of a frame: faults that hit it or had to.
pub fn of_frame(engine: &Engine, found: &Found<'_>) -> Vec<Hit> {
    let (arrival, errors, passage) = (found.arrival, found.errors, &found.judged.passage);
    // A frame whose departures no fault explains gives no evidence.
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
            bytes: arrival.bytes.as_slice().into(),
            wire_len: arrival.wire_len,
        })
        .collect()
}
