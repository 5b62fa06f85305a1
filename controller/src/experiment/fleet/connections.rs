//! RDMA connections that the run's programs announce: the switches learn their first sequence numbers before the first packet
//! arrives.
//!
//! ```text
//! weir-agent ── a line of JSON ──▶ the run's socket ── table entries ──▶ switches
//!     └──────────── "ok", then it connects ◀──┘
//! ```
//!
//! A program finds the socket by a variable (`host_agent::connections`). A program without support for it, such as perftest,
//! announces nothing: then the first packet that a switch sees is the first one, until an announcement arrives.

use std::collections::{BTreeMap, VecDeque};
use std::fs::Permissions;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host_agent::connections::{ACCEPTED, Opened};
use p4lang::runtime::TableEntry;
use parser_gen::psn::{Begun, MOST_TOLD};
use scenario::Scenario;
use scenario::model::selection::Selection;
use scenario::plan::announcement::{Announcement, Stream};

use super::{Fleet, FleetError, now_ns};
use crate::target::{Item, UpdateType};

/// Name of the socket in the folder of the run's programs. No command's folder has this name: command names have no dot.
const SOCKET: &str = "connections.socket";
/// Maximum length of an announcement, which is one line of JSON, in bytes.
const MOST_BYTES: usize = 1024;
/// Maximum time from a program's connection to the end of its announcement.
const PATIENCE: Duration = Duration::from_secs(1);
/// Maximum number of programs that are served at once; further programs wait until the socket accepts them.
const MOST_VISITORS: usize = 256;
/// Maximum number of connections that a run announces to switches; a restarted connection counts again.
const MOST_CONNECTIONS: usize = MOST_TOLD / STREAMS;
/// Maximum time for announcements in one iteration of a run, so that they do not delay steps of the timeline.
const MOST_TURN: Duration = Duration::from_millis(2);
/// Maximum number of remarks on failed announcements in a run.
const MOST_REMARKS: usize = 8;
/// Number of packet streams in an RDMA connection: data, and responses to READ requests, each in both directions.
const STREAMS: usize = 4;

/// The socket at which the run's programs announce RDMA connections.
pub struct Connections {
    path: PathBuf,
    listener: UnixListener,
    /// Programs that have connected to the socket, in the order in which they are served.
    visitors: VecDeque<Visitor>,
    generations: Generations,
    /// Remarks on announcements that could not be written to all switches.
    remarks: Vec<String>,
}

/// A program that has connected to the socket, and the part of its line that has arrived.
struct Visitor {
    stream: UnixStream,
    line: Vec<u8>,
    since: Instant,
}

impl Connections {
    /// Whether a fault of the scenario selects by RDMA sequence numbers, and so needs announcements.
    pub fn are_wanted(scenario: &Scenario) -> bool {
        let mut faults = scenario.faults.iter();
        faults.any(|fault| matches!(fault.selection, Selection::Psn(_)))
    }

    /// Creates the socket in `folder`, which the run's programs can reach.
    pub fn listen(folder: &Path) -> io::Result<Connections> {
        let path = folder.join(SOCKET);
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        // The run's programs may run as another user than weir.
        std::fs::set_permissions(&path, Permissions::from_mode(0o666))?;
        Ok(Connections {
            path,
            listener,
            visitors: VecDeque::new(),
            generations: Generations::default(),
            remarks: Vec::new(),
        })
    }

    /// Path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Remarks on announcements that could not be written to all switches, for readers of the report.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Writes announcements that have arrived to the switches, for about 2 ms at most. Does not wait for programs.
    pub fn poll(&mut self, fleet: &mut Fleet) {
        let since = Instant::now();
        while self.visitors.len() < MOST_VISITORS
            && let Ok((stream, _)) = self.listener.accept()
        {
            if stream.set_nonblocking(true).is_ok() {
                self.visitors.push_back(Visitor {
                    stream,
                    line: Vec::new(),
                    since: Instant::now(),
                });
            }
        }
        for _ in 0..self.visitors.len() {
            let Some(mut visitor) = self.visitors.pop_front() else {
                return;
            };
            match visitor.receive() {
                // A program that has disconnected continued without an announcement: the switch numbers its packets already.
                Received::Line(line) if visitor.is_there() => {
                    let answer = self.handle(&line, fleet);
                    // A program that disconnects meanwhile does not read the answer.
                    let _ = visitor.stream.write_all(format!("{answer}\n").as_bytes());
                    if since.elapsed() >= MOST_TURN {
                        return;
                    }
                }
                Received::More if visitor.since.elapsed() < PATIENCE => {
                    self.visitors.push_back(visitor);
                }
                Received::Line(_) | Received::More | Received::Nothing => {}
            }
        }
    }

