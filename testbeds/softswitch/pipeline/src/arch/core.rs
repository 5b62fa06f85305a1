//! State of a switch that all architectures share: frame, tables and externs, replication, queues, the recirculation link.

use super::tofino::Chip;
use crate::config::{Config, Executor, Ports};
use crate::error::ReplicationError;
use crate::job::{Job, Path};
use crate::queues::{Admission, Queues, sending_ns};
use crate::reference::Reference;
use crate::state::State;
use crate::stats::{DropReason, Stats};
use p4lang::runtime::{CloneSession, MulticastGroup, Replica};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Maximum number of unused buffers kept for reuse.
const POOL_LIMIT: usize = 1024;
/// Maximum number of multicast groups, of clone sessions, and of copies of each of them.
const REPLICATION_LIMIT: usize = 65_536;

#[derive(Debug)]
pub(crate) struct Core {
    pub config: Config,
    pub frame: Vec<u64>,
    pub state: State,
    pub replication: Replication,
    pub stats: Stats,
    pub trace: Vec<u32>,
    /// The executor that currently runs the program's blocks.
    pub executor: Executor,
    /// The interpreter that runs blocks instead of the register machine, or beside it; `None` if only the machine runs.
    pub reference: Option<Box<Reference>>,
    /// Descriptions of the differences between the results of both executors.
    pub differences: Vec<String>,
    pub work: VecDeque<Job>,
    pub transmits: VecDeque<(u32, Vec<u8>)>,
    /// Settings of a Tofino other than tables: mirror sessions, multicast trees, packet generator.
    pub tofino: Box<Chip>,
    pub queues: Queues,
    /// Time in nanoseconds at which the packet of the current event arrived at its port.
    pub arrived_ns: u64,
    recirculation: Recirculation,
    pool: Vec<Vec<u8>>,
    metas: Vec<Vec<u64>>,
    budget: u32,
}

impl Core {
    pub fn new(config: Config, frame: Vec<u64>, state: State) -> Core {
        let queues = Queues::new(config.egress_queues.clone());
        Core {
            executor: config.executor,
            config,
            frame,
            state,
            replication: Replication::default(),
            stats: Stats::default(),
            trace: Vec::new(),
            reference: None,
            differences: Vec::new(),
            work: VecDeque::new(),
            transmits: VecDeque::new(),
            tofino: Box::default(),
            queues,
            arrived_ns: 0,
            recirculation: Recirculation::default(),
            pool: Vec::new(),
            metas: Vec::new(),
            budget: 0,
        }
    }

    /// Starts an event at `now_ns`: sets the number of further passes that it may cause.
    pub fn start_event(&mut self, now_ns: u64) {
        self.queues.set_now(now_ns);
        self.arrived_ns = now_ns;
        self.allow_passes();
    }

    /// Sets the number of further passes that a packet which leaves a queue may cause.
    pub fn allow_passes(&mut self) {
        self.budget = self.config.max_work;
    }

