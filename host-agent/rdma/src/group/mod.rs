//! Ranks that execute collectives by schedules of crate `collectives`: each put, a write to a peer, is a WRITE with immediate.
//!
//! | file | contents |
//! |---|---|
//! | `meeting.rs` | exchange of the ranks' queue pairs |
//! | `store/` | stores for this exchange: a folder, rank 0 over TCP, torch's `TCPStore` |
//! | `window.rs` | limits on the packets in flight to each peer of a schedule |
//! | `run.rs` | execution of a schedule |
//! | `refusal.rs` | errors of a run, with the state at that time |
//!
//! A rank has one memory region for its buffers, and queue pairs for each peer on another node. One process may execute several
//! ranks of a node in one thread. These ranks exchange data through memory, and each of them is bound to one of the node's
//! NICs.
//!
//! A schedule may write memory that another rank still reads for the previous schedule, so the ranks execute a barrier between
//! two schedules ([`Group::barrier`]).

mod meeting;
mod refusal;
mod run;
mod store;
mod window;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use collectives::{Algorithm, Collective, Options, Schedule, build};
use roce::packet::{Mtu, Service};
use roce::{Access, Completion, Counters, Local, QpConfig, Qpn, ReceiveRequest};

use crate::perftest::Keys;
use crate::provider::{Connection, Provider, ProviderError, Region};
use meeting::{Announcement, Meeting};
use window::Ways;

pub use meeting::MeetingError;
pub use refusal::{GroupError, Open, RunError};
pub use store::{FolderStore, Store, StoreError, TcpStore, TorchStore};

/// Maximum number of puts (writes to a peer's memory) in flight to a peer, and of receives posted for the peer's puts.
const QUEUE: usize = 256;
/// Maximum number of puts in flight to all peers together: each put may cause a completion.
const QUEUES: usize = 16_384;
/// Code of the ACK timer (0.54 s). A peer may compute for eight timeouts (4.3 s) without processing frames.
const TIMEOUT: u8 = 17;
/// Time to wait for packets at one NIC before the next NIC gets its turn; used if a NIC has no file descriptor to wait for.
const LOOK: Duration = Duration::from_micros(500);
/// Maximum time of a wait, after which the NICs are polled again.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// Settings of a group of ranks, which all ranks share, and the number of this rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupOptions {
    /// Number of this rank, from 0.
    pub rank: usize,
    /// Number of ranks of the group.
    pub ranks: usize,
    /// Maximum length of all buffers of a rank together, in bytes.
    pub capacity: usize,
    /// Number of queue pairs to each peer, at least 1; puts use them in turn.
    pub queue_pairs: usize,
    /// Number of packets that a queue on the network path can hold. All puts that pass a queue at the same time share this
    /// number: the puts of a NIC's ranks to all peers, and the puts of all ranks to the ranks of a NIC.
    pub window: u32,
    /// Path MTU of all queue pairs; `None`: the largest that all ranks support.
    pub mtu: Option<Mtu>,
    /// Maximum time without progress. A rank that computes for more than four seconds between schedules must call
    /// [`Group::linger`] now and then: without a device, nothing else answers its peers.
    pub patience: Duration,
}

/// A rank that this process executes, and the NIC that the rank's queue pairs are bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalRank {
    /// Number of the rank in the group.
    pub rank: usize,
    /// Index of the rank's NIC among the providers.
    pub nic: usize,
}

/// State that a rank of this process keeps about another rank of the group.
#[derive(Debug)]
struct Peer {
    way: Way,
    /// Numbers of signals (one per put) in all earlier schedules: those sent to the peer, and those received from it.
    sent: u32,
    heard: u32,
}

/// How puts (writes to a peer's memory) reach a peer.
#[derive(Debug)]
enum Way {
    /// The peer is executed by this process, too: puts copy memory.
    Memory,
    /// The peer is in another process: puts use queue pairs.
    Queues {
        qpns: Vec<Qpn>,
        /// Remote key and address of the peer's memory region.
        rkey: u32,
        address: u64,
    },
}

impl Peer {
    fn qpns(&self) -> &[Qpn] {
        match &self.way {
            Way::Memory => &[],
            Way::Queues { qpns, .. } => qpns,
        }
    }
}

