//! What one worker works on: its ports, its program, what it counts.

use super::FRAMES_PER_TURN;
use super::crossing::Crossing;
use super::port::{Port, PortCounters};
use crate::dataplane::{Dataplane, Event};
use crate::ports::Sink;
use pipeline::Transmit;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Frames that end outside the program.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Drops {
    pub(super) no_pipeline: u64,
    pub(super) no_such_port: u64,
    pub(super) control_plane_too_slow: u64,
    /// No frames: digest messages and idle entries.
    pub(super) notifications_lost: u64,
    /// For ports of another worker.
    pub(super) worker_too_slow: u64,
}

/// What one thread runs packets on.
pub(super) struct Worker {
    /// None: there is none, or it runs on the first worker alone.
    pub(super) program: Option<Dataplane>,
    /// In order of number.
    pub(super) ports: Vec<Port>,
    /// Changes with which ports these are.
    pub(super) generation: u64,
    /// To the other workers, if there are any.
    pub(super) crossing: Option<Crossing>,
    /// Ports that have failed and of which the program has not been told.
    pub(super) failed: Vec<u32>,
    pub(super) drops: Drops,
    /// To the control plane.
    pub(super) packets_in: u64,
    cpu_port: u32,
    packet_in: mpsc::Sender<Event>,
    origin: Instant,
}

impl Worker {
    /// `ports` in order of number. Time counts from `origin`.
    pub(super) fn new(
        ports: Vec<Port>,
        crossing: Option<Crossing>,
        cpu_port: u32,
        packet_in: mpsc::Sender<Event>,
        origin: Instant,
    ) -> Self {
        Self {
            program: None,
            ports,
            generation: 0,
            crossing,
            failed: Vec::new(),
            drops: Drops::default(),
            packets_in: 0,
            cpu_port,
            packet_in,
            origin,
        }
    }

    /// One batch from each port that has frames, run to completion, and what other workers have for these ports; how many
    /// frames these were.
    pub(super) fn turn(&mut self) -> usize {
        self.run_due();
        let mut frames = 0;
        for position in 0..self.ports.len() {
            if std::mem::take(&mut self.ports[position].ready) || self.always_ready(position) {
                frames += self.receive(position);
            }
        }
        frames += self.take_crossed();
        self.transmit();
        if let Some(program) = &mut self.program {
            program.warn_of_cuts();
        }
        frames
    }

    /// Takes a batch from one port; how many frames that were.
    fn receive(&mut self, position: usize) -> usize {
        let port = &mut self.ports[position];
        let mut batch = Batch {
            program: self.program.as_mut(),
            origin: self.origin,
            now: 0,
            counters: &mut port.counters,
            unhandled: &mut self.drops.no_pipeline,
        };
        match port.io.receive(FRAMES_PER_TURN, &mut batch) {
            Ok(received) => {
                port.counters.rx_errors += received.errors as u64;
                received.frames + received.errors
            }
            Err(error) => {
                let number = port.counters.port;
                tracing::warn!(port = number, name = port.io.name(), %error, "port failed");
                // One without carrier is down already.
                let was_up = port.is_up();
                port.failed = true;
                self.failed.extend(was_up.then_some(number));
                if let Some(crossing) = &self.crossing {
                    crossing.ask_for_control();
                }
                0
            }
        }
    }

    /// Puts the frames on these ports that other workers have sent to them; how many.
    pub(super) fn take_crossed(&mut self) -> usize {
        let Some(crossing) = &self.crossing else {
            return 0;
        };
        let (ports, drops) = (&mut self.ports, &mut self.drops);
        crossing.take(|number, frame| {
            match ports.binary_search_by_key(&number, |port| port.counters.port) {
                Ok(position) => ports[position].send(frame),
                Err(_) => drops.no_such_port += 1,
            }
        })
    }

    /// Sends what the program has for its ports and for the control plane.
    pub(super) fn transmit(&mut self) {
        while let Some(Transmit { port, bytes: frame }) = self
            .program
            .as_mut()
            .and_then(|program| program.poll_transmit())
        {
            if let Ok(position) = self
                .ports
                .binary_search_by_key(&port, |port| port.counters.port)
            {
                self.ports[position].send(&frame);
            } else if port == self.cpu_port {
                match self.packet_in.try_send(Event::Packet(frame)) {
                    Ok(()) => self.packets_in += 1,
                    Err(_) => self.drops.control_plane_too_slow += 1,
                }
                continue;
            } else {
                match self.crossing.as_mut().and_then(|c| c.send(port, &frame)) {
                    Some(lost) => self.drops.worker_too_slow += lost,
                    None => self.drops.no_such_port += 1,
                }
            }
            if let Some(program) = &mut self.program {
                program.recycle(frame);
            }
        }
        while let Some(event) = self.program.as_mut().and_then(|p| p.poll_event()) {
            if self.packet_in.try_send(event).is_err() {
                self.drops.notifications_lost += 1;
            }
        }
        for port in self.ports.iter_mut().filter(|port| port.unflushed) {
            port.flush();
        }
        if let Some(crossing) = &mut self.crossing {
            self.drops.worker_too_slow += crossing.flush();
        }
    }

    /// A port without a descriptor has to be asked. Its frames (those of a file) wait for a program.
    fn always_ready(&self, position: usize) -> bool {
        let port = &self.ports[position];
        !port.failed && port.io.fd().is_none() && self.program.is_some()
    }

    /// Marks the ports of which it can be seen that they have frames; whether there are any, or any from other workers.
    pub(super) fn mark_arrived(&mut self) -> bool {
        let mut any = self.crossing.as_ref().is_some_and(Crossing::has_arrived);
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
        if let Some(port) = self.ports.get_mut(position) {
            port.ready = !port.failed;
        }
    }

    pub(super) fn has_failed(&self, position: usize) -> bool {
        self.ports.get(position).is_none_or(|port| port.failed)
    }

    fn run_due(&mut self) {
        if let Some(program) = &mut self.program
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
        let due = self.program.as_ref()?.poll_timeout()?;
        Some(Duration::from_nanos(
            due.saturating_sub(elapsed_ns(self.origin)),
        ))
    }
}

/// A batch of frames on its way into the program.
struct Batch<'a> {
    program: Option<&'a mut Dataplane>,
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
        match &mut self.program {
            Some(program) => program.handle_packet(self.now, self.counters.port, frame),
            None => *self.unhandled += 1,
        }
    }
}

pub(super) fn elapsed_ns(origin: Instant) -> u64 {
    u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
