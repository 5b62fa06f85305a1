//! The switch of the models to be checked: with the real slots of crate `aggregation`, or with an independent implementation
//! that lacks one rule.

use aggregation::job::{ChunkId, Job, JobConfig, JobError};
use aggregation::slot::SlotTable;
use wire::{Flags, Kind, Packet, Repr};

use crate::model::Frame;

/// A rule of `docs/protocol.md`, to be removed from a model. The checker must find an error without the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// No rule is removed: this implementation must be correct, or tests without a rule prove nothing.
    None,
    /// Rule 1: a chunk older than the cell's owner is stale. Without this rule, it takes the cell over.
    Stale,
    /// Rule 2: a chunk newer than the cell's owner takes the cell over. Without this rule, its frame is dropped.
    TakeOver,
    /// Rule 2: in a cell taken over, the packet's values replace the former. Without this rule, they are added to the former.
    Overwrite,
    /// Rule 2: in a cell taken over, the bitmap has the worker's bit alone. Without this rule, former bits remain.
    FreshBitmap,
    /// Rule 2: a cell without contributors is taken over. Without this rule, the first values are added to the former ones.
    Nobody,
    /// Rule 3: a bit per worker records its contribution. Without this rule, the switch counts frames.
    Bitmap,
    /// Rule 3: the next exponent becomes the maximum of the frames'. Without this rule, it becomes that of the last frame.
    Scale,
    /// Rule 3: the flag for NaN and infinity is ORed. Without this rule, it becomes that of the last frame.
    Flag,
    /// Rule 4: a repeated contribution changes nothing. Without this rule, its values are added again.
    Nothing,
    /// After rule 4: a repeated contribution to a complete chunk is answered by its sum. Without this rule, it is dropped.
    Again,
    /// A sum needs the bits of all workers. Without this rule, the switch sends the incomplete sum after each contribution.
    Full,
    /// A slot has two versions (cells). Without this rule, it has one cell.
    Versions,
    /// A worker sends a chunk only with the result of the chunk one window before. Without this rule, two windows are enough.
    Window,
    /// A worker's frames are accepted at its own port only. Without this rule, at any port.
    Port,
    /// A probe adds no contribution. Without this rule, it sets the worker's bit.
    Probe,
    /// A probe is always answered. Without this rule, it is answered only if the chunk is complete.
    Told,
    /// A node that waits for too long sends its frame again. Without this rule, no frame is repeated.
    Repeat,
    /// Before a job's first frame, its cells get an owner older than the job. Without this rule, they keep their content.
    Admission,
    /// A rack's switch sends a probe of a complete chunk to the switch above. Without this rule, it answers itself.
    Up,
    /// Ranks that wait for contributions ask the other ranks. Without this rule, they ask only the switch.
    Peers,
    /// The switch adds nothing to a closed chunk. Without this rule, it adds late values.
    Closed,
    /// In a cell forgotten by the switch, a frame that may have been counted before does not count. Without this rule, it does.
    Opened,
    /// A chunk may not be closed in a cell that the switch has forgotten. Without this rule, it may.
    Forgotten,
    /// A rank that sends values again without the timed flag takes a partial sum only from other ranks. Without this rule, it
    /// takes one from the switch, too.
    Kept,
    /// A rank that is asked by a rank which has given its values to a host gives its own values to that host, too. Without this
    /// rule, only ranks without contact to the switch do.
    Asked,
}

impl Rule {
    /// All rules that can be removed from a model.
    pub const ALL: [Self; 25] = [
        Self::Stale,
        Self::TakeOver,
        Self::Overwrite,
        Self::FreshBitmap,
        Self::Nobody,
        Self::Bitmap,
        Self::Scale,
        Self::Flag,
        Self::Nothing,
        Self::Again,
        Self::Full,
        Self::Versions,
        Self::Window,
        Self::Port,
        Self::Probe,
        Self::Told,
        Self::Repeat,
        Self::Admission,
        Self::Up,
        Self::Peers,
        Self::Closed,
        Self::Opened,
        Self::Forgotten,
        Self::Kept,
        Self::Asked,
    ];
}

#[derive(Debug, Clone)]
struct Cell {
    owner: ChunkId,
    contributors: u64,
    arrivals: u32,
    flags: u8,
    next_scale: u8,
    values: Vec<i32>,
    is_opened: bool,
    is_closed: bool,
}

