//! The requester (IBA 9.7.2–9.7.3, 9.7.5.2): splits messages into packets, and retransmits packets until they are acknowledged.
//!
//! ```text
//!      una             next            sent                end
//!  ─────┼───────────────┼───────────────┼───────────────────┼────▶ places
//!   done │  unanswered   │  to be sent   │  never sent yet    │
//!        │               │  again        │                    │
//! ```
//!
//! The line shows the positions of all packets; `una` is the first unacknowledged one. A retransmission sets `next` to `una`. A
//! response advances `una`, and `next` if it was behind. During a READ, `una` is the next missing response packet; an ACK of a
//! later packet then means that responses were lost ("implied NAK").

use std::collections::VecDeque;

use super::planned::{Payload, Planned, Terms};
use super::work::{SendRequest, Work, Wqe};
use crate::RtsAttributes;
use crate::completion::{Completion, CompletionQueue, Status};
use crate::counters::Counters;
use crate::memory::{Access, Buffer, Memory};
use crate::packet::{Header, NakCode, Opcode, Packet, Reth, Service, Syndrome};
use crate::psn::{ExtendedPsn, Psn};

/// Number of packets after which an ACK is requested at the latest.
const ACK_EVERY: u32 = 16;

/// Value of the attribute `rnr_retry` that means unlimited retries.
const RNR_FOR_EVER: u8 = 7;

#[derive(Debug)]
pub struct Requester {
    terms: Terms,
    attributes: RtsAttributes,
    queue: VecDeque<Wqe>,
    una: ExtendedPsn,
    next: ExtendedPsn,
    sent: ExtendedPsn,
    end: ExtendedPsn,
    /// Index in `queue` of the work request to which the packet at `next` belongs; the queue's length if there is none.
    cursor: usize,
    since_ack_request: u32,
    /// Position after the last packet that requested an ACK. If `una` has reached it, no requested ACK is outstanding.
    asked: ExtendedPsn,
    retries_left: u8,
    rnr_retries_left: u8,
    /// Time at which an outstanding ACK counts as lost; `None` if no ACK is outstanding or the timer is disabled.
    deadline_ns: Option<u64>,
    /// After an RNR NAK: time until which the requester sends nothing, so that the peer can post a receive; else `None`.
    rnr_until_ns: Option<u64>,
    /// Position of the gap in READ responses for which the requester retransmitted last, so that it does so once per gap.
    gap: Option<ExtendedPsn>,
}

/// Consequence of a received packet or a timeout for the whole queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The queue pair continues.
    Going,
    /// The work request that has the packet at this position failed with this status, and therefore the queue pair fails.
    Failed(ExtendedPsn, Status),
}

impl Requester {
    pub fn new(terms: Terms, attributes: RtsAttributes) -> Self {
        let first = ExtendedPsn::first(attributes.psn);
        Self {
            terms,
            attributes,
            queue: VecDeque::new(),
            una: first,
            next: first,
            sent: first,
            end: first,
            cursor: 0,
            since_ack_request: 0,
            asked: first,
            retries_left: attributes.retry_count,
            rnr_retries_left: attributes.rnr_retry,
            deadline_ns: None,
            rnr_until_ns: None,
            gap: None,
        }
    }

    pub fn post(&mut self, request: SendRequest) {
        let wqe = Wqe::new(request, self.end, self.terms.mtu);
        self.end = wqe.end();
        self.queue.push_back(wqe);
    }

    /// Sets the maximum number of unacknowledged packets; packets that are already in flight remain in flight.
    pub fn set_window(&mut self, window: u32) {
        self.attributes.window = window;
    }

    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Time of the next timer (ACK, or wait after an RNR NAK) if no packet arrives before; `None` if no timer runs.
    pub fn deadline_ns(&self) -> Option<u64> {
        self.rnr_until_ns.or(self.deadline_ns)
    }

