//! Transmission and reception of Ethernet frames with one UDP port.

pub mod bundle;
mod cable;
mod ethernet;
mod interface;
mod link;
mod ring;

use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};

pub use cable::CableFrames;
pub use ethernet::EthernetFrames;
pub use interface::{InterfaceFrames, Io};
pub use link::{Link, LinkFault};
pub use ring::RingFrames;

/// Maximum length of a received frame in bytes.
pub const FRAME_LIMIT: usize = 65_536;

/// A transport that sends and receives Ethernet frames.
pub trait Frames {
    /// Queues a frame, which the next [`flush`](Self::flush) transmits at the latest. A frame that a full queue refuses is
    /// lost, as on any wire; that is not an error.
    fn send(&mut self, frame: &[u8]) -> io::Result<()>;

    /// A buffer for the next frame, if it has at most `_len` bytes, which saves a copy; [`written`](Self::written) completes
    /// it. `None` if the transport has none: use [`send`](Self::send).
    fn room(&mut self, _len: usize) -> io::Result<Option<&mut [u8]>> {
        Ok(None)
    }

    /// Queues the frame of this length in the buffer that [`room`](Self::room) returned last.
    ///
    /// # Panics
    /// If there was no such buffer.
    fn written(&mut self, _len: usize) {
        unreachable!("no room was given");
    }

    /// Transmits the queued frames.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Waits for a frame for at most `timeout`, and returns it, or `None` if none came. A signal ends the wait early.
    fn receive(&mut self, timeout: Duration) -> io::Result<Option<&[u8]>>;

    /// Number of frames that the system dropped since the last call because the receive queue was full; `None` if unknown.
    fn overflow(&mut self) -> Option<u64> {
        None
    }

    /// Number of frames so far that were discarded instead of sent, because the link was full or down.
    fn unsent(&self) -> u64 {
        0
    }

    /// Whether at least `_frames` queued frames still wait for the link; `false` if unknown.
    fn has_waiting(&self, _frames: usize) -> bool {
        false
    }

    /// Reason why no frame passes now; `None` if frames pass, or if the transport cannot tell.
    fn fault(&self) -> Option<LinkFault> {
        None
    }

    /// Descriptor that becomes readable when frames arrive; `None` if the transport has no such descriptor.
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Descriptors that keep the transport open, so that a forked process can close its copies.
    fn descriptors(&self) -> Vec<RawFd> {
        Vec::new()
    }

    /// Passes up to `most` frames that have already arrived to `take`, and returns their number; does not wait for frames.
    fn receive_batch(&mut self, most: usize, take: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        for taken in 0..most {
            match self.receive(Duration::ZERO)? {
                Some(frame) => take(frame),
                None => return Ok(taken),
            }
        }
        Ok(most)
    }
}

/// Implements [`Frames`] for a type that holds a transport, by delegation to it.
macro_rules! passed_on {
    ($($holder:ty),*) => {$(
        impl<F: Frames + ?Sized> Frames for $holder {
            fn send(&mut self, frame: &[u8]) -> io::Result<()> {
                (**self).send(frame)
            }

            fn room(&mut self, len: usize) -> io::Result<Option<&mut [u8]>> {
                (**self).room(len)
            }

            fn written(&mut self, len: usize) {
                (**self).written(len);
            }

            fn flush(&mut self) -> io::Result<()> {
                (**self).flush()
            }

            fn receive(&mut self, timeout: Duration) -> io::Result<Option<&[u8]>> {
                (**self).receive(timeout)
            }

            fn overflow(&mut self) -> Option<u64> {
                (**self).overflow()
            }

            fn unsent(&self) -> u64 {
                (**self).unsent()
            }

            fn has_waiting(&self, frames: usize) -> bool {
                (**self).has_waiting(frames)
            }

            fn fault(&self) -> Option<LinkFault> {
                (**self).fault()
            }

            fn readable(&self) -> Option<BorrowedFd<'_>> {
                (**self).readable()
            }

            fn descriptors(&self) -> Vec<RawFd> {
                (**self).descriptors()
            }

            fn receive_batch(&mut self, most: usize, take: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
                (**self).receive_batch(most, take)
            }
        }
    )*};
}

passed_on!(Box<F>, &mut F);

/// Waits for at most `timeout` until one of the descriptors is readable, and returns whether one is. If a signal interrupts the
/// wait, it returns `false`.
///
/// # Errors
/// Errors of poll(2).
pub fn wait_readable<'a>(
    descriptors: impl IntoIterator<Item = BorrowedFd<'a>>,
    timeout: Duration,
) -> io::Result<bool> {
    let mut sources: Vec<PollFd<'_>> = descriptors
        .into_iter()
        .map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN))
        .collect();
    match ppoll(&mut sources, Some(timeout.into()), None) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}
