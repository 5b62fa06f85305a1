//! Executes a schedule: posts puts, copies and reduces data, and handles signals, each of which says that a put has arrived.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use collectives::{Action, Buffer, Progress, Schedule, Signal, Span};
use roce::completion::{Status, WorkKind};
use roce::{Completion, Local, ModifyError, PostError, Qpn, Remote, SendRequest, State, Work};

use super::refusal::{Open, RunError};
use super::{Group, GroupOptions, LocalRank, Member, Peer, Way};
use crate::provider::ProviderError;

/// Function that combines the second slice into the first, element by element.
pub type Combine<'c> = &'c dyn Fn(&mut [u8], &[u8]);

/// State of a schedule's execution by the ranks of this process.
struct Running<'s> {
    schedule: &'s Schedule,
    /// State of each rank of this process, in the order of the group's members.
    members: Vec<Carried<'s>>,
    /// Steps that need no NIC (copy, reduction, put through memory): member, step, action. Packets are processed in between.
    local: VecDeque<(usize, usize, Action)>,
    completions: u64,
}

/// State of a schedule's execution by one rank.
struct Carried<'s> {
    progress: Progress<'s>,
    /// Number of signals (arrived puts) that this rank gets from each peer in this schedule, by rank of the peer.
    expected: Vec<u32>,
    /// Number of puts in flight to each peer.
    posted: Vec<usize>,
    /// For each peer, its puts (step, action) that wait because the maximum number of puts is in flight to the peer.
    held: Vec<VecDeque<(usize, Action)>>,
}

impl<'s> Carried<'s> {
    fn new(schedule: &'s Schedule, signals: &Signals, rank: usize) -> Self {
        let ranks = schedule.ranks();
        let of = |pair: (usize, usize)| signals.get(&pair).copied().unwrap_or(0);
        Self {
            progress: Progress::new(&schedule.programs[rank]),
            expected: (0..ranks).map(|from| of((from, rank))).collect(),
            posted: vec![0; ranks],
            held: vec![VecDeque::new(); ranks],
        }
    }
}

impl Running<'_> {
    fn is_finished(&self) -> bool {
        let mut members = self.members.iter();
        members.all(|carried| carried.progress.is_finished())
    }
}

/// Number of signals (arrived puts) in a schedule, by (sending rank, receiving rank).
type Signals = BTreeMap<(usize, usize), u32>;

