//! Transmission of messages: each is one datagram of a socket that preserves order and boundaries (`SOCK_SEQPACKET`).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::message::Answer;

/// Maximum length of a message in bytes: enough for the addresses of 1,024 ranks.
const LIMIT: usize = 96 << 10;
/// Maximum number of descriptors that a message may pass: the kernel's SCM_MAX_FD.
const MOST_FDS: usize = 253;
/// A connection between daemon and client on which several threads may send messages.
pub struct Socket(OwnedFd, Mutex<()>);

impl Socket {
    /// Wraps the connection of a client.
    pub fn new(socket: OwnedFd) -> Arc<Socket> {
        Arc::new(Socket(socket, Mutex::new(())))
    }

    /// Sends a message to the client; messages of several threads do not mix.
    pub fn send(&self, answer: &Answer) -> io::Result<()> {
        let _one = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        send(self.0.as_fd(), answer, None)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sends a message, and passes a descriptor if there is one.
pub fn send(
    socket: BorrowedFd<'_>,
    message: &impl Serialize,
    with: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    if text.len() > LIMIT {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let fds: Vec<BorrowedFd> = with.into_iter().collect();
    send_with(socket, &text, &fds)
}

fn send_with(socket: BorrowedFd<'_>, text: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let parts = [IoSlice::new(text)];
    loop {
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        match sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Waits for a message; returns `None` at the end of the connection. An invalid message is an error.
pub fn receive<T: DeserializeOwned>(
    socket: BorrowedFd<'_>,
) -> io::Result<Option<(T, Option<OwnedFd>)>> {
    let mut buffer = vec![0; LIMIT];
    // Space for as many descriptors as a message may pass: the kernel would open further ones, which nobody could close.
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let (length, flags) = loop {
        let mut parts = [IoSliceMut::new(&mut buffer)];
        match recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Ok(came) => break (came.bytes, came.flags),
            // Reported once if the peer has closed without reading everything; its own messages are still to be read.
            Err(Errno::INTR | Errno::CONNRESET) => {}
            Err(errno) => return Err(errno.into()),
        }
    };
    let rights = control.drain().filter_map(|came| match came {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    let mut fds: Vec<OwnedFd> = rights.flatten().collect();
    if length == 0 {
        return Ok(None);
    }
    let wrong = if flags.contains(ReturnFlags::CTRUNC) {
        "no capacity for a message's descriptors: too many files are open here"
    } else if flags.contains(ReturnFlags::TRUNC) {
        "a message exceeds the maximum length"
    } else if fds.len() > 1 {
        "a message passes more than one descriptor"
    } else {
        let message = serde_json::from_slice(&buffer[..length])?;
        return Ok(Some((message, fds.pop())));
    };
    Err(io::Error::new(io::ErrorKind::InvalidData, wrong))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::*;

    /// For a separate process, since other tests would have no free descriptors either.
    const ALONE: &str = "WEIR_TEST_DESCRIPTORS";

    #[test]
    fn excess_descriptors_are_closed() {
        let name = "serve::socket::tests::excess_descriptors_are_closed";
        if std::env::var_os(ALONE).is_none() {
            let mut alone = Command::new(std::env::current_exe().unwrap());
            alone.args(["--exact", name, "--nocapture"]).env(ALONE, "1");
            let output = alone.output().unwrap();
            let told = String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success() && told.contains("1 passed"),
                "{output:?}"
            );
            return;
        }
        let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let flags = SockFlag::SOCK_CLOEXEC;
        let pair = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags);
        let (one, other) = pair.unwrap();
        let many = [one.as_fd(); 20];
        let limit = getrlimit(Resource::Nofile);
        let before = open();
        let few = Rlimit {
            current: Some(before as u64 + 4),
            ..limit
        };
        for (limit, told) in [
            (few, "too many files are open here"),
            (limit, "more than one descriptor"),
        ] {
            setrlimit(Resource::Nofile, limit).unwrap();
            for _ in 0..10 {
                send_with(one.as_fd(), b"1", &many).unwrap();
                let error = receive::<u8>(other.as_fd()).unwrap_err();
                assert!(error.to_string().contains(told), "{error}");
                assert_eq!(open(), before);
            }
        }
        send(one.as_fd(), &1, Some(one.as_fd())).unwrap();
        let (said, with) = receive::<u8>(other.as_fd()).unwrap().unwrap();
        assert_eq!((said, with.is_some(), open()), (1, true, before + 1));
    }
}
