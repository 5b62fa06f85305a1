//! The possible injection points of faults, and those that a plan chooses.

use std::fmt;

use serde::Serialize;

use crate::model::{Direction, Fault, Path, Scenario};

/// An injection point of a fault for one flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Point {
    /// Index into the scenario's faults.
    pub fault: usize,
    /// Index into the scenario's flows.
    pub flow: usize,
    /// Position of the flow in the fault's list.
    pub cell: usize,
    pub switch: String,
    pub direction: Direction,
}

#[derive(Debug, Clone)]
pub(super) struct Placement {
    /// Injection points in declared order of fault, flow, switch.
    pub points: Vec<Point>,
    /// Switch of each trigger.
    pub triggers: Vec<Option<String>>,
    /// Occupancy of the fullest switch.
    pub fullest: Option<Fullest>,
}

impl Placement {
    /// The faults at an injection point, in declared order.
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

/// One decision of the planner: a fault on flows with the same paths.
pub(super) struct Choice<'s> {
    pub fault: usize,
    /// Flow index and state cell of each flow.
    pub flows: Vec<(usize, usize)>,
    pub paths: &'s [Path],
    pub direction: Direction,
    /// The switches that can take the fault alone, nearest to the sender first.
    pub switches: Vec<&'s str>,
    /// The switch that the file names.
    pub pin: Option<&'s str>,
    /// Whether `switches` excludes switches on every path for another reason than `pin`.
    pub is_limited: bool,
    /// Whether the fault may be spread over several switches because no single one is on every path.
    pub spreads: bool,
}

/// The fullest switch and its scarcest resource. The planner minimizes its occupancy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fullest {
    /// The switch's name; the first one of several.
    pub switch: String,
    /// The resource: `units in ingress`.
    pub resource: String,
    /// Amount that faults use.
    pub taken: u64,
    /// Capacity.
    pub of: u64,
    /// Lower bound on the occupancy of the fullest switch in any plan, as a fraction.
    pub at_least: f64,
    /// Whether the plan's occupancy is proven to be minimal.
    pub is_least: bool,
}

impl Fullest {
    /// The share of a switch that faults should not exceed; above it, the text of a plan reports the occupancy.
    const SHARE: f64 = 0.1;

    /// Occupancy, as a fraction.
    #[must_use]
    pub fn fraction(&self) -> f64 {
        self.taken as f64 / self.of as f64
    }

    /// Whether the text reports the occupancy. It does not if a single fault already exceeds the share, as with a chip's
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
