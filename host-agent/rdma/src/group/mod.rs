//! Ranks that carry out collectives over a provider: schedules of crate `collectives`, each put a WRITE with immediate.
//!
//! | file | what |
//! |---|---|
//! | `meeting.rs` | how ranks find each other |
//! | `store/` | where: in a folder, or at rank 0 over TCP |
//! | `window.rs` | how much a schedule may have under way to whom |
//! | `run.rs` | a schedule carried out |
//! | `refusal.rs` | what a rank knows when it is not |
//!
//! A rank has one region for its buffers, and queue pairs for each peer elsewhere. Ranks of one node may be members of one group,
//! which one thread carries out: they reach each other through memory, and each has its queue pairs at one of the node's NICs.
//!
//! A schedule that follows another may write where the other is still read: between two of them ranks meet in a barrier
//! ([`Group::barrier`]).

mod meeting;
mod refusal;
mod run;
mod store;
mod window;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use collectives::{Algorithm, BuildError, Collective, Options, Schedule, build};
use roce::packet::{Mtu, Service};
use roce::{Access, Completion, Counters, Local, QpConfig, Qpn, ReceiveRequest};

use crate::perftest::Keys;
use crate::provider::{Connection, Provider, ProviderError, Region};
use meeting::{Meeting, Told};
use window::Ways;

pub use meeting::MeetingError;
pub use refusal::{Open, RunError};
pub use store::{FolderStore, Store, StoreError, TcpStore, TorchStore};

/// Puts under way to a peer, and receives that are posted for its own. More wait, or are asked to.
const QUEUE: usize = 256;
/// The same of all peers together: each may complete.
const QUEUES: usize = 16_384;
/// The transport timer's code, 0.54 s: eight silences of a peer are 4.3 s, in which it may compute and look for no frames.
const TIMEOUT: u8 = 17;
/// Of several devices one is waited at for so long.
const LOOK: Duration = Duration::from_micros(500);
/// NICs are looked at again after so long, whatever they say.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// What ranks agree on before they meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupOptions {
    /// This rank, from 0.
    pub rank: usize,
    /// How many there are.
    pub ranks: usize,
    /// Bytes of all buffers of a rank, at most.
    pub capacity: usize,
    /// Queue pairs to each peer, at least 1: puts take turns.
    pub queue_pairs: usize,
    /// Packets that a queue on the way holds. All that a schedule has pass it share them: a NIC's puts to all peers, and on the
    /// other side those of all ranks to the peer's NIC.
    pub window: u32,
    /// The path MTU; `None`: the largest that all carry.
    pub mtu: Option<Mtu>,
    /// How long nothing may happen. Whoever computes for longer than four seconds between two schedules lets peers know that it is
    /// there by [`Group::linger`] now and then: where there is no device, nothing answers for it.
    pub patience: Duration,
}

/// Why there is no group.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// It has no such rank.
    #[error("rank {rank} of {ranks}: ranks count from 0")]
    Rank {
        /// This.
        rank: usize,
        /// All.
        ranks: usize,
    },
    /// A rank has no NIC, or nobody is here.
    #[error("ranks are bound to one of {0} NICs each, and there is at least one rank")]
    Nics(usize),
    /// Peers have other numbers of queue pairs.
    #[error("rank {peer} has {has} queue pairs for this rank, where there are {ours}")]
    QueuePairs {
        /// Whose.
        peer: usize,
        /// How many.
        has: usize,
        /// How many here.
        ours: usize,
    },
    /// Ranks do not find each other.
    #[error(transparent)]
    Meeting(#[from] MeetingError),
    /// This side.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The schedule.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A schedule was not carried out.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// A rank that is carried out here, and the NIC that all its queue pairs are bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The rank.
    pub rank: usize,
    /// Its place among the providers.
    pub nic: usize,
}

/// Another rank, as a member sees it.
#[derive(Debug)]
struct Peer {
    way: Way,
    /// Signals that were sent to it, and that came from it, by schedules before.
    sent: u32,
    heard: u32,
}

/// How a peer is reached.
#[derive(Debug)]
enum Way {
    /// It is a member too.
    Memory,
    /// It is elsewhere.
    Queues {
        qpns: Vec<Qpn>,
        /// Of the peer's region.
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

/// A rank that is carried out here.
#[derive(Debug)]
struct Member {
    at: Place,
    region: Region,
    /// By rank; `None`: itself.
    peers: Vec<Option<Peer>>,
    /// Signals of a schedule that has not begun here.
    early: BTreeSet<(usize, u32)>,
    /// By rank: packets that may be under way to it by each queue pair.
    windows: Vec<u32>,
}

/// A rank's place among the others; or those of several ranks, which reach each other through memory.
pub struct Group<'p> {
    nics: Vec<&'p mut dyn Provider>,
    options: GroupOptions,
    members: Vec<Member>,
    /// By NIC and queue pair: the member, and the peer.
    owners: BTreeMap<(usize, Qpn), (usize, usize)>,
    ways: Ways,
    barrier: Rc<Schedule>,
    /// Puts, and receives, of each peer.
    queue: usize,
    /// Which NIC is looked at first.
    turn: usize,
}

impl<'p> Group<'p> {
    /// Meets all others in a folder, and connects to each.
    ///
    /// # Errors
    /// [`GroupError`]: what this side opened is closed again.
    pub fn meet(
        provider: &'p mut dyn Provider,
        folder: &Path,
        options: GroupOptions,
    ) -> Result<Self, GroupError> {
        Self::meet_in(provider, &mut FolderStore::new(folder), options)
    }

