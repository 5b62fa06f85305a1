//! A schedule carried out by a rank.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use collectives::{Action, Buffer, Progress, Schedule, Signal, Span};
use roce::completion::{Status, WorkKind};
use roce::{Completion, Local, ModifyError, PostError, Qpn, Remote, SendRequest, State, Work};

use super::Group;
use super::window::windows;
use crate::provider::ProviderError;

/// What a rank still waits for, when it waits no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// This rank.
    pub rank: usize,
    /// Peers whose puts have not come: rank, signals that are missing.
    pub unheard: Vec<(usize, usize)>,
    /// Peers that have not acknowledged: rank, queue pair, puts under way, and the oldest PSN without an answer.
    pub unanswered: Vec<(usize, Qpn, usize, Option<u32>)>,
    /// Completions before.
    pub completions: u64,
}

impl std::fmt::Display for Open {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "rank {} after {} completions",
            self.rank, self.completions
        )?;
        for (peer, signals) in &self.unheard {
            write!(f, "; rank {peer} has not put {signals} parts")?;
        }
        for (peer, qpn, puts, psn) in &self.unanswered {
            write!(
                f,
                "; rank {peer} has not acknowledged {puts} puts of queue pair {qpn}"
            )?;
            if let Some(psn) = psn {
                write!(f, " from PSN {psn:#08x} on")?;
            }
        }
        Ok(())
    }
}

/// Why a schedule was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Nothing has happened for so long.
    #[error("nothing has happened for {patience:?}: {open}")]
    Stuck {
        /// For how long.
        patience: Duration,
        /// What is open.
        open: Open,
    },
    /// Work failed.
    #[error("work with rank {peer} failed: {status}; {open}")]
    Failed {
        /// With whom.
        peer: usize,
        /// How.
        status: Status,
        /// What is open.
        open: Open,
    },
    /// A peer signals what it cannot.
    #[error("rank {peer} signals {signal}, which is of no schedule: does it carry out another?")]
    Signal {
        /// Who.
        peer: usize,
        /// What.
        signal: u32,
    },
    /// A peer sends what no rank does.
    #[error("rank {peer} sends messages, where ranks write: is it another program?")]
    Strange {
        /// Who.
        peer: usize,
    },
    /// A put is longer than a message can be.
    #[error("a put of {0} bytes: more than a message has; build the schedule in tiles")]
    TooLong(usize),
    /// The schedule is for others.
    #[error(
        "the schedule is for {schedule} ranks and {bytes} bytes: this is a group of {ranks} with {capacity}"
    )]
    Size {
        /// Ranks that it is for.
        schedule: usize,
        /// Bytes that this rank would need.
        bytes: usize,
        /// Ranks that there are.
        ranks: usize,
        /// Bytes that there are.
        capacity: usize,
    },
    /// This side.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

/// Combines the second into the first, element by element.
pub type Combine<'c> = &'c dyn Fn(&mut [u8], &[u8]);

/// What is under way.
struct Running<'s> {
    schedule: &'s Schedule,
    progress: Progress<'s>,
    /// By rank: signals that come from it.
    expected: Vec<u32>,
    /// By rank: puts that are posted.
    posted: Vec<usize>,
    /// By rank: puts that found a full queue.
    held: Vec<VecDeque<(usize, Action)>>,
    completions: u64,
}