impl Group<'_> {
    /// Executes a schedule for all ranks of this process. A rank's memory has input, output and scratch buffer without gaps.
    ///
    /// # Errors
    /// [`RunError`]. The group cannot be used afterwards.
    pub fn run(&mut self, schedule: &Schedule, combine: Combine<'_>) -> Result<(), RunError> {
        self.fits(schedule)?;
        self.share_window(schedule)?;
        let signals = schedule.signals();
        let members = self.members.iter();
        let members = members.map(|member| Carried::new(schedule, &signals, member.at.rank));
        let mut running = Running {
            schedule,
            members: members.collect(),
            local: VecDeque::new(),
            completions: 0,
        };
        for member in 0..self.members.len() {
            for (peer, signal) in std::mem::take(&mut self.members[member].early) {
                self.handle_signal(&mut running, member, peer, signal)?;
            }
        }
        let patience = self.options.patience;
        let mut deadline = after(patience);
        let mut packets = self.packets();
        self.begin_all(&mut running)?;
        while !running.is_finished() {
            let completion = self.poll()?;
            let local = running.local.pop_front();
            let is_idle = completion.is_none() && local.is_none();
            if let Some((nic, completion)) = completion {
                self.completed(&mut running, nic, &completion)?;
            }
            if let Some((member, step, action)) = local {
                self.carry_out(&mut running, member, (step, action), combine)?;
            }
            if !is_idle {
                self.begin_all(&mut running)?;
                deadline = after(patience);
            } else if Instant::now() > deadline {
                // A long message takes a while until its completion.
                let before = std::mem::replace(&mut packets, self.packets());
                if packets == before {
                    let open = self.open_ends(&running);
                    return Err(RunError::Stuck { patience, open });
                }
                deadline = after(patience);
            } else {
                self.wait(patience)?;
            }
        }
        self.count(&signals);
        Ok(())
    }

    fn fits(&self, schedule: &Schedule) -> Result<(), RunError> {
        let bytes = |member: &Member| {
            let program = schedule.programs.get(member.at.rank);
            let lens = program.map_or(0, |program| program.lens.iter().sum());
            lens * schedule.element_bytes
        };
        let bytes = self.members.iter().map(bytes).max().unwrap_or(0);
        let GroupOptions {
            ranks, capacity, ..
        } = self.options;
        if schedule.ranks() != ranks || bytes > capacity {
            return Err(RunError::Size {
                schedule: schedule.ranks(),
                bytes,
                ranks,
                capacity,
            });
        }
        Ok(())
    }

    /// Sets for each queue pair how many packets may be in flight during the schedule. No packet is in flight before.
    fn share_window(&mut self, schedule: &Schedule) -> Result<(), RunError> {
        let each = (self.options.window / self.options.queue_pairs as u32).max(1);
        let traffic = self.ways.of_schedule(schedule);
        for member in &mut self.members {
            let nic = &mut self.nics[member.at.nic];
            let windows = traffic.windows(member.at.rank, each);
            for (peer, window) in windows.into_iter().enumerate() {
                if std::mem::replace(&mut member.windows[peer], window) == window {
                    continue;
                }
                for qpn in member.peers[peer].iter().flat_map(Peer::qpns) {
                    later(nic.set_window(*qpn, window))?;
                }
            }
        }
        Ok(())
    }

    /// Adds the numbers of signals in a finished schedule to each peer's totals (`sent`, `heard`).
    fn count(&mut self, signals: &Signals) {
        for member in &mut self.members {
            let rank = member.at.rank;
            for (peer, other) in member.peers.iter_mut().enumerate() {
                let Some(other) = other else { continue };
                let of = |pair: (usize, usize)| signals.get(&pair).copied().unwrap_or(0);
                other.sent = other.sent.wrapping_add(of((rank, peer)));
                other.heard = other.heard.wrapping_add(of((peer, rank)));
            }
        }
    }

    /// Posts all puts to other processes that can begin. Queues all other steps that can begin as local work (without a NIC).
    fn begin_all(&mut self, running: &mut Running<'_>) -> Result<(), RunError> {
        for member in 0..self.members.len() {
            let carried = &mut running.members[member];
            let mut free = Vec::new();
            for (posted, held) in carried.posted.iter().zip(&mut carried.held) {
                let room = self.queue.saturating_sub(*posted).min(held.len());
                free.extend(held.drain(..room));
            }
            for (step, action) in free {
                self.post(running, member, (step, action))?;
            }
            while let Some((step, action)) = running.members[member].progress.next_step() {
                match action {
                    Action::Put { to, .. } if self.is_elsewhere(member, to) => {
                        self.post(running, member, (step, action))?;
                    }
                    _ => running.local.push_back((member, step, action)),
                }
            }
        }
        Ok(())
    }

    fn is_elsewhere(&self, member: usize, rank: usize) -> bool {
        let peer = self.members[member].peers[rank].as_ref();
        peer.is_some_and(|peer| matches!(peer.way, Way::Queues { .. }))
    }

    /// Posts a put to a rank in another process.
    fn post(
        &mut self,
        running: &mut Running<'_>,
        member: usize,
        (step, action): (usize, Action),
    ) -> Result<(), RunError> {
        let LocalRank { rank, nic } = self.members[member].at;
        let Action::Put {
            to,
            source,
            target,
            signal,
        } = action
        else {
            return Ok(());
        };
        let Some(Peer { way, sent, .. }) = &self.members[member].peers[to] else {
            return Ok(());
        };
        let Way::Queues {
            qpns,
            rkey,
            address,
        } = way
        else {
            return Ok(());
        };
        let carried = &mut running.members[member];
        if carried.posted[to] >= self.queue {
            carried.held[to].push_back((step, action));
            return Ok(());
        }
        carried.posted[to] += 1;
        let (offset, len) = place(running.schedule, rank, source);
        let (there, _) = place(running.schedule, to, target);
        let region = &self.members[member].region;
        let work = Work::Write {
            local: Local {
                key: region.lkey,
                address: region.address + offset as u64,
                len: u32::try_from(len).map_err(|_| RunError::TooLong(len))?,
            },
            remote: Remote {
                address: address + there as u64,
                rkey: *rkey,
            },
            immediate: Some(sent.wrapping_add(signal.0).to_be_bytes()),
        };
        let request = SendRequest {
            wr_id: step as u64,
            work,
            signaled: true,
            solicited: false,
        };
        let qpn = qpns[signal.0 as usize % qpns.len()];
        Ok(later(self.nics[nic].post_send(qpn, request))?)
    }

    /// Performs one piece of local work: a copy, a reduction, or a put to a rank of this process.
    fn carry_out(
        &mut self,
        running: &mut Running<'_>,
        member: usize,
        (step, action): (usize, Action),
        combine: Combine<'_>,
    ) -> Result<(), RunError> {
        let LocalRank { rank, nic } = self.members[member].at;
        let mut told = None;
        match action {
            Action::Put {
                to,
                source,
                target,
                signal,
            } => {
                let (there, _) = place(running.schedule, to, target);
                self.put_here(running.schedule, member, (to, source, there));
                let peer = self.members[member].peers[to].as_ref();
                told = peer.map(|peer| (to, peer.sent.wrapping_add(signal.0)));
            }
            Action::Copy { source, target } => {
                let (offset, len) = place(running.schedule, rank, source);
                let (target, _) = place(running.schedule, rank, target);
                let region = self.members[member].region;
                self.nics[nic].copy((&region, offset), (&region, target), len);
            }
            Action::Reduce { source, target } => {
                let (from, mut to) = (
                    self.bytes(running.schedule, member, source),
                    self.bytes(running.schedule, member, target),
                );
                combine(&mut to, &from);
                let (offset, _) = place(running.schedule, rank, target);
                self.put_of(member, offset, &to);
            }
            // A wait finishes by its signal; `next_step` never returns it.
            Action::Wait { .. } => return Ok(()),
        }
        // `next_step` returned it, so this cannot fail.
        let _ = running.members[member].progress.done(step);
        let Some((to, signal)) = told else {
            return Ok(());
        };
        let (target, _) = self.member_of(to);
        self.handle_signal(running, target, rank, signal)
    }

    /// Performs a put into the memory region of another rank of this process.
    fn put_here(
        &mut self,
        schedule: &Schedule,
        member: usize,
        (to, source, there): (usize, Span, usize),
    ) {
        let (target, _) = self.member_of(to);
        let [from, to] = [member, target].map(|member| {
            let Member { at, region, .. } = self.members[member];
            (at, region)
        });
        let (offset, len) = place(schedule, from.0.rank, source);
        let Ok([source, target]) = self.nics.get_disjoint_mut([from.0.nic, to.0.nic]) else {
            // Both members are at one NIC.
            return self.nics[from.0.nic].copy((&from.1, offset), (&to.1, there), len);
        };
        match source.bytes(&from.1, offset, len) {
            Some(bytes) => target.put(&to.1, there, bytes),
            None => {
                let mut bytes = vec![0; len];
                source.copy_out(&from.1, offset, &mut bytes);
                target.put(&to.1, there, &bytes);
            }
        }
    }

    fn bytes(&self, schedule: &Schedule, member: usize, span: Span) -> Vec<u8> {
        let (offset, len) = place(schedule, self.members[member].at.rank, span);
        let mut bytes = vec![0; len];
        self.copy_out_of(member, offset, &mut bytes);
        bytes
    }

    fn completed(
        &mut self,
        running: &mut Running<'_>,
        nic: usize,
        completion: &Completion,
    ) -> Result<(), RunError> {
        running.completions += 1;
        let Some((member, peer)) = self.owners.get(&(nic, completion.qpn)).copied() else {
            return Ok(());
        };
        if completion.status != Status::Success {
            return Err(RunError::Failed {
                peer,
                status: completion.status,
                open: self.open_ends(running),
            });
        }
        let carried = &mut running.members[member];
        match completion.kind {
            WorkKind::ReceiveWriteImmediate => {}
            WorkKind::Write => {
                carried.posted[peer] = carried.posted[peer].saturating_sub(1);
                // It was posted for a step in progress, so this cannot fail.
                let _ = carried.progress.done(completion.wr_id as usize);
                return Ok(());
            }
            _ => return Err(RunError::Strange { peer }),
        }
        later(self.post_receive(member, peer, completion.qpn))?;
        let signal = u32::from_be_bytes(completion.immediate.unwrap_or_default());
        self.handle_signal(running, member, peer, signal)
    }

    /// Processes a signal from a peer. Its number counts on from the signals of all earlier schedules.
    fn handle_signal(
        &mut self,
        running: &mut Running<'_>,
        member: usize,
        peer: usize,
        signal: u32,
    ) -> Result<(), RunError> {
        let Member { peers, early, .. } = &mut self.members[member];
        let before = peers[peer].as_ref().map_or(0, |peer| peer.heard);
        let own = signal.wrapping_sub(before);
        let carried = &mut running.members[member];
        let expected = carried.expected[peer];
        let unknown = RunError::Signal { peer, signal };
        if own >= expected {
            // It belongs to a schedule that has not begun here: the peer is ahead.
            if own - expected >= MOST_EARLY || !early.insert((peer, signal)) {
                return Err(unknown);
            }
            return Ok(());
        }
        let told = carried.progress.signalled(peer, Signal(own));
        told.map_err(|_| unknown)
    }

    /// Total number of packets received from peers, as far as the providers count them.
    fn packets(&self) -> u64 {
        let told = self
            .owners
            .keys()
            .map(|(nic, qpn)| self.nics[*nic].arrivals(*qpn));
        told.flatten().fold(0, u64::wrapping_add)
    }

    fn member_of(&self, rank: usize) -> (usize, &Member) {
        let mut members = self.members.iter().enumerate();
        let found = members.find(|(_, member)| member.at.rank == rank);
        found.unwrap_or((0, &self.members[0]))
    }

    /// Unfinished communication of the first rank of this process that has not finished.
    fn open_ends(&self, running: &Running<'_>) -> Open {
        let mut members = running.members.iter().zip(&self.members);
        let open = members.find(|(carried, _)| !carried.progress.is_finished());
        let (carried, member) = open.unwrap_or((&running.members[0], &self.members[0]));
        let mut unheard = vec![0; self.options.ranks];
        for (peer, _) in carried.progress.waiting_for() {
            unheard[peer] += 1;
        }
        let unheard = unheard.into_iter().enumerate();
        let posted = carried.posted.iter().enumerate();
        let unanswered = posted.filter(|(_, puts)| **puts > 0);
        let unanswered = unanswered.filter_map(|(rank, puts)| {
            let qpns = member.peers[rank].as_ref()?.qpns();
            let nic = &self.nics[member.at.nic];
            let waits = |qpn: &&Qpn| nic.unanswered(**qpn).is_some();
            let qpn = *qpns.iter().find(waits).or(qpns.first())?;
            let psn = nic.unanswered(qpn).map(|psn| psn.bits());
            Some((rank, qpn, *puts, psn))
        });
        Open {
            rank: member.at.rank,
            unheard: unheard.filter(|(_, signals)| *signals > 0).collect(),
            unanswered: unanswered.collect(),
            completions: running.completions,
        }
    }
}

/// Maximum number of signals from a peer that may arrive before their schedule begins here.
const MOST_EARLY: u32 = 1 << 16;
/// Upper bound of a time without progress, so that adding it to the current time cannot overflow.
const DAY: Duration = Duration::from_secs(86_400);

fn after(patience: Duration) -> Instant {
    Instant::now() + patience.min(DAY)
}

/// Ignores the error that a failed queue pair takes no work requests: its completion will say why it failed.
fn later(posted: Result<(), ProviderError>) -> Result<(), ProviderError> {
    match posted {
        Err(ProviderError::Post(PostError::State(State::Error))) => Ok(()),
        Err(ProviderError::Modify(ModifyError::State(State::Error))) => Ok(()),
        posted => posted,
    }
}

/// Offset and length in bytes of a schedule's span in a rank's memory region.
fn place(schedule: &Schedule, rank: usize, span: Span) -> (usize, usize) {
    let lens = schedule.programs[rank].lens;
    let before: usize = Buffer::ALL[..span.buffer.index()]
        .iter()
        .map(|buffer| lens[buffer.index()])
        .sum();
    let bytes = schedule.element_bytes;
    ((before + span.start) * bytes, span.len * bytes)
}
