//! The thread that judges what passes the switches' ports, while it passes.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use proof::{Conditions, Judge, Loser, Loss, Proof, STEP_NS};
use testbeds::capture::{Batch, Frame, Handed, Limits, Lost, Recording};

use super::Planned;
use super::telling_log::Log;

/// What the thread is told.
enum Message {
    Handed(Handed),
    /// Nothing passes any more; what the switches counted.
    End(Box<Counted>),
}

/// What the switches counted of a run.
pub struct Counted {
    /// For each injection of the plan.
    pub fired: Vec<u64>,
    /// For each trigger of the scenario.
    pub triggers: Vec<proof::TriggerCount>,
    /// What they say that they have lost.
    pub losses: Vec<Loss>,
}

/// A run that is being judged.
pub struct Judging {
    sender: Sender<Message>,
    waiting: Arc<AtomicU64>,
    most_waiting: u64,
    thread: JoinHandle<(Proof, Vec<Recording>)>,
}

impl Judging {
    /// Begins. `ports` are those that are recorded, switch and number, in order; `log` is that of whoever writes steps.
    pub fn begin(
        planned: &Planned,
        ports: &[(String, u32)],
        conditions: Conditions,
        limits: Limits,
        log: Arc<Log>,
    ) -> io::Result<Judging> {
        let (sender, receiver) = channel();
        let waiting = Arc::new(AtomicU64::new(0));
        let own = Own {
            planned: (planned.scenario.clone(), planned.plan.clone()),
            ports: ports.to_vec(),
            conditions,
            limits,
            log,
            waiting: Arc::clone(&waiting),
        };
        let thread = thread::Builder::new()
            .name("judge".to_owned())
            .spawn(move || own.judge(&receiver))?;
        Ok(Judging {
            sender,
            waiting,
            most_waiting: limits.total_bytes.saturating_mul(ports.len() as u64),
            thread,
        })
    }