    /// Writes the connection in a program's line to the switches, and returns the answer to the program.
    fn handle(&mut self, line: &str, fleet: &mut Fleet) -> String {
        let opened: Opened = match serde_json::from_str(line) {
            Ok(opened) => opened,
            Err(error) => return format!("the line is not an announcement: {error}"),
        };
        let announced = match self.generations.announced(&opened) {
            Some(generation) => fleet
                .announce(&streams(&opened, generation))
                .map_err(|error| error.to_string()),
            None => Err(format!(
                "a run takes at most {MOST_CONNECTIONS} connections"
            )),
        };
        let Err(why) = announced else {
            tracing::debug!(?opened, "a connection was announced");
            return ACCEPTED.to_owned();
        };
        let remark = format!(
            "the connection of {} and {} could not be announced to every switch; the other switches count its sequence numbers from the first packet that they saw: {why}",
            opened.local, opened.peer
        );
        if self.remarks.len() < MOST_REMARKS && !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
        why
    }
}

/// Streams of a connection with their first sequence numbers: data, and READ responses (by the requester's numbers), each way.
fn streams(opened: &Opened, generation: u8) -> [(Stream, Begun); STREAMS] {
    let there = |responds| Stream {
        source: opened.local,
        destination: opened.peer,
        qp: opened.peer_qp,
        responds,
    };
    let back = |responds| Stream {
        source: opened.peer,
        destination: opened.local,
        qp: opened.qp,
        responds,
    };
    let from = |first| Begun {
        first,
        life: generation,
    };
    [
        (there(false), from(opened.psn)),
        (there(true), from(opened.peer_psn)),
        (back(false), from(opened.peer_psn)),
        (back(true), from(opened.psn)),
    ]
}

/// One end of a connection: IPv4 address, queue pair number, first sequence number.
type End = (Ipv4Addr, u32, u32);

/// Numbers the successive connections between the same two queue pairs (generations). Each end may announce a connection once.
/// If an end announces it again, the connection was restarted, even with the same sequence numbers.
#[derive(Debug, Default)]
struct Generations {
    of: BTreeMap<[(Ipv4Addr, u32); 2], Generation>,
    announced: usize,
}

#[derive(Debug)]
struct Generation {
    number: u8,
    ends: [End; 2],
    /// For each of `ends`: whether it has announced this generation.
    by: [bool; 2],
}

impl Generations {
    /// Returns the generation number of an announced connection, from 1; `None` after [`MOST_CONNECTIONS`] connections.
    fn announced(&mut self, opened: &Opened) -> Option<u8> {
        let own = (opened.local, opened.qp, opened.psn);
        let mut ends = [own, (opened.peer, opened.peer_qp, opened.peer_psn)];
        ends.sort_unstable();
        let announcer = usize::from(ends[0] != own);
        let key = ends.map(|(ip, qp, _)| (ip, qp));
        let known = self.of.get_mut(&key);
        if let Some(generation) = known
            && generation.ends == ends
            && !generation.by[announcer]
        {
            generation.by[announcer] = true;
            return Some(generation.number);
        }
        if self.announced == MOST_CONNECTIONS {
            return None;
        }
        self.announced += 1;
        let number = self.of.get(&key).map_or(0, |last| last.number);
        let number = number.checked_add(1).unwrap_or(1);
        let mut by = [false; 2];
        by[announcer] = true;
        self.of.insert(key, Generation { number, ends, by });
        Some(number)
    }
}

/// Result of reading from a program's connection: a whole line; a part of one, of which more may come; or no line at all.
enum Received {
    Line(String),
    More,
    Nothing,
}

impl Visitor {
    fn receive(&mut self) -> Received {
        let mut bytes = [0; MOST_BYTES];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Received::Nothing,
                Ok(len) => self.line.extend(&bytes[..len]),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Received::More,
                Err(_) => return Received::Nothing,
            }
            if let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
                return Received::Line(String::from_utf8_lossy(&self.line[..end]).into_owned());
            }
            if self.line.len() > MOST_BYTES {
                return Received::Nothing;
            }
        }
    }

    /// Whether the program is still connected, and waits for the answer.
    fn is_there(&mut self) -> bool {
        match self.stream.read(&mut [0; MOST_BYTES]) {
            Ok(len) => len > 0,
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        }
    }
}

