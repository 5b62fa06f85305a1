//! A switch between ranks that speak RoCEv2 with it (`docs/protocol.md`, "By RDMA"), around any switch that sums.

use std::convert::Infallible;

use aggregation::Destination;
use aggregation::job::{Place, WorkerId, WorkerSet};
use roce::packet::{
    Address, Ecn, Header, MAX_FRAME_LEN, Opcode, Operation, Packet, Position, Reth, Route, Service,
    emit,
};
use roce::{Psn, Qpn};
use wire::rdma::{Immediate, Registration, Sum, Target, Update, Write, switch_qpn};
use wire::{Flags, HEADER_LEN, Kind, Repr};

use crate::ranks::RankSwitch;

const PKEY: u16 = 0xFFFF;
const SOURCE_PORT: u16 = 0xC000;

/// A frame at a rank's link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Frame {
    /// Of RoCEv2, from Ethernet on.
    Roce(Vec<u8>),
    /// An aggregation frame by UDP, without the headers in front.
    Udp(Vec<u8>),
}

/// What became of frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RdmaCounters {
    /// UPDATEs that were WRITEs.
    pub updates: u64,
    /// SUMs that were sent as WRITEs, and those that were sent by UDP.
    pub sums: u64,
    /// See there.
    pub by_udp: u64,
    /// Registrations that were taken, and those that were known already.
    pub registered: u64,
    /// See there.
    pub registered_again: u64,
    /// Frames that were dropped: broken, of another port's rank, or of no form that is known.
    pub dropped: u64,
}

/// A rank, as the switch was told of it.
#[derive(Debug, Clone, Copy)]
struct Registered {
    target: Target,
    told: u32,
    next: Psn,
}

/// A rank's link.
#[derive(Debug, Clone, Copy)]
struct Port {
    address: Address,
    place: Place,
    registered: Option<Registered>,
}

/// See the module.
#[derive(Debug, Clone)]
pub struct RdmaSwitch<S> {
    /// Sums.
    pub inner: S,
    job: u16,
    window: u32,
    address: Address,
    ports: Vec<Port>,
    /// What became of frames.
    pub counters: RdmaCounters,
    /// Says that it sums for those, whoever they are.
    pub claims: Option<WorkerSet>,
    /// Answers no registration.
    pub is_deaf: bool,
    /// A queue behind it marks all that it sends.
    pub marks: bool,
}

impl<S: RankSwitch> RdmaSwitch<S> {
    /// Of a job with this number and window; ranks by number: where they are, and where they stand among switches.
    pub fn new(inner: S, job: u16, window: u32, ranks: Vec<(Address, Place)>) -> Self {
        let low = job as u8;
        let ports = ranks.into_iter().map(|(address, place)| Port {
            address,
            place,
            registered: None,
        });
        Self {
            inner,
            job,
            window,
            address: Address {
                mac: [0x02, 0x00, 0x5E, 0x57, 0x45, low],
                ip: [239, 87, 69, low].into(),
            },
            ports: ports.collect(),
            counters: RdmaCounters::default(),
            claims: None,
            is_deaf: false,
            marks: false,
        }
    }

    /// Its own addresses.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Where SUMs of a rank go, and the PSN of the next.
    pub fn registered(&self, rank: WorkerId) -> Option<(Target, Psn)> {
        let registered = self.ports.get(usize::from(rank.0))?.registered?;
        Some((registered.target, registered.next))
    }

    /// Forgets who has registered, as a switch that restarts.
    pub fn forget(&mut self) {
        for port in &mut self.ports {
            port.registered = None;
        }
    }

    /// Takes an aggregation frame by UDP in from a port.
    pub fn handle_udp(
        &mut self,
        now_ns: u64,
        from: WorkerId,
        to: Destination,
        payload: &[u8],
        out: &mut Vec<(WorkerId, Frame)>,
    ) {
        let mut sums = Vec::new();
        self.inner.handle(now_ns, from, to, payload, &mut sums);
        let is_update =
            wire::Packet::new_checked(payload).is_ok_and(|packet| packet.kind() == Kind::Update);
        for (to, payload) in sums {
            let frame = match is_update {
                true => self.carry(to, payload),
                // What ranks say to each other stays what it is.
                false => Frame::Udp(payload),
            };
            out.push((to, frame));
        }
    }

    /// Takes a frame of RoCEv2 in from a port.
    pub fn handle_roce(
        &mut self,
        now_ns: u64,
        from: WorkerId,
        frame: &[u8],
        out: &mut Vec<(WorkerId, Frame)>,
    ) {
        if self.take_roce(now_ns, from, frame, out).is_none() {
            self.counters.dropped += 1;
        }
    }

