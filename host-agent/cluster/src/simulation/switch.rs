//! A switch: slots for what it sums, else a table of addresses.

use aggregation::job::{Job, JobConfig, JobError, JobId, WorkerId};
use aggregation::slot::SlotTable;
use rand_chacha::ChaCha8Rng;
use wire::{Flags, Kind, Packet};

use super::host::Frame;
use super::setup::{Address, Half, Loss, PortId, SwitchSpec};
use crate::network::chance;

/// What a switch sums of a job, in the reference slots.
struct Summed {
    number: JobId,
    children: Vec<PortId>,
    up: Option<(PortId, WorkerId)>,
    slots: SlotTable,
}

/// See the module.
pub struct Switch {
    forwarding: std::collections::BTreeMap<Address, Vec<PortId>>,
    sums: Vec<Summed>,
    losses: Vec<Loss>,
    /// Frames lost by chance.
    pub dropped: u64,
    /// Until when it is busy.
    pub busy_ns: u64,
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
                slots: SlotTable::of(Job::new(config)?, children as u8),
            })
        });
        Ok(Self {
            sums: sums.collect::<Result<_, JobError>>()?,
            forwarding: spec.forwarding.clone(),
            losses: spec.losses.clone(),
            dropped: 0,
            busy_ns: 0,
        })
    }

    /// Takes a frame in, and gives what it sends by which ports.
    pub fn handle(
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
            out.retain(|(_, frame)| !self.loses(Half::Egress, frame, rng));
        }
    }

    /// Whether a frame ends here by chance.
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
                // Nobody is there.
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

/// Where a frame goes that was summed.
enum To {
    /// As all others.
    Address,
    /// By the ports of the address that it has, under this one.
    Sums(Address),
    /// By this port.
    Port(PortId),
    /// By which it came.
    Back,
}

/// The bit by which addresses of what is to be summed are told from a host's.
const TO_SUM: u64 = 0x02_00_5E_57_45_00;
/// All but the way, which is the second byte, and the job's number, which is the last.
const TO_SUM_MASK: u64 = 0xFF_00_FF_FF_FF_00;

impl Summed {
    fn take(&mut self, by: PortId, frame: Frame) -> Option<(To, Frame)> {
        let packet = Packet::new_checked(&frame.payload[..]).ok()?;
        // Nobody speaks for another port's child.
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
            // Who asks is answered.
            _ if asks || outcome.is_for_sender() => To::Back,
            _ if frame.to.0 & TO_SUM_MASK == TO_SUM => To::Sums(frame.to.of_sums()),
            _ => To::Address,
        };
        let payload = payload.into();
        Some((to, Frame { payload, ..frame }))
    }
}
