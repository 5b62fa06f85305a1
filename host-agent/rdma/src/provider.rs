//! What all providers have in common, in the words of verbs.

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
use crate::verbs::VerbsError;

/// The address of a port: with RoCEv2 over IPv4 `::ffff:a.b.c.d` (IBA annex A17.4.5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gid(pub [u8; 16]);

impl Gid {
    /// The IPv4 address in it.
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

/// A string that is no GID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a GID is 32 hexadecimal digits")]
pub struct GidError;

impl FromStr for Gid {
    type Err = GidError;

    /// Reads 32 hexadecimal digits: the form in which programs tell each other.
    fn from_str(text: &str) -> Result<Self, GidError> {
        let is_plain = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bits = u128::from_str_radix(text, 16).ok().filter(|_| is_plain);
        Ok(Self(bits.ok_or(GidError)?.to_be_bytes()))
    }
}

/// Registered memory. The provider keeps the bytes: a peer may write them at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// For work of this side.
    pub lkey: Key,
    /// For work of the peer.
    pub rkey: u32,
    /// Of the first byte.
    pub address: u64,
    /// Bytes.
    pub len: usize,
}

/// What a queue pair is connected with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    /// The peer's port.
    pub peer: Gid,
    /// The Ethernet address behind it. `None`: whoever answers for its IP address. A provider that always asks refuses to be told
    /// ([`ProviderError::PeerMac`]).
    pub peer_mac: Option<[u8; 6]>,
    /// The peer's queue pair.
    pub peer_qpn: Qpn,
    /// The PSN of the peer's first packet.
    pub peer_psn: Psn,
    /// The PSN of this side's first packet.
    pub psn: Psn,
    /// The path MTU, the same on both sides.
    pub mtu: Mtu,
    /// The transport timer's code: T = 4.096 µs · 2^timeout.
    pub timeout: u8,
    /// Packets without an answer, at most.
    pub window: u32,
    /// How often a packet is sent again before its work fails, at most 7.
    pub retry_count: u8,
    /// How often after RNR NAKs; 7: for ever.
    pub rnr_retry: u8,
    /// READs under way to the peer.
    pub max_reads: u8,
    /// READs of the peer under way here.
    pub max_peer_reads: u8,
    /// How long the peer waits when no receive is posted, a code of five bits.
    pub rnr_timer: u8,
    /// The class of service, six bits.
    pub dscp: u8,
}

impl Connection {
    /// With the time-outs and retries of ibv_rc_pingpong and perftest.
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

/// A connection that is about to be: both ends' queue pairs, and the PSNs of their first packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// This end.
    pub local: Ipv4Addr,
    /// The other.
    pub peer: Ipv4Addr,
    /// The queue pair here.
    pub qpn: Qpn,
    /// The queue pair there.
    pub peer_qpn: Qpn,
    /// Of the first packet from here.
    pub psn: Psn,
    /// Of the first packet from there.
    pub peer_psn: Psn,
}

