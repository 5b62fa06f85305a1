//! RDMA provider with RoCEv2 in user space: runs the state machines of crate `roce` over any transport of frames.
//!
//! All work happens in the calling thread, in [`poll`](Provider::poll): it receives up to a batch of frames, runs timers, sends
//! pending packets, and returns completions.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{BorrowedFd, RawFd};
use std::time::{Duration, Instant};

use frames::Frames;
use roce::memory::RegisterError;
use roce::packet::{self, Address, Mtu};
use roce::{
    Access, Completion, Counters, Endpoint, EndpointConfig, Fault, InitAttributes, Memory, Modify,
    Psn, QpConfig, Qpn, ReceiveRequest, RtrAttributes, RtsAttributes, SendRequest,
};

use crate::backlog::{Backlog, Look};
use crate::provider::{
    Announce, Connection, Gid, OpenedConnection, Provider, ProviderError, Region,
};

/// Maximum number of frames that are received, or sent, in a row before other work.
const BATCH: usize = 64;
const REGIONS: usize = 4096;
/// Distance between the start addresses of two regions, so that an access beyond the end of a region meets no other region.
const SPACING: u64 = 1 << 32;
/// Maximum time of a wait, after which timers are checked.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// Function that resolves a peer's IP address to an Ethernet address.
pub type Resolve =
    Box<dyn Fn(std::net::Ipv4Addr) -> Result<[u8; 6], crate::neighbour::NeighbourError> + Send>;

/// RDMA provider with RoCEv2 in user space, over the transport of frames `F`.
pub struct Software<F> {
    name: String,
    frames: F,
    backlog: Backlog,
    resolve: Resolve,
    endpoint: Endpoint,
    memory: Memory<Vec<u8>>,
    regions: u64,
    max_mtu: Mtu,
    origin: Instant,
    buffer: Vec<u8>,
    /// Whether the last batch of frames was full, so that more received frames may be waiting.
    may_have_more: bool,
    /// Number of frames that were discarded instead of sent.
    unsent: u64,
    ip: Ipv4Addr,
    announce: Option<Announce>,
}

/// Options of a RoCEv2 provider in user space, besides its transport of frames.
pub struct SoftwareOptions {
    /// Name of the transport, which is shown to the user.
    pub name: String,
    /// Ethernet and IPv4 address of the provider's interface.
    pub address: Address,
    /// Largest path MTU of the provider's queue pairs.
    pub max_mtu: Mtu,
    /// Seed of the random queue pair numbers, PSNs and keys.
    pub seed: u64,
    /// UDP source port of all queue pairs; `None`: each queue pair uses a hash of the two queue pair numbers.
    pub source_port: Option<u16>,
    /// Function that resolves a peer's IP address to an Ethernet address.
    pub resolve: Resolve,
}

impl<F: Frames> Software<F> {
    /// Creates a provider without queue pairs.
    pub fn new(frames: F, options: SoftwareOptions) -> Self {
        let config = EndpointConfig {
            max_mtu: options.max_mtu,
            source_port: options.source_port,
            ..EndpointConfig::new(options.address, options.seed)
        };
        Self {
            name: options.name,
            frames,
            backlog: Backlog::new(packet::frame_len(options.max_mtu)),
            resolve: options.resolve,
            endpoint: Endpoint::new(config),
            memory: Memory::new(REGIONS, options.seed),
            regions: 0,
            max_mtu: options.max_mtu,
            origin: Instant::now(),
            buffer: vec![0; packet::frame_len(options.max_mtu)],
            may_have_more: false,
            unsent: 0,
            ip: options.address.ip,
            announce: None,
        }
    }

    /// Sum of the counters of all queue pairs, and of frames that belong to no queue pair.
    pub fn all_counters(&self) -> Counters {
        self.endpoint.counters()
    }

    fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    /// Receives a batch of frames; returns whether any arrived.
    fn receive(&mut self) -> io::Result<bool> {
        let now_ns = self.now_ns();
        let (endpoint, memory) = (&mut self.endpoint, &mut self.memory);
        let received = self.frames.receive(BATCH, &mut |frame: &[u8]| {
            // The endpoint counts frames that belong to no queue pair.
            let _ = endpoint.handle_frame(now_ns, memory, frame);
        })?;
        Ok(received.frames > 0)
    }

