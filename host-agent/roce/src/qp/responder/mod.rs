//! The responder of a reliable connection (IBA 9.7.4–9.7.5.1).
//!
//! ```text
//!                     PSN = expected: execute, expected + 1, ACK if asked for
//!                    ┌──────────┐
//!                    ▼          │
//!   PSN < expected  ┌───────────┴┐  PSN > expected: NAK once   ┌─────────────┐  PSN > expected: drop
//!   again: ACK, or  │ IN SEQUENCE│ ─────────────────────────▶ │ AFTER A GAP │ ──┐
//!   READ once more ▶│            │  no receive: RNR NAK        │             │ ◀─┘
//!                   └────────────┘ ◀─────────────────────────  └─────────────┘
//!                         │              PSN = expected
//!                         │ invalid, no access, too long: NAK
//!                         ▼
//!                       ERROR
//! ```
//!
//! Replies wait in one queue, since they must be sent in the order of the requests: a READ's responses before any later ACK.

mod unreliable;

use std::collections::VecDeque;

use super::inbound::{Inbound, Refused, Surroundings};
use super::planned::{Payload, Planned, Terms};
use super::work::{MAX_MESSAGE, packets_of};
use crate::RtrAttributes;
use crate::counters::Counters;
use crate::memory::{Access, Buffer, Key};
use crate::packet::{
    Aeth, Header, NakCode, Opcode, Packet, Position, Reth, RnrTimer, Service, Syndrome,
};
use crate::psn::ExtendedPsn;

/// Capacity of the reply queue in replies, in addition to one reply for each outstanding READ.
const REPLIES: usize = 16;

#[derive(Debug)]
pub struct Responder {
    terms: Terms,
    attributes: RtrAttributes,
    first: ExtendedPsn,
    expected: ExtendedPsn,
    msn: u32,
    inbound: Inbound,
    after_gap: bool,
    /// Position of the last READ request that was received.
    last_read: ExtendedPsn,
    replies: VecDeque<Reply>,
}

#[derive(Debug, Clone, Copy)]
enum Reply {
    Acknowledge(ExtendedPsn, Aeth),
    Read(ReadReply),
}

/// Part of the response to a READ that is still to be sent.
#[derive(Debug, Clone, Copy)]
struct ReadReply {
    next: ExtendedPsn,
    end: ExtendedPsn,
    key: Key,
    address: u64,
    left: u32,
    /// Whether the next response packet is the first one of its response.
    begins: bool,
    /// Whether the peer has requested the READ a second time; such READs do not count as outstanding.
    is_again: bool,
    msn: u32,
}

impl Responder {
    pub fn new(terms: Terms, attributes: RtrAttributes) -> Self {
        let expected = ExtendedPsn::first(attributes.psn);
        Self {
            terms,
            attributes,
            first: expected,
            expected,
            msn: 0,
            inbound: Inbound::default(),
            after_gap: false,
            last_read: expected,
            replies: VecDeque::new(),
        }
    }

    /// Processes a SEND or WRITE packet, or a READ request. An error is the reason why the queue pair must fail.
    pub fn handle_request<B: Buffer>(
        &mut self,
        packet: &Packet<'_>,
        around: &mut Surroundings<'_, B>,
    ) -> Result<(), Refused> {
        match self.terms.service {
            Service::Reliable => self.handle_reliable(packet, around),
            Service::Unreliable => {
                self.handle_unreliable(packet, around);
                Ok(())
            }
        }
    }

    fn handle_reliable<B: Buffer>(
        &mut self,
        packet: &Packet<'_>,
        around: &mut Surroundings<'_, B>,
    ) -> Result<(), Refused> {
        let place = self.expected.near(packet.header().psn);
        if place < self.first {
            around.counters.ghost_pkts += 1;
            return Ok(());
        }
        if place < self.expected {
            around.counters.duplicate_request += 1;
            match packet.header().reth {
                Some(reth) if packet.header().opcode == Opcode::ReadRequest => {
                    self.read_again(place, &reth, around);
                }
                // An ACK of a packet after a READ would tell the peer that its READ responses were lost.
                _ if place < self.last_read => {
                    self.acknowledge(place, around.counters);
                }
                _ => self.acknowledge(self.expected.before(), around.counters),
            }
            return Ok(());
        }
        if place > self.expected {
            if !self.after_gap {
                around.counters.out_of_seq_request += 1;
                self.after_gap = true;
                self.nak(NakCode::PsnSequence, around.counters);
            }
            return Ok(());
        }
        let taken = match packet.header().reth {
            Some(reth) if packet.header().opcode == Opcode::ReadRequest => self.read(&reth, around),
            _ => self.execute(packet, around),
        };
        if let Err(refused) = taken {
            return self.refuse(refused, around.counters);
        }
        self.after_gap = false;
        Ok(())
    }

