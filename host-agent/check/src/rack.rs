//! A switch of a tree, below the topmost switch, for the model checker.

use aggregation::Destination;
use aggregation::job::{ChunkId, Job, JobConfig, JobError, WorkerId};
use aggregation::slot::{Outcome, SlotTable};
use wire::{Flags, Kind, Packet};

use crate::model::Frame;

/// A rack's switch: it sums its ranks, and sends completed chunks to the switch above.
#[derive(Debug, Clone)]
pub struct Rack {
    /// Number of this switch among the children of the switch above.
    pub number: u8,
    /// Number of restarts of the switch so far.
    pub restarts: u8,
    children: u8,
    /// The job as after a restart of the switch: its register cells are initially zero.
    zeroed: Job,
    slots: SlotTable,
    /// Whether the switch answers probes of complete chunks itself, which violates [`Rule::Up`](crate::slots::Rule::Up).
    answers_itself: bool,
}

/// Action of a rack's switch on a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// The switch sends this frame to the switch above.
    Up(Vec<u8>),
    /// The switch returns this frame to its sender.
    Back(Vec<u8>),
    /// The switch sends nothing.
    Absorbed,
}

impl Rack {
    /// Creates a rack's switch whose cells have owners older than the job's first chunk.
    pub fn new(
        config: JobConfig,
        number: u8,
        children: u8,
        answers_itself: bool,
    ) -> Result<Self, JobError> {
        let zeroed = Job::new(JobConfig {
            first_chunk: ChunkId(1),
            ..config
        })?;
        Ok(Self {
            number,
            restarts: 0,
            children,
            zeroed,
            slots: SlotTable::with_children(Job::new(config)?, children),
            answers_itself,
        })
    }

    /// Restarts the switch, which sets all its registers to zero.
    pub fn restart(&mut self) {
        self.restarts += 1;
        self.slots = SlotTable::with_children(self.zeroed, self.children);
    }

    /// Appends to `out` all fields that determine the switch's behavior.
    pub fn state(&self, out: &mut Vec<u8>) {
        out.push(self.restarts);
        self.slots.state(out);
    }

    /// Processes a frame of the rank that is this switch's child number `child`.
    pub fn take(&mut self, frame: &Frame, child: u8) -> Taken {
        let mut bytes = frame.bytes.clone();
        let Ok(mut packet) = Packet::new_checked(&mut bytes[..]) else {
            return Taken::Absorbed;
        };
        let is_update = packet.kind() == Kind::Update && frame.addressed != Destination::Server;
        if !is_update || packet.worker() != u16::from(child) {
            return Taken::Absorbed;
        }
        let outcome = self.slots.update(&packet);
        let stays = self.answers_itself && packet.flags().contains(Flags::PROBE);
        let above = WorkerId(u16::from(self.number));
        if !stays && self.slots.make_update(outcome, above, &mut packet) {
            return Taken::Up(bytes);
        }
        // Only the topmost switch makes sums.
        let is_asked = matches!(outcome, Outcome::Probed(_) | Outcome::ProbedStale(_));
        match is_asked && self.slots.make_sum(outcome, &mut packet) {
            true => Taken::Back(bytes),
            false => Taken::Absorbed,
        }
    }

    /// Description, for traces, of the register cells that have contributions.
    pub fn describe(&self) -> String {
        let cells = self
            .slots
            .cells()
            .filter_map(|index| self.slots.cell(index))
            .filter(|view| !view.contributors.is_empty())
            .map(|view| {
                let ranks = view.contributors.iter().map(|child| child.0.to_string());
                let ranks: Vec<String> = ranks.collect();
                format!("{} {{{}}}", view.owner, ranks.join(" "))
            });
        cells.collect::<Vec<String>>().join(", ")
    }
}
