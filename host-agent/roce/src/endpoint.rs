//! A RoCEv2 endpoint without I/O: many queue pairs behind one address, with one completion queue.
//!
//! Its driver passes it frames and the time, and takes frames, completions and the time of the next timeout from it.

use std::collections::{BTreeMap, VecDeque};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::Qpn;
use crate::completion::{Completion, CompletionQueue};
use crate::congestion::DcqcnConfig;
use crate::counters::Counters;
use crate::memory::{Buffer, Memory};
use crate::packet::{self, Address, Mtu, Packet};
use crate::psn::Psn;
use crate::qp::{
    Fault, InitAttributes, Modify, ModifyError, PostError, QpConfig, QueuePair, ReceiveRequest,
    RtrAttributes, RtsAttributes, SendRequest, Shared, State,
};

/// Configuration of a RoCEv2 endpoint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EndpointConfig {
    /// Ethernet and IPv4 address of the endpoint; it ignores frames for other addresses.
    pub address: Address,
    /// Seed of the random generator that draws queue pair numbers and initial PSNs.
    pub seed: u64,
    /// Largest path MTU of the queue pairs; a frame buffer needs [`frame_len`](packet::frame_len) bytes for this MTU.
    pub max_mtu: Mtu,
    /// Maximum number of queue pairs that may exist at once.
    pub max_qps: usize,
    /// Capacity of the completion queue in completions, including those reserved for posted work requests.
    pub completions: usize,
    /// UDP source port of all queue pairs; `None`: each queue pair uses a hash of the two queue pair numbers.
    pub source_port: Option<u16>,
    /// Whether sent packets are ECN-capable, so that congested switches may mark packets instead of dropping them.
    pub ecn: bool,
    /// DCQCN parameters for the reaction to congestion notification packets (CNPs); `None`: CNPs have no effect.
    pub dcqcn: Option<DcqcnConfig>,
}

impl EndpointConfig {
    /// A configuration with limits for a host (1,024 queue pairs, 65,536 completions), and DCQCN for 100 Gb/s.
    pub fn new(address: Address, seed: u64) -> Self {
        Self {
            address,
            seed,
            max_mtu: Mtu::B4096,
            max_qps: 1024,
            completions: 65_536,
            source_port: None,
            ecn: true,
            dcqcn: Some(DcqcnConfig::new(100_000_000_000)),
        }
    }
}

/// Reason why a queue pair cannot be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CreateError {
    /// The endpoint already has its maximum number of queue pairs, which is given.
    #[error("{0} queue pairs exist, which is the maximum")]
    Full(usize),
}

/// Reason why a received frame did not reach a queue pair. Packets that a queue pair itself refuses are only counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Discarded {
    /// The frame is not a valid RoCEv2 packet.
    #[error(transparent)]
    Packet(#[from] packet::Error),
    /// The frame's destination is not the endpoint's address.
    #[error("for another address")]
    NotForUs,
    /// No queue pair has this number; it may have been destroyed.
    #[error("no queue pair {0}")]
    UnknownQp(Qpn),
    /// The queue pair is not connected.
    #[error("queue pair {0} is not connected")]
    NotConnected(Qpn),
    /// The packet's source address is not that of the queue pair's peer.
    #[error("not from the peer of queue pair {0}")]
    Stranger(Qpn),
    /// The packet belongs to another partition, whose key is given.
    #[error("partition {0:#06x} is not the queue pair's")]
    Partition(u16),
}

/// A RoCEv2 endpoint: queue pairs behind one address. Its memory regions are in a separate `Memory`.
#[derive(Debug)]
pub struct Endpoint {
    shared: Shared,
    max_qps: usize,
    numbers: ChaCha8Rng,
    qps: Vec<Option<Slot>>,
    by_number: BTreeMap<Qpn, usize>,
    /// Indices in `qps` of queue pairs that may have a packet to send, each at most once, in the order of their turns.
    ready: VecDeque<usize>,
    completions: CompletionQueue,
    /// Counters of frames that reached no queue pair, and sums of the counters of destroyed queue pairs.
    counters: Counters,
}

#[derive(Debug)]
struct Slot {
    qp: QueuePair,
    is_ready: bool,
}

impl Endpoint {
    /// Creates an endpoint without queue pairs.
    pub fn new(config: EndpointConfig) -> Self {
        Self {
            shared: Shared {
                address: config.address,
                max_mtu: config.max_mtu,
                source_port: config.source_port,
                ecn: config.ecn,
                dcqcn: config.dcqcn,
            },
            max_qps: config.max_qps,
            numbers: ChaCha8Rng::seed_from_u64(config.seed),
            qps: Vec::new(),
            by_number: BTreeMap::new(),
            ready: VecDeque::new(),
            completions: CompletionQueue::new(config.completions),
            counters: Counters::default(),
        }
    }

    /// Ethernet and IPv4 address of the endpoint.
    pub fn address(&self) -> Address {
        self.shared.address
    }

