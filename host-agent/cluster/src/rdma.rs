//! A simulated switch for ranks that use RoCEv2 (`docs/protocol.md`, "By RDMA"): adds RDMA to a switch that sums UDP frames.

use std::convert::Infallible;

use aggregation::Destination;
use aggregation::job::{TreePosition, WorkerId, WorkerSet};
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

/// A frame on the link between a rank and the switch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkFrame {
    /// A RoCEv2 frame, from the Ethernet header on.
    Roce(Vec<u8>),
    /// An aggregation frame over UDP, from the aggregation header on.
    Udp(Vec<u8>),
}

/// Counters of a simulated switch for RoCEv2 ranks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RdmaCounters {
    /// UPDATEs that ranks have sent as RDMA WRITEs.
    pub updates: u64,
    /// SUMs that the switch has sent as RDMA WRITEs.
    pub sums: u64,
    /// SUMs that the switch has sent over UDP.
    pub by_udp: u64,
    /// Registrations of ranks that the switch has accepted.
    pub registered: u64,
    /// Registrations of ranks that the switch has received again.
    pub registered_again: u64,
    /// Frames that the switch has dropped: invalid, of a rank at another port, or of an unknown form.
    pub dropped: u64,
}

/// Registration of a rank's RDMA connection with the switch.
#[derive(Debug, Clone, Copy)]
struct Registered {
    target: Target,
    told: u32,
    next: Psn,
}

/// Switch port with the link of one rank.
#[derive(Debug, Clone, Copy)]
struct Port {
    address: Address,
    place: TreePosition,
    registered: Option<Registered>,
}

/// A switch for RoCEv2 ranks: translates their frames to UDP frames for the switch `inner`, and its sums back.
#[derive(Debug, Clone)]
pub struct RdmaSwitch<S> {
    /// The wrapped switch, which sums UDP frames.
    pub inner: S,
    job: u16,
    window: u32,
    address: Address,
    ports: Vec<Port>,
    /// Counters of RDMA frames and registrations.
    pub counters: RdmaCounters,
    /// Ranks that the switch names in its answers to registrations, for tests of wrong answers; `None`: the correct ranks.
    pub claims: Option<WorkerSet>,
    /// Whether the switch ignores registrations, to test missing answers.
    pub is_deaf: bool,
    /// Whether the switch's outgoing frames carry a congestion mark.
    pub marks: bool,
}

impl<S: RankSwitch> RdmaSwitch<S> {
    /// Creates a switch for a job with this number and window. `ranks` has each rank's address and position in the tree.
    pub fn new(inner: S, job: u16, window: u32, ranks: Vec<(Address, TreePosition)>) -> Self {
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

    /// Ethernet and IPv4 address to which ranks send their RoCEv2 frames for the switch.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Memory at the rank to which its SUMs are written, and PSN of the next SUM; `None` if the rank has not registered.
    pub fn registered(&self, rank: WorkerId) -> Option<(Target, Psn)> {
        let registered = self.ports.get(usize::from(rank.0))?.registered?;
        Some((registered.target, registered.next))
    }

    /// Forgets all registrations of ranks, as a restarted switch does.
    pub fn forget(&mut self) {
        for port in &mut self.ports {
            port.registered = None;
        }
    }

    /// Processes an aggregation frame that a rank sent over UDP.
    pub fn handle_udp(
        &mut self,
        now_ns: u64,
        from: WorkerId,
        to: Destination,
        payload: &[u8],
        out: &mut Vec<(WorkerId, LinkFrame)>,
    ) {
        let mut sums = Vec::new();
        self.inner.handle(now_ns, from, to, payload, &mut sums);
        let is_update =
            wire::Packet::new_checked(payload).is_ok_and(|packet| packet.kind() == Kind::Update);
        for (to, payload) in sums {
            let frame = match is_update {
                true => self.carry(to, payload),
                // Frames between ranks keep their form.
                false => LinkFrame::Udp(payload),
            };
            out.push((to, frame));
        }
    }

    /// Processes a RoCEv2 frame from a rank's port.
    pub fn handle_roce(
        &mut self,
        now_ns: u64,
        from: WorkerId,
        frame: &[u8],
        out: &mut Vec<(WorkerId, LinkFrame)>,
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
        out: &mut Vec<(WorkerId, LinkFrame)>,
    ) -> Option<()> {
        let packet = Packet::parse(frame).ok()?;
        let header = packet.header();
        let port = self.ports.get(usize::from(from.0))?;
        // A rank may only use its own port.
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

    fn register(&mut self, from: WorkerId, bytes: &[u8]) -> Option<LinkFrame> {
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

    /// Builds the frame of a SUM for a rank: an RDMA WRITE if the rank has registered, otherwise a UDP frame.
    fn carry(&mut self, to: WorkerId, payload: Vec<u8>) -> LinkFrame {
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
                LinkFrame::Udp(payload)
            }
        }
    }

    /// Builds the RDMA WRITE to a rank, with the connection's next PSN; `None` if the rank has not registered.
    fn write(&mut self, to: WorkerId, write: &Write, bytes: &[u8]) -> Option<LinkFrame> {
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
        Some(LinkFrame::Roce(roce_frame(&route, write, psn, bytes)))
    }
}

/// Builds the frame of an RDMA WRITE ONLY WITH IMMEDIATE on an unreliable connection.
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

/// Builds the bytes of an aggregation frame over UDP: header and values.
fn udp_form(header: &Repr, values: &[u8]) -> Vec<u8> {
    let mut payload = vec![0; HEADER_LEN];
    header.emit(&mut wire::Packet::new_unchecked(&mut payload[..]));
    payload.extend_from_slice(values);
    payload
}
