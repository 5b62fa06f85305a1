//! What a job is, and the numbers that must not be mixed.

use std::fmt;

/// A training job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(pub u16);

/// A worker's rank within its job, or the number by which a switch knows one of its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub u16);

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {}", self.0)
    }
}

/// A set of ranks, as the header's contributor bitmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct WorkerSet(pub u64);

impl WorkerSet {
    /// Nobody.
    pub const EMPTY: Self = Self(0);

    /// The numbers below `workers`, of which 64 fit.
    pub const fn first(workers: u16) -> Self {
        if workers >= 64 {
            Self(u64::MAX)
        } else {
            Self((1 << workers) - 1)
        }
    }

    /// This worker alone.
    pub const fn only(worker: WorkerId) -> Self {
        Self(1 << (worker.0 & 63))
    }

    /// Whether the worker is in the set.
    pub const fn contains(self, worker: WorkerId) -> bool {
        worker.0 < 64 && self.0 & 1 << worker.0 != 0
    }

    /// Both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// This set without the other.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// How many are in it.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether nobody is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The ranks, ascending.
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

/// A chunk's number on the wire: it wraps, and is compared in serial arithmetic (RFC 1982).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChunkId(pub u32);

impl ChunkId {
    /// The signed distance from `other` to this number. Numbers 2³¹ apart, which RFC 1982 leaves
    /// undefined, count as older.
    pub const fn distance_from(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }

    /// Whether this number came before `other`.
    pub const fn is_older_than(self, other: Self) -> bool {
        self.distance_from(other) < 0
    }

    /// The number `n` later.
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

/// A slot of a job's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotIndex(pub u16);

/// Which of a slot's two cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub bool);

/// One version of one slot, counted from the job's base: `2 · slot + version`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CellIndex(pub u32);

impl CellIndex {
    /// The cell of this version of this slot.
    pub const fn of(slot: SlotIndex, version: Version) -> Self {
        Self((slot.0 as u32) << 1 | version.0 as u32)
    }

    /// As an index of an array.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a worker stands in a tree of switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// Its number among the children of its switch.
    pub child: WorkerId,
    /// How many children that switch has.
    pub siblings: u8,
    /// How many children the topmost switch has, whose sum is that of all.
    pub top: u8,
}

impl Place {
    /// That of a rank of a job that one switch sums.
    pub fn under_one_switch(job: &Job, rank: WorkerId) -> Self {
        let all = job.workers().min(u16::from(wire::MAX_CHILDREN)) as u8;
        Self {
            child: rank,
            siblings: all,
            top: all,
        }
    }

    /// Whether switches can have it: each sums up to 64 children.
    pub fn is_possible(self) -> bool {
        let fits = |children: u8| (1..=wire::MAX_CHILDREN).contains(&children);
        fits(self.siblings) && fits(self.top) && self.child.0 < u16::from(self.siblings)
    }

    /// The bitmap of a complete sum.
    pub fn complete(self) -> WorkerSet {
        WorkerSet::first(u16::from(self.top))
    }

    /// Whether there is one switch only.
    pub fn is_flat(self, job: &Job) -> bool {
        u16::from(self.siblings) == job.workers() && self.top == self.siblings
    }
}

/// A job's settings, which every worker and the server must share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobConfig {
    /// The job's number. It must not be used again while frames of an earlier use can be under way.
    pub job: JobId,
    /// How many workers: 1 to 1,024. More than 64 are more than one switch sums: [`Place`].
    pub workers: u16,
    /// How many chunks a worker may have under way: a power of two up to 2¹⁵.
    pub window: u32,
    /// Values in a packet; the P4 programs sum 32, 64, 256 or 2,048.
    pub values_per_packet: u16,
    /// Values in a round.
    pub values_per_round: usize,
    /// The number of the job's first chunk.
    pub first_chunk: ChunkId,
}

/// Why settings are no job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// A tree of switches sums no more.
    #[error("{0} workers: a job has 1 to 1024")]
    Workers(u16),
    /// The contributor bitmap has 64 bits.
    #[error("{0} workers: one switch, or a server, sums up to 64")]
    OneSwitch(u16),
    /// Slots are found by masking the chunk number.
    #[error("a window of {0}: it must be a power of two up to 32768")]
    Window(u32),
    /// A packet without values carries none.
    #[error("a packet must carry at least one value")]
    ValuesPerPacket,
    /// Chunk numbers are compared in serial arithmetic.
    #[error("{0} values a round make more than 2^30 chunks")]
    ValuesPerRound(usize),
}

