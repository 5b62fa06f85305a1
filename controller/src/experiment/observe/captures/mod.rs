//! Selects the captured frames that a run's folder keeps, and writes them while the run goes on.
//!
//! A frame waits until the judge has decided whether a fault hit it. Then the frame is written, with a comment if a fault hit
//! it, or discarded.

pub mod file;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::Range;
use std::path::Path;

use proof::{Hit, Outcome, Sight, Way};
use scenario::model::Captures;
use scenario::plan::port_latencies;

use self::file::{Head, Writer, Written};
use super::spool::{Disk, Spooled};
use crate::experiment::Planned;

/// Number of frames that are kept before a hit frame, and also after it, of those between the same two hosts.
const AROUND: usize = 8;
/// Maximum number of pairs of hosts, per port, whose latest frames are remembered.
const MOST_PAIRS: usize = 4_096;
/// Frames of a period of this length are selected and written together, in nanoseconds.
const WRITTEN_AT_ONCE_NS: u64 = 1_000_000_000;
/// Length of the two MAC addresses at the start of a frame, in bytes.
const ADDRESSES: usize = 12;

/// Number of frames that a run's folder keeps of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptPort {
    /// Name of the port's switch.
    pub switch: String,
    /// Number of the port.
    pub port: u32,
    /// Number of frames that passed the port and were judged.
    pub passed: u64,
    /// Number of the port's frames that are in the capture file.
    pub kept: u64,
}

/// Counts of the frames that a run's folder keeps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeptFrames {
    /// Counts of each recorded port, sorted by switch and port number.
    pub ports: Vec<KeptPort>,
    /// Time from which on no frames are kept, in nanoseconds since 1970, and the reason; `None` if frames are kept to the end.
    pub stopped: Option<(u64, String)>,
    /// Why the log of hits ends early; `None` if it is complete.
    pub log_ends: Option<String>,
}

/// Selects frames that faults hit and frames around them, and writes them to the run's folder.
pub struct Keeper {
    captures: Captures,
    disk: Disk,
    ports: Vec<Port>,
    /// The capture files, one per switch.
    files: Vec<Writer>,
    /// Texts for comments, by injection (a fault on a flow): the fault with its effect, and the flow.
    injections: Vec<(String, String)>,
    stopped: Option<(u64, String)>,
    selection: Selection,
}

/// A port of which frames are kept.
struct Port {
    kept: KeptPort,
    /// Index of the switch's capture file in `files`, and index of the port's interface in this file.
    place: (usize, usize),
    /// Latency of the port's link in nanoseconds: how long it holds frames that arrive, and frames that leave.
    latency_ns: (u64, u64),
    held: VecDeque<Spooled>,
    /// Number of frames of the first batch that have been selected or discarded.
    done: usize,
    /// Number of processed frames, of all batches, that arrived at the switch.
    came: u64,
    /// Latest time of the port's frames so far, which never decreases; frames of all ports are sorted by it.
    key_ns: u64,
    /// Comments on hit frames, by the frame's number (from 1) among those that arrived at the port.
    hits: HashMap<u64, Vec<String>>,
    /// Times at which copies of hit frames left through the port, one entry for each copy.
    left: Vec<u64>,
    /// Index in `around` of each pair of hosts, by their addresses; `last_pair` is the pair of the latest frame.
    pairs: HashMap<[u8; ADDRESSES], usize>,
    around: Vec<Around>,
    last_pair: ([u8; ADDRESSES], usize),
}

/// For two hosts: their latest frames that were not kept, and how many of their next frames are to be kept.
#[derive(Default)]
struct Around {
    before: VecDeque<(Head, Vec<u8>)>,
    after: usize,
}

/// Frames that are written next, and their bytes one after another.
#[derive(Default)]
struct Selection {
    frames: Vec<Selected>,
    bytes: Vec<u8>,
}

