//! Tells who runs a scenario with which sequence numbers RDMA connections begin, before they do: so its switches can count from
//! there. Where nobody asks, nothing happens.

use std::io::{self, BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, UnixAddr};
use rdma::{Provider, provider};
use serde::{Deserialize, Serialize};

/// Names the socket of who wants to know.
pub const VARIABLE: &str = "WEIR_CONNECTIONS";
/// The answer of who knows it now.
pub const ACCEPTED: &str = "ok";
/// Until then it is answered: a run looks every few milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);
/// Who has not answered is left alone for so long.
const PAUSE: Duration = Duration::from_secs(10);
/// Between two looks whether somebody takes calls.
const LOOK: Duration = Duration::from_millis(5);

/// A connection, as one end sees it: a line of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opened {
    /// This end.
    pub local: Ipv4Addr,
    /// The other.
    pub peer: Ipv4Addr,
    /// The queue pair here.
    pub qp: u32,
    /// The queue pair there.
    pub peer_qp: u32,
    /// The sequence number of the first packet from here.
    pub psn: u32,
    /// The same from there.
    pub peer_psn: u32,
}

/// Has a provider tell of its connections, if somebody wants to know. Who does not answer is told of on the standard error, is not
/// asked again for a while, and keeps nobody from connecting.
pub fn announce(provider: &mut dyn Provider) {
    let Some(socket) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
        return;
    };
    let mut deaf_until = None;
    provider.announce(Box::new(move |connects: &provider::Opened| {
        if deaf_until.is_some_and(|until| Instant::now() < until) {
            return;
        }
        let opened = Opened {
            local: connects.local,
            peer: connects.peer,
            qp: connects.qpn.bits(),
            peer_qp: connects.peer_qpn.bits(),
            psn: connects.psn.bits(),
            peer_psn: connects.peer_psn.bits(),
        };
        if let Err(error) = tell(&socket, &opened) {
            deaf_until = Some(Instant::now() + PAUSE);
            eprintln!(
                "weir-agent: {VARIABLE}={}: {error}: sequence numbers of connections count from the first packet that is seen",
                socket.display()
            );
        }
    }));
}

fn tell(path: &Path, opened: &Opened) -> io::Result<()> {
    let mut stream = call(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(format!("{}\n", serde_json::to_string(opened)?).as_bytes())?;
    let mut answer = String::new();
    let read = BufReader::new(stream).read_line(&mut answer);
    match read {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(silent()),
        read => read?,
    };
    match answer.trim_end() {
        ACCEPTED => Ok(()),
        "" => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
        other => Err(io::Error::other(other.to_owned())),
    }
}

/// Calls who listens there. The system would wait without end while too many wait to be taken.
fn call(path: &Path) -> io::Result<UnixStream> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket::socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    let address = UnixAddr::new(path)?;
    let since = Instant::now();
    loop {
        match socket::connect(socket.as_raw_fd(), &address) {
            Ok(()) => break,
            Err(Errno::EAGAIN) if since.elapsed() < PATIENCE => std::thread::sleep(LOOK),
            Err(Errno::EAGAIN) => return Err(silent()),
            Err(errno) => return Err(errno.into()),
        }
    }
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

fn silent() -> io::Error {
    let told = format!("no answer within {} s", PATIENCE.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    const OPENED: Opened = Opened {
        local: Ipv4Addr::new(10, 0, 0, 1),
        peer: Ipv4Addr::new(10, 0, 0, 2),
        qp: 17,
        peer_qp: 18,
        psn: 5,
        peer_psn: 6,
    };

    /// What `tell` says to who answers so, and what it was told.
    fn told(answer: &'static str) -> (io::Result<()>, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let there = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            (&stream).write_all(answer.as_bytes()).unwrap();
            line
        });
        (tell(&path, &OPENED), there.join().unwrap())
    }

    #[test]
    fn an_answer_is_waited_for() {
        let (result, line) = told("ok\n");
        result.unwrap();
        assert_eq!(serde_json::from_str::<Opened>(&line).unwrap(), OPENED);
        let error = told("no room\n").0.unwrap_err();
        assert_eq!(error.to_string(), "no room");
        assert_eq!(told("").0.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn who_does_not_answer_is_not_waited_for_without_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _silent = UnixListener::bind(&path).unwrap();
        let error = tell(&path, &OPENED).unwrap_err();
        assert_eq!(error.to_string(), "no answer within 2 s");
    }

    #[test]
    fn nobody_there_is_an_error() {
        let error = tell(Path::new("/nonexistent/socket"), &OPENED).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
