//! Parses a switch's table entries: which jobs it sums, who contributes to each (the members), and where it sends the sums.

use std::collections::{BTreeMap, BTreeSet};

use p4lang::runtime::{FieldMatch, Match, MulticastGroup, TableEntry};
use scenario::plan::names::{aggregate, forward};

/// A job that a switch sums, from the switch's table entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummedJob {
    /// Number of the job.
    pub number: u16,
    /// Bitmap with the bit of each member of the job: the bitmap of a complete chunk.
    pub all: u64,
    /// Number of the job's first aggregation slot; each slot has a pair of register cells.
    pub base: u32,
    /// Number of slots of the job.
    pub window: u32,
    /// Bits of a chunk's number that select the chunk's slot; a correct table entry has `window` − 1.
    pub slot_mask: u32,
    /// Port to the next switch up the aggregation tree, and this switch's worker number there; `None` at the topmost switch.
    pub up: Option<(u32, u16)>,
    /// Members of the job, by their worker number.
    pub members: BTreeMap<u16, JobMember>,
}

/// Table entries for one member of a job: for a rank, or for a switch below this one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobMember {
    /// By port at which the member's updates may arrive: the bit that they set in the bitmap of a chunk.
    pub updates: BTreeMap<u32, u64>,
    /// By port at which the member's requests may arrive: the bit in this port's table entry, which should be 0.
    pub questions: BTreeMap<u32, u64>,
}

impl SummedJob {
    /// Worker numbers of the members that contribute to a complete chunk.
    pub fn expected(&self) -> impl Iterator<Item = u16> {
        let all = self.all;
        (0..64).filter(move |bit| all >> bit & 1 == 1)
    }

    /// Worker numbers of the members that have not contributed to the chunk with this bitmap.
    pub fn missing(&self, bitmap: u64) -> Vec<u16> {
        let expected = self.expected();
        expected.filter(|bit| bitmap >> bit & 1 == 0).collect()
    }

    /// Ports through which updates of a member may arrive; empty for an unknown member.
    pub fn ports(&self, member: u16) -> Vec<u32> {
        let known = self.members.get(&member);
        known.map_or_else(Vec::new, |known| known.updates.keys().copied().collect())
    }

    /// Index of the register cell in which the switch sums a chunk.
    pub fn cell(&self, chunk: u32) -> usize {
        let slot = chunk & self.window.wrapping_sub(1);
        let version = usize::from(chunk & self.window != 0);
        2 * (self.base as usize + slot as usize) + version
    }
}

/// Where a switch sends frames with a certain destination MAC address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// Frames leave through the port of this number.
    Port(u32),
    /// Frames go to all ports of the multicast group of this number.
    Group(u32),
    /// Frames go back to their sender, after the switch has answered the requests in them.
    Back,
}

/// All table entries of a switch that concern jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SwitchJobs {
    /// Whether the switch's program can sum.
    pub sums: bool,
    /// Whether the program checks who sends a job's frames; `weir job` admits jobs only to such a program.
    pub guards: bool,
    /// Jobs that the switch sums, by job number.
    pub jobs: BTreeMap<u16, SummedJob>,
    /// Numbers of jobs that have table entries for members, but none for the job itself: the switch does not sum them.
    pub strays: BTreeSet<u16>,
    /// Where the switch sends frames, by destination MAC address as a number.
    pub ways: BTreeMap<u64, Destination>,
    /// Ports of each multicast group, by group number.
    pub groups: BTreeMap<u32, Vec<u32>>,
}

impl SwitchJobs {
    /// Parses the table entries and multicast groups of a switch; `sums`: whether its program can sum.
    pub fn new(sums: bool, entries: &[TableEntry], groups: &[MulticastGroup]) -> SwitchJobs {
        let mut told = SwitchJobs {
            sums,
            ..SwitchJobs::default()
        };
        let of = |table: &'static str| entries.iter().filter(move |entry| entry.table == table);
        for job in of(aggregate::JOBS).filter_map(job) {
            told.jobs.insert(job.number, job);
        }
        for entry in of(aggregate::MEMBERS) {
            let Some((number, worker, is_question, port, bit)) = member(entry) else {
                continue;
            };
            let Some(job) = told.jobs.get_mut(&number) else {
                told.strays.insert(number);
                continue;
            };
            let member = job.members.entry(worker).or_default();
            let ports = match is_question {
                true => &mut member.questions,
                false => &mut member.updates,
            };
            ports.insert(port, bit);
        }
        told.ways = of(forward::TABLE).filter_map(way).collect();
        for group in groups {
            let mut ports: Vec<u32> = group.replicas.iter().map(|copy| copy.port).collect();
            ports.sort_unstable();
            told.groups.insert(group.id, ports);
        }
        told
    }
}

fn key<T: TryFrom<u128>>(entry: &TableEntry, field: &str) -> Option<T> {
    let found = entry.key.iter().find(|key| key.field == field)?;
    let FieldMatch {
        value: Match::Exact(value),
        ..
    } = found
    else {
        return None;
    };
    value.to()
}

fn param<T: TryFrom<u128>>(entry: &TableEntry, name: &str) -> Option<T> {
    let mut params = entry.action.params.iter();
    params.find(|(given, _)| given == name)?.1.to()
}

fn job(entry: &TableEntry) -> Option<SummedJob> {
    let up = match entry.action.name == aggregate::AGGREGATE_PART {
        true => Some((
            param(entry, aggregate::UP_PORT)?,
            param(entry, aggregate::UP_WORKER)?,
        )),
        false => match &entry.action.name[..] {
            aggregate::AGGREGATE_JOB | aggregate::AGGREGATE_UNTIL => None,
            _ => return None,
        },
    };
    Some(SummedJob {
        number: key(entry, aggregate::KEY_JOB)?,
        all: param(entry, aggregate::ALL_WORKERS)?,
        base: param(entry, aggregate::BASE)?,
        window: param(entry, aggregate::WINDOW)?,
        slot_mask: param(entry, aggregate::SLOT_MASK)?,
        up,
        members: BTreeMap::new(),
    })
}

/// Parses a table entry for a member: job, worker number, whether for requests (else updates), port, bit. `None` for others.
fn member(entry: &TableEntry) -> Option<(u16, u16, bool, u32, u64)> {
    (entry.action.name == aggregate::MEMBER).then_some(())?;
    Some((
        key(entry, aggregate::KEY_JOB)?,
        key(entry, aggregate::KEY_WORKER)?,
        key::<u8>(entry, aggregate::KEY_PROBE)? == 1,
        key(entry, aggregate::KEY_PORT)?,
        param(entry, aggregate::WORKER_BIT)?,
    ))
}

fn way(entry: &TableEntry) -> Option<(u64, Destination)> {
    let way = match &entry.action.name[..] {
        // The aggregation protocol takes the first of several routes.
        forward::UNICAST | forward::SPREAD | forward::BETWEEN => {
            Destination::Port(param(entry, forward::PORT)?)
        }
        forward::MULTICAST => Destination::Group(param(entry, forward::GROUP)?),
        forward::BACK => Destination::Back,
        _ => return None,
    };
    Some((key(entry, forward::KEY)?, way))
}