struct Selected {
    /// Time by which the frames of all ports are sorted; frames of one port keep their order.
    key_ns: u64,
    port: usize,
    head: Head,
    bytes: Range<usize>,
    comments: Vec<String>,
}

impl Selection {
    fn add(&mut self, key_ns: u64, port: usize, head: Head, bytes: &[u8], comments: Vec<String>) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.frames.push(Selected {
            key_ns,
            port,
            head,
            bytes: begin..self.bytes.len(),
            comments,
        });
    }
}

impl Keeper {
    /// Creates the keeper of frames at `ports` (switch and number, sorted); without `folder`, it keeps no frames.
    pub fn new(
        planned: &Planned,
        ports: &[(String, u32)],
        folder: Option<&Path>,
        disk: Disk,
    ) -> io::Result<Keeper> {
        let scenario = &planned.scenario;
        let captures = match folder {
            Some(_) => scenario.captures,
            None => Captures::None,
        };
        let mut keeper = Keeper {
            captures,
            disk,
            ports: Vec::new(),
            files: Vec::new(),
            injections: Vec::new(),
            stopped: None,
            selection: Selection::default(),
        };
        let mut switches = Vec::new();
        for own in ports.chunk_by(|(a, _), (b, _)| a == b) {
            let switch = own[0].0.as_str();
            let numbers: Vec<u32> = own.iter().map(|(_, number)| *number).collect();
            let latencies = port_latencies(&scenario.topology, switch);
            for (position, number) in numbers.iter().enumerate() {
                let latency = latencies.iter().find(|latency| latency.port == *number);
                keeper.ports.push(Port {
                    kept: KeptPort {
                        switch: switch.to_owned(),
                        port: *number,
                        passed: 0,
                        kept: 0,
                    },
                    place: (switches.len(), position),
                    latency_ns: latency.map_or((0, 0), |held| (held.in_ns, held.out_ns)),
                    held: VecDeque::new(),
                    done: 0,
                    came: 0,
                    key_ns: 0,
                    hits: HashMap::new(),
                    left: Vec::new(),
                    pairs: HashMap::new(),
                    around: Vec::new(),
                    last_pair: ([0; ADDRESSES], usize::MAX),
                });
            }
            switches.push((switch, numbers));
        }
        if let Some(folder) = folder.filter(|_| captures != Captures::None) {
            for (switch, numbers) in switches {
                let path = folder.join(file::file_name(switch));
                keeper.files.push(Writer::create(&path, switch, &numbers)?);
            }
        }
        let injections = planned.plan.injections.iter().map(|injection| {
            let mut faults = scenario.faults.iter();
            let effect = faults.find(|fault| fault.id == injection.fault);
            let effect = effect.map_or_else(String::new, |fault| fault.effect.to_string());
            (
                format!("{}: {effect}", injection.fault),
                injection.flow.clone(),
            )
        });
        keeper.injections = injections.collect();
        Ok(keeper)
    }

    /// Takes a batch of frames that the judge has processed.
    pub fn take(&mut self, batch: Spooled) {
        let port = &mut self.ports[batch.port];
        port.kept.passed += batch.frames as u64;
        if self.captures != Captures::None && self.stopped.is_none() {
            port.held.push_back(batch);
        }
    }

    /// Records that a fault hit a frame or should have hit it, so that the frame is kept with a comment.
    pub fn hit(&mut self, hit: &Hit) {
        if self.files.is_empty() || self.stopped.is_some() {
            return;
        }
        let comment = self.comment(hit);
        let find = |ports: &[Port], number: u32| {
            let mut ports = ports.iter();
            ports.position(|port| port.kept.switch == hit.switch && port.kept.port == number)
        };
        for (number, times) in &hit.left {
            if let Some(port) = find(&self.ports, *number) {
                let port = &mut self.ports[port];
                let out_ns = port.latency_ns.1;
                port.left.extend(times.iter().map(|at_ns| at_ns + out_ns));
            }
        }
        let Some(index) = find(&self.ports, hit.port) else {
            return;
        };
        let port = &mut self.ports[index];
        let number = hit.frame as u64;
        if number > port.came {
            port.hits.entry(number).or_default().push(comment);
        } else if self.captures == Captures::Hits {
            // The frame was undecided until the end: uses the bytes that the judge has.
            let head = Head {
                at_ns: hit.at_ns.saturating_sub(port.latency_ns.0),
                way: Way::In,
                wire_len: hit.wire_len,
            };
            let selection = &mut self.selection;
            selection.add(u64::MAX, index, head, &hit.bytes, vec![comment]);
        }
    }

