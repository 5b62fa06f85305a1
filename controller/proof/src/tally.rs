//! Counts of what a switch did to frames: by fault injection, by trigger, and of frames that no fault explains.

use scenario::plan::Plan;
use scenario::replay::{Engine, Passage};

use super::epochs::Judged;
use super::judge::{self, Errors};
use super::order::{self, Lazy};
use super::{Hit, Observation, Strays, Turns};

/// Counts of what a switch did to frames, and the frames that its faults hit.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Counts of each injection (fault on a flow at a switch) of the plan.
    pub observations: Vec<Observation>,
    /// Counts of each trigger of the scenario.
    pub triggers: Vec<Turns>,
    /// Numbers of frames that no fault explains.
    pub strays: Strays,
    /// Frames that faults hit or had to hit, since the caller last took them.
    pub hits: Vec<Hit>,
}

/// How a frame left the switch, and the errors of faults that explain it.
#[derive(Clone, Copy)]
pub struct Left<'a> {
    /// Number of the frame by which [`super::order::Order`] identifies it.
    pub index: usize,
    pub came_ns: u64,
    /// Departure times of the frame's copies, by egress port, in nanoseconds since 1970.
    pub left: &'a [Vec<u64>],
    pub errors: &'a Errors,
    /// Whether the frame arrived while an epoch was being written, so that the old or the new epoch may have applied.
    pub is_at_boundary: bool,
}

impl Tally {
    /// A tally of zeros for a plan with this number of fault injections and triggers.
    pub fn new(injections: usize, triggers: usize) -> Tally {
        Tally {
            observations: vec![Observation::default(); injections],
            triggers: vec![Turns::default(); triggers],
            ..Tally::default()
        }
    }

    /// Adds the counts and hits of another tally of the same plan.
    pub fn add(&mut self, other: Tally) {
        for (own, other) in self.observations.iter_mut().zip(other.observations) {
            *own = own.and(other);
        }
        for (own, other) in self.triggers.iter_mut().zip(other.triggers) {
            *own = own.and(other);
        }
        self.strays.unexplained += other.strays.unexplained;
        self.strays.foreign += other.strays.foreign;
        self.hits.extend(other.hits);
    }

    /// Counts a frame at the triggers that it turned on or that had to count it, according to the model.
    pub fn turn(&mut self, passage: &Passage) {
        let triggered = &passage.triggered;
        for index in &triggered.came_on {
            self.triggers[*index].came_on += 1;
        }
        for index in &triggered.keyless {
            self.triggers[*index].keyless += 1;
        }
        for index in &triggered.conflated {
            self.triggers[*index].conflated += 1;
        }
    }

    /// Counts a frame at the injections (faults on a flow) that looked at it, hit it, or wrongly hit or spared it.
    pub fn count(&mut self, frame: &Judged, seen: Left<'_>) {
        let observations = &mut self.observations;
        for verdict in frame.passage.verdicts() {
            for injection in &verdict.met {
                observations[*injection].met += 1;
                observations[*injection].boundary += u64::from(seen.is_at_boundary);
            }
            for injection in &verdict.hits {
                let observed = &mut observations[*injection];
                match frame.passage.has_exit() {
                    true => observed.observed += 1,
                    false => observed.unforwarded += 1,
                }
            }
            for injection in &verdict.overridden {
                observations[*injection].overridden += 1;
            }
            for injection in &verdict.keyless {
                observations[*injection].keyless += 1;
            }
            for injection in &verdict.conflated {
                observations[*injection].conflated += 1;
            }
        }
        let mut miss = |injection: usize| {
            let observed = &mut observations[injection];
            observed.missed += 1;
            observed.observed = observed.observed.saturating_sub(1);
        };
        seen.errors.missed.iter().for_each(|i| miss(*i));
        // If a frame is a stray, nothing is known about the effects of its faults.
        if seen.errors.stray {
            frame.passage.ingress.hits.iter().for_each(|i| miss(*i));
        }
        for injection in &seen.errors.collateral {
            observations[*injection].collateral += 1;
        }
    }

