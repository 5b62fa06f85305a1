//! Announces the initial PSNs (packet sequence numbers) of RDMA connections to a running scenario before they are used. Then
//! the scenario's switches can count a connection's packets from its first one. If no scenario runs, nothing happens.

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

/// Environment variable with the path of the Unix socket on which the running scenario accepts announcements.
pub const VARIABLE: &str = "WEIR_CONNECTIONS";
/// Reply of the running scenario once it has recorded an announced connection.
pub const ACCEPTED: &str = "ok";
/// Maximum wait for the reply to an announcement: the scenario's run polls every few milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time during which nothing is announced, after an announcement got no reply.
const PAUSE: Duration = Duration::from_secs(10);
/// Interval between attempts to connect to the running scenario.
const LOOK: Duration = Duration::from_millis(5);

/// A new RDMA connection, as one end announces it: a line of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opened {
    /// IPv4 address of this end.
    pub local: Ipv4Addr,
    /// IPv4 address of the peer.
    pub peer: Ipv4Addr,
    /// Queue pair number of this end.
    pub qp: u32,
    /// Queue pair number of the peer.
    pub peer_qp: u32,
    /// PSN of the first packet from this end.
    pub psn: u32,
    /// PSN of the first packet from the peer.
    pub peer_psn: u32,
}

/// Makes an RDMA provider announce its connections, if a running scenario has asked for it. If the run does not reply, this
/// prints a warning, makes no further announcement for `PAUSE`, and lets the provider connect anyway.
pub fn announce(provider: &mut dyn Provider) {
    let Some(socket) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
        return;
    };
    let mut deaf_until = None;
    provider.announce(Box::new(move |connects: &provider::OpenedConnection| {
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
        if let Err(error) = announce_to(&socket, &opened) {
            deaf_until = Some(Instant::now() + PAUSE);
            eprintln!(
                "weir-agent: {VARIABLE}={}: {error}: packets of connections are numbered from the first one that a switch sees",
                socket.display()
            );
        }
    }));
}

fn announce_to(path: &Path, opened: &Opened) -> io::Result<()> {
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

/// Connects to the socket of the running scenario. A blocking connect would wait forever while the listener's queue is full.
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

    /// Result of `tell` with a listener that gives this reply, and the text that the listener received.
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
        (announce_to(&path, &OPENED), there.join().unwrap())
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
    fn a_silent_run_causes_a_timeout() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _silent = UnixListener::bind(&path).unwrap();
        let error = announce_to(&path, &OPENED).unwrap_err();
        assert_eq!(error.to_string(), "no answer within 2 s");
    }

    #[test]
    fn a_missing_run_is_an_error() {
        let error = announce_to(Path::new("/nonexistent/socket"), &OPENED).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
