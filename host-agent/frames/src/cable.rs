//! Frames over a socket that preserves message boundaries (`SOCK_SEQPACKET`, `SOCK_DGRAM`), as if over a cable in memory.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, send};

use crate::{Frames, MAX_FRAME, Received, Sink, inherited};

/// Behaviour of a cable's end when the cable is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// Waits until the other end has taken a frame, as a wire takes time: for agents.
    Wait,
    /// Loses the frame, as a full queue does: for a switch, which never waits.
    Lose,
}

/// One end of a cable in memory.
#[derive(Debug)]
pub struct Cable {
    name: String,
    socket: OwnedFd,
    when_full: WhenFull,
    buffer: Vec<u8>,
    lost: usize,
}

impl Cable {
    /// Wraps a socket as one end of a cable with this name.
    pub fn new(socket: OwnedFd, name: &str, when_full: WhenFull) -> Cable {
        Cable {
            name: name.to_owned(),
            socket,
            when_full,
            buffer: vec![0; MAX_FRAME + 1],
            lost: 0,
        }
    }

    /// Opens the end of a cable that this process inherited from its parent under this descriptor number.
    pub fn inherited(number: RawFd, when_full: WhenFull) -> io::Result<Cable> {
        let socket = inherited(number)?;
        Ok(Cable::new(socket, &format!("fd:{number}"), when_full))
    }
}

impl Frames for Cable {
    fn receive(&mut self, budget: usize, sink: &mut dyn Sink) -> io::Result<Received> {
        let mut received = Received::default();
        let mut is_reset = false;
        while received.frames + received.errors < budget {
            match recv(
                self.socket.as_raw_fd(),
                &mut self.buffer,
                MsgFlags::MSG_DONTWAIT,
            ) {
                Ok(0) if received == Received::default() && self.when_full == WhenFull::Wait => {
                    let unplugged = "the cable is unplugged";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, unplugged));
                }
                Ok(0) | Err(Errno::EAGAIN) => break,
                Ok(length) if length > MAX_FRAME => received.errors += 1,
                Ok(length) => {
                    received.frames += 1;
                    sink.arrived();
                    sink.frame(&self.buffer[..length], 0);
                }
                // The peer left frames unread. The error comes once, before the frames that the peer sent.
                Err(Errno::ECONNRESET) if !is_reset => is_reset = true,
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(received)
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        let flags = match self.when_full {
            WhenFull::Wait => MsgFlags::MSG_NOSIGNAL,
            WhenFull::Lose => MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT,
        };
        loop {
            match send(self.socket.as_raw_fd(), frame, flags) {
                Ok(_) => return Ok(()),
                Err(Errno::EINTR) => {}
                // Frames that the peer sent before may still wait here, so only receiving reports an unplugged cable.
                Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::EPIPE | Errno::ECONNRESET) => {
                    self.lost += 1;
                    return Ok(());
                }
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<usize> {
        Ok(std::mem::take(&mut self.lost))
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn descriptors(&self) -> Vec<RawFd> {
        vec![self.socket.as_raw_fd()]
    }

    fn name(&self) -> &str {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

    use super::*;
    use crate::receive_within;

    fn cable(when_full: [WhenFull; 2]) -> [Cable; 2] {
        let kind = SockType::SeqPacket;
        let (a, b) = socketpair(AddressFamily::Unix, kind, None, SockFlag::SOCK_CLOEXEC).unwrap();
        [
            Cable::new(a, "a", when_full[0]),
            Cable::new(b, "b", when_full[1]),
        ]
    }

    fn next(end: &mut Cable) -> io::Result<Option<Vec<u8>>> {
        let mut came = None;
        let mut take = |frame: &[u8]| came = Some(frame.to_vec());
        receive_within(end, Duration::from_millis(100), 1, &mut take)?;
        Ok(came)
    }

    #[test]
    fn frames_arrive_whole_and_an_unplugged_cable_is_an_error() {
        let [mut a, mut b] = cable([WhenFull::Wait; 2]);
        a.send(b"one").unwrap();
        a.send(b"two!").unwrap();
        assert_eq!(next(&mut b).unwrap().unwrap(), b"one");
        assert_eq!(next(&mut b).unwrap().unwrap(), b"two!");
        assert_eq!(next(&mut b).unwrap(), None);
        a.send(b"three").unwrap();
        b.send(b"unread").unwrap();
        drop(a);
        b.send(b"lost").unwrap();
        assert_eq!(b.flush().unwrap(), 1);
        assert_eq!(next(&mut b).unwrap().unwrap(), b"three");
        let error = next(&mut b).unwrap_err();
        assert_eq!(error.to_string(), "the cable is unplugged");
    }

    #[test]
    fn a_switch_loses_what_a_full_cable_refuses_and_outlives_its_peer() {
        let [mut a, mut b] = cable([WhenFull::Lose, WhenFull::Wait]);
        for _ in 0..10_000 {
            a.send(&[7; 1000]).unwrap();
        }
        let lost = a.flush().unwrap();
        assert!(lost > 0);
        let mut came = 0;
        while next(&mut b).unwrap().is_some() {
            came += 1;
        }
        assert_eq!(came + lost, 10_000);
        b.send(&[1; MAX_FRAME]).unwrap();
        b.send(&[2; MAX_FRAME + 1]).unwrap();
        let mut lengths = Vec::new();
        let received = a.receive(8, &mut |frame: &[u8]| lengths.push(frame.len()));
        let received = received.unwrap();
        assert_eq!((received.frames, received.errors), (1, 1), "too long");
        assert_eq!(lengths, [MAX_FRAME]);
        drop(b);
        assert_eq!(next(&mut a).unwrap(), None);
    }

    #[test]
    fn an_invalid_descriptor_is_refused() {
        assert!(Cable::inherited(999_999, WhenFull::Wait).is_err());
        assert!(Cable::inherited(0, WhenFull::Wait).is_err());
    }
}
