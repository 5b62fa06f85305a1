//! Carrier that sends frames to and from the switch as RDMA WRITEs with immediate over an unreliable connection, and to other
//! ranks as UDP datagrams (`docs/protocol.md`, "By RDMA").
//!
//! Each SUM is written to the place of its register cell in the rank's memory region. It consumes one posted receive, which is
//! reposted at once. If a SUM is lost, for lack of a receive or another reason, the rank recovers as from any loss.

use std::net::Ipv4Addr;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;

use aggregation::job::WorkerSet;
use aggregation::rank::{Setup, Transmit};
use aggregation::{Destination, Mark};
use rdma::{Provider, ProviderError, Region};
use roce::{Remote, Work};
use wire::rdma::{
    ANSWER_LEN, FIRST_PLACE, Immediate, REGISTRATION_LEN, Receiver, Registered, Registration,
    Target, Update, VALUES_LEN, switch_qpn,
};
use wire::{Flags, Kind, Repr, VALUES_PER_PACKET};

use super::super::{CollectiveError, Config, NotByRdma};
use super::pair::{Came, Pair};
use super::registering::{Due, Registering};
use super::{Carrier, Datagrams, Takes};
use crate::frames::{Endpoint, Frames, LinkFault, sum};

/// Number of posted receives in addition to one per register cell's SUM: for the switch's answers to probes.
const MORE_RECEIVES: usize = 64;

/// Carrier of a rank's frames: by RDMA to and from the switch, by UDP to and from other ranks.
pub struct Rdma<P, F> {
    pair: Pair<P>,
    /// Carrier of frames to and from other ranks, by UDP.
    words: Datagrams<F>,
    receiver: Receiver,
    /// Bitmap of the children of this rank's switch, and whether this switch is the job's only one (`is_flat`).
    siblings: WorkerSet,
    is_flat: bool,
    registering: Registering,
    /// Whether the ranks sum the values themselves if no switch answers.
    has_fallback: bool,
    /// Copy of a received payload, if the provider does not lend its memory region.
    payload: Vec<u8>,
    foreign: u64,
    unsent: u64,
}

impl<P: Provider, F: Frames> Rdma<P, F> {
    /// A carrier over an RDMA provider, and over frames of the same interface for other ranks. By the latter, it asks the switch
    /// whether it takes bundles of frames; the provider sends bundles once the switch has sent some.
    pub fn new(provider: P, frames: F, config: &Config) -> Result<Self, CollectiveError> {
        let Setup { job, rank, .. } = config.setup;
        let words = Datagrams::new(frames, job.id().0, rank.0, config.me, config.peers.clone())
            .asking_for_bundles(&config.setup);
        Self::with(provider, words, &config.setup)
    }

    /// A carrier over an RDMA provider, before the job's ranks are known.
    pub fn alone(
        provider: P,
        frames: F,
        setup: &Setup,
        me: Endpoint,
    ) -> Result<Self, CollectiveError> {
        let words = Datagrams::alone(frames, setup.job.id().0, setup.rank.0, me);
        Self::with(provider, words, setup)
    }

    fn with(provider: P, words: Datagrams<F>, setup: &Setup) -> Result<Self, CollectiveError> {
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
        let receives = job.cells() + MORE_RECEIVES;
        let to = switch_qpn(receiver.job, receiver.child);
        let switch = sum(receiver.job);
        Ok(Self {
            pair: Pair::new(provider, switch, to, receiver.region_len(), receives)?,
            words,
            receiver,
            siblings: WorkerSet::first(place.siblings.into()),
            is_flat: place.is_flat(&job),
            registering: Registering::new(setup.retransmission),
            has_fallback: setup.fallback.is_some(),
            payload: Vec::new(),
            foreign: 0,
            unsent: 0,
        })
    }

    /// RDMA provider that sends the WRITEs.
    pub fn provider(&self) -> &P {
        self.pair.provider()
    }

    /// Memory region to which the switch writes SUMs.
    pub fn results(&self) -> Region {
        self.pair.results()
    }

    /// Whether the switch has answered this rank's registration.
    pub fn is_registered(&self) -> bool {
        self.registering.is_registered()
    }

    fn begin_anew(&mut self, now_ns: u64) -> Result<(), CollectiveError> {
        self.pair.renew()?;
        self.registering.begin(now_ns);
        Ok(())
    }

    /// Sends this rank's registration to the switch.
    fn register(&mut self) -> Result<(), CollectiveError> {
        let registration = Registration {
            job: self.receiver.job,
            child: self.receiver.child as u8,
            target: Target {
                qpn: self.pair.qpn(),
                rkey: self.pair.results().rkey,
                base: self.pair.results().address + FIRST_PLACE as u64,
            },
            psn: self.pair.psn(),
            window: self.receiver.window,
        };
        let bytes: [u8; REGISTRATION_LEN] = registration.bytes();
        // If no buffer is free, the next attempt sends it.
        let write = |room: &mut [u8]| room.copy_from_slice(&bytes);
        self.pair
            .post(REGISTRATION_LEN, &write, |local| Work::Send {
                local,
                immediate: None,
            })?;
        Ok(())
    }

    /// Reads the answer (to a probe or registration) at this offset of the memory region.
    fn answer(&self, at: usize) -> [u8; ANSWER_LEN] {
        let mut answer = [0; ANSWER_LEN];
        self.pair.copy_out(at, &mut answer);
        answer
    }

