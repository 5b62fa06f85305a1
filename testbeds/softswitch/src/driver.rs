//! The packet loop. One thread owns program and ports; the control plane sends it short commands, which run between two
//! frames, so a batch is atomic for the data plane and a slow client never holds up a frame.
//!
//! Ready ports are found with ppoll: it takes a timeout in nanoseconds, and a switch has few ports.

use crate::dataplane::Dataplane;
use crate::ports::PortIo;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// Frames taken from one port before the others have their turn.
const FRAMES_PER_TURN: usize = 32;
/// Commands run before frames have their turn.
const COMMANDS_PER_TURN: usize = 16;
/// Commands waiting.
const COMMAND_BACKLOG: usize = 256;
/// How soon a full backlog is tried again.
const FULL_BACKLOG_WAIT: Duration = Duration::from_micros(100);
/// Packets waiting for the control plane; more are dropped and counted.
const PACKET_IN_BACKLOG: usize = 1024;

type Command = Box<dyn FnOnce(&mut Core) + Send>;

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

struct Port {
    io: Box<dyn PortIo>,
    counters: PortCounters,
    unflushed: bool,
    failed: bool,
}

/// What commands work on.
pub struct Core {
    active: Option<Box<dyn Dataplane>>,
    saved: Option<Box<dyn Dataplane>>,
    ports: Vec<Port>,
    by_number: BTreeMap<u32, usize>,
    cpu_port: u32,
    packet_in: mpsc::Sender<Vec<u8>>,
    origin: Instant,
    statistics: Statistics,
    stopped: bool,
}

impl Core {
    /// The program that the control plane writes to: a saved one, else the running one.
    pub fn target(&mut self) -> Option<&mut (dyn Dataplane + 'static)> {
        self.saved.as_deref_mut().or(self.active.as_deref_mut())
    }

    /// Keeps a program for [`Self::commit`].
    pub fn save(&mut self, program: Box<dyn Dataplane>) {
        self.saved = Some(program);
    }

    /// Runs the saved program from now on; false if there is none.
    pub fn commit(&mut self) -> bool {
        let Some(program) = self.saved.take() else {
            return false;
        };
        // What the old program still held (recirculating frames) ends with it.
        self.keep_drops();
        self.active = Some(program);
        true
    }

    /// Gives the running program a frame as if it had arrived on the CPU port.
    pub fn packet_out(&mut self, frame: &[u8]) {
        self.statistics.packets_out += 1;
        let (port, now) = (self.cpu_port, self.now());
        self.process(now, port, frame);
    }

    /// In order of port number.
    #[must_use]
    pub fn port_counters(&self) -> Vec<PortCounters> {
        self.by_number
            .values()
            .map(|&position| self.ports[position].counters.clone())
            .collect()
    }

