//! A rank's queue pair at its switch: receives that are posted anew at once, and places that WRITEs are sent from.

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

/// WRITEs that are posted and not sent.
const SENDS: usize = 256;
/// The path MTU: a frame is one packet.
const MTU: Mtu = Mtu::B1024;

/// See the module.
pub struct Pair<P> {
    provider: P,
    /// Where the switch is, and the queue pair there.
    switch: Endpoint,
    to: Qpn,
    results: Region,
    sends: Region,
    qpn: Qpn,
    psn: Psn,
    /// Marked packets that the rank was told of.
    marked: u64,
    places: Places,
    receives: usize,
    /// Completions that were met where none was looked for.
    came: VecDeque<Completion>,
}

/// What a completion says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    /// A WRITE of so many bytes.
    Written(Immediate, u32),
    /// A message of another form.
    Foreign,
    /// Nothing came: something was sent, or it is of a queue pair that is gone.
    Nothing,
}

impl<P: Provider> Pair<P> {
    /// Connected to the switch, which knows nothing of it yet; with so many bytes for what it writes, and so many receives.
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

    /// What the switch begins with: 0 is what it has stored of nobody.
    fn draw_psn(&mut self) -> Psn {
        loop {
            let psn = self.provider.draw_psn();
            if psn.bits() != 0 {
                return psn;
            }
        }
    }

    /// The queue pair is given up for a new one: what comes to the old is nobody's.
    pub fn renew(&mut self) -> Result<(), ProviderError> {
        self.provider.destroy(self.qpn);
        self.connect()
    }

    /// Whether it has failed.
    pub fn has_failed(&self) -> bool {
        self.provider.fault(self.qpn).is_some()
    }

    /// Who carries it out.
    pub fn provider(&self) -> &P {
        &self.provider
    }

    /// See there.
    pub fn provider_mut(&mut self) -> &mut P {
        &mut self.provider
    }

    /// Where the switch writes.
    pub fn results(&self) -> Region {
        self.results
    }

    /// Its number.
    pub fn qpn(&self) -> u32 {
        self.qpn.bits()
    }

    /// The PSN that the switch begins with.
    pub fn psn(&self) -> u32 {
        self.psn.bits()
    }

    /// Bytes that were written there.
    pub fn copy_out(&self, offset: usize, into: &mut [u8]) {
        self.provider.copy_out(&self.results, offset, into);
    }

    fn post_receive(&mut self) -> Result<(), ProviderError> {
        let local = Local {
            key: self.results.lkey,
            address: self.results.address,
            // A WRITE's bytes have a place of their own.
            len: 0,
        };
        let request = ReceiveRequest { wr_id: 0, local };
        self.provider.post_receive(self.qpn, request)
    }

    /// Sends bytes from a place of their own; whether there was one.
    pub fn post(
        &mut self,
        bytes: &[u8],
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
        self.provider.put(&self.sends, offset, bytes);
        let local = Local {
            key: self.sends.lkey,
            address: self.sends.address + offset as u64,
            len: bytes.len() as u32,
        };
        let request = SendRequest {
            wr_id: number,
            work: work(local),
            signaled: self.places.is_told(number),
            solicited: false,
        };
        match self.provider.post_send(self.qpn, request) {
            Ok(()) => Ok(true),
            // Its queue is full, or it has failed, which is looked for.
            Err(ProviderError::Post(_)) => {
                self.places.give_back();
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Has what is posted sent, and looks which places are free.
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

    /// Takes note of it if it is the completion of a send.
    fn note_sent(&mut self, completion: &Completion) -> bool {
        let is_send = matches!(completion.kind, WorkKind::Send | WorkKind::Write);
        if is_send && completion.qpn == self.qpn && completion.status == Status::Success {
            self.places.sent(completion.wr_id);
        }
        is_send
    }

    /// What has come next, if anything has; its receive is posted anew.
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
            // The queue pair has failed meanwhile, which whoever takes sees next.
            Ok(()) | Err(ProviderError::Post(_)) => {}
            Err(error) => return Err(error),
        }
        let is_write = completion.kind == WorkKind::ReceiveWriteImmediate;
        let immediate = completion.immediate.filter(|_| is_write);
        Ok(Some(immediate.map_or(Came::Foreign, |bytes| {
            Came::Written(Immediate::from_bytes(bytes), completion.byte_len)
        })))
    }

    /// A completion does not say whether its packet was marked. Of so many as were, each marks an answer.
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