    /// Processes the switch's answer to this rank's registration.
    fn take_registered(&mut self, immediate: Immediate, len: u32) -> Result<(), CollectiveError> {
        let answer = self.answer(0);
        let psn = self.pair.psn();
        let Some(Registered { everyone }) = Registered::parse(immediate, len, psn, &answer) else {
            self.foreign += 1;
            return Ok(());
        };
        // A second answer has no news.
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
        // By now, the answer may be that to a later probe, sent when the chunk was complete.
        let is_complete = header.contributors == self.receiver.everyone;
        if is_probe && header.scale == 0 && is_complete && self.is_flat {
            header.flags |= Flags::AGAIN;
        }
        let mark = self.pair.mark();
        let len = header.payload_len();
        let payload = self.pair.written(place, len, &mut self.payload);
        taker.take(mark, &header, payload);
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

/// Passes frames of other ranks on, and detects frames of a switch among them.
struct Watches<'a> {
    taker: &'a mut dyn Takes,
    job: u16,
    everyone: u64,
    /// Whether a switch has sent a SUM over UDP, as to an unregistered rank. SUMs of other ranks (with `AGAIN`) do not count.
    is_forgotten: bool,
}

impl Takes for Watches<'_> {
    fn take(&mut self, mark: Mark, header: &Repr, payload: &[u8]) {
        let flags = header.flags;
        let is_first = !flags.contains(Flags::AGAIN);
        let is_ours = header.job == self.job
            && (header.contributors == self.everyone || flags.contains(Flags::PROBE));
        self.is_forgotten |= header.kind == Kind::Sum && is_first && is_ours;
        self.taker.take(mark, header, payload);
    }

    fn malformed(&mut self) {
        self.taker.malformed();
    }

    fn unreachable(&mut self, host: Ipv4Addr) {
        self.taker.unreachable(host);
    }

    fn near(&self, low: u16) -> (u32, u8) {
        self.taker.near(low)
    }
}

impl<P: Provider, F: Frames> Carrier for Rdma<P, F> {
    fn is_ready(&self) -> bool {
        self.registering.is_ready()
    }

    fn send(&mut self, now_ns: u64, frame: &Transmit<'_>) -> Result<(), CollectiveError> {
        let me = self.words.rank();
        let is_question = match frame.to {
            Destination::All => false,
            Destination::Worker(to) if to.0 == me => true,
            _ => return self.words.send(now_ns, frame),
        };
        let update = Update {
            header: frame.header,
            is_question,
        };
        // All frames of jobs without deadlines and with the right length convert.
        let Ok(write) = update.write() else {
            self.unsent += 1;
            return Ok(());
        };
        let payload = |room: &mut [u8]| frame.write_payload(room);
        let len = frame.header.payload_len();
        let is_posted = self.pair.post(len, &payload, |local| Work::Write {
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
        self.pair.provider_mut().flush()?;
        self.words.flush()
    }

    fn receive(
        &mut self,
        now_ns: u64,
        most: usize,
        taker: &mut dyn Takes,
    ) -> Result<usize, CollectiveError> {
        let mut taken = 0;
        while taken < most
            && let Some(came) = self.pair.take()?
        {
            taken += 1;
            match came {
                Came::Written(immediate, len) if immediate.is_registered() => {
                    self.take_registered(immediate, len)?;
                }
                Came::Written(immediate, len) => {
                    self.registering.note_frame();
                    self.take_sum(immediate, len, taker);
                }
                Came::Foreign => self.foreign += 1,
                Came::Nothing => {}
            }
        }
        let mut watches = Watches {
            taker,
            job: self.receiver.job,
            everyone: self.receiver.everyone,
            is_forgotten: false,
        };
        taken += self.words.receive(now_ns, most, &mut watches)?;
        let is_forgotten = watches.is_forgotten;
        if self.pair.has_failed() || is_forgotten && self.registering.is_forgotten(now_ns) {
            self.begin_anew(now_ns)?;
        }
        Ok(taken)
    }

    fn handle_timeout(&mut self, now_ns: u64) -> Result<(), CollectiveError> {
        self.words.handle_timeout(now_ns)?;
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
                qpn: self.pair.qpn(),
                switch: switch_qpn(self.receiver.job, self.receiver.child),
                tries,
                waited_ms: waited_ns / 1_000_000,
            }),
        }
    }

    fn poll_timeout(&self, now_ns: u64) -> Option<u64> {
        let due = self.pair.provider().due();
        let due_ns = due.map(|due| now_ns.saturating_add(due.as_nanos() as u64));
        let registering_ns = self.registering.poll_timeout();
        let words_ns = self.words.poll_timeout(now_ns);
        registering_ns
            .into_iter()
            .chain(due_ns)
            .chain(words_ns)
            .min()
    }

    fn readable(&self) -> Vec<BorrowedFd<'_>> {
        let mut readable = self.words.readable();
        readable.extend(self.pair.provider().readable());
        readable
    }

    fn foreign(&self) -> u64 {
        self.foreign + self.words.foreign()
    }

    fn overflow(&mut self) -> Option<u64> {
        let of_words = self.words.overflow();
        let own = self.pair.provider_mut().overflow();
        own.into_iter().chain(of_words).reduce(|all, one| all + one)
    }

    fn unsent(&self) -> u64 {
        self.unsent + self.pair.provider().unsent() + self.words.unsent()
    }

    fn fault(&self) -> Option<LinkFault> {
        self.words.fault()
    }

    fn descriptors(&self) -> Vec<RawFd> {
        let mut descriptors = self.words.descriptors();
        descriptors.extend(self.pair.provider().descriptors());
        descriptors
    }
}
