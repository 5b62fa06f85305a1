//! RDMA by a device or by the kernel's rxe, with libibverbs opened at run time.
//!
//! | file | contents |
//! |---|---|
//! | `library.rs` | functions of libibverbs |
//! | `abi.rs` | structures and constants of libibverbs |
//! | `device.rs` | choice of device and port |
//! | `resources.rs` | resources created with a device, and all calls on them |
//! | `memory.rs` | memory of a region, which a device may write at any time |
//! | `arrivals.rs` | counter of packets that a port has received |
//! | `queue.rs` | posted work requests that have not completed |
//! | `error.rs` | errors |
//!
//! One completion queue serves all queue pairs; it reserves capacity for everything that they may post. Unsafe code is only
//! in `library.rs`, `device.rs`, `resources.rs` and `memory.rs`.

mod abi;
mod arrivals;
mod device;
mod library;
mod memory;
mod queue;
mod resources;

use std::collections::{BTreeMap, VecDeque};
use std::ptr::null_mut;
use std::rc::Rc;
use std::time::Duration;

use nix::errno::Errno;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use roce::completion::WorkKind;
use roce::packet::{Mtu, Service};
use roce::{
    Access, Completion, Counters, Fault, Key, Local, ModifyError, PostError, Psn, QpConfig, Qpn,
    ReceiveRequest, Remote, SendRequest, State, Work,
};

use crate::neighbour::NeighbourError;
use crate::provider::{
    Announce, Connection, Gid, OpenedConnection, Provider, ProviderError, Region,
};
use abi::{QpAttributes, Range, SendWork, mask};
use arrivals::Arrivals;
use device::{Limits, Port};
use library::Library;
use memory::Pages;
use queue::{Queues, Sent};
use resources::Resources;

pub use crate::verbs_error::VerbsError;
pub use device::{At, Wanted};

/// Capacity of the completion queue, if the device allows this many completions.
const COMPLETIONS: u64 = 65_536;
/// Maximum number of routers on the path of a packet.
const HOP_LIMIT: u8 = 64;

/// RDMA provider that uses a device or the kernel's rxe, by libibverbs.
pub struct Verbs {
    because: String,
    port: Port,
    limits: Limits,
    resources: Resources,
    queues: BTreeMap<u32, Queues>,
    /// Completions that the device has reported and the caller has not polled.
    told: VecDeque<Completion>,
    /// Capacity of the completion queue, and how much of it is reserved for the work requests of queue pairs.
    room: [u64; 2],
    psns: ChaCha8Rng,
    arrivals: Arrivals,
    announce: Option<Announce>,
}

/// The opened libibverbs: proof that it is installed.
pub struct Installed(Rc<Library>);

impl Installed {
    /// Opens libibverbs.
    ///
    /// # Errors
    /// [`VerbsError::Library`].
    pub fn open() -> Result<Self, VerbsError> {
        Ok(Self(Rc::new(Library::open(library::NAME)?)))
    }

    /// Whether the host has an RDMA device with this name.
    pub fn has(&self, device: &str) -> bool {
        device::is_device(&self.0, device)
    }
}

impl Verbs {
    /// Opens an RDMA device. `because` tells the user why it was chosen; `seed` determines the random PSNs.
    ///
    /// # Errors
    /// [`VerbsError`].
    pub fn open(
        installed: &Installed,
        wanted: &Wanted,
        because: &str,
        seed: u64,
    ) -> Result<Self, VerbsError> {
        let (device, port) = device::find(&installed.0, wanted)?;
        let limits = device.limits;
        let room = limits.completions.min(COMPLETIONS);
        let folder = format!(
            "/sys/class/infiniband/{}/ports/{}",
            port.device, port.number
        );
        Ok(Self {
            because: because.to_owned(),
            port,
            limits,
            resources: Resources::new(device, room as u32)?,
            queues: BTreeMap::new(),
            told: VecDeque::new(),
            room: [room, 0],
            psns: ChaCha8Rng::seed_from_u64(seed),
            arrivals: Arrivals::new(folder.as_ref()),
            announce: None,
        })
    }

