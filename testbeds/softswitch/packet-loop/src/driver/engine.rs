//! The packet loop's state, and one iteration: frames from the ports into the program, and its output to the ports.

use super::FRAMES_PER_TURN;
use super::port::{Port, PortCounters};
use crate::dataplane::{Dataplane, Event};
use crate::ports::Sink;
use pipeline::Transmit;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Minimum time between two executions of timed work, in nanoseconds. Every packet that recirculates needs such work once per
/// latency of the recirculation link; a wake-up for each would keep a processor busy.
const GRAIN_NS: u64 = 50_000;

/// Numbers of frames that are dropped outside the program, by reason.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Drops {
    pub(super) no_pipeline: u64,
    pub(super) no_such_port: u64,
    pub(super) control_plane_too_slow: u64,
    /// Digest messages and idle table entries that were lost; they are not frames.
    pub(super) notifications_lost: u64,
}

/// The packet loop's state: ports, running program, counters.
pub(super) struct Engine {
    pub(super) program: Option<Dataplane>,
    /// The switch's ports, in order of their numbers.
    pub(super) ports: Vec<Port>,
    /// Numbers of the failed ports of which the program has not been notified.
    pub(super) failed: Vec<u32>,
    pub(super) drops: Drops,
    /// Number of packets sent to the control plane.
    pub(super) packets_in: u64,
    /// Maximum delay, in nanoseconds, with which the program's timed work was done.
    pub(super) latest_ns: u64,
    /// Index of the port that the next iteration serves first.
    first: usize,
    /// Time, in nanoseconds since `origin`, before which no timed work is done.
    not_before_ns: u64,
    cpu_port: u32,
    packet_in: mpsc::Sender<Event>,
    origin: Instant,
}

impl Engine {
    /// Creates the state without a program; `ports` are in order of number, and time counts from `origin`.
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

    /// Takes a batch of frames from each port that has some, and runs it to completion; returns the number of frames.
    ///
    /// Round robin: the port that was first in an iteration is last in the next. With a fixed order, the first port would
    /// be answered first, have its next frames sooner, and so get a larger share of a busy switch.
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

    /// The indices of all ports, in the order in which this iteration serves them.
    fn positions(&self) -> impl Iterator<Item = usize> + use<> {
        let ports = self.ports.len();
        let first = self.first.min(ports);
        (first..ports).chain(0..first)
    }

    /// Takes a batch of frames from the port with index `position`; returns the number of frames.
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
                // A port without carrier is down already.
                let was_up = port.is_up();
                port.failed = true;
                self.failed.extend(was_up.then_some(number));
                0
            }
        }
    }

    /// Sends the frames and events that the program has put out to the ports and to the control plane.
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

    /// Whether the port with index `position` is read in every iteration. This is so for a file, which has no descriptor to
    /// poll, while a program runs.
    fn always_ready(&self, position: usize) -> bool {
        let port = &self.ports[position];
        !port.failed && port.io.readable().is_none() && self.program.is_some()
    }

    /// Marks the ports whose back ends show, without a system call, that frames wait; returns whether there are any.
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

    /// Time at which timed work is next due, in nanoseconds since `origin`; `None`: nothing is due.
    fn next_due_ns(&self) -> Option<u64> {
        let program = self.program.as_ref().and_then(Dataplane::poll_timeout);
        let ports = self.ports.iter().map(|port| port.due_ns(self.origin));
        let due = ports.chain([program]).flatten().min()?;
        Some(due.max(self.not_before_ns))
    }

    /// Time from now until timed work is due; `None`: nothing is due.
    pub(super) fn idle_time(&self) -> Option<Duration> {
        let left = self.next_due_ns()?.saturating_sub(elapsed_ns(self.origin));
        Some(Duration::from_nanos(left))
    }
}

/// Passes the frames of one port's batch to the program.
struct Batch<'a> {
    program: Option<&'a mut Dataplane>,
    origin: Instant,
    now: u64,
    counters: &'a mut PortCounters,
    unhandled: &'a mut u64,
}

impl Sink for Batch<'_> {
    // The time is read per frame: with a time before its arrival, a frame would be held for less than its delay.
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
    use crate::ports::{Frames, Received};
    use std::io;
    use std::os::fd::BorrowedFd;
    use std::sync::{Arc, Mutex};

    /// A port that always has a frame, and records when it was polled or flushed.
    struct Noting {
        number: u32,
        asked: Arc<Mutex<Vec<u32>>>,
        flushed: Arc<Mutex<Vec<u32>>>,
    }

    impl Frames for Noting {
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

        fn readable(&self) -> Option<BorrowedFd<'_>> {
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
        // An iteration without frames does not change the order.
        assert!(turn(&[]).is_empty());
        assert_eq!(turn(&[0, 1, 2, 3]), [2, 3, 0, 1]);
        // Two busy ports of many also alternate.
        assert_eq!(turn(&[0, 1]), [0, 1]);
        assert_eq!(turn(&[0, 1]), [1, 0]);
        assert_eq!(turn(&[0, 1]), [0, 1]);
        assert_eq!(turn(&[3]), [3]);
        assert_eq!(turn(&[0, 3]), [0, 3]);
    }
}