    /// Oldest unacknowledged PSN, for reports about stalled connections; `None` if all packets are acknowledged.
    pub fn unanswered(&self) -> Option<Psn> {
        (self.una < self.sent).then(|| self.una.psn())
    }

    fn is_reliable(&self) -> bool {
        self.terms.service == Service::Reliable
    }

    /// The packet to be sent next; `None` if no packet may be sent now.
    pub fn plan(&self) -> Option<Planned> {
        let wqe = self.queue.get(self.cursor)?;
        let window = u64::from(self.attributes.window);
        let window_is_full = self.is_reliable() && self.next.since(self.una) >= window;
        if window_is_full || self.rnr_until_ns.is_some() {
            return None;
        }
        if wqe.is_read() && self.reads_under_way() >= usize::from(self.attributes.max_reads) {
            return None;
        }
        let opcode = wqe.opcode(self.next, self.terms.service);
        let (offset, len) = wqe.part(self.next, self.terms.mtu);
        let Terms { peer, pkey, .. } = self.terms;
        let mut header = Header::new(opcode, pkey, peer, self.next.psn());
        let request = &wqe.request;
        let local = request.work.local();
        match request.work {
            Work::Send { immediate, .. } => header.immediate = immediate,
            Work::Write {
                remote, immediate, ..
            } => {
                header.immediate = immediate;
                header.reth = Some(Reth {
                    address: remote.address,
                    rkey: remote.rkey,
                    len: local.len,
                });
            }
            Work::Read { remote, .. } => {
                header.reth = Some(Reth {
                    address: remote.address.wrapping_add(u64::from(offset)),
                    rkey: remote.rkey,
                    len: local.len - offset,
                });
            }
        }
        let after = if wqe.is_read() {
            wqe.end()
        } else {
            self.next.plus(1)
        };
        let ends = after == wqe.end();
        header.solicited = request.solicited && ends;
        header.ack_request = self.is_reliable()
            && (ends || self.since_ack_request + 1 >= ACK_EVERY || after.since(self.una) >= window);
        let payload = match request.work {
            Work::Read { .. } => None,
            _ => Some(Payload {
                key: local.key,
                address: local.address.wrapping_add(u64::from(offset)),
                len,
                access: Access::LOCAL_READ,
            }),
        };
        Some(Planned { header, payload })
    }

    fn reads_under_way(&self) -> usize {
        let before = self.queue.iter().take(self.cursor);
        before.filter(|wqe| wqe.is_read()).count()
    }

    /// Records that the packet that [`plan`](Self::plan) returned was sent.
    pub fn sent(
        &mut self,
        now_ns: u64,
        planned: &Planned,
        counters: &mut Counters,
        completions: &mut CompletionQueue,
    ) {
        let Some(wqe) = self.queue.get(self.cursor) else {
            return;
        };
        self.next = if wqe.is_read() {
            wqe.end()
        } else {
            self.next.plus(1)
        };
        if self.next >= wqe.end() {
            self.cursor += 1;
        }
        self.sent = self.sent.max(self.next);
        if !self.is_reliable() {
            self.answered(now_ns, self.next, counters, completions);
            return;
        }
        self.since_ack_request += 1;
        // A packet without an ACK request starts no timer: with pacing, the next packet that requests one may be far away. A
        // packet with a request restarts the timer; without an ACK the window fills up, so this cannot go on forever.
        if planned.header.ack_request {
            self.since_ack_request = 0;
            self.asked = self.next;
            self.start_timer(now_ns);
        }
    }