    /// Creates a queue pair in the state RESET.
    pub fn create(&mut self, config: QpConfig) -> Result<Qpn, CreateError> {
        if self.by_number.len() >= self.max_qps {
            return Err(CreateError::Full(self.max_qps));
        }
        let qpn = loop {
            let qpn = Qpn::new(self.numbers.next_u32());
            // 0 and 1 are for management, 0xFFFFFF is multicast.
            let is_reserved = matches!(qpn.bits(), 0 | 1 | 0xFF_FFFF);
            if !is_reserved && !self.by_number.contains_key(&qpn) {
                break qpn;
            }
        };
        let slot = Slot {
            qp: QueuePair::new(qpn, config),
            is_ready: false,
        };
        let free = self.qps.iter().position(Option::is_none);
        let index = free.unwrap_or(self.qps.len());
        if index == self.qps.len() {
            self.qps.push(None);
        }
        self.qps[index] = Some(slot);
        self.by_number.insert(qpn, index);
        Ok(qpn)
    }

    /// Draws an initial PSN that cannot be guessed from packets of earlier connections.
    pub fn draw_psn(&mut self) -> Psn {
        Psn::new(self.numbers.next_u32())
    }

    /// Destroys a queue pair. Its posted work requests are discarded; completions that were not polled yet remain.
    pub fn destroy(&mut self, qpn: Qpn) -> Result<(), ModifyError> {
        let index = self.by_number.remove(&qpn);
        let index = index.ok_or(ModifyError::UnknownQp(qpn))?;
        if let Some(slot) = self.qps[index].take() {
            let (sends, receives) = slot.qp.posted();
            self.completions.release(sends + receives);
            self.counters.add(slot.qp.counters());
        }
        self.ready.retain(|&ready| ready != index);
        Ok(())
    }

    /// Performs a state transition of a queue pair, such as RESET to INIT.
    pub fn modify(&mut self, qpn: Qpn, to: Modify) -> Result<(), ModifyError> {
        let index = self.index(qpn).ok_or(ModifyError::UnknownQp(qpn))?;
        if let Some(slot) = &mut self.qps[index] {
            slot.qp.modify(to, &self.shared, &mut self.completions)?;
        }
        self.wake(index);
        Ok(())
    }

    /// Sets the maximum number of unacknowledged packets of a queue pair in RTS. Packets in flight beyond it remain in flight.
    pub fn set_window(&mut self, qpn: Qpn, window: u32) -> Result<(), ModifyError> {
        let index = self.index(qpn).ok_or(ModifyError::UnknownQp(qpn))?;
        if let Some(slot) = &mut self.qps[index] {
            slot.qp.set_window(window)?;
        }
        self.wake(index);
        Ok(())
    }

    /// Brings a queue pair from RESET through INIT and RTR to RTS. A caller that needs receives before the peer's first packet
    /// uses [`modify`](Self::modify) instead, and posts them in INIT.
    pub fn connect(
        &mut self,
        qpn: Qpn,
        init: InitAttributes,
        rtr: RtrAttributes,
        rts: RtsAttributes,
    ) -> Result<(), ModifyError> {
        self.modify(qpn, Modify::Init(init))?;
        self.modify(qpn, Modify::Rtr(rtr))?;
        self.modify(qpn, Modify::Rts(rts))
    }

    /// Posts a work request to the send queue of a queue pair.
    pub fn post_send<B: Buffer>(
        &mut self,
        qpn: Qpn,
        request: SendRequest,
        memory: &Memory<B>,
    ) -> Result<(), PostError> {
        let index = self.index(qpn).ok_or(PostError::UnknownQp(qpn))?;
        if let Some(slot) = &mut self.qps[index] {
            slot.qp.post_send(request, memory, &mut self.completions)?;
        }
        self.wake(index);
        Ok(())
    }

    /// Posts a buffer for one received message to a queue pair.
    pub fn post_receive<B: Buffer>(
        &mut self,
        qpn: Qpn,
        request: ReceiveRequest,
        memory: &Memory<B>,
    ) -> Result<(), PostError> {
        let index = self.index(qpn).ok_or(PostError::UnknownQp(qpn))?;
        match &mut self.qps[index] {
            Some(slot) => slot.qp.post_receive(request, memory, &mut self.completions),
            None => Ok(()),
        }
    }

