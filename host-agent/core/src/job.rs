//! Settings of a training job, and newtypes for job, worker, chunk, slot and cell numbers, which must not be mixed up.

use std::fmt;

/// Number of a training job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(pub u16);

/// A worker's rank within its job, or the number of a child (a worker or a lower switch) at its switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub u16);

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {}", self.0)
    }
}

/// A set of workers, in the form of the header's contributor bitmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct WorkerSet(pub u64);

impl WorkerSet {
    /// The empty set.
    pub const EMPTY: Self = Self(0);

    /// The workers with numbers below `workers`; values above 64 count as 64.
    pub const fn first(workers: u16) -> Self {
        if workers >= 64 {
            Self(u64::MAX)
        } else {
            Self((1 << workers) - 1)
        }
    }

    /// The set of this worker alone; its number must be below 64.
    pub const fn only(worker: WorkerId) -> Self {
        Self(1 << (worker.0 & 63))
    }

    /// Whether the worker is in the set.
    pub const fn contains(self, worker: WorkerId) -> bool {
        worker.0 < 64 && self.0 & 1 << worker.0 != 0
    }

    /// The union of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// This set without the workers in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Number of workers in the set.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The workers in the set, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = WorkerId> {
        (0..64)
            .map(WorkerId)
            .filter(move |worker| self.contains(*worker))
    }
}

impl fmt::Display for WorkerSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nobody");
        }
        for (i, worker) in self.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{worker}")?;
        }
        Ok(())
    }
}

/// A chunk's sequence number on the wire: it wraps, and comparisons use serial arithmetic (RFC 1982).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChunkId(pub u32);

impl ChunkId {
    /// Signed distance from `other` to this number. Numbers 2³¹ apart, undefined in RFC 1982, count as older.
    pub const fn distance_from(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }

    /// Whether this number precedes `other` in serial arithmetic.
    pub const fn is_older_than(self, other: Self) -> bool {
        self.distance_from(other) < 0
    }

    /// The chunk number `n` after this one, wrapping.
    #[must_use]
    pub const fn plus(self, n: u32) -> Self {
        Self(self.0.wrapping_add(n))
    }
}

impl fmt::Display for ChunkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// Index of an aggregation slot (two register cells of a switch) within a job. A slot sums every `window`-th chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotIndex(pub u16);

/// Selects one of a slot's two register cells, which successive windows of chunks use in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub bool);

/// Number of a register cell, which is one version of one slot: `2 · slot + version`, counted from the job's first cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CellIndex(pub u32);

impl CellIndex {
    /// Number of the register cell that holds `version` of `slot`.
    pub const fn new(slot: SlotIndex, version: Version) -> Self {
        Self((slot.0 as u32) << 1 | version.0 as u32)
    }

    /// The cell's number as an array index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A worker's position in the tree of switches that sums its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TreePosition {
    /// The worker's number among the children of its switch.
    pub child: WorkerId,
    /// Number of children (workers or lower switches) of the worker's switch.
    pub siblings: u8,
    /// Number of children of the topmost switch, which computes the sum over all workers.
    pub top: u8,
}

impl TreePosition {
    /// Position of a rank in the tree of switches, for a job that a single switch sums.
    pub fn under_one_switch(job: &Job, rank: WorkerId) -> Self {
        let all = job.workers().min(u16::from(wire::MAX_CHILDREN)) as u8;
        Self {
            child: rank,
            siblings: all,
            top: all,
        }
    }

    /// Whether the switches support this position in the tree: each switch sums 1 to 64 children.
    pub fn is_possible(self) -> bool {
        let fits = |children: u8| (1..=wire::MAX_CHILDREN).contains(&children);
        fits(self.siblings) && fits(self.top) && self.child.0 < u16::from(self.siblings)
    }

    /// Contributor bitmap of a complete sum: all children of the topmost switch.
    pub fn complete(self) -> WorkerSet {
        WorkerSet::first(u16::from(self.top))
    }

    /// Whether a single switch sums the whole job.
    pub fn is_flat(self, job: &Job) -> bool {
        u16::from(self.siblings) == job.workers() && self.top == self.siblings
    }
}

/// A job's settings, identical for every worker and the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobConfig {
    /// The job's number, which must not be reused while frames of an earlier use may be in flight.
    pub job: JobId,
    /// Number of workers, 1 to 1,024. More than 64 need more than one switch: see [`TreePosition`].
    pub workers: u16,
    /// Maximum number of chunks that a worker has in flight: a power of two up to 2¹⁵.
    pub window: u32,
    /// Number of values per packet; the P4 programs sum 32, 64, 256 or 2,048.
    pub values_per_packet: u16,
    /// Number of values per round.
    pub values_per_round: usize,
    /// The number of the job's first chunk.
    pub first_chunk: ChunkId,
}

