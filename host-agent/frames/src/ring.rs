//! Frames over an Ethernet interface by rings shared with the kernel: one system call per batch to send, none to receive.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::time::Duration;

use rings::{Hears, PortIo, Ring, RingOptions};

use crate::ethernet::{Quiet, quiet};
use crate::{FRAME_LIMIT, Frames, Link, LinkFault, wait_readable};

/// An Ethernet interface, whose frames pass through rings shared with the kernel.
pub struct RingFrames {
    ring: Ring,
    /// Buffer for the single frame that `receive` returns.
    buffer: Vec<u8>,
    link: Link,
    unsent: u64,
    quiet: Quiet,
}

impl RingFrames {
    /// Opens an interface of the current network namespace, for UDP frames with this destination port.
    pub fn open(interface: &str, udp_port: u16) -> io::Result<RingFrames> {
        let options = RingOptions {
            hears: Hears::Udp(udp_port),
            ..RingOptions::default()
        };
        Ok(RingFrames {
            ring: Ring::open(interface, options)?,
            buffer: Vec::new(),
            link: Link::from_name(interface)?,
            unsent: 0,
            quiet: quiet(udp_port),
        })
    }
}

impl AsFd for RingFrames {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

impl Frames for RingFrames {
    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.ring.send(frame)
    }

    fn room(&mut self, len: usize) -> io::Result<Option<&mut [u8]>> {
        self.ring.room(len)
    }

    fn written(&mut self, len: usize) {
        self.ring.written(len);
    }

    fn flush(&mut self) -> io::Result<()> {
        // Frames that the link does not take are lost, as on any wire.
        self.unsent += self.ring.flush()? as u64;
        Ok(())
    }

    fn has_waiting(&self, frames: usize) -> bool {
        self.ring.has_waiting(frames)
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }

    fn receive(&mut self, timeout: Duration) -> io::Result<Option<&[u8]>> {
        self.flush()?;
        for waited in [false, true] {
            let (buffer, mut came) = (&mut self.buffer, false);
            self.ring.receive(1, &mut |frame: &[u8]| {
                buffer.clear();
                buffer.extend_from_slice(&frame[..frame.len().min(FRAME_LIMIT)]);
                came = true;
            })?;
            if came {
                return Ok(Some(&self.buffer));
            }
            if waited || timeout.is_zero() || !wait_readable([self.ring.as_fd()], timeout)? {
                break;
            }
        }
        Ok(None)
    }

    fn overflow(&mut self) -> Option<u64> {
        Some(self.ring.overflow())
    }

    fn unsent(&self) -> u64 {
        self.unsent
    }

    fn descriptors(&self) -> Vec<RawFd> {
        let sockets = self.ring.descriptors();
        sockets.into_iter().chain(self.quiet.descriptor()).collect()
    }

    fn fault(&self) -> Option<LinkFault> {
        self.link.fault()
    }

    fn receive_batch(&mut self, most: usize, mut take: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        Ok(self.ring.receive(most, &mut take)?.frames)
    }
}
