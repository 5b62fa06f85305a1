//! Carries out faults of programs and switches while the timeline is followed, and records what was observed.
//!
//! In each iteration, [`Disruptor::poll`] checks which step is in force: it starts the disruptions that begin with the step and
//! undoes those that end. Nothing here waits: slow operations (a program that ends, a switch that starts) are polled in the next
//! iteration. [`DisruptionExecution`] records all of it; a run's folder keeps it, and `DisruptionResult` judges by it.

mod switchboard;

use proof::Outage;
use scenario::Scenario;
use scenario::model::disruption::{Disruption, Does, Subject};
use scenario::model::expect::metric::{FaultMetric, Metric, Metrics};
use serde::{Deserialize, Serialize};

use super::workload::{Load, Order, OrderProgress};
use crate::experiment::Planned;
use crate::experiment::fleet::now_ns;
use crate::experiment::prepare::LaunchError;

pub use switchboard::Switchboard;

/// One execution of a disruption. Times are in nanoseconds since 1970, as those of captures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DisruptionExecution {
    /// Name of the fault.
    pub fault: String,
    /// The epoch with which the execution began.
    pub epoch: u16,
    /// When the controller began to carry it out.
    pub asked_ns: u64,
    /// When the controller observed that it was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done_ns: Option<u64>,
    /// Number of processes that it affected.
    pub processes: u32,
    /// When the controller began to undo it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo_ns: Option<u64>,
    /// When the controller observed that it was undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undone_ns: Option<u64>,
    /// Why it was not carried out at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Observed state, if it was not the required one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unseen: Option<String>,
    /// Other remarks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

impl DisruptionExecution {
    pub(in crate::experiment) fn new(fault: &str, epoch: u16) -> DisruptionExecution {
        DisruptionExecution {
            fault: fault.to_owned(),
            epoch,
            asked_ns: now_ns(),
            ..DisruptionExecution::default()
        }
    }

    /// Whether the disruption was carried out, and the controller observed all of it.
    pub fn is_seen(&self) -> bool {
        self.skipped.is_none() && self.unseen.is_none() && self.done_ns.is_some()
    }

    /// The outage of a switch that the execution caused, as far as it is known.
    pub fn outage(&self, does: &Does) -> Option<Outage> {
        match does.subject() {
            Subject::Command(_) => None,
            Subject::Switch(switch) => Some(Outage {
                switch: switch.to_owned(),
                from_ns: self.done_ns?,
                until_ns: self.undo_ns,
            }),
        }
    }

    fn remark(&mut self, remark: impl Into<String>) {
        let remark = remark.into();
        self.remark = Some(match self.remark.take() {
            Some(before) => format!("{before}; {remark}"),
            None => remark,
        });
    }
}

/// The outages of switches that the disruptions of a run caused.
pub fn outages(
    scenario: &Scenario,
    carried: &[DisruptionExecution],
) -> impl Iterator<Item = Outage> {
    carried.iter().filter_map(|time| {
        let mut declared = scenario.disruptions.iter();
        let disruption = declared.find(|disruption| disruption.id == time.fault)?;
        time.outage(&disruption.does)
    })
}

/// Phase of a disruption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The disruption is not in force.
    Idle,
    /// The disruption is being carried out.
    Doing,
    /// The disruption was carried out, and lasts.
    Done,
    /// The disruption is being undone.
    Undoing,
}

struct Running<'p> {
    disruption: &'p Disruption,
    phase: Phase,
    /// Whether its step was in force in the last iteration.
    was_in_force: bool,
    /// Index of the record of its current execution.
    entry: usize,
    /// The outage that the judge received last.
    announced: Option<Outage>,
}

/// Carries out the disruptions of a run.
pub struct Disruptor<'p> {
    running: Vec<Running<'p>>,
    carried: Vec<DisruptionExecution>,
}

