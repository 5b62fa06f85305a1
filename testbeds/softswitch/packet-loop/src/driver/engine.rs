//! What the loop works on: the ports, the program, what is counted.

use super::FRAMES_PER_TURN;
use super::port::{Port, PortCounters};
use crate::dataplane::{Dataplane, Event};
use crate::ports::Sink;
use pipeline::Transmit;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// What is due waits until so much time has passed since the last that was: each packet that a program holds comes round once in
/// a recirculation's latency, and to be woken for each of them alone would keep a processor busy.
const GRAIN_NS: u64 = 50_000;

/// Frames that end outside the program.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Drops {
    pub(super) no_pipeline: u64,
    pub(super) no_such_port: u64,
    pub(super) control_plane_too_slow: u64,
    /// No frames: digest messages and idle entries.
    pub(super) notifications_lost: u64,
}

/// See the module.
pub(super) struct Engine {
    pub(super) program: Option<Dataplane>,
    /// In order of number.
    pub(super) ports: Vec<Port>,
    /// Ports that have failed and of which the program has not been told.
    pub(super) failed: Vec<u32>,
    pub(super) drops: Drops,
    /// To the control plane.
    pub(super) packets_in: u64,
    /// How late the latest deadline of the program was met.
    pub(super) latest_ns: u64,
    /// The position of the port that comes first in the next turn.
    first: usize,
    /// Nothing that is due is done before.
    not_before_ns: u64,
    cpu_port: u32,
    packet_in: mpsc::Sender<Event>,
    origin: Instant,
}

impl Engine {
    /// `ports` in order of number. Time counts from `origin`.
    pub(super) fn new(
        ports: Vec<Port>,
        cpu_port: u32,
        packet_in: mpsc::Sender<Event>,
        origin: Instant,
    ) -> Self {
        Self {
            program: None,
            ports,
            failed: Vec::new(),
            drops: Drops::default(),
            packets_in: 0,
            latest_ns: 0,
            first: 0,
            not_before_ns: 0,
            cpu_port,
            packet_in,
            origin,
        }
    }

    /// One batch from each port that has frames, run to completion; how many frames these were.
    ///
    /// Round robin: the port that came first in a turn comes last in the next. Who is served first is answered first, has its
    /// next frames there sooner, and so gets more turns: with one order, the first ports have more of a busy switch.
    pub(super) fn turn(&mut self) -> usize {
        self.run_due();
        let mut frames = 0;
        let mut next = None;
        for position in self.positions() {
            if self.ports[position].ready.take() || self.always_ready(position) {
                let received = self.receive(position);
                next = next.or((received > 0).then_some(position + 1));
                frames += received;
            }
        }
        self.transmit();
        self.first = next.unwrap_or(self.first);
        if let Some(program) = &mut self.program {
            program.warn_of_cuts();
        }
        frames
    }

    /// All ports' positions, in the order of this turn.
    fn positions(&self) -> impl Iterator<Item = usize> + use<> {
        let ports = self.ports.len();
        let first = self.first.min(ports);
        (first..ports).chain(0..first)
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
                0
            }
        }
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
                self.drops.no_such_port += 1;
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
        for position in self.positions() {
            let port = &mut self.ports[position];
            if port.unflushed {
                port.flush();
            }
        }
    }

    /// A port without a descriptor has to be asked. Its frames (those of a file) wait for a program.
    fn always_ready(&self, position: usize) -> bool {
        let port = &self.ports[position];
        !port.failed && port.io.fd().is_none() && self.program.is_some()
    }

    /// Marks the ports of which it can be seen that they have frames; whether there are any.
    pub(super) fn mark_arrived(&self) -> bool {
        let mut any = false;
        for port in &self.ports {
            if !port.failed && port.io.has_arrived() == Some(true) {
                port.ready.set(true);
                any = true;
            }
        }
        any
    }

    fn run_due(&mut self) {
        let Some(due) = self.next_due_ns() else {
            return;
        };
        let now = elapsed_ns(self.origin);
        if due > now {
            return;
        }
        self.not_before_ns = now + GRAIN_NS;
        if let Some(program) = &mut self.program
            && let Some(due) = program.poll_timeout()
            && due <= now
        {
            self.latest_ns = self.latest_ns.max(now - due);
            program.handle_timeout(now);
        }
        for port in &mut self.ports {
            let due = port.due_ns(self.origin);
            if due.is_some_and(|due| due <= now) {
                port.ready.set(true);
                port.unflushed = true;
            }
        }
    }

    /// When something is due next, if nothing arrives.
    fn next_due_ns(&self) -> Option<u64> {
        let program = self.program.as_ref().and_then(Dataplane::poll_timeout);
        let ports = self.ports.iter().map(|port| port.due_ns(self.origin));
        let due = ports.chain([program]).flatten().min()?;
        Some(due.max(self.not_before_ns))
    }

    /// How long nothing will happen unless something arrives.
    pub(super) fn idle_time(&self) -> Option<Duration> {
        let left = self.next_due_ns()?.saturating_sub(elapsed_ns(self.origin));
        Some(Duration::from_nanos(left))
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

    fn frame(&mut self, frame: &[u8], waited_ns: u64) {
        self.counters.rx_frames += 1;
        self.counters.rx_bytes += frame.len() as u64;
        let arrived_ns = self.now.saturating_sub(waited_ns);
        match &mut self.program {
            Some(program) => {
                program.handle_arrival(self.now, arrived_ns, self.counters.port, frame);
            }
            None => *self.unhandled += 1,
        }
    }
}

