//! A rank's RDMA queue pair to its switch: its receives are reposted at once, and it has buffers for outgoing WRITEs.

use std::collections::VecDeque;

use aggregation::Mark;
use rdma::{Connection, Provider, ProviderError, Region};
use roce::packet::{Mtu, Service};
use roce::{
    Access, Completion, Local, Psn, QpConfig, Qpn, ReceiveRequest, SendRequest, Status, Work,
    WorkKind,
};
use wire::rdma::{Immediate, VALUES_LEN};

use super::places::Places;
use crate::frames::Endpoint;

/// Maximum number of posted messages that are not sent yet.
const SENDS: usize = 256;
/// Path MTU of the queue pair: each frame is one packet.
const MTU: Mtu = Mtu::B1024;

/// A rank's RDMA queue pair to its switch, with its memory regions.
pub struct Pair<P> {
    provider: P,
    /// Addresses of the switch, and number of its queue pair for this rank (`to`).
    switch: Endpoint,
    to: Qpn,
    results: Region,
    sends: Region,
    qpn: Qpn,
    psn: Psn,
    /// Number of congestion-marked packets that were reported to the rank.
    marked: u64,
    places: Places,
    receives: usize,
    /// Completions of receives that were polled while waiting for completions of sends.
    came: VecDeque<Completion>,
}

/// Meaning of an RDMA completion for the rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    /// The switch wrote to the region: immediate, and length in bytes.
    Written(Immediate, u32),
    /// The switch sent a message of another form.
    Foreign,
    /// The completion is not a receive: a send completed, or it belongs to a destroyed queue pair.
    Nothing,
}

impl<P: Provider> Pair<P> {
    /// Creates a queue pair to the switch, not yet registered there. `region_len`: bytes of the memory region for its WRITEs.
    pub fn new(
        mut provider: P,
        switch: Endpoint,
        to: u32,
        region_len: usize,
        receives: usize,
    ) -> Result<Self, ProviderError> {
        let results = provider.register(region_len, Access::REMOTE_WRITE)?;
        let sends = provider.register(SENDS * VALUES_LEN, Access::LOCAL_READ)?;
        let mut pair = Self {
            provider,
            switch,
            to: Qpn::new(to),
            results,
            sends,
            qpn: Qpn::new(0),
            psn: Psn::new(0),
            marked: 0,
            places: Places::new(SENDS),
            receives,
            came: VecDeque::new(),
        };
        pair.connect()?;
        Ok(pair)
    }

    fn connect(&mut self) -> Result<(), ProviderError> {
        let config = QpConfig {
            service: Service::Unreliable,
            max_sends: SENDS,
            max_receives: self.receives,
        };
        self.qpn = self.provider.create(config, Access::REMOTE_WRITE)?;
        self.psn = self.draw_psn();
        self.marked = 0;
        self.places.forget();
        self.came.clear();
        for _ in 0..self.receives {
            self.post_receive()?;
        }
        let own = self.provider.draw_psn();
        let connection = Connection {
            peer_mac: Some(self.switch.mac.0),
            ..Connection::new(self.switch.ip.into(), self.to, self.psn, own, MTU)
        };
        self.provider.connect(self.qpn, &connection)
    }

    /// Draws the PSN of the switch's first packet, never 0: 0 in the switch's state means that no rank is registered.
    fn draw_psn(&mut self) -> Psn {
        loop {
            let psn = self.provider.draw_psn();
            if psn.bits() != 0 {
                return psn;
            }
        }
    }

    /// Replaces the queue pair by a new one; packets to the old one are dropped.
    pub fn renew(&mut self) -> Result<(), ProviderError> {
        self.provider.destroy(self.qpn);
        self.connect()
    }

    /// Whether the queue pair is in an error state.
    pub fn has_failed(&self) -> bool {
        self.provider.fault(self.qpn).is_some()
    }

    /// The RDMA provider of the queue pair.
    pub fn provider(&self) -> &P {
        &self.provider
    }

    /// The RDMA provider of the queue pair, for changes.
    pub fn provider_mut(&mut self) -> &mut P {
        &mut self.provider
    }

    /// The memory region to which the switch writes.
    pub fn results(&self) -> Region {
        self.results
    }

    /// Number of this rank's queue pair.
    pub fn qpn(&self) -> u32 {
        self.qpn.bits()
    }