    fn comment(&self, hit: &Hit) -> String {
        let was = match hit.outcome {
            Outcome::Hit => "",
            Outcome::Unforwarded => ", forwarded nowhere",
            Outcome::Missed => ", missed",
            Outcome::Collateral => ", wrongly",
        };
        let place = hit.place.map_or_else(String::new, |place| {
            format!(", PSN {} in round {}", place.relative, place.round)
        });
        let (fault, flow) = &self.injections[hit.injection];
        format!("{fault}{was}, {flow} #{}{place}", hit.ordinal)
    }

    /// Writes the kept frames that passed before `until_ns`; the judge has decided on all of these frames.
    pub fn advance(&mut self, until_ns: u64) {
        if self.files.is_empty() {
            return;
        }
        // One second at a time, because selected frames are in memory.
        let mut bound_ns = 0;
        while bound_ns < until_ns {
            let firsts = self.ports.iter().filter_map(|port| port.held.front());
            let first_ns = firsts.map(|batch| batch.first_ns).min();
            let next_ns = first_ns.unwrap_or(u64::MAX).max(bound_ns);
            bound_ns = next_ns.saturating_add(WRITTEN_AT_ONCE_NS).min(until_ns);
            let mut failed = None;
            for index in 0..self.ports.len() {
                failed = failed.or(self.select(index, bound_ns).err());
            }
            self.write();
            if let Some(error) = failed {
                self.stop(
                    bound_ns,
                    format!("frames that waited cannot be read: {error}"),
                );
            }
        }
    }

    /// Selects frames of a port that passed before `until_ns`.
    fn select(&mut self, index: usize, until_ns: u64) -> io::Result<()> {
        let (captures, port) = (self.captures, &mut self.ports[index]);
        port.left.sort_unstable();
        while let Some(batch) = port.held.pop_front() {
            let done = batch.with(|batch| {
                for (number, sight) in batch.sights().enumerate().skip(port.done) {
                    if sight.at_ns >= until_ns {
                        return number;
                    }
                    port.pass(captures, index, &sight, &mut self.selection);
                }
                batch.records.len()
            })?;
            if done < batch.frames {
                port.done = done;
                port.held.push_front(batch);
                break;
            }
            port.done = 0;
        }
        let old = port.left.partition_point(|at_ns| *at_ns < until_ns);
        port.left.drain(..old);
        Ok(())
    }

    /// Writes the selected frames in the order of time, as long as the disk limit allows.
    fn write(&mut self) {
        let Selection { mut frames, bytes } = std::mem::take(&mut self.selection);
        frames.sort_by_key(|frame| frame.key_ns);
        for frame in frames {
            if self.stopped.is_some() {
                return;
            }
            let written = Written {
                head: frame.head,
                bytes: &bytes[frame.bytes],
                comments: &frame.comments,
            };
            let port = &mut self.ports[frame.port];
            let (switch, position) = port.place;
            let result = match self.disk.take(written.size()) {
                true => self.files[switch].write(position, &written),
                false => Err(io::Error::other("half of `limits.disk` is reached")),
            };
            match result {
                Ok(()) => port.kept.kept += 1,
                Err(error) => self.stop(frame.head.at_ns, error.to_string()),
            }
        }
    }

