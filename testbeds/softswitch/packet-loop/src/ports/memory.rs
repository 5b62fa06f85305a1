//! A link in memory between the switch and a host in the same process.

use super::{Frames, MAX_FRAME, Received, Sink};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::time::Duration;

/// Maximum number of frames in flight per direction, as in a veth pair's default queue.
pub const QUEUE: usize = 1000;

/// The switch's end of a link in memory, as a port.
#[derive(Debug)]
pub struct MemoryPort {
    name: String,
    incoming: Receiver<Vec<u8>>,
    outgoing: SyncSender<Vec<u8>>,
    arrived: Arc<EventFd>,
    lost: usize,
}

/// The host's end of a link in memory.
#[derive(Debug)]
pub struct MemoryLink {
    incoming: Receiver<Vec<u8>>,
    outgoing: SyncSender<Vec<u8>>,
    arrived: Arc<EventFd>,
}

/// Creates a link: the switch's end, which is a port with this name, and the host's end.
pub fn link(name: &str) -> io::Result<(MemoryPort, MemoryLink)> {
    let (to_switch, from_host) = sync_channel(QUEUE);
    let (to_host, from_switch) = sync_channel(QUEUE);
    let arrived = Arc::new(EventFd::from_flags(
        EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC,
    )?);
    let port = MemoryPort {
        name: name.to_owned(),
        incoming: from_host,
        outgoing: to_host,
        arrived: Arc::clone(&arrived),
        lost: 0,
    };
    Ok((
        port,
        MemoryLink {
            incoming: from_switch,
            outgoing: to_switch,
            arrived,
        },
    ))
}

impl Frames for MemoryPort {
    fn receive(&mut self, budget: usize, sink: &mut dyn Sink) -> io::Result<Received> {
        // Cleared before polling: a frame that arrives afterwards sets it again. EAGAIN means that it was not set.
        let _ = self.arrived.read();
        let mut received = Received::default();
        while received.frames + received.errors < budget {
            match self.incoming.try_recv() {
                Ok(frame) if frame.len() > MAX_FRAME => received.errors += 1,
                Ok(frame) => {
                    received.frames += 1;
                    sink.arrived();
                    sink.frame(&frame, 0);
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return Ok(received),
            }
        }
        // There may be more frames, and the event has been cleared.
        self.arrived.write(1)?;
        Ok(received)
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        match self.outgoing.try_send(frame.to_vec()) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.lost += 1,
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<usize> {
        Ok(std::mem::take(&mut self.lost))
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.arrived.as_fd())
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl MemoryLink {
    /// Sends a frame to the switch; false if the link is full or the switch has stopped.
    pub fn send(&self, frame: &[u8]) -> bool {
        self.outgoing.try_send(frame.to_vec()).is_ok() && self.arrived.write(1).is_ok()
    }

    /// The next frame from the switch; `None` if none comes within `timeout`, or if the switch has stopped.
    pub fn receive(&self, timeout: Duration) -> Option<Vec<u8>> {
        self.incoming.recv_timeout(timeout).ok()
    }

    /// Takes the next frame from the switch without waiting; `None` if none has arrived.
    pub fn try_receive(&self) -> Option<Vec<u8>> {
        self.incoming.try_recv().ok()
    }
}
