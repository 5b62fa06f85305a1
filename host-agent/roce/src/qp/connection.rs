//! A queue pair's connection, from the state RTR on: responder, requester, rate limiter, and encoding of its packets.

use std::convert::Infallible;

use super::planned::{Payload, Planned, Terms};
use super::requester::Requester;
use super::responder::Responder;
use super::state::RtrAttributes;
use crate::Qpn;
use crate::congestion::{CnpTimer, DcqcnConfig, RateLimiter};
use crate::memory::{AccessError, Buffer, Memory};
use crate::packet::{self, Address, Ecn, Header, Mtu, Opcode, Route};
use crate::psn::Psn;

/// Settings that all queue pairs of an endpoint share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shared {
    pub address: Address,
    pub max_mtu: Mtu,
    pub source_port: Option<u16>,
    pub ecn: bool,
    pub dcqcn: Option<DcqcnConfig>,
}

/// State that a queue pair has from RTR (ready to receive) on.
#[derive(Debug)]
pub struct Connection {
    pub route: Route,
    pub terms: Terms,
    pub responder: Responder,
    /// Sends work requests; `None` until the queue pair enters RTS (ready to send).
    pub requester: Option<Requester>,
    pub cnp: CnpTimer,
    pub limiter: RateLimiter,
    /// Whether the last sent packet with data was a READ response; then a request is next, since the two kinds alternate.
    pub replied: bool,
}

impl Connection {
    pub fn new(terms: Terms, attributes: RtrAttributes, shared: &Shared) -> Self {
        let port = || source_port(terms.qpn, terms.peer);
        Self {
            route: Route {
                from: shared.address,
                to: attributes.peer,
                source_port: shared.source_port.unwrap_or_else(port),
                dscp: attributes.dscp,
                ecn: if shared.ecn {
                    Ecn::Capable
                } else {
                    Ecn::NotCapable
                },
            },
            terms,
            responder: Responder::new(terms, attributes),
            requester: None,
            cnp: CnpTimer::default(),
            limiter: RateLimiter::new(shared.dcqcn),
            replied: false,
        }
    }

    pub fn write<B: Buffer>(
        &self,
        planned: &Planned,
        memory: &Memory<B>,
        buffer: &mut [u8],
    ) -> Result<usize, AccessError> {
        let len = planned.payload.map_or(0, |payload| payload.len);
        packet::emit(
            buffer,
            &self.route,
            &planned.header,
            len,
            |space| match planned.payload {
                None => Ok(()),
                Some(Payload {
                    key,
                    address,
                    access,
                    ..
                }) => memory.read(key, address, access, space),
            },
        )
    }

    pub fn write_cnp(&self, buffer: &mut [u8]) -> usize {
        let Terms { peer, pkey, .. } = self.terms;
        let header = Header {
            becn: true,
            ..Header::new(Opcode::Cnp, pkey, peer, Psn::new(0))
        };
        // RoCE hosts send CNPs in this class, so that they do not wait behind the traffic that they report.
        const CLASS: u8 = 48;
        let route = Route {
            dscp: CLASS,
            ..self.route
        };
        let Ok(len) = packet::emit(buffer, &route, &header, 0, |_| Ok::<(), Infallible>(()));
        len
    }
}

/// UDP source port of a connection: a hash of both queue pair numbers, so that switches spread connections (annex A17.4.5.2).
fn source_port(one: Qpn, other: Qpn) -> u16 {
    let mixed = u64::from(one.bits()) * u64::from(other.bits());
    let folded = mixed ^ mixed >> 20 ^ mixed >> 40;
    0xC000 | (folded & 0x3FFF) as u16
}
