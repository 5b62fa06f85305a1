//! RDMA connections of which the run's programs tell: their first sequence numbers are known to the switches before a packet of
//! theirs comes.
//!
//! ```text
//! weir-agent ── a line of JSON ──▶ the run's socket ── table entries ──▶ switches
//!     └──────────── "ok", then it connects ◀──┘
//! ```
//!
//! A program finds the socket by a variable (`host_agent::connections`). One that does not know of it, such as perftest, tells
//! nothing: then the first packet that a switch sees counts, as it does until something is told.

use std::fs::Permissions;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host_agent::connections::{ACCEPTED, Opened};
use p4lang::runtime::TableEntry;
use scenario::Scenario;
use scenario::selection::Selection;
use scenario::telling::{Stream, Telling};

use super::fleet::{Fleet, FleetError, now_ns};
use crate::target::{Item, UpdateType};

/// Of the socket, in the folder of the run's programs. No command is called so: their names have no dot.
const SOCKET: &str = "connections.socket";
/// Bytes of a line.
const MOST: usize = 1024;
/// For how long somebody may be in the middle of a line.
const PATIENCE: Duration = Duration::from_secs(1);
/// At once.
const MOST_VISITORS: usize = 256;

/// Who listens.
pub struct Connections {
    path: PathBuf,
    listener: UnixListener,
    visitors: Vec<Visitor>,
    /// What could not be told, and why.
    remarks: Vec<String>,
}

/// A program that has called.
struct Visitor {
    stream: UnixStream,
    line: Vec<u8>,
    since: Instant,
}

impl Connections {
    /// Whether any fault wants to know.
    pub fn are_wanted(scenario: &Scenario) -> bool {
        let mut faults = scenario.faults.iter();
        faults.any(|fault| matches!(fault.selection, Selection::Psn(_)))
    }

    /// Listens in a folder that the run's programs can reach.
    pub fn listen(folder: &Path) -> io::Result<Connections> {
        let path = folder.join(SOCKET);
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        // Programs run as somebody else than who runs them.
        std::fs::set_permissions(&path, Permissions::from_mode(0o666))?;
        Ok(Connections {
            path,
            listener,
            visitors: Vec::new(),
            remarks: Vec::new(),
        })
    }

    /// Where.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What a reader of the run has to know.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Hears who is there, and has switches know. Nobody is waited for.
    pub fn turn(&mut self, fleet: &mut Fleet) {
        while self.visitors.len() < MOST_VISITORS
            && let Ok((stream, _)) = self.listener.accept()
        {
            if stream.set_nonblocking(true).is_ok() {
                self.visitors.push(Visitor {
                    stream,
                    line: Vec::new(),
                    since: Instant::now(),
                });
            }
        }
        for mut visitor in std::mem::take(&mut self.visitors) {
            match visitor.hear() {
                Heard::Line(line) => {
                    let answer = self.told(&line, fleet);
                    // Who has gone does not wait for it.
                    let _ = visitor.stream.write_all(format!("{answer}\n").as_bytes());
                }
                Heard::More if visitor.since.elapsed() < PATIENCE => self.visitors.push(visitor),
                Heard::More | Heard::Nothing => {}
            }
        }
    }

    /// The answer to a line.
    fn told(&mut self, line: &str, fleet: &mut Fleet) -> String {
        let opened: Opened = match serde_json::from_str(line) {
            Ok(opened) => opened,
            Err(error) => return format!("not understood: {error}"),
        };
        for (stream, first_psn) in streams(&opened) {
            if let Err(error) = fleet.tell(stream, first_psn) {
                let remark = format!(
                    "the connection of {} and {} could not be told everywhere, and its sequence numbers count from the first \
                     that was seen there: {error}",
                    opened.local, opened.peer
                );
                if !self.remarks.contains(&remark) {
                    self.remarks.push(remark);
                }
                return error.to_string();
            }
        }
        tracing::debug!(?opened, "a connection was told");
        ACCEPTED.to_owned()
    }
}

