//! To the switch and back as RDMA WRITEs with immediate over an unreliable connection; to other ranks as UDP datagrams
//! (`docs/protocol.md`, "By RDMA").
//!
//! A SUM uses a receive, which is posted anew at once, and is written to its cell's place. What is lost, because nobody had
//! posted a receive or for another reason, the rank mends as any loss.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;

use aggregation::job::WorkerSet;
use aggregation::rank::Setup;
use aggregation::{Destination, Mark};
use rdma::{Connection, Provider, ProviderError, Region};
use roce::packet::{Mtu, Service};
use roce::{
    Access, Completion, Local, Psn, QpConfig, Qpn, ReceiveRequest, Remote, SendRequest, Status,
    Work, WorkKind,
};
use wire::rdma::{
    ANSWER_LEN, FIRST_PLACE, Immediate, REGISTRATION_LEN, Receiver, Registered, Registration,
    Target, Update, VALUES_LEN, switch_qpn,
};
use wire::{Flags, HEADER_LEN, Kind, Packet, Repr, VALUES_PER_PACKET};

use super::super::{CollectiveError, Config};
use super::places::Places;
use super::registering::{Due, Registering};
use super::{Carrier, Datagrams, Takes};
use crate::frames::{Endpoint, Frames, LinkFault, sum};

/// WRITEs that are posted and not sent.
const SENDS: usize = 256;
/// Receives beyond one for each cell: answers to probes come beside SUMs.
const MORE_RECEIVES: usize = 64;
/// The path MTU: a frame is one packet.
const MTU: Mtu = Mtu::B1024;

/// Why a job's frames are not carried by RDMA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotByRdma {
    /// A frame has another number of values.
    #[error("a frame has {0} values: by RDMA it has {VALUES_PER_PACKET}")]
    Values(usize),
    /// Chunks may be closed.
    #[error("the job has a deadline: those are for UDP alone")]
    Deadline,
}

/// See the module.
pub struct Rdma<P, F> {
    provider: P,
    /// To and from other ranks.
    words: Datagrams<F>,
    receiver: Receiver,
    /// Those whose values this rank's switch sums, and whether it is the only one.
    siblings: WorkerSet,
    is_flat: bool,
    /// Where the switch is.
    switch: Endpoint,
    results: Region,
    sends: Region,
    life: Life,
    places: Places,
    receives: usize,
    /// Completions that were met where none was looked for.
    came: VecDeque<Completion>,
    registering: Registering,
    /// Whether ranks do without a switch.
    has_fallback: bool,
    frame: Vec<u8>,
    foreign: u64,
    unsent: u64,
}

/// A queue pair, and what the switch is told with it.
#[derive(Debug, Clone, Copy)]
struct Life {
    qpn: Qpn,
    psn: Psn,
    /// Marked packets that the rank was told of.
    marked: u64,
}

impl<P: Provider, F: Frames> Rdma<P, F> {
    /// By a provider and, for other ranks, by frames of the same interface.
    pub fn new(provider: P, frames: F, config: &Config) -> Result<Self, CollectiveError> {
        let Setup { job, rank, .. } = config.setup;
        let words = Datagrams::new(frames, job.id().0, rank.0, config.me, config.peers.clone());
        Self::with(provider, words, &config.setup)
    }

    /// The same before a job's ranks are known.
    pub fn alone(
        provider: P,
        frames: F,
        setup: &Setup,
        me: Endpoint,
    ) -> Result<Self, CollectiveError> {
        let words = Datagrams::alone(frames, setup.job.id().0, setup.rank.0, me);
        Self::with(provider, words, setup)
    }

    fn with(mut provider: P, words: Datagrams<F>, setup: &Setup) -> Result<Self, CollectiveError> {
        let Setup { job, place, .. } = *setup;
        if job.values_per_packet() != VALUES_PER_PACKET {
            return Err(NotByRdma::Values(job.values_per_packet()).into());
        }
        if setup.lateness.is_some() {
            return Err(NotByRdma::Deadline.into());
        }
        let receiver = Receiver {
            job: job.id().0,
            window: job.window(),
            child: place.child.0,
            everyone: place.complete().0,
        };
        let results = provider.register(receiver.region_len(), Access::REMOTE_WRITE)?;
        let sends = provider.register(SENDS * VALUES_LEN, Access::LOCAL_READ)?;
        let mut carrier = Self {
            provider,
            words,
            receiver,
            siblings: WorkerSet::first(place.siblings.into()),
            is_flat: place.is_flat(&job),
            switch: sum(job.id().0),
            results,
            sends,
            life: Life {
                qpn: Qpn::new(0),
                psn: Psn::new(0),
                marked: 0,
            },
            places: Places::new(SENDS),
            receives: 2 * job.window() as usize + MORE_RECEIVES,
            came: VecDeque::new(),
            registering: Registering::new(setup.retransmission),
            has_fallback: setup.fallback.is_some(),
            frame: Vec::new(),
            foreign: 0,
            unsent: 0,
        };
        carrier.connect()?;
        Ok(carrier)
    }

