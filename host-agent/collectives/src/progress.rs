//! Where a rank is in its program: what it may do now, given what is done and which signals have come.
//!
//! ```text
//!   Progress::next_step   ─▶ a put to post, a reduction or copy to carry out
//!   its completion        ─▶ Progress::done
//!   a receive's immediate ─▶ Progress::signalled
//! ```
//!
//! Signals that come before anybody waits for them are kept: peers may be ahead.

use std::collections::{BTreeMap, VecDeque};

use crate::schedule::{Action, Program, Signal};

/// See the module.
#[derive(Debug, Clone)]
pub struct Progress<'p> {
    program: &'p Program,
    /// By step: how many of those before it are not done. A wait's signal is one of them.
    missing: Vec<usize>,
    behind: Vec<Vec<usize>>,
    /// Steps that can begin, but for waits.
    ready: VecDeque<usize>,
    states: Vec<State>,
    left: usize,
    /// By peer and signal: the wait.
    waits: BTreeMap<(usize, Signal), usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Before,
    /// Handed out by [`Progress::next_step`].
    UnderWay,
    Done,
}

/// What a peer or a driver says cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProgressError {
    /// Nothing waits for such a signal: it is of another schedule, or of nobody.
    #[error("rank {from} signals {}, which nothing waits for", signal.0)]
    Unknown {
        /// The peer.
        from: usize,
        /// What it signals.
        signal: Signal,
    },
    /// A signal comes twice.
    #[error("rank {from} signals {} again", signal.0)]
    Twice {
        /// The peer.
        from: usize,
        /// What it signals.
        signal: Signal,
    },
    /// A step is done that is not under way.
    #[error("step {0} is not under way")]
    NotUnderWay(usize),
}

impl<'p> Progress<'p> {
    /// At the beginning of a rank's program, which is part of a schedule that [`crate::verify()`] lets pass.
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

    /// The next step to begin: a put to be posted, a reduction or copy to be carried out. [`Progress::done`] says when it is.
    pub fn next_step(&mut self) -> Option<(usize, Action)> {
        let step = self.ready.pop_front()?;
        self.states[step] = State::UnderWay;
        Some((step, self.program.steps[step].action))
    }

    /// A put has completed at this side, a reduction or copy is carried out.
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

    /// A peer's put is here.
    ///
    /// # Errors
    /// [`ProgressError::Unknown`], [`ProgressError::Twice`].
    pub fn signalled(&mut self, from: usize, signal: Signal) -> Result<(), ProgressError> {
        let wait = self.waits.get(&(from, signal));
        let wait = *wait.ok_or(ProgressError::Unknown { from, signal })?;
        // Until then a wait is not under way: its signal says so.
        if self.states[wait] != State::Before {
            return Err(ProgressError::Twice { from, signal });
        }
        self.states[wait] = State::UnderWay;
        self.fulfil(wait);
        Ok(())
    }

    /// Whether all steps are done.
    pub fn is_finished(&self) -> bool {
        self.left == 0
    }

    /// The signals that have not come, by peer: what a watchdog tells.
    pub fn waiting_for(&self) -> impl Iterator<Item = (usize, Signal)> + '_ {
        let open = |step: usize| self.states[step] == State::Before;
        self.waits
            .iter()
            .filter_map(move |(what, step)| open(*step).then_some(*what))
    }

    /// Puts, reductions and copies that have begun and are not done.
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
    fn what_cannot_be_is_refused() {
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
        // Before anything was begun.
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