    /// Stops keeping frames, from `at_ns` on.
    fn stop(&mut self, at_ns: u64, why: String) {
        self.stopped.get_or_insert((at_ns, why));
        for port in &mut self.ports {
            port.held.clear();
            port.hits.clear();
            port.left.clear();
        }
    }

    /// Writes the remaining frames, after the judge has decided on all frames.
    pub fn finish(mut self) -> KeptFrames {
        self.advance(u64::MAX);
        // Hits that were certain only at the end.
        self.write();
        for file in &mut self.files {
            if let Err(error) = file.flush() {
                let last_ns = self.ports.iter().map(|port| port.key_ns).max();
                let stopped = (last_ns.unwrap_or(0), error.to_string());
                self.stopped.get_or_insert(stopped);
            }
        }
        KeptFrames {
            ports: self.ports.into_iter().map(|port| port.kept).collect(),
            stopped: self.stopped,
            log_ends: None,
        }
    }
}

impl Port {
    /// Selects a frame if it was hit or is close to a hit frame; otherwise remembers it, in case that a later frame was hit.
    fn pass(&mut self, captures: Captures, index: usize, sight: &Sight<'_>, to: &mut Selection) {
        let head = Head::from(sight);
        self.key_ns = self.key_ns.max(sight.at_ns);
        let comments = match sight.way {
            Way::In => {
                self.came += 1;
                self.hits.remove(&self.came).unwrap_or_default()
            }
            Way::Out => Vec::new(),
        };
        if captures == Captures::All {
            to.add(self.key_ns, index, head, sight.bytes, comments);
            return;
        }
        let is_copy = sight.way == Way::Out && self.left.binary_search(&sight.at_ns).is_ok();
        let around = self.around(pair(sight.bytes));
        let around = &mut self.around[around];
        if !comments.is_empty() || is_copy {
            for (head, bytes) in around.before.drain(..) {
                to.add(self.key_ns, index, head, &bytes, Vec::new());
            }
            around.after = AROUND;
            to.add(self.key_ns, index, head, sight.bytes, comments);
        } else if around.after > 0 {
            around.after -= 1;
            to.add(self.key_ns, index, head, sight.bytes, comments);
        } else {
            around.remember(head, sight.bytes);
        }
    }
}

impl Port {
    /// Index of a pair of hosts in `around`, where the pair is added if it is new.
    fn around(&mut self, pair: [u8; ADDRESSES]) -> usize {
        if self.last_pair.1 < self.around.len() && self.last_pair.0 == pair {
            return self.last_pair.1;
        }
        if self.pairs.len() > MOST_PAIRS {
            self.pairs.clear();
            self.around.clear();
        }
        let position = *self.pairs.entry(pair).or_insert(self.around.len());
        if position == self.around.len() {
            self.around.push(Around::default());
        }
        self.last_pair = (pair, position);
        position
    }
}

impl Around {
    fn remember(&mut self, head: Head, bytes: &[u8]) {
        // Only the first frames allocate memory.
        let oldest = match self.before.len() {
            AROUND => self.before.pop_front(),
            _ => None,
        };
        let mut own = oldest.map(|(_, bytes)| bytes).unwrap_or_default();
        own.clear();
        own.extend_from_slice(bytes);
        self.before.push_back((head, own));
    }
}

/// The two MAC addresses of a frame, sorted, so that both directions between two hosts have the same pair.
fn pair(frame: &[u8]) -> [u8; ADDRESSES] {
    let mut pair = [0; ADDRESSES];
    if let Some((to, from)) = frame.get(..ADDRESSES).map(|both| both.split_at(6)) {
        pair[..6].copy_from_slice(to.min(from));
        pair[6..].copy_from_slice(to.max(from));
    }
    pair
}

#[cfg(test)]
mod tests {
    use proof::Digest;
    use testbeds::capture::Batch;