impl<'p> Disruptor<'p> {
    /// Creates the disruptor of a scenario, before any disruption.
    pub fn new(planned: &'p Planned) -> Disruptor<'p> {
        let disruptions = planned.scenario.disruptions.iter();
        Disruptor {
            running: disruptions
                .map(|disruption| Running {
                    disruption,
                    phase: Phase::Idle,
                    was_in_force: false,
                    entry: 0,
                    announced: None,
                })
                .collect(),
            carried: Vec::new(),
        }
    }

    /// Starts the disruptions that begin with the step in force, and undoes those that have ended.
    pub fn poll(
        &mut self,
        epoch: u16,
        load: &mut dyn Load,
        switches: &mut Switchboard<'_>,
    ) -> Result<(), LaunchError> {
        for running in &mut self.running {
            let is_in_force = running.disruption.is_in_force(epoch);
            let begins = is_in_force && !running.was_in_force;
            running.was_in_force = is_in_force;
            if begins && running.phase == Phase::Idle {
                running.entry = self.carried.len();
                let carried = DisruptionExecution::new(&running.disruption.id, epoch);
                self.carried.push(carried);
                let carried = &mut self.carried[running.entry];
                running.begin(carried, load, switches)?;
            } else if begins {
                let mut carried = DisruptionExecution::new(&running.disruption.id, epoch);
                carried.skipped = Some("its previous execution had not been undone yet".to_owned());
                self.carried.push(carried);
            }
            if running.phase != Phase::Idle {
                let carried = &mut self.carried[running.entry];
                running.go_on(is_in_force, carried, load, switches)?;
                let outage = carried.outage(&running.disruption.does);
                if let Some(outage) = outage.filter(|it| running.announced.as_ref() != Some(it)) {
                    switches.fleet.log.down(outage.clone());
                    running.announced = Some(outage);
                }
            }
        }
        Ok(())
    }

    /// Ends all disruptions after the run: paused programs go on. Ended programs are not started again.
    pub fn finish(mut self, load: &mut dyn Load) -> Vec<DisruptionExecution> {
        for running in &mut self.running {
            let Some(carried) = self.carried.get_mut(running.entry) else {
                continue;
            };
            if running.phase != Phase::Idle {
                running.give_up(carried, load);
            }
        }
        self.carried
    }

    /// Adds how often each disruption was carried out so far, under the metric names that expectations use.
    pub fn add_metrics(&self, metrics: &mut Metrics) {
        for running in &self.running {
            let id = &running.disruption.id;
            let own = self.carried.iter().filter(|carried| carried.fault == *id);
            let fired = own.filter(|carried| carried.skipped.is_none()).count();
            metrics.insert(Metric::fault(id, FaultMetric::Fired), fired as f64);
        }
    }
}

impl Running<'_> {
    fn begin(
        &mut self,
        carried: &mut DisruptionExecution,
        load: &mut dyn Load,
        switches: &mut Switchboard<'_>,
    ) -> Result<(), LaunchError> {
        let does = &self.disruption.does;
        tracing::info!(fault = self.disruption.id, "{does}");
        let for_good = does.is_for_good();
        let progress = match does {
            Does::Pause { command } => load.order(command, Order::Pause),
            Does::Kill { command, .. } => load.order(command, Order::Kill { for_good }),
            Does::Stop { command, .. } => load.order(command, Order::Stop { for_good }),
            Does::Restart { switch, .. } => switches.take_down(switch),
        };
        self.phase = Phase::Doing;
        self.has_come(progress, carried);
        Ok(())
    }

    /// Polls a disruption in progress, and begins to undo a finished one.
    fn go_on(
        &mut self,
        is_in_force: bool,
        carried: &mut DisruptionExecution,
        load: &mut dyn Load,
        switches: &mut Switchboard<'_>,
    ) -> Result<(), LaunchError> {
        let subject = self.disruption.does.subject();
        if matches!(self.phase, Phase::Doing | Phase::Undoing) {
            let progress = match subject {
                Subject::Command(command) => load.progress(command),
                Subject::Switch(switch) => switches.progress(switch)?,
            };
            self.has_come(progress, carried);
        }
        if self.phase == Phase::Done && self.is_over(is_in_force, carried) {
            carried.undo_ns = Some(now_ns());
            self.phase = Phase::Undoing;
            let progress = match &self.disruption.does {
                Does::Pause { command } => load.order(command, Order::Resume),
                Does::Kill { command, .. } | Does::Stop { command, .. } => {
                    load.order(command, Order::Start)
                }
                Does::Restart { switch, .. } => {
                    switches.start(switch)?;
                    OrderProgress::Pending
                }
            };
            self.has_come(progress, carried);
        }
        Ok(())
    }

    /// Whether a disruption that is in force has to be undone.
    fn is_over(&self, is_in_force: bool, carried: &DisruptionExecution) -> bool {
        match &self.disruption.does {
            Does::Restart {
                after_ns: Some(after_ns),
                ..
            } => {
                let done_ns = carried.done_ns.unwrap_or(carried.asked_ns);
                now_ns().saturating_sub(done_ns) >= *after_ns
            }
            does => !is_in_force && !does.is_for_good(),
        }
    }

    fn has_come(&mut self, progress: OrderProgress, carried: &mut DisruptionExecution) {
        let is_undone = self.phase == Phase::Undoing;
        match progress {
            OrderProgress::Pending => {}
            OrderProgress::Done { processes, remark } if !is_undone => {
                carried.done_ns = Some(now_ns());
                carried.processes = processes;
                if processes == 0 {
                    carried.remark("the command was between two runs");
                }
                remark.into_iter().for_each(|remark| carried.remark(remark));
                self.phase = Phase::Done;
            }
            OrderProgress::Done { remark, .. } => {
                carried.undone_ns = Some(now_ns());
                remark.into_iter().for_each(|remark| carried.remark(remark));
                self.phase = Phase::Idle;
            }
            OrderProgress::Absent(why) if !is_undone => {
                carried.skipped = Some(why);
                self.phase = Phase::Idle;
            }
            OrderProgress::Absent(why) | OrderProgress::Unseen(why) => {
                // The first error is the one to report.
                carried.unseen.get_or_insert(why);
                // A disruption that was carried out but not observed is undone all the same.
                self.phase = match is_undone {
                    true => Phase::Idle,
                    false => Phase::Done,
                };
            }
        }
    }

    fn give_up(&mut self, carried: &mut DisruptionExecution, load: &mut dyn Load) {
        match &self.disruption.does {
            Does::Pause { command } => {
                carried.undo_ns.get_or_insert_with(now_ns);
                let progress = load.order(command, Order::Resume);
                self.phase = Phase::Undoing;
                self.has_come(progress, carried);
            }
            does if does.is_for_good() && self.phase == Phase::Done => {}
            _ if self.phase == Phase::Doing => {
                carried.unseen = Some("the run ended before it was done".to_owned());
            }
            _ if self.phase == Phase::Undoing => {
                carried.unseen.get_or_insert_with(|| {
                    "the run ended before its program or switch was observed again".to_owned()
                });
            }
            _ => {
                carried.remark("the run ended before its program or switch was due to start again")
            }
        }
    }
}