    /// Processes an ACK or NAK packet: completes acknowledged work requests, or retransmits.
    pub fn handle_ack(
        &mut self,
        now_ns: u64,
        packet: &Packet<'_>,
        counters: &mut Counters,
        completions: &mut CompletionQueue,
    ) -> Verdict {
        let place = self.una.near(packet.header().psn);
        let Some(aeth) = packet.header().aeth else {
            return Verdict::Going;
        };
        if place < self.una || place >= self.sent {
            counters.ghost_pkts += 1;
            return Verdict::Going;
        }
        match aeth.syndrome {
            Syndrome::Ack { .. } => {
                self.answered(now_ns, place.plus(1), counters, completions);
                if self.una <= place {
                    return self.read_gap(counters);
                }
            }
            Syndrome::RnrNak(timer) => {
                counters.rcvd_rnr_err += 1;
                self.answered(now_ns, place, counters, completions);
                if self.una < place {
                    return self.read_gap(counters);
                }
                if self.rnr_until_ns.is_some() || self.next == self.una {
                    return Verdict::Going;
                }
                if self.rnr_retries_left == 0 {
                    counters.retry_rnr_exceeded_err += 1;
                    return Verdict::Failed(place, Status::RnrRetryExceeded);
                }
                if self.rnr_retries_left != RNR_FOR_EVER {
                    self.rnr_retries_left -= 1;
                }
                self.go_back();
                self.rnr_until_ns = Some(now_ns.saturating_add(timer.ns()));
            }
            Syndrome::Nak(NakCode::PsnSequence) => {
                counters.rcvd_seq_err += 1;
                self.answered(now_ns, place, counters, completions);
                if self.una < place {
                    return self.read_gap(counters);
                }
                // Nothing was sent since the last retransmission: the NAK is a duplicate.
                if self.next > self.una {
                    return self.retry(counters);
                }
            }
            Syndrome::Nak(code) => {
                self.answered(now_ns, place, counters, completions);
                let status = match code {
                    NakCode::RemoteAccess => Status::RemoteAccess,
                    NakCode::RemoteOperation => Status::RemoteOperation,
                    _ => Status::RemoteInvalidRequest,
                };
                return Verdict::Failed(place, status);
            }
            Syndrome::Reserved(_) => return Verdict::Failed(place, Status::BadResponse),
        }
        Verdict::Going
    }

    /// Processes a packet of a READ response: checks it, and writes its payload to local memory.
    pub fn handle_read_response<B: Buffer>(
        &mut self,
        now_ns: u64,
        packet: &Packet<'_>,
        memory: &mut Memory<B>,
        counters: &mut Counters,
        completions: &mut CompletionQueue,
    ) -> Verdict {
        let place = self.una.near(packet.header().psn);
        if place < self.una || place >= self.sent {
            counters.ghost_pkts += 1;
            return Verdict::Going;
        }
        let Some(wqe) = self.queue.iter().find(|wqe| wqe.holds(place)).copied() else {
            return Verdict::Going;
        };
        let Work::Read { local, .. } = wqe.request.work else {
            return Verdict::Failed(place, Status::BadResponse);
        };
        self.answered(now_ns, wqe.first, counters, completions);
        if self.una != place {
            return self.read_gap(counters);
        }
        let (offset, len) = wqe.part(place, self.terms.mtu);
        let is_last = place.plus(1) == wqe.end();
        let ends =
            matches!(packet.header().opcode, Opcode::ReadResponse(position) if position.ends());
        if packet.payload().len() != len || ends != is_last {
            return Verdict::Failed(place, Status::BadResponse);
        }
        let address = local.address.wrapping_add(u64::from(offset));
        let written = memory.write(local.key, address, Access::LOCAL_WRITE, packet.payload());
        if written.is_err() {
            return Verdict::Failed(place, Status::LocalProtection);
        }
        self.moved_to(now_ns, place.plus(1), counters, completions);
        Verdict::Going
    }

    /// Retransmits a READ, since a later response, or the ACK of a later packet, shows that a response was lost.
    fn read_gap(&mut self, counters: &mut Counters) -> Verdict {
        if self.gap == Some(self.una) || self.next == self.una || self.rnr_until_ns.is_some() {
            return Verdict::Going;
        }
        self.gap = Some(self.una);
        counters.implied_nak_seq_err += 1;
        self.retry(counters)
    }

