//! The packet generator of each pipe: eight applications, in virtual time.
//!
//! An application makes batches of packets from a piece of its pipe's buffer. Each packet has six bytes in front that say
//! which application, batch and packet it is; it enters ingress like one of a recirculation port.

use super::PIPES;
use crate::core::{Job, Path};
use crate::error::ExternError;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Bytes of a pipe's buffer.
const BUFFER: usize = 16 * 1024;
/// Applications: 8 of a Tofino 1, 16 of a Tofino 2.
const APPS: [u8; 2] = [8, 16];
/// Batches of a start, packets of a batch at most: their numbers have 16 bits.
const BATCHES: u32 = 1 << 16;
/// Packets that wait, at most: more are not made.
const LIMIT: usize = 65_536;

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
    /// Packets to come, in order of time.
    waiting: VecDeque<(u64, u32, Vec<u8>)>,
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
        self.timers.remove(&(pipe, app));
        let Some(config) = config else {
            let there = self.apps.remove(&(pipe, app));
            return there.map(drop).ok_or(ExternError::NotFound);
        };
        let end = config.offset.checked_add(config.length);
        let many = config.batches > BATCHES || config.packets > BATCHES;
        if end.is_none_or(|end| end > BUFFER) || config.port > 0x7f || many {
            return Err(ExternError::OutOfRange);
        }
        match config.trigger {
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
            let port = port.to_be_bytes();
            self.start(now_ns, pipe, app, |_, packet| {
                let mut header = [0, 0, port[2] & 1, port[3], 0, 0];
                header[4..].copy_from_slice(&packet.to_be_bytes());
                header
            });
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
        let tofino2 = self.tofino2;
        for app in self.triggered(pipe, wanted) {
            let [_, high, ..] = key.to_be_bytes();
            self.start(now_ns, pipe, app, |batch, packet| {
                let packet = packet.to_be_bytes();
                if tofino2 {
                    let batch = batch.to_be_bytes();
                    [0, 0, batch[0], batch[1], packet[0], packet[1]]
                } else {
                    // The lower half of the key counts the batches.
                    let low = (key as u16).wrapping_add(batch).to_be_bytes();
                    [0, high, low[0], low[1], packet[0], packet[1]]
                }
            });
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
        let mut bytes = vec![((pipe as u8) & 3) << 4 | app, 0, 0, 0, 0, 0];
        bytes.extend_from_slice(header);
        // The address counts 16-byte words.
        let start = (address as usize).saturating_mul(16).min(BUFFER);
        let end = start.saturating_add(length as usize).min(BUFFER);
        match self.buffers.get(&pipe) {
            Some(buffer) => bytes.extend_from_slice(&buffer[start..end]),
            None => bytes.resize(bytes.len() + end - start, 0),
        }
        let port = self.apps.get(&(pipe, app)).map_or(68, |a| a.port);
        self.wait(now_ns, pipe << 7 | port, bytes);
    }

    /// Makes all packets of one start; `header` gives the six bytes without the application.
    fn start(&mut self, now_ns: u64, pipe: u32, app: u8, header: impl Fn(u16, u16) -> [u8; 6]) {
        let Some(config) = self.apps.get(&(pipe, app)).cloned() else {
            return;
        };
        let body = match self.buffers.get(&pipe) {
            Some(buffer) => buffer[config.offset..config.offset + config.length].to_vec(),
            None => vec![0; config.length],
        };
        // Tofino 1: 3 bits of padding, 2 of pipe, 3 of application; Tofino 2: 2, 2 and 4.
        let shift = if self.tofino2 { 4 } else { 3 };
        let first = (pipe as u8 & 3) << shift | app;
        let (mut last, mut batch_start) = (now_ns, now_ns);
        for batch in 0..config.batches {
            let mut due = last.max(batch_start);
            for packet in 0..config.packets {
                let mut bytes = header(batch as u16, packet as u16).to_vec();
                bytes[0] |= first;
                bytes.extend_from_slice(&body);
                self.wait(due, pipe << 7 | config.port, bytes);
                last = due;
                due = due.saturating_add(config.packet_gap_ns);
            }
            batch_start = batch_start.saturating_add(config.batch_gap_ns);
        }
    }

    fn wait(&mut self, due: u64, port: u32, bytes: Vec<u8>) {
        if self.waiting.len() < LIMIT {
            let at = self.waiting.partition_point(|(other, _, _)| *other <= due);
            self.waiting.insert(at, (due, port, bytes));
        }
    }

    /// When the next packet comes.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        let waiting = self.waiting.front().map(|(due, _, _)| *due);
        let timer = self.timers.values().min().copied();
        waiting.into_iter().chain(timer).min()
    }

    /// The next packet whose time has come.
    pub(crate) fn due(&mut self, now_ns: u64) -> Option<(u64, Job)> {
        while let Some((&(pipe, app), &due)) = self.timers.iter().min_by_key(|(_, due)| **due) {
            let earlier = self.waiting.front().is_some_and(|(w, _, _)| *w < due);
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
            self.start(due, pipe, app, |batch, packet| {
                let (batch, packet) = (batch.to_be_bytes(), packet.to_be_bytes());
                [0, 0, batch[0], batch[1], packet[0], packet[1]]
            });
        }
        let (due, port, bytes) = self.waiting.pop_front_if(|(due, _, _)| *due <= now_ns)?;
        let job = Job {
            path: Path::Normal,
            port,
            bytes,
            ..Job::default()
        };
        Some((due, job))
    }
}
