//! Frames in and out of a link: the trait [`Frames`] and its back ends. Ports of the embedded switch and agents use it.
//!
//! Linux carries up to 64 frames of one flow as one packet (segmentation offload). Back ends take such bundles apart and join
//! outgoing frames to bundles, so users of the trait see single frames.
//!
//! | file | contents |
//! |---|---|
//! | `open.rs`, `options.rs` | opening of an interface, the words of `--io`, and when bundles are sent |
//! | `packet.rs` | an interface through a packet socket (packet(7)) |
//! | `rx_ring.rs`, `slots.rs` | receiving through memory shared with the kernel |
//! | `calls.rs` | receiving by system calls |
//! | `transmit.rs` | sending, in bundles where the other end takes them |
//! | `limits.rs` | how long a bundle may be for an interface |
//! | `bundle/` | the rules by which bundles are cut and joined |
//! | `vlan.rs` | VLAN tags that the kernel has taken out |
//! | `pnet.rs` | an interface through the crate pnet |
//! | `cable.rs` | a socket pair in place of a link |

pub mod bundle;
mod cable;
mod calls;
mod ecn;
mod inherited;
mod intake;
mod limits;
mod link;
mod open;
mod options;
mod packet;
mod pnet;
mod rx_ring;
mod side_by_side;
mod slots;
mod socket;
mod transmit;
mod udp_filter;
pub mod vlan;

use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};

pub use cable::{Cable, WhenFull};
pub use inherited::inherited;
pub use link::{Link, LinkFault};
pub use open::{Opened, open};
pub use options::{Io, MOST_MARK_AT, Options, Sends};
pub use packet::PacketFrames;
pub use pnet::PnetFrames;
pub use side_by_side::side_by_side;
pub use socket::Hears;
pub use udp_filter::filter_udp;

/// Length of the largest frame that is sent or received, in bytes without FCS: 9 KiB of payload, Ethernet header, two VLAN tags.
pub const MAX_FRAME: usize = 9216 + 14 + 8;

/// Result of a receive call: how many frames it passed to the sink, and how many were lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Received {
    /// Number of frames passed to the sink.
    pub frames: usize,
    /// Number of frames lost: the kernel cut them off, they are larger than [`MAX_FRAME`], or they were in a bundle that is
    /// malformed.
    pub errors: usize,
}

/// Receiver of the frames that arrive.
pub trait Sink {
    /// Tells the sink that all frames until the next call have arrived by now. It is called before the first frame.
    fn arrived(&mut self);
    /// Takes a frame, without FCS. At the last [`Self::arrived`] it had waited for `waited_ns`; 0 if that is unknown.
    fn frame(&mut self, frame: &[u8], waited_ns: u64);
}

/// Sink for callers that need no arrival times.
impl<F: FnMut(&[u8])> Sink for F {
    fn arrived(&mut self) {}

    fn frame(&mut self, frame: &[u8], _waited_ns: u64) {
        self(frame);
    }
}

/// One end of a link: it receives and sends Ethernet frames, and never waits.
pub trait Frames: Send {
    /// Passes up to `budget` frames that have arrived to `sink`.
    fn receive(&mut self, budget: usize, sink: &mut dyn Sink) -> io::Result<Received>;

    /// Takes a frame for sending, and may keep it until [`Self::flush`]. A frame that a full queue refuses is lost, as on any
    /// wire; that is not an error.
    fn send(&mut self, frame: &[u8]) -> io::Result<()>;

    /// A place to write the next frame, of at most `_len` bytes, which saves a copy; [`Self::written`] completes it. `None` if the
    /// back end has none: use [`Self::send`].
    fn room(&mut self, _len: usize) -> io::Result<Option<&mut [u8]>> {
        Ok(None)
    }

    /// Takes the frame of this length that was written to the place from [`Self::room`], as [`Self::send`] does.
    ///
    /// # Panics
    /// There was no such place, or it is shorter.
    fn written(&mut self, _len: usize) -> io::Result<()> {
        unreachable!("no room was given")
    }

    /// Sends the frames that [`Self::send`] kept; returns the number of frames lost since the last call because the link was
    /// full or down.
    fn flush(&mut self) -> io::Result<usize>;

