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
    /// Name of the host that sends the requests.
    pub from: String,
    /// Name of the workload file that declares the probe; `None`: the scenario declares it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The request that the probe sends or runs.
    pub ask: Ask,
    /// Period of requests, in nanoseconds.
    pub every_ns: u64,
    /// Time in nanoseconds after which a request without an answer has failed.
    pub timeout_ns: u64,
}

/// A TCP or UDP port of a host, to which requests are sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Endpoint {
    /// Name of a host of the topology, or an IPv4 address.
    pub host: String,
    /// TCP or UDP port.
    pub port: u16,
}

/// The kind of a probe's requests, and the answer that counts as success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// The request opens a TCP connection.
    Tcp {
        /// Host and port of the service.
        to: Endpoint,
    },
    /// The request is a UDP datagram; any datagram that comes back is the answer.
    Udp {
        /// Host and port of the service.
        to: Endpoint,
        /// Payload of the datagram.
        send: Vec<u8>,
    },
    /// The request is an HTTP GET on a new connection; a complete response with a status below 400 is success.
    Http {
        /// Host and port of the service.
        to: Endpoint,
        /// Path in the request line, from the slash on.
        path: String,
    },
    /// The request is a run of the user's program; exit code 0 is success.
    Run(CommandLine),
}

/// Maximum number of programs of one probe that run at the same time: each is a process and three threads.
pub const MAX_PROGRAMS: u64 = 16;

impl Ask {
    /// Host and port of the service to which the probe sends requests; `None` for a program, whose target is unknown.
    #[must_use]
    pub fn to(&self) -> Option<&Endpoint> {
        match self {
            Ask::Tcp { to } | Ask::Udp { to, .. } | Ask::Http { to, .. } => Some(to),
            Ask::Run(_) => None,
        }
    }
}

impl Probe {
    /// The probe with each host name replaced by the result of `host`.
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
    /// IPv4 address and port of the endpoint; `None` if the topology has no such host.
    #[must_use]
    pub fn address(&self, topology: &Topology) -> Option<SocketAddrV4> {
        let ip = match topology.host(&self.host) {
            Some(host) => host.ip,
            None => self.host.parse::<Ipv4Addr>().ok()?,
        };
        Some(SocketAddrV4::new(ip, self.port))
    }
}
