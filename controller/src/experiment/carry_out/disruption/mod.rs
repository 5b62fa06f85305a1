//! Carries out faults of programs and switches while the timeline is followed, and records what the controller observed.
//!
//! In each iteration, [`Disruptor::poll`] checks which step is in force: it starts the disruptions that begin with the step and
//! undoes those that end. It waits for nothing: slow operations (a program that ends, a switch that starts) are polled in the
//! next iteration. The times are in [`DisruptionExecution`], which a run's folder keeps and `DisruptionResult` judges.

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

/// One execution of a fault of a program or a switch. Times are in nanoseconds since 1970, as those of captures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DisruptionExecution {
    /// Name of the fault in the scenario.
    pub fault: String,
    /// Number of the step of the timeline (epoch) with which the execution began.
    pub epoch: u16,
    /// When the controller began to carry out the fault.
    pub asked_ns: u64,
    /// When the controller observed that the fault had its effect; `None` if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done_ns: Option<u64>,
    /// Number of processes that the fault affected.
    pub processes: u32,
    /// When the controller began to undo the fault; `None` if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo_ns: Option<u64>,
    /// When the controller observed that the fault was undone; `None` if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undone_ns: Option<u64>,
    /// Why the execution was skipped; `None` if the fault was carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// State that the controller observed instead of the required one; `None` if it observed the required state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unseen: Option<String>,
    /// Remark on an execution that succeeded, for readers; `None` if there is none.
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

    /// Whether the fault was carried out, and the controller observed each state that the fault requires.
    pub fn is_seen(&self) -> bool {
        self.skipped.is_none() && self.unseen.is_none() && self.done_ns.is_some()
    }

    /// When the switch was down because of this execution; `None` for a fault of a program, or if the switch did not go down.
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

/// The times in which the faults of a run kept switches down.
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

/// Phase of a fault of a program or a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The fault has no effect, or has been undone.
    Idle,
    /// The controller carries out the fault, and waits for its effect.
    Doing,
    /// The fault has its effect, which lasts until the controller undoes it.
    Done,
    /// The controller undoes the fault, and waits for the end of its effect.
    Undoing,
}

struct Running<'p> {
    disruption: &'p Disruption,
    phase: Phase,
    /// Whether a step with the fault was in force in the last iteration.
    was_in_force: bool,
    /// Index of the present execution among all executions of the run.
    entry: usize,
    /// The switch's outage that was last reported to the judge; `None` if none was reported.
    announced: Option<Outage>,
}

/// Carries out the faults of programs and switches during a run, and records each execution.
pub struct Disruptor<'p> {
    running: Vec<Running<'p>>,
    carried: Vec<DisruptionExecution>,
}

impl<'p> Disruptor<'p> {
    /// Creates the disruptor of a run, before any fault is carried out.
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

    /// Starts the faults that begin with the present step (number `epoch`), and undoes those whose steps have ended.
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

    /// Ends all faults after the workload: resumes paused programs, but does not restart ended ones. Returns all executions.
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

    /// Adds how often each fault was carried out so far, under the metric names that `expect` uses.
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

    /// Polls a fault that is being carried out or undone, and begins to undo it when its time is over.
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

    /// Whether a fault that has its effect has to be undone now.
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
