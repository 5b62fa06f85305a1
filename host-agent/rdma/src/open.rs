//! Opens an RDMA provider: a device, or RoCEv2 in user space; chooses the best one, and says why.

use std::io;

use frames::{Frames, Io, Opened, Options};
use roce::packet::{Address, UDP_PORT};

use crate::interface::{Interface, InterfaceError};
use crate::neighbour;
use crate::provider::Provider;
use crate::software::{Software, SoftwareOptions};
use crate::udp::{UdpFrames, made_up_mac};
use crate::verbs::{At, Installed, Verbs, VerbsError, Wanted};

/// How RDMA packets are sent and received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Way {
    /// An RDMA device, if there is one; else raw frames, by rings or else system calls, and in bundles once one has come. If the
    /// process may not send raw frames: a UDP socket.
    #[default]
    Auto,
    /// An RDMA device or the kernel's rxe, by libibverbs.
    Verbs,
    /// RoCEv2 in user space over rings shared with the kernel.
    Rings,
    /// Like [`Self::Rings`], and consecutive packets of a queue pair leave as bundles of frames: the peer is known to take them.
    Bundles,
    /// RoCEv2 in user space over the datalink channel of the crate pnet.
    Pnet,
    /// RoCEv2 in user space over a UDP socket, which only other weir programs understand.
    Udp,
}

impl std::str::FromStr for Way {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "verbs" => Ok(Self::Verbs),
            "rings" => Ok(Self::Rings),
            "bundles" => Ok(Self::Bundles),
            "pnet" => Ok(Self::Pnet),
            "udp" => Ok(Self::Udp),
            _ => Err(format!(
                "`{text}` is not one of auto, verbs, rings, bundles, pnet, udp"
            )),
        }
    }
}

/// Reason why no RDMA provider can be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The network interface cannot be used.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The RDMA device cannot be used.
    #[error(transparent)]
    Verbs(#[from] VerbsError),
    /// The process may not send raw frames on the interface.
    #[error(
        "cannot send raw frames through {interface}: {source} (this needs CAP_NET_RAW; `udp` does not, but its peers must be weir's)"
    )]
    Raw {
        /// Name of the interface.
        interface: String,
        /// Error of the system call.
        source: io::Error,
    },
    /// RoCEv2's UDP port cannot be bound.
    #[error("cannot bind UDP port 4791 of {ip}: {source} (`ss -lunp` shows its owner)")]
    Port {
        /// Local IP address of the port.
        ip: std::net::Ipv4Addr,
        /// Error of the system call.
        source: io::Error,
    },
}

/// Opens the provider at the network interface `name` (`None`: the only interface). For an RDMA device, `name` may also be the
/// device's name. `seed` determines queue pair numbers, PSNs and keys.
///
/// # Errors
/// [`OpenError`].
pub fn open(name: Option<&str>, way: Way, seed: u64) -> Result<Box<dyn Provider>, OpenError> {
    let (io, no_device) = match way {
        Way::Verbs => return Ok(Box::new(verbs(name, "as requested", seed)?)),
        Way::Auto => match verbs(name, "a device is available", seed) {
            Ok(verbs) => return Ok(Box::new(verbs)),
            Err(why) => (Io::Auto, Some(why)),
        },
        Way::Rings => (Io::Rings, None),
        Way::Bundles => (Io::Bundles, None),
        Way::Pnet => (Io::Pnet, None),
        Way::Udp => {
            let interface = Interface::find(name)?;
            return Ok(Box::new(udp(&interface, "as requested", seed)?));
        }
    };
    let interface = match (Interface::find(name), no_device) {
        (Ok(interface), why) => (interface, why),
        // It may be the name of an unusable device: report that device's error.
        (Err(InterfaceError::Missing(name)), Some(why)) => return Err(refusal(name, why)),
        (Err(error), _) => return Err(error.into()),
    };
    let (interface, no_device) = interface;
    let why_not = no_device.as_ref().map(|why| why.to_string());
    match raw_because(&interface, io, why_not.as_deref(), seed) {
        Ok(raw) => Ok(Box::new(raw)),
        Err(OpenError::Raw {
            source,
            interface: of,
        }) => match no_device {
            Some(no_device) if is_permission(&source) => {
                let because = format!("{no_device}; no raw frames: CAP_NET_RAW");
                Ok(Box::new(udp(&interface, &because, seed)?))
            }
            _ => Err(OpenError::Raw {
                interface: of,
                source,
            }),
        },
        Err(error) => Err(error),
    }
}

/// Error to report if `name` is no interface, and opening an RDMA device for it failed with the error `why`.
fn refusal(name: String, why: OpenError) -> OpenError {
    match why {
        OpenError::Verbs(VerbsError::Library(_) | VerbsError::NoDevice) => {
            InterfaceError::Missing(name).into()
        }
        why => why,
    }
}

/// Opens RoCEv2 in user space over raw frames of an interface, compatible with all RoCEv2 devices and with switches.
///
/// # Errors
/// [`OpenError`]: there is no fallback.
pub fn raw(
    interface: &Interface,
    io: Io,
    seed: u64,
) -> Result<Software<Box<dyn Frames>>, OpenError> {
    raw_because(interface, io, None, seed)
}

fn raw_because(
    interface: &Interface,
    io: Io,
    no_device: Option<&str>,
    seed: u64,
) -> Result<Software<Box<dyn Frames>>, OpenError> {
    let opened = frames::open(&interface.name, Options::udp(io, UDP_PORT));
    let Opened {
        frames,
        io: by,
        bundles,
        notice,
    } = opened.map_err(|source| OpenError::Raw {
        interface: interface.name.clone(),
        source,
    })?;
    let because: Vec<&str> = no_device.into_iter().chain(notice.as_deref()).collect();
    let because = match because.is_empty() {
        true => String::new(),
        false => format!(" ({})", because.join("; ")),
    };
    let name = interface.name.clone();
    let options = SoftwareOptions {
        name: format!("roce over {by} of {name}, bundles {bundles}{because}"),
        address: interface.address,
        max_mtu: interface.mtu()?,
        seed,
        source_port: None,
        resolve: Box::new(move |peer| neighbour::resolve(&name, peer)),
    };
    Ok(Software::new(frames, options))
}

/// Opens the RDMA device that has this name, or that belongs to the interface with this name. `None`: opens the only device.
fn verbs(name: Option<&str>, because: &str, seed: u64) -> Result<Verbs, OpenError> {
    let installed = Installed::open()?;
    let wanted = match name {
        None => {
            let here = Interface::addresses().into_iter();
            Wanted::Any(here.map(|(ip, index)| At { ip, index }).collect())
        }
        Some(name) if installed.has(name) => Wanted::Named(name.to_owned()),
        Some(name) => match Interface::find(Some(name)) {
            Ok(interface) => Wanted::Interface(At {
                ip: interface.address.ip,
                index: interface.index,
            }),
            Err(InterfaceError::Missing(name)) => Wanted::Named(name),
            Err(error) => return Err(error.into()),
        },
    };
    Ok(Verbs::open(&installed, &wanted, because, seed)?)
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