    use super::super::spool::Spool;
    use super::*;
    use crate::target::Kind;

    const MS: u64 = 1_000_000;

    fn planned(captures: &str) -> Planned {
        let text = format!(
            "weir: 1\nname: t\ncaptures: {captures}\ntopology: {{star: {{hosts: [a, b], switch: sw}}}}\n\
             flows: {{all: {{from: a, to: b}}}}\nfaults: [{{id: lost, flows: all, effect: drop}}]\n"
        );
        let scenario = scenario::load("t.yaml", &text).unwrap();
        Planned::new(scenario, Kind::Embedded).unwrap()
    }

    /// Keeps 100 frames of two pairs of hosts, a millisecond apart, of which number 51 was hit. Returns the numbers in the file,
    /// the comment's position among them, and the counts.
    fn kept(captures: &str, disk_bytes: u64) -> (Vec<u8>, usize, KeptFrames) {
        let (planned, folder) = (planned(captures), tempfile::tempdir().unwrap());
        let ports = [("sw".to_owned(), 1)];
        let disk = Disk::new(disk_bytes);
        let mut keeper = Keeper::new(&planned, &ports, Some(folder.path()), disk).unwrap();
        let spool = Spool::new(folder.path().to_owned(), Disk::new(0));
        for first in [1_u8, 41] {
            let mut batch = Batch::with_capacity(0, 60, 0);
            for number in first..=(first * 2 + 38).min(100) {
                // Every second frame belongs to the other pair.
                let mut frame = [number % 2; 60];
                frame[59] = number;
                let identity = Digest::of_seed(1).of(&frame, 60);
                batch.push(u64::from(number) * MS, Way::In, 60, identity, &frame);
            }
            keeper.take(spool.put(batch).unwrap());
        }
        keeper.hit(&Hit {
            injection: 0,
            switch: "sw".to_owned(),
            port: 1,
            frame: 51,
            ordinal: 7,
            place: None,
            is_told: false,
            epoch: 1,
            at_ns: 51 * MS,
            left: Vec::new(),
            left_as: None,
            outcome: Outcome::Hit,
            packet: None,
            bytes: Box::default(),
            wire_len: 60,
        });
        // The judge decides the frames step by step.
        (0..120).for_each(|step| keeper.advance(step * MS));
        let kept = keeper.finish();
        let is_cut = kept.stopped.is_some();
        let frames = file::Reader::open(folder.path(), "sw", 1, is_cut).unwrap();
        let numbers = frames.map(|frame| frame.unwrap().1.bytes[59]).collect();
        let text = std::fs::read(folder.path().join("sw.pcapng")).unwrap();
        let comment = b"lost: drop, all #7";
        let comments = text.windows(comment.len());
        let comments = comments.filter(|window| window == comment).count();
        (numbers, comments, kept)
    }

    #[test]
    fn a_hit_frame_is_kept_with_those_of_its_hosts_around_it() {
        let (numbers, comments, kept) = kept("hits", u64::MAX);
        let around: Vec<u8> = (35..=67).step_by(2).collect();
        assert_eq!(numbers, around);
        assert_eq!(comments, 1);
        let port = &kept.ports[0];
        assert_eq!((port.passed, port.kept), (100, 17));
    }

    #[test]
    fn all_frames_are_kept_in_their_order_until_the_limit() {
        let (numbers, comments, _) = kept("all", u64::MAX);
        assert_eq!(numbers, (1..=100).collect::<Vec<u8>>());
        assert_eq!(comments, 1);
        let (numbers, _, kept) = kept("all", 2_000);
        let (at_ns, why) = kept.stopped.unwrap();
        assert!(why.contains("limits.disk"), "{why}");
        assert_eq!(numbers.len() as u64, kept.ports[0].kept);
        assert_eq!(at_ns, (numbers.len() as u64 + 1) * MS);
        assert_eq!(kept.ports[0].passed, 100);
    }
}