    fn limit(&self, what: &'static str, asked: u64, most: u64) -> Result<(), VerbsError> {
        match asked <= most {
            true => Ok(()),
            false => Err(VerbsError::Limit {
                what,
                asked,
                most,
                device: self.port.device.clone(),
            }),
        }
    }

    fn pages(&self, region: &Region) -> &Pages {
        let pages = self.resources.pages(region.lkey.0);
        pages.expect("the region is registered")
    }

    /// Takes completions from the device, and queues them for the caller.
    fn take(&mut self) -> Result<(), VerbsError> {
        loop {
            let told = self.resources.completions()?;
            if told.is_empty() {
                return Ok(());
            }
            for told in told {
                // Completions of a destroyed queue pair are discarded.
                let queues = self.queues.get_mut(&told.qpn);
                self.told
                    .extend(queues.and_then(|queues| queues.completed(told)));
            }
        }
    }

    fn ready_to_receive(
        &mut self,
        qpn: Qpn,
        to: &Connection,
        is_reliable: bool,
    ) -> Result<(), VerbsError> {
        let mut attributes = QpAttributes {
            state: abi::RTR,
            path_mtu: to.mtu as u32 + 1,
            peer_qpn: to.peer_qpn.bits(),
            rq_psn: to.peer_psn.bits(),
            max_peer_reads: to.max_peer_reads,
            rnr_timer: to.rnr_timer,
            ..QpAttributes::default()
        };
        attributes.path.gid = to.peer.0;
        attributes.path.gid_index = self.port.gid_index;
        attributes.path.hop_limit = HOP_LIMIT;
        attributes.path.traffic_class = to.dscp << 2;
        attributes.path.is_global = 1;
        attributes.path.port = self.port.number;
        let both = mask::STATE | mask::PATH | mask::PATH_MTU | mask::PEER_QPN | mask::RQ_PSN;
        let reliable = mask::MAX_PEER_READS | mask::RNR_TIMER;
        let mask = if is_reliable { both | reliable } else { both };
        self.resources.modify(qpn.bits(), attributes, mask)
    }

    fn ready_to_send(
        &mut self,
        qpn: Qpn,
        to: &Connection,
        is_reliable: bool,
    ) -> Result<(), VerbsError> {
        let attributes = QpAttributes {
            state: abi::RTS,
            sq_psn: to.psn.bits(),
            timeout: to.timeout,
            retry_count: to.retry_count,
            rnr_retry: to.rnr_retry,
            max_reads: u64::from(to.max_reads).min(self.limits.reads[0]) as u8,
            ..QpAttributes::default()
        };
        let both = mask::STATE | mask::SQ_PSN;
        let reliable = mask::TIMEOUT | mask::RETRY_COUNT | mask::RNR_RETRY | mask::MAX_READS;
        let mask = if is_reliable { both | reliable } else { both };
        self.resources.modify(qpn.bits(), attributes, mask)
    }
}

impl Provider for Verbs {
    fn describe(&self) -> String {
        let Port {
            device,
            number,
            ip,
            mtu,
            ..
        } = &self.port;
        let (because, mtu) = (&self.because, mtu.bytes());
        format!("verbs of {device}, port {number} ({because}), {ip}, MTU up to {mtu}")
    }

    fn gid(&self) -> Gid {
        self.port.gid()
    }

    fn max_mtu(&self) -> Mtu {
        self.port.mtu
    }

    fn register(&mut self, len: usize, access: Access) -> Result<Region, ProviderError> {
        let [regions, _] = self.resources.counts();
        self.limit("regions", regions as u64 + 1, self.limits.regions)?;
        let registered = self.resources.register(len, access)?;
        Ok(Region {
            lkey: Key(registered.lkey),
            rkey: registered.rkey,
            address: registered.address,
            len,
        })
    }

    fn deregister(&mut self, region: &Region) {
        self.resources.deregister(region.lkey.0);
    }

    fn put(&mut self, region: &Region, offset: usize, bytes: &[u8]) {
        self.pages(region).write(offset, bytes);
    }

