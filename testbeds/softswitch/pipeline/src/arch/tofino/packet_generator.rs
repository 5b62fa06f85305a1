//! The packet generator of each pipe, in virtual time: eight applications, sixteen on a Tofino 2.
//!
//! When an application's trigger fires, the application makes batches of packets from a range of its pipe's buffer. Each packet
//! starts with six bytes that name the application, batch and packet; it enters ingress like a packet from a recirculation
//! port.

use crate::error::GeneratorError;
use crate::job::{Job, Path};
use crate::limits::{GENERATOR_BATCHES as BATCHES, GENERATOR_BUFFER as BUFFER};
use crate::port_numbers::PIPES;
use crate::stats::Stats;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

/// Number of applications of a pipe: 8 on a Tofino 1, 16 on a Tofino 2.
const APPS: [u32; 2] = [8, 16];
/// Maximum number of started applications that still have packets to make; further starts are lost and counted.
const RUNS: usize = 1024;

/// The condition that starts an application of the packet generator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trigger {
    /// The application starts once, after a delay from when it was set.
    OneShot {
        /// Delay of the start in nanoseconds.
        after_ns: u64,
    },
    /// The application starts periodically.
    Periodic {
        /// Time between starts in nanoseconds; at least 1.
        period_ns: u64,
    },
    /// The application starts when one of these ports goes down, once for each port; afterwards it must be set again.
    PortDown {
        /// Numbers of the ports, all of the application's pipe.
        ports: BTreeSet<u32>,
    },
    /// The application starts when a packet whose first 32 bits match `value`, `mask` returns through the generator's port.
    Recirculation {
        /// Expected value of the compared bits.
        value: u32,
        /// Mask of the bits that are compared.
        mask: u32,
    },
    /// Tofino 2: the application starts when an ingress deparser requests it. Each generated packet has the header that the
    /// deparser emitted, then the requested part of the buffer: [`GeneratorApp::offset`] and [`GeneratorApp::length`] are
    /// ignored.
    Deparser,
}

/// An application of the packet generator: a trigger, and the packets that it makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratorApp {
    /// The condition that starts the application.
    pub trigger: Trigger,
    /// Offset of the packets' contents in the pipe's buffer, in bytes.
    pub offset: usize,
    /// Length of the packets' contents, in bytes.
    pub length: usize,
    /// Number of batches per start, at most 65,536.
    pub batches: u32,
    /// Number of packets per batch, at most 65,536.
    pub packets: u32,
    /// Gap before the next batch, in nanoseconds. Tofino 1: from the start of a batch to the start of the next, which is
    /// delayed if the batch takes longer. Tofino 2: from the last packet of a batch.
    pub batch_gap_ns: u64,
    /// Gap between packets of a batch, in nanoseconds.
    pub packet_gap_ns: u64,
    /// Number of the generated packets' ingress port within the pipe: usually 68.
    pub port: u32,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Generator {
    tofino2: bool,
    buffers: BTreeMap<u32, Vec<u8>>,
    /// Applications that are set, by pipe and number.
    apps: BTreeMap<(u32, u32), GeneratorApp>,
    /// Time of the next start of each application with a timer, in nanoseconds, by pipe and application.
    timers: BTreeMap<(u32, u32), u64>,
    /// Started applications that still have packets to make: the earliest next packet first; then the earliest start.
    runs: BinaryHeap<Reverse<AppRun>>,
    started: u64,
}

/// A started application and its next packet. Packets are made one by one when they are due: one start may make 2³² of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct AppRun {
    /// Time at which the next packet is due, in nanoseconds.
    due: u64,
    /// Sequence number among all starts of applications, which makes the order unique.
    number: u64,
    of: (u32, u32),
    port: u32,
    tofino2: bool,
    /// Actual or planned start time of the current batch, in nanoseconds.
    batch_start: u64,
    batch: u32,
    packet: u32,
    /// Number of batches, and number of packets per batch; at least 1.
    batches: u32,
    packets: u32,
    batch_gap_ns: u64,
    packet_gap_ns: u64,
    first: u8,
    header: Header,
    body: Arc<[u8]>,
}

