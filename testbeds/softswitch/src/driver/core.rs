//! Program, ports and counters: what a turn of frames and a command work on.

use super::FRAMES_PER_TURN;
use crate::dataplane::{Dataplane, Event, Transmit};
use crate::ports::{PortIo, Sink};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Frames and bytes at one port, seen from the switch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// The port's number.
    pub port: u32,
    /// What stands behind it.
    pub name: String,
    /// Received and processed.
    pub rx_frames: u64,
    /// Without FCS.
    pub rx_bytes: u64,
    /// Handed to the link, less those known to be lost.
    pub tx_frames: u64,
    /// Without FCS; of frames handed to the link.
    pub tx_bytes: u64,
    /// Received and not processed.
    pub rx_errors: u64,
    /// Of these, frames that came while too many others waited for the switch.
    pub rx_overflow: u64,
    /// Lost at a link that was full or down.
    pub tx_errors: u64,
}

/// What became of the packets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Over all ports.
    pub rx_frames: u64,
    /// Over all ports.
    pub tx_frames: u64,
    /// To the control plane.
    pub packets_in: u64,
    /// From the control plane.
    pub packets_out: u64,
    /// Ended in the switch, by reason.
    pub drops: BTreeMap<String, u64>,
}

/// A port and its state.
pub(super) struct Port {
    pub(super) io: Box<dyn PortIo>,
    counters: PortCounters,
    /// Has frames, as far as is known.
    ready: bool,
    unflushed: bool,
    failed: bool,
}

impl Port {
    pub(super) fn new(number: u32, io: Box<dyn PortIo>) -> Self {
        Self {
            counters: PortCounters {
                port: number,
                name: io.name().to_owned(),
                ..Default::default()
            },
            io,
            ready: false,
            unflushed: false,
            failed: false,
        }
    }

    fn send(&mut self, frame: &[u8]) {
        self.counters.tx_frames += 1;
        self.counters.tx_bytes += frame.len() as u64;
        self.unflushed = true;
        if let Err(error) = self.io.send(frame) {
            tracing::warn!(port = self.counters.port, %error, "frame lost");
            self.lost(1);
        }
    }

    fn flush(&mut self) {
        self.unflushed = false;
        match self.io.flush() {
            Ok(lost) => self.lost(lost as u64),
            Err(error) => {
                tracing::warn!(port = self.counters.port, %error, "frames lost");
                self.lost(1);
            }
        }
    }

    fn lost(&mut self, frames: u64) {
        self.counters.tx_errors += frames;
        self.counters.tx_frames = self.counters.tx_frames.saturating_sub(frames);
    }

    /// The counters, with what the kernel has counted meanwhile.
    fn read_counters(&mut self) -> &PortCounters {
        let overflow = self.io.overflow();
        self.counters.rx_overflow += overflow;
        self.counters.rx_errors += overflow;
        &self.counters
    }
}

/// Frames that end outside the program.
#[derive(Debug, Clone, Copy, Default)]
struct Drops {
    no_pipeline: u64,
    no_such_port: u64,
    control_plane_too_slow: u64,
    /// No frames: digest messages and idle entries.
    notifications_lost: u64,
}

/// What commands work on.
pub struct Core {
    active: Option<Box<dyn Dataplane>>,
    saved: Option<Box<dyn Dataplane>>,
    /// In order of number.
    ports: Vec<Port>,
    cpu_port: u32,
    packet_in: mpsc::Sender<Event>,
    origin: Instant,
    statistics: Statistics,
    drops: Drops,
    stopped: bool,
}

impl Core {
    /// `ports` in order of number.
    pub(super) fn new(ports: Vec<Port>, cpu_port: u32, packet_in: mpsc::Sender<Event>) -> Self {
        Self {
            active: None,
            saved: None,
            ports,
            cpu_port,
            packet_in,
            origin: Instant::now(),
            statistics: Statistics::default(),
            drops: Drops::default(),
            stopped: false,
        }
    }

    /// The program that the control plane writes to: a saved one, else the running one.
    pub fn target(&mut self) -> Option<&mut (dyn Dataplane + 'static)> {
        self.saved.as_deref_mut().or(self.active.as_deref_mut())
    }

    /// The time, and the state of the program that the control plane writes to.
    pub fn control(&mut self) -> Option<(u64, &mut pipeline::Switch)> {
        let now = elapsed_ns(self.origin);
        Some((now, self.target()?.switch_mut()))
    }

    /// Keeps a program for [`Self::commit`].
    pub fn save(&mut self, program: Box<dyn Dataplane>) {
        self.saved = Some(program);
    }

    /// Runs the saved program from now on; false if there is none.
    pub fn commit(&mut self) -> bool {
        let Some(mut program) = self.saved.take() else {
            return false;
        };
        for port in self.ports.iter().filter(|port| port.failed) {
            program.switch_mut().set_port_up(port.counters.port, false);
        }
        // What the old program still held (recirculating frames) ends with it.
        for (reason, frames) in self.active.iter().flat_map(|program| program.drops()) {
            *self.statistics.drops.entry(reason).or_default() += frames;
        }
        self.active = Some(program);
        true
    }

    /// Gives the running program a frame as if it had arrived on the CPU port.
    pub fn packet_out(&mut self, frame: &[u8]) {
        self.statistics.packets_out += 1;
        let now = elapsed_ns(self.origin);
        match &mut self.active {
            Some(program) => program.handle_packet(now, self.cpu_port, frame),
            None => self.drops.no_pipeline += 1,
        }
    }

    /// In order of port number.
    #[must_use]
    pub fn port_counters(&mut self) -> Vec<PortCounters> {
        self.ports
            .iter_mut()
            .map(|port| port.read_counters().clone())
            .collect()
    }

