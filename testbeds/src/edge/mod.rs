//! Interfaces that exist, taken for a while.
//!
//! ```text
//! weir between ─┬─ switch     dies with weir (PR_SET_PDEATHSIG)
//!               └─ keeper     knows how the interfaces were; waits until the pipe from weir is closed, puts them back
//! ```
//!
//! However weir ends, by itself, by Ctrl-C or by SIGKILL, the kernel closes its end of the pipe: there is one way to put things
//! back, and every ending takes it.

mod before;
mod keeper;
mod mark;
mod splice;

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use crate::net::{Lasting, NetError, Netlink};

pub use before::Before;
pub use keeper::{Keeper, Kept, keep};
pub use mark::Mark;
pub use splice::Splice;

/// Why an interface cannot be taken, or was not put back.
#[derive(Debug, thiserror::Error)]
pub enum EdgeError {
    /// The kernel's answer.
    #[error(transparent)]
    Net(#[from] NetError),
    /// CAP_NET_ADMIN is missing.
    #[error(
        "interfaces are changed with CAP_NET_ADMIN, and opened with CAP_NET_RAW: run it as root ({0})"
    )]
    Privileges(NetError),
    /// Frames that it brings are this machine's own.
    #[error("{interface} is the loopback interface: nothing is at its other end")]
    Loopback {
        /// Which.
        interface: String,
    },
    /// The switch of the wire could not be reached.
    #[error(
        "the loopback interface is down, and weir reaches the switch of the wire at 127.0.0.1: `ip link set lo up` first"
    )]
    NoLoopback,
    /// Somebody else takes its frames.
    #[error(
        "{interface} belongs to a bridge or bond, which takes its frames, too: `ip link set {interface} nomaster` first"
    )]
    Master {
        /// Which.
        interface: String,
    },
    /// This machine would lose its own way out.
    #[error(
        "{interface} has the address {address}: this machine would answer on the wire, and lose the address to it; \
         take an interface without one, or `ip address flush dev {interface}` first"
    )]
    Address {
        /// Which.
        interface: String,
        /// One of them.
        address: IpAddr,
    },
    /// Somebody has given it what goes with IPv6 or ARP, and what the kernel does not make again.
    #[error(
        "{interface} has the {what}: it goes while {interface} is taken, and nobody makes it again; \
         take an interface without one, or remove it first{}",
        hint(.interface, .what)
    )]
    Lasting {
        /// Which.
        interface: String,
        /// One of them.
        what: Lasting,
    },
    /// It does not leave its bridge and come back as it was.
    #[error("{interface} cannot be taken out of bridge {bridge} and be put back as it is: {why}")]
    Port {
        /// The port.
        interface: String,
        /// Its bridge.
        bridge: String,
        /// What would be lost.
        why: String,
    },
    /// By another process.
    #[error("interface {interface} is taken by another weir")]
    Taken {
        /// Which.
        interface: String,
    },
    /// It could not be marked.
    #[error("cannot mark {interface} as taken: {source}")]
    Mark {
        /// Which.
        interface: String,
        /// What the system answered.
        source: io::Error,
    },
    /// Longer frames than the switch takes.
    #[error(
        "{interface} has an MTU of {mtu}; the switch takes frames of up to {limit} bytes of payload"
    )]
    Mtu {
        /// Which.
        interface: String,
        /// Its.
        mtu: u32,
        /// The switch's.
        limit: u32,
    },
    /// The other side would get frames that it cannot take.
    #[error(
        "{0} and {1} have different MTUs ({2} and {3}): a frame of the one would not pass the other"
    )]
    Mtus(String, String, u32, u32),
    /// A wire has two ends.
    #[error("{0} cannot be both ends of a wire")]
    Same(String),
    /// No namespace there.
    #[error(
        "no host at {}: {source}; it takes CAP_SYS_ADMIN to enter its network namespace",
        .path.display()
    )]
    NoHost {
        /// Where it was looked for.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// It has none, or several.
    #[error(
        "the host at {} has {} virtual Ethernet interfaces{}: say by `link` which it is",
        .path.display(), .links.len(), shown(.links)
    )]
    WhichLink {
        /// The host.
        path: PathBuf,
        /// Their names.
        links: Vec<String>,
    },
    /// Nothing can come in between.
    #[error("{link} of the host at {}: {why}", .path.display())]
    NotConnected {
        /// The host.
        path: PathBuf,
        /// Its interface.
        link: String,
        /// What it lacks.
        why: String,
    },
    /// The keeper.
    #[error("the process that puts interfaces back: {what}: {source}")]
    Keeper {
        /// What was tried.
        what: &'static str,
        /// What the system answered.
        source: io::Error,
    },
    /// It said so.
    #[error("not all is as it was: {0}")]
    NotBack(String),
}

/// Refuses a network namespace in which programs do not reach each other at 127.0.0.1.
pub fn check_loopback(netlink: &Netlink) -> Result<(), EdgeError> {
    match netlink.find("lo")?.up {
        true => Ok(()),
        false => Err(EdgeError::NoLoopback),
    }
}

impl EdgeError {
    /// Of a change that the kernel did not make.
    fn of_change(error: NetError) -> EdgeError {
        match error {
            NetError::Interface { ref source, .. }
                if source.raw_os_error() == Some(libc::EPERM) =>
            {
                EdgeError::Privileges(error)
            }
            error => EdgeError::Net(error),
        }
    }
}

/// How it is removed.
fn hint(interface: &str, what: &Lasting) -> String {
    let family = match what {
        Lasting::Route(to, _) if to.is_ipv6() => "-6 ",
        _ => "",
    };
    let (object, rest) = match what {
        Lasting::Address(address) => ("address", address.to_string()),
        Lasting::LinkLocal(address, prefix) => ("address", format!("{address}/{prefix}")),
        Lasting::Route(to, prefix) => ("route", format!("{to}/{prefix}")),
        Lasting::Neighbour(address) => ("neighbour", address.to_string()),
        Lasting::Proxy(address) => ("neighbour", format!("proxy {address}")),
    };
    format!(" (`ip {family}{object} del {rest} dev {interface}`)")
}

fn shown(links: &[String]) -> String {
    match links.is_empty() {
        true => String::new(),
        false => format!(" ({})", links.join(", ")),
    }
}