    /// Takes an empty byte buffer from the pool, or creates one.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.pool.pop().unwrap_or_default()
    }

    /// Returns a byte buffer to the pool.
    pub fn recycle(&mut self, mut buffer: Vec<u8>) {
        if self.pool.len() < POOL_LIMIT && buffer.capacity() > 0 {
            buffer.clear();
            self.pool.push(buffer);
        }
    }

    /// Returns the buffers of a finished job to the pools.
    pub fn finished(&mut self, job: Job) {
        self.recycle(job.bytes);
        self.recycle_image(job.meta);
    }

    /// Takes an empty buffer for saved slots of the frame from the pool, or creates one.
    pub fn image(&mut self) -> Vec<u64> {
        self.metas.pop().unwrap_or_default()
    }

    /// Returns a buffer for saved slots to the pool.
    pub fn recycle_image(&mut self, mut image: Vec<u64>) {
        image.clear();
        if self.metas.len() < POOL_LIMIT && image.capacity() > 0 {
            self.metas.push(image);
        }
    }

    pub fn is_port(&self, port: u32) -> bool {
        match &self.config.ports {
            Ports::Any => true,
            Ports::Only(ports) => {
                ports.contains(&port)
                    || port == self.config.cpu_port
                    || port == crate::port_numbers::RECIRCULATE_PORT
            }
        }
    }

    /// Queues a further pass of a packet, such as a clone, or drops it at the limit of passes. `meta` copies the slots to keep.
    pub fn queue(&mut self, mut job: Job, bytes: &[u8], meta: impl FnOnce(&[u64], &mut Vec<u64>)) {
        if job.passes > self.config.max_passes {
            self.stats.drop(DropReason::PassLimit);
            return;
        }
        let Some(budget) = self.budget.checked_sub(1) else {
            self.stats.drop(DropReason::WorkLimit);
            return;
        };
        self.budget = budget;
        job.bytes = self.buffer();
        job.bytes.extend_from_slice(bytes);
        job.meta = self.metas.pop().unwrap_or_default();
        meta(&self.frame, &mut job.meta);
        self.work.push_back(job);
    }

    /// Returns true if a packet may pass egress of its port now. Otherwise it is dropped, or waits for the port as the [`Job`]
    /// that `job` creates, with the slots of the frame that `meta` copies for its egress.
    #[inline]
    pub fn passes_straight(
        &mut self,
        now_ns: u64,
        (port, class): (u32, u64),
        bytes: &[u8],
        job: impl FnOnce() -> Job,
        meta: impl FnOnce(&[u64], &mut Vec<u64>),
    ) -> bool {
        match self.queues.admit(now_ns, port, class) {
            Admission::Straight => true,
            // These ports have their own links.
            _ if port == self.config.cpu_port || port == crate::port_numbers::RECIRCULATE_PORT => {
                true
            }
            Admission::Full => {
                self.stats.drop(DropReason::QueueFull);
                false
            }
            Admission::Queue => {
                let mut waiting = job();
                waiting.bytes = self.buffer();
                waiting.bytes.extend_from_slice(bytes);
                waiting.meta = self.image();
                meta(&self.frame, &mut waiting.meta);
                self.queues.push(now_ns, waiting);
                false
            }
        }
    }

    pub fn transmit(&mut self, port: u32, bytes: Vec<u8>) {
        if self.transmits.len() >= self.config.transmit_limit {
            self.stats.drop(DropReason::TransmitFull);
            self.recycle(bytes);
        } else {
            self.stats.transmitted += 1;
            if port != self.config.cpu_port {
                self.queues.sent(port, bytes.len());
            }
            self.transmits.push_back((port, bytes));
        }
    }

    /// Puts a packet on the recirculation link, or drops it if too many are on it.
    pub fn recirculate(
        &mut self,
        now_ns: u64,
        port: u32,
        bytes: Vec<u8>,
        meta: impl FnOnce(&[u64], &mut Vec<u64>),
    ) {
        let link = self.config.recirculation;
        if self.recirculation.queue.len() >= link.queue {
            self.stats.drop(DropReason::RecirculationFull);
            self.recycle(bytes);
            return;
        }
        let sending = link
            .rate_bps
            .map_or(0, |rate| sending_ns(bytes.len(), rate));
        let sent = self
            .recirculation
            .free_ns
            .max(now_ns)
            .saturating_add(sending);
        self.recirculation.free_ns = sent;
        // At least 1 ns, so that time advances in every loop.
        let ready = sent.saturating_add(link.latency_ns.max(1));
        let mut image = self.metas.pop().unwrap_or_default();
        meta(&self.frame, &mut image);
        self.stats.recirculated += 1;
        let job = Job {
            path: Path::Recirculate,
            port,
            bytes,
            meta: image,
            ..Job::default()
        };
        self.recirculation.queue.push_back((ready, job));
    }

    /// Time in nanoseconds at which the next packet leaves the recirculation link; `None` if the link is empty.
    pub fn next_recirculated_ns(&self) -> Option<u64> {
        self.recirculation.queue.front().map(|(ready, _)| *ready)
    }

    /// Takes a packet that has left the recirculation link by now; `None` if there is none.
    pub fn recirculated(&mut self, now_ns: u64) -> Option<Job> {
        self.recirculation
            .queue
            .pop_front_if(|(ready, _)| *ready <= now_ns)
            .map(|(_, job)| job)
    }

    /// Number of packets on the recirculation link.
    pub fn recirculating(&self) -> usize {
        self.recirculation.queue.len()
    }
}

/// The link that carries packets from the recirculation port back to ingress.
#[derive(Debug, Default)]
struct Recirculation {
    queue: VecDeque<(u64, Job)>,
    free_ns: u64,
}