/// Reason why the settings of a job are rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// The number of workers is 0 or above 1,024, the limit of a tree of switches.
    #[error("{0} workers: a job has 1 to 1024")]
    Workers(u16),
    /// More than 64 workers without a tree of switches: the contributor bitmap has 64 bits.
    #[error("{0} workers: a single switch, or a server, sums up to 64")]
    OneSwitch(u16),
    /// The window is not a power of two up to 2¹⁵; slots are found by masking the chunk number.
    #[error("a window of {0}: it must be a power of two up to 32768")]
    Window(u32),
    /// The number of values per packet is 0.
    #[error("a packet must carry at least one value")]
    ValuesPerPacket,
    /// A round has more than 2³⁰ chunks, too many for serial arithmetic (RFC 1982) on chunk numbers.
    #[error("{0} values per round exceed 2^30 chunks")]
    ValuesPerRound(usize),
}

/// A job with validated settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    config: JobConfig,
    chunks_per_round: u32,
}

impl Job {
    /// Validates the settings of a job.
    pub fn new(config: JobConfig) -> Result<Self, JobError> {
        if !(1..=wire::MAX_WORKERS).contains(&config.workers) {
            return Err(JobError::Workers(config.workers));
        }
        if !config.window.is_power_of_two() || config.window > 1 << 15 {
            return Err(JobError::Window(config.window));
        }
        if config.values_per_packet == 0 {
            return Err(JobError::ValuesPerPacket);
        }
        let chunks = config
            .values_per_round
            .div_ceil(usize::from(config.values_per_packet));
        let chunks_per_round = u32::try_from(chunks)
            .ok()
            .filter(|chunks| *chunks <= 1 << 30)
            .ok_or(JobError::ValuesPerRound(config.values_per_round))?;
        Ok(Self {
            config,
            chunks_per_round,
        })
    }

    /// A job of two workers with four values per frame, for tests.
    #[cfg(test)]
    pub(crate) fn of_two(first_chunk: u32) -> Self {
        let config = JobConfig {
            job: JobId(1),
            workers: 2,
            window: 4,
            values_per_packet: 4,
            values_per_round: 0,
            first_chunk: ChunkId(first_chunk),
        };
        Self::under_one_switch(config).expect("a job that can be")
    }

    /// Validates the settings of a job that one switch or a server sums: at most 64 workers.
    pub fn under_one_switch(config: JobConfig) -> Result<Self, JobError> {
        let job = Self::new(config)?;
        match config.workers <= u16::from(wire::MAX_CHILDREN) {
            true => Ok(job),
            false => Err(JobError::OneSwitch(config.workers)),
        }
    }

    /// The job's number.
    pub fn id(&self) -> JobId {
        self.config.job
    }

    /// Number of workers.
    pub fn workers(&self) -> u16 {
        self.config.workers
    }

    /// The set of all workers, in a job that a single switch sums.
    pub fn everyone(&self) -> WorkerSet {
        WorkerSet::first(self.config.workers)
    }

    /// Maximum number of chunks that a worker has in flight.
    pub fn window(&self) -> u32 {
        self.config.window
    }

    /// Number of register cells that the job occupies: two versions of each slot.
    pub fn cells(&self) -> usize {
        2 * self.config.window as usize
    }

    /// Number of values per packet.
    pub fn values_per_packet(&self) -> usize {
        usize::from(self.config.values_per_packet)
    }

    /// Number of values per round.
    pub fn values_per_round(&self) -> usize {
        self.config.values_per_round
    }

    /// Number of chunks that carry values in each round.
    pub fn chunks_per_round(&self) -> u32 {
        self.chunks_per_round
    }

    /// Number of sequence numbers that a round uses: one window of scale-only chunks, then the chunks with values.
    pub fn numbers_per_round(&self) -> u64 {
        u64::from(self.window()) + u64::from(self.chunks_per_round)
    }

    /// The number of the first chunk.
    pub fn first_chunk(&self) -> ChunkId {
        self.config.first_chunk
    }

    /// Length of the longest frame in bytes, from the aggregation header on.
    pub fn max_frame_len(&self) -> usize {
        wire::HEADER_LEN + self.values_per_packet() * wire::VALUE_LEN
    }