    /// Packet sequence number of the switch's first packet.
    pub fn psn(&self) -> u32 {
        self.psn.bits()
    }

    /// Copies bytes that the switch has written, from this offset in the region.
    pub fn copy_out(&self, offset: usize, into: &mut [u8]) {
        self.provider.copy_out(&self.results, offset, into);
    }

    /// The `len` bytes that the switch has written at this offset in the region, if need be as a copy in `scratch`.
    pub fn written<'a>(&'a self, offset: usize, len: usize, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        if let Some(bytes) = self.provider.bytes(&self.results, offset, len) {
            return bytes;
        }
        scratch.resize(len, 0);
        self.copy_out(offset, scratch);
        scratch
    }

    fn post_receive(&mut self) -> Result<(), ProviderError> {
        let local = Local {
            key: self.results.lkey,
            address: self.results.address,
            // A WRITE carries its own address.
            len: 0,
        };
        let request = ReceiveRequest { wr_id: 0, local };
        self.provider.post_receive(self.qpn, request)
    }

    /// Posts a message of `len` bytes, which `write` writes, from a free buffer; returns `false` if no buffer is free or the
    /// send queue is full.
    pub fn post(
        &mut self,
        len: usize,
        write: &dyn Fn(&mut [u8]),
        work: impl FnOnce(Local) -> Work,
    ) -> Result<bool, ProviderError> {
        let mut taken = self.places.take();
        if taken.is_none() {
            self.make_room()?;
            taken = self.places.take();
        }
        let Some((number, place)) = taken else {
            return Ok(false);
        };
        let offset = place * VALUES_LEN;
        self.provider.put_with(&self.sends, offset, len, write);
        let local = Local {
            key: self.sends.lkey,
            address: self.sends.address + offset as u64,
            len: len as u32,
        };
        let request = SendRequest {
            wr_id: number,
            work: work(local),
            signaled: self.places.is_told(number),
            solicited: false,
        };
        match self.provider.post_send(self.qpn, request) {
            Ok(()) => Ok(true),
            // The queue is full, or the queue pair has failed, which the caller checks separately.
            Err(ProviderError::Post(_)) => {
                self.places.give_back();
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Sends posted messages, and polls for completions that free their buffers.
    fn make_room(&mut self) -> Result<(), ProviderError> {
        self.provider.flush()?;
        while self.came.len() < self.receives
            && let Some(completion) = self.provider.poll()?
        {
            if !self.note_sent(&completion) {
                self.came.push_back(completion);
            } else if completion.status == Status::Success {
                break;
            }
        }
        Ok(())
    }

    /// Frees buffers if the completion is that of a send; returns whether it is.
    fn note_sent(&mut self, completion: &Completion) -> bool {
        let is_send = matches!(completion.kind, WorkKind::Send | WorkKind::Write);
        if is_send && completion.qpn == self.qpn && completion.status == Status::Success {
            self.places.sent(completion.wr_id);
        }
        is_send
    }

    /// The next completion, or `None` if there is none; if it is a receive, the receive is reposted.
    pub fn take(&mut self) -> Result<Option<Came>, ProviderError> {
        let completion = match self.came.pop_front() {
            Some(completion) => Some(completion),
            None => self.provider.poll()?,
        };
        let Some(completion) = completion else {
            return Ok(None);
        };
        let is_received = !self.note_sent(&completion) && completion.qpn == self.qpn;
        if !is_received || completion.status != Status::Success {
            return Ok(Some(Came::Nothing));
        }
        match self.post_receive() {
            // The queue pair has failed meanwhile, which the caller notices next.
            Ok(()) | Err(ProviderError::Post(_)) => {}
            Err(error) => return Err(error),
        }
        let is_write = completion.kind == WorkKind::ReceiveWriteImmediate;
        let immediate = completion.immediate.filter(|_| is_write);
        Ok(Some(immediate.map_or(Came::Foreign, |bytes| {
            Came::Written(Immediate::from_bytes(bytes), completion.byte_len)
        })))
    }

    /// Congestion mark for the next answer. Completions show no marks, so one answer is marked for each marked packet counted.
    pub fn mark(&mut self) -> Mark {
        let counters = self.provider.counters(self.qpn);
        let marked = counters.map_or(0, |counters| counters.np_ecn_marked_roce_packets);
        match marked > self.marked {
            true => {
                self.marked += 1;
                Mark::Congested
            }
            false => Mark::None,
        }
    }
}