/// A rank that this process executes: its memory region, and its peers.
#[derive(Debug)]
struct Member {
    at: LocalRank,
    region: Region,
    /// State of each peer, by rank; `None` for the rank itself.
    peers: Vec<Option<Peer>>,
    /// Signals of schedules that this rank has not begun, received early: rank of the sender, and number of the signal.
    early: BTreeSet<(usize, u32)>,
    /// Maximum number of packets in flight on each queue pair, by rank of the peer.
    windows: Vec<u32>,
}

/// This process's membership in a group of ranks that execute collectives, with one rank or several ranks of one node.
pub struct Group<'p> {
    nics: Vec<&'p mut dyn Provider>,
    options: GroupOptions,
    members: Vec<Member>,
    /// For each queue pair (index of its NIC, number): its rank, as an index in `members`, and the rank of its peer.
    owners: BTreeMap<(usize, Qpn), (usize, usize)>,
    ways: Ways,
    barrier: Rc<Schedule>,
    /// Maximum number of puts in flight to each peer, and of receives posted for the peer's puts.
    queue: usize,
    /// Index of the NIC that was polled last.
    turn: usize,
}

impl<'p> Group<'p> {
    /// Joins a group as one rank: exchanges keys of queue pairs with all other ranks by files in a folder, and connects them.
    ///
    /// # Errors
    /// [`GroupError`]; everything that this side opened is closed again.
    pub fn meet(
        provider: &'p mut dyn Provider,
        folder: &Path,
        options: GroupOptions,
    ) -> Result<Self, GroupError> {
        Self::meet_in(provider, &mut FolderStore::new(folder), options)
    }

    /// Joins a group as [`Group::meet`] does, by another kind of store. A store serves one group only.
    ///
    /// # Errors
    /// [`GroupError`]; everything that this side opened is closed again.
    pub fn meet_in(
        provider: &'p mut dyn Provider,
        store: &mut dyn Store,
        options: GroupOptions,
    ) -> Result<Self, GroupError> {
        let at = LocalRank {
            rank: options.rank,
            nic: 0,
        };
        Self::meet_as(vec![provider], store, &[at], options)
    }

    /// Joins a group as several ranks of one node, each at one of the node's NICs (`places`). `options.rank` is ignored.
    ///
    /// # Errors
    /// As [`Group::meet`].
    pub fn meet_as(
        nics: Vec<&'p mut dyn Provider>,
        store: &mut dyn Store,
        places: &[LocalRank],
        options: GroupOptions,
    ) -> Result<Self, GroupError> {
        let ranks = options.ranks;
        if let Some(LocalRank { rank, .. }) = places.iter().find(|at| at.rank >= ranks) {
            return Err(GroupError::Rank { rank: *rank, ranks });
        }
        if places.is_empty() || places.iter().any(|at| at.nic >= nics.len()) {
            return Err(GroupError::Nics(nics.len()));
        }
        let collective = Collective::Barrier { ranks };
        let barrier = build(&collective, Algorithm::Dissemination, &Options::default())?;
        let queue_pairs = options.queue_pairs.max(1);
        let mut group = Self {
            nics,
            options: GroupOptions {
                queue_pairs,
                ..options
            },
            members: Vec::new(),
            owners: BTreeMap::new(),
            ways: Ways::default(),
            barrier: Rc::new(barrier),
            queue: (QUEUES / (ranks * places.len() * queue_pairs)).clamp(1, QUEUE),
            turn: 0,
        };
        let here: Vec<usize> = places.iter().map(|at| at.rank).collect();
        let mtus = group.nics.iter().map(|nic| nic.max_mtu());
        let most = mtus.min().unwrap_or(Mtu::B256);
        let mtu = options.mtu.unwrap_or(most);
        let mut own = Vec::new();
        for at in places {
            own.push(group.open(*at, &here)?);
        }
        let mut meeting = Meeting {
            store,
            rank: here[0],
            ranks,
            patience: options.patience,
        };
        for (rank, own) in here.iter().zip(&own) {
            meeting.publish_keys(*rank, own, mtu)?;
        }
        let told = meeting.await_keys(|wait| group.wait(wait))?;
        group.ways = Ways::new(&told);
        let mtu = told.iter().map(|told| told.mtu).min().unwrap_or(mtu);
        for (member, own) in own.iter().enumerate() {
            group.connect(member, own, &told, mtu)?;
        }
        // A peer that is not connected yet drops packets of those that are.
        for rank in &here {
            meeting.is_ready(*rank)?;
        }
        meeting.all_ready(|wait| group.wait(wait))?;
        Ok(group)
    }

