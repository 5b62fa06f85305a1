//! Errors of RDMA devices and of libibverbs.

use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// Reason why an RDMA device cannot be used, or refused an operation.
#[derive(Debug, thiserror::Error)]
pub enum VerbsError {
    /// libibverbs cannot be opened: it is not installed, or another library has its name.
    #[error("cannot load libibverbs: {0}")]
    Library(libloading::Error),
    /// The host has no RDMA device.
    #[error("this host has no RDMA device")]
    NoDevice,
    /// Neither an RDMA device nor an interface has this name.
    #[error("no RDMA device or interface is named {0}")]
    Unknown(String),
    /// The process may not open the device.
    #[error("cannot open the RDMA device {device}: {reason} ({})", .file.display())]
    Permission {
        /// Name of the RDMA device.
        device: String,
        /// Device file that the process must be able to read and write.
        file: PathBuf,
        /// Error of the system call.
        reason: io::Error,
    },
    /// The port of the device has no link.
    #[error(
        "port {port} of the RDMA device {device} is not active: check that its interface is up"
    )]
    Inactive {
        /// Name of the RDMA device.
        device: String,
        /// Number of the device's port, from 1.
        port: u8,
    },
    /// No RDMA device has this IPv4 address.
    #[error("no RDMA device has a RoCEv2 GID of the address {0}")]
    NoAddress(Ipv4Addr),
    /// The device with this name has no IPv4 address.
    #[error("{0} has no RoCEv2 GID of an IPv4 address")]
    NoIpv4(String),
    /// No RDMA device belongs to this network namespace; the text names the devices of other namespaces.
    #[error("{0}: none has a RoCEv2 GID of an IPv4 address of this network namespace")]
    NoneHere(String),
    /// Several RDMA devices are possible; the text names them.
    #[error("several RDMA devices have an IPv4 address ({0}); name one with -d")]
    Several(String),
    /// Memory for a region cannot be pinned.
    #[error("cannot pin {len} bytes: RLIMIT_MEMLOCK is {limit} (`ulimit -l`, or CAP_IPC_LOCK)")]
    Pin {
        /// Requested length of the memory in bytes.
        len: usize,
        /// Limit of pinned memory of the process (RLIMIT_MEMLOCK) in bytes.
        limit: u64,
    },
    /// The request exceeds a limit of the RDMA device.
    #[error("{asked} {what} requested: {device} supports {most}")]
    Limit {
        /// Kind of the resource that is limited.
        what: &'static str,
        /// Number of resources that were requested.
        asked: u64,
        /// Maximum number of these resources on the device.
        most: u64,
        /// Name of the RDMA device.
        device: String,
    },
    /// A call of libibverbs or the system failed.
    #[error("{call} failed: {reason}")]
    Call {
        /// Name of the failed call.
        call: &'static str,
        /// Error that the call returned.
        reason: io::Error,
    },
}

impl VerbsError {
    /// Error of a failed call that has set `errno`.
    pub(crate) fn last(call: &'static str) -> Self {
        let reason = io::Error::last_os_error();
        Self::Call { call, reason }
    }

    /// Converts the result of a call that returns 0 for success, else an error number.
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