impl Fleet {
    /// Writes the first sequence numbers of streams to every running switch whose faults need them. From then on, the switches
    /// number the packets of these streams from there. An error of one switch does not prevent the writes to others.
    pub fn announce(&mut self, streams: &[(Stream, Begun)]) -> Result<(), FleetError> {
        let written = self.each(|device| {
            let mut updates = Vec::new();
            let mut announcements = Vec::new();
            let sent_ns = now_ns();
            for (stream, begun) in streams {
                let before = updates.len();
                for entry in device.planned.tell(*stream, *begun) {
                    let update = match device.told.get(&key(&entry)) {
                        Some(held) if *held == entry => continue,
                        Some(_) => UpdateType::Modify,
                        None => UpdateType::Insert,
                    };
                    updates.push((update, Item::TableEntry(entry)));
                }
                if updates.len() > before {
                    announcements.push(Announcement {
                        switch: device.target.name().to_owned(),
                        stream: *stream,
                        first_psn: begun.first,
                        life: begun.life,
                        sent_ns,
                        confirmed_ns: 0,
                    });
                }
            }
            if updates.is_empty() {
                return Ok(announcements);
            }
            device.target.write(&updates)?;
            let confirmed_ns = now_ns();
            for (_, item) in updates {
                if let Item::TableEntry(entry) = item {
                    device.told.insert(key(&entry), entry);
                }
            }
            for announcement in &mut announcements {
                announcement.confirmed_ns = confirmed_ns;
            }
            Ok(announcements)
        });
        let mut failed = Ok(());
        for written in written {
            match written {
                Ok(announcements) => {
                    self.log.announce(&announcements);
                    self.announcements.extend(announcements);
                }
                Err(error) => failed = failed.and(Err(error)),
            }
        }
        failed
    }

    /// Announcements of RDMA connections that the switches have received, in order.
    pub fn announcements(&self) -> &[Announcement] {
        &self.announcements
    }
}

/// Text of an entry's table and key, which identify the entry on a switch.
fn key(entry: &TableEntry) -> String {
    format!("{} {:?}", entry.table, entry.key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENED: Opened = Opened {
        local: Ipv4Addr::new(10, 0, 0, 1),
        peer: Ipv4Addr::new(10, 0, 0, 2),
        qp: 1,
        peer_qp: 2,
        psn: 100,
        peer_psn: 200,
    };

    /// The connection as its other end announces it.
    fn from_there(opened: Opened) -> Opened {
        Opened {
            local: opened.peer,
            peer: opened.local,
            qp: opened.peer_qp,
            peer_qp: opened.qp,
            psn: opened.peer_psn,
            peer_psn: opened.psn,
        }
    }

    #[test]
    fn read_responses_have_the_numbers_of_the_requester() {
        let told = streams(&OPENED, 3).map(|(stream, begun)| {
            let from = stream.source.octets()[3];
            (from, stream.qp, stream.responds, begun.first, begun.life)
        });
        let expected = [
            (1, 2, false, 100, 3),
            (1, 2, true, 200, 3),
            (2, 1, false, 200, 3),
            (2, 1, true, 100, 3),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn both_ends_announce_one_generation_and_a_repeated_announcement_the_next() {
        let mut generations = Generations::default();
        let there = from_there(OPENED);
        let told =
            [OPENED, there, there, OPENED, OPENED, OPENED].map(|of| generations.announced(&of));
        assert_eq!(told, [1, 1, 2, 2, 3, 4].map(Some));
        // Other sequence numbers make another connection, whichever end announces it.
        let other = Opened { psn: 7, ..OPENED };
        assert_eq!(generations.announced(&from_there(other)), Some(5));
        assert_eq!(generations.announced(&other), Some(5));
        let elsewhere = Opened { qp: 9, ..OPENED };
        assert_eq!(generations.announced(&elsewhere), Some(1));
        generations.announced = MOST_CONNECTIONS;
        assert_eq!(generations.announced(&from_there(elsewhere)), Some(1));
        assert_eq!(generations.announced(&elsewhere), None);
    }

    #[test]
    fn generation_numbers_wrap_round() {
        let mut generations = Generations::default();
        let numbers: Vec<u8> = (0..257)
            .filter_map(|_| generations.announced(&OPENED))
            .collect();
        assert_eq!(numbers[253..], [254, 255, 1, 2]);
    }

    #[test]
    fn lines_arrive_in_parts_and_a_visitor_without_a_line_is_dropped() {
        let receive = |visitor: &mut Visitor| match visitor.receive() {
            Received::Line(line) => Some(line),
            Received::More => Some("more".to_owned()),
            Received::Nothing => None,
        };
        let (stream, mut theirs) = UnixStream::pair().unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut visitor = Visitor {
            stream,
            line: Vec::new(),
            since: Instant::now(),
        };
        assert_eq!(receive(&mut visitor).as_deref(), Some("more"));
        theirs.write_all(b"one ").unwrap();
        assert_eq!(receive(&mut visitor).as_deref(), Some("more"));
        theirs.write_all(b"line\nand").unwrap();
        assert_eq!(receive(&mut visitor).as_deref(), Some("one line"));
        assert!(visitor.is_there());
        visitor.line.clear();
        theirs.write_all(&[b'x'; MOST_BYTES + 1]).unwrap();
        assert_eq!(receive(&mut visitor), None);
        drop(theirs);
        visitor.line.clear();
        assert!(!visitor.is_there());
        assert_eq!(receive(&mut visitor), None);
    }
}