    /// Sequence number on the wire of the job's chunk at position `sequence`, counted from 0.
    pub fn chunk(&self, sequence: u64) -> ChunkId {
        self.config.first_chunk.plus(sequence as u32)
    }

    /// Position in the job of the chunk with this wire number that is nearest to `near`; `None` if before the first chunk.
    pub fn sequence_near(&self, near: u64, chunk: ChunkId) -> Option<u64> {
        near.checked_add_signed(i64::from(chunk.distance_from(self.chunk(near))))
    }

    /// Index of a chunk's lane, the sender of every `window`-th chunk. Lane 0 has the job's first chunk, whatever its slot is.
    pub(crate) fn lane(&self, chunk: ChunkId) -> usize {
        (chunk.0.wrapping_sub(self.first_chunk().0) & (self.window() - 1)) as usize
    }

    /// Index of the switch slot that sums a chunk.
    pub fn slot(&self, chunk: ChunkId) -> SlotIndex {
        SlotIndex((chunk.0 & (self.window() - 1)) as u16)
    }

    /// The version (one of the slot's two register cells) that sums a chunk.
    pub fn version(&self, chunk: ChunkId) -> Version {
        Version(chunk.0 & self.window() != 0)
    }

    /// Number of the register cell that sums a chunk.
    pub fn cell(&self, chunk: ChunkId) -> CellIndex {
        CellIndex::new(self.slot(chunk), self.version(chunk))
    }

    /// Whether slot, version and number of values in a header are correct for the chunk number in it.
    pub(crate) fn is_well_formed(&self, repr: &wire::Repr) -> bool {
        let (chunk, flags, count) = (ChunkId(repr.chunk), repr.flags, usize::from(repr.count));
        repr.slot == self.slot(chunk).0
            && flags.contains(wire::Flags::VERSION) == self.version(chunk).0
            && if flags.contains(wire::Flags::SCALE_ONLY) || flags.contains(wire::Flags::PROBE) {
                count == 0
            } else {
                count == self.values_per_packet()
            }
    }

    /// Header of a chunk's frame, with the fields that follow from the chunk's `sequence` filled in.
    /// Header of a probe, by the worker with this number at its switch, of the chunk `sequence` after the job's first.
    pub fn probe(&self, sequence: u64, child: WorkerId) -> wire::Repr {
        let mut header = self.header(wire::Kind::Update, sequence, true);
        header.flags = header.flags.with(wire::Flags::SCALE_ONLY, false) | wire::Flags::PROBE;
        header.worker = child.0;
        header
    }

    pub(crate) fn header(&self, kind: wire::Kind, sequence: u64, scale_only: bool) -> wire::Repr {
        let chunk = self.chunk(sequence);
        wire::Repr {
            kind,
            flags: wire::Flags::NONE
                .with(wire::Flags::VERSION, self.version(chunk).0)
                .with(wire::Flags::SCALE_ONLY, scale_only),
            job: self.id().0,
            chunk: chunk.0,
            slot: self.slot(chunk).0,
            worker: 0,
            transmission: 0,
            contributors: 0,
            scale: 0,
            next_scale: 0,
            count: if scale_only {
                0
            } else {
                self.config.values_per_packet
            },
        }
    }

    /// Round of the training, and part of that round, to which a chunk belongs.
    pub fn position(&self, sequence: u64) -> Position {
        let round = sequence / self.numbers_per_round();
        let offset = (sequence % self.numbers_per_round()) as u32;
        let part = match offset.checked_sub(self.window()) {
            Some(index) => RoundPart::Values(index),
            None => RoundPart::ScaleOnly(offset),
        };
        Position { round, part }
    }
}

/// Round of the training, and part of that round, to which a chunk belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// The round, from 0. The chunks that close the job belong to the round after the last one.
    pub round: u64,
    /// Whether the chunk carries values or only settles an exponent, and its index.
    pub part: RoundPart,
}

/// Part of a round: a round has scale-only chunks first, then chunks with values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RoundPart {
    /// A chunk without values, by which workers agree on the exponent of a later chunk; its index in the window, from 0.
    ScaleOnly(u32),
    /// A chunk of values; its index among the round's chunks with values, from 0.
    Values(u32),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            RoundPart::ScaleOnly(index) => {
                write!(f, "scale-only chunk {index} of round {}", self.round)
            }
            RoundPart::Values(index) => write!(f, "chunk {index} of round {}", self.round),
        }
    }
}
