//! The possible injection points of faults, and the placement: the injection points that a plan chooses.

use std::fmt;

use serde::Serialize;

use crate::model::{Direction, Fault, Path, Scenario};

/// An injection point: the switch and pipeline in which a fault acts on one flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Point {
    /// Index of the fault in the scenario.
    pub fault: usize,
    /// Index of the flow in the scenario.
    pub flow: usize,
    /// Position of the flow in the fault's list of flows, which is also the index of its register cell.
    pub cell: usize,
    pub switch: String,
    pub direction: Direction,
}

#[derive(Debug, Clone)]
pub(super) struct Placement {
    /// Injection points, sorted by fault, flow and switch in declared order.
    pub points: Vec<Point>,
    /// For each trigger of the scenario: name of its switch; `None` if the trigger has none.
    pub triggers: Vec<Option<String>>,
    /// How full the fullest switch is; `None` without faults.
    pub fullest: Option<Fullest>,
}

impl Placement {
    /// The faults at a switch in a pipeline, in declared order.
    pub fn faults_at<'s>(
        &'s self,
        scenario: &'s Scenario,
        switch: &'s str,
        direction: Direction,
    ) -> impl Iterator<Item = &'s Fault> {
        let here = move |fault: usize| {
            self.points.iter().any(|point| {
                point.fault == fault && point.switch == switch && point.direction == direction
            })
        };
        scenario
            .faults
            .iter()
            .enumerate()
            .filter(move |(index, _)| here(*index))
            .map(|(_, fault)| fault)
    }
}

/// One decision of the planner: which switches inject a fault on flows with the same paths.
pub(super) struct Choice<'s> {
    pub fault: usize,
    /// For each flow of the decision: index of the flow in the scenario, index of its register cell.
    pub flows: Vec<(usize, usize)>,
    pub paths: &'s [Path],
    pub direction: Direction,
    /// The switches that every packet of the flows passes, nearest to the sender first.
    pub switches: Vec<&'s str>,
    /// The switch that the file names for the fault; `None` if the planner may choose.
    pub pin: Option<&'s str>,
    /// Whether `switches` lacks a switch that is on every path, for another reason than `pin`.
    pub is_limited: bool,
    /// Whether several switches may inject the fault together, because no single switch is on every path.
    pub spreads: bool,
}

/// The fullest switch and its scarcest resource. The planner minimizes the share of this resource that faults use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fullest {
    /// The switch's name; if several switches are equally full, the first one.
    pub switch: String,
    /// Name of the scarcest resource: `units in ingress`.
    pub resource: String,
    /// Amount of the resource that the faults use.
    pub taken: u64,
    /// Amount of the resource that the switch has for faults.
    pub of: u64,
    /// Lower bound of the fullest switch's used share, from 0 to 1, for every possible plan.
    pub at_least: f64,
    /// Whether it is proven that in every other plan the fullest switch is at least as full.
    pub is_least: bool,
}

impl Fullest {
    /// Used share of a switch (0 to 1) above which the text of a plan reports it.
    const SHARE: f64 = 0.1;

    /// Used share of the resource, from 0 to 1.
    #[must_use]
    pub fn fraction(&self) -> f64 {
        self.taken as f64 / self.of as f64
    }

    /// Whether the text of a plan reports the used share. Not if one fault alone exceeds [`Self::SHARE`], as with a chip's
    /// stages.
    pub(super) fn is_told(&self) -> bool {
        self.fraction() > Self::SHARE && 1.0 <= Self::SHARE * self.of as f64
    }
}

impl fmt::Display for Fullest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            switch,
            resource,
            taken,
            of,
            ..
        } = self;
        let percent = 100.0 * self.fraction();
        write!(
            f,
            "{percent:.1} % of switch {switch}: {taken} of {of} {resource}, "
        )?;
        match self.is_least {
            true => f.write_str("the least there is"),
            false => write!(f, "at least {:.1} % in any plan", 100.0 * self.at_least),
        }
    }
}
