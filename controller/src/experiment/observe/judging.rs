//! Runs the judge in a separate thread: it decides, while frames pass the switches' ports, which of them faults hit.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use proof::{Conditions, Judge, Loser, Loss, Observation, Proof, STEP_NS};
use testbeds::capture::{Handed, Lost, Record};

use super::captures::{Keeper, KeptFrames};
use super::hit_log::{HitLog, Marks};
use super::minute_log::MinuteLog;
use super::spool::{Disk, Spool, SpoolError, Spooled};
use crate::experiment::Planned;
use crate::experiment::fleet::judge_log::JudgeLog;

/// The judge's counts so far, for each injection of the plan (a fault on a flow); the judge's thread updates them.
pub type SoFar = Arc<Mutex<Vec<Observation>>>;

/// Messages to the judge's thread.
enum Message {
    Frames(Spooled),
    Lost(Lost),
    /// The recorder has handed over all frames with time stamps before this time, in nanoseconds since 1970.
    Until(u64),
    /// No frame passes any more; contains the final counts of the switches.
    End(Box<SwitchCounts>),
}

/// Final counts that the switches report at the end of a run.
pub struct SwitchCounts {
    /// For each injection of the plan (a fault on a flow at a switch): number of hits that the switch counted.
    pub fired: Vec<u64>,
    /// Counts of each trigger of the scenario, in declared order.
    pub triggers: Vec<proof::TriggerCount>,
    /// Frames that the switches report as lost in rings or queues, or as passed after the faults' lease had ended.
    pub losses: Vec<Loss>,
}

/// The judge's thread of a running experiment, and the queue of frames to it.
pub struct Judging {
    sender: Sender<Message>,
    spool: Arc<Spool>,
    so_far: SoFar,
    thread: JoinHandle<JudgedRun>,
}

/// Results of the judge's thread at the end of a run.
#[derive(Default)]
pub struct JudgedRun {
    /// The verdict on each injection, trigger and flow.
    pub proof: Proof,
    /// Counts of the frames that the run's folder keeps.
    pub kept: KeptFrames,
    /// Hits over time, merged into marks.
    pub marks: Marks,
}

impl Judging {
    /// Starts the judge's thread. `ports`: switch and number of each recorded port. `log`: steps, announcements and outages, as
    /// the controller writes them. `folder`: where kept frames and the log of hits are written; `None` to keep none.
    pub fn begin(
        planned: &Planned,
        ports: &[(String, u32)],
        conditions: Conditions,
        log: Arc<JudgeLog>,
        folder: Option<&Path>,
    ) -> io::Result<Judging> {
        let (sender, receiver) = channel();
        // Kept frames never take the disk space of frames that wait for the judge.
        let half = planned.scenario.limits.disk_bytes / 2;
        let waiting = folder.map_or_else(std::env::temp_dir, Path::to_owned);
        let so_far = SoFar::default();
        let own = JudgeThread {
            so_far: Arc::clone(&so_far),
            planned: planned.clone(),
            hits: HitLog::new(folder)?,
            minutes: MinuteLog::new(folder),
            ports: ports.to_vec(),
            conditions,
            log,
            keeper: Keeper::new(planned, ports, folder, Disk::new(half))?,
            waiting: ports.iter().map(|_| Waiting::default()).collect(),
        };
        let thread = thread::Builder::new()
            .name("judge".to_owned())
            .spawn(move || own.judge(&receiver))?;
        Ok(Judging {
            sender,
            spool: Spool::new(waiting, Disk::new(half)),
            so_far,
            thread,
        })
    }

    /// The judge's counts so far. They cover only frames that passed so long ago that no fault can still hold them.
    pub fn so_far(&self) -> SoFar {
        Arc::clone(&self.so_far)
    }