    /// Up to now.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.statistics.clone();
        let counters = || self.ports.iter().map(|port| &port.counters);
        statistics.rx_frames = counters().map(|counters| counters.rx_frames).sum();
        statistics.tx_frames = counters().map(|counters| counters.tx_frames).sum();
        for (reason, frames) in self.active.iter().flat_map(|program| program.drops()) {
            *statistics.drops.entry(reason).or_default() += frames;
        }
        statistics
    }

    /// Ends the loop after this command.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    fn now(&self) -> u64 {
        elapsed_ns(self.origin)
    }

    fn drop_frame(&mut self, reason: &str) {
        *self.statistics.drops.entry(reason.to_owned()).or_default() += 1;
    }

    fn keep_drops(&mut self) {
        for (reason, frames) in self.active.iter().flat_map(|program| program.drops()) {
            *self.statistics.drops.entry(reason).or_default() += frames;
        }
    }

    fn process(&mut self, now: u64, port: u32, frame: &[u8]) {
        match &mut self.active {
            Some(program) => program.handle_packet(now, port, frame),
            None => self.drop_frame("no pipeline"),
        }
    }

    /// Takes a turn's frames from one port; whether there may be more.
    fn receive(&mut self, position: usize) -> bool {
        let origin = self.origin;
        let (active, statistics) = (&mut self.active, &mut self.statistics);
        let Port {
            io,
            counters,
            failed,
            ..
        } = &mut self.ports[position];
        let number = counters.port;
        let result = io.receive(FRAMES_PER_TURN, &mut |frame| {
            counters.rx_frames += 1;
            counters.rx_bytes += frame.len() as u64;
            match active {
                // The clock is read for each frame: one that arrived while its batch was taken must not have a time of
                // before its arrival, or it would be held for less than its delay.
                Some(program) => program.handle_packet(elapsed_ns(origin), number, frame),
                None => {
                    *statistics
                        .drops
                        .entry("no pipeline".to_owned())
                        .or_default() += 1
                }
            }
        });
        match result {
            Ok(received) => {
                counters.rx_errors += received.errors as u64;
                received.frames + received.errors == FRAMES_PER_TURN
            }
            Err(error) => {
                tracing::warn!(port = number, name = io.name(), %error, "port failed");
                *failed = true;
                false
            }
        }
    }

    /// Sends what the program has for its ports and for the control plane.
    fn transmit(&mut self) {
        while let Some(transmit) = self
            .active
            .as_mut()
            .and_then(|program| program.poll_transmit())
        {
            if let Some(&position) = self.by_number.get(&transmit.port) {
                let port = &mut self.ports[position];
                port.counters.tx_frames += 1;
                port.counters.tx_bytes += transmit.frame.len() as u64;
                port.unflushed = true;
                if let Err(error) = port.io.send(&transmit.frame) {
                    tracing::warn!(port = transmit.port, %error, "frame lost");
                    port.lost(1);
                }
                if let Some(program) = &mut self.active {
                    program.recycle(transmit.frame);
                }
            } else if transmit.port == self.cpu_port {
                match self.packet_in.try_send(transmit.frame) {
                    Ok(()) => self.statistics.packets_in += 1,
                    Err(_) => self.drop_frame("control plane too slow"),
                }
            } else {
                self.drop_frame("no such port");
            }
        }
        for port in self.ports.iter_mut().filter(|port| port.unflushed) {
            port.unflushed = false;
            match port.io.flush() {
                Ok(lost) => port.lost(lost as u64),
                Err(error) => {
                    tracing::warn!(port = port.counters.port, %error, "frames lost");
                    port.lost(1);
                }
            }
        }
    }

    /// A port without a descriptor has to be asked. Its frames (those of a file) wait for a program.
    fn always_ready(&self, position: usize) -> bool {
        let port = &self.ports[position];
        !port.failed && port.io.fd().is_none() && self.active.is_some()
    }

    fn run_due(&mut self) {
        let now = self.now();
        if let Some(program) = &mut self.active
            && program.poll_timeout().is_some_and(|due| due <= now)
        {
            program.handle_timeout(now);
        }
    }

    /// How long nothing will happen unless something arrives.
    fn idle_time(&self) -> Option<Duration> {
        let due = self.active.as_ref()?.poll_timeout()?;
        Some(Duration::from_nanos(due.saturating_sub(self.now())))
    }
}

fn elapsed_ns(origin: Instant) -> u64 {
    u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

impl Port {
    fn lost(&mut self, frames: u64) {
        self.counters.tx_errors += frames;
        self.counters.tx_frames = self.counters.tx_frames.saturating_sub(frames);
    }
}

/// The switch has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the switch has ended")]
pub struct Stopped;

/// Sends commands to the packet loop.
#[derive(Clone)]
pub struct Handle {
    commands: mpsc::Sender<Command>,
    wake: Arc<EventFd>,
}

impl Handle {
    /// Runs `command` between two frames, and hands back its result. Keep it short: no frame moves meanwhile.
    pub async fn run<R: Send + 'static>(
        &self,
        command: impl FnOnce(&mut Core) -> R + Send + 'static,
    ) -> Result<R, Stopped> {
        let (answer, result) = oneshot::channel();
        // Who asked may have gone.
        let command: Command = Box::new(move |core| drop(answer.send(command(core))));
        self.commands.send(command).await.map_err(|_| Stopped)?;
        self.wake();
        result.await.map_err(|_| Stopped)
    }

    /// As [`Self::run`], for a thread that may block. Unlike tokio's blocking calls, it may be one of a runtime's.
    pub fn run_blocking<R: Send + 'static>(
        &self,
        command: impl FnOnce(&mut Core) -> R + Send + 'static,
    ) -> Result<R, Stopped> {
        let (answer, result) = std::sync::mpsc::sync_channel(1);
        let mut command: Command = Box::new(move |core| drop(answer.send(command(core))));
        loop {
            match self.commands.try_send(command) {
                Ok(()) => break,
                Err(mpsc::error::TrySendError::Closed(_)) => return Err(Stopped),
                Err(mpsc::error::TrySendError::Full(returned)) => {
                    command = returned;
                    std::thread::sleep(FULL_BACKLOG_WAIT);
                }
            }
        }
        self.wake();
        result.recv().map_err(|_| Stopped)
    }

    fn wake(&self) {
        // Fails only if the counter is full: then it is set anyway.
        let _ = self.wake.write(1);
    }
}