    fn execute<B: Buffer>(
        &mut self,
        packet: &Packet<'_>,
        around: &mut Surroundings<'_, B>,
    ) -> Result<(), Refused> {
        let ended = self.inbound.take(packet, around)?;
        self.expected = self.expected.plus(1);
        self.msn = self.msn.wrapping_add(u32::from(ended));
        if packet.header().ack_request {
            self.acknowledge(self.expected.before(), around.counters);
        }
        Ok(())
    }

    /// Sends a NAK for a refused packet. Returns an error if the queue pair must fail: always, except if no receive was posted.
    fn refuse(&mut self, refused: Refused, counters: &mut Counters) -> Result<(), Refused> {
        let code = match refused {
            Refused::NotReady => {
                counters.send_rnr_err += 1;
                // Later packets get no reply until this one has arrived again.
                self.after_gap = true;
                self.reply(
                    Syndrome::RnrNak(RnrTimer::new(self.attributes.rnr_timer)),
                    self.expected,
                    counters,
                );
                return Ok(());
            }
            Refused::RemoteAccess => {
                counters.resp_remote_access_errors += 1;
                NakCode::RemoteAccess
            }
            Refused::LocalProtection => NakCode::RemoteOperation,
            Refused::Mtu => {
                counters.mtu_violations += 1;
                counters.resp_remote_invalid_request += 1;
                NakCode::InvalidRequest
            }
            Refused::InvalidRequest | Refused::LocalLength => {
                counters.resp_remote_invalid_request += 1;
                NakCode::InvalidRequest
            }
        };
        self.nak(code, counters);
        Err(refused)
    }

    /// Processes a READ request that arrives for the first time.
    fn read<B: Buffer>(
        &mut self,
        reth: &Reth,
        around: &mut Surroundings<'_, B>,
    ) -> Result<(), Refused> {
        let pending = |reply: &&Reply| matches!(reply, Reply::Read(read) if !read.is_again);
        let under_way = self.replies.iter().filter(pending).count();
        let too_many = under_way >= usize::from(self.attributes.max_reads);
        if self.inbound.is_begun() || reth.len > MAX_MESSAGE || too_many {
            return Err(Refused::InvalidRequest);
        }
        let key = self.readable(reth, around)?;
        if !self.has_room() {
            // Drop the request, as if it were lost.
            around.counters.reply_overflows += 1;
            return Ok(());
        }
        around.counters.rx_read_requests += 1;
        self.msn = self.msn.wrapping_add(1);
        let end = self.expected.plus(packets_of(reth.len, self.terms.mtu));
        self.replies.push_back(Reply::Read(ReadReply {
            next: self.expected,
            end,
            key,
            address: reth.address,
            left: reth.len,
            begins: true,
            is_again: false,
            msn: self.msn,
        }));
        self.last_read = self.expected;
        self.expected = end;
        Ok(())
    }

    fn readable<B: Buffer>(
        &self,
        reth: &Reth,
        around: &Surroundings<'_, B>,
    ) -> Result<Key, Refused> {
        let (key, access) = (Key(reth.rkey), Access::REMOTE_READ);
        let range = around
            .memory
            .check(key, reth.address, reth.len.into(), access);
        let allowed = reth.len == 0 || around.access.allows(access) && range.is_ok();
        if allowed {
            Ok(key)
        } else {
            Err(Refused::RemoteAccess)
        }
    }

    /// Processes a repeated READ request: sends the requested responses again, with newly read memory (IBA 9.7.5.1.4).
    fn read_again<B: Buffer>(
        &mut self,
        place: ExtendedPsn,
        reth: &Reth,
        around: &mut Surroundings<'_, B>,
    ) {
        let end = place.plus(packets_of(reth.len.min(MAX_MESSAGE), self.terms.mtu));
        let Ok(key) = self.readable(reth, around) else {
            around.counters.resp_remote_access_errors += 1;
            return;
        };
        if end > self.expected {
            around.counters.ghost_pkts += 1;
            return;
        }
        let again = ReadReply {
            next: place,
            end,
            key,
            address: reth.address,
            left: reth.len,
            begins: true,
            is_again: true,
            msn: self.msn,
        };
        let has_room = self.has_room();
        let pending = self.replies.iter_mut().find_map(|reply| match reply {
            Reply::Read(read) if read.end == end => Some(read),
            _ => None,
        });
        match pending {
            // The requested part is still to be sent.
            Some(read) if read.next <= place => {}
            Some(read) => {
                let is_again = read.is_again;
                *read = ReadReply { is_again, ..again };
            }
            None if has_room => self.replies.push_back(Reply::Read(again)),
            None => around.counters.reply_overflows += 1,
        }
    }