/// The six bytes in front of a generated packet. The first has application and pipe; the others depend on the variant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Header {
    /// Number of the batch, and number of the packet in it, from 0.
    Counted,
    /// Number of the port that went down, and number of the packet in its batch.
    Port([u8; 2]),
    /// Tofino 1: the second byte of the recirculated packet, and its third and fourth as a number, to which the batch is added.
    Key(u8, u16),
}

impl AppRun {
    /// Makes the next packet: time in ns, port, bytes; and the application for the packets after it, `None` if it was the last.
    fn next(mut self) -> (u64, u32, Vec<u8>, Option<AppRun>) {
        let (batch, packet) = (self.batch as u16, (self.packet as u16).to_be_bytes());
        let pair = match self.header {
            Header::Counted => batch.to_be_bytes(),
            Header::Port(port) => port,
            Header::Key(_, low) => low.wrapping_add(batch).to_be_bytes(),
        };
        let high = match self.header {
            Header::Key(high, _) => high,
            _ => 0,
        };
        let mut bytes = vec![self.first, high, pair[0], pair[1], packet[0], packet[1]];
        bytes.extend_from_slice(&self.body);
        let (due, port) = (self.due, self.port);
        self.packet += 1;
        if self.packet < self.packets {
            self.due = due.saturating_add(self.packet_gap_ns);
        } else {
            self.packet = 0;
            self.batch += 1;
            let from = if self.tofino2 { due } else { self.batch_start };
            self.batch_start = from.saturating_add(self.batch_gap_ns);
            self.due = due.max(self.batch_start);
        }
        let rest = (self.batch < self.batches).then_some(self);
        (due, port, bytes, rest)
    }
}

impl Generator {
    pub(super) fn new(tofino2: bool) -> Generator {
        Generator {
            tofino2,
            ..Generator::default()
        }
    }

    /// Checks the arguments of [`Generator::set`] without changing anything.
    fn check(
        &self,
        pipe: u32,
        (offset, bytes): (usize, &[u8]),
        app: u32,
        config: Option<&GeneratorApp>,
    ) -> Result<(), GeneratorError> {
        let apps = APPS[usize::from(self.tofino2)];
        if pipe >= PIPES {
            return Err(GeneratorError::Pipe(pipe));
        }
        if app >= apps {
            return Err(GeneratorError::App(app, apps));
        }
        in_buffer(offset, bytes.len())?;
        match config {
            Some(config) => config.check(pipe, self.tofino2),
            None if self.apps.contains_key(&(pipe, app)) => Ok(()),
            None => Err(GeneratorError::NotSet(pipe, app)),
        }
    }

    /// Writes bytes into a pipe's buffer, then sets an application, or stops it. On an error nothing changes.
    pub(crate) fn set(
        &mut self,
        now_ns: u64,
        pipe: u32,
        buffer: (usize, &[u8]),
        app: u32,
        config: Option<GeneratorApp>,
    ) -> Result<(), GeneratorError> {
        self.check(pipe, buffer, app, config.as_ref())?;
        let (offset, bytes) = buffer;
        if !bytes.is_empty() {
            let buffer = self.buffers.entry(pipe).or_insert_with(|| vec![0; BUFFER]);
            buffer[offset..offset + bytes.len()].copy_from_slice(bytes);
        }
        // The previous application triggers nothing more, and its runs end.
        let of = (pipe, app);
        self.apps.remove(&of);
        self.timers.remove(&of);
        self.runs.retain(|Reverse(run)| run.of != of);
        let Some(config) = config else {
            return Ok(());
        };
        let after_ns = match config.trigger {
            Trigger::OneShot { after_ns } => Some(after_ns),
            Trigger::Periodic { period_ns } => Some(period_ns),
            _ => None,
        };
        if let Some(after_ns) = after_ns.filter(|_| config.batches > 0 && config.packets > 0) {
            self.timers.insert(of, now_ns.saturating_add(after_ns));
        }
        self.apps.insert(of, config);
        Ok(())
    }