    fn take_roce(
        &mut self,
        now_ns: u64,
        from: WorkerId,
        frame: &[u8],
        out: &mut Vec<(WorkerId, Frame)>,
    ) -> Option<()> {
        let packet = Packet::parse(frame).ok()?;
        let header = packet.header();
        let port = self.ports.get(usize::from(from.0))?;
        // Nobody speaks for another port's rank.
        let own = switch_qpn(self.job, port.place.child.0);
        let is_ours = packet.route().to == self.address && header.destination.bits() == own;
        let Opcode::Data {
            service: Service::Unreliable,
            operation,
            position: Position::Only,
            immediate,
        } = header.opcode
        else {
            return None;
        };
        if !is_ours || header.pkey != PKEY {
            return None;
        }
        if operation == Operation::Send {
            let answer = (!immediate).then(|| self.register(from, packet.payload()))??;
            out.extend((!self.is_deaf).then_some((from, answer)));
            return Some(());
        }
        let reth = header.reth?;
        let write = Write {
            qpn: own,
            rkey: reth.rkey,
            address: reth.address,
            len: reth.len,
            immediate: Immediate::from_bytes(header.immediate?),
        };
        let update = Update::parse(&write).ok()?;
        if reth.len as usize != packet.payload().len() {
            return None;
        }
        let to = match update.is_question {
            true => Destination::Worker(from),
            false => Destination::All,
        };
        let payload = udp_form(&update.header, packet.payload());
        self.counters.updates += 1;
        self.handle_udp(now_ns, from, to, &payload, out);
        Some(())
    }

    fn register(&mut self, from: WorkerId, bytes: &[u8]) -> Option<Frame> {
        let told = Registration::parse(bytes).ok()?;
        let port = self.ports.get_mut(usize::from(from.0))?;
        let is_right = told.job == self.job
            && u16::from(told.child) == port.place.child.0
            && told.window == self.window
            && told.psn != 0;
        if !is_right {
            return None;
        }
        let is_known = port
            .registered
            .is_some_and(|known| known.told == told.psn && known.target.qpn == told.target.qpn);
        if is_known {
            self.counters.registered_again += 1;
        } else {
            self.counters.registered += 1;
            port.registered = Some(Registered {
                target: told.target,
                told: told.psn,
                next: Psn::new(told.psn),
            });
        }
        let everyone = WorkerSet::first(port.place.siblings.into());
        let everyone = self.claims.unwrap_or(everyone);
        let write = told.target.registered(told.psn);
        let answer = Sum::answer_of(everyone.0, u16::from(told.child) << 6);
        self.write(from, &write, &answer)
    }

    /// A SUM for a rank: a WRITE, if it has registered.
    fn carry(&mut self, to: WorkerId, payload: Vec<u8>) -> Frame {
        let port = self.ports.get(usize::from(to.0));
        let registered = port.and_then(|port| port.registered);
        let carried = registered.and_then(|registered| {
            let packet = wire::Packet::new_checked(&payload[..]).ok()?;
            let header = Repr::parse(&packet);
            let write = registered.target.sum(&header).ok()?;
            let answer = Sum::answer(&header);
            let bytes = match header.flags.contains(Flags::PROBE) {
                true => &answer[..],
                false => packet.payload(),
            };
            self.write(to, &write, bytes)
        });
        match carried {
            Some(frame) => {
                self.counters.sums += 1;
                frame
            }
            None => {
                self.counters.by_udp += 1;
                Frame::Udp(payload)
            }
        }
    }

    /// The frame of a WRITE, with the next PSN.
    fn write(&mut self, to: WorkerId, write: &Write, bytes: &[u8]) -> Option<Frame> {
        let port = self.ports.get_mut(usize::from(to.0))?;
        let registered = port.registered.as_mut()?;
        let psn = registered.next;
        registered.next = Psn::new(psn.bits().wrapping_add(1));
        let route = Route {
            from: self.address,
            to: port.address,
            source_port: SOURCE_PORT,
            dscp: 0,
            ecn: match self.marks {
                true => Ecn::CongestionExperienced,
                false => Ecn::Capable,
            },
        };
        Some(Frame::Roce(roce_frame(&route, write, psn, bytes)))
    }
}

/// A WRITE ONLY WITH IMMEDIATE of an unreliable connection.
pub fn roce_frame(route: &Route, write: &Write, psn: Psn, bytes: &[u8]) -> Vec<u8> {
    let opcode = Opcode::Data {
        service: Service::Unreliable,
        operation: Operation::Write,
        position: Position::Only,
        immediate: true,
    };
    let mut header = Header::new(opcode, PKEY, Qpn::new(write.qpn), psn);
    header.reth = Some(Reth {
        address: write.address,
        rkey: write.rkey,
        len: write.len,
    });
    header.immediate = Some(write.immediate.bytes());
    let mut frame = vec![0; MAX_FRAME_LEN];
    let filled = emit(&mut frame, route, &header, bytes.len(), |space| {
        space.copy_from_slice(bytes);
        Ok::<(), Infallible>(())
    });
    let Ok(len) = filled;
    frame.truncate(len);
    frame
}

/// Header and values.
fn udp_form(header: &Repr, values: &[u8]) -> Vec<u8> {
    let mut payload = vec![0; HEADER_LEN];
    header.emit(&mut wire::Packet::new_unchecked(&mut payload[..]));
    payload.extend_from_slice(values);
    payload
}