/// The replicas, class and truncation of a clone session, as the data plane uses them.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub replicas: Arc<[Replica]>,
    pub class: u32,
    length: u32,
}

impl Session {
    /// The bytes of a packet that a copy carries: cut to the session's maximum length, unless that is 0.
    pub fn cut<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        match self.length {
            0 => bytes,
            n => &bytes[..bytes.len().min(n as usize)],
        }
    }
}

/// Multicast groups and clone sessions by id.
#[derive(Debug, Default)]
pub(crate) struct Replication {
    groups: BTreeMap<u32, Arc<[Replica]>>,
    sessions: BTreeMap<u32, Session>,
}

impl Replication {
    pub fn group(&self, id: u32) -> Option<Arc<[Replica]>> {
        self.groups.get(&id).cloned()
    }

    /// The clone session with this id; session 0 is `PSA_CLONE_SESSION_TO_CPU`. `None` if it does not exist.
    pub fn session(&self, id: u32, cpu_port: u32) -> Option<Session> {
        if id == 0 {
            let replicas = Arc::new([Replica {
                port: cpu_port,
                instance: 0,
            }]);
            return Some(Session {
                replicas,
                class: 0,
                length: 0,
            });
        }
        self.sessions.get(&id).cloned()
    }

    pub fn groups(&self) -> Vec<MulticastGroup> {
        self.groups
            .iter()
            .map(|(id, r)| MulticastGroup {
                id: *id,
                replicas: r.to_vec(),
            })
            .collect()
    }

    pub fn sessions(&self) -> Vec<CloneSession> {
        let session = |(id, s): (&u32, &Session)| CloneSession {
            id: *id,
            replicas: s.replicas.to_vec(),
            class_of_service: s.class,
            packet_length_bytes: s.length,
        };
        self.sessions.iter().map(session).collect()
    }

    /// Adds or replaces a multicast group; returns the previous group, if it existed.
    pub fn set_group(
        &mut self,
        group: &MulticastGroup,
    ) -> Result<Option<MulticastGroup>, ReplicationError> {
        check(group.id, &group.replicas, self.groups.len())?;
        let old = self.groups.insert(group.id, group.replicas.clone().into());
        Ok(old.map(|r| MulticastGroup {
            id: group.id,
            replicas: r.to_vec(),
        }))
    }

    pub fn delete_group(&mut self, id: u32) -> Result<MulticastGroup, ReplicationError> {
        let replicas = self.groups.remove(&id).ok_or(ReplicationError::NotFound)?;
        Ok(MulticastGroup {
            id,
            replicas: replicas.to_vec(),
        })
    }

    /// Adds or replaces a clone session; returns the previous session, if it existed.
    pub fn set_session(
        &mut self,
        session: &CloneSession,
    ) -> Result<Option<CloneSession>, ReplicationError> {
        check(session.id, &session.replicas, self.sessions.len())?;
        let new = Session {
            replicas: session.replicas.clone().into(),
            class: session.class_of_service,
            length: session.packet_length_bytes,
        };
        let old = self.sessions.insert(session.id, new);
        Ok(old.map(|s| CloneSession {
            id: session.id,
            replicas: s.replicas.to_vec(),
            class_of_service: s.class,
            packet_length_bytes: s.length,
        }))
    }

    pub fn delete_session(&mut self, id: u32) -> Result<CloneSession, ReplicationError> {
        let old = self
            .sessions()
            .into_iter()
            .find(|s| s.id == id)
            .ok_or(ReplicationError::NotFound)?;
        self.sessions.remove(&id);
        Ok(old)
    }
}

fn check(id: u32, replicas: &[Replica], count: usize) -> Result<(), ReplicationError> {
    if id == 0 {
        return Err(ReplicationError::ZeroId);
    }
    if replicas.len() > REPLICATION_LIMIT {
        return Err(ReplicationError::TooMany(replicas.len(), REPLICATION_LIMIT));
    }
    let mut seen: Vec<(u32, u16)> = replicas.iter().map(|r| (r.port, r.instance)).collect();
    seen.sort_unstable();
    if let Some(twice) = seen.windows(2).find(|w| w[0] == w[1]) {
        let (port, instance) = twice[0];
        return Err(ReplicationError::Twice { port, instance });
    }
    if count >= REPLICATION_LIMIT {
        return Err(ReplicationError::Full);
    }
    Ok(())
}
