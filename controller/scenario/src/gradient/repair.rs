//! The same training on what is left of its network.

use std::collections::BTreeSet;

use super::resolve::{Asked, plan};
use crate::diagnostic::{Span, Spanned};
use crate::model::Scenario;
use crate::workload::Workload;

/// Why a training cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RepairError {
    /// There is nothing to repair.
    #[error("the scenario has no `plan`")]
    NoPlan,
    /// What is left of the network has none, or switches cannot have it.
    #[error("{0}")]
    NoPlanLeft(String),
}

impl Scenario {
    /// The scenario with its gradients planned again, as if some switches were not there. Of the others those that sum in it, or
    /// can (`summing`), are told of parts, whose numbers begin with `first`: frames of former parts may be under way.
    ///
    /// All else is as it was: hosts, links, ports and addresses, flows and faults. Other packets take one shortest way each,
    /// whatever `routing` says.
    pub fn replanned(
        &self,
        gone: &BTreeSet<String>,
        summing: &BTreeSet<String>,
        first: u16,
    ) -> Result<Scenario, RepairError> {
        let (Some(gradients), Some(Workload::Training(training))) =
            (&self.gradients, &self.workload)
        else {
            return Err(RepairError::NoPlan);
        };
        let mut topology = self.topology.without(gone);
        for switch in &topology.switches {
            let mut capacity = topology.capacity(switch);
            capacity.programmable &= summing.contains(switch);
            topology.capacities.insert(switch.clone(), capacity);
        }
        let mut sink = self.sink();
        // What is said here is of no line of the file.
        let by = Spanned::new(gradients.by, Span::default());
        let asked = Asked {
            first,
            is_proven: false,
        };
        let planned = plan(&mut sink, &topology, training, &by, asked);
        let Some(gradients) = planned else {
            let found = sink.into_diagnostics().0;
            let whys: Vec<String> = found.into_iter().map(|found| found.message).collect();
            return Err(RepairError::NoPlanLeft(whys.join("; ")));
        };
        Ok(Scenario {
            jobs: gradients.jobs(training, by.span),
            gradients: Some(gradients),
            topology,
            // Programs of switches from which one way led have no tables for several.
            ways: None,
            ..self.clone()
        })
    }
}
