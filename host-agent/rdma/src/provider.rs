//! The interface of all RDMA providers, in the terms of verbs: regions, queue pairs, work requests, completions.

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

/// Global identifier (GID) of an RDMA port; for RoCEv2 over IPv4 `::ffff:a.b.c.d` (IBA annex A17.4.5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gid(pub [u8; 16]);

impl Gid {
    /// The IPv4 address that the GID maps; `None` if the GID has another form.
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

/// The string does not consist of the 32 hexadecimal digits of a GID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a GID is 32 hexadecimal digits")]
pub struct GidError;

impl FromStr for Gid {
    type Err = GidError;

    /// Parses 32 hexadecimal digits, the form in which programs exchange GIDs.
    fn from_str(text: &str) -> Result<Self, GidError> {
        let is_plain = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bits = u128::from_str_radix(text, 16).ok().filter(|_| is_plain);
        Ok(Self(bits.ok_or(GidError)?.to_be_bytes()))
    }
}

/// A registered memory region. The provider owns the bytes: a peer may write them at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// Key that names the region in work requests of this side.
    pub lkey: Key,
    /// Key that names the region in work requests of the peer.
    pub rkey: u32,
    /// Virtual address of the region's first byte.
    pub address: u64,
    /// Length of the region in bytes.
    pub len: usize,
}

/// Parameters of a queue pair's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    /// GID of the port that the peer's queue pair uses.
    pub peer: Gid,
    /// Ethernet address of the peer; `None`: the provider resolves the peer's IP address. A provider that always resolves it
    /// rejects a given address ([`ProviderError::PeerMac`]).
    pub peer_mac: Option<[u8; 6]>,
    /// Number of the peer's queue pair.
    pub peer_qpn: Qpn,
    /// PSN of the peer's first packet.
    pub peer_psn: Psn,
    /// PSN of this side's first packet.
    pub psn: Psn,
    /// Path MTU; both sides must use the same.
    pub mtu: Mtu,
    /// Five-bit code of the ACK timer: T = 4.096 µs · 2^timeout.
    pub timeout: u8,
    /// Maximum number of unacknowledged packets in flight.
    pub window: u32,
    /// Number of retransmissions of a packet before its work request fails, at most 7.
    pub retry_count: u8,
    /// Number of retries after RNR NAKs before the work request fails; 7 means unlimited.
    pub rnr_retry: u8,
    /// Maximum number of outstanding READs from this side to the peer.
    pub max_reads: u8,
    /// Maximum number of outstanding READs from the peer to this side.
    pub max_peer_reads: u8,
    /// Five-bit code of the time that the peer waits after an RNR NAK.
    pub rnr_timer: u8,
    /// Differentiated services code point of the sent packets, six bits.
    pub dscp: u8,
}

