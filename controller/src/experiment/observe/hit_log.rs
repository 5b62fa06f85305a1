//! Writes the hits of packet faults to `events.jsonl` during a run, in the order in which the frames arrived.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use proof::{Hit, Outcome};

use super::events;
use crate::experiment::Planned;

/// Name of the log of hits in the folder of a run. It has one line for each frame that a fault hit or should have hit, then one
/// for each execution of a fault of a program or a switch.
pub const EVENTS: &str = "events.jsonl";

/// Sorts hits by the time, switch, port and number of their frames. Hits that are decided only at the run's end come last.
#[derive(Debug, Default)]
pub struct InOrder {
    waiting: BTreeMap<(u64, String, u32, usize, usize), Hit>,
}

impl InOrder {
    /// Adds a hit, which may be of an earlier frame than those before.
    pub fn add(&mut self, hit: Hit) {
        let key = (
            hit.at_ns,
            hit.switch.clone(),
            hit.port,
            hit.frame,
            hit.injection,
        );
        self.waiting.insert(key, hit);
    }

    /// Takes the hits of frames that arrived before `until_ns`; none of these frames has a later hit, except at the run's end.
    pub fn take(&mut self, until_ns: u64) -> Vec<Hit> {
        let later = match until_ns {
            u64::MAX => BTreeMap::new(),
            _ => (self.waiting).split_off(&(until_ns, String::new(), 0, 0, 0)),
        };
        let earlier = std::mem::replace(&mut self.waiting, later);
        earlier.into_values().collect()
    }
}

/// Hits of one injection (a fault on a flow) that are so close in time that a drawing shows them as one mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Index of the injection in [`scenario::Plan::injections`].
    pub injection: usize,
    /// When the first hit of the mark came, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Number of hits that the mark stands for.
    pub hits: u64,
    /// Number of wrong hits among `hits`: missed, or of a frame that the fault had to spare.
    pub wrong: u64,
}

/// Hits of a run, merged into marks for drawings. Their number is bounded, however long the run lasts.
#[derive(Debug)]
pub struct Marks {
    width_ns: u64,
    marks: BTreeMap<(usize, u64), Mark>,
}

impl Marks {
    const MOST: usize = 1 << 14;

    /// Adds a hit to the mark of its injection and time; merges marks if there are too many.
    pub fn add(&mut self, hit: &Hit) {
        let wrong = matches!(hit.outcome, Outcome::Missed | Outcome::Collateral);
        self.insert(Mark {
            injection: hit.injection,
            at_ns: hit.at_ns,
            hits: 1,
            wrong: u64::from(wrong),
        });
        while self.marks.len() > Self::MOST && self.width_ns < 1 << 62 {
            self.width_ns *= 2;
            let all = std::mem::take(&mut self.marks);
            all.into_values().for_each(|mark| self.insert(mark));
        }
    }

    fn insert(&mut self, mark: Mark) {
        let key = (mark.injection, mark.at_ns / self.width_ns);
        let own = self.marks.entry(key).or_insert(Mark {
            hits: 0,
            wrong: 0,
            ..mark
        });
        own.at_ns = own.at_ns.min(mark.at_ns);
        own.hits += mark.hits;
        own.wrong += mark.wrong;
    }

    /// Returns the marks, sorted by injection and time.
    pub fn into_marks(self) -> Vec<Mark> {
        self.marks.into_values().collect()
    }
}

impl Default for Marks {
    fn default() -> Marks {
        Marks {
            width_ns: 1_000_000,
            marks: BTreeMap::new(),
        }
    }
}

/// The log of hits of a run in progress, and the marks of these hits.
pub struct HitLog {
    file: Option<BufWriter<File>>,
    failed: Option<io::Error>,
    in_order: InOrder,
    marks: Marks,
}

impl HitLog {
    /// Creates the log in `folder`; without a folder, hits only become marks.
    pub fn new(folder: Option<&Path>) -> io::Result<HitLog> {
        let file = folder.map(|folder| File::create(folder.join(EVENTS)));
        Ok(HitLog {
            file: file.transpose()?.map(BufWriter::new),
            failed: None,
            in_order: InOrder::default(),
            marks: Marks::default(),
        })
    }

    /// Adds a hit, which is written later.
    pub fn add(&mut self, hit: Hit) {
        self.marks.add(&hit);
        if self.file.is_some() {
            self.in_order.add(hit);
        }
    }

    /// Writes the hits of frames that arrived before `until_ns`.
    pub fn write(&mut self, planned: &Planned, until_ns: u64) {
        let Some(file) = &mut self.file else {
            return;
        };
        let hits = self.in_order.take(until_ns);
        if hits.is_empty() {
            return;
        }
        let text = events::lines(&events::events(planned, &hits));
        let written = file.write_all(text.as_bytes()).and_then(|()| file.flush());
        if let Err(error) = written {
            self.failed = Some(error);
            self.file = None;
        }
    }

    /// Returns the marks, and the error after which no more hits were written, if there was one.
    pub fn finish(self) -> (Marks, Option<io::Error>) {
        (self.marks, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(at_ns: u64, injection: usize) -> Hit {
        Hit {
            injection,
            switch: "sw".to_owned(),
            port: 1,
            frame: at_ns as usize,
            ordinal: at_ns,
            place: None,
            is_told: false,
            epoch: 1,
            at_ns,
            left: Vec::new(),
            left_as: None,
            outcome: Outcome::Hit,
            packet: None,
            bytes: Box::default(),
            wire_len: 60,
        }
    }

    #[test]
    fn hits_are_taken_in_the_order_of_their_frames() {
        let mut in_order = InOrder::default();
        [5, 3, 9, 4]
            .into_iter()
            .for_each(|at_ns| in_order.add(hit(at_ns, 0)));
        let times = |hits: Vec<Hit>| hits.iter().map(|hit| hit.at_ns).collect::<Vec<_>>();
        assert_eq!(times(in_order.take(5)), [3, 4]);
        in_order.add(hit(6, 0));
        assert_eq!(times(in_order.take(u64::MAX)), [5, 6, 9]);
    }

    #[test]
    fn marks_of_a_long_run_are_bounded_and_lose_no_hit() {
        let mut marks = Marks::default();
        const HITS: u64 = 200_000;
        for number in 0..HITS {
            marks.add(&hit(number * 10_000_000, (number % 3) as usize));
        }
        let marks = marks.into_marks();
        assert!(marks.len() <= Marks::MOST, "{}", marks.len());
        assert_eq!(marks.iter().map(|mark| mark.hits).sum::<u64>(), HITS);
    }
}