    fn copy_out(&self, region: &Region, offset: usize, into: &mut [u8]) {
        self.pages(region).read(offset, into);
    }

    fn create(&mut self, config: QpConfig, access: Access) -> Result<Qpn, ProviderError> {
        let (sends, receives) = (config.max_sends as u64, config.max_receives as u64);
        let [_, qps] = self.resources.counts();
        self.limit("queue pairs", qps as u64 + 1, self.limits.qps)?;
        self.limit("requests of a queue", sends.max(receives), self.limits.work)?;
        let [room, kept] = self.room;
        self.limit("completions", kept + sends + receives, room)?;
        let kind = match config.service {
            Service::Reliable => abi::RC,
            Service::Unreliable => abi::UC,
        };
        let number = self
            .resources
            .create(kind, sends.max(1) as u32, receives.max(1) as u32)?;
        let attributes = QpAttributes {
            state: abi::INIT,
            port: self.port.number,
            access: resources::rights(access),
            ..QpAttributes::default()
        };
        let mask = mask::STATE | mask::PKEY_INDEX | mask::PORT | mask::ACCESS;
        if let Err(error) = self.resources.modify(number, attributes, mask) {
            self.resources.destroy(number);
            return Err(error.into());
        }
        self.room[1] += sends + receives;
        let qpn = Qpn::new(number);
        self.queues.insert(number, Queues::new(qpn, config));
        Ok(qpn)
    }

    fn announce(&mut self, announce: Announce) {
        self.announce = Some(announce);
    }

    fn draw_psn(&mut self) -> Psn {
        Psn::new(self.psns.next_u32())
    }

    fn connect(&mut self, qpn: Qpn, to: &Connection) -> Result<(), ProviderError> {
        if to.mtu > self.port.mtu {
            return Err(ProviderError::Mtu {
                asked: to.mtu.bytes(),
                largest: self.port.mtu.bytes(),
            });
        }
        let ip = to.peer.ipv4().ok_or(ProviderError::NotIpv4(to.peer))?;
        let queues = self.queues.get(&qpn.bits());
        let service = queues.ok_or(ModifyError::UnknownQp(qpn))?.config().service;
        let is_reliable = service == Service::Reliable;
        if is_reliable {
            let most = self.limits.reads[1];
            self.limit("READs of a peer at once", to.max_peer_reads.into(), most)?;
        }
        if let (Some(announce), Some(local)) = (&mut self.announce, self.port.gid().ipv4()) {
            announce(&OpenedConnection::new(local, qpn, ip, to));
        }
        let device = &self.port.device.clone();
        // The kernel resolves the peer's Ethernet address in this call.
        let received = self.ready_to_receive(qpn, to, is_reliable);
        received.map_err(|error| unreachable(error, ip, device))?;
        self.ready_to_send(qpn, to, is_reliable)?;
        if let Some(queues) = self.queues.get_mut(&qpn.bits()) {
            queues.state = State::Rts;
        }
        Ok(())
    }

    fn destroy(&mut self, qpn: Qpn) {
        let number = qpn.bits();
        let Some(queues) = self.queues.remove(&number) else {
            return;
        };
        self.resources.destroy(number);
        // The number may be reused, so drain this queue pair's entries from the completion queue. If the drain fails, the
        // next poll reports the error.
        let _ = self.take();
        let config = queues.config();
        self.room[1] -= (config.max_sends + config.max_receives) as u64;
    }

    fn post_send(&mut self, qpn: Qpn, request: SendRequest) -> Result<(), ProviderError> {
        let (local, work) = translated(&request);
        let (kind, len) = (kind(&request.work), local.len);
        let wr_id = request.wr_id;
        let queues = self.queues.get_mut(&qpn.bits());
        let queues = queues.ok_or(PostError::UnknownQp(qpn))?;
        let id = queues.send(Sent { wr_id, kind, len })?;
        let work = SendWork { id, ..work };
        let posted = self.resources.post_send(qpn.bits(), work, range(local));
        if posted.is_err() {
            queues.take_back(id);
        }
        Ok(posted?)
    }

