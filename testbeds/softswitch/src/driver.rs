//! The packet loop. One thread owns program and ports; the control plane sends it short commands, which run between two
//! batches of frames, so a command is atomic for the data plane.
//!
//! Where several [`Workers`] are asked for, each has a thread, ports and a program of its own over the same tables, and frames
//! for the port of another cross to it (`crossing`). Commands run on the first worker's thread, while no other runs
//! (`fleet`), so a command is atomic for all of them. A program whose packets write registers, say, runs on the first
//! worker alone, and all ports are there then.
//!
//! A turn takes a batch from each port that has frames, runs each frame to completion, and flushes what the program has
//! sent once. Commands have a bounded part of a turn ([`COMMAND_SLICE`]): long work comes in steps
//! ([`Handle::run_steps`]), between which frames move. Nothing here waits for the control plane: packets for it are dropped,
//! and counted, when it is too slow.
//!
//! In steady state nothing is allocated for a frame.

mod core;
mod crossing;
mod fleet;
mod handle;
mod port;
mod wait;
mod worker;

pub use self::core::{Core, Statistics};
pub use handle::{Handle, Stopped};
pub use port::PortCounters;

use crate::dataplane::Event;
use crate::ports::PortIo;
use crossing::{Crossing, Inbox};
use fleet::{Fleet, Lost};
use handle::Command;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::unistd::Pid;
use port::Port;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use wait::Waiter;
use worker::Worker;

/// Frames taken from one port before the others have their turn.
const FRAMES_PER_TURN: usize = 64;
/// No further command begins in a turn after this long.
pub const COMMAND_SLICE: Duration = Duration::from_micros(100);
/// Commands waiting.
const COMMAND_BACKLOG: usize = 256;
/// Packets waiting for the control plane; more are dropped and counted.
const PACKET_IN_BACKLOG: usize = 1024;

/// A running packet loop.
pub struct Driver {
    /// For commands.
    pub handle: Handle,
    /// Packets from the CPU port, digest messages, idle entries.
    pub packet_in: mpsc::Receiver<Event>,
    /// Ends when the loop does.
    pub thread: JoinHandle<()>,
}

/// How many threads run packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workers {
    /// At least 1.
    pub count: usize,
    /// Each stays on a processor of its own, as far as there are so many.
    pub pinned: bool,
}

impl Default for Workers {
    fn default() -> Self {
        Self {
            count: 1,
            pinned: false,
        }
    }
}

/// Starts the packet loop over these ports (number and back end), without a program.
pub fn start(
    mut ports: Vec<(u32, Box<dyn PortIo>)>,
    cpu_port: u32,
    workers: Workers,
) -> io::Result<Driver> {
    let (command_sender, commands) = mpsc::channel(COMMAND_BACKLOG);
    let (packet_in_sender, packet_in) = mpsc::channel(PACKET_IN_BACKLOG);
    ports.sort_by_key(|(number, _)| *number);
    if ports.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a port number is given twice",
        ));
    }
    let ports: Vec<Port> = ports
        .into_iter()
        .map(|(number, io)| Port::new(number, io))
        .collect();
    let count = workers.count.max(1);
    let event =
        || EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC).map(Arc::new);
    let wakes = (0..count).map(|_| event()).collect::<Result<Vec<_>, _>>()?;
    let inboxes: Arc<[Inbox]> = wakes.iter().cloned().map(Inbox::new).collect();
    let origin = Instant::now();
    let worker = |number: usize, ports| {
        let crossing = (count > 1).then(|| Crossing::new(number, Arc::clone(&inboxes)));
        let packet_in = packet_in_sender.clone();
        Worker::new(ports, crossing, cpu_port, packet_in, origin)
    };
    let fleet = (count > 1).then(|| Arc::new(Fleet::new(Arc::clone(&inboxes))));
    let mut core = Core::new(worker(0, ports), fleet.clone(), cpu_port, origin);
    core.add((1..count).map(|number| worker(number, Vec::new())));
    let handle = Handle::new(command_sender, Arc::clone(&wakes[0]));
    let processors = if workers.pinned {
        processors()?
    } else {
        Vec::new()
    };
    let mut others = Others {
        fleet: fleet.clone(),
        threads: Vec::new(),
    };
    for (fleet, number) in fleet
        .iter()
        .flat_map(|fleet| (1..count).map(move |n| (fleet, n)))
    {
        let (fleet, waiter) = (Arc::clone(fleet), Waiter::new(Arc::clone(&wakes[number])));
        let processor = processors.get(number % processors.len().max(1)).copied();
        let thread = std::thread::Builder::new()
            .name(format!("packets-{number}"))
            .spawn(move || {
                prepare_thread(processor);
                fleet.work(number, waiter);
            })?;
        others.threads.push(thread);
    }
    let waiter = Waiter::new(Arc::clone(&wakes[0]));
    let processor = processors.first().copied();
    let thread = std::thread::Builder::new()
        .name("packets".to_owned())
        .spawn(move || {
            prepare_thread(processor);
            // Ends the others whatever happens here.
            let _others = others;
            if let Err(Lost) = run(core, commands, waiter) {
                tracing::error!("a worker has failed: the switch ends");
            }
        })?;
    Ok(Driver {
        handle,
        packet_in,
        thread,
    })
}