    /// Counts how late a frame left that faults held or limited in rate.
    pub fn count_held(
        &mut self,
        (engine, plan): (&Engine, &Plan),
        passage: &Passage,
        seen: Left<'_>,
        order: &Lazy<'_>,
    ) {
        let verdict = &passage.ingress;
        let Some(last) = seen.left.iter().flatten().max() else {
            return;
        };
        if seen.errors.stray {
            return;
        }
        let due_ns = seen.came_ns.saturating_add(verdict.fate.longest_ns());
        let late_ns = last.saturating_sub(due_ns);
        let acts = engine.ingress_acts(verdict);
        let erred = |injection| seen.errors.missed.contains(&injection);
        let held = acts.filter(|act| act.hit && act.effect.is_timed() && !erred(act.injection));
        for act in held {
            let observed = &mut self.observations[act.injection];
            observed.latest_ns = observed.latest_ns.max(late_ns);
            let bound = plan.injections[act.injection].lateness_bound_ns;
            let is_beyond = bound.is_some_and(|bound| late_ns > bound);
            observed.beyond += u64::from(is_beyond);
            let is_sooner = observed.soonest_ns.is_none_or(|soonest| late_ns < soonest);
            let is_explained = || {
                order.order().stood_still(seen.index, seen.came_ns, late_ns)
                    || order.order().another_waited(seen.came_ns, *last, late_ns)
            };
            if is_sooner && !(is_beyond && is_explained()) {
                observed.soonest_ns = Some(late_ns);
            }
        }
    }

    /// Counts a frame that a fault had to spare, but that took as long as if the fault had held it. The frame counts as slow,
    /// or as collateral if other frames overtook it meanwhile, which shows that the fault held it.
    pub fn count_spared(
        &mut self,
        engine: &Engine,
        passage: &Passage,
        seen: Left<'_>,
        order: &Lazy<'_>,
    ) {
        let verdict = &passage.ingress;
        let Some(first) = seen.left.iter().flatten().min() else {
            return;
        };
        if seen.errors.stray {
            return;
        }
        let as_long: Vec<_> = engine
            .ingress_acts(verdict)
            .filter(|act| {
                !act.hit && judge::is_held_for(verdict, seen.came_ns, *first, act.hold_ns())
            })
            .collect();
        let is_held =
            |hold_ns| order.overtaken_ns(seen.index) >= order::held_if_overtaken_by(hold_ns);
        // A fault that looked at the frame is suspected before one that did not; then the one that explains most.
        let suspect = as_long.iter().max_by_key(|act| (act.met, act.hold_ns()));
        match suspect {
            Some(act) if is_held(act.hold_ns()) => {
                self.observations[act.injection].collateral += 1;
            }
            _ => {
                for act in as_long.iter().filter(|act| act.met) {
                    let observed = &mut self.observations[act.injection];
                    observed.slow += 1;
                    let hold_ns = act.hold_ns();
                    let is_explained = order.order().stood_still(seen.index, seen.came_ns, hold_ns);
                    observed.slow_alone += u64::from(!is_explained);
                }
            }
        }
    }
}

/// Whether a held frame left later than the bounds of its faults allow; other frames then show whether the machine was slow.
pub fn is_beyond(
    (engine, plan): (&Engine, &Plan),
    passage: &Passage,
    came_ns: u64,
    left: &[Vec<u64>],
) -> bool {
    let due_ns = came_ns.saturating_add(passage.ingress.fate.longest_ns());
    let Some(last_ns) = left.iter().flatten().max() else {
        return false;
    };
    let late_ns = last_ns.saturating_sub(due_ns);
    let mut acts = engine.ingress_acts(&passage.ingress);
    acts.any(|act| {
        let bound = plan.injections[act.injection].lateness_bound_ns;
        act.hit && act.effect.is_timed() && bound.is_some_and(|bound| late_ns > bound)
    })
}