    /// Pipe and number of the first application that is set; `None` if none is set.
    pub(crate) fn first_app(&self) -> Option<(u32, u32)> {
        self.apps.keys().next().copied()
    }

    /// Numbers of the applications of a pipe whose trigger satisfies a condition.
    fn triggered(&self, pipe: u32, wanted: impl Fn(&Trigger) -> bool) -> Vec<u32> {
        let apps = self.apps.range((pipe, 0)..=(pipe, u32::MAX));
        apps.filter(|(_, a)| wanted(&a.trigger))
            .map(|((_, app), _)| *app)
            .collect()
    }

    pub(crate) fn port_down(&mut self, stats: &mut Stats, now_ns: u64, port: u32) {
        let pipe = port >> 7;
        let waits = |t: &Trigger| matches!(t, Trigger::PortDown { ports } if ports.contains(&port));
        for app in self.triggered(pipe, waits) {
            let config = self.apps.get_mut(&(pipe, app));
            if let Some(Trigger::PortDown { ports }) = config.map(|config| &mut config.trigger) {
                ports.remove(&port);
            }
            let [.., high, low] = port.to_be_bytes();
            self.start(stats, now_ns, (pipe, app), Header::Port([high & 1, low]));
        }
    }

    /// Starts the applications whose trigger matches a packet that came back to `pipe` through recirculation.
    pub(crate) fn recirculated(&mut self, stats: &mut Stats, now_ns: u64, pipe: u32, bytes: &[u8]) {
        if self.apps.is_empty() {
            return;
        }
        let Some(first) = bytes.first_chunk::<4>() else {
            return;
        };
        let key = u32::from_be_bytes(*first);
        let wanted = |t: &Trigger| matches!(t, Trigger::Recirculation { value, mask } if (key ^ value) & mask == 0);
        for app in self.triggered(pipe, wanted) {
            let [_, high, ..] = key.to_be_bytes();
            let header = match self.tofino2 {
                true => Header::Counted,
                false => Header::Key(high, key as u16),
            };
            self.start(stats, now_ns, (pipe, app), header);
        }
    }

    /// Tofino 2: handles an ingress deparser's request for packets, which have `header` and then a range of the buffer.
    pub(crate) fn request(
        &mut self,
        stats: &mut Stats,
        now_ns: u64,
        pipe: u32,
        (address, length): (u64, u64),
        header: &[u8],
    ) {
        let apps = self.triggered(pipe, |t| *t == Trigger::Deparser);
        if apps.is_empty() {
            return;
        }
        // The address counts words of 16 bytes.
        let start = (address as usize).saturating_mul(16).min(BUFFER);
        let end = start.saturating_add(length as usize).min(BUFFER);
        let body = [header, &self.piece(pipe, start, end - start)].concat();
        let body: Arc<[u8]> = body.into();
        for app in apps {
            self.run(stats, now_ns, (pipe, app), Header::Counted, &body);
        }
    }

    /// A range of a pipe's buffer, in bytes; zeroes if nothing was written to the buffer.
    fn piece(&self, pipe: u32, offset: usize, length: usize) -> Vec<u8> {
        match self.buffers.get(&pipe) {
            Some(buffer) => buffer[offset..offset + length].to_vec(),
            None => vec![0; length],
        }
    }

    /// Starts the application `of` (pipe, number), if it is set.
    fn start(&mut self, stats: &mut Stats, now_ns: u64, of: (u32, u32), header: Header) {
        if let Some(config) = self.apps.get(&of) {
            let body = self.piece(of.0, config.offset, config.length);
            self.run(stats, now_ns, of, header, &body.into());
        }
    }