    /// Sends up to a batch of frames, as far as the link's queue has space; returns whether the batch was full, so that more
    /// frames may be waiting.
    fn send(&mut self) -> io::Result<bool> {
        let now_ns = self.now_ns();
        if self
            .endpoint
            .poll_timeout()
            .is_some_and(|due_ns| due_ns <= now_ns)
        {
            self.endpoint.handle_timeout(now_ns);
        }
        let Backlog { frames, .. } = self.backlog;
        let waiting = self.frames.waiting();
        let was_nearly_empty = waiting < (frames / 4).max(1);
        // A batch for an idle link does not mean a backlog, although it waits like one.
        let space = match waiting {
            0 => usize::MAX,
            waiting => frames.saturating_sub(waiting),
        };
        let most = BATCH.min(frames);
        let mut sent = 0;
        while sent < most.min(space) && self.send_one(now_ns)? {
            sent += 1;
        }
        let is_full = sent == space;
        self.unsent += self.frames.flush()? as u64;
        self.backlog.looked(Look {
            now_ns,
            was_nearly_empty,
            sent,
            is_full,
        });
        self.may_have_more = sent == most;
        Ok(self.may_have_more)
    }

    /// Sends one frame; returns false if no frame may be sent now.
    fn send_one(&mut self, now_ns: u64) -> io::Result<bool> {
        let longest = packet::frame_len(self.max_mtu);
        let (endpoint, memory) = (&mut self.endpoint, &self.memory);
        let len = match self.frames.room(longest)? {
            Some(room) => {
                let len = endpoint.poll_transmit(now_ns, memory, room);
                if let Some(len) = len {
                    self.frames.written(len)?;
                }
                len
            }
            None => {
                let len = endpoint.poll_transmit(now_ns, memory, &mut self.buffer);
                if let Some(len) = len {
                    self.frames.send(&self.buffer[..len])?;
                }
                len
            }
        };
        Ok(len.is_some())
    }

    fn buffer(&self, region: &Region) -> &[u8] {
        let buffer = self.memory.buffer(region.lkey);
        buffer.expect("the region is registered")
    }

    fn buffer_mut(&mut self, region: &Region) -> &mut Vec<u8> {
        let buffer = self.memory.buffer_mut(region.lkey);
        buffer.expect("the region is registered")
    }
}

impl<F: Frames> Provider for Software<F> {
    fn describe(&self) -> String {
        let Address { ip, .. } = self.endpoint.address();
        let mtu = self.max_mtu.bytes();
        format!("{}, {ip}, MTU up to {mtu}", self.name)
    }

    fn gid(&self) -> Gid {
        self.endpoint.address().ip.into()
    }

    fn max_mtu(&self) -> Mtu {
        self.max_mtu
    }

    fn register(&mut self, len: usize, access: Access) -> Result<Region, ProviderError> {
        let refused = |source| ProviderError::Register { len, source };
        let mut buffer = Vec::new();
        let room = buffer.try_reserve_exact(len);
        room.map_err(|_| ProviderError::Io(io::ErrorKind::OutOfMemory.into()))?;
        buffer.resize(len, 0);
        let spaces = (len as u64).div_ceil(SPACING) + 1;
        let first = self.regions.checked_add(1);
        let address = first.and_then(|first| first.checked_mul(SPACING));
        let address = address.ok_or_else(|| {
            refused(RegisterError::Address {
                address: u64::MAX,
                len,
            })
        })?;
        let lkey = self.memory.register(buffer, address, access);
        let lkey = lkey.map_err(refused)?;
        self.regions += spaces;
        Ok(Region {
            lkey,
            rkey: lkey.0,
            address,
            len,
        })
    }

    fn deregister(&mut self, region: &Region) {
        self.memory.deregister(region.lkey);
    }