impl Opened {
    pub(crate) fn of(local: Ipv4Addr, qpn: Qpn, peer: Ipv4Addr, to: &Connection) -> Self {
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

/// Hears of each connection before its queue pair sends or takes anything.
pub type Announce = Box<dyn FnMut(&Opened) + Send>;

/// Why a provider did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// No memory is registered.
    #[error("cannot register {len} bytes: {source}")]
    Register {
        /// How many.
        len: usize,
        /// Why.
        source: RegisterError,
    },
    /// No queue pair is made.
    #[error("cannot make a queue pair: {0}")]
    Create(#[from] CreateError),
    /// A queue pair does not change its state.
    #[error("cannot connect a queue pair: {0}")]
    Modify(#[from] ModifyError),
    /// Work is not posted.
    #[error("cannot post work: {0}")]
    Post(#[from] PostError),
    /// The peer has no IPv4 address.
    #[error("the peer's GID {0} is no IPv4 address: only RoCEv2 over IPv4 is spoken here")]
    NotIpv4(Gid),
    /// The peer's Ethernet address is not known.
    #[error(transparent)]
    Neighbour(#[from] NeighbourError),
    /// It finds the peer's Ethernet address itself.
    #[error(
        "the peer's Ethernet address cannot be chosen by this way: rings and pnet take it as it is told"
    )]
    PeerMac,
    /// The path MTU that was asked for is more than the interface carries.
    #[error("an MTU of {asked} does not fit the interface, which carries {largest}")]
    Mtu {
        /// Bytes that were asked for.
        asked: usize,
        /// The most.
        largest: usize,
    },
    /// A device.
    #[error(transparent)]
    Verbs(#[from] VerbsError),
    /// Frames do not come or go.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Who carries RDMA out: regions, queue pairs, work, completions.
///
/// Nothing happens between calls where there is no device: [`poll`](Self::poll) is what receives and sends.
pub trait Provider {
    /// For people, in a line: by which way, at which address.
    fn describe(&self) -> String;

    /// This side's port.
    fn gid(&self) -> Gid;

    /// The largest path MTU.
    fn max_mtu(&self) -> Mtu;

    /// Registers so many bytes, all 0.
    fn register(&mut self, len: usize, access: Access) -> Result<Region, ProviderError>;

    /// Gives a region up. Work that uses it fails.
    fn deregister(&mut self, region: &Region);

    /// Copies bytes into a region.
    ///
    /// # Panics
    /// If they do not fit, or the region is gone.
    fn put(&mut self, region: &Region, offset: usize, bytes: &[u8]);

    /// Copies bytes out of a region.
    ///
    /// # Panics
    /// If there are not so many, or the region is gone.
    fn copy_out(&self, region: &Region, offset: usize, into: &mut [u8]);

    /// Bytes of a region, where the provider can show them: `None` without, and if there are not so many.
    fn bytes(&self, region: &Region, offset: usize, len: usize) -> Option<&[u8]> {
        let _ = (region, offset, len);
        None
    }

    /// Copies so many bytes from a place of a region to one of another, or of the same.
    ///
    /// # Panics
    /// If there are not so many, they do not fit, or a region is gone.
    fn copy(&mut self, from: (&Region, usize), to: (&Region, usize), len: usize) {
        let mut bytes = vec![0; len];
        self.copy_out(from.0, from.1, &mut bytes);
        self.put(to.0, to.1, &bytes);
    }

    /// Makes a queue pair, in the state INIT: receives can be posted. `access`: what the peer may do through it.
    fn create(&mut self, config: QpConfig, access: Access) -> Result<Qpn, ProviderError>;

    /// Who is to hear of connections from now on, before they are there.
    fn announce(&mut self, announce: Announce);

    /// A PSN to begin with.
    fn draw_psn(&mut self) -> Psn;

    /// RTR and RTS.
    fn connect(&mut self, qpn: Qpn, to: &Connection) -> Result<(), ProviderError>;

    /// Changes how many packets a connected queue pair sends without an answer. Devices have no such limit of their own.
    fn set_window(&mut self, qpn: Qpn, window: u32) -> Result<(), ProviderError> {
        let _ = (qpn, window);
        Ok(())
    }

    /// Ends a queue pair. What is posted is forgotten.
    fn destroy(&mut self, qpn: Qpn);

    /// Gives work to a queue pair.
    fn post_send(&mut self, qpn: Qpn, request: SendRequest) -> Result<(), ProviderError>;

    /// Gives a queue pair a place for what is sent to it.
    fn post_receive(&mut self, qpn: Qpn, request: ReceiveRequest) -> Result<(), ProviderError>;

    /// Takes what has come, sends what there is, and gives the next completion.
    fn poll(&mut self) -> Result<Option<Completion>, ProviderError>;

    /// Waits until something has come or is due, not longer than `timeout`.
    fn wait(&mut self, timeout: Duration) -> Result<(), ProviderError>;

    /// Sends what was posted and may be sent now. A device does so by itself.
    fn flush(&mut self) -> Result<(), ProviderError> {
        Ok(())
    }

    /// Becomes readable when something has come, for who waits for other things as well; `None`: there is only [`wait`](Self::wait).
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// In how long there is something to do though nothing comes; `None`: never.
    fn due(&self) -> Option<Duration> {
        None
    }

    /// Packets that were dropped since the last call because too many waited to be taken; `None` if the system does not tell.
    fn overflow(&mut self) -> Option<u64> {
        None
    }

    /// Packets that were not sent so far because the link took no more.
    fn unsent(&self) -> u64 {
        0
    }

    /// The descriptors that keep it open, for a process that is forked to close.
    fn descriptors(&self) -> Vec<RawFd> {
        Vec::new()
    }

    /// Why a queue pair is in the state ERROR.
    fn fault(&self, qpn: Qpn) -> Option<Fault>;

    /// The oldest PSN of a queue pair that has no answer, where the provider tells.
    fn unanswered(&self, qpn: Qpn) -> Option<Psn>;

    /// What a queue pair has counted, where the provider tells.
    fn counters(&self, qpn: Qpn) -> Option<Counters>;

    /// A number that grows while a queue pair's peer sends, where the provider tells; other packets may count, too.
    fn arrivals(&self, qpn: Qpn) -> Option<u64> {
        self.counters(qpn).map(|counters| counters.rcvd_pkts)
    }
}

/// How long a program that has all it wants goes on answering.
pub const GOODBYE: Duration = Duration::from_millis(200);

/// Does for so long what there is. What a peer sent last may have to be acknowledged again, or refused: a device does so when its
/// program has ended.
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