impl Group<'_> {
    /// Carries out this rank's part. Input, output and scratch lie one behind the other in the region.
    ///
    /// # Errors
    /// [`RunError`]. The group is of no use then.
    pub fn run(&mut self, schedule: &Schedule, combine: Combine<'_>) -> Result<(), RunError> {
        let rank = self.options.rank;
        let lens = schedule.programs.get(rank).map(|program| program.lens);
        let bytes = lens.map_or(0, |lens| {
            lens.iter().sum::<usize>() * schedule.element_bytes
        });
        if schedule.ranks() != self.options.ranks || bytes > self.options.capacity {
            return Err(RunError::Size {
                schedule: schedule.ranks(),
                bytes,
                ranks: self.options.ranks,
                capacity: self.options.capacity,
            });
        }
        self.share_window(schedule)?;
        let signals = schedule.signals();
        let of = |pair: (usize, usize)| signals.get(&pair).copied().unwrap_or(0);
        let mut running = Running {
            schedule,
            expected: (0..schedule.ranks()).map(|from| of((from, rank))).collect(),
            progress: Progress::new(&schedule.programs[rank]),
            posted: vec![0; schedule.ranks()],
            held: vec![VecDeque::new(); schedule.ranks()],
            completions: 0,
        };
        for (peer, signal) in std::mem::take(&mut self.early) {
            self.heard(&mut running, peer, signal)?;
        }
        let patience = self.options.patience;
        let mut deadline = after(patience);
        let mut packets = self.packets();
        self.work(&mut running, combine)?;
        while !running.progress.is_finished() {
            match self.provider.poll()? {
                Some(completion) => {
                    self.completed(&mut running, &completion)?;
                    self.work(&mut running, combine)?;
                    deadline = after(patience);
                }
                // A long message has no completion for a while.
                None if self.packets() != packets => {
                    packets = self.packets();
                    deadline = after(patience);
                }
                None if Instant::now() > deadline => {
                    let open = self.open_ends(&running);
                    return Err(RunError::Stuck { patience, open });
                }
                None => self.provider.wait(patience)?,
            }
        }
        // The next schedule's signals begin where these end.
        for ((from, to), count) in signals {
            let (peer, is_sent) = match (from == rank, to == rank) {
                (true, false) => (to, true),
                (false, true) => (from, false),
                _ => continue,
            };
            if let Some(peer) = &mut self.peers[peer] {
                match is_sent {
                    true => peer.sent = peer.sent.wrapping_add(count),
                    false => peer.heard = peer.heard.wrapping_add(count),
                }
            }
        }
        Ok(())
    }

    /// Nothing is under way between two schedules.
    fn share_window(&mut self, schedule: &Schedule) -> Result<(), RunError> {
        let windows = windows(schedule, self.options.rank, self.options.window);
        for (to, window) in windows.into_iter().enumerate() {
            let Some(peer) = self.peers[to] else { continue };
            if std::mem::replace(&mut self.windows[to], window) != window {
                later(self.provider.set_window(peer.qpn, window))?;
            }
        }
        Ok(())
    }

    /// Begins all that can begin.
    fn work(&mut self, running: &mut Running<'_>, combine: Combine<'_>) -> Result<(), RunError> {
        for peer in 0..running.held.len() {
            while running.posted[peer] < self.queue
                && let Some((step, action)) = running.held[peer].pop_front()
            {
                self.begin(running, step, action, combine)?;
            }
        }
        while let Some((step, action)) = running.progress.next_step() {
            self.begin(running, step, action, combine)?;
        }
        Ok(())
    }

    fn begin(
        &mut self,
        running: &mut Running<'_>,
        step: usize,
        action: Action,
        combine: Combine<'_>,
    ) -> Result<(), RunError> {
        let rank = self.options.rank;
        match action {
            Action::Put {
                to,
                source,
                target,
                signal,
            } => {
                let Some(peer) = self.peers[to] else {
                    return Ok(());
                };
                if running.posted[to] >= self.queue {
                    running.held[to].push_back((step, action));
                    return Ok(());
                }
                let (offset, len) = place(running.schedule, rank, source);
                let (there, _) = place(running.schedule, to, target);
                let work = Work::Write {
                    local: Local {
                        key: self.region.lkey,
                        address: self.region.address + offset as u64,
                        len: u32::try_from(len).map_err(|_| RunError::TooLong(len))?,
                    },
                    remote: Remote {
                        address: peer.address + there as u64,
                        rkey: peer.rkey,
                    },
                    immediate: Some(peer.sent.wrapping_add(signal.0).to_be_bytes()),
                };
                let request = SendRequest {
                    wr_id: step as u64,
                    work,
                    signaled: true,
                    solicited: false,
                };
                later(self.provider.post_send(peer.qpn, request))?;
                running.posted[to] += 1;
                return Ok(());
            }
            Action::Copy { source, target } => {
                let bytes = self.bytes(running.schedule, source);
                let (offset, _) = place(running.schedule, rank, target);
                self.put(offset, &bytes);
            }
            Action::Reduce { source, target } => {
                let (from, mut to) = (
                    self.bytes(running.schedule, source),
                    self.bytes(running.schedule, target),
                );
                combine(&mut to, &from);
                let (offset, _) = place(running.schedule, rank, target);
                self.put(offset, &to);
            }
            // Its signal says when it is done.
            Action::Wait { .. } => return Ok(()),
        }
        // It was just handed out.
        let _ = running.progress.done(step);
        Ok(())
    }

    fn bytes(&self, schedule: &Schedule, span: Span) -> Vec<u8> {
        let (offset, len) = place(schedule, self.options.rank, span);
        let mut bytes = vec![0; len];
        self.copy_out(offset, &mut bytes);
        bytes
    }

    fn completed(
        &mut self,
        running: &mut Running<'_>,
        completion: &Completion,
    ) -> Result<(), RunError> {
        running.completions += 1;
        let mut peers = self.peers.iter().enumerate();
        let of = peers.find(|(_, peer)| peer.is_some_and(|peer| peer.qpn == completion.qpn));
        let Some((peer, _)) = of else {
            return Ok(());
        };
        if completion.status != Status::Success {
            return Err(RunError::Failed {
                peer,
                status: completion.status,
                open: self.open_ends(running),
            });
        }
        match completion.kind {
            WorkKind::ReceiveWriteImmediate => {}
            WorkKind::Write => {
                running.posted[peer] = running.posted[peer].saturating_sub(1);
                // It was posted for a step under way.
                let _ = running.progress.done(completion.wr_id as usize);
                return Ok(());
            }
            _ => return Err(RunError::Strange { peer }),
        }
        later(self.post_receive(peer, completion.qpn))?;
        let signal = u32::from_be_bytes(completion.immediate.unwrap_or_default());
        self.heard(running, peer, signal)
    }

    /// A signal of a peer, counted over all schedules.
    fn heard(
        &mut self,
        running: &mut Running<'_>,
        peer: usize,
        signal: u32,
    ) -> Result<(), RunError> {
        let before = self.peers[peer].map_or(0, |peer| peer.heard);
        let own = signal.wrapping_sub(before);
        let expected = running.expected[peer];
        let unknown = RunError::Signal { peer, signal };
        if own >= expected {
            // Of a schedule that has not begun here: the peer is ahead.
            if own - expected >= MOST_EARLY || !self.early.insert((peer, signal)) {
                return Err(unknown);
            }
            return Ok(());
        }
        let told = running.progress.signalled(peer, Signal(own));
        told.map_err(|_| unknown)
    }

    /// Packets that have come from all peers, where the provider tells.
    fn packets(&self) -> u64 {
        let peers = self.peers.iter().flatten();
        let counters = peers.filter_map(|peer| self.provider.counters(peer.qpn));
        counters.map(|counters| counters.rcvd_pkts).sum()
    }

    fn open_ends(&self, running: &Running<'_>) -> Open {
        let mut unheard = vec![0; self.options.ranks];
        for (peer, _) in running.progress.waiting_for() {
            unheard[peer] += 1;
        }
        let unheard = unheard.into_iter().enumerate();
        let posted = running.posted.iter().enumerate();
        let unanswered = posted
            .filter(|(_, puts)| **puts > 0)
            .filter_map(|(rank, puts)| {
                let qpn = self.peers[rank]?.qpn;
                let psn = self.provider.unanswered(qpn).map(|psn| psn.bits());
                Some((rank, qpn, *puts, psn))
            });
        Open {
            rank: self.options.rank,
            unheard: unheard.filter(|(_, signals)| *signals > 0).collect(),
            unanswered: unanswered.collect(),
            completions: running.completions,
        }
    }
}

/// Signals of schedules that have not begun here, from each peer.
const MOST_EARLY: u32 = 1 << 16;
/// Longer than anybody waits.
const DAY: Duration = Duration::from_secs(86_400);

fn after(patience: Duration) -> Instant {
    Instant::now() + patience.min(DAY)
}

/// A queue pair that has failed takes no work; why it has failed a completion says, which waits to be polled.
fn later(posted: Result<(), ProviderError>) -> Result<(), ProviderError> {
    match posted {
        Err(ProviderError::Post(PostError::State(State::Error))) => Ok(()),
        Err(ProviderError::Modify(ModifyError::State(State::Error))) => Ok(()),
        posted => posted,
    }
}

/// Where a span lies in a rank's region, in bytes, and how long it is.
fn place(schedule: &Schedule, rank: usize, span: Span) -> (usize, usize) {
    let lens = schedule.programs[rank].lens;
    let before: usize = Buffer::ALL[..span.buffer.index()]
        .iter()
        .map(|buffer| lens[buffer.index()])
        .sum();
    let bytes = schedule.element_bytes;
    ((before + span.start) * bytes, span.len * bytes)
}
