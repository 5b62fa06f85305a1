//! Probes: questions at a steady rate whose answers are timed: of weir's own to a service, or those that a program asks.

use std::net::{Ipv4Addr, SocketAddrV4};

use serde::Serialize;

use crate::topology::Topology;
use crate::workload::commands::Run;

/// A question that is asked again and again, whether or not the last was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Probe {
    /// Its name in metrics.
    pub name: String,
    /// The host that asks.
    pub from: String,
    /// The workload file that it stands in; none: the scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What.
    pub ask: Ask,
    /// From one question to the next.
    pub every_ns: u64,
    /// What takes longer has failed.
    pub timeout_ns: u64,
}

/// A port of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Endpoint {
    /// A host of the topology, or an IPv4 address.
    pub host: String,
    /// TCP or UDP.
    pub port: u16,
}

/// What a probe asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// A connection.
    Tcp {
        /// To whom.
        to: Endpoint,
    },
    /// Any answer to a datagram.
    Udp {
        /// From whom.
        to: Endpoint,
        /// Its payload.
        send: Vec<u8>,
    },
    /// A whole answer to a GET whose status is below 400, over a connection of its own.
    Http {
        /// From whom.
        to: Endpoint,
        /// Of the request's first line: from the slash on.
        path: String,
    },
    /// That a program of the user's ends with exit code 0.
    Run(Run),
}

/// So many programs of a probe may run at once: each is a process and three threads.
pub const MAX_PROGRAMS: u64 = 16;

impl Ask {
    /// Whom it asks; what a program asks is not known.
    #[must_use]
    pub fn to(&self) -> Option<&Endpoint> {
        match self {
            Ask::Tcp { to } | Ask::Udp { to, .. } | Ask::Http { to, .. } => Some(to),
            Ask::Run(_) => None,
        }
    }
}

impl Probe {
    /// The same on other hosts: those that the names stand for.
    #[must_use]
    pub fn with_hosts(mut self, host: &impl Fn(&str) -> String) -> Probe {
        let of = |to: Endpoint| match to.host.parse::<Ipv4Addr>() {
            Ok(_) => to,
            Err(_) => Endpoint {
                host: host(&to.host),
                ..to
            },
        };
        self.from = host(&self.from);
        self.ask = match self.ask {
            Ask::Tcp { to } => Ask::Tcp { to: of(to) },
            Ask::Udp { to, send } => Ask::Udp { to: of(to), send },
            Ask::Http { to, path } => Ask::Http { to: of(to), path },
            Ask::Run(run) => Ask::Run(run.with_hosts(host)),
        };
        self
    }
}

impl Endpoint {
    /// Where it is; `None` if the topology has no such host.
    #[must_use]
    pub fn address(&self, topology: &Topology) -> Option<SocketAddrV4> {
        let ip = match topology.host(&self.host) {
            Some(host) => host.ip,
            None => self.host.parse::<Ipv4Addr>().ok()?,
        };
        Some(SocketAddrV4::new(ip, self.port))
    }
}
