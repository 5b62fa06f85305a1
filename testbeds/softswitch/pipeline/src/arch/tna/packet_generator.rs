//! The packet generator of each pipe: eight applications, in virtual time.
//!
//! An application makes batches of packets from a piece of its pipe's buffer. Each packet has six bytes in front that say
//! which application, batch and packet it is; it enters ingress like one of a recirculation port.

use super::PIPES;
use crate::core::{Job, Path};
use crate::error::ExternError;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

/// Bytes of a pipe's buffer.
const BUFFER: usize = 16 * 1024;
/// Applications: 8 of a Tofino 1, 16 of a Tofino 2.
const APPS: [u8; 2] = [8, 16];
/// Batches of a start, packets of a batch at most: their numbers have 16 bits.
const BATCHES: u32 = 1 << 16;
/// Starts whose packets have not all come, at most: an application that is started more often loses the later ones.
const RUNS: usize = 1024;

/// What starts an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// Once, this long after it was set.
    OneShot {
        /// ns
        after_ns: u64,
    },
    /// Again and again.
    Periodic {
        /// ns; at least 1
        period_ns: u64,
    },
    /// A port of the pipe goes down that [`Switch::watch_port_down`](crate::Switch::watch_port_down) was told of.
    PortDown,
    /// A packet comes back through the generator's own port whose first 32 bits are `value` where `mask` is set.
    Recirculation {
        /// Of the packet.
        value: u32,
        /// Which bits count.
        mask: u32,
    },
    /// Tofino 2: a packet's ingress deparser asks for it.
    Deparser,
}

/// An application of the packet generator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratorApp {
    /// What starts it.
    pub trigger: Trigger,
    /// First byte of the packet in the pipe's buffer.
    pub offset: usize,
    /// Bytes of the packet.
    pub length: usize,
    /// Batches at each start, 65,536 at most.
    pub batches: u32,
    /// Packets of a batch, 65,536 at most.
    pub packets: u32,
    /// From the start of a batch to the start of the next, ns; a batch that takes longer is followed at once.
    pub batch_gap_ns: u64,
    /// Between packets of a batch, ns.
    pub packet_gap_ns: u64,
    /// The packets' ingress port within the pipe: usually 68.
    pub port: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Generator {
    tofino2: bool,
    buffers: BTreeMap<u32, Vec<u8>>,
    apps: BTreeMap<(u32, u8), GeneratorApp>,
    /// Applications and ports that a port's going down starts, once.
    watched: BTreeSet<(u8, u32)>,
    /// When an application with a timer starts next.
    timers: BTreeMap<(u32, u8), u64>,
    /// What was started: the one whose packet comes next first, of those at one time the one that was started first.
    runs: BinaryHeap<Reverse<Run>>,
    started: u64,
}

/// A start of an application, up to its next packet. Packets are made one by one, when they are due: a start may have 2³².
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    /// When the next packet comes.
    due: u64,
    /// Of all starts; what follows decides nothing.
    number: u64,
    of: (u32, u8),
    port: u32,
    /// When the batch began, or was to begin.
    batch_start: u64,
    batch: u32,
    packet: u32,
    /// How many of both there are; at least 1.
    batches: u32,
    packets: u32,
    batch_gap_ns: u64,
    packet_gap_ns: u64,
    first: u8,
    header: Header,
    body: Arc<[u8]>,
}

/// The six bytes in front, but the application and pipe in the first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Header {
    /// Numbers of batch and packet.
    Counted,
    /// A port and the packet's number.
    Port([u8; 2]),
    /// Tofino 1: of the first bits of a packet that came back. Their lower half counts the batches.
    Key(u8, u16),
    /// Zeroes.
    None,
}

