//! Frames over a socket that preserves message boundaries (`SOCK_SEQPACKET`, `SOCK_DGRAM`), as if over a cable in memory.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, send};

use crate::{FRAME_LIMIT, Frames, wait_readable};

/// One end of a cable in memory.
#[derive(Debug)]
pub struct CableFrames {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl CableFrames {
    /// Wraps a socket as one end of a cable.
    pub fn new(socket: OwnedFd) -> CableFrames {
        CableFrames {
            socket,
            buffer: vec![0; FRAME_LIMIT],
        }
    }

    /// Opens the end of a cable that this process inherited from its parent under this descriptor number.
    pub fn inherited(number: RawFd) -> io::Result<CableFrames> {
        rings::inherited(number).map(CableFrames::new)
    }
}

fn unplugged() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the cable is unplugged")
}

impl AsFd for CableFrames {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Frames for CableFrames {
    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        loop {
            // Blocks while the cable is full: the peer is a thread that empties it, as a wire takes time, too.
            match send(self.socket.as_raw_fd(), frame, MsgFlags::MSG_NOSIGNAL) {
                Ok(_) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN | Errno::ENOBUFS) => return Ok(()),
                // The frame is lost, as on a wire. Frames that the peer sent before may still wait here, so only receiving
                // reports the end.
                Err(Errno::EPIPE | Errno::ECONNRESET) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }

    fn receive(&mut self, timeout: Duration) -> io::Result<Option<&[u8]>> {
        for waited in [false, true] {
            match recv(
                self.socket.as_raw_fd(),
                &mut self.buffer,
                MsgFlags::MSG_DONTWAIT,
            ) {
                Ok(0) => return Err(unplugged()),
                Ok(length) => return Ok(self.buffer.get(..length)),
                Err(Errno::EAGAIN) if !waited && !timeout.is_zero() => {
                    if !wait_readable([self.socket.as_fd()], timeout)? {
                        return Ok(None);
                    }
                }
                // The peer left frames unread. The error comes once, before the frames that the peer sent.
                Err(Errno::ECONNRESET) => {}
                Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

    use super::*;

    #[test]
    fn frames_arrive_whole_and_an_unplugged_cable_is_an_error() {
        let (a, b) = socketpair(
            AddressFamily::Unix,
            SockType::SeqPacket,
            None,
            SockFlag::SOCK_CLOEXEC,
        )
        .unwrap();
        let (mut a, mut b) = (CableFrames::new(a), CableFrames::new(b));
        a.send(b"one").unwrap();
        a.send(b"two!").unwrap();
        assert_eq!(
            b.receive(Duration::from_secs(1)).unwrap(),
            Some(&b"one"[..])
        );
        assert_eq!(b.receive(Duration::ZERO).unwrap(), Some(&b"two!"[..]));
        assert_eq!(b.receive(Duration::from_millis(1)).unwrap(), None);
        a.send(b"three").unwrap();
        b.send(b"unread").unwrap();
        drop(a);
        b.send(b"lost").unwrap();
        assert_eq!(next(&mut b).unwrap(), b"three");
        let error = next(&mut b).unwrap_err();
        assert_eq!(error.to_string(), "the cable is unplugged");
    }

    fn next(end: &mut CableFrames) -> io::Result<Vec<u8>> {
        for _ in 0..100 {
            if let Some(frame) = end.receive(Duration::from_millis(100))? {
                return Ok(frame.to_vec());
            }
        }
        panic!("nothing came");
    }

    #[test]
    fn an_invalid_descriptor_is_refused() {
        assert!(CableFrames::inherited(999_999).is_err());
        assert!(CableFrames::inherited(0).is_err());
    }
}