    fn put(&mut self, region: &Region, offset: usize, bytes: &[u8]) {
        self.buffer_mut(region)[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn put_with(&mut self, region: &Region, offset: usize, len: usize, write: &dyn Fn(&mut [u8])) {
        write(&mut self.buffer_mut(region)[offset..offset + len]);
    }

    fn copy_out(&self, region: &Region, offset: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.buffer(region)[offset..offset + into.len()]);
    }

    fn bytes(&self, region: &Region, offset: usize, len: usize) -> Option<&[u8]> {
        self.buffer(region).get(offset..offset.checked_add(len)?)
    }

    fn copy(&mut self, from: (&Region, usize), to: (&Region, usize), len: usize) {
        let (source, target) = (from.1..from.1 + len, to.1..to.1 + len);
        if from.0.lkey == to.0.lkey {
            self.buffer_mut(from.0).copy_within(source, to.1);
            return;
        }
        // The two regions are in one collection: take one of them out for the copy.
        let bytes = std::mem::take(self.buffer_mut(from.0));
        self.buffer_mut(to.0)[target].copy_from_slice(&bytes[source]);
        *self.buffer_mut(from.0) = bytes;
    }

    fn create(&mut self, config: QpConfig, access: Access) -> Result<Qpn, ProviderError> {
        let qpn = self.endpoint.create(config)?;
        let init = InitAttributes {
            access,
            ..InitAttributes::default()
        };
        self.endpoint.modify(qpn, Modify::Init(init))?;
        Ok(qpn)
    }

    fn announce(&mut self, announce: Announce) {
        self.announce = Some(announce);
    }

    fn draw_psn(&mut self) -> Psn {
        self.endpoint.draw_psn()
    }

    fn connect(&mut self, qpn: Qpn, to: &Connection) -> Result<(), ProviderError> {
        if to.mtu > self.max_mtu {
            return Err(ProviderError::Mtu {
                asked: to.mtu.bytes(),
                largest: self.max_mtu.bytes(),
            });
        }
        let ip = to.peer.ipv4().ok_or(ProviderError::NotIpv4(to.peer))?;
        let mac = match to.peer_mac {
            Some(mac) => mac,
            None => (self.resolve)(ip)?,
        };
        let rtr = RtrAttributes {
            peer: Address { mac, ip },
            peer_qpn: to.peer_qpn,
            psn: to.peer_psn,
            mtu: to.mtu,
            max_reads: to.max_peer_reads,
            rnr_timer: to.rnr_timer,
            dscp: to.dscp,
        };
        let rts = RtsAttributes {
            timeout: to.timeout,
            retry_count: to.retry_count,
            rnr_retry: to.rnr_retry,
            max_reads: to.max_reads,
            window: to.window,
            ..RtsAttributes::new(to.psn)
        };
        if let Some(announce) = &mut self.announce {
            announce(&OpenedConnection::new(self.ip, qpn, ip, to));
        }
        self.endpoint.modify(qpn, Modify::Rtr(rtr))?;
        self.endpoint.modify(qpn, Modify::Rts(rts))?;
        Ok(())
    }

    fn set_window(&mut self, qpn: Qpn, window: u32) -> Result<(), ProviderError> {
        Ok(self.endpoint.set_window(qpn, window)?)
    }

    fn destroy(&mut self, qpn: Qpn) {
        // A queue pair that does not exist is already destroyed.
        let _ = self.endpoint.destroy(qpn);
    }

    fn post_send(&mut self, qpn: Qpn, request: SendRequest) -> Result<(), ProviderError> {
        Ok(self.endpoint.post_send(qpn, request, &self.memory)?)
    }

    fn post_receive(&mut self, qpn: Qpn, request: ReceiveRequest) -> Result<(), ProviderError> {
        Ok(self.endpoint.post_receive(qpn, request, &self.memory)?)
    }

    fn poll(&mut self) -> Result<Option<Completion>, ProviderError> {
        if let Some(completion) = self.endpoint.poll_completion() {
            return Ok(Some(completion));
        }
        self.receive()?;
        self.send()?;
        Ok(self.endpoint.poll_completion())
    }

    fn wait(&mut self, timeout: Duration) -> Result<(), ProviderError> {
        self.send()?;
        let due = self.due().unwrap_or(LONGEST_WAIT);
        if !self.receive()? {
            let timeout = timeout.min(due).min(LONGEST_WAIT);
            frames::wait_readable(self.frames.readable(), timeout)?;
            self.receive()?;
        }
        self.send()?;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ProviderError> {
        while self.send()? {}
        Ok(())
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.frames.readable()
    }

    fn due(&self) -> Option<Duration> {
        if self.may_have_more {
            return Some(Duration::ZERO);
        }
        let due_ns = self.endpoint.poll_timeout();
        let timer = due_ns.map(|due_ns| due_ns.saturating_sub(self.now_ns()));
        let timer = timer.map(Duration::from_nanos);
        timer.into_iter().chain(self.backlog.pause()).min()
    }

    fn overflow(&mut self) -> Option<u64> {
        self.frames.overflow()
    }

    fn unsent(&self) -> u64 {
        self.unsent
    }

    fn descriptors(&self) -> Vec<RawFd> {
        self.frames.descriptors()
    }

    fn fault(&self, qpn: Qpn) -> Option<Fault> {
        self.endpoint.fault(qpn)
    }

    fn unanswered(&self, qpn: Qpn) -> Option<Psn> {
        self.endpoint.unanswered(qpn)
    }

    fn counters(&self, qpn: Qpn) -> Option<Counters> {
        self.endpoint.qp_counters(qpn).copied()
    }
}