#[derive(Debug, Clone)]
enum Slots {
    Real(SlotTable),
    Without(Rule, Vec<Cell>),
}

/// A switch that sums one job, as a node of a model.
#[derive(Debug, Clone)]
pub struct Switch {
    job: Job,
    /// The job as after a restart of the switch: its register cells are initially zero.
    zeroed: Job,
    slots: Slots,
    /// Number of children: workers, or switches one level below.
    children: u8,
    /// Whether the job has deadlines, so that chunks may be closed.
    has_deadlines: bool,
    /// Number of restarts of the switch so far.
    pub restarts: u8,
}

impl Switch {
    /// Creates a switch with the real slots, or, `without` a rule, with an implementation that lacks it.
    pub fn new(
        config: JobConfig,
        without: Option<Rule>,
        children: u8,
        has_deadlines: bool,
    ) -> Result<Self, JobError> {
        let job = Job::new(config)?;
        let zeroed = Job::new(JobConfig {
            first_chunk: ChunkId(1),
            ..config
        })?;
        let left_by_another = without == Some(Rule::Admission);
        let cell = Cell {
            owner: match left_by_another {
                true => job.first_chunk().plus(5000),
                false => job.first_chunk().plus(u32::MAX),
            },
            contributors: match left_by_another {
                true => job.everyone().0,
                false => 0,
            },
            arrivals: 0,
            flags: 0,
            next_scale: 0,
            values: vec![0; job.values_per_packet()],
            is_opened: has_deadlines,
            is_closed: false,
        };
        Ok(Self {
            job,
            zeroed,
            slots: match without {
                None if has_deadlines => Slots::Real(
                    SlotTable::with_children(job, children)
                        .with_deadlines()
                        .opened(),
                ),
                None => Slots::Real(SlotTable::with_children(job, children)),
                Some(rule) => Slots::Without(rule, vec![cell; job.cells()]),
            },
            children,
            has_deadlines,
            restarts: 0,
        })
    }

    /// The job that the switch sums.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Restarts the switch, which sets all its registers to zero.
    pub fn restart(&mut self) {
        self.restarts += 1;
        match &mut self.slots {
            Slots::Real(slots) => {
                let zeroed = SlotTable::with_children(self.zeroed, self.children);
                *slots = match self.has_deadlines {
                    true => zeroed.with_deadlines(),
                    false => zeroed,
                };
            }
            Slots::Without(_, cells) => cells.iter_mut().for_each(|cell| {
                *cell = Cell {
                    owner: ChunkId(0),
                    contributors: 0,
                    arrivals: 0,
                    flags: 0,
                    next_scale: 0,
                    values: vec![0; cell.values.len()],
                    is_opened: false,
                    is_closed: false,
                };
            }),
        }
    }

    /// Appends to `out` all fields that determine the switch's behavior.
    pub fn state(&self, out: &mut Vec<u8>) {
        out.push(self.restarts);
        match &self.slots {
            Slots::Real(slots) => slots.state(out),
            Slots::Without(_, cells) => {
                for cell in cells {
                    for number in [cell.owner.0, cell.arrivals] {
                        out.extend(number.to_le_bytes());
                    }
                    out.extend(cell.contributors.to_le_bytes());
                    out.extend([cell.flags, cell.next_scale]);
                    out.extend([u8::from(cell.is_opened), u8::from(cell.is_closed)]);
                    let values = cell.values.iter();
                    values.for_each(|value| out.extend(value.to_le_bytes()));
                }
            }
        }
    }

    /// Description, for traces, of the register cells that have contributions.
    pub fn describe(&self) -> String {
        let cell = |owner: ChunkId, contributors: u64, values: &[i32]| {
            let ranks = (0..64).filter(|rank| contributors & 1 << rank != 0);
            let ranks: Vec<String> = ranks.map(|rank: u64| rank.to_string()).collect();
            let values: Vec<String> = values.iter().map(i32::to_string).collect();
            format!("{owner} {{{}}} ({})", ranks.join(" "), values.join(" "))
        };
        let cells: Vec<String> = match &self.slots {
            Slots::Real(slots) => slots
                .cells()
                .filter_map(|index| slots.cell(index))
                .filter(|view| !view.contributors.is_empty())
                .map(|view| cell(view.owner, view.contributors.0, view.values))
                .collect(),
            Slots::Without(_, cells) => cells
                .iter()
                .filter(|cell| cell.contributors != 0)
                .map(|view| cell(view.owner, view.contributors, &view.values))
                .collect(),
        };
        cells.join(", ")
    }