    /// Processes a frame from the network, or returns why it reached no queue pair.
    pub fn handle_frame<B: Buffer>(
        &mut self,
        now_ns: u64,
        memory: &mut Memory<B>,
        frame: &[u8],
    ) -> Result<(), Discarded> {
        let packet = Packet::parse(frame).inspect_err(|error| match error {
            packet::Error::Foreign => {}
            packet::Error::Icrc => self.counters.icrc_errors += 1,
            _ => self.counters.malformed += 1,
        })?;
        let (route, header) = (packet.route(), packet.header());
        let to = self.shared.address;
        if route.to.ip != to.ip || route.to.mac != to.mac {
            return Err(Discarded::NotForUs);
        }
        let qpn = header.destination;
        let index = self.index(qpn);
        let Some((index, slot)) = index.and_then(|i| Some((i, self.qps[i].as_mut()?))) else {
            self.counters.unknown_qp += 1;
            return Err(Discarded::UnknownQp(qpn));
        };
        let qp = &mut slot.qp;
        let Some(peer) = qp.peer() else {
            qp.counters_mut().wrong_state += 1;
            return Err(Discarded::NotConnected(qpn));
        };
        if peer.ip != route.from.ip {
            qp.counters_mut().stranger += 1;
            return Err(Discarded::Stranger(qpn));
        }
        if !partitions_meet(qp.pkey(), header.pkey) {
            qp.counters_mut().pkey_violations += 1;
            return Err(Discarded::Partition(header.pkey));
        }
        qp.handle_packet(now_ns, &packet, memory, &mut self.completions);
        self.wake(index);
        Ok(())
    }

    /// Runs the timers that are due at `now_ns`; called at the time of [`poll_timeout`](Self::poll_timeout), or at any other.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        for index in 0..self.qps.len() {
            let Some(slot) = &mut self.qps[index] else {
                continue;
            };
            if slot.qp.deadline_ns().is_some_and(|ns| ns <= now_ns) {
                slot.qp.handle_timeout(now_ns, &mut self.completions);
                self.wake(index);
            }
        }
    }

    /// Time at which the driver must call [`handle_timeout`](Self::handle_timeout), and try to send; `None` if nothing is
    /// pending. The time may have passed already: then the driver does so at once, or as soon as it has capacity for a frame.
    pub fn poll_timeout(&self) -> Option<u64> {
        let slots = self.qps.iter().flatten();
        slots.filter_map(|slot| slot.qp.deadline_ns()).min()
    }

    /// Writes the next frame that may be sent now; returns its length, or `None` if there is no frame. Queue pairs take turns.
    ///
    /// # Panics
    /// If the buffer is shorter than the longest frame of the endpoint's largest MTU ([`packet::frame_len`]).
    pub fn poll_transmit<B: Buffer>(
        &mut self,
        now_ns: u64,
        memory: &Memory<B>,
        buffer: &mut [u8],
    ) -> Option<usize> {
        let longest = packet::frame_len(self.shared.max_mtu);
        assert!(buffer.len() >= longest, "a frame may not fit");
        while let Some(index) = self.ready.pop_front() {
            let Some(slot) = &mut self.qps[index] else {
                continue;
            };
            let qp = &mut slot.qp;
            let len = qp.poll_transmit(now_ns, memory, buffer, &mut self.completions);
            slot.is_ready = len.is_some();
            if len.is_some() {
                self.ready.push_back(index);
                return len;
            }
        }
        None
    }

    /// Removes the oldest completion from the completion queue; `None` if it is empty.
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.completions.pop()
    }

    /// State of a queue pair; `None` if it does not exist.
    pub fn state(&self, qpn: Qpn) -> Option<State> {
        Some(self.qp(qpn)?.state())
    }

    /// Reason why a queue pair is in the state ERROR; `None` in other states.
    pub fn fault(&self, qpn: Qpn) -> Option<Fault> {
        self.qp(qpn)?.fault()
    }

    /// Oldest PSN that the peer has not acknowledged to a queue pair; `None` if all are acknowledged.
    pub fn unanswered(&self, qpn: Qpn) -> Option<Psn> {
        self.qp(qpn)?.unanswered()
    }

    /// Rate of a queue pair in bits per second while DCQCN limits it; `None` without a limit.
    pub fn rate_bps(&self, qpn: Qpn) -> Option<u64> {
        self.qp(qpn)?.rate_bps()
    }

    /// Counters of a queue pair; `None` if it does not exist.
    pub fn qp_counters(&self, qpn: Qpn) -> Option<&Counters> {
        Some(self.qp(qpn)?.counters())
    }

    /// Sum of the counters of all queue pairs, including destroyed ones, and of the endpoint itself.
    pub fn counters(&self) -> Counters {
        let mut sum = self.counters;
        for slot in self.qps.iter().flatten() {
            sum.add(slot.qp.counters());
        }
        sum
    }

    fn index(&self, qpn: Qpn) -> Option<usize> {
        self.by_number.get(&qpn).copied()
    }

    fn qp(&self, qpn: Qpn) -> Option<&QueuePair> {
        let slot = self.qps[self.index(qpn)?].as_ref()?;
        Some(&slot.qp)
    }

    fn wake(&mut self, index: usize) {
        if let Some(slot) = &mut self.qps[index]
            && !slot.is_ready
        {
            slot.is_ready = true;
            self.ready.push_back(index);
        }
    }
}

/// Whether two partition keys allow communication: low 15 bits equal, and at least one is of a full member (IBA 10.9.3).
fn partitions_meet(ours: u16, theirs: u16) -> bool {
    const FULL: u16 = 0x8000;
    ours & !FULL == theirs & !FULL && (ours | theirs) & FULL != 0
}
