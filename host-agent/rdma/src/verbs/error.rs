//! Why a device does not do what it is asked.

use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// See the module.
#[derive(Debug, thiserror::Error)]
pub enum VerbsError {
    /// libibverbs is not there, or is something else.
    #[error("no libibverbs: {0}")]
    Library(libloading::Error),
    /// There is none.
    #[error("no RDMA device is here")]
    NoDevice,
    /// There is none of this name, nor an interface.
    #[error("neither an RDMA device nor an interface is called {0}")]
    Unknown(String),
    /// A device may not be opened.
    #[error("the RDMA device {device} may not be opened: {reason} ({})", .file.display())]
    Permission {
        /// Its name.
        device: String,
        /// What would have to be read and written.
        file: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// It has no link.
    #[error("port {port} of the RDMA device {device} is not active: is its interface up?")]
    Inactive {
        /// Its name.
        device: String,
        /// The port.
        port: u8,
    },
    /// It has no such address.
    #[error("no RDMA device has RoCEv2 with the address {0}")]
    NoAddress(Ipv4Addr),
    /// It has no IPv4 address at all.
    #[error("{0} has no RoCEv2 with an IPv4 address")]
    NoIpv4(String),
    /// None is of this namespace.
    #[error("{0}: none has RoCEv2 at an IPv4 address of an interface here")]
    NoneHere(String),
    /// Several would do.
    #[error("several RDMA devices have an IPv4 address ({0}); name one with -d")]
    Several(String),
    /// Memory cannot be held in its place.
    #[error("cannot pin {len} bytes: RLIMIT_MEMLOCK is {limit} (`ulimit -l`, or CAP_IPC_LOCK)")]
    Pin {
        /// How many.
        len: usize,
        /// How many may be.
        limit: u64,
    },
    /// More than the device has.
    #[error("{asked} {what} are asked for, and {device} has {most}")]
    Limit {
        /// Of what.
        what: &'static str,
        /// How many are asked for.
        asked: u64,
        /// How many there are.
        most: u64,
        /// Its name.
        device: String,
    },
    /// Anything else.
    #[error("{call} failed: {reason}")]
    Call {
        /// What of verbs.
        call: &'static str,
        /// The system's reason.
        reason: io::Error,
    },
}

impl VerbsError {
    /// A call that has set `errno`.
    pub(super) fn last(call: &'static str) -> Self {
        let reason = io::Error::last_os_error();
        Self::Call { call, reason }
    }

    /// A call that returns an error's number, or 0.
    pub(super) fn returned(call: &'static str, code: i32) -> Result<(), Self> {
        match code {
            0 => Ok(()),
            // Some say -1, and the number in `errno`.
            ..0 => Err(Self::last(call)),
            code => Err(Self::Call {
                call,
                reason: io::Error::from_raw_os_error(code),
            }),
        }
    }
}