    /// Processes a frame of child number `child`. Returns the sum to send, if any, and whether it goes to the sender alone.
    pub fn take(&mut self, frame: &Frame, child: u8) -> Option<(Vec<u8>, bool)> {
        let packet = Packet::new_checked(&frame.bytes[..]).ok()?;
        let forges = packet.worker() != u16::from(child) && !self.is_without(Rule::Port);
        if packet.kind() != Kind::Update || forges {
            return None;
        }
        let mut bytes = frame.bytes.clone();
        match &mut self.slots {
            Slots::Real(slots) => {
                let outcome = slots.update(&packet);
                let mut sum = Packet::new_unchecked(&mut bytes[..]);
                let is_for_sender = outcome.is_for_sender();
                slots
                    .make_sum(outcome, &mut sum)
                    .then_some((bytes, is_for_sender))
            }
            Slots::Without(rule, cells) => {
                let (job, closes) = (&self.job, self.has_deadlines);
                let (sum, is_for_sender) = update(job, *rule, closes, cells, &packet)?;
                let mut packet = Packet::new_unchecked(&mut bytes[..]);
                sum.emit(&mut packet);
                let cell = &cells[index(&self.job, *rule, ChunkId(sum.chunk))];
                packet.write_i32(cell.values.iter().copied());
                Some((bytes, is_for_sender))
            }
        }
    }

    fn is_without(&self, rule: Rule) -> bool {
        matches!(&self.slots, Slots::Without(without, _) if *without == rule)
    }
}

fn index(job: &Job, without: Rule, chunk: ChunkId) -> usize {
    let cell = job.cell(chunk).index();
    match without {
        Rule::Versions => cell & !1,
        _ => cell,
    }
}

/// Processes an UPDATE by the rules of deadlines and slots, except for the removed rule. Returns the header of the sum to send,
/// if any, and whether it goes to the sender alone.
fn update<T: AsRef<[u8]>>(
    job: &Job,
    without: Rule,
    has_deadlines: bool,
    cells: &mut [Cell],
    packet: &Packet<T>,
) -> Option<(Repr, bool)> {
    let repr = Repr::parse(packet);
    let chunk = ChunkId(repr.chunk);
    let at = index(job, without, chunk);
    let is_probe = repr.flags.contains(Flags::PROBE);
    let is_timed = has_deadlines && repr.flags.contains(Flags::TIMED);
    let cell = &mut cells[at];
    if chunk.distance_from(cell.owner) > 0 {
        cell.is_closed = false;
    }
    let told = |cell: &Cell, sum: Repr| Repr {
        flags: sum
            .flags
            .with(
                Flags::TIMED,
                has_deadlines && is_probe && cell.is_opened && sum.scale == 0,
            )
            .with(Flags::CLOSE, false),
        ..sum
    };
    let owns = chunk == cell.owner;
    if owns && cell.is_closed && without != Rule::Closed {
        let sum = Repr {
            kind: Kind::Sum,
            flags: (Flags::from_bits(cell.flags)
                | repr.flags & (Flags::SCALE_ONLY | Flags::VERSION | Flags::PROBE))
                .with(Flags::AGAIN, true),
            contributors: cell.contributors,
            next_scale: cell.next_scale,
            ..repr
        };
        return Some((told(cell, sum), !is_probe));
    }
    let is_forgotten = is_timed && !cell.is_opened;
    let counts = !is_forgotten || without == Rule::Opened;
    let closes = is_timed
        && !is_probe
        && repr.flags.contains(Flags::CLOSE)
        && (!is_forgotten || without == Rule::Forgotten && owns);
    if is_forgotten && !is_probe && !counts && !closes {
        // The frame contributes nothing, but may take the cell over, as a probe does.
        if chunk.distance_from(cell.owner) > 0 {
            cell.owner = chunk;
            cell.contributors = 0;
            cell.arrivals = 0;
        }
        return None;
    }
    let sum = count(job, without, cells, packet);
    let cell = &mut cells[at];
    if closes && chunk == cell.owner {
        cell.is_closed = true;
        let sum = Repr {
            kind: Kind::Sum,
            flags: (Flags::from_bits(cell.flags)
                | repr.flags & (Flags::SCALE_ONLY | Flags::VERSION))
                .with(Flags::AGAIN, false),
            contributors: cell.contributors,
            next_scale: cell.next_scale,
            ..repr
        };
        return Some((told(cell, sum), false));
    }
    sum.map(|sum| (told(cell, sum), false))
}

