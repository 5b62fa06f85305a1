//! What captures saw of one switch: the frames that came to it by each port, in order, and when frames left it.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use scenario::plan::PortLatency;
use scenario::replay::Recorded;
use testbeds::bed::PortRecording;
use testbeds::capture::{Direction, Frame};

use super::STAMP_NS;

/// Frames with equal bytes and length have one identity: nothing tells them apart.
pub type Identity = usize;

/// A frame that came to a switch.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// By which port.
    pub port: u32,
    /// Which one of that port's, from 0.
    pub number: usize,
    /// When the recorder got it, in nanoseconds since 1970; later by what its port holds each frame for the latency of its
    /// link.
    pub at_ns: u64,
    /// As far as it was recorded.
    pub bytes: &'a [u8],
    /// How long it was.
    pub wire_len: u32,
    /// Which frame it is.
    pub identity: Identity,
}

impl<'a> Arrival<'a> {
    /// As the model takes it.
    pub fn recorded(&self) -> Recorded<'a> {
        Recorded {
            bytes: self.bytes,
            wire_len: self.wire_len,
        }
    }
}

/// What captures saw of one switch.
#[derive(Debug, Default)]
pub struct SwitchTrace<'a> {
    /// Port by port, each in the order of its capture: the order in which the switch took them from that port, because both
    /// its ring and the capture's are filled where the sender's end hands a frame over.
    pub arrivals: Vec<Arrival<'a>>,
    /// What is replayed together: each port's part of them, or all of them, in the order of their stamps.
    pub ports: Vec<Range<usize>>,
    departures: BTreeMap<(u32, Identity), Vec<u64>>,
    identities: HashMap<(&'a [u8], u32), Identity>,
    /// How often each identity came.
    came: Vec<u32>,
}

impl<'a> SwitchTrace<'a> {
    /// From the recordings of a switch's ports, and what those hold for the latency of links: what the pipeline does lies
    /// between.
    pub fn new(
        recordings: impl IntoIterator<Item = &'a PortRecording>,
        latencies: &[PortLatency],
    ) -> SwitchTrace<'a> {
        let mut trace = SwitchTrace::default();
        let mut recordings: Vec<_> = recordings.into_iter().collect();
        recordings.sort_by_key(|recording| recording.port);
        for PortRecording {
            port, recording, ..
        } in recordings
        {
            let first = trace.arrivals.len();
            let latency = latencies.iter().find(|latency| latency.port == *port);
            let (in_ns, out_ns) = latency.map_or((0, 0), |held| (held.in_ns, held.out_ns));
            for frame in &recording.frames {
                let identity = trace.identify(frame);
                match frame.direction {
                    Direction::In => {
                        trace.came[identity] += 1;
                        trace.arrivals.push(Arrival {
                            port: *port,
                            number: trace.arrivals.len() - first,
                            at_ns: frame.at_ns.saturating_add(in_ns),
                            bytes: &frame.bytes,
                            wire_len: frame.wire_len,
                            identity,
                        });
                    }
                    Direction::Out => trace
                        .departures
                        .entry((*port, identity))
                        .or_default()
                        .push(frame.at_ns.saturating_sub(out_ns)),
                }
            }
            trace.ports.push(first..trace.arrivals.len());
        }
        trace
            .departures
            .values_mut()
            .for_each(|times| times.sort_unstable());
        trace
    }

    /// Forgets frames that left before this time and are none of those that came: captures begin one after the other, so of a
    /// frame that passed meanwhile its departure alone may have been seen. It would be taken for that of one with the same bytes
    /// that came later; hosts repeat what they say of themselves bit for bit.
    pub fn forget_before(&mut self, begin_ns: u64) {
        let mut first_came: HashMap<Identity, u64> = HashMap::new();
        for arrival in &self.arrivals {
            let first = first_came.entry(arrival.identity).or_insert(u64::MAX);
            *first = arrival.at_ns.min(*first);
        }
        for ((_, identity), times) in &mut self.departures {
            let came_ns = first_came.get(identity).copied().unwrap_or(u64::MAX);
            times.retain(|left_ns| {
                *left_ns >= begin_ns || came_ns <= left_ns.saturating_add(STAMP_NS)
            });
        }
        self.departures.retain(|_, times| !times.is_empty());
    }

    /// All ports in one order, that of the stamps: for what goes by packets of several of them. What one packet brings another
    /// to be sent for comes after it in any case; of two that come within a few microseconds by different ports the switch
    /// may have taken the other one first.
    pub fn join(&mut self) {
        self.arrivals.sort_by_key(|arrival| arrival.at_ns);
        self.ports.clear();
        self.ports.push(0..self.arrivals.len());
    }

    fn identify(&mut self, frame: &'a Frame) -> Identity {
        let next = self.came.len();
        let identity = *self
            .identities
            .entry((&frame.bytes, frame.wire_len))
            .or_insert(next);
        if identity == next {
            self.came.push(0);
        }
        identity
    }

    /// Which frame has these bytes; `None` if none did.
    pub fn identity_of(&self, bytes: &[u8], wire_len: u32) -> Option<Identity> {
        self.identities.get(&(bytes, wire_len)).copied()
    }

    /// Whether a frame like this one came.
    pub fn has_come(&self, identity: Identity) -> bool {
        self.came[identity] > 0
    }

    /// Whether no other frame like this one came.
    pub fn is_unique(&self, identity: Identity) -> bool {
        self.came[identity] == 1
    }

    /// All that left: by which port, which frame, when, in ascending order.
    pub fn departures(&self) -> impl Iterator<Item = (u32, Identity, &[u64])> {
        let departures = self.departures.iter();
        departures.map(|((port, identity), times)| (*port, *identity, &times[..]))
    }

    /// The same of a frame that may never have been seen.
    pub fn left_by(&self, port: u32, identity: Option<Identity>) -> &[u64] {
        identity.map_or(&[], |identity| self.left(port, identity))
    }

    /// When frames of this identity left by a port, in ascending order.
    pub fn left(&self, port: u32, identity: Identity) -> &[u64] {
        self.departures
            .get(&(port, identity))
            .map_or(&[], Vec::as_slice)
    }
}
