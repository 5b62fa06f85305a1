//! Repairs a gradient plan: plans the same training again on the network that remains after switches died.

use std::collections::BTreeSet;

use super::planned::{PlanRequest, plan};
use crate::diagnostic::{Span, Spanned};
use crate::model::Scenario;
use crate::model::workload::Workload;

/// The reason why a training cannot go on after switches died.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RepairError {
    /// The scenario has no gradient plan that could be repaired.
    #[error("the scenario has no `plan`")]
    NoPlan,
    /// The remaining network has no gradient plan, or its switches cannot carry one out; the text says why.
    #[error("{0}")]
    NoPlanLeft(String),
}

impl Scenario {
    /// The scenario with a new gradient plan that avoids the switches `gone`. Only remaining switches in `summing` may sum. The
    /// numbers of the plan's parts begin with `first`, because frames with the former numbers may be in flight.
    ///
    /// Everything else stays: hosts, links, ports, addresses, flows and faults. Other packets take one shortest path each,
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
        // Diagnostics of this plan refer to no line of the file.
        let by = Spanned::new(gradients.by, Span::default());
        let asked = PlanRequest {
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
            // Programs of switches that had a single path have no tables for several.
            ways: None,
            ..self.clone()
        })
    }
}
