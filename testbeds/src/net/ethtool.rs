//! Offloads of interfaces, which rtnetlink cannot set: ioctl calls in the namespace of the calling thread.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsRawFd;

use nix::errno::Errno;

use crate::ioctl::{control_socket, interface_request};

const ETHTOOL_SRXCSUM: u32 = 0x15;
const ETHTOOL_STXCSUM: u32 = 0x17;
const ETHTOOL_SSG: u32 = 0x19;
const ETHTOOL_STSO: u32 = 0x1f;
const ETHTOOL_SGSO: u32 = 0x24;
const ETHTOOL_SGRO: u32 = 0x2c;

const ETHTOOL_GRXCSUM: u32 = 0x14;
const ETHTOOL_GTXCSUM: u32 = 0x16;
const ETHTOOL_GSG: u32 = 0x18;
const ETHTOOL_GTSO: u32 = 0x1e;
const ETHTOOL_GGSO: u32 = 0x23;
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_SFLAGS: u32 = 0x26;
const ETHTOOL_GGRO: u32 = 0x2b;
/// Bit of large receive offload (LRO) in an interface's ethtool flags.
const ETH_FLAG_LRO: u32 = 1 << 15;

/// States of the offloads that merge received frames: with them, a capture shows frames that never were on the wire. The state
/// of checksum offload is included, since merging in hardware needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Merging {
    rx_checksum: Option<u32>,
    gro: Option<u32>,
    flags: Option<u32>,
}

impl Merging {
    /// Reads the states of the merging offloads of an interface. A state is `None` if the interface lacks the offload.
    pub(super) fn read(name: &str) -> io::Result<Merging> {
        Ok(Merging {
            rx_checksum: ethtool(name, ETHTOOL_GRXCSUM, 0)?,
            gro: ethtool(name, ETHTOOL_GGRO, 0)?,
            flags: ethtool(name, ETHTOOL_GFLAGS, 0)?,
        })
    }

    /// The states with all merging switched off.
    pub(super) fn off(self) -> Merging {
        Merging {
            rx_checksum: self.rx_checksum.map(|_| 0),
            gro: self.gro.map(|_| 0),
            flags: self.flags.map(|flags| flags & !ETH_FLAG_LRO),
        }
    }

    /// Applies the states where those of the interface differ.
    pub(super) fn set(self, name: &str) -> io::Result<()> {
        let is = Merging::read(name)?;
        // Merging needs the checksum: it is switched on first; when switching off, its order makes no difference.
        let wanted = [
            (ETHTOOL_SRXCSUM, is.rx_checksum, self.rx_checksum),
            (ETHTOOL_SFLAGS, is.flags, self.flags),
            (ETHTOOL_SGRO, is.gro, self.gro),
        ];
        for (command, is, wanted) in wanted {
            if let Some(value) = wanted.filter(|_| is != wanted) {
                ethtool(name, command, value)?;
            }
        }
        Ok(())
    }
}

/// States of the offloads that leave sent frames unfinished for hardware, which a switch in user space does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Sending {
    tx_checksum: Option<u32>,
    scatter: Option<u32>,
    gso: Option<u32>,
    tso: Option<u32>,
}

impl Sending {
    /// Reads the states of the sending offloads of an interface. A state is `None` if the interface lacks the offload.
    pub(super) fn read(name: &str) -> io::Result<Sending> {
        Ok(Sending {
            tx_checksum: ethtool(name, ETHTOOL_GTXCSUM, 0)?,
            scatter: ethtool(name, ETHTOOL_GSG, 0)?,
            gso: ethtool(name, ETHTOOL_GGSO, 0)?,
            tso: ethtool(name, ETHTOOL_GTSO, 0)?,
        })
    }

    /// Restores the states of the sending offloads. Segmentation depends on checksums and scatter-gather, which are set first.
    pub(super) fn set(self, name: &str) -> io::Result<()> {
        let wanted = [
            (ETHTOOL_STXCSUM, self.tx_checksum),
            (ETHTOOL_SSG, self.scatter),
            (ETHTOOL_SGSO, self.gso),
            (ETHTOOL_STSO, self.tso),
        ];
        for (command, value) in wanted {
            if let Some(value) = value {
                ethtool(name, command, value)?;
            }
        }
        Ok(())
    }

    /// Switches the sending offloads of an interface off, so that every frame leaves with checksums and in its final segments.
    pub(super) fn finish_frames(name: &str) -> io::Result<()> {
        for command in [ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SSG, ETHTOOL_STXCSUM] {
            ethtool(name, command, 0)?;
        }
        Ok(())
    }
}

/// Runs an ethtool command whose argument and result are one number; `None` if the interface does not support it.
fn ethtool(name: &str, command: u32, data: u32) -> io::Result<Option<u32>> {
    let socket = control_socket()?;
    let mut value = EthtoolValue { command, data };
    let mut request = interface_request(name)?;
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: as in `offloads_off`.
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    match Errno::result(result) {
        Ok(_) => Ok(Some(value.data)),
        Err(Errno::EOPNOTSUPP) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Switches off the offloads that would merge received frames and, if `finish` is set, those that would send frames that no wire
/// carries: without checksum, or longer than the MTU.
pub(super) fn offloads_off(name: &str, finish: bool) -> io::Result<()> {
    let socket = control_socket()?;
    // Segmentation first: it depends on checksums and scatter-gather.
    let sending = [ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SSG, ETHTOOL_STXCSUM];
    let sending = sending.into_iter().filter(|_| finish);
    for command in sending.chain([ETHTOOL_SGRO, ETHTOOL_SRXCSUM]) {
        let mut value = EthtoolValue { command, data: 0 };
        let mut request = interface_request(name)?;
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        // SAFETY: SIOCETHTOOL takes an ifreq whose data points to a structure that begins with the command; for these
        // commands it is an ethtool_value, which outlives the call.
        let result =
            unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
        match Errno::result(result) {
            Ok(_) => {}
            // The interface has no such offload.
            Err(Errno::EOPNOTSUPP) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Makes the kernel take the frames of a virtual Ethernet interface from one queue, one after the other, by enabling GRO. Without
/// GRO each processor hands up its own frames, and two simultaneous frames may reach two listeners in different orders.
pub(super) fn one_queue(name: &str) -> io::Result<()> {
    let socket = control_socket()?;
    let mut value = EthtoolValue {
        command: ETHTOOL_SGRO,
        data: 1,
    };
    let mut request = interface_request(name)?;
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: as in `offloads_off`.
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    Errno::result(result).map(drop).map_err(io::Error::from)
}