/// Processes an UPDATE by the rules of a slot, except for the removed rule. Returns the header of the sum to send, if any.
fn count<T: AsRef<[u8]>>(
    job: &Job,
    without: Rule,
    cells: &mut [Cell],
    packet: &Packet<T>,
) -> Option<Repr> {
    let repr = Repr::parse(packet);
    let chunk = ChunkId(repr.chunk);
    let is_ours = repr.job == job.id().0
        && repr.worker < job.workers()
        // Ranks with a window twice as large as the switch's use other slots.
        && (without == Rule::Window || repr.slot == job.slot(chunk).0);
    if !is_ours {
        return None;
    }
    let everyone = job.everyone().0;
    let bit = 1 << repr.worker;
    let is_probe = repr.flags.contains(Flags::PROBE);
    let cell = &mut cells[index(job, without, chunk)];
    if chunk.is_older_than(cell.owner) && without != Rule::Stale {
        // The answer contains the difference.
        return is_probe.then(|| Repr {
            kind: Kind::Sum,
            flags: repr.flags & (Flags::SCALE_ONLY | Flags::VERSION | Flags::PROBE),
            contributors: u64::from(chunk.0.wrapping_sub(cell.owner.0)),
            scale: 1,
            ..repr
        });
    }
    let owns = chunk == cell.owner;
    if !owns && cell.contributors != 0 && without == Rule::TakeOver {
        return None;
    }
    let is_full = |cell: &Cell| match without {
        Rule::Bitmap => cell.arrivals >= u32::from(job.workers()),
        _ => cell.contributors == everyone,
    };
    let was_full = owns && is_full(cell);
    let is_repeated = match without {
        Rule::Bitmap => was_full,
        _ => owns && cell.contributors & bit != 0,
    };
    let sum = |cell: &Cell, again| Repr {
        kind: Kind::Sum,
        flags: (Flags::from_bits(cell.flags)
            | repr.flags & (Flags::SCALE_ONLY | Flags::VERSION | Flags::PROBE))
            .with(Flags::AGAIN, again),
        contributors: match without {
            Rule::Full if !is_probe => everyone,
            // With a counter instead of a bitmap, the contributors are unknown.
            Rule::Bitmap if is_full(cell) => everyone,
            _ => cell.contributors,
        },
        next_scale: cell.next_scale,
        ..repr
    };
    let add = |cell: &mut Cell| {
        let values = cell.values.iter_mut().zip(packet.values_i32());
        values.for_each(|(sum, value)| *sum = sum.wrapping_add(value));
    };
    if !is_probe && is_repeated {
        if without == Rule::Nothing {
            add(cell);
        }
        return (was_full && without != Rule::Again).then(|| sum(cell, true));
    }
    let is_empty = cell.contributors == 0 && without != Rule::Nobody;
    let is_first = !owns || is_empty;
    let added = match is_probe && without != Rule::Probe {
        true => 0,
        false => bit,
    };
    let flags = (repr.flags & Flags::NON_FINITE).bits();
    if is_first {
        let left = match without {
            Rule::FreshBitmap => cell.contributors,
            _ => 0,
        };
        cell.owner = chunk;
        cell.contributors = left | added;
        cell.arrivals = 0;
        cell.flags = flags;
        cell.next_scale = repr.next_scale;
        // A frame without values leaves the values unchanged.
        if repr.count > 0 && without != Rule::Overwrite {
            cell.values.fill(0);
        }
    } else {
        cell.contributors |= added;
        match without {
            Rule::Flag => cell.flags = flags,
            _ => cell.flags |= flags,
        }
        cell.next_scale = match without {
            Rule::Scale => repr.next_scale,
            _ => cell.next_scale.max(repr.next_scale),
        };
    }
    add(cell);
    cell.arrivals += u32::from(!is_probe);
    if is_probe {
        let tells = without != Rule::Told || is_full(cell);
        return tells.then(|| sum(cell, is_full(cell)));
    }
    (is_full(cell) || without == Rule::Full).then(|| sum(cell, false))
}
