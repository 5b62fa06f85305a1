//! Which provider it is here, and why.

use std::io;

use frames::{InterfaceFrames, Io};
use roce::packet::{Address, UDP_PORT};

use crate::interface::{Interface, InterfaceError};
use crate::neighbour;
use crate::provider::Provider;
use crate::software::{Software, SoftwareOptions};
use crate::udp::{UdpFrames, made_up_mac};

/// By which way packets come and go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Way {
    /// Rings, or pnet, or, without the capability for either, a UDP socket.
    #[default]
    Auto,
    /// RoCEv2 in user space over rings shared with the kernel.
    Rings,
    /// The same over pnet's datalink channel.
    Pnet,
    /// The same through a UDP socket: between two programs of this kind only.
    Udp,
}

impl std::str::FromStr for Way {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "rings" => Ok(Self::Rings),
            "pnet" => Ok(Self::Pnet),
            "udp" => Ok(Self::Udp),
            _ => Err(format!("`{text}` is none of auto, rings, pnet, udp")),
        }
    }
}

/// Why there is no provider.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The interface.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// Raw frames are refused.
    #[error(
        "cannot send raw frames through {interface}: {source} (CAP_NET_RAW is needed; `udp` needs none, but is for weir only)"
    )]
    Raw {
        /// Through which interface.
        interface: String,
        /// The system's reason.
        source: io::Error,
    },
    /// RoCEv2's port is somebody's.
    #[error("cannot have UDP port 4791 of {ip}: {source} (who has it? `ss -lunp`)")]
    Port {
        /// At which address.
        ip: std::net::Ipv4Addr,
        /// The system's reason.
        source: io::Error,
    },
}

/// Opens an interface, or the only one that there is. `seed`: of numbers of queue pairs, PSNs and keys.
///
/// # Errors
/// [`OpenError`].
pub fn open(interface: Option<&str>, way: Way, seed: u64) -> Result<Box<dyn Provider>, OpenError> {
    let interface = Interface::find(interface)?;
    let (io, fallback) = match way {
        Way::Udp => return Ok(Box::new(udp(&interface, "as was asked for", seed)?)),
        Way::Auto => (Io::Auto, true),
        Way::Rings => (Io::Rings, false),
        Way::Pnet => (Io::Pnet, false),
    };
    match raw(&interface, io, seed) {
        Ok(raw) => Ok(Box::new(raw)),
        Err(OpenError::Raw { source, .. }) if fallback && is_permission(&source) => {
            let because = "raw frames are not permitted: CAP_NET_RAW";
            Ok(Box::new(udp(&interface, because, seed)?))
        }
        Err(error) => Err(error),
    }
}

/// RoCEv2 in user space over raw frames of an interface: what speaks with all RoCEv2, and with switches.
///
/// # Errors
/// [`OpenError`]: there is no fallback.
pub fn raw(
    interface: &Interface,
    io: Io,
    seed: u64,
) -> Result<Software<InterfaceFrames>, OpenError> {
    let opened = InterfaceFrames::open(&interface.name, UDP_PORT, io);
    let (frames, refused) = opened.map_err(|source| OpenError::Raw {
        interface: interface.name.clone(),
        source,
    })?;
    let by = match frames.io() {
        Io::Pnet => "pnet",
        _ => "rings",
    };
    let because = refused.map_or(String::new(), |why| format!(" (no rings: {why})"));
    let name = interface.name.clone();
    let options = SoftwareOptions {
        name: format!("roce over {by} of {name}{because}"),
        address: interface.address,
        max_mtu: interface.mtu()?,
        seed,
        source_port: None,
        resolve: Box::new(move |peer| neighbour::resolve(&name, peer)),
    };
    Ok(Software::new(frames, options))
}

fn udp(interface: &Interface, because: &str, seed: u64) -> Result<Software<UdpFrames>, OpenError> {
    let ip = interface.address.ip;
    let frames = UdpFrames::open(ip).map_err(|source| OpenError::Port { ip, source })?;
    let options = SoftwareOptions {
        name: format!("roce through a UDP socket ({because}; weir to weir only)"),
        address: Address {
            mac: made_up_mac(ip),
            ip,
        },
        max_mtu: interface.mtu()?,
        seed,
        source_port: Some(UDP_PORT),
        resolve: Box::new(|peer| Ok(made_up_mac(peer))),
    };
    Ok(Software::new(frames, options))
}

fn is_permission(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}