/// The threads of the workers beside the first: they end with this.
struct Others {
    fleet: Option<Arc<Fleet>>,
    threads: Vec<JoinHandle<()>>,
}

impl Drop for Others {
    fn drop(&mut self) {
        if let Some(fleet) = &self.fleet {
            fleet.end();
        }
        for thread in self.threads.drain(..) {
            // One that has panicked has ended, too.
            let _ = thread.join();
        }
    }
}

/// The processors that this process may use.
fn processors() -> io::Result<Vec<usize>> {
    let set = nix::sched::sched_getaffinity(Pid::from_raw(0))?;
    let all = 0..nix::sched::CpuSet::count();
    Ok(all.filter(|cpu| set.is_set(*cpu) == Ok(true)).collect())
}

fn prepare_thread(processor: Option<usize>) {
    // The default slack of 50 µs is longer than a recirculation.
    let _ = nix::sys::prctl::set_timerslack(1);
    let Some(processor) = processor else { return };
    let mut set = nix::sched::CpuSet::new();
    let pinned = set.set(processor);
    let pinned = pinned.and_then(|()| nix::sched::sched_setaffinity(Pid::from_raw(0), &set));
    if let Err(error) = pinned {
        tracing::warn!(processor, %error, "a worker is not pinned");
    }
}

fn run(
    mut core: Core,
    mut commands: mpsc::Receiver<Command>,
    mut waiter: Waiter,
) -> Result<(), Lost> {
    let inboxes = core.inboxes();
    let inbox = inboxes.as_ref().map(|inboxes| &inboxes[0]);
    let count = core.workers();
    core.distribute(count);
    core.scatter();
    // What is left of a command that works in steps.
    let mut unfinished: Option<Command> = None;
    loop {
        waiter.follow(core.first());
        let frames = core.first().turn();
        waiter.handled(frames);
        let has_command = unfinished.is_some() || !commands.is_empty() || commands.is_closed();
        if has_command || core.wants_control() {
            core.gather()?;
            let flow = run_commands(&mut core, &mut commands, &mut unfinished);
            if matches!(flow, Flow::End) {
                return Ok(());
            }
            core.scatter();
            if matches!(flow, Flow::More) {
                waiter.look(core.first());
                continue;
            }
        }
        if let Some(sleep) = waiter.after(core.first(), frames, || !commands.is_empty()) {
            waiter.sleep(sleep, inbox);
        }
    }
}

enum Flow {
    /// The switch ends.
    End,
    /// Commands wait.
    More,
    Idle,
}

fn run_commands(
    core: &mut Core,
    commands: &mut mpsc::Receiver<Command>,
    unfinished: &mut Option<Command>,
) -> Flow {
    let mut started: Option<Instant> = None;
    loop {
        let mut command = match unfinished.take() {
            Some(command) => command,
            None => match commands.try_recv() {
                Ok(command) => command,
                Err(mpsc::error::TryRecvError::Empty) => return Flow::Idle,
                // Nobody can ever ask again: the owner is gone.
                Err(mpsc::error::TryRecvError::Disconnected) => return Flow::End,
            },
        };
        let started = *started.get_or_insert_with(Instant::now);
        if !command(core) {
            *unfinished = Some(command);
            return Flow::More;
        }
        // What it sends (packet-out) is not held until the turn's end.
        core.first().transmit();
        if core.has_stopped() {
            return Flow::End;
        }
        if started.elapsed() >= COMMAND_SLICE {
            return if commands.is_empty() {
                Flow::Idle
            } else {
                Flow::More
            };
        }
    }
}
