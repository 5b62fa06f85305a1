//! Description of a packet that a queue pair will send, before it is encoded as a frame.

use crate::Qpn;
use crate::memory::{Access, Key};
use crate::packet::{Header, Mtu, Service};

/// Values common to all packets of a queue pair.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    pub service: Service,
    pub qpn: Qpn,
    pub peer: Qpn,
    pub pkey: u16,
    pub mtu: Mtu,
}

/// A packet to be sent: its header, and where its payload lies in a memory region; `None` if it has no payload.
#[derive(Debug, Clone, Copy)]
pub struct Planned {
    pub header: Header,
    pub payload: Option<Payload>,
}

/// Location of a packet's payload: a range of a memory region.
#[derive(Debug, Clone, Copy)]
pub struct Payload {
    pub key: Key,
    pub address: u64,
    pub len: usize,
    pub access: Access,
}