/// A running packet loop.
pub struct Driver {
    /// For commands.
    pub handle: Handle,
    /// Packets from the CPU port, headers and all.
    pub packet_in: mpsc::Receiver<Vec<u8>>,
    /// Ends when the loop does.
    pub thread: JoinHandle<()>,
}

/// Starts the packet loop over these ports (number and back end), without a program.
pub fn start(ports: Vec<(u32, Box<dyn PortIo>)>, cpu_port: u32) -> io::Result<Driver> {
    let (command_sender, commands) = mpsc::channel(COMMAND_BACKLOG);
    let (packet_in_sender, packet_in) = mpsc::channel(PACKET_IN_BACKLOG);
    let wake = Arc::new(EventFd::from_flags(
        EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC,
    )?);
    let by_number: BTreeMap<u32, usize> = ports
        .iter()
        .enumerate()
        .map(|(i, (number, _))| (*number, i))
        .collect();
    if by_number.len() != ports.len() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a port number is given twice",
        ));
    }
    let port = |(number, io): (u32, Box<dyn PortIo>)| Port {
        counters: PortCounters {
            port: number,
            name: io.name().to_owned(),
            ..Default::default()
        },
        io,
        unflushed: false,
        failed: false,
    };
    let core = Core {
        active: None,
        saved: None,
        ports: ports.into_iter().map(port).collect(),
        by_number,
        cpu_port,
        packet_in: packet_in_sender,
        origin: Instant::now(),
        statistics: Statistics::default(),
        stopped: false,
    };
    let handle = Handle {
        commands: command_sender,
        wake: Arc::clone(&wake),
    };
    let thread = std::thread::Builder::new()
        .name("packets".to_owned())
        .spawn(move || run(core, commands, &wake))?;
    Ok(Driver {
        handle,
        packet_in,
        thread,
    })
}

fn run(mut core: Core, mut commands: mpsc::Receiver<Command>, wake: &EventFd) {
    // The default slack of 50 µs is longer than a recirculation.
    let _ = nix::sys::prctl::set_timerslack(1);
    let mut ready = vec![false; core.ports.len()];
    loop {
        let mut busy = false;
        for _ in 0..COMMANDS_PER_TURN {
            match commands.try_recv() {
                Ok(command) => command(&mut core),
                Err(mpsc::error::TryRecvError::Empty) => break,
                // Nobody can ever ask again: the owner is gone.
                Err(mpsc::error::TryRecvError::Disconnected) => return,
            }
        }
        if core.stopped {
            return;
        }
        core.run_due();
        for (position, &ready) in ready.iter().enumerate() {
            if ready || core.always_ready(position) {
                busy |= core.receive(position);
            }
        }
        core.transmit();
        busy |= !commands.is_empty();
        let timeout = if busy {
            Some(Duration::ZERO)
        } else {
            core.idle_time()
        };
        wait(&core, wake, timeout, &mut ready);
    }
}

/// Sleeps until a port is ready, a command has come, or the time is over.
fn wait(core: &Core, wake: &EventFd, timeout: Option<Duration>, ready: &mut [bool]) {
    let mut fds = Vec::with_capacity(1 + core.ports.len());
    let mut positions = Vec::with_capacity(core.ports.len());
    fds.push(PollFd::new(wake.as_fd(), PollFlags::POLLIN));
    for (position, port) in core.ports.iter().enumerate() {
        if let (false, Some(fd)) = (port.failed, port.io.fd()) {
            fds.push(PollFd::new(fd, PollFlags::POLLIN));
            positions.push(position);
        }
    }
    ready.fill(false);
    // EINTR is the only failure left, and as good as a timeout.
    if ppoll(&mut fds, timeout.map(TimeSpec::from_duration), None).is_ok() {
        for (fd, &position) in fds[1..].iter().zip(&positions) {
            ready[position] = fd.any().unwrap_or(true);
        }
        if fds[0].any().unwrap_or(false) {
            // Cleared before the commands are looked at.
            let _ = wake.read();
        }
    }
}
