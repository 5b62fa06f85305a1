//! Triggers, for which faults wait (`when`): events in the network, counted in stages by a register of a switch.
//!
//! A trigger is on from the packet after the one that completes its last stage. Its state is one number per switch, shared by
//! all packets, or one per key. docs/scenarios.md describes it for users, docs/fault-engine.md describes the tables.

use std::fmt;

use crate::diagnostic::Span;
use crate::model::Keys;
use crate::units::show_duration;

/// A declared trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// The trigger's name.
    pub name: String,
    /// The stages that must be completed in order before the trigger is on; never empty.
    pub stages: Vec<Stage>,
    /// Time in nanoseconds for which the trigger stays on, then its stages restart; `None`: it stays on until it is reset.
    pub on_for_ns: Option<u64>,
    /// The event that resets the trigger to its first stage; `None`: no event resets it.
    pub reset: Option<Event>,
    /// The key, if the trigger counts separately for each key; `None`: all packets share one count.
    pub keys: Option<Keys>,
    /// Position of the trigger's declaration in the file.
    pub span: Span,
}

/// A stage of a trigger: an event that must occur a number of times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// The event that the stage counts.
    pub event: Event,
    /// Number of events that complete the stage, at least 1.
    pub count: u32,
    /// Time limit in nanoseconds from the end of the previous stage; when it expires, the trigger restarts. `None`: no limit.
    pub within_ns: Option<u64>,
}

/// An event in the network that a trigger can count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A packet of a flow arrives at the switch.
    Flow {
        /// Declared name of the flow.
        name: String,
        /// Indexes of the flows to which the declared flow was expanded.
        flows: Vec<usize>,
        /// Position in the file where the trigger gives this name.
        span: Span,
    },
    /// A fault hits a packet.
    Fault {
        /// The fault's name.
        name: String,
        /// Index of the fault in the scenario.
        fault: usize,
        /// Position in the file where the trigger gives this name.
        span: Span,
    },
}

impl Event {
    pub(crate) fn is_same(&self, other: &Event) -> bool {
        match (self, other) {
            (Event::Flow { flows, .. }, Event::Flow { flows: others, .. }) => flows == others,
            (Event::Fault { fault, .. }, Event::Fault { fault: other, .. }) => fault == other,
            _ => false,
        }
    }

    /// Position in the file of the flow's or fault's name.
    #[must_use]
    pub fn span(&self) -> Span {
        match self {
            Event::Flow { span, .. } | Event::Fault { span, .. } => *span,
        }
    }
}

impl Trigger {
    /// The events of all stages, followed by the reset event if there is one.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        let stages = self.stages.iter().map(|stage| &stage.event);
        stages.chain(&self.reset)
    }

    /// Indexes of the flows whose packets the trigger counts.
    pub fn flows(&self) -> impl Iterator<Item = usize> + '_ {
        self.events()
            .flat_map(|event| match event {
                Event::Flow { flows, .. } => flows.as_slice(),
                Event::Fault { .. } => &[],
            })
            .copied()
    }

    /// Indexes of the faults whose hits the trigger counts.
    pub fn faults(&self) -> impl Iterator<Item = usize> + '_ {
        self.events().filter_map(|event| match event {
            Event::Fault { fault, .. } => Some(*fault),
            Event::Flow { .. } => None,
        })
    }

    /// Whether any stage of the trigger, or its time on, has a time limit.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.on_for_ns.is_some() || self.stages.iter().any(|stage| stage.within_ns.is_some())
    }
}

impl fmt::Display for Trigger {
    /// For users: `after 1 hit of drop-gets, for 50ms, reset by closing`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, stage) in self.stages.iter().enumerate() {
            let plural = if stage.count == 1 { "" } else { "s" };
            f.write_str(if number == 0 { "after " } else { ", then " })?;
            match &stage.event {
                Event::Flow { name, .. } => write!(f, "{} packet{plural} of {name}", stage.count)?,
                Event::Fault { name, .. } => write!(f, "{} hit{plural} of {name}", stage.count)?,
            }
            if let Some(within_ns) = stage.within_ns {
                write!(f, " within {}", show_duration(within_ns))?;
            }
        }
        if let Some(on_for_ns) = self.on_for_ns {
            write!(f, ", for {}", show_duration(on_for_ns))?;
        }
        match &self.reset {
            Some(Event::Flow { name, .. }) => write!(f, ", reset by {name}")?,
            Some(Event::Fault { name, .. }) => write!(f, ", reset by a hit of {name}")?,
            None => {}
        }
        match &self.keys {
            Some(keys) => write!(f, ", per {}", keys.one),
            None => Ok(()),
        }
    }
}
