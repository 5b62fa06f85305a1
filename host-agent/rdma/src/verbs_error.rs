//! Errors of devices and libibverbs.

use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// Reason why a device refused an operation.
#[derive(Debug, thiserror::Error)]
pub enum VerbsError {
    /// libibverbs is not installed, or another library has its name.
    #[error("cannot load libibverbs: {0}")]
    Library(libloading::Error),
    /// There is no RDMA device.
    #[error("this host has no RDMA device")]
    NoDevice,
    /// There is neither a device nor an interface with this name.
    #[error("no RDMA device or interface is named {0}")]
    Unknown(String),
    /// The process lacks the permission to open a device.
    #[error("cannot open the RDMA device {device}: {reason} ({})", .file.display())]
    Permission {
        /// Name of the device.
        device: String,
        /// File that must be readable and writable.
        file: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// The port has no link.
    #[error(
        "port {port} of the RDMA device {device} is not active: check that its interface is up"
    )]
    Inactive {
        /// Name of the device.
        device: String,
        /// The port.
        port: u8,
    },
    /// No device has this address.
    #[error("no RDMA device has a RoCEv2 GID of the address {0}")]
    NoAddress(Ipv4Addr),
    /// The device has no IPv4 address.
    #[error("{0} has no RoCEv2 GID of an IPv4 address")]
    NoIpv4(String),
    /// No device belongs to this network namespace.
    #[error("{0}: none has a RoCEv2 GID of an IPv4 address of this network namespace")]
    NoneHere(String),
    /// Several devices are possible.
    #[error("several RDMA devices have an IPv4 address ({0}); name one with -d")]
    Several(String),
    /// Memory cannot be pinned.
    #[error("cannot pin {len} bytes: RLIMIT_MEMLOCK is {limit} (`ulimit -l`, or CAP_IPC_LOCK)")]
    Pin {
        /// Requested length in bytes.
        len: usize,
        /// RLIMIT_MEMLOCK in bytes.
        limit: u64,
    },
    /// The request exceeds a limit of the device.
    #[error("{asked} {what} requested: {device} supports {most}")]
    Limit {
        /// Kind of the resource.
        what: &'static str,
        /// Requested number.
        asked: u64,
        /// Limit of the device.
        most: u64,
        /// Name of the device.
        device: String,
    },
    /// Another call failed.
    #[error("{call} failed: {reason}")]
    Call {
        /// Name of the call.
        call: &'static str,
        /// The system's reason.
        reason: io::Error,
    },
}

impl VerbsError {
    /// Error of a call that has set `errno`.
    pub(crate) fn last(call: &'static str) -> Self {
        let reason = io::Error::last_os_error();
        Self::Call { call, reason }
    }

    /// Error of a call that returns an error number, or 0 for success.
    pub(crate) fn returned(call: &'static str, code: i32) -> Result<(), Self> {
        match code {
            0 => Ok(()),
            // Some calls return -1 and set `errno`.
            ..0 => Err(Self::last(call)),
            code => Err(Self::Call {
                call,
                reason: io::Error::from_raw_os_error(code),
            }),
        }
    }
}