    fn post_receive(&mut self, qpn: Qpn, request: ReceiveRequest) -> Result<(), ProviderError> {
        let queues = self.queues.get_mut(&qpn.bits());
        let queues = queues.ok_or(PostError::UnknownQp(qpn))?;
        let id = queues.receive(request.wr_id)?;
        let posted = self
            .resources
            .post_receive(qpn.bits(), id, range(request.local));
        if posted.is_err() {
            queues.take_back(id);
        }
        Ok(posted?)
    }

    fn poll(&mut self) -> Result<Option<Completion>, ProviderError> {
        if self.told.is_empty() {
            self.take()?;
        }
        Ok(self.told.pop_front())
    }

    fn wait(&mut self, timeout: Duration) -> Result<(), ProviderError> {
        // A completion between a poll and the request for an event causes no event: so request the event first, then poll.
        self.resources.arm()?;
        // A caller that waits without polling has these already, and waits for more.
        let before = self.told.len();
        self.take()?;
        if self.told.len() == before {
            self.resources.wait(timeout)?;
            self.take()?;
        }
        Ok(())
    }

    /// Always `None`: a device reports only the status of the failed work request.
    fn fault(&self, _: Qpn) -> Option<Fault> {
        None
    }

    /// Always `None`: a device reports the next PSN, not the oldest unacknowledged PSN.
    fn unanswered(&self, _: Qpn) -> Option<Psn> {
        None
    }

    /// Always `None`: a device counts for all queue pairs together.
    fn counters(&self, _: Qpn) -> Option<Counters> {
        None
    }

    fn arrivals(&self, _: Qpn) -> Option<u64> {
        self.arrivals.count()
    }
}

/// Converts the device's error to one that names the peer's address, if the peer is unreachable.
fn unreachable(error: VerbsError, ip: std::net::Ipv4Addr, device: &str) -> ProviderError {
    let errno = match &error {
        VerbsError::Call { reason, .. } => reason.raw_os_error().map(Errno::from_raw),
        _ => None,
    };
    let interface = device.to_owned();
    match errno {
        Some(Errno::ETIMEDOUT | Errno::EHOSTUNREACH) => {
            NeighbourError::Silent { ip, interface }.into()
        }
        Some(Errno::ENETUNREACH) => NeighbourError::Unreachable { ip, interface }.into(),
        _ => error.into(),
    }
}

fn kind(work: &Work) -> WorkKind {
    match work {
        Work::Send { .. } => WorkKind::Send,
        Work::Write { .. } => WorkKind::Write,
        Work::Read { .. } => WorkKind::Read,
    }
}

fn range(local: Local) -> Range {
    Range {
        address: local.address,
        length: local.len,
        lkey: local.key.0,
    }
}

/// A work request in libibverbs' form, without its identifier, and its local bytes.
fn translated(request: &SendRequest) -> (Local, SendWork) {
    let nowhere = Remote {
        address: 0,
        rkey: 0,
    };
    let (local, remote, immediate, [plain, with_immediate]) = match request.work {
        Work::Send { local, immediate } => {
            (local, nowhere, immediate, [abi::SEND, abi::SEND_IMMEDIATE])
        }
        Work::Write {
            local,
            remote,
            immediate,
        } => (local, remote, immediate, [abi::WRITE, abi::WRITE_IMMEDIATE]),
        Work::Read { local, remote } => (local, remote, None, [abi::READ; 2]),
    };
    let flag = |is_set, bit| if is_set { bit } else { 0 };
    let work = SendWork {
        id: 0,
        next: null_mut(),
        ranges: null_mut(),
        num_ranges: 0,
        opcode: if immediate.is_some() {
            with_immediate
        } else {
            plain
        },
        flags: flag(request.signaled, abi::SIGNALED) | flag(request.solicited, abi::SOLICITED),
        immediate: immediate.unwrap_or_default(),
        remote_address: remote.address,
        rkey: remote.rkey,
        others: [0; 9],
    };
    (local, work)
}
