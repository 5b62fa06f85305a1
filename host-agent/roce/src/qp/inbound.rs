//! Reception of SEND and WRITE messages, common to RC and UC. All checks of a packet precede its effects.

use std::collections::VecDeque;

use super::planned::Terms;
use super::work::{MAX_MESSAGE, ReceiveRequest};
use crate::completion::{Completion, CompletionQueue, Status, WorkKind};
use crate::counters::Counters;
use crate::memory::{Access, Buffer, Key, Memory};
use crate::packet::{Opcode, Operation, Packet, Position};

/// A message of which some packets have arrived, and others must follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begun {
    /// A SEND into the first posted receive; `received` is the number of bytes that have arrived.
    Send { received: u32 },
    /// An RDMA WRITE to an address in a memory region.
    Write {
        key: Key,
        address: u64,
        left: u32,
        total: u32,
    },
}

/// Reason why a queue pair refuses a received packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The packet does not follow the previous one in its message, or its length is wrong.
    InvalidRequest,
    /// The packet's length does not fit the path MTU.
    Mtu,
    /// The peer's request has a wrong key or address, or no access right.
    RemoteAccess,
    /// No receive is posted for the message.
    NotReady,
    /// The posted receive is shorter than the message.
    LocalLength,
    /// The posted receive has a wrong key or address, or its region does not allow the access.
    LocalProtection,
}

#[derive(Debug, Default)]
pub struct Inbound {
    begun: Option<Begun>,
}

/// State of the queue pair and the endpoint that the processing of a received packet needs.
pub struct Surroundings<'a, B> {
    pub terms: Terms,
    pub access: Access,
    pub receives: &'a mut VecDeque<ReceiveRequest>,
    pub memory: &'a mut Memory<B>,
    pub counters: &'a mut Counters,
    pub completions: &'a mut CompletionQueue,
}

impl Inbound {
    /// Whether a message has begun whose last packet has not arrived.
    pub fn is_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// Discards the message that has begun, without a completion.
    pub fn forget(&mut self) {
        self.begun = None;
    }

    /// Processes the next packet of a SEND or WRITE; returns whether the packet ended its message.
    pub fn take<B: Buffer>(
        &mut self,
        packet: &Packet<'_>,
        around: &mut Surroundings<'_, B>,
    ) -> Result<bool, Refused> {
        let Opcode::Data {
            operation,
            position,
            ..
        } = packet.header().opcode
        else {
            return Err(Refused::InvalidRequest);
        };
        if position.begins() == self.is_begun() {
            return Err(Refused::InvalidRequest);
        }
        let (len, mtu) = (packet.payload().len(), around.terms.mtu.bytes());
        let fits = match position {
            Position::First | Position::Middle => len == mtu,
            Position::Last => 0 < len && len <= mtu,
            Position::Only => len <= mtu,
        };
        if !fits {
            return Err(Refused::Mtu);
        }
        let len = len as u32;
        self.begun = match operation {
            Operation::Send => self.take_send(packet, position, len, around)?,
            Operation::Write => self.take_write(packet, position, len, around)?,
        };
        Ok(position.ends())
    }

    fn take_send<B: Buffer>(
        &self,
        packet: &Packet<'_>,
        position: Position,
        len: u32,
        around: &mut Surroundings<'_, B>,
    ) -> Result<Option<Begun>, Refused> {
        let received = match self.begun {
            None => 0,
            Some(Begun::Send { received }) => received,
            Some(Begun::Write { .. }) => return Err(Refused::InvalidRequest),
        };
        let local = around.receives.front().ok_or(Refused::NotReady)?.local;
        if len > local.len - received {
            return Err(Refused::LocalLength);
        }
        let address = local.address.wrapping_add(u64::from(received));
        let access = Access::LOCAL_WRITE;
        let written = around
            .memory
            .write(local.key, address, access, packet.payload());
        written.map_err(|_| Refused::LocalProtection)?;
        let received = received + len;
        if !position.ends() {
            return Ok(Some(Begun::Send { received }));
        }
        complete(around, WorkKind::Receive, received, packet);
        Ok(None)
    }

    fn take_write<B: Buffer>(
        &self,
        packet: &Packet<'_>,
        position: Position,
        len: u32,
        around: &mut Surroundings<'_, B>,
    ) -> Result<Option<Begun>, Refused> {
        let (key, address, left, total) = match (self.begun, packet.header().reth) {
            (Some(Begun::Send { .. }), _) | (None, None) => return Err(Refused::InvalidRequest),
            (
                Some(Begun::Write {
                    key,
                    address,
                    left,
                    total,
                }),
                _,
            ) => (key, address, left, total),
            (None, Some(reth)) => {
                let (key, address, len) = (Key(reth.rkey), reth.address, reth.len);
                if len > MAX_MESSAGE {
                    return Err(Refused::InvalidRequest);
                }
                let access = Access::REMOTE_WRITE;
                let range = around.memory.check(key, address, len.into(), access);
                let allowed = len == 0 || around.access.allows(access) && range.is_ok();
                if !allowed {
                    return Err(Refused::RemoteAccess);
                }
                (key, address, len, len)
            }
        };
        // The last packet, and no other, completes the announced length.
        let left = left.checked_sub(len).ok_or(Refused::InvalidRequest)?;
        if (left == 0) != position.ends() {
            return Err(Refused::InvalidRequest);
        }
        let uses_receive = packet.header().immediate.is_some();
        if uses_receive && around.receives.is_empty() {
            return Err(Refused::NotReady);
        }
        let access = Access::REMOTE_WRITE;
        let written = around.memory.write(key, address, access, packet.payload());
        written.map_err(|_| Refused::RemoteAccess)?;
        around.counters.rx_write_requests += u64::from(position.begins());
        if uses_receive {
            complete(around, WorkKind::ReceiveWriteImmediate, total, packet);
        }
        let more = Begun::Write {
            key,
            address: address.wrapping_add(u64::from(len)),
            left,
            total,
        };
        Ok((!position.ends()).then_some(more))
    }
}

/// Removes the first posted receive, and adds its completion.
fn complete<B>(
    around: &mut Surroundings<'_, B>,
    kind: WorkKind,
    byte_len: u32,
    packet: &Packet<'_>,
) {
    around.counters.rdma_recvs += 1;
    let Some(receive) = around.receives.pop_front() else {
        return;
    };
    around.completions.push(Completion {
        wr_id: receive.wr_id,
        qpn: around.terms.qpn,
        status: Status::Success,
        kind,
        byte_len,
        immediate: packet.header().immediate,
    });
}