    /// Up to now.
    #[must_use]
    pub fn statistics(&mut self) -> Statistics {
        let mut statistics = self.statistics.clone();
        let mut overflow = 0;
        for port in &mut self.ports {
            let counters = port.read_counters();
            statistics.rx_frames += counters.rx_frames;
            statistics.tx_frames += counters.tx_frames;
            overflow += counters.rx_overflow;
        }
        let own = [
            ("no pipeline", self.drops.no_pipeline),
            ("no such port", self.drops.no_such_port),
            ("control plane too slow", self.drops.control_plane_too_slow),
            (
                "notification lost: control plane too slow",
                self.drops.notifications_lost,
            ),
            ("receive queue full", overflow),
        ];
        let own = own
            .into_iter()
            .filter(|(_, frames)| *frames > 0)
            .map(|(reason, frames)| (reason.to_owned(), frames));
        let programs = self.active.iter().flat_map(|program| program.drops());
        for (reason, frames) in own.chain(programs) {
            *statistics.drops.entry(reason).or_default() += frames;
        }
        statistics
    }

    /// Ends the loop after this command.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    pub(super) fn has_stopped(&self) -> bool {
        self.stopped
    }

    /// One batch from each port that has frames, run to completion; whether there were any.
    pub(super) fn turn(&mut self) -> bool {
        self.run_due();
        let mut busy = false;
        for position in 0..self.ports.len() {
            if std::mem::take(&mut self.ports[position].ready) || self.always_ready(position) {
                busy |= self.receive(position);
            }
        }
        self.transmit();
        busy
    }

    /// Takes a batch from one port; whether there was one.
    fn receive(&mut self, position: usize) -> bool {
        let port = &mut self.ports[position];
        let mut batch = Batch {
            active: self.active.as_deref_mut(),
            origin: self.origin,
            now: 0,
            counters: &mut port.counters,
            unhandled: &mut self.drops.no_pipeline,
        };
        match port.io.receive(FRAMES_PER_TURN, &mut batch) {
            Ok(received) => {
                port.counters.rx_errors += received.errors as u64;
                received.frames + received.errors > 0
            }
            Err(error) => {
                tracing::warn!(port = port.counters.port, name = port.io.name(), %error, "port failed");
                port.failed = true;
                if let Some(program) = &mut self.active {
                    program.switch_mut().set_port_up(port.counters.port, false);
                }
                false
            }
        }
    }

    /// Sends what the program has for its ports and for the control plane.
    pub(super) fn transmit(&mut self) {
        while let Some(Transmit { port, frame }) = self
            .active
            .as_mut()
            .and_then(|program| program.poll_transmit())
        {
            if let Ok(position) = self
                .ports
                .binary_search_by_key(&port, |port| port.counters.port)
            {
                self.ports[position].send(&frame);
                if let Some(program) = &mut self.active {
                    program.recycle(frame);
                }
            } else if port == self.cpu_port {
                match self.packet_in.try_send(Event::Packet(frame)) {
                    Ok(()) => self.statistics.packets_in += 1,
                    Err(_) => self.drops.control_plane_too_slow += 1,
                }
            } else {
                self.drops.no_such_port += 1;
            }
        }
        while let Some(event) = self.active.as_mut().and_then(|p| p.poll_event()) {
            if self.packet_in.try_send(event).is_err() {
                self.drops.notifications_lost += 1;
            }
        }
        for port in self.ports.iter_mut().filter(|port| port.unflushed) {
            port.flush();
        }
    }

    /// A port without a descriptor has to be asked. Its frames (those of a file) wait for a program.
    fn always_ready(&self, position: usize) -> bool {
        let port = &self.ports[position];
        !port.failed && port.io.fd().is_none() && self.active.is_some()
    }

    /// Marks the ports of which it can be seen that they have frames; whether there are any.
    pub(super) fn mark_arrived(&mut self) -> bool {
        let mut any = false;
        for port in &mut self.ports {
            if !port.failed && port.io.has_arrived() == Some(true) {
                port.ready = true;
                any = true;
            }
        }
        any
    }

    /// What the kernel says about a port.
    pub(super) fn mark_ready(&mut self, position: usize) {
        self.ports[position].ready = !self.ports[position].failed;
    }

    pub(super) fn failed(&self, position: usize) -> bool {
        self.ports[position].failed
    }

    fn run_due(&mut self) {
        if let Some(program) = &mut self.active
            && let Some(due) = program.poll_timeout()
        {
            let now = elapsed_ns(self.origin);
            if due <= now {
                program.handle_timeout(now);
            }
        }
    }

    /// How long nothing will happen unless something arrives.
    pub(super) fn idle_time(&self) -> Option<Duration> {
        let due = self.active.as_ref()?.poll_timeout()?;
        Some(Duration::from_nanos(
            due.saturating_sub(elapsed_ns(self.origin)),
        ))
    }
}

/// A batch of frames on its way into the program.
struct Batch<'a> {
    active: Option<&'a mut (dyn Dataplane + 'static)>,
    origin: Instant,
    now: u64,
    counters: &'a mut PortCounters,
    unhandled: &'a mut u64,
}

impl Sink for Batch<'_> {
    // Not once a turn: a frame must not have a time of before its arrival, or it would be held for less than its delay.
    fn arrived(&mut self) {
        self.now = elapsed_ns(self.origin);
    }

    fn frame(&mut self, frame: &[u8]) {
        self.counters.rx_frames += 1;
        self.counters.rx_bytes += frame.len() as u64;
        match &mut self.active {
            Some(program) => program.handle_packet(self.now, self.counters.port, frame),
            None => *self.unhandled += 1,
        }
    }
}

fn elapsed_ns(origin: Instant) -> u64 {
    u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
