//! A switch of a tree that is not the topmost.

use aggregation::Destination;
use aggregation::job::{ChunkId, Job, JobConfig, JobError, WorkerId};
use aggregation::slot::{Outcome, SlotTable};
use wire::{Flags, Kind, Packet};

use crate::model::Frame;

/// It sums its ranks, and gives what is complete to the switch above.
#[derive(Debug, Clone)]
pub struct Rack {
    /// By which the switch above knows it.
    pub number: u8,
    /// How often it has forgotten everything.
    pub restarts: u8,
    children: u8,
    /// The same job, whose cells are zero at the beginning.
    zeroed: Job,
    slots: SlotTable,
    /// It answers a probe of what is complete here by itself: a rule is removed.
    answers_itself: bool,
}

/// What becomes of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// It goes on to the switch above.
    Up(Vec<u8>),
    /// It goes back to who sent it.
    Back(Vec<u8>),
    /// It ends here.
    Absorbed,
}

impl Rack {
    /// With cells that are older than the job.
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
            slots: SlotTable::of(Job::new(config)?, children),
            answers_itself,
        })
    }

    /// It has forgotten everything, and goes on: all its registers are zero.
    pub fn restart(&mut self) {
        self.restarts += 1;
        self.slots = SlotTable::of(self.zeroed, self.children);
    }

    /// Appends all that decides what it does.
    pub fn state(&self, out: &mut Vec<u8>) {
        out.push(self.restarts);
        self.slots.state(out);
    }

    /// Takes a frame of one of its ranks in, which it knows by this number.
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
        // Sums are the topmost switch's.
        let is_asked = matches!(outcome, Outcome::Probed(_) | Outcome::ProbedStale(_));
        match is_asked && self.slots.make_sum(outcome, &mut packet) {
            true => Taken::Back(bytes),
            false => Taken::Absorbed,
        }
    }

    /// The cells that somebody has contributed to.
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