    /// Returns the function that takes frames from the recorder. If the judge is slower than the traffic, frames wait in the
    /// spool; a frame that the spool refuses counts as lost.
    pub fn sink(&self) -> impl FnMut(Handed) + Send + 'static {
        let (sender, spool) = (self.sender.clone(), Arc::clone(&self.spool));
        move |handed| {
            let message = match handed {
                Handed::Batch(batch) => {
                    let (port, frames) = (batch.port, batch.records.len() as u64);
                    let at_ns = batch.records.first().map_or(0, |record| record.at_ns);
                    match spool.put(batch) {
                        Ok(spooled) => Message::Frames(spooled),
                        Err(refused) => Message::Lost(Lost {
                            port,
                            frames,
                            by: match refused {
                                SpoolError::Full => Loser::Limit,
                                SpoolError::Failed(error) => {
                                    tracing::warn!(%error, "frames cannot wait on disk");
                                    Loser::Disk
                                }
                            },
                            since_ns: at_ns,
                        }),
                    }
                }
                Handed::Lost(lost) => Message::Lost(lost),
                Handed::Until(until_ns) => Message::Until(until_ns),
            };
            // A judge that has ended needs no more messages.
            let _ = sender.send(message);
        }
    }

    /// Ends the judge's thread, after the recorder has handed over all frames; returns the verdict and counts of kept frames.
    pub fn end(self, counted: SwitchCounts) -> JudgedRun {
        let _ = self.sender.send(Message::End(Box::new(counted)));
        match self.thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// State that the judge's thread owns.
struct JudgeThread {
    so_far: SoFar,
    planned: Planned,
    hits: HitLog,
    minutes: MinuteLog,
    ports: Vec<(String, u32)>,
    conditions: Conditions,
    log: Arc<JudgeLog>,
    keeper: Keeper,
    waiting: Vec<Waiting>,
}

/// Batches of frames of one port that the judge has not processed.
#[derive(Default)]
struct Waiting {
    batches: VecDeque<Spooled>,
    /// Number of frames of the first batch that the judge has processed.
    seen: usize,
}

impl JudgeThread {
    fn judge(mut self, receiver: &Receiver<Message>) -> JudgedRun {
        let (scenario, plan) = (self.planned.scenario.clone(), self.planned.plan.clone());
        let mut judge = Judge::new(&scenario, &plan, &self.ports, self.conditions);
        let mut now_ns = 0;
        while let Ok(message) = receiver.recv() {
            match message {
                Message::Frames(batch) => {
                    if batch.late > 0 {
                        // The judge has passed these frames: its later decisions may be wrong.
                        self.lose(&mut judge, batch.port, batch.late, Loser::Recorder, None);
                    }
                    self.waiting[batch.port].batches.push_back(batch);
                }
                Message::Lost(lost) => {
                    let Lost {
                        port,
                        frames,
                        by,
                        since_ns,
                    } = lost;
                    self.lose(&mut judge, port, frames, by, Some(since_ns));
                }
                Message::Until(until_ns) => {
                    let until_ns = self.pass_log(&mut judge, until_ns);
                    if now_ns == 0 {
                        now_ns = until_ns / STEP_NS * STEP_NS;
                    }
                    while now_ns + STEP_NS <= until_ns {
                        now_ns += STEP_NS;
                        self.step(&mut judge, now_ns);
                    }
                }
                Message::End(counted) => {
                    self.pass_log(&mut judge, u64::MAX);
                    while let Some(first_ns) = self.next_ns() {
                        now_ns = (now_ns + STEP_NS).max(first_ns / STEP_NS * STEP_NS);
                        self.step(&mut judge, now_ns);
                    }
                    let losses = counted.losses.iter().cloned();
                    losses.for_each(|loss| judge.lose(loss));
                    let JudgeThread {
                        planned,
                        keeper,
                        hits,
                        ..
                    } = &mut self;
                    let mut last = Vec::new();
                    judge.end(|hit| last.push(hit));
                    last.iter().for_each(|hit| keeper.hit(hit));
                    last.drain(..).for_each(|hit| hits.add(hit));
                    hits.write(planned, u64::MAX);
                    let proof =
                        judge.conclude(&counted.fired, &counted.triggers, |hit| last.push(hit));
                    last.iter().for_each(|hit| keeper.hit(hit));
                    last.into_iter().for_each(|hit| hits.add(hit));
                    hits.write(planned, u64::MAX);
                    let mut kept = self.keeper.finish();
                    let (marks, failed) = self.hits.finish();
                    kept.log_ends = failed.map(|error| error.to_string());
                    return JudgedRun { proof, kept, marks };
                }
            }
        }
        // The run was aborted: the result is not needed.
        JudgedRun::default()
    }

    /// Passes the controller's log of steps to the judge. Returns until when, in nanoseconds since 1970, the log is complete.
    fn pass_log(&self, judge: &mut Judge<'_>, until_ns: u64) -> u64 {
        let taken = self.log.take(until_ns);
        taken.writes.iter().for_each(|write| judge.write(write));
        taken
            .announcements
            .iter()
            .for_each(|announcement| judge.announce(announcement));
        taken.outages.iter().for_each(|outage| judge.down(outage));
        taken.until_ns
    }

    fn lose(
        &self,
        judge: &mut Judge<'_>,
        port: usize,
        frames: u64,
        by: Loser,
        since_ns: Option<u64>,
    ) {
        let (switch, number) = &self.ports[port];
        judge.lose(Loss {
            switch: switch.clone(),
            port: Some(*number),
            frames,
            by,
            since_ns,
        });
    }

    /// When the first frame passed that the judge has not processed, in nanoseconds since 1970; `None` if no frame waits.
    fn next_ns(&self) -> Option<u64> {
        let firsts = self.waiting.iter().filter_map(|waiting| {
            let first = waiting.batches.front()?;
            let at_ns = |record: &Record| record.at_ns;
            let next = first.with(|batch| batch.records.get(waiting.seen).map(at_ns));
            // A batch that cannot be read counts as lost when it is processed.
            Some(next.ok().flatten().unwrap_or(0))
        });
        firsts.min()
    }

    /// Passes the frames before a time to the judge, port by port. The judge decides on those that no fault can still hold.
    fn step(&mut self, judge: &mut Judge<'_>, before_ns: u64) {
        for port in 0..self.ports.len() {
            while let Some(batch) = self.waiting[port].batches.pop_front() {
                let seen = self.waiting[port].seen;
                let read = batch.with(|batch| {
                    let sights = batch.sights().enumerate().skip(seen);
                    for (number, sight) in sights {
                        if sight.at_ns >= before_ns {
                            return number;
                        }
                        judge.see(port, &sight);
                    }
                    batch.records.len()
                });
                match read {
                    Ok(seen) if seen < batch.frames => {
                        self.waiting[port].seen = seen;
                        self.waiting[port].batches.push_front(batch);
                        break;
                    }
                    Ok(_) => {}
                    Err(_) => {
                        let left = (batch.frames - seen) as u64;
                        self.lose(judge, port, left, Loser::Disk, Some(before_ns - STEP_NS));
                    }
                }
                self.waiting[port].seen = 0;
                self.keeper.take(batch);
            }
        }
        let JudgeThread {
            planned,
            keeper,
            hits,
            ..
        } = self;
        judge.advance(before_ns, |hit| {
            keeper.hit(&hit);
            hits.add(hit);
        });
        let decided_ns = judge.decided_ns().min(before_ns);
        keeper.advance(decided_ns);
        hits.write(planned, decided_ns);
        let so_far = judge.so_far();
        self.minutes.write(planned, &so_far, before_ns);
        *self.so_far.lock().unwrap_or_else(PoisonError::into_inner) = so_far;
    }
}
