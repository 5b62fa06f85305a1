//! Ethernet frames of one UDP port: how they come and go.

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

/// The longest frame that is received.
pub const FRAME_LIMIT: usize = 65_536;

/// A way for frames to come and go.
pub trait Frames {
    /// Takes a frame for sending; may keep it until [`flush`](Self::flush). A frame that a full queue refuses is lost, as on any
    /// wire; that is no error.
    fn send(&mut self, frame: &[u8]) -> io::Result<()>;

    /// Where the next frame can be written if it has at most so many bytes, instead of being copied there; it is then
    /// [`written`](Self::written). `None`: it has to be [sent](Self::send).
    fn room(&mut self, _len: usize) -> io::Result<Option<&mut [u8]>> {
        Ok(None)
    }

    /// Takes the frame of this length that is in the [room](Self::room) that was asked for last for sending.
    ///
    /// # Panics
    /// If there was none.
    fn written(&mut self, _len: usize) {
        unreachable!("no room was given");
    }

    /// Sends what was kept.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Waits for a frame, but not longer than `timeout`, and gives it; `None` if none came.
    /// An interruption by a signal ends the wait early.
    fn receive(&mut self, timeout: Duration) -> io::Result<Option<&[u8]>>;

    /// Frames that the system has dropped since the last call, because too many waited to be received; `None` if it does not
    /// tell.
    fn overflow(&mut self) -> Option<u64> {
        None
    }

    /// Frames that were not sent so far, because the link took no more, or none at all.
    fn unsent(&self) -> u64 {
        0
    }

    /// Whether so many frames that were handed over still wait for the link; `false` where nobody knows.
    fn has_waiting(&self, _frames: usize) -> bool {
        false
    }

    /// Why no frame passes now; `None` where the way tells nothing of the kind.
    fn fault(&self) -> Option<LinkFault> {
        None
    }

    /// Becomes readable when frames have come; `None` where there is nothing to wait for.
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The descriptors that keep it open, for a process that is forked to close.
    fn descriptors(&self) -> Vec<RawFd> {
        Vec::new()
    }

    /// Hands over frames that have come, up to `most`, and says how many; does not wait.
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

/// Whatever holds frames sends and takes them.
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

/// Waits until one of some descriptors can be read, not longer than `timeout`; says whether one can. An interruption counts as
/// "none".
///
/// # Errors
/// The system's.
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
