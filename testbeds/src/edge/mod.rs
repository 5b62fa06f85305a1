//! Takes existing network interfaces for the length of a run, and restores them.
//!
//! ```text
//! weir between ─┬─ switch     dies with weir (PR_SET_PDEATHSIG)
//!               └─ keeper     knows how the interfaces were; waits until the pipe from weir is closed, puts them back
//! ```
//!
//! However weir ends, by itself, by Ctrl-C or by SIGKILL, the kernel closes its end of the pipe. Interfaces are therefore
//! restored in one way only, at every ending.

mod before;
mod keeper;
mod mark;
mod splice;

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use crate::net::{Lasting, NetError, Netlink};

pub use before::Before;
pub use keeper::{Keeper, TakenState, keep};
pub use mark::Mark;
pub use splice::Splice;

/// Errors of taking or restoring an interface.
#[derive(Debug, thiserror::Error)]
pub enum EdgeError {
    /// The kernel reported an error for a change to an interface.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The process lacks the capability CAP_NET_ADMIN, which changes to interfaces need.
    #[error(
        "interfaces are changed with CAP_NET_ADMIN, and opened with CAP_NET_RAW: run it as root ({0})"
    )]
    Privileges(NetError),
    /// The interface is the loopback interface, which carries only this machine's own frames.
    #[error("{interface} is the loopback interface: nothing is at its other end")]
    Loopback {
        /// Name of the interface.
        interface: String,
    },
    /// The loopback interface is down, so weir cannot reach the switch between the interfaces.
    #[error(
        "the loopback interface is down, but weir reaches the wire's switch at 127.0.0.1; run `ip link set lo up` first"
    )]
    NoLoopback,
    /// A bridge or bond takes the interface's frames.
    #[error(
        "{interface} belongs to a bridge or bond, which also takes its frames; run `ip link set {interface} nomaster` first"
    )]
    Master {
        /// Name of the interface.
        interface: String,
    },
    /// The interface has an address of this machine, which would lose its connection.
    #[error(
        "{interface} has the address {address}: this machine would answer on the wire, and lose the address to it; \
         take an interface without one, or `ip address flush dev {interface}` first"
    )]
    Address {
        /// Name of the interface.
        interface: String,
        /// One of the interface's addresses.
        address: IpAddr,
    },
    /// The interface has a setting that is lost when IPv6 or ARP is switched off, and that the kernel does not restore.
    #[error(
        "{interface} has the {what}: it goes while {interface} is taken, and nobody makes it again; \
         take an interface without one, or remove it first{}",
        hint(.interface, .what)
    )]
    Lasting {
        /// Name of the interface.
        interface: String,
        /// The first setting that would be lost.
        what: Lasting,
    },
    /// The interface cannot leave its bridge and return with the same settings.
    #[error("{interface} cannot be taken out of bridge {bridge} and be restored later: {why}")]
    Port {
        /// Name of the interface.
        interface: String,
        /// Name of the interface's bridge.
        bridge: String,
        /// The setting that would be lost, as text.
        why: String,
    },
    /// Another weir process has taken the interface.
    #[error("interface {interface} is taken by another weir")]
    Taken {
        /// Name of the interface.
        interface: String,
    },
    /// The interface could not be marked as taken.
    #[error("cannot mark {interface} as taken: {source}")]
    Mark {
        /// Name of the interface.
        interface: String,
        /// Error that the operating system reported.
        source: io::Error,
    },
    /// The interface carries longer frames than the switch takes.
    #[error(
        "{interface} has an MTU of {mtu}; the switch takes frames of up to {limit} bytes of payload"
    )]
    Mtu {
        /// Name of the interface.
        interface: String,
        /// MTU of the interface in bytes.
        mtu: u32,
        /// Largest MTU that the switch takes, in bytes.
        limit: u32,
    },
    /// The two interfaces have different MTUs, so one side would get frames that it cannot take.
    #[error(
        "{0} and {1} have different MTUs ({2} and {3}); set the same, so that both pass all frames"
    )]
    Mtus(String, String, u32, u32),
    /// The two ends of the wire through weir are the same interface.
    #[error("{0} cannot be both ends of a wire")]
    Same(String),
    /// The host's network namespace cannot be entered.
    #[error(
        "no host at {}: {source}; to enter its network namespace needs CAP_SYS_ADMIN",
        .path.display()
    )]
    NoHost {
        /// Path of the namespace.
        path: PathBuf,
        /// Error that the operating system reported.
        source: io::Error,
    },
    /// The host has no virtual Ethernet interface, or several.
    #[error(
        "the host at {} has {} virtual Ethernet interfaces{}; choose one with `link`",
        .path.display(), .links.len(), shown(.links)
    )]
    WhichLink {
        /// Path of the host's namespace.
        path: PathBuf,
        /// Names of the host's virtual Ethernet interfaces.
        links: Vec<String>,
    },
    /// Weir cannot be put between the host and its bridge.
    #[error("{link} of the host at {}: {why}", .path.display())]
    NotConnected {
        /// Path of the host's namespace.
        path: PathBuf,
        /// Name of the host's interface.
        link: String,
        /// The condition that the interface does not meet.
        why: String,
    },
    /// The process that restores the interfaces (the keeper) failed.
    #[error("the process that restores interfaces: {what}: {source}")]
    Keeper {
        /// The operation of the keeper that failed.
        what: &'static str,
        /// Error that the operating system reported.
        source: io::Error,
    },
    /// The keeper could not restore all interfaces; its report.
    #[error("not everything was restored: {0}")]
    NotBack(String),
}

/// Refuses a network namespace whose loopback interface is down: programs do not reach each other at 127.0.0.1 there.
pub fn check_loopback(netlink: &Netlink) -> Result<(), EdgeError> {
    match netlink.find("lo")?.up {
        true => Ok(()),
        false => Err(EdgeError::NoLoopback),
    }
}

impl EdgeError {
    /// The error for a change to an interface that the kernel refused.
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

/// The shell command that removes the setting, as a hint for the user.
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
