//! One program on several workers.
//!
//! Each worker has a [`Switch`] of its own: frame, work, buffers, recirculation link, random numbers, what it counts. What the
//! control plane writes and packets only read (tables, profiles, value sets, groups, sessions) there is once, and all look at
//! it. One of the switches, the *first*, takes the writes:
//!
//! ```text
//! first.sibling(1)                 made with the program
//! first.share(&mut sibling)        from here on all may handle packets, in threads of their own; nothing is written
//! first.recall(&mut [sibling, …])  no packet is handled anywhere; what was counted is at the first, which may be read
//!                                  and written as if it were alone
//! ```
//!
//! So a table is written where it lies, without a copy, and each packet sees all of a batch of writes or nothing of it. What
//! packets write, other than counters, has one owner: programs that keep such state run on one worker
//! ([`Switch::bound_to_one_worker`]).

use crate::error::LoadError;
use crate::externs::Tallies;
use crate::held::Held;
use crate::switch::{Executor, Switch};
use p4lang::ir::Arch;
use std::sync::Arc;

/// Of which a worker's seed is a multiple away from the first's (2^64 divided by the golden ratio).
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Switch {
    /// Why the program cannot run on several workers: what its packets leave to those after them. Empty: it can.
    pub fn bound_to_one_worker(&self) -> Vec<String> {
        let (core, state) = (&self.core, &self.core.state);
        let mut reasons = Vec::new();
        if matches!(self.program().arch, Arch::Tna | Arch::T2na) {
            reasons.push("the pipes of a Tofino are one machine".to_owned());
        }
        let named = |what: &str, name: &str| format!("{what} {name} is written by packets");
        for register in self.registers.iter() {
            reasons.push(named("register", &register.name));
        }
        for meter in &state.meters {
            reasons.push(named("meter", &meter.name));
        }
        for table in state.tables.iter() {
            if let Some(meter) = &table.spec.direct_meter {
                reasons.push(named("meter", &meter.name));
            }
            if table.spec.idle_timeout {
                reasons.push(format!(
                    "table {} has idle timeouts, which packets put off",
                    table.spec.name
                ));
            }
        }
        if core.queues.is_limited() {
            reasons.push("a port's rate is limited, so it has one queue".to_owned());
        }
        if core.config.recirculation.rate_bps.is_some() {
            reasons.push("the rate of the recirculation link is limited".to_owned());
        }
        if core.executor != Executor::Fast || core.config.trace {
            reasons.push("packets are explained one by one".to_owned());
        }
        reasons
    }

    /// A switch for another worker, to be [shared](Self::share) with. Its random numbers are others, by its `number`.
    ///
    /// # Errors
    /// Those of [`Switch::new`].
    pub fn sibling(&self, number: u64) -> Result<Switch, LoadError> {
        let mut config = self.config().clone();
        config.seed = config.seed.wrapping_add(number.wrapping_mul(SEED_STEP));
        let mut sibling = Switch::new(Arc::clone(self.program()), config)?;
        sibling.let_go();
        Ok(sibling)
    }

    /// Lets a sibling look at what this switch has been told. From here on neither may be written to.
    pub fn share(&mut self, sibling: &mut Switch) {
        let (state, other) = (&mut self.core.state, &mut sibling.core.state);
        for of in [&mut state.tallies, &mut other.tallies] {
            of.get_or_insert_with(|| {
                Box::new(Tallies::new(state.tables.len(), state.counters.len()))
            });
        }
        other.tables = state.tables.share();
        other.profiles = state.profiles.share();
        other.value_sets = state.value_sets.share();
        sibling.core.replication = self.core.replication.share();
    }

    /// Takes it back from all siblings, with what they have counted.
    ///
    /// # Panics
    /// If a sibling is missing.
    pub fn recall<'a>(&mut self, siblings: impl Iterator<Item = &'a mut Switch>) {
        let mut counted = Vec::new();
        for sibling in siblings {
            sibling.let_go();
            self.core
                .stats
                .add(&std::mem::take(&mut sibling.core.stats));
            let state = &mut sibling.core.state;
            self.core.state.digests_lost += std::mem::take(&mut state.digests_lost);
            counted.extend(state.tallies.as_deref_mut());
        }
        let state = &mut self.core.state;
        let regained = [
            state.tables.regain(),
            state.profiles.regain(),
            state.value_sets.regain(),
            self.core.replication.regain(),
        ];
        assert!(regained == [true; 4], "a sibling is missing");
        let mut own = state.tallies.take();
        for tallies in counted.into_iter().chain(own.as_deref_mut()) {
            state.add_counts(tallies);
        }
        state.tallies = own;
    }

    /// Looks at nothing any more.
    fn let_go(&mut self) {
        let state = &mut self.core.state;
        state.tables = Held::default();
        state.profiles = Held::default();
        state.value_sets = Held::default();
        self.core.replication = Held::default();
    }
}
