//! Probes: periodic requests whose response times are measured, sent by weir to a service or by a program of the user.

use std::net::{Ipv4Addr, SocketAddrV4};

use serde::Serialize;

use crate::model::topology::Topology;
use crate::model::workload::commands::CommandLine;

/// A request that is sent periodically, whether or not the previous one was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Probe {
    /// The probe's name in metrics.
    pub name: String,
    /// The host that sends the requests.
    pub from: String,
    /// The workload file that declares the probe; `None`: the scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The request.
    pub ask: Ask,
    /// Period of requests, in nanoseconds.
    pub every_ns: u64,
    /// Timeout in nanoseconds; a slower request has failed.
    pub timeout_ns: u64,
}

/// A port of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Endpoint {
    /// A host of the topology, or an IPv4 address.
    pub host: String,
    /// TCP or UDP port.
    pub port: u16,
}

/// A probe's request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// Opens a TCP connection.
    Tcp {
        /// The service.
        to: Endpoint,
    },
    /// Sends a datagram and waits for any answer.
    Udp {
        /// The service.
        to: Endpoint,
        /// Payload of the datagram.
        send: Vec<u8>,
    },
    /// Sends a GET on a connection of its own and waits for a complete response with a status below 400.
    Http {
        /// The service.
        to: Endpoint,
        /// Path in the request line, from the slash on.
        path: String,
    },
    /// Runs a program of the user and expects exit code 0.
    Run(CommandLine),
}

/// Maximum number of concurrent programs of a probe: each is a process and three threads.
pub const MAX_PROGRAMS: u64 = 16;

impl Ask {
    /// The service that the probe asks; `None` for a program, whose target is unknown.
    #[must_use]
    pub fn to(&self) -> Option<&Endpoint> {
        match self {
            Ask::Tcp { to } | Ask::Udp { to, .. } | Ask::Http { to, .. } => Some(to),
            Ask::Run(_) => None,
        }
    }
}

impl Probe {
    /// A copy of the probe with each host name mapped by `host`.
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
    /// The endpoint's address; `None` if the topology has no such host.
    #[must_use]
    pub fn address(&self, topology: &Topology) -> Option<SocketAddrV4> {
        let ip = match topology.host(&self.host) {
            Some(host) => host.ip,
            None => self.host.parse::<Ipv4Addr>().ok()?,
        };
        Some(SocketAddrV4::new(ip, self.port))
    }
}
