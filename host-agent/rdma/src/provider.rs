//! The interface of all providers, in the terms of verbs.

use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{BorrowedFd, RawFd};
use std::str::FromStr;
use std::time::{Duration, Instant};

use roce::memory::RegisterError;
use roce::packet::Mtu;
use roce::{
    Access, Completion, Counters, CreateError, Fault, Key, ModifyError, PostError, Psn, QpConfig,
    Qpn, ReceiveRequest, SendRequest,
};

use crate::neighbour::NeighbourError;
use crate::verbs_error::VerbsError;

/// Global identifier of a port; for RoCEv2 over IPv4 `::ffff:a.b.c.d` (IBA annex A17.4.5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gid(pub [u8; 16]);

impl Gid {
    /// The IPv4 address that the GID maps, if any.
    pub fn ipv4(self) -> Option<Ipv4Addr> {
        std::net::Ipv6Addr::from(self.0).to_ipv4_mapped()
    }
}

impl From<Ipv4Addr> for Gid {
    fn from(ip: Ipv4Addr) -> Self {
        Self(ip.to_ipv6_mapped().octets())
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&std::net::Ipv6Addr::from(self.0), f)
    }
}

/// The string is not a GID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a GID is 32 hexadecimal digits")]
pub struct GidError;

impl FromStr for Gid {
    type Err = GidError;

    /// Reads 32 hexadecimal digits, the form in which programs exchange GIDs.
    fn from_str(text: &str) -> Result<Self, GidError> {
        let is_plain = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bits = u128::from_str_radix(text, 16).ok().filter(|_| is_plain);
        Ok(Self(bits.ok_or(GidError)?.to_be_bytes()))
    }
}

/// Registered memory. The provider owns the bytes: a peer may write them at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// Key for work requests of this side.
    pub lkey: Key,
    /// Key for work requests of the peer.
    pub rkey: u32,
    /// Virtual address of the first byte.
    pub address: u64,
    /// Length in bytes.
    pub len: usize,
}

/// Parameters of a queue pair's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    /// GID of the peer's port.
    pub peer: Gid,
    /// Ethernet address of the peer. `None`: the provider resolves the peer's IP address. A provider that always resolves it
    /// rejects a given address ([`ProviderError::PeerMac`]).
    pub peer_mac: Option<[u8; 6]>,
    /// Number of the peer's queue pair.
    pub peer_qpn: Qpn,
    /// PSN of the peer's first packet.
    pub peer_psn: Psn,
    /// PSN of this side's first packet.
    pub psn: Psn,
    /// Path MTU, the same on both sides.
    pub mtu: Mtu,
    /// Code of the transport timer: T = 4.096 µs · 2^timeout.
    pub timeout: u8,
    /// Maximum number of unacknowledged packets.
    pub window: u32,
    /// Number of retransmissions of a packet before its work request fails, at most 7.
    pub retry_count: u8,
    /// Number of retries after RNR NAKs; 7 means unlimited.
    pub rnr_retry: u8,
    /// Maximum number of outstanding READs to the peer.
    pub max_reads: u8,
    /// Maximum number of outstanding READs of the peer.
    pub max_peer_reads: u8,
    /// Five-bit code of the time that the peer waits after an RNR NAK.
    pub rnr_timer: u8,
    /// Differentiated services code point, six bits.
    pub dscp: u8,
}

impl Connection {
    /// A connection with the timeouts and retries of ibv_rc_pingpong and perftest.
    pub fn new(peer: Gid, peer_qpn: Qpn, peer_psn: Psn, psn: Psn, mtu: Mtu) -> Self {
        Self {
            peer,
            peer_mac: None,
            peer_qpn,
            peer_psn,
            psn,
            mtu,
            timeout: 14,
            window: 128,
            retry_count: 7,
            rnr_retry: 7,
            max_reads: 1,
            max_peer_reads: 1,
            rnr_timer: 12,
            dscp: 0,
        }
    }
}

/// A connection about to be established: both queue pairs, and the PSNs of their first packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenedConnection {
    /// Address of this end.
    pub local: Ipv4Addr,
    /// Address of the peer.
    pub peer: Ipv4Addr,
    /// Queue pair of this end.
    pub qpn: Qpn,
    /// Queue pair of the peer.
    pub peer_qpn: Qpn,
    /// PSN of the first packet from this end.
    pub psn: Psn,
    /// PSN of the first packet from the peer.
    pub peer_psn: Psn,
}

