//! The frames that faults hit or had to hit, with their numbers in the captures.

use std::collections::HashMap;
use std::sync::Arc;

use parser_gen::psn::{Packet, PsnPosition};
use scenario::replay::{Classified, Engine, Passage, Rewritten};
use serde::{Deserialize, Serialize};

use super::epochs::Judged;
use super::judge::Errors;
use super::trace::Arrival;

/// A frame that a fault hit, or had to hit and missed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Index of the fault's injection in [`scenario::Plan::injections`].
    pub injection: usize,
    /// Name of the switch at which the frame arrived.
    pub switch: String,
    /// Port of the switch by which the frame arrived.
    pub port: u32,
    /// Number of the frame, from 1, among those that arrived by this port, as packet analyzers count.
    pub frame: usize,
    /// Number of the frame, from 1, among those of its flow (or key) that the fault looked at; 0 if the fault ignored it.
    pub ordinal: u64,
    /// Position of the packet in its RDMA connection, if the fault selects by this position.
    pub place: Option<PsnPosition>,
    /// Whether the switch had received the announcement of the RDMA connection's first sequence number.
    pub is_told: bool,
    /// The epoch (step of the timeline) in force for the frame.
    pub epoch: u16,
    /// Time at which the frame arrived at the switch, in nanoseconds since 1970.
    pub at_ns: u64,
    /// For each egress port, the times at which copies of the frame left, in nanoseconds since 1970, ascending.
    pub left: Vec<(u32, Vec<u64>)>,
    /// The frame that had to leave, as far as it was recorded, if it differs from the frame that arrived.
    pub left_as: Option<Rewritten>,
    /// Whether the fault hit or spared the frame correctly.
    pub outcome: Outcome,
    /// The RDMA packet, if a fault takes packets of its connection.
    pub packet: Option<Packet>,
    /// First bytes of the frame as it arrived; all recorded bytes if the fault changes some.
    pub bytes: Box<[u8]>,
    /// Length of the frame on the link in bytes, without FCS.
    pub wire_len: u32,
}

/// Whether a fault hit or spared a frame correctly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The fault had to hit the frame, and did.
    Hit,
    /// The fault had to hit the frame, but this has no visible effect: the switch's table entries forward the frame nowhere.
    Unforwarded,
    /// The fault had to hit the frame, and did not.
    Missed,
    /// The fault had to spare the frame, and hit it.
    Collateral,
}

/// Number of frames that each injection (fault on a flow) has looked at; by key for faults that number each key's frames.
#[derive(Debug, Clone, Default)]
pub struct Ordinals {
    by_flow: Vec<u64>,
    by_key: HashMap<(usize, Arc<[u8]>), u64>,
}

impl Ordinals {
    /// Counts a frame at each injection (fault on a flow) that looks at it; returns each, and the frame's number there, from 1.
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

    /// Counts a frame at one injection (fault on a flow). Returns the frame's number there, from 1.
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

/// A frame that arrived at a switch, with the judge's findings about it.
pub struct Found<'a> {
    /// Name of the switch.
    pub switch: &'a str,
    pub arrival: &'a Arrival,
    /// Expected fate of the frame: which faults hit it, in which epoch, and how it leaves.
    pub judged: &'a Judged,
    /// Index of each injection (fault on a flow) that looked at the frame, and the frame's number there, from 1.
    pub ordinals: &'a [(usize, u64)],
    /// Departure times of the frame's copies, by egress port, in nanoseconds since 1970.
    pub left: &'a [Vec<u64>],
    pub errors: &'a Errors,
}

/// One hit for each fault that hit this frame or had to hit it.
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
