//! A simulated switch: sums the frames of some jobs, and forwards other frames by a table.
//!
//! Like weir's embedded switch, it processes a batch of frames from each port, and then sends the results.

use std::collections::{BTreeMap, VecDeque};

use aggregation::job::{Job, JobConfig, JobError, JobId, WorkerId};
use aggregation::slot::SlotTable;
use rand_chacha::ChaCha8Rng;
use wire::{Flags, Kind, Packet};

use super::host::Frame;
use super::setup::{Address, Half, Loss, PortId, SwitchSpec};
use crate::network::chance;

/// Maximum number of frames from one port that the switch processes in a row.
const BATCH: usize = 64;

/// A job, or a part of one, that a switch sums, with its slots (cells in which the switch sums chunks).
struct Summed {
    number: JobId,
    children: Vec<PortId>,
    up: Option<(PortId, WorkerId)>,
    slots: SlotTable,
}

/// A simulated switch: forwards frames by address, and sums the frames of some jobs.
pub struct Switch {
    forwarding: BTreeMap<Address, Vec<PortId>>,
    sums: Vec<Summed>,
    losses: Vec<Loss>,
    /// Number of frames that the switch has lost at random.
    pub dropped: u64,
    /// Frames that the switch has received and not processed, by port.
    inbox: Vec<VecDeque<Frame>>,
    /// Whether the switch is awake: its next poll is scheduled.
    is_working: bool,
}

impl Switch {
    pub fn new(spec: &SwitchSpec, job: JobConfig) -> Result<Self, JobError> {
        let sums = spec.sums.iter().map(|summing| {
            let children = summing.children.len() as u16;
            let config = JobConfig {
                job: summing.number,
                workers: children,
                ..job
            };
            Ok(Summed {
                number: summing.number,
                children: summing.children.clone(),
                up: summing.up,
                slots: SlotTable::with_children(Job::new(config)?, children as u8),
            })
        });
        Ok(Self {
            sums: sums.collect::<Result<_, JobError>>()?,
            forwarding: spec.forwarding.clone(),
            losses: spec.losses.clone(),
            dropped: 0,
            inbox: Vec::new(),
            is_working: false,
        })
    }

    /// Queues a received frame of a port; returns whether the switch was asleep and must be woken.
    pub fn arrived(&mut self, PortId(by): PortId, frame: Frame) -> bool {
        if self.inbox.len() <= by {
            self.inbox.resize_with(by + 1, VecDeque::new);
        }
        self.inbox[by].push_back(frame);
        !std::mem::replace(&mut self.is_working, true)
    }

    /// Processes up to a batch of frames from each port, and appends each outgoing frame with its port to `out`. Returns the
    /// number of processed frames; if it is 0, the switch sleeps.
    pub fn turn(&mut self, rng: &mut ChaCha8Rng, out: &mut Vec<(PortId, Frame)>) -> u64 {
        let mut taken = 0;
        for port in 0..self.inbox.len() {
            for _ in 0..BATCH {
                let Some(frame) = self.inbox[port].pop_front() else {
                    break;
                };
                taken += 1;
                self.handle(PortId(port), frame, rng, out);
            }
        }
        self.is_working = taken > 0;
        taken
    }

    fn handle(
        &mut self,
        by: PortId,
        frame: Frame,
        rng: &mut ChaCha8Rng,
        out: &mut Vec<(PortId, Frame)>,
    ) {
        let Ok(packet) = Packet::new_checked(&frame.payload[..]) else {
            return;
        };
        if self.loses(Half::Ingress, &frame, rng) {
            return;
        }
        let before = out.len();
        let number = JobId(packet.job());
        let mut sums = self.sums.iter_mut();
        let summed = sums.find(|summed| summed.number == number && packet.kind() == Kind::Update);
        match summed {
            Some(summed) => {
                if let Some((to, frame)) = summed.take(by, frame) {
                    self.send(to, by, frame, out);
                }
            }
            None => self.send(To::Address, by, frame, out),
        }
        if !self.losses.is_empty() {
            let mut at = before;
            while at < out.len() {
                match self.loses(Half::Egress, &out[at].1, rng) {
                    true => drop(out.remove(at)),
                    false => at += 1,
                }
            }
        }
    }

    /// Decides at random whether the frame is lost in this half of the switch, and counts the loss.
    fn loses(&mut self, at: Half, frame: &Frame, rng: &mut ChaCha8Rng) -> bool {
        let kind = Packet::new_checked(&frame.payload[..]).map(|packet| packet.kind());
        let mut losses = self.losses.iter();
        let is_lost = losses.any(|loss| {
            loss.at == at
                && loss.kind.is_none_or(|of| kind == Ok(of))
                && loss.from.is_none_or(|from| from == frame.from)
                && loss.to.is_none_or(|to| to == frame.to)
                && chance(rng, loss.share)
        });
        self.dropped += u64::from(is_lost);
        is_lost
    }

    fn send(&self, to: To, by: PortId, frame: Frame, out: &mut Vec<(PortId, Frame)>) {
        match to {
            To::Port(port) => out.push((port, frame)),
            To::Back => {
                let to = frame.from;
                out.push((by, Frame { to, ..frame }));
            }
            To::Address => match self.forwarding.get(&frame.to) {
                // No node has this address.
                None => {}
                Some(ports) => out.extend(ports.iter().map(|port| (*port, frame.clone()))),
            },
            To::Sums(sums) => {
                let ports = self.forwarding.get(&frame.to);
                let ports = ports.map_or(&[][..], Vec::as_slice);
                let frame = Frame { to: sums, ..frame };
                out.extend(ports.iter().map(|port| (*port, frame.clone())));
            }
        }
    }
}

/// Destination of a frame that the switch has processed.
enum To {
    /// The ports that the forwarding table gives for the frame's address.
    Address,
    /// The ports for the frame's address in the forwarding table; then the frame gets this new address.
    Sums(Address),
    /// This output port, whatever the frame's address.
    Port(PortId),
    /// The port at which the frame arrived, back to its sender.
    Back,
}

/// Prefix of the Ethernet addresses of frames that a switch sums.
const TO_SUM: u64 = 0x02_00_5E_57_45_00;
/// Mask of the prefix in an Ethernet address: all bytes but the second (the route) and the last (the job's number).
const TO_SUM_MASK: u64 = 0xFF_00_FF_FF_FF_00;

impl Summed {
    fn take(&mut self, by: PortId, frame: Frame) -> Option<(To, Frame)> {
        let packet = Packet::new_checked(&frame.payload[..]).ok()?;
        // A child may only use its own port.
        if self.children.get(usize::from(packet.worker())) != Some(&by) {
            return None;
        }
        let asks = packet.flags().contains(Flags::PROBE);
        let outcome = self.slots.update(&packet);
        let mut payload = frame.payload.to_vec();
        let mut packet = Packet::new_unchecked(&mut payload[..]);
        let to = match self.up {
            Some((up, number)) if self.slots.make_update(outcome, number, &mut packet) => {
                To::Port(up)
            }
            _ if !self.slots.make_sum(outcome, &mut packet) => return None,
            // A probe is answered to its sender.
            _ if asks || outcome.is_for_sender() => To::Back,
            _ if frame.to.0 & TO_SUM_MASK == TO_SUM => To::Sums(frame.to.of_sums()),
            _ => To::Address,
        };
        let payload = payload.into();
        Some((to, Frame { payload, ..frame }))
    }
}