impl Run {
    /// The next packet, and the rest if there is any.
    fn next(mut self) -> (u64, u32, Vec<u8>, Option<Run>) {
        let (batch, packet) = (self.batch as u16, (self.packet as u16).to_be_bytes());
        let pair = match self.header {
            Header::Counted => batch.to_be_bytes(),
            Header::Port(port) => port,
            Header::Key(_, low) => low.wrapping_add(batch).to_be_bytes(),
            Header::None => [0; 2],
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
            self.batch_start = self.batch_start.saturating_add(self.batch_gap_ns);
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

    pub(super) fn write(
        &mut self,
        pipe: u32,
        offset: usize,
        bytes: &[u8],
    ) -> Result<(), ExternError> {
        let end = offset.checked_add(bytes.len());
        if pipe >= PIPES || end.is_none_or(|end| end > BUFFER) {
            return Err(ExternError::OutOfRange);
        }
        let buffer = self.buffers.entry(pipe).or_insert_with(|| vec![0; BUFFER]);
        buffer[offset..offset + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    pub(super) fn set(
        &mut self,
        now_ns: u64,
        pipe: u32,
        app: u8,
        config: Option<GeneratorApp>,
    ) -> Result<(), ExternError> {
        if pipe >= PIPES || app >= APPS[usize::from(self.tofino2)] {
            return Err(ExternError::OutOfRange);
        }
        // What it was no longer starts anything, nor goes on.
        self.timers.remove(&(pipe, app));
        self.watched
            .retain(|(other, port)| (*other, port >> 7) != (app, pipe));
        self.runs.retain(|Reverse(run)| run.of != (pipe, app));
        let Some(config) = config else {
            let there = self.apps.remove(&(pipe, app));
            return there.map(drop).ok_or(ExternError::NotFound);
        };
        let end = config.offset.checked_add(config.length);
        let many = config.batches > BATCHES || config.packets > BATCHES;
        let asks = config.trigger == Trigger::Deparser && !self.tofino2;
        if end.is_none_or(|end| end > BUFFER) || config.port > 0x7f || many || asks {
            return Err(ExternError::OutOfRange);
        }
        let makes = config.batches > 0 && config.packets > 0;
        match config.trigger {
            _ if !makes => {}
            Trigger::OneShot { after_ns } => {
                let due = now_ns.saturating_add(after_ns);
                self.timers.insert((pipe, app), due);
            }
            Trigger::Periodic { period_ns } => {
                let due = now_ns.saturating_add(period_ns.max(1));
                self.timers.insert((pipe, app), due);
            }
            _ => {}
        }
        self.apps.insert((pipe, app), config);
        Ok(())
    }

    /// Applications of a pipe whose trigger is wanted.
    fn triggered(&self, pipe: u32, wanted: impl Fn(Trigger) -> bool) -> Vec<u8> {
        let apps = self.apps.range((pipe, 0)..=(pipe, u8::MAX));
        apps.filter(|(_, a)| wanted(a.trigger))
            .map(|((_, app), _)| *app)
            .collect()
    }

    /// The port's next going down starts the application.
    pub(super) fn watch(&mut self, app: u8, port: u32) -> Result<(), ExternError> {
        let waits = self.apps.get(&(port >> 7, app));
        match waits.map(|a| a.trigger) {
            Some(Trigger::PortDown) => {
                self.watched.insert((app, port));
                Ok(())
            }
            _ => Err(ExternError::NotFound),
        }
    }

    pub(super) fn port_down(&mut self, now_ns: u64, port: u32) {
        let pipe = port >> 7;
        for app in self.triggered(pipe, |t| t == Trigger::PortDown) {
            if !self.watched.remove(&(app, port)) {
                continue;
            }
            let [.., high, low] = port.to_be_bytes();
            self.start(now_ns, pipe, app, Header::Port([high & 1, low]));
        }
    }

    /// A packet is back through recirculation.
    pub(super) fn recirculated(&mut self, pipe: u32, bytes: &[u8], now_ns: u64) {
        if self.apps.is_empty() {
            return;
        }
        let Some(first) = bytes.first_chunk::<4>() else {
            return;
        };
        let key = u32::from_be_bytes(*first);
        let wanted = |t: Trigger| matches!(t, Trigger::Recirculation { value, mask } if (key ^ value) & mask == 0);
        for app in self.triggered(pipe, wanted) {
            let [_, high, ..] = key.to_be_bytes();
            let header = match self.tofino2 {
                true => Header::Counted,
                false => Header::Key(high, key as u16),
            };
            self.start(now_ns, pipe, app, header);
        }
    }

    /// Tofino 2: an ingress deparser asks for a packet of the buffer, with a header of its own.
    pub(super) fn asked(
        &mut self,
        pipe: u32,
        (address, length): (u64, u64),
        header: &[u8],
        now_ns: u64,
    ) {
        let Some(app) = self
            .triggered(pipe, |t| t == Trigger::Deparser)
            .first()
            .copied()
        else {
            return;
        };
        // The address counts 16-byte words.
        let start = (address as usize).saturating_mul(16).min(BUFFER);
        let end = start.saturating_add(length as usize).min(BUFFER);
        let mut body = header.to_vec();
        match self.buffers.get(&pipe) {
            Some(buffer) => body.extend_from_slice(&buffer[start..end]),
            None => body.resize(body.len() + end - start, 0),
        }
        let Some(config) = self.apps.get(&(pipe, app)).cloned() else {
            return;
        };
        let single = GeneratorApp {
            batches: 1,
            packets: 1,
            ..config
        };
        self.run(now_ns, (pipe, app), &single, Header::None, body.into());
    }

    /// Starts an application.
    fn start(&mut self, now_ns: u64, pipe: u32, app: u8, header: Header) {
        let Some(config) = self.apps.get(&(pipe, app)).cloned() else {
            return;
        };
        let body = match self.buffers.get(&pipe) {
            Some(buffer) => buffer[config.offset..config.offset + config.length].into(),
            None => vec![0; config.length].into(),
        };
        self.run(now_ns, (pipe, app), &config, header, body);
    }

    fn run(
        &mut self,
        now_ns: u64,
        of: (u32, u8),
        config: &GeneratorApp,
        header: Header,
        body: Arc<[u8]>,
    ) {
        if config.batches == 0 || config.packets == 0 || self.runs.len() >= RUNS {
            return;
        }
        let (pipe, app) = of;
        // Tofino 1: 3 bits of padding, 2 of pipe, 3 of application; Tofino 2: 2, 2 and 4.
        let shift = if self.tofino2 { 4 } else { 3 };
        self.started += 1;
        self.runs.push(Reverse(Run {
            due: now_ns,
            number: self.started,
            of,
            port: pipe << 7 | config.port,
            batch_start: now_ns,
            batch: 0,
            packet: 0,
            batches: config.batches,
            packets: config.packets,
            batch_gap_ns: config.batch_gap_ns,
            packet_gap_ns: config.packet_gap_ns,
            first: (pipe as u8 & 3) << shift | app,
            header,
            body,
        }));
    }

    /// When the next packet comes.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        let waiting = self.runs.peek().map(|Reverse(run)| run.due);
        let timer = self.timers.values().min().copied();
        waiting.into_iter().chain(timer).min()
    }

    /// The next packet whose time has come.
    pub(crate) fn due(&mut self, now_ns: u64) -> Option<(u64, Job)> {
        while let Some((&(pipe, app), &due)) = self.timers.iter().min_by_key(|(_, due)| **due) {
            let earlier = self.runs.peek().is_some_and(|Reverse(run)| run.due < due);
            if due > now_ns || earlier {
                break;
            }
            self.timers.remove(&(pipe, app));
            if let Some(Trigger::Periodic { period_ns }) =
                self.apps.get(&(pipe, app)).map(|a| a.trigger)
            {
                let next = due.saturating_add(period_ns.max(1));
                self.timers.insert((pipe, app), next);
            }
            self.start(due, pipe, app, Header::Counted);
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
