//! A port over a socket that preserves frame boundaries (`SOCK_SEQPACKET`, `SOCK_DGRAM`) and is inherited from the parent
//! process: a link between processes for machines that refuse network namespaces.

use super::{MAX_FRAME, PortIo, Received, Sink};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, send};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// One end of the link, as a port of the switch.
pub struct Socket {
    name: String,
    socket: OwnedFd,
    buffer: Vec<u8>,
    lost: usize,
}

impl Socket {
    /// Takes the end of the link that this process inherited as file descriptor `number`.
    pub fn inherited(number: RawFd) -> io::Result<Self> {
        let socket = rings::inherited(number)?;
        Ok(Self::new(socket, format!("fd:{number}")))
    }

    fn new(socket: OwnedFd, name: String) -> Self {
        Self {
            name,
            socket,
            buffer: vec![0; MAX_FRAME + 1],
            lost: 0,
        }
    }
}

impl PortIo for Socket {
    fn receive(&mut self, budget: usize, sink: &mut dyn Sink) -> io::Result<Received> {
        let mut received = Received::default();
        while received.frames + received.errors < budget {
            match recv(
                self.socket.as_raw_fd(),
                &mut self.buffer,
                MsgFlags::MSG_DONTWAIT,
            ) {
                Ok(0) | Err(Errno::EAGAIN) => break,
                Ok(length) if length > MAX_FRAME => received.errors += 1,
                Ok(length) => {
                    received.frames += 1;
                    sink.arrived();
                    sink.frame(&self.buffer[..length], 0);
                }
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(received)
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        loop {
            match send(self.socket.as_raw_fd(), frame, flags) {
                Ok(_) => return Ok(()),
                Err(Errno::EINTR) => {}
                // The link is full or unplugged at the other end: the frame is lost, as on any link.
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

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn name(&self) -> &str {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

    #[test]
    fn frames_keep_their_boundaries_and_an_unplugged_cable_only_loses() -> io::Result<()> {
        let (a, b) = socketpair(
            AddressFamily::Unix,
            SockType::SeqPacket,
            None,
            SockFlag::SOCK_CLOEXEC,
        )?;
        let (mut a, mut b) = (Socket::new(a, "a".into()), Socket::new(b, "b".into()));
        a.send(&[1; 60])?;
        a.send(&[2; 1500])?;
        let mut lengths = Vec::new();
        assert_eq!(
            b.receive(8, &mut |frame: &[u8]| lengths.push((frame[0], frame.len())))?
                .frames,
            2
        );
        assert_eq!(lengths, [(1, 60), (2, 1500)]);
        drop(b);
        a.send(&[3; 60])?;
        assert_eq!(a.flush()?, 1);
        assert!(Socket::inherited(0).is_err());
        Ok(())
    }
}
