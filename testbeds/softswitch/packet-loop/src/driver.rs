//! The packet loop. One thread owns the program and the ports; the control plane sends it short commands, which run
//! between two batches of frames, so that a command is atomic for the data plane.
//!
//! An iteration takes a batch from each port that has frames, runs each frame to completion, and flushes the program's
//! output once. Commands get a bounded part of an iteration ([`COMMAND_SLICE`]): long work runs in steps
//! ([`Handle::run_steps`]), with frames between them. The loop never waits for the control plane: if that is too slow,
//! packets for it are dropped and counted.
//!
//! In steady state, the loop allocates nothing for a frame.

mod core;
mod engine;
mod handle;
mod port;
mod priority;
mod wait;

pub use self::core::{Core, Statistics};
pub use handle::{Handle, Stopped};
pub use port::PortCounters;
pub use priority::{Priority, lower as lower_priority};

use crate::dataplane::Event;
use crate::ports::Frames;
use engine::Engine;
use handle::Command;
use nix::sys::eventfd::{EfdFlags, EventFd};
use port::Port;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use wait::Waiter;

/// Maximum number of frames taken from one port per iteration of the packet loop.
const FRAMES_PER_TURN: usize = 64;
/// Time that commands may take in one iteration of the packet loop; after it, no further command starts.
pub const COMMAND_SLICE: Duration = Duration::from_micros(100);
/// Maximum number of commands that wait for the packet loop.
const COMMAND_BACKLOG: usize = 256;
/// Maximum number of packets and notifications that wait for the control plane; further ones are dropped and counted.
const PACKET_IN_BACKLOG: usize = 1024;

/// A packet loop that runs in its own thread.
pub struct Driver {
    /// Sends commands to the packet loop.
    pub handle: Handle,
    /// Events for the control plane: packets from the CPU port, digest messages, idle table entries.
    pub packet_in: mpsc::Receiver<Event>,
    /// The thread that runs the packet loop.
    pub thread: JoinHandle<()>,
}

/// Starts the packet loop without a program. `ports`: number and back end of each port.
pub fn start(mut ports: Vec<(u32, Box<dyn Frames>)>, cpu_port: u32) -> io::Result<Driver> {
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
    let wake = Arc::new(EventFd::from_flags(
        EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC,
    )?);
    let handle = Handle::new(command_sender, Arc::clone(&wake));
    let mut waiter = Waiter::new(wake, &ports);
    let origin = Instant::now();
    let engine = Engine::new(ports, cpu_port, packet_in_sender, origin);
    let mut core = Core::new(engine, cpu_port, origin);
    let thread = std::thread::Builder::new()
        .name("packets".to_owned())
        .spawn(move || {
            // The default slack of 50 µs is longer than a recirculation.
            let _ = nix::sys::prctl::set_timerslack(1);
            let priority = priority::raise();
            core.set_priority(priority);
            waiter.set_priority(priority);
            run(&mut core, commands, waiter);
            core.close_ports();
        })?;
    Ok(Driver {
        handle,
        packet_in,
        thread,
    })
}

fn run(core: &mut Core, mut commands: mpsc::Receiver<Command>, mut waiter: Waiter) {
    // A command that works in steps and has not finished.
    let mut unfinished: Option<Command> = None;
    waiter.poll_ports(core.engine());
    loop {
        let frames = core.engine().turn();
        core.report_failed_ports();
        match run_commands(core, &mut commands, &mut unfinished) {
            Flow::End => return,
            Flow::More => {
                waiter.poll_ports(core.engine());
                continue;
            }
            Flow::Idle => {}
        }
        if let Some(sleep) = waiter.after(core.engine(), frames, || !commands.is_empty()) {
            waiter.sleep(core.engine(), sleep);
        }
    }
}

enum Flow {
    /// The packet loop ends because the switch stops.
    End,
    /// Further commands wait; they run after the next batch of frames.
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
                // No further command can come: the owner has dropped its handle.
                Err(mpsc::error::TryRecvError::Disconnected) => return Flow::End,
            },
        };
        let started = *started.get_or_insert_with(Instant::now);
        if !command(core) {
            *unfinished = Some(command);
            return Flow::More;
        }
        // Packets that it sends (packet-out) do not wait for the end of the iteration.
        core.engine().transmit();
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