    /// The same in another store, which is of no use then.
    ///
    /// # Errors
    /// [`GroupError`]: what this side opened is closed again.
    pub fn meet_in(
        provider: &'p mut dyn Provider,
        store: &mut dyn Store,
        options: GroupOptions,
    ) -> Result<Self, GroupError> {
        let at = Place {
            rank: options.rank,
            nic: 0,
        };
        Self::meet_as(vec![provider], store, &[at], options)
    }

    /// As several ranks of one node, by the NICs that it has: one thread carries them all out. The rank of the options is not
    /// looked at.
    ///
    /// # Errors
    /// As [`Group::meet`].
    pub fn meet_as(
        nics: Vec<&'p mut dyn Provider>,
        store: &mut dyn Store,
        places: &[Place],
        options: GroupOptions,
    ) -> Result<Self, GroupError> {
        let ranks = options.ranks;
        if let Some(Place { rank, .. }) = places.iter().find(|at| at.rank >= ranks) {
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
            meeting.tell(*rank, own, mtu)?;
        }
        let told = meeting.hear(|wait| group.wait(wait))?;
        group.ways = Ways::of(&told);
        let mtu = told.iter().map(|told| told.mtu).min().unwrap_or(mtu);
        for (member, own) in own.iter().enumerate() {
            group.connect(member, own, &told, mtu)?;
        }
        // Who is not connected yet does not hear those who are.
        for rank in &here {
            meeting.is_ready(*rank)?;
        }
        meeting.all_ready(|wait| group.wait(wait))?;
        Ok(group)
    }

    /// A member, with queue pairs for all peers elsewhere, and their receives.
    fn open(&mut self, at: Place, here: &[usize]) -> Result<Vec<(usize, Keys)>, GroupError> {
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
        told: &[Told],
        mtu: Mtu,
    ) -> Result<(), GroupError> {
        let Place { rank, nic } = self.members[member].at;
        for (peer, told) in told.iter().enumerate() {
            let mine: Vec<&Keys> = own
                .iter()
                .filter(|(other, _)| *other == peer)
                .map(|(_, keys)| keys)
                .collect();
            let theirs = told.of(rank);
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
            // A WRITE's bytes have a place of their own.
            local: Local {
                key: region.lkey,
                address: region.address,
                len: 0,
            },
        };
        self.nics[at.nic].post_receive(qpn, request)
    }

    /// This rank; the first of several.
    pub fn rank(&self) -> usize {
        self.members[0].at.rank
    }

    /// Bytes into the region: a schedule's input begins at 0.
    ///
    /// # Panics
    /// If they do not fit.
    pub fn put(&mut self, offset: usize, bytes: &[u8]) {
        self.put_of(0, offset, bytes);
    }

    /// The same of one of several ranks, by its place.
    ///
    /// # Panics
    /// If they do not fit, or there is no such place.
    pub fn put_of(&mut self, place: usize, offset: usize, bytes: &[u8]) {
        let Member { at, region, .. } = self.members[place];
        self.nics[at.nic].put(&region, offset, bytes);
    }

    /// Bytes out of the region: a schedule's output begins where its input ends.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn copy_out(&self, offset: usize, into: &mut [u8]) {
        self.copy_out_of(0, offset, into);
    }

    /// The same of one of several ranks, by its place.
    ///
    /// # Panics
    /// If there are not so many, or there is no such place.
    pub fn copy_out_of(&self, place: usize, offset: usize, into: &mut [u8]) {
        let Member { at, region, .. } = &self.members[place];
        self.nics[at.nic].copy_out(region, offset, into);
    }

    /// Returns when all ranks have called it.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn barrier(&mut self) -> Result<(), RunError> {
        let barrier = Rc::clone(&self.barrier);
        self.run(&barrier, &|_, _| {})
    }

    /// What the queue pairs of all peers have counted, where the provider tells.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        for (nic, qpn) in self.owners.keys() {
            if let Some(counted) = self.nics[*nic].counters(*qpn) {
                sum.add(&counted);
            }
        }
        sum
    }

    /// Goes on answering peers for a moment: the last acknowledgement of each may be lost.
    pub fn linger(&mut self, time: Duration) -> Result<(), ProviderError> {
        let begin = Instant::now();
        while let Some(left) = time.checked_sub(begin.elapsed()) {
            self.wait(left)?;
        }
        Ok(())
    }

    /// Waits until something has come or is due, and does what there is to do then.
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
        // A device has only a wait of its own.
        self.turn = (self.turn + 1) % self.nics.len();
        self.nics[self.turn].wait(timeout.min(LOOK))
    }

    /// Has all NICs do what there is, until one has a completion.
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
