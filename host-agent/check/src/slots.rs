//! The switch of the models: with the real slots, or with an independent implementation that lacks one rule.

use aggregation::job::{ChunkId, Job, JobConfig, JobError};
use aggregation::slot::SlotTable;
use wire::{Flags, Kind, Packet, Repr};

use crate::model::Frame;

/// A rule of `docs/protocol.md` that is removed. A checker that finds no error then is useless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// None: the same code must be correct, or the others prove nothing.
    None,
    /// 1: an older chunk is stale. Without this rule, it takes the cell over.
    Stale,
    /// 2: a newer chunk takes the cell over. Without this rule, it is dropped.
    TakeOver,
    /// 2: the values become those of the packet. Without this rule, they are added to the previous ones.
    Overwrite,
    /// 2: the bitmap becomes the worker's bit. Without this rule, the bit is added to the previous ones.
    FreshBitmap,
    /// 2: a cell without contributors is taken over. Without this rule, the first values after a probe are added to the
    /// previous ones.
    Nobody,
    /// 3: a bit per worker records its contribution. Without this rule, arrivals are counted.
    Bitmap,
    /// 3: the scale becomes the maximum. Without this rule, it becomes the last one.
    Scale,
    /// 3: the flag is ORed. Without this rule, it becomes the last one.
    Flag,
    /// 4: nothing changes. Without this rule, the values are added again.
    Nothing,
    /// After 4, a full bitmap sends the sum again. Without this rule, the frame is dropped.
    Again,
    /// A sum needs a full bitmap. Without this rule, each contribution sends the present values as a sum.
    Full,
    /// A slot has two versions. Without this rule, it has one.
    Versions,
    /// A worker sends a chunk only with the result of the chunk one window before. Without this rule, two windows before suffice.
    Window,
    /// A worker may only use its own port. Without this rule, any port.
    Port,
    /// A probe adds nothing. Without this rule, it sets the bit.
    Probe,
    /// A probe is always answered. Without this rule, only if the chunk is complete.
    Told,
    /// A node that waits for too long asks again. Without this rule, nothing is repeated.
    Repeat,
    /// Before a job's first frame, its cells get an older owner. Without this rule, they keep what another job left.
    Admission,
    /// A rack's switch sends a probe of a complete chunk to the switch above. Without this rule, it answers itself.
    Up,
    /// Ranks that wait for other ranks ask them. Without this rule, they only ask the switch.
    Peers,
    /// Nothing is added to a closed chunk. Without this rule, late values are.
    Closed,
    /// In a forgotten cell, a frame that may have been counted before does not count. Without this rule, it does.
    Opened,
    /// A chunk may not be closed in a forgotten cell. Without this rule, it may.
    Forgotten,
    /// A rank that sends values again without the timed flag takes a partial sum only from ranks. Without this rule, from the
    /// switch, too.
    Kept,
    /// A rank that is asked by a rank which has given its values to a host gives its own to the host, too. Without this rule,
    /// only ranks without contact to the switch do.
    Asked,
}

impl Rule {
    /// All rules that can be removed.
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

/// A switch that sums one job.
#[derive(Debug, Clone)]
pub struct Switch {
    job: Job,
    /// `job`, for a switch whose cells are zero.
    zeroed: Job,
    slots: Slots,
    /// Number of children: workers, or switches below.
    children: u8,
    /// Whether chunks may be closed.
    has_deadlines: bool,
    /// Number of restarts so far.
    pub restarts: u8,
}

impl Switch {
    /// A switch with the real slots, or without a rule.
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

    /// Restarts the switch: all registers are zero.
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

    /// Appends all fields that determine its behavior.
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

    /// Description of the cells with contributors.
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

    /// Processes a frame of the child with this number. Returns the sum to send, if any, and whether it is for the sender alone.
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

/// The rules of deadlines and slots, except for the removed one. Returns the header of the sum to send, if any, and whether
/// it is for the sender alone.
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

/// The rules of a slot, except for the removed one. Returns the header of the sum to send, if any.
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
