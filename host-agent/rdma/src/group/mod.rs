//! Ranks that carry out collectives over a provider: schedules of crate `collectives`, each put a WRITE with immediate.
//!
//! | file | what |
//! |---|---|
//! | `meeting.rs` | how ranks find each other |
//! | `store/` | where: in a folder, or at rank 0 over TCP |
//! | `run.rs` | a schedule carried out, and what a rank knows when it is not |
//!
//! A rank has one region for its buffers, and a queue pair for each peer. A schedule that follows another may write where the
//! other is still read: between two of them ranks meet in a barrier ([`Group::barrier`]).

mod meeting;
mod run;
mod store;

use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use collectives::{Algorithm, BuildError, Collective, Options, Schedule, build};
use roce::packet::{Mtu, Service};
use roce::{Access, Local, QpConfig, Qpn, ReceiveRequest};

use crate::perftest::Keys;
use crate::provider::{Connection, Provider, ProviderError, Region, linger};
use meeting::Meeting;

pub use meeting::MeetingError;
pub use run::{Open, RunError};
pub use store::{FolderStore, Store, StoreError, TcpStore};

/// Puts under way to a peer, and receives that are posted for its own. More wait, or are asked to.
const QUEUE: usize = 256;
/// The same of all peers together: each may complete.
const QUEUES: usize = 16_384;
/// The transport timer's code, 0.54 s: eight silences of a peer are 4.3 s, in which it may compute and look for no frames.
const TIMEOUT: u8 = 17;

/// What ranks agree on before they meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupOptions {
    /// This rank, from 0.
    pub rank: usize,
    /// How many there are.
    pub ranks: usize,
    /// Bytes of all buffers of a rank, at most.
    pub capacity: usize,
    /// Packets without an answer to each peer, at most: queues on the way hold that of all who send.
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

/// A peer.
#[derive(Debug, Clone, Copy)]
struct Peer {
    qpn: Qpn,
    /// Of the peer's region.
    rkey: u32,
    address: u64,
    /// Signals that were sent to it, and that came from it, by schedules before.
    sent: u32,
    heard: u32,
}

/// A rank's place among the others.
pub struct Group<'p> {
    provider: &'p mut dyn Provider,
    options: GroupOptions,
    region: Region,
    /// By rank; `None`: this one.
    peers: Vec<Option<Peer>>,
    barrier: Rc<Schedule>,
    /// Signals of a schedule that has not begun here.
    early: BTreeSet<(usize, u32)>,
    /// Puts, and receives, of each peer.
    queue: usize,
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
        let GroupOptions { rank, ranks, .. } = options;
        if rank >= ranks {
            return Err(GroupError::Rank { rank, ranks });
        }
        let collective = Collective::Barrier { ranks };
        let barrier = build(&collective, Algorithm::Dissemination, &Options::default())?;
        let region = provider.register(options.capacity.max(1), Access::ALL)?;
        let mut group = Self {
            provider,
            options,
            region,
            peers: vec![None; ranks],
            barrier: Rc::new(barrier),
            early: BTreeSet::new(),
            queue: (QUEUES / ranks).clamp(1, QUEUE),
        };
        let mut own = Vec::new();
        for peer in (0..ranks).filter(|peer| *peer != rank) {
            own.push((peer, group.open(peer)?));
        }
        let mut meeting = Meeting {
            store,
            rank,
            ranks,
            patience: options.patience,
        };
        let most = group.provider.max_mtu();
        let mtu = options.mtu.unwrap_or(most);
        let (theirs, mtu) = meeting.exchange(&own, mtu, |wait| group.provider.wait(wait))?;
        for (peer, keys) in theirs {
            group.connect(peer, &own, &keys, mtu)?;
        }
        // Who is not connected yet does not hear those who are.
        meeting.ready(|wait| group.provider.wait(wait))?;
        Ok(group)
    }

    /// A queue pair for a peer, with its receives.
    fn open(&mut self, peer: usize) -> Result<Keys, GroupError> {
        let config = QpConfig {
            max_sends: self.queue,
            max_receives: self.queue,
            ..QpConfig::new(Service::Reliable)
        };
        let qpn = self.provider.create(config, Access::ALL)?;
        self.peers[peer] = Some(Peer {
            qpn,
            rkey: 0,
            address: 0,
            sent: 0,
            heard: 0,
        });
        for _ in 0..self.queue {
            self.post_receive(peer, qpn)?;
        }
        Ok(Keys {
            reads: 1,
            qpn,
            psn: self.provider.draw_psn(),
            rkey: self.region.rkey,
            address: self.region.address,
            gid: self.provider.gid(),
        })
    }

    fn connect(
        &mut self,
        peer: usize,
        own: &[(usize, Keys)],
        theirs: &Keys,
        mtu: Mtu,
    ) -> Result<(), GroupError> {
        let mine = own.iter().find(|(other, _)| *other == peer);
        if let (Some((_, mine)), Some(at)) = (mine, &mut self.peers[peer]) {
            (at.rkey, at.address) = (theirs.rkey, theirs.address);
            let connection = Connection {
                window: self.options.window,
                timeout: TIMEOUT,
                ..Connection::new(theirs.gid, theirs.qpn, theirs.psn, mine.psn, mtu)
            };
            self.provider.connect(mine.qpn, &connection)?;
        }
        Ok(())
    }

    fn post_receive(&mut self, peer: usize, qpn: Qpn) -> Result<(), ProviderError> {
        let request = ReceiveRequest {
            wr_id: peer as u64,
            // A WRITE's bytes have a place of their own.
            local: Local {
                key: self.region.lkey,
                address: self.region.address,
                len: 0,
            },
        };
        self.provider.post_receive(qpn, request)
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.options.rank
    }

    /// Bytes into the region: a schedule's input begins at 0.
    ///
    /// # Panics
    /// If they do not fit.
    pub fn put(&mut self, offset: usize, bytes: &[u8]) {
        self.provider.put(&self.region, offset, bytes);
    }

    /// Bytes out of the region: a schedule's output begins where its input ends.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn copy_out(&self, offset: usize, into: &mut [u8]) {
        self.provider.copy_out(&self.region, offset, into);
    }

    /// Returns when all ranks have called it.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn barrier(&mut self) -> Result<(), RunError> {
        let barrier = Rc::clone(&self.barrier);
        self.run(&barrier, &|_, _| {})
    }

    /// Goes on answering peers for a moment: the last acknowledgement of each may be lost.
    pub fn linger(&mut self, time: Duration) -> Result<(), ProviderError> {
        linger(self.provider, time)
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        for peer in self.peers.iter().flatten() {
            self.provider.destroy(peer.qpn);
        }
        self.provider.deregister(&self.region);
    }
}