    /// Runs the timers that are due at `now_ns`.
    pub fn handle_timeout(&mut self, now_ns: u64, counters: &mut Counters) -> Verdict {
        if let Some(until_ns) = self.rnr_until_ns {
            if until_ns <= now_ns {
                self.rnr_until_ns = None;
            }
            return Verdict::Going;
        }
        if self
            .deadline_ns
            .is_none_or(|deadline_ns| deadline_ns > now_ns)
        {
            return Verdict::Going;
        }
        counters.local_ack_timeout_err += 1;
        self.gap = None;
        self.retry(counters)
    }

    fn retry(&mut self, counters: &mut Counters) -> Verdict {
        if self.retries_left == 0 {
            counters.retry_exceeded_err += 1;
            return Verdict::Failed(self.una, Status::RetryExceeded);
        }
        self.retries_left -= 1;
        counters.completer_retry_err += 1;
        self.go_back();
        Verdict::Going
    }

    fn go_back(&mut self) {
        self.next = self.una;
        self.cursor = 0;
        self.since_ack_request = 0;
        self.asked = self.una;
        self.deadline_ns = None;
    }

    /// Starts the ACK timer if an ACK is outstanding, else stops it.
    fn start_timer(&mut self, now_ns: u64) {
        let timeout_ns = self.attributes.timeout_ns();
        let timeout_ns = timeout_ns.filter(|_| self.is_reliable() && self.una < self.asked);
        self.deadline_ns = timeout_ns.map(|ns| now_ns.saturating_add(ns));
    }

    /// Processes an acknowledgement of all packets before `before`, up to the first READ, which only responses acknowledge.
    fn answered(
        &mut self,
        now_ns: u64,
        before: ExtendedPsn,
        counters: &mut Counters,
        completions: &mut CompletionQueue,
    ) {
        let first_read = self.queue.iter().take_while(|wqe| wqe.first < before);
        let first_read = first_read.filter(|wqe| wqe.is_read()).map(|wqe| wqe.first);
        // If the READ has begun, this is not after `una`.
        let to = first_read.min().map_or(before, |read| read.min(before));
        if to > self.una {
            self.moved_to(now_ns, to, counters, completions);
        }
    }

    fn moved_to(
        &mut self,
        now_ns: u64,
        una: ExtendedPsn,
        counters: &mut Counters,
        completions: &mut CompletionQueue,
    ) {
        self.una = una;
        self.retries_left = self.attributes.retry_count;
        self.rnr_retries_left = self.attributes.rnr_retry;
        self.gap = None;
        self.start_timer(now_ns);
        while let Some(wqe) = self.queue.pop_front_if(|wqe| wqe.end() <= una) {
            self.cursor = self.cursor.saturating_sub(1);
            counters.rdma_sends += u64::from(!wqe.is_read());
            if wqe.request.signaled {
                completions.push(self.completion(&wqe.request, Status::Success));
            } else {
                completions.release(1);
            }
        }
        if self.next < una {
            self.next = una;
            self.cursor = 0;
        }
    }

    /// Completes all queued work requests: the one with the packet at `failed` with its status, the others as flushed.
    pub fn flush(
        &mut self,
        failed: Option<(ExtendedPsn, Status)>,
        completions: &mut CompletionQueue,
    ) {
        while let Some(wqe) = self.queue.pop_front() {
            let status = match failed {
                Some((place, status)) if wqe.holds(place) => status,
                _ => Status::Flushed,
            };
            completions.push(self.completion(&wqe.request, status));
        }
        self.una = self.end;
        self.next = self.end;
        self.sent = self.end;
        self.cursor = 0;
        self.deadline_ns = None;
        self.rnr_until_ns = None;
    }

    /// Position of the packet that [`plan`](Self::plan) returns.
    pub fn next(&self) -> ExtendedPsn {
        self.next
    }

    fn completion(&self, request: &SendRequest, status: Status) -> Completion {
        Completion {
            wr_id: request.wr_id,
            qpn: self.terms.qpn,
            status,
            kind: request.work.kind(),
            byte_len: request.work.local().len,
            immediate: None,
        }
    }
}
