//! Parses RoCEv2 frames: [`Header`] has the transport header's fields, and [`Packet`] is a checked view of a frame's bytes.

use super::{
    AETH_LEN, Aeth, BTH_LEN, ETHERNET_LEN, Error, ICRC_LEN, IMMEDIATE_LEN, NETWORK_LEN, Opcode,
    RETH_LEN, Reth, Route, icrc, network,
};
use crate::Qpn;
use crate::psn::Psn;

/// Byte offset of each field in the base transport header (IBA 9.2).
mod field {
    use std::ops::Range;

    pub const OPCODE: usize = 0;
    pub const FLAGS: usize = 1;
    pub const PKEY: Range<usize> = 2..4;
    pub const NOTIFICATIONS: usize = 4;
    pub const DESTINATION: Range<usize> = 4..8;
    pub const ACK_REQUEST: usize = 8;
    pub const PSN: Range<usize> = 8..12;
}

const SOLICITED: u8 = 0x80;
/// Flag of the BTH that says "migrated", the state of path migration in every packet: other states are not supported.
const MIGRATED: u8 = 0x40;
const FECN: u8 = 0x80;
const BECN: u8 = 0x40;
const ACK_REQUEST: u8 = 0x80;
const LOW_24: u32 = 0xFF_FFFF;

/// All fields of a packet's transport header and its extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Opcode of the packet.
    pub opcode: Opcode,
    /// Whether the receiver's program should be woken for the packet (solicited event).
    pub solicited: bool,
    /// Partition key of the sender's queue pair.
    pub pkey: u16,
    /// Forward congestion notification of the BTH; RoCEv2 uses ECN in the IP header instead.
    pub fecn: bool,
    /// Backward congestion notification of the BTH: set in a congestion notification packet (CNP).
    pub becn: bool,
    /// Number of the receiver's queue pair.
    pub destination: Qpn,
    /// Whether the sender requests an ACK for this packet.
    pub ack_request: bool,
    /// Packet sequence number (PSN) of the packet.
    pub psn: Psn,
    /// RDMA extended transport header; `None` if the opcode has none ([`Opcode::has_reth`]).
    pub reth: Option<Reth>,
    /// ACK extended transport header; `None` if the opcode has none ([`Opcode::has_aeth`]).
    pub aeth: Option<Aeth>,
    /// Immediate data; `None` if the opcode has none ([`Opcode::has_immediate`]).
    pub immediate: Option<[u8; IMMEDIATE_LEN]>,
}

impl Header {
    /// A transport header without extensions and flags.
    pub fn new(opcode: Opcode, pkey: u16, destination: Qpn, psn: Psn) -> Self {
        Self {
            opcode,
            solicited: false,
            pkey,
            fecn: false,
            becn: false,
            destination,
            ack_request: false,
            psn,
            reth: None,
            aeth: None,
            immediate: None,
        }
    }

    /// Writes BTH and extensions to `bytes`; writes zeros for an extension that the opcode requires and this header lacks.
    pub(super) fn write(&self, bytes: &mut [u8], padding: u8) {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let (bth, mut rest) = bytes.split_at_mut(BTH_LEN);
        bth[field::OPCODE] = self.opcode.bits();
        bth[field::FLAGS] = bit(self.solicited, SOLICITED) | MIGRATED | padding << 4;
        bth[field::PKEY].copy_from_slice(&self.pkey.to_be_bytes());
        bth[field::DESTINATION].copy_from_slice(&self.destination.bits().to_be_bytes());
        bth[field::NOTIFICATIONS] = bit(self.fecn, FECN) | bit(self.becn, BECN);
        bth[field::PSN].copy_from_slice(&self.psn.bits().to_be_bytes());
        bth[field::ACK_REQUEST] = bit(self.ack_request, ACK_REQUEST);
        rest.fill(0);
        if self.opcode.has_reth() {
            let (reth, after) = rest.split_at_mut(RETH_LEN);
            if let Some(value) = &self.reth {
                value.write(reth);
            }
            rest = after;
        }
        if self.opcode.has_aeth() {
            let (aeth, after) = rest.split_at_mut(AETH_LEN);
            if let Some(value) = &self.aeth {
                value.write(aeth);
            }
            rest = after;
        }
        if let (true, Some(immediate)) = (self.opcode.has_immediate(), self.immediate) {
            rest[..IMMEDIATE_LEN].copy_from_slice(&immediate);
        }
    }
}