/// Both ways, data of its own and answers to READs, with their first numbers: answers have those of who asks.
fn streams(opened: &Opened) -> [(Stream, u32); 4] {
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
    [
        (there(false), opened.psn),
        (there(true), opened.peer_psn),
        (back(false), opened.peer_psn),
        (back(true), opened.psn),
    ]
}

/// What a visitor has said so far.
enum Heard {
    Line(String),
    More,
    Nothing,
}

impl Visitor {
    fn hear(&mut self) -> Heard {
        let mut bytes = [0; MOST];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Heard::Nothing,
                Ok(len) => self.line.extend(&bytes[..len]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Heard::More,
                Err(_) => return Heard::Nothing,
            }
            if let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
                return Heard::Line(String::from_utf8_lossy(&self.line[..end]).into_owned());
            }
            if self.line.len() > MOST {
                return Heard::Nothing;
            }
        }
    }
}

impl Fleet {
    /// Tells every switch that runs of a stream, where faults ask for that; once it returns, packets of it meet what was told. A
    /// switch that does not take it keeps none of the others from it.
    pub fn tell(&mut self, stream: Stream, first_psn: u32) -> Result<(), FleetError> {
        let written = self.each(|device| {
            let mut updates = Vec::new();
            let entries = device.planned.tell(stream, first_psn);
            for entry in &entries {
                let update = match device.entries.iter().find(|held| is_one(held, entry)) {
                    Some(held) if held == entry => continue,
                    Some(_) => UpdateType::Modify,
                    None => UpdateType::Insert,
                };
                updates.push((update, Item::TableEntry(entry.clone())));
            }
            if updates.is_empty() {
                return Ok(None);
            }
            device.target.write(&updates)?;
            let stays = |held: &TableEntry| !entries.iter().any(|entry| is_one(held, entry));
            device.entries.retain(stays);
            device.entries.extend(entries);
            Ok(Some(Telling {
                switch: device.target.name().to_owned(),
                stream,
                first_psn,
                confirmed_ns: now_ns(),
            }))
        });
        let mut failed = Ok(());
        for written in written {
            match written {
                Ok(written) => self.tellings.extend(written),
                Err(error) => failed = failed.and(Err(error)),
            }
        }
        failed
    }

    /// What switches were told of RDMA connections.
    #[must_use]
    pub fn tellings(&self) -> &[Telling] {
        &self.tellings
    }
}

/// Whether one entry stands for the other.
fn is_one(held: &TableEntry, entry: &TableEntry) -> bool {
    held.table == entry.table && held.key == entry.key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_the_numbers_of_who_asks() {
        let opened = Opened {
            local: [10, 0, 0, 1].into(),
            peer: [10, 0, 0, 2].into(),
            qp: 1,
            peer_qp: 2,
            psn: 100,
            peer_psn: 200,
        };
        let told = streams(&opened).map(|(stream, first_psn)| {
            (stream.source.octets()[3], stream.qp, stream.responds, first_psn)
        });
        let expected = [
            (1, 2, false, 100),
            (1, 2, true, 200),
            (2, 1, false, 200),
            (2, 1, true, 100),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn lines_come_in_parts_and_strangers_are_left() {
        let hear = |visitor: &mut Visitor| match visitor.hear() {
            Heard::Line(line) => Some(line),
            Heard::More => Some("more".to_owned()),
            Heard::Nothing => None,
        };
        let (stream, mut theirs) = UnixStream::pair().unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut visitor = Visitor {
            stream,
            line: Vec::new(),
            since: Instant::now(),
        };
        assert_eq!(hear(&mut visitor).as_deref(), Some("more"));
        theirs.write_all(b"one ").unwrap();
        assert_eq!(hear(&mut visitor).as_deref(), Some("more"));
        theirs.write_all(b"line\nand").unwrap();
        assert_eq!(hear(&mut visitor).as_deref(), Some("one line"));
        visitor.line.clear();
        theirs.write_all(&[b'x'; MOST + 1]).unwrap();
        assert_eq!(hear(&mut visitor), None);
        drop(theirs);
        visitor.line.clear();
        assert_eq!(hear(&mut visitor), None);
    }
}