    fn acknowledge(&mut self, place: ExtendedPsn, counters: &mut Counters) {
        let credits = Syndrome::NO_CREDITS;
        self.reply(Syndrome::Ack { credits }, place, counters);
    }

    fn nak(&mut self, code: NakCode, counters: &mut Counters) {
        self.reply(Syndrome::Nak(code), self.expected, counters);
    }

    /// Queues an ACK or NAK. It replaces an ACK at the end of the queue, which it makes superfluous.
    fn reply(&mut self, syndrome: Syndrome, place: ExtendedPsn, counters: &mut Counters) {
        let msn = self.msn & 0xFF_FFFF;
        let reply = Reply::Acknowledge(place, Aeth { syndrome, msn });
        let is_ack = |syndrome| matches!(syndrome, Syndrome::Ack { .. });
        if let Some(Reply::Acknowledge(to, earlier)) = self.replies.back()
            && is_ack(earlier.syndrome)
        {
            counters.ack_deferred += 1;
            if place < *to && is_ack(syndrome) {
                return;
            }
            self.replies.pop_back();
        }
        if self.has_room() {
            self.replies.push_back(reply);
        } else {
            counters.reply_overflows += 1;
        }
    }

    fn has_room(&self) -> bool {
        self.replies.len() < 2 * usize::from(self.attributes.max_reads) + REPLIES
    }

    /// Whether the next reply is a READ response; it carries data, so the rate limit applies, and it alternates with requests.
    pub fn next_is_data(&self) -> bool {
        matches!(self.replies.front(), Some(Reply::Read(_)))
    }

    /// The reply (ACK, NAK or READ response packet) to be sent next; `None` if no reply is queued.
    pub fn plan(&self) -> Option<Planned> {
        let Terms {
            peer, pkey, mtu, ..
        } = self.terms;
        match *self.replies.front()? {
            Reply::Acknowledge(place, aeth) => Some(Planned {
                header: Header {
                    aeth: Some(aeth),
                    ..Header::new(Opcode::Acknowledge, pkey, peer, place.psn())
                },
                payload: None,
            }),
            Reply::Read(read) => {
                let ends = read.next.plus(1) == read.end;
                let position = match (read.begins, ends) {
                    (true, true) => Position::Only,
                    (true, false) => Position::First,
                    (false, true) => Position::Last,
                    (false, false) => Position::Middle,
                };
                let credits = Syndrome::NO_CREDITS;
                let aeth = Aeth {
                    syndrome: Syndrome::Ack { credits },
                    msn: read.msn & 0xFF_FFFF,
                };
                Some(Planned {
                    header: Header {
                        aeth: Some(aeth),
                        ..Header::new(Opcode::ReadResponse(position), pkey, peer, read.next.psn())
                    },
                    payload: Some(Payload {
                        key: read.key,
                        address: read.address,
                        len: mtu.bytes().min(read.left as usize),
                        access: Access::REMOTE_READ,
                    }),
                })
            }
        }
    }

    /// Records that the reply that [`plan`](Self::plan) returned was sent.
    pub fn sent(&mut self) {
        let mtu = self.terms.mtu.bytes() as u32;
        if let Some(Reply::Read(read)) = self.replies.front_mut() {
            let len = mtu.min(read.left);
            read.next = read.next.plus(1);
            read.address = read.address.wrapping_add(u64::from(len));
            read.left -= len;
            read.begins = false;
            if read.next < read.end {
                return;
            }
        }
        self.replies.pop_front();
    }

    /// Aborts the response to a READ whose memory region was deregistered meanwhile.
    pub fn read_failed(&mut self, counters: &mut Counters) {
        let Some(Reply::Read(read)) = self.replies.front().copied() else {
            return;
        };
        self.replies.clear();
        self.reply(Syndrome::Nak(NakCode::RemoteOperation), read.next, counters);
    }

    /// Discards all replies that were not sent yet.
    pub fn clear(&mut self) {
        self.replies.clear();
        self.inbound.forget();
    }
}