    /// For the recorder. Where the judge is slower than what passes, that waits for it, as much as may be kept of all ports; what
    /// comes then is lost, and said to be.
    pub fn sink(&self) -> impl FnMut(Handed) + Send + 'static {
        let (sender, waiting) = (self.sender.clone(), Arc::clone(&self.waiting));
        let most_waiting = self.most_waiting;
        move |handed| {
            let handed = match handed {
                Handed::Batch(batch) if waiting.load(Ordering::Relaxed) > most_waiting => {
                    Handed::Lost(Lost {
                        port: batch.port,
                        frames: batch.records.len() as u64,
                        by: Loser::Recorder,
                        at_ns: batch.records.first().map_or(0, |record| record.at_ns),
                    })
                }
                Handed::Batch(batch) => {
                    waiting.fetch_add(size_of_batch(&batch), Ordering::Relaxed);
                    Handed::Batch(batch)
                }
                other => other,
            };
            // Who has ended needs no more.
            let _ = sender.send(Message::Handed(handed));
        }
    }

    /// Nothing passes any more, and the recorder has handed over all: the verdict, and what was kept of each port.
    pub fn end(self, counted: Counted) -> (Proof, Vec<Recording>) {
        let _ = self.sender.send(Message::End(Box::new(counted)));
        match self.thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn size_of_batch(batch: &Batch) -> u64 {
    (batch.bytes.len() + std::mem::size_of_val(batch.records.as_slice())) as u64
}

/// What the thread has.
struct Own {
    planned: (scenario::Scenario, scenario::Plan),
    ports: Vec<(String, u32)>,
    conditions: Conditions,
    limits: Limits,
    log: Arc<Log>,
    waiting: Arc<AtomicU64>,
}

/// What came of a port and the judge has not seen.
#[derive(Default)]
struct Waiting {
    batches: VecDeque<Batch>,
    /// How many of the first have been seen.
    seen: usize,
}

impl Own {
    fn judge(self, receiver: &Receiver<Message>) -> (Proof, Vec<Recording>) {
        let (scenario, plan) = &self.planned;
        let mut judge = Judge::new(scenario, plan, &self.ports, self.conditions);
        let mut waiting: Vec<Waiting> = self.ports.iter().map(|_| Waiting::default()).collect();
        let mut kept: Vec<Kept> = self.ports.iter().map(|_| Kept::default()).collect();
        let mut now_ns = 0;
        while let Ok(message) = receiver.recv() {
            match message {
                Message::Handed(Handed::Batch(batch)) => {
                    if batch.late > 0 {
                        self.lose(&mut judge, batch.port, batch.late, Loser::Recorder);
                    }
                    waiting[batch.port].batches.push_back(batch);
                }
                Message::Handed(Handed::Lost(lost)) => {
                    self.lose(&mut judge, lost.port, lost.frames, lost.by);
                }
                Message::Handed(Handed::Until(until_ns)) => {
                    let until_ns = self.hear(&mut judge, until_ns);
                    if now_ns == 0 {
                        now_ns = until_ns / STEP_NS * STEP_NS;
                    }
                    while now_ns + STEP_NS <= until_ns {
                        now_ns += STEP_NS;
                        self.see(&mut judge, &mut waiting, &mut kept, now_ns);
                        judge.advance(now_ns);
                    }
                }
                Message::End(counted) => {
                    self.hear(&mut judge, u64::MAX);
                    let next = |waiting: &[Waiting]| {
                        let next = waiting.iter().filter_map(Waiting::next_ns);
                        next.min()
                    };
                    while let Some(first_ns) = next(&waiting) {
                        now_ns = (now_ns + STEP_NS).max(first_ns / STEP_NS * STEP_NS);
                        self.see(&mut judge, &mut waiting, &mut kept, now_ns);
                        judge.advance(now_ns);
                    }
                    counted
                        .losses
                        .iter()
                        .for_each(|loss| judge.lose(loss.clone()));
                    let proof = judge.conclude(&counted.fired, &counted.triggers);
                    let recordings = kept.into_iter().map(Kept::recording);
                    return (proof, recordings.collect());
                }
            }
        }
        // The run broke off: nobody asks.
        let none = judge.conclude(&vec![0; plan.injections.len()], &[]);
        (none, Vec::new())
    }

    /// Passes on what switches were told; until when that is all.
    fn hear(&self, judge: &mut Judge<'_>, until_ns: u64) -> u64 {
        let taken = self.log.take(until_ns);
        taken.writes.iter().for_each(|write| judge.write(write));
        taken
            .tellings
            .iter()
            .for_each(|telling| judge.tell(telling));
        taken.until_ns
    }

    fn lose(&self, judge: &mut Judge<'_>, port: usize, frames: u64, by: Loser) {
        let (switch, number) = &self.ports[port];
        judge.lose(Loss {
            switch: switch.clone(),
            port: Some(*number),
            frames,
            by,
        });
    }

    /// Shows the judge what passed before a time, port by port.
    fn see(
        &self,
        judge: &mut Judge<'_>,
        waiting: &mut [Waiting],
        kept: &mut [Kept],
        before_ns: u64,
    ) {
        for (port, (waiting, kept)) in waiting.iter_mut().zip(kept).enumerate() {
            while let Some(batch) = waiting.batches.front() {
                let all = batch.sights().skip(waiting.seen);
                for sight in all.take_while(|sight| sight.at_ns < before_ns) {
                    judge.see(port, &sight);
                    waiting.seen += 1;
                }
                if waiting.seen < batch.records.len() {
                    break;
                }
                self.waiting
                    .fetch_sub(size_of_batch(batch), Ordering::Relaxed);
                waiting.seen = 0;
                kept.take(waiting.batches.pop_front(), self.limits);
            }
        }
    }
}

impl Waiting {
    fn next_ns(&self) -> Option<u64> {
        let first = self.batches.front()?.records.get(self.seen)?;
        Some(first.at_ns)
    }
}

/// What is kept of a port for the run's folder, within limits.
#[derive(Default)]
struct Kept {
    bytes: u64,
    frames: u64,
    batches: Vec<Batch>,
    over_limit: u64,
}

impl Kept {
    fn take(&mut self, batch: Option<Batch>, limits: Limits) {
        let Some(batch) = batch else {
            return;
        };
        let frames = batch.records.len() as u64;
        self.bytes += size_of_batch(&batch);
        self.frames += frames;
        if self.over_limit > 0 || self.bytes > limits.total_bytes || self.frames > limits.frames {
            self.over_limit += frames;
        } else {
            self.batches.push(batch);
        }
    }

    fn recording(self) -> Recording {
        let mut frames = Vec::new();
        for batch in self.batches {
            frames.extend(batch.sights().map(|sight| Frame {
                at_ns: sight.at_ns,
                direction: sight.way.into(),
                wire_len: sight.wire_len,
                bytes: sight.bytes.into(),
            }));
        }
        Recording {
            frames,
            lost: 0,
            over_limit: self.over_limit,
        }
    }
}