impl OpenedConnection {
    pub(crate) fn new(local: Ipv4Addr, qpn: Qpn, peer: Ipv4Addr, to: &Connection) -> Self {
        Self {
            local,
            peer,
            qpn,
            peer_qpn: to.peer_qpn,
            psn: to.psn,
            peer_psn: to.peer_psn,
        }
    }
}

/// Callback for each connection, before its queue pair sends or receives anything.
pub type Announce = Box<dyn FnMut(&OpenedConnection) + Send>;

/// Reason why a provider refused an operation.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// Memory cannot be registered.
    #[error("cannot register {len} bytes: {source}")]
    Register {
        /// Length in bytes.
        len: usize,
        /// Reason.
        source: RegisterError,
    },
    /// A queue pair cannot be created.
    #[error("cannot create a queue pair: {0}")]
    Create(#[from] CreateError),
    /// A queue pair's state cannot be changed.
    #[error("cannot connect a queue pair: {0}")]
    Modify(#[from] ModifyError),
    /// A work request cannot be posted.
    #[error("cannot post a work request: {0}")]
    Post(#[from] PostError),
    /// The peer's GID does not map an IPv4 address.
    #[error("the peer's GID {0} is not an IPv4 address: weir supports RoCEv2 over IPv4 only")]
    NotIpv4(Gid),
    /// The peer's Ethernet address cannot be resolved.
    #[error(transparent)]
    Neighbour(#[from] NeighbourError),
    /// The provider resolves the peer's Ethernet address itself, so that it cannot be chosen.
    #[error(
        "this transport resolves the peer's Ethernet address itself: use rings or pnet to set it"
    )]
    PeerMac,
    /// The requested path MTU exceeds that of the interface.
    #[error("path MTU {asked} exceeds that of the interface, {largest}")]
    Mtu {
        /// Requested path MTU in bytes.
        asked: usize,
        /// Largest path MTU in bytes.
        largest: usize,
    },
    /// The device failed.
    #[error(transparent)]
    Verbs(#[from] VerbsError),
    /// Transmission or reception of frames failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// An RDMA provider: regions, queue pairs, work requests, completions.
///
/// Without a device, nothing happens between calls: [`poll`](Self::poll) does all reception and transmission.
pub trait Provider {
    /// One line for the user: the transport and the address.
    fn describe(&self) -> String;

    /// GID of this side's port.
    fn gid(&self) -> Gid;

    /// The largest path MTU.
    fn max_mtu(&self) -> Mtu;

    /// Registers `len` bytes, all 0.
    fn register(&mut self, len: usize, access: Access) -> Result<Region, ProviderError>;

    /// Deregisters a region. Work requests that use it fail.
    fn deregister(&mut self, region: &Region);

    /// Copies bytes into a region at an offset.
    ///
    /// # Panics
    /// If they do not fit, or the region is deregistered.
    fn put(&mut self, region: &Region, offset: usize, bytes: &[u8]);

    /// Copies bytes out of a region at an offset.
    ///
    /// # Panics
    /// If the range exceeds the region, or the region is deregistered.
    fn copy_out(&self, region: &Region, offset: usize, into: &mut [u8]);

    /// A range of a region, if the provider can lend it: `None` if it cannot, or if the range exceeds the region.
    fn bytes(&self, region: &Region, offset: usize, len: usize) -> Option<&[u8]> {
        let _ = (region, offset, len);
        None
    }

    /// Copies `len` bytes between two positions, each given by a region and an offset.
    ///
    /// # Panics
    /// If a range exceeds its region, or a region is deregistered.
    fn copy(&mut self, from: (&Region, usize), to: (&Region, usize), len: usize) {
        let mut bytes = vec![0; len];
        self.copy_out(from.0, from.1, &mut bytes);
        self.put(to.0, to.1, &bytes);
    }

    /// Creates a queue pair in the state INIT, in which receives can be posted. `access`: operations allowed to the peer.
    fn create(&mut self, config: QpConfig, access: Access) -> Result<Qpn, ProviderError>;

    /// Sets the callback for new connections, which is called before they are established.
    fn announce(&mut self, announce: Announce);

    /// Draws an initial PSN.
    fn draw_psn(&mut self) -> Psn;

    /// Connects a queue pair: changes its state to RTR, then to RTS.
    fn connect(&mut self, qpn: Qpn, to: &Connection) -> Result<(), ProviderError>;

    /// Sets the maximum number of unacknowledged packets of a connected queue pair. Devices have no such limit, and ignore it.
    fn set_window(&mut self, qpn: Qpn, window: u32) -> Result<(), ProviderError> {
        let _ = (qpn, window);
        Ok(())
    }

    /// Destroys a queue pair, and discards its posted work requests.
    fn destroy(&mut self, qpn: Qpn);

    /// Posts a work request to the send queue of a queue pair.
    fn post_send(&mut self, qpn: Qpn, request: SendRequest) -> Result<(), ProviderError>;

    /// Posts a receive buffer to a queue pair.
    fn post_receive(&mut self, qpn: Qpn, request: ReceiveRequest) -> Result<(), ProviderError>;

    /// Processes received packets, sends pending ones, and returns the next completion.
    fn poll(&mut self) -> Result<Option<Completion>, ProviderError>;

    /// Waits for at most `timeout` until a packet arrives or a timer is due.
    fn wait(&mut self, timeout: Duration) -> Result<(), ProviderError>;

    /// Sends pending packets that may be sent now. A device does so by itself.
    fn flush(&mut self) -> Result<(), ProviderError> {
        Ok(())
    }

    /// Descriptor that becomes readable when packets arrive, for event loops; `None`: only [`wait`](Self::wait) can wait.
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Time until the next timer is due; `None` if there is none.
    fn due(&self) -> Option<Duration> {
        None
    }

    /// Number of packets that were dropped because the receive queue was full, since the last call; `None` if the system
    /// keeps no count.
    fn overflow(&mut self) -> Option<u64> {
        None
    }

    /// Number of packets so far that were not sent because the link was full.
    fn unsent(&self) -> u64 {
        0
    }

    /// Descriptors that keep the provider open, so that a forked process can close them.
    fn descriptors(&self) -> Vec<RawFd> {
        Vec::new()
    }

    /// Reason why a queue pair is in the state ERROR.
    fn fault(&self, qpn: Qpn) -> Option<Fault>;

    /// The oldest unacknowledged PSN of a queue pair, if the provider knows it.
    fn unanswered(&self, qpn: Qpn) -> Option<Psn>;

    /// Counters of a queue pair, if the provider has any.
    fn counters(&self, qpn: Qpn) -> Option<Counters>;

    /// A number that grows while the peer of a queue pair sends, if the provider has one; it may count other packets, too.
    fn arrivals(&self, qpn: Qpn) -> Option<u64> {
        self.counters(qpn).map(|counters| counters.rcvd_pkts)
    }
}

/// Time for which a finished program continues to answer its peer.
pub const GOODBYE: Duration = Duration::from_millis(200);

/// Runs the provider for this time: the peer's last packets may need another acknowledgement or a refusal. A device gives
/// them even after its program has ended.
///
/// # Errors
/// As [`Provider::wait`].
pub fn linger(provider: &mut dyn Provider, time: Duration) -> Result<(), ProviderError> {
    let begin = Instant::now();
    while let Some(left) = time.checked_sub(begin.elapsed()) {
        provider.wait(left)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gid_is_an_ipv4_address_or_none() {
        let gid = Gid::from(Ipv4Addr::new(10, 0, 0, 2));
        let told: Gid = "00000000000000000000ffff0a000002".parse().unwrap();
        assert_eq!(told, gid);
        assert_eq!(told.ipv4(), Some(Ipv4Addr::new(10, 0, 0, 2)));
        assert_eq!(gid.to_string(), "::ffff:10.0.0.2");
        let link_local: Gid = "fe80000000000000505400fffe000001".parse().unwrap();
        assert_eq!(link_local.ipv4(), None);
        for wrong in [
            "",
            "0",
            "+0000000000000000000ffff0a000002",
            "g0000000000000000000ffff0a000002",
        ] {
            assert_eq!(wrong.parse::<Gid>(), Err(GidError), "{wrong}");
        }
    }
}
