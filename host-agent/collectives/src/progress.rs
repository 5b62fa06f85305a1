//! Progress of a rank in its program: the steps that it may begin, given finished steps and received signals.
//!
//! ```text
//!   Progress::next_step   ─▶ a put to post, a reduction or copy to carry out
//!   its completion        ─▶ Progress::done
//!   a receive's immediate ─▶ Progress::signalled
//! ```
//!
//! A signal may arrive before its wait can begin, since peers may be ahead; then it is kept.

use std::collections::{BTreeMap, VecDeque};

use crate::schedule::{Action, Program, Signal};

/// Progress of one rank in its program of a schedule.
#[derive(Debug, Clone)]
pub struct Progress<'p> {
    program: &'p Program,
    /// For each step, number of predecessors that have not finished. The signal of a wait counts as a predecessor.
    missing: Vec<usize>,
    behind: Vec<Vec<usize>>,
    /// Indices of steps (puts, reductions, copies) that can begin now.
    ready: VecDeque<usize>,
    states: Vec<State>,
    left: usize,
    /// Index of the wait for each peer and signal.
    waits: BTreeMap<(usize, Signal), usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Before,
    /// [`Progress::next_step`] has returned the step, and [`Progress::done`] has not reported its end.
    UnderWay,
    Done,
}

/// A signal or a finished step that contradicts the rank's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProgressError {
    /// The rank waits for no such signal: it belongs to another schedule, or is invalid.
    #[error("rank {from} sent signal {}, for which no step waits", signal.0)]
    Unknown {
        /// Rank of the peer that sent the signal.
        from: usize,
        /// The signal that arrived.
        signal: Signal,
    },
    /// A peer's signal arrived a second time.
    #[error("rank {from} sent signal {} twice", signal.0)]
    Twice {
        /// Rank of the peer that sent the signal.
        from: usize,
        /// The signal that arrived.
        signal: Signal,
    },
    /// The step with this index was reported as finished, but is not in progress.
    #[error("step {0} is not in progress")]
    NotUnderWay(usize),
}

impl<'p> Progress<'p> {
    /// Progress at the beginning of a rank's program; the schedule must pass [`crate::verify()`].
    pub fn new(program: &'p Program) -> Self {
        let count = program.steps.len();
        let mut progress = Self {
            program,
            missing: vec![0; count],
            behind: vec![Vec::new(); count],
            ready: VecDeque::new(),
            states: vec![State::Before; count],
            left: count,
            waits: BTreeMap::new(),
        };
        for (step, what) in program.steps.iter().enumerate() {
            progress.missing[step] = what.after.len();
            for before in &what.after {
                progress.behind[*before].push(step);
            }
            if let Action::Wait { from, signal } = what.action {
                progress.missing[step] += 1;
                progress.waits.insert((from, signal), step);
            }
            if progress.missing[step] == 0 {
                progress.ready.push_back(step);
            }
        }
        progress
    }

    /// Index and action of the next step that can begin; `None` if none can now. Report the step's end by [`Progress::done`].
    pub fn next_step(&mut self) -> Option<(usize, Action)> {
        let step = self.ready.pop_front()?;
        self.states[step] = State::UnderWay;
        Some((step, self.program.steps[step].action))
    }

    /// Records that a put has completed at the sender, or that a reduction or copy has been performed.
    ///
    /// # Errors
    /// [`ProgressError::NotUnderWay`].
    pub fn done(&mut self, step: usize) -> Result<(), ProgressError> {
        if self.states.get(step) != Some(&State::UnderWay) {
            return Err(ProgressError::NotUnderWay(step));
        }
        self.finish(step);
        Ok(())
    }

    /// Records that a peer's put with this signal has arrived.
    ///
    /// # Errors
    /// [`ProgressError::Unknown`], [`ProgressError::Twice`].
    pub fn signalled(&mut self, from: usize, signal: Signal) -> Result<(), ProgressError> {
        let wait = self.waits.get(&(from, signal));
        let wait = *wait.ok_or(ProgressError::Unknown { from, signal })?;
        // A wait leaves the state `Before` with its signal.
        if self.states[wait] != State::Before {
            return Err(ProgressError::Twice { from, signal });
        }
        self.states[wait] = State::UnderWay;
        self.fulfil(wait);
        Ok(())
    }

    /// Whether all steps of the rank have finished.
    pub fn is_finished(&self) -> bool {
        self.left == 0
    }

    /// Peer and signal of each expected put that has not arrived, for an error report if the rank is stuck.
    pub fn waiting_for(&self) -> impl Iterator<Item = (usize, Signal)> + '_ {
        let open = |step: usize| self.states[step] == State::Before;
        self.waits
            .iter()
            .filter_map(move |(what, step)| open(*step).then_some(*what))
    }

    /// Index and action of each put, reduction and copy in progress.
    pub fn under_way(&self) -> impl Iterator<Item = (usize, Action)> + '_ {
        let steps = self.program.steps.iter().enumerate();
        let steps = steps.map(|(step, what)| (step, what.action));
        steps.filter(|(step, action)| {
            let is_wait = matches!(action, Action::Wait { .. });
            !is_wait && self.states[*step] == State::UnderWay
        })
    }

    fn finish(&mut self, step: usize) {
        self.states[step] = State::Done;
        self.left -= 1;
        for next in std::mem::take(&mut self.behind[step]) {
            self.fulfil(next);
        }
    }

    fn fulfil(&mut self, step: usize) {
        self.missing[step] -= 1;
        if self.missing[step] > 0 {
            return;
        }
        match self.program.steps[step].action {
            Action::Wait { .. } => self.finish(step),
            _ => self.ready.push_back(step),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Algorithm, Collective, Options, build};

    #[test]
    fn invalid_signals_are_refused() {
        let collective = Collective::all_gather(2, 1);
        let schedule = build(&collective, Algorithm::Ring, &Options::default()).unwrap();
        let mut progress = Progress::new(&schedule.programs[0]);
        let (from, signal) = (1, Signal(0));
        let strange = Signal(1);
        let unknown = ProgressError::Unknown {
            from,
            signal: strange,
        };
        assert_eq!(progress.signalled(from, strange), Err(unknown));
        assert_eq!(progress.waiting_for().collect::<Vec<_>>(), [(1, signal)]);
        // The signal arrives before any step has begun.
        assert_eq!(progress.signalled(from, signal), Ok(()));
        assert_eq!(
            progress.signalled(from, signal),
            Err(ProgressError::Twice { from, signal })
        );
        assert_eq!(progress.done(0), Err(ProgressError::NotUnderWay(0)));
        assert_eq!(progress.done(99), Err(ProgressError::NotUnderWay(99)));
        assert_eq!(progress.waiting_for().count(), 0);
        while let Some((step, _)) = progress.next_step() {
            assert!(!progress.is_finished());
            assert_eq!(
                progress
                    .under_way()
                    .map(|(step, _)| step)
                    .collect::<Vec<_>>(),
                [step]
            );
            progress.done(step).unwrap();
            assert_eq!(progress.done(step), Err(ProgressError::NotUnderWay(step)));
        }
        assert!(progress.is_finished());
    }
}