impl Connection {
    /// Parameters of a connection, with the timeouts and retries of ibv_rc_pingpong and perftest.
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
    /// IPv4 address of this end.
    pub local: Ipv4Addr,
    /// IPv4 address of the peer.
    pub peer: Ipv4Addr,
    /// Number of this end's queue pair.
    pub qpn: Qpn,
    /// Number of the peer's queue pair.
    pub peer_qpn: Qpn,
    /// PSN of the first packet that this end sends.
    pub psn: Psn,
    /// PSN of the first packet that the peer sends.
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

/// Callback that a provider calls for each new connection, before the queue pair sends or receives anything.
pub type Announce = Box<dyn FnMut(&OpenedConnection) + Send>;

/// Reason why an RDMA provider refused an operation.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// Memory cannot be registered as a region.
    #[error("cannot register {len} bytes: {source}")]
    Register {
        /// Length of the memory that was to be registered, in bytes.
        len: usize,
        /// Reason why the memory cannot be registered.
        source: RegisterError,
    },
    /// A queue pair cannot be created.
    #[error("cannot create a queue pair: {0}")]
    Create(#[from] CreateError),
    /// A queue pair cannot perform a state transition.
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
    /// A peer's Ethernet address was given, but this provider always resolves it itself.
    #[error(
        "this transport resolves the peer's Ethernet address itself: use rings or pnet to set it"
    )]
    PeerMac,
    /// The requested path MTU exceeds that of the interface.
    #[error("path MTU {asked} exceeds that of the interface, {largest}")]
    Mtu {
        /// The requested path MTU in bytes.
        asked: usize,
        /// The largest path MTU that the interface supports, in bytes.
        largest: usize,
    },
    /// The RDMA device failed.
    #[error(transparent)]
    Verbs(#[from] VerbsError),
    /// Transmission or reception of frames failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// An RDMA provider: a device, or RoCEv2 in user space.
///
/// RoCEv2 in user space does nothing between calls: [`poll`](Self::poll) does all reception and transmission.
pub trait Provider {
    /// One line for the user that names the provider's transport and address.
    fn describe(&self) -> String;

    /// GID of the port that this provider uses.
    fn gid(&self) -> Gid;

    /// Largest path MTU that the provider's port supports.
    fn max_mtu(&self) -> Mtu;

    /// Registers a memory region of `len` bytes, which are all 0.
    fn register(&mut self, len: usize, access: Access) -> Result<Region, ProviderError>;

    /// Deregisters a memory region. Work requests that use it fail.
    fn deregister(&mut self, region: &Region);

    /// Copies bytes into a region, from `offset` on.
    ///
    /// # Panics
    /// If they do not fit, or the region is deregistered.
    fn put(&mut self, region: &Region, offset: usize, bytes: &[u8]);

    /// Lets `write` write `len` bytes of a region, from `offset` on; it must replace all of them.
    ///
    /// # Panics
    /// As [`put`](Self::put).
    fn put_with(&mut self, region: &Region, offset: usize, len: usize, write: &dyn Fn(&mut [u8])) {
        let mut bytes = vec![0; len];
        write(&mut bytes);
        self.put(region, offset, &bytes);
    }

    /// Copies bytes out of a region, from `offset` on.
    ///
    /// # Panics
    /// If the range exceeds the region, or the region is deregistered.
    fn copy_out(&self, region: &Region, offset: usize, into: &mut [u8]);

    /// Borrows `len` bytes of a region from `offset` on; `None` if the provider cannot lend them, or they exceed the region.
    fn bytes(&self, region: &Region, offset: usize, len: usize) -> Option<&[u8]> {
        let _ = (region, offset, len);
        None
    }

    /// Copies `len` bytes between two positions, each given by a region and an offset in it.
    ///
    /// # Panics
    /// If a range exceeds its region, or a region is deregistered.
    fn copy(&mut self, from: (&Region, usize), to: (&Region, usize), len: usize) {
        let mut bytes = vec![0; len];
        self.copy_out(from.0, from.1, &mut bytes);
        self.put(to.0, to.1, &bytes);
    }

    /// Creates a queue pair in the state INIT, in which receives can be posted. `access` are the peer's access rights.
    fn create(&mut self, config: QpConfig, access: Access) -> Result<Qpn, ProviderError>;

    /// Sets the callback that the provider calls for each new connection before establishing it.
    fn announce(&mut self, announce: Announce);

    /// Draws a random PSN for the first packet of a connection.
    fn draw_psn(&mut self) -> Psn;

    /// Connects a queue pair to a peer: brings it from INIT through RTR to RTS.
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

    /// Processes received packets, sends pending packets, and returns the next completion; `None` if there is none yet.
    fn poll(&mut self) -> Result<Option<Completion>, ProviderError>;

    /// Waits for at most `timeout` until a packet arrives or a timer is due.
    fn wait(&mut self, timeout: Duration) -> Result<(), ProviderError>;

    /// Sends pending packets that may be sent now. An RDMA device does so by itself, so nothing happens.
    fn flush(&mut self) -> Result<(), ProviderError> {
        Ok(())
    }

    /// File descriptor that becomes readable when packets arrive, for event loops; `None`: only [`wait`](Self::wait) can wait.
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Time until the provider's next timer is due; `None` if no timer runs.
    fn due(&self) -> Option<Duration> {
        None
    }

    /// Number of packets dropped since the last call because the receive queue was full; `None` if the system does not count.
    fn overflow(&mut self) -> Option<u64> {
        None
    }

    /// Number of packets so far that the provider could not send because the link was full.
    fn unsent(&self) -> u64 {
        0
    }

    /// File descriptors that the provider keeps open; a forked process closes its copies of them.
    fn descriptors(&self) -> Vec<RawFd> {
        Vec::new()
    }

    /// Reason why a queue pair is in the state ERROR; `None` in other states, or if the provider does not know it.
    fn fault(&self, qpn: Qpn) -> Option<Fault>;

    /// Oldest unacknowledged PSN of a queue pair; `None` if there is none, or if the provider does not know it.
    fn unanswered(&self, qpn: Qpn) -> Option<Psn>;

    /// Counters of a queue pair; `None` if the provider does not count.
    fn counters(&self, qpn: Qpn) -> Option<Counters>;

    /// A number that grows while the peer of a queue pair sends (it may count other packets, too); `None` if unknown.
    fn arrivals(&self, qpn: Qpn) -> Option<u64> {
        self.counters(qpn).map(|counters| counters.rcvd_pkts)
    }
}

/// Time for which a program that has finished continues to answer its peer.
pub const GOODBYE: Duration = Duration::from_millis(200);

/// Runs the provider for `time`, so that it answers packets that the peer sends late or again. A device does so by itself, even
/// after the program has ended.
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