    fn run(
        &mut self,
        stats: &mut Stats,
        now_ns: u64,
        of: (u32, u32),
        header: Header,
        body: &Arc<[u8]>,
    ) {
        let Some(config) = self.apps.get(&of) else {
            return;
        };
        if config.batches == 0 || config.packets == 0 {
            return;
        }
        if self.is_full() {
            stats.lose_starts(1);
            return;
        }
        let (pipe, app) = of;
        // Tofino 1: 3 bits of padding, 2 of pipe, 3 of application; Tofino 2: 2, 2 and 4.
        let shift = if self.tofino2 { 4 } else { 3 };
        self.started += 1;
        self.runs.push(Reverse(AppRun {
            due: now_ns,
            number: self.started,
            of,
            port: pipe << 7 | config.port,
            tofino2: self.tofino2,
            batch_start: now_ns,
            batch: 0,
            packet: 0,
            batches: config.batches,
            packets: config.packets,
            batch_gap_ns: config.batch_gap_ns,
            packet_gap_ns: config.packet_gap_ns,
            first: (pipe as u8 & 3) << shift | app as u8,
            header,
            body: Arc::clone(body),
        }));
    }

    /// Whether the maximum number of started applications is reached.
    fn is_full(&self) -> bool {
        self.runs.len() >= RUNS
    }

    /// Time of the next packet or timer, in nanoseconds; `None` if there is none.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        let waiting = self.runs.peek().map(|Reverse(run)| run.due);
        let timer = self.timers.values().min().copied();
        waiting.into_iter().chain(timer).min()
    }

    /// Makes the next packet that is due by now: its time in nanoseconds, and the packet; `None` if no packet is due.
    pub(crate) fn due(&mut self, stats: &mut Stats, now_ns: u64) -> Option<(u64, Job)> {
        while let Some((&of, &due)) = self.timers.iter().min_by_key(|(_, due)| **due) {
            let next = self.runs.peek().map(|Reverse(run)| run.due);
            if due > now_ns || next.is_some_and(|next| next < due) {
                break;
            }
            self.timers.remove(&of);
            let trigger = self.apps.get(&of).map(|a| &a.trigger);
            if let Some(&Trigger::Periodic { period_ns }) = trigger {
                // No start fits before the next packet has left: skips all starts until then at once, as there may be
                // millions.
                let until = next.filter(|_| self.is_full()).unwrap_or(due).min(now_ns);
                let more = (until - due) / period_ns.max(1);
                stats.lose_starts(more);
                let next = due.saturating_add(period_ns.saturating_mul(more + 1));
                self.timers.insert(of, next);
            }
            self.start(stats, due, of, Header::Counted);
        }
        if self.runs.peek().is_none_or(|Reverse(run)| run.due > now_ns) {
            return None;
        }
        let Reverse(run) = self.runs.pop()?;
        let (due, port, bytes, rest) = run.next();
        self.runs.extend(rest.map(Reverse));
        let job = Job {
            path: Path::Normal,
            port,
            bytes,
            ..Job::default()
        };
        Some((due, job))
    }
}

impl GeneratorApp {
    fn check(&self, pipe: u32, tofino2: bool) -> Result<(), GeneratorError> {
        in_buffer(self.offset, self.length)?;
        for number in [self.batches, self.packets] {
            if number > BATCHES {
                return Err(GeneratorError::TooMany(number));
            }
        }
        if self.port > 0x7f {
            return Err(GeneratorError::Port(self.port));
        }
        match &self.trigger {
            Trigger::Periodic { period_ns: 0 } => Err(GeneratorError::NoPeriod),
            Trigger::PortDown { ports } => match ports.iter().find(|port| **port >> 7 != pipe) {
                Some(port) => Err(GeneratorError::OtherPipe(*port, pipe)),
                None => Ok(()),
            },
            Trigger::Deparser if !tofino2 => Err(GeneratorError::Deparser),
            _ => Ok(()),
        }
    }
}

fn in_buffer(offset: usize, length: usize) -> Result<(), GeneratorError> {
    let end = offset.checked_add(length);
    match end.filter(|end| *end <= BUFFER) {
        Some(_) => Ok(()),
        None => Err(GeneratorError::Buffer(offset, length)),
    }
}
