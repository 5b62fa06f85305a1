//! Attachment of an all-reduce rank to an interface: choice of transport and I/O backend.

use std::fmt;
use std::io;
use std::str::FromStr;

use aggregation::rank::Setup;
use rdma::interface::{Interface, InterfaceError};
use rdma::open::raw;
use rdma::software::Software;
use rdma::{OpenError, Provider};
use serde::{Deserialize, Serialize};

use super::{Carrier, CollectiveError, Config, Datagrams, Rdma};
use crate::connections::announce;
use crate::frames::{Endpoint, Frames, Io, LinkFault, Opened, open_interface};
use crate::seed::from_system;

/// Transport of frames between a rank and its switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// UDP datagrams carry the frames.
    #[default]
    Udp,
    /// RDMA WRITEs over RoCEv2 carry the frames.
    Rdma,
}

impl FromStr for Transport {
    type Err = String;
    fn from_str(text: &str) -> Result<Transport, String> {
        match text {
            "udp" => Ok(Transport::Udp),
            "rdma" => Ok(Transport::Rdma),
            _ => Err(format!("`{text}` is neither udp nor rdma")),
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Transport::Udp => "udp",
            Transport::Rdma => "rdma",
        })
    }
}

/// Reason why a rank cannot be attached to an interface.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The system does not open the interface for raw frames.
    #[error("cannot open the interface {interface}: {source}{}", hint(source))]
    Interface {
        /// Name of the interface.
        interface: String,
        /// The error that the system returned.
        source: io::Error,
    },
    /// The link carries no frames now.
    #[error(transparent)]
    Link(#[from] LinkFault),
    /// The interface is not usable for RoCEv2.
    #[error(transparent)]
    Unfit(#[from] InterfaceError),
    /// RoCEv2 cannot be opened on the interface.
    #[error(transparent)]
    Provider(OpenError),
    /// The system gives no random seed.
    #[error("cannot read /dev/urandom: {0}")]
    Seed(io::Error),
    /// The chosen transport does not support the job's settings.
    #[error(transparent)]
    Carrier(#[from] CollectiveError),
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            ": this needs root or CAP_NET_RAW, or a daemon that has it (WEIR_AGENT)"
        }
        _ => "",
    }
}

/// The I/O backend that a rank uses, and why.
#[derive(Debug)]
pub struct Way {
    /// The backend that exchanges frames.
    pub io: Io,
    /// Why a slower backend is in use than wanted; otherwise `None`.
    pub notice: Option<String>,
    /// Description of the backend and the reason, for the user, in one line.
    pub told: String,
}

/// A carrier (transport) of a rank's frames, of any kind and I/O backend.
pub type AnyCarrier = Box<dyn Carrier + Send>;

/// Attaches a rank to an interface, if the addresses of the job's ranks are known.
pub fn attach(
    interface: &str,
    io: Io,
    transport: Transport,
    config: &Config,
) -> Result<(AnyCarrier, Way), AttachError> {
    let (job, rank) = (config.setup.job.id().0, config.setup.rank.0);
    let (frames, way) = opened(interface, io)?;
    if transport == Transport::Udp {
        let carrier = Datagrams::new(frames, job, rank, config.me, config.peers.clone())
            .asking_for_bundles(&config.setup);
        return Ok((Box::new(carrier), way));
    }
    let provider = provider(interface, io)?;
    let way = by_rdma(&provider, way);
    Ok((Box::new(Rdma::new(provider, frames, config)?), way))
}

/// Attaches a rank to an interface before the addresses of the job's ranks are known.
pub fn attach_alone(
    interface: &str,
    io: Io,
    transport: Transport,
    setup: &Setup,
    me: Endpoint,
) -> Result<AnyCarrier, AttachError> {
    let (job, rank) = (setup.job.id().0, setup.rank.0);
    let (frames, _) = opened(interface, io)?;
    Ok(match transport {
        Transport::Udp => Box::new(Datagrams::alone(frames, job, rank, me)),
        Transport::Rdma => {
            let provider = provider(interface, io)?;
            Box::new(Rdma::alone(provider, frames, setup, me)?)
        }
    })
}

fn opened(interface: &str, io: Io) -> Result<(Box<dyn Frames>, Way), AttachError> {
    let opened = open_interface(interface, io).map_err(|source| AttachError::Interface {
        interface: interface.to_owned(),
        source,
    })?;
    let Opened {
        frames,
        io,
        bundles,
        notice,
    } = opened;
    if let Some(fault) = frames.fault() {
        return Err(fault.into());
    }
    let because = match &notice {
        Some(why) => format!(" ({why})"),
        None => String::new(),
    };
    let way = Way {
        io,
        told: format!("UDP over {io} of {interface}, bundles {bundles}{because}"),
        notice,
    };
    Ok((frames, way))
}

/// Opens a RoCEv2 provider with its own socket. The kernel delivers RoCEv2 frames there, and others to the rank's socket.
fn provider(interface: &str, io: Io) -> Result<Software<Box<dyn Frames>>, AttachError> {
    let found = Interface::find(Some(interface))?;
    let seed = from_system().map_err(AttachError::Seed)?;
    let opened = raw(&found, io, seed).map_err(|error| match error {
        OpenError::Interface(error) => error.into(),
        OpenError::Raw { interface, source } => AttachError::Interface { interface, source },
        // These errors belong to devices and UDP sockets, which are not used here.
        other => AttachError::Provider(other),
    });
    let mut provider = opened?;
    announce(&mut provider);
    Ok(provider)
}

fn by_rdma(provider: &impl Provider, way: Way) -> Way {
    Way {
        told: format!(
            "RDMA by {}; to other ranks {}",
            provider.describe(),
            way.told
        ),
        ..way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_are_read_and_written() {
        for text in ["udp", "rdma"] {
            assert_eq!(text.parse::<Transport>().unwrap().to_string(), text);
        }
        assert_eq!(
            "RDMA".parse::<Transport>().unwrap_err(),
            "`RDMA` is neither udp nor rdma"
        );
    }
}