pub(super) fn elapsed_ns(origin: Instant) -> u64 {
    u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::{PortIo, Received};
    use std::io;
    use std::os::fd::BorrowedFd;
    use std::sync::{Arc, Mutex};

    /// Has a frame whenever it is asked, and notes that it was asked or flushed.
    struct Noting {
        number: u32,
        asked: Arc<Mutex<Vec<u32>>>,
        flushed: Arc<Mutex<Vec<u32>>>,
    }

    impl PortIo for Noting {
        fn receive(&mut self, _: usize, sink: &mut dyn Sink) -> io::Result<Received> {
            self.asked.lock().unwrap().push(self.number);
            sink.arrived();
            sink.frame(&[0; 64], 0);
            Ok(Received {
                frames: 1,
                errors: 0,
            })
        }

        fn send(&mut self, _: &[u8]) -> io::Result<()> {
            Ok(())
        }

        fn flush(&mut self) -> io::Result<usize> {
            self.flushed.lock().unwrap().push(self.number);
            Ok(0)
        }

        fn fd(&self) -> Option<BorrowedFd<'_>> {
            None
        }

        fn name(&self) -> &str {
            "noting"
        }
    }

    #[test]
    fn the_port_that_came_first_comes_last_in_the_next_turn() {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let flushed = Arc::new(Mutex::new(Vec::new()));
        let port = |number| {
            let noting = Noting {
                number,
                asked: Arc::clone(&asked),
                flushed: Arc::clone(&flushed),
            };
            Port::new(number, Box::new(noting))
        };
        let ports = (0..4).map(port).collect();
        let mut engine = Engine::new(ports, 510, mpsc::channel(1).0, Instant::now());
        let mut turn = |ready: &[usize]| {
            for position in ready {
                engine.ports[*position].ready.set(true);
                engine.ports[*position].unflushed = true;
            }
            assert_eq!(engine.turn(), ready.len());
            let order = std::mem::take(&mut *asked.lock().unwrap());
            assert_eq!(std::mem::take(&mut *flushed.lock().unwrap()), order);
            order
        };
        assert_eq!(turn(&[0, 1, 2, 3]), [0, 1, 2, 3]);
        assert_eq!(turn(&[0, 1, 2, 3]), [1, 2, 3, 0]);
        // Nobody's turn is used up where nothing arrives.
        assert!(turn(&[]).is_empty());
        assert_eq!(turn(&[0, 1, 2, 3]), [2, 3, 0, 1]);
        // Two of many take turns, too.
        assert_eq!(turn(&[0, 1]), [0, 1]);
        assert_eq!(turn(&[0, 1]), [1, 0]);
        assert_eq!(turn(&[0, 1]), [0, 1]);
        assert_eq!(turn(&[3]), [3]);
        assert_eq!(turn(&[0, 3]), [0, 3]);
    }
}