    /// Who carries WRITEs.
    pub fn provider(&self) -> &P {
        &self.provider
    }

    /// Where SUMs are written.
    pub fn results(&self) -> Region {
        self.results
    }

    /// Whether the switch knows where SUMs go.
    pub fn is_registered(&self) -> bool {
        self.registering.is_registered()
    }

    /// A queue pair with its receives, connected to the switch, which knows nothing of it yet.
    fn connect(&mut self) -> Result<(), CollectiveError> {
        let config = QpConfig {
            service: Service::Unreliable,
            max_sends: SENDS,
            max_receives: self.receives,
        };
        let qpn = self.provider.create(config, Access::REMOTE_WRITE)?;
        self.life = Life {
            qpn,
            psn: self.draw_psn(),
            marked: 0,
        };
        self.places.forget();
        self.came.clear();
        for _ in 0..self.receives {
            self.post_receive()?;
        }
        let to = Qpn::new(switch_qpn(self.receiver.job, self.receiver.child));
        let (theirs, own) = (self.life.psn, self.provider.draw_psn());
        let connection = Connection {
            peer_mac: Some(self.switch.mac.0),
            ..Connection::new(self.switch.ip.into(), to, theirs, own, MTU)
        };
        Ok(self.provider.connect(qpn, &connection)?)
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
    fn begin_anew(&mut self, now_ns: u64) -> Result<(), CollectiveError> {
        self.provider.destroy(self.life.qpn);
        self.connect()?;
        self.registering.begin(now_ns);
        Ok(())
    }

    fn post_receive(&mut self) -> Result<(), ProviderError> {
        let local = Local {
            key: self.results.lkey,
            address: self.results.address,
            // A WRITE's bytes have a place of their own.
            len: 0,
        };
        let request = ReceiveRequest { wr_id: 0, local };
        self.provider.post_receive(self.life.qpn, request)
    }

    /// Sends bytes from a place of their own; whether there was one.
    fn post(
        &mut self,
        bytes: &[u8],
        work: impl FnOnce(Local) -> Work,
    ) -> Result<bool, CollectiveError> {
        let taken = match self.places.take() {
            Some(taken) => Some(taken),
            None => {
                self.make_room()?;
                self.places.take()
            }
        };
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
        match self.provider.post_send(self.life.qpn, request) {
            Ok(()) => Ok(true),
            // Its queue is full, or it has failed, which its completions tell.
            Err(ProviderError::Post(_)) => {
                self.places.give_back();
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Has what is posted sent, and looks which places are free.
    fn make_room(&mut self) -> Result<(), CollectiveError> {
        self.provider.flush()?;
        while let Some(completion) = self.provider.poll()? {
            let is_sent = self.note_sent(&completion);
            if !is_sent {
                self.came.push_back(completion);
            } else if completion.status == Status::Success {
                break;
            }
            if self.came.len() >= self.receives {
                break;
            }
        }
        Ok(())
    }

    /// Takes note of it if it is the completion of a send.
    fn note_sent(&mut self, completion: &Completion) -> bool {
        let is_send = matches!(completion.kind, WorkKind::Send | WorkKind::Write);
        if is_send && completion.qpn == self.life.qpn && completion.status == Status::Success {
            self.places.sent(completion.wr_id);
        }
        is_send
    }

    /// Tells the switch where SUMs go.
    fn register(&mut self) -> Result<(), CollectiveError> {
        let registration = Registration {
            job: self.receiver.job,
            child: self.receiver.child as u8,
            target: Target {
                qpn: self.life.qpn.bits(),
                rkey: self.results.rkey,
                base: self.results.address + FIRST_PLACE as u64,
            },
            psn: self.life.psn.bits(),
            window: self.receiver.window,
        };
        let bytes: [u8; REGISTRATION_LEN] = registration.bytes();
        // One that found no place is sent the next time.
        self.post(&bytes, |local| Work::Send {
            local,
            immediate: None,
        })?;
        Ok(())
    }

    /// An answer that was written there.
    fn answer(&self, at: usize) -> [u8; ANSWER_LEN] {
        let mut answer = [0; ANSWER_LEN];
        self.provider.copy_out(&self.results, at, &mut answer);
        answer
    }

    fn take(
        &mut self,
        completion: &Completion,
        taker: &mut dyn Takes,
    ) -> Result<(), CollectiveError> {
        let is_received = !self.note_sent(completion) && completion.qpn == self.life.qpn;
        if !is_received || completion.status != Status::Success {
            return Ok(());
        }
        self.post_receive()?;
        let written = WorkKind::ReceiveWriteImmediate;
        let immediate = completion
            .immediate
            .filter(|_| completion.kind == written)
            .map(Immediate::from_bytes);
        match immediate {
            Some(immediate) if immediate.is_registered() => {
                self.take_registered(immediate, completion.byte_len)
            }
            Some(immediate) => {
                self.registering.heard();
                self.take_sum(immediate, completion.byte_len, taker);
                Ok(())
            }
            None => {
                self.foreign += 1;
                Ok(())
            }
        }
    }

    /// The switch has answered the registration.
    fn take_registered(&mut self, immediate: Immediate, len: u32) -> Result<(), CollectiveError> {
        let answer = self.answer(0);
        let psn = self.life.psn.bits();
        let Some(Registered { everyone }) = Registered::parse(immediate, len, psn, &answer) else {
            self.foreign += 1;
            return Ok(());
        };
        // A second answer says nothing new.
        if self.registering.is_registered() {
            return Ok(());
        }
        if WorkerSet(everyone) != self.siblings {
            return Err(CollectiveError::RegisteredAmong {
                everyone: WorkerSet(everyone),
                siblings: self.siblings,
            });
        }
        self.registering.answered();
        Ok(())
    }

    fn take_sum(&mut self, immediate: Immediate, len: u32, taker: &mut dyn Takes) {
        let place = self.receiver.place(immediate);
        let is_probe = immediate.flags().contains(Flags::PROBE);
        let answer = match is_probe {
            true => self.answer(place + VALUES_LEN),
            false => [0; ANSWER_LEN],
        };
        let near = taker.near(immediate.low());
        let Ok(mut header) = self.receiver.header(immediate, len, near, &answer) else {
            self.foreign += 1;
            return;
        };
        // The answer may be that to a later question by now, when the chunk was complete.
        let is_complete = header.contributors == self.receiver.everyone;
        if is_probe && header.scale == 0 && is_complete && self.is_flat {
            header.flags |= Flags::AGAIN;
        }
        self.frame.resize(HEADER_LEN + VALUES_LEN, 0);
        let frame = &mut self.frame[..header.buffer_len()];
        header.emit(&mut Packet::new_unchecked(&mut *frame));
        let values = &mut frame[HEADER_LEN..];
        if !values.is_empty() {
            self.provider.copy_out(&self.results, place, values);
        }
        let mark = self.mark();
        taker.take(mark, &self.frame[..header.buffer_len()]);
    }

    /// A completion does not say whether its packet was marked. Of so many as were, each marks an answer.
    fn mark(&mut self) -> Mark {
        let counters = self.provider.counters(self.life.qpn);
        let marked = counters.map_or(0, |counters| counters.np_ecn_marked_roce_packets);
        match marked > self.life.marked {
            true => {
                self.life.marked += 1;
                Mark::Congested
            }
            false => Mark::None,
        }
    }
}

impl From<ProviderError> for CollectiveError {
    fn from(error: ProviderError) -> Self {
        match error {
            ProviderError::Io(error) => Self::Io(Arc::new(error)),
            error => Self::Rdma(Arc::new(error)),
        }
    }
}

/// Hands frames of other ranks on, and looks whether a switch's are among them.
struct Watches<'a> {
    taker: &'a mut dyn Takes,
    /// A switch has sent a SUM by UDP, as to one whom it does not know. Ranks say that theirs was sent before.
    is_forgotten: bool,
}

impl Takes for Watches<'_> {
    fn take(&mut self, mark: Mark, frame: &[u8]) {
        if let Ok(packet) = Packet::new_checked(frame) {
            let is_first = !packet.flags().contains(Flags::AGAIN);
            self.is_forgotten |= packet.kind() == Kind::Sum && is_first;
        }
        self.taker.take(mark, frame);
    }

    fn gone(&mut self, host: Ipv4Addr) {
        self.taker.gone(host);
    }

    fn near(&self, low: u16) -> (u32, u8) {
        self.taker.near(low)
    }
}

impl<P: Provider, F: Frames> Carrier for Rdma<P, F> {
    fn is_ready(&self) -> bool {
        self.registering.is_ready()
    }

    fn send(&mut self, now_ns: u64, to: Destination, frame: &[u8]) -> Result<(), CollectiveError> {
        let me = self.words.rank();
        let is_question = match to {
            Destination::All => false,
            Destination::Worker(to) if to.0 == me => true,
            _ => return self.words.send(now_ns, to, frame),
        };
        let Ok(packet) = Packet::new_checked(frame) else {
            return Ok(());
        };
        let update = Update {
            header: Repr::parse(&packet),
            is_question,
        };
        // Of a job without deadlines, with frames of the right length, all are.
        let Ok(write) = update.write() else {
            self.unsent += 1;
            return Ok(());
        };
        let is_posted = self.post(packet.payload(), |local| Work::Write {
            local,
            remote: Remote {
                address: write.address,
                rkey: write.rkey,
            },
            immediate: Some(write.immediate.bytes()),
        })?;
        self.registering.sent(now_ns);
        self.unsent += u64::from(!is_posted);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), CollectiveError> {
        self.provider.flush()?;
        self.words.flush()
    }

    fn receive(
        &mut self,
        now_ns: u64,
        most: usize,
        taker: &mut dyn Takes,
    ) -> Result<usize, CollectiveError> {
        let mut taken = 0;
        while taken < most {
            let completion = match self.came.pop_front() {
                Some(completion) => Some(completion),
                None => self.provider.poll()?,
            };
            let Some(completion) = completion else {
                break;
            };
            self.take(&completion, taker)?;
            taken += 1;
        }
        let mut watches = Watches {
            taker,
            is_forgotten: false,
        };
        taken += self.words.receive(now_ns, most, &mut watches)?;
        let has_failed = self.provider.fault(self.life.qpn).is_some();
        if has_failed || watches.is_forgotten && self.registering.is_forgotten(now_ns) {
            self.begin_anew(now_ns)?;
        }
        Ok(taken)
    }

    fn handle_timeout(&mut self, now_ns: u64) -> Result<(), CollectiveError> {
        match self.registering.due(now_ns) {
            Due::Nothing => Ok(()),
            Due::Ask => self.register(),
            Due::Anew => {
                self.begin_anew(now_ns)?;
                self.handle_timeout(now_ns)
            }
            Due::GiveUp { .. } if self.has_fallback => {
                self.registering.go_on();
                Ok(())
            }
            Due::GiveUp { tries, waited_ns } => Err(CollectiveError::Unregistered {
                qpn: self.life.qpn.bits(),
                switch: switch_qpn(self.receiver.job, self.receiver.child),
                tries,
                waited_ms: waited_ns / 1_000_000,
            }),
        }
    }

    fn poll_timeout(&self, now_ns: u64) -> Option<u64> {
        let due = self.provider.due();
        let due_ns = due.map(|due| now_ns.saturating_add(due.as_nanos() as u64));
        let registering_ns = self.registering.poll_timeout();
        registering_ns.into_iter().chain(due_ns).min()
    }

    fn readable(&self) -> Vec<BorrowedFd<'_>> {
        let mut readable = self.words.readable();
        readable.extend(self.provider.readable());
        readable
    }

    fn foreign(&self) -> u64 {
        self.foreign + self.words.foreign()
    }

    fn overflow(&mut self) -> Option<u64> {
        let of_words = self.words.overflow();
        let own = self.provider.overflow();
        own.into_iter().chain(of_words).reduce(|all, one| all + one)
    }

    fn unsent(&self) -> u64 {
        self.unsent + self.provider.unsent() + self.words.unsent()
    }

    fn fault(&self) -> Option<LinkFault> {
        self.words.fault()
    }

    fn descriptors(&self) -> Vec<RawFd> {
        let mut descriptors = self.words.descriptors();
        descriptors.extend(self.provider.descriptors());
        descriptors
    }
}