/// View of a frame that is a complete RoCEv2 packet with a correct ICRC.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    route: Route,
    header: Header,
    payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Parses a received frame, and checks its ICRC. Bytes after the IP packet (Ethernet padding) are ignored.
    pub fn parse(frame: &'a [u8]) -> Result<Self, Error> {
        let (packet, frame) = Self::read(frame)?;
        let icrc_at = frame.len() - ICRC_LEN;
        let (covered, stored) = (&frame[ETHERNET_LEN..icrc_at], &frame[icrc_at..]);
        if icrc(covered).to_le_bytes() != stored {
            return Err(Error::Icrc);
        }
        Ok(packet)
    }

    /// Parses a frame without checking its ICRC, for callers that have checked it or do not need it.
    pub fn parse_unchecked(frame: &'a [u8]) -> Result<Self, Error> {
        Ok(Self::read(frame)?.0)
    }

    /// Parses a frame without checking its ICRC; returns the packet, and the frame without Ethernet padding.
    fn read(frame: &'a [u8]) -> Result<(Self, &'a [u8]), Error> {
        let (route, frame) = network::parse(frame)?;
        let transport = &frame[NETWORK_LEN..];
        let (bth, _) = transport
            .split_first_chunk::<BTH_LEN>()
            .ok_or(Error::Truncated)?;
        let version = bth[field::FLAGS] & 0x0F;
        if version != 0 {
            return Err(Error::Version(version));
        }
        let opcode = bth[field::OPCODE];
        let opcode = Opcode::from_bits(opcode).ok_or(Error::Opcode(opcode))?;
        let word = |range: std::ops::Range<usize>| {
            let (words, _) = bth[range].as_chunks::<4>();
            u32::from_be_bytes(words[0]) & LOW_24
        };
        let mut header = Header {
            solicited: bth[field::FLAGS] & SOLICITED != 0,
            fecn: bth[field::NOTIFICATIONS] & FECN != 0,
            becn: bth[field::NOTIFICATIONS] & BECN != 0,
            ack_request: bth[field::ACK_REQUEST] & ACK_REQUEST != 0,
            ..Header::new(
                opcode,
                u16::from_be_bytes([bth[field::PKEY.start], bth[field::PKEY.start + 1]]),
                Qpn::new(word(field::DESTINATION)),
                Psn::new(word(field::PSN)),
            )
        };
        let mut rest = &transport[BTH_LEN..];
        if opcode.has_reth() {
            let (reth, after) = rest.split_first_chunk().ok_or(Error::Truncated)?;
            (header.reth, rest) = (Some(Reth::parse(reth)), after);
        }
        if opcode.has_aeth() {
            let (aeth, after) = rest.split_first_chunk().ok_or(Error::Truncated)?;
            (header.aeth, rest) = (Some(Aeth::parse(aeth)), after);
        }
        if opcode.has_immediate() {
            let (immediate, after) = rest.split_first_chunk().ok_or(Error::Truncated)?;
            (header.immediate, rest) = (Some(*immediate), after);
        }
        if opcode == Opcode::Cnp {
            rest = rest
                .get(super::CNP_RESERVED_LEN..)
                .ok_or(Error::Truncated)?;
        }
        let padding = usize::from(bth[field::FLAGS] >> 4 & 3);
        let payload_len = rest.len().checked_sub(ICRC_LEN).ok_or(Error::Truncated)?;
        let payload = payload_len.checked_sub(padding).ok_or(Error::Payload)?;
        if !opcode.has_payload() && payload_len != 0 {
            return Err(Error::Payload);
        }
        let payload = &rest[..payload];
        let packet = Self {
            route,
            header,
            payload,
        };
        Ok((packet, frame))
    }

    /// Addresses, UDP source port, DSCP and ECN from the Ethernet, IPv4 and UDP headers.
    pub fn route(&self) -> &Route {
        &self.route
    }

    /// Fields of the transport header (BTH and extensions).
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Payload of the packet without padding.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}