    /// Creates a rank of this process, and its queue pairs for peers in other processes; returns their keys with the peers.
    fn open(&mut self, at: LocalRank, here: &[usize]) -> Result<Vec<(usize, Keys)>, GroupError> {
        let nic = &mut self.nics[at.nic];
        let region = nic.register(self.options.capacity.max(1), Access::ALL)?;
        let number = self.members.len();
        self.members.push(Member {
            at,
            region,
            peers: Vec::new(),
            early: BTreeSet::new(),
            windows: vec![self.options.window; self.options.ranks],
        });
        let mut own = Vec::new();
        for peer in 0..self.options.ranks {
            let way = match here.contains(&peer) {
                true => Way::Memory,
                false => Way::Queues {
                    qpns: self.queue_pairs(number, peer, &mut own)?,
                    rkey: 0,
                    address: 0,
                },
            };
            let other = Peer {
                way,
                sent: 0,
                heard: 0,
            };
            let other = (peer != at.rank).then_some(other);
            self.members[number].peers.push(other);
        }
        Ok(own)
    }

    fn queue_pairs(
        &mut self,
        member: usize,
        peer: usize,
        own: &mut Vec<(usize, Keys)>,
    ) -> Result<Vec<Qpn>, GroupError> {
        let config = QpConfig {
            max_sends: self.queue,
            max_receives: self.queue,
            ..QpConfig::new(Service::Reliable)
        };
        let Member { at, region, .. } = self.members[member];
        let mut qpns = Vec::new();
        for _ in 0..self.options.queue_pairs {
            let nic = &mut self.nics[at.nic];
            let qpn = nic.create(config, Access::ALL)?;
            let keys = Keys {
                reads: 1,
                qpn,
                psn: nic.draw_psn(),
                rkey: region.rkey,
                address: region.address,
                gid: nic.gid(),
            };
            self.owners.insert((at.nic, qpn), (member, peer));
            for _ in 0..self.queue {
                self.post_receive(member, peer, qpn)?;
            }
            own.push((peer, keys));
            qpns.push(qpn);
        }
        Ok(qpns)
    }

    fn connect(
        &mut self,
        member: usize,
        own: &[(usize, Keys)],
        told: &[Announcement],
        mtu: Mtu,
    ) -> Result<(), GroupError> {
        let LocalRank { rank, nic } = self.members[member].at;
        for (peer, told) in told.iter().enumerate() {
            let mine: Vec<&Keys> = own
                .iter()
                .filter(|(other, _)| *other == peer)
                .map(|(_, keys)| keys)
                .collect();
            let theirs = told.keys_for(rank);
            if mine.len() != theirs.len() {
                return Err(GroupError::QueuePairs {
                    peer,
                    has: theirs.len(),
                    ours: mine.len(),
                });
            }
            for (mine, theirs) in mine.into_iter().zip(theirs) {
                if let Some(Some(Peer {
                    way: Way::Queues { rkey, address, .. },
                    ..
                })) = self.members[member].peers.get_mut(peer)
                {
                    (*rkey, *address) = (theirs.rkey, theirs.address);
                }
                let connection = Connection {
                    window: self.options.window,
                    timeout: TIMEOUT,
                    ..Connection::new(theirs.gid, theirs.qpn, theirs.psn, mine.psn, mtu)
                };
                self.nics[nic].connect(mine.qpn, &connection)?;
            }
        }
        Ok(())
    }

    fn post_receive(&mut self, member: usize, peer: usize, qpn: Qpn) -> Result<(), ProviderError> {
        let Member { at, region, .. } = self.members[member];
        let request = ReceiveRequest {
            wr_id: peer as u64,
            // A WRITE carries its own address: the receive has no buffer.
            local: Local {
                key: region.lkey,
                address: region.address,
                len: 0,
            },
        };
        self.nics[at.nic].post_receive(qpn, request)
    }