/// A job whose settings were checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    config: JobConfig,
    chunks_per_round: u32,
}

impl Job {
    /// Checks the settings.
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

    /// Of two, in frames of four values, for tests.
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

    /// The same of a job that one switch or a server sums.
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

    /// How many workers.
    pub fn workers(&self) -> u16 {
        self.config.workers
    }

    /// Every worker, where one switch sums all.
    pub fn everyone(&self) -> WorkerSet {
        WorkerSet::first(self.config.workers)
    }

    /// How many chunks a worker may have under way.
    pub fn window(&self) -> u32 {
        self.config.window
    }

    /// Cells that the job occupies: two versions of each slot.
    pub fn cells(&self) -> usize {
        2 * self.config.window as usize
    }

    /// Values in a packet.
    pub fn values_per_packet(&self) -> usize {
        usize::from(self.config.values_per_packet)
    }

    /// Values in a round.
    pub fn values_per_round(&self) -> usize {
        self.config.values_per_round
    }

    /// Chunks with values in a round.
    pub fn chunks_per_round(&self) -> u32 {
        self.chunks_per_round
    }

    /// Chunk numbers that a round takes: its values', and a window of scale-only chunks before them.
    pub fn numbers_per_round(&self) -> u64 {
        u64::from(self.window()) + u64::from(self.chunks_per_round)
    }

    /// The number of the first chunk.
    pub fn first_chunk(&self) -> ChunkId {
        self.config.first_chunk
    }

    /// Bytes of the longest frame.
    pub fn max_frame_len(&self) -> usize {
        wire::HEADER_LEN + self.values_per_packet() * wire::VALUE_LEN
    }

    /// The wire's number of the `sequence`-th chunk.
    pub fn chunk(&self, sequence: u64) -> ChunkId {
        self.config.first_chunk.plus(sequence as u32)
    }

    /// Which chunk of the job a number on the wire means, given one that is near; `None` before the first.
    pub fn sequence_near(&self, near: u64, chunk: ChunkId) -> Option<u64> {
        near.checked_add_signed(i64::from(chunk.distance_from(self.chunk(near))))
    }

    /// The lane of a chunk. Lanes count from the job's first chunk, slots from number 0.
    pub(crate) fn lane(&self, chunk: ChunkId) -> usize {
        (chunk.0.wrapping_sub(self.first_chunk().0) & (self.window() - 1)) as usize
    }

    /// The slot of a chunk.
    pub fn slot(&self, chunk: ChunkId) -> SlotIndex {
        SlotIndex((chunk.0 & (self.window() - 1)) as u16)
    }

    /// The version of a chunk's slot.
    pub fn version(&self, chunk: ChunkId) -> Version {
        Version(chunk.0 & self.window() != 0)
    }

    /// The cell of a chunk.
    pub fn cell(&self, chunk: ChunkId) -> CellIndex {
        CellIndex::of(self.slot(chunk), self.version(chunk))
    }

    /// Whether a packet's slot, version and number of values are those of its chunk.
    pub(crate) fn is_well_formed<T: AsRef<[u8]>>(&self, packet: &wire::Packet<T>) -> bool {
        let chunk = ChunkId(packet.chunk());
        let flags = packet.flags();
        let count = usize::from(packet.count());
        packet.slot() == self.slot(chunk).0
            && flags.contains(wire::Flags::VERSION) == self.version(chunk).0
            && if flags.contains(wire::Flags::SCALE_ONLY) || flags.contains(wire::Flags::PROBE) {
                count == 0
            } else {
                count == self.values_per_packet()
            }
    }

    /// The header of a chunk's frame, with what follows from the chunk filled in.
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

    /// Where in the training a chunk lies.
    pub fn position(&self, sequence: u64) -> Position {
        let round = sequence / self.numbers_per_round();
        let offset = (sequence % self.numbers_per_round()) as u32;
        let part = match offset.checked_sub(self.window()) {
            Some(index) => Part::Values(index),
            None => Part::ScaleOnly(offset),
        };
        Position { round, part }
    }
}

/// Where in the training a chunk lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// The round, from 0. The round after the last one holds the closing chunks.
    pub round: u64,
    /// The part of the round.
    pub part: Part,
}

/// The part of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// One of the window of chunks that only agree on exponents.
    ScaleOnly(u32),
    /// A chunk of values.
    Values(u32),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            Part::ScaleOnly(index) => write!(f, "scale-only chunk {index} of round {}", self.round),
            Part::Values(index) => write!(f, "chunk {index} of round {}", self.round),
        }
    }
}
