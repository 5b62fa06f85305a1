//! The switch: the slots that run, or slots written anew with one rule removed.

use aggregation::job::{ChunkId, Job, JobConfig, JobError};
use aggregation::slot::SlotTable;
use wire::{Flags, Kind, Packet, Repr};

use crate::model::Frame;

/// A rule of `docs/protocol.md` that is not kept. A checker that finds nothing wrong then is worth nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// None: the same code must be right, or the others prove nothing.
    None,
    /// 1: an older chunk is stale. Without, it takes the cell over.
    Stale,
    /// 2: a newer chunk takes the cell over. Without, it is dropped.
    TakeOver,
    /// 2: values are the packet's. Without, they are added to what is left.
    Overwrite,
    /// 2: the bitmap is the worker's bit. Without, the bit is added to what is left.
    FreshBitmap,
    /// 2: a cell that nobody has contributed to is taken over. Without, the first after a probe is added to what is left.
    Nobody,
    /// 3: who has contributed is told from who has not by a bit. Without, arrivals are counted.
    Bitmap,
    /// 3: the scale is maximised. Without, the last one counts.
    Scale,
    /// 3: the flag is ORed. Without, the last one counts.
    Flag,
    /// 4: nothing changes. Without, the values are added once more.
    Nothing,
    /// After 4, a full bitmap makes the sum once more. Without, the frame is dropped.
    Again,
    /// The bitmap must be full. Without, what there is goes on as a sum after every contribution.
    Full,
    /// A slot has two versions. Without, it has one.
    Versions,
    /// A worker sends a chunk only when it has the result of the one a window before. Without, of the one two windows before.
    Window,
    /// Nobody speaks for another port's worker.
    Port,
    /// A probe adds nothing. Without, it sets the bit.
    Probe,
    /// A probe is answered whoever is missing. Without, only if nobody is.
    Told,
    /// Who waits for too long asks again. Without, nobody repeats anything.
    Repeat,
    /// Before a job's first frame, its cells get an owner that is older. Without, they have what another job left.
    Admission,
    /// A rack's switch gives a probe of what is complete there to the switch above. Without, it answers.
    Up,
    /// Ranks that wait for others ask them. Without, they ask the switch alone.
    Peers,
    /// To what is closed nothing is added. Without, a late frame is.
    Closed,
    /// Where a cell was forgotten, a frame that an earlier switch may have counted counts no more. Without, it does.
    Opened,
    /// A chunk may not be closed where its cell was forgotten. Without, it may.
    Forgotten,
    /// Who sends values again that do not count where they may have been closed takes a partial sum from ranks alone. Without,
    /// from the switch as well.
    Kept,
    /// Who is asked by one that has given its values to a host gives them to it, too. Without, only who hears nothing of the
    /// switch does.
    Asked,
}

impl Rule {
    /// All that can be removed.
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
    /// The same job, whose cells are zero at the beginning.
    zeroed: Job,
    slots: Slots,
    /// How many it sums: workers, or switches below it.
    children: u8,
    /// Whether chunks may be closed.
    has_deadlines: bool,
    /// How often it has forgotten everything.
    pub restarts: u8,
}

impl Switch {
    /// With the slots that run, or without a rule.
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
                None if has_deadlines => {
                    Slots::Real(SlotTable::of(job, children).with_deadlines().opened())
                }
                None => Slots::Real(SlotTable::of(job, children)),
                Some(rule) => Slots::Without(rule, vec![cell; job.cells()]),
            },
            children,
            has_deadlines,
            restarts: 0,
        })
    }

    /// The job that it sums.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// It has forgotten everything, and goes on: all its registers are zero.
    pub fn restart(&mut self) {
        self.restarts += 1;
        match &mut self.slots {
            Slots::Real(slots) => {
                let zeroed = SlotTable::of(self.zeroed, self.children);
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

    /// Appends all that decides what it does.
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

    /// The cells that somebody has contributed to.
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

    /// What goes on of a frame: a sum, if there is one, and whether it is for the sender alone.
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

/// The rules of deadlines around those of a slot, but for one. Returns the header of the sum that goes on, and whether it is for
/// the sender alone.
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
        // An update of nobody: it may take the cell over, as a probe does.
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

/// A slot's rules, but for one. Returns the header of the sum that goes on.
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
        // Ranks whose window is twice ours name other slots.
        && (without == Rule::Window || repr.slot == job.slot(chunk).0);
    if !is_ours {
        return None;
    }
    let everyone = job.everyone().0;
    let bit = 1 << repr.worker;
    let is_probe = repr.flags.contains(Flags::PROBE);
    let cell = &mut cells[index(job, without, chunk)];
    if chunk.is_older_than(cell.owner) && without != Rule::Stale {
        // By how much.
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
            // Who counts does not know who.
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
        // A frame without values leaves them as they are.
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