    /// Number of this rank, or of the first of several ranks of this process.
    pub fn rank(&self) -> usize {
        self.members[0].at.rank
    }

    /// Copies bytes into the memory region of this process's first rank; a schedule's input begins at offset 0.
    ///
    /// # Panics
    /// If they do not fit.
    pub fn put(&mut self, offset: usize, bytes: &[u8]) {
        self.put_of(0, offset, bytes);
    }

    /// Copies bytes into the memory region of the rank with the index `place` in the list given to [`Self::meet_as`].
    ///
    /// # Panics
    /// If they do not fit, or no rank has this index.
    pub fn put_of(&mut self, place: usize, offset: usize, bytes: &[u8]) {
        let Member { at, region, .. } = self.members[place];
        self.nics[at.nic].put(&region, offset, bytes);
    }

    /// Copies bytes out of the memory region of this process's first rank; a schedule's output begins where its input ends.
    ///
    /// # Panics
    /// If the range exceeds the region.
    pub fn copy_out(&self, offset: usize, into: &mut [u8]) {
        self.copy_out_of(0, offset, into);
    }

    /// Copies bytes out of the memory region of the rank with the index `place` in the list given to [`Self::meet_as`].
    ///
    /// # Panics
    /// If the range exceeds the region, or no rank has this index.
    pub fn copy_out_of(&self, place: usize, offset: usize, into: &mut [u8]) {
        let Member { at, region, .. } = &self.members[place];
        self.nics[at.nic].copy_out(region, offset, into);
    }

    /// Executes a barrier: returns when all ranks of the group have called it.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn barrier(&mut self) -> Result<(), RunError> {
        let barrier = Rc::clone(&self.barrier);
        self.run(&barrier, &|_, _| {})
    }

    /// Sum of the counters of all queue pairs; those of providers without counters are not included.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        for (nic, qpn) in self.owners.keys() {
            if let Some(counted) = self.nics[*nic].counters(*qpn) {
                sum.add(&counted);
            }
        }
        sum
    }

    /// Answers the peers' packets for `time`. A peer whose last acknowledgement was lost sends its packets again.
    pub fn linger(&mut self, time: Duration) -> Result<(), ProviderError> {
        let begin = Instant::now();
        while let Some(left) = time.checked_sub(begin.elapsed()) {
            self.wait(left)?;
        }
        Ok(())
    }

    /// Waits for at most `timeout` until a packet arrives or a timer is due, and processes it.
    fn wait(&mut self, timeout: Duration) -> Result<(), ProviderError> {
        if let [nic] = &mut self.nics[..] {
            return nic.wait(timeout);
        }
        let readable = self.nics.iter().map(|nic| nic.readable());
        if let Some(readable) = readable.collect::<Option<Vec<_>>>() {
            let due = self.nics.iter().filter_map(|nic| nic.due());
            let timeout = due.fold(timeout.min(LONGEST_WAIT), Duration::min);
            frames::wait_readable(readable, timeout)?;
            return self
                .nics
                .iter_mut()
                .try_for_each(|nic| nic.wait(Duration::ZERO));
        }
        // Some device has no descriptor to wait for: wait at one device, in turn.
        self.turn = (self.turn + 1) % self.nics.len();
        self.nics[self.turn].wait(timeout.min(LOOK))
    }

    /// Polls all NICs in turn until one has a completion; returns the NIC's index and the completion.
    fn poll(&mut self) -> Result<Option<(usize, Completion)>, ProviderError> {
        for _ in 0..self.nics.len() {
            self.turn = (self.turn + 1) % self.nics.len();
            if let Some(completion) = self.nics[self.turn].poll()? {
                return Ok(Some((self.turn, completion)));
            }
        }
        Ok(None)
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        for (nic, qpn) in self.owners.keys() {
            self.nics[*nic].destroy(*qpn);
        }
        for member in &self.members {
            self.nics[member.at.nic].deregister(&member.region);
        }
    }
}