    /// Time at which the link must next be received from and flushed even without traffic; `None`: at no certain time.
    fn due(&self) -> Option<Instant> {
        None
    }

    /// Whether a received frame waits; `None` if only a system call can tell.
    fn has_arrived(&self) -> Option<bool> {
        None
    }

    /// Number of frames lost since the last call because too many waited for [`Self::receive`]; `None` if unknown. A bundle that the
    /// kernel has dropped without a trace counts as one.
    fn overflow(&mut self) -> Option<u64> {
        None
    }

    /// Number of frames marked (ECN) since the last call because the link's queue was long; 0 where no queue is known.
    fn marked(&mut self) -> u64 {
        0
    }

    /// Number of sent frames that still wait for the link, an estimate; 0 if unknown. It takes a system call: ask once per batch.
    fn waiting(&self) -> usize {
        0
    }

    /// Descriptor that becomes readable when frames have arrived; `None`: there is none to wait for (a file).
    fn readable(&self) -> Option<BorrowedFd<'_>>;

    /// Index of the interface, without whose carrier the link is down; `None`: the link is always up.
    fn interface(&self) -> Option<u32> {
        None
    }

    /// Reason why no frame passes now; `None` if frames pass, or if the back end cannot tell.
    fn fault(&self) -> Option<LinkFault> {
        None
    }

    /// Descriptors that keep the link open, so that a forked process can close its copies.
    fn descriptors(&self) -> Vec<RawFd> {
        Vec::new()
    }

    /// Sends these two frames as one bundle, if it is not known whether the other end takes bundles. If it does, it answers with a
    /// bundle, and more follow. Returns whether the frames were sent.
    fn ask_for_bundles(&mut self, _frames: [&[u8]; 2]) -> io::Result<bool> {
        Ok(false)
    }

    /// Name of the link for users: its interface or file.
    fn name(&self) -> &str;
}

/// Implements [`Frames`] for a type that holds a back end, by delegation to it.
macro_rules! passed_on {
    ($($holder:ty),*) => {$(
        impl<F: Frames + ?Sized> Frames for $holder {
            fn receive(&mut self, budget: usize, sink: &mut dyn Sink) -> io::Result<Received> {
                (**self).receive(budget, sink)
            }

            fn send(&mut self, frame: &[u8]) -> io::Result<()> {
                (**self).send(frame)
            }

            fn room(&mut self, len: usize) -> io::Result<Option<&mut [u8]>> {
                (**self).room(len)
            }

            fn written(&mut self, len: usize) -> io::Result<()> {
                (**self).written(len)
            }

            fn flush(&mut self) -> io::Result<usize> {
                (**self).flush()
            }

            fn due(&self) -> Option<Instant> {
                (**self).due()
            }

            fn has_arrived(&self) -> Option<bool> {
                (**self).has_arrived()
            }

            fn overflow(&mut self) -> Option<u64> {
                (**self).overflow()
            }

            fn marked(&mut self) -> u64 {
                (**self).marked()
            }

            fn waiting(&self) -> usize {
                (**self).waiting()
            }

            fn readable(&self) -> Option<BorrowedFd<'_>> {
                (**self).readable()
            }

            fn interface(&self) -> Option<u32> {
                (**self).interface()
            }

            fn fault(&self) -> Option<LinkFault> {
                (**self).fault()
            }

            fn descriptors(&self) -> Vec<RawFd> {
                (**self).descriptors()
            }

            fn ask_for_bundles(&mut self, frames: [&[u8]; 2]) -> io::Result<bool> {
                (**self).ask_for_bundles(frames)
            }

            fn name(&self) -> &str {
                (**self).name()
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

/// Like [`Frames::receive`], but if no frame has arrived, waits for one for at most `timeout`.
///
/// # Errors
/// Errors of the back end, and of poll(2).
pub fn receive_within(
    frames: &mut (impl Frames + ?Sized),
    timeout: Duration,
    budget: usize,
    sink: &mut dyn Sink,
) -> io::Result<Received> {
    let received = frames.receive(budget, sink)?;
    if received != Received::default() || timeout.is_zero() {
        return Ok(received);
    }
    match wait_readable(frames.readable(), timeout)? {
        true => frames.receive(budget, sink),
        false => Ok(received),
    }
}
