//! How two programs tell each other their queue pairs over TCP, as libibverbs' pingpong examples do.
//!
//! Each message is the text `lid:qpn:psn:gid` in hexadecimal digits and a zero byte, 52 bytes. The client sends its own, reads the
//! server's, and says `done`, which the server waits for: then both are connected.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use roce::{Psn, Qpn};

use crate::provider::Gid;

/// The examples' port.
pub const PORT: u16 = 18_515;

const LEN: usize = 52;
const DONE: &[u8] = b"done\0";
/// Between two tries.
const RETRY: Duration = Duration::from_millis(100);

/// A queue pair, as it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Destination {
    /// Of InfiniBand; 0 on Ethernet.
    pub lid: u16,
    /// Its number.
    pub qpn: Qpn,
    /// The PSN of its first packet.
    pub psn: Psn,
    /// Its port.
    pub gid: Gid,
}

/// Why two programs do not meet.
#[derive(Debug, thiserror::Error)]
pub enum RendezvousError {
    /// Nobody is there.
    #[error("cannot reach {host}:{port}: {source}")]
    Connect {
        /// The server's name or address.
        host: String,
        /// The port.
        port: u16,
        /// The system's reason.
        source: io::Error,
    },
    /// The port is somebody's.
    #[error("cannot listen on port {port}: {source}")]
    Listen {
        /// The port.
        port: u16,
        /// The system's reason.
        source: io::Error,
    },
    /// Nobody has come.
    #[error("no client in {0:?}")]
    Nobody(Duration),
    /// The other program says something else, or nothing more.
    #[error("the other program's message is not `lid:qpn:psn:gid`: is it ibv_rc_pingpong?")]
    Message,
    /// It has another kind of address.
    #[error(
        "the other program has told no GID: start it with `-g 1` (the index of a GID ::ffff:a.b.c.d; see `ibv_devinfo -v`)"
    )]
    NoGid,
    /// It says no word.
    #[error("the other program says nothing: is it ibv_rc_pingpong?")]
    Silent,
    /// The connection.
    #[error("the other program is gone: {0}")]
    Io(io::Error),
}

impl From<io::Error> for RendezvousError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::Silent,
            _ => Self::Io(error),
        }
    }
}

impl Destination {
    fn message(&self) -> [u8; LEN] {
        let gid = u128::from_be_bytes(self.gid.0);
        let (qpn, psn) = (self.qpn.bits(), self.psn.bits());
        let text = format!("{:04x}:{qpn:06x}:{psn:06x}:{gid:032x}\0", self.lid);
        let mut message = [0; LEN];
        message.copy_from_slice(text.as_bytes());
        message
    }

    fn parse(message: &[u8]) -> Result<Self, RendezvousError> {
        let wrong = RendezvousError::Message;
        let text = std::str::from_utf8(message).map_err(|_| RendezvousError::Message)?;
        let text = text.split('\0').next().unwrap_or("");
        let fields: Vec<&str> = text.split(':').collect();
        let [lid, qpn, psn, gid] = fields[..] else {
            return Err(wrong);
        };
        let number = |field: &str, most: u32| {
            let is_plain = field.bytes().all(|byte| byte.is_ascii_hexdigit());
            let number = u32::from_str_radix(field, 16).ok();
            number.filter(|number| is_plain && *number <= most)
        };
        let told = (
            number(lid, 0xFFFF),
            number(qpn, 0xFF_FFFF),
            number(psn, 0xFF_FFFF),
        );
        let (Some(lid), Some(qpn), Some(psn), Ok(gid)) = (told.0, told.1, told.2, gid.parse())
        else {
            return Err(wrong);
        };
        if gid == Gid([0; 16]) {
            return Err(RendezvousError::NoGid);
        }
        Ok(Self {
            lid: lid as u16,
            qpn: Qpn::new(qpn),
            psn: Psn::new(psn),
            gid,
        })
    }
}

/// As client: tries for so long to reach the server, and tells and asks.
///
/// # Errors
/// [`RendezvousError`].
pub fn connect(
    host: &str,
    port: u16,
    own: &Destination,
    patience: Duration,
) -> Result<Destination, RendezvousError> {
    let deadline = Instant::now() + patience;
    let mut stream = loop {
        match reach(host, port, deadline) {
            Ok(stream) => break stream,
            Err(_) if Instant::now() + RETRY < deadline => std::thread::sleep(RETRY),
            Err(source) => {
                return Err(RendezvousError::Connect {
                    host: host.to_owned(),
                    port,
                    source,
                });
            }
        }
    };
    limit(&stream, patience)?;
    stream.write_all(&own.message())?;
    let mut message = [0; LEN];
    stream.read_exact(&mut message)?;
    let peer = Destination::parse(&message)?;
    stream.write_all(DONE)?;
    Ok(peer)
}

fn reach(host: &str, port: u16, deadline: Instant) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in (host, port).to_socket_addrs()? {
        let left = deadline.saturating_duration_since(Instant::now());
        match TcpStream::connect_timeout(&address, left.max(Duration::from_millis(1))) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A server that waits for one client.
pub struct Server {
    listener: TcpListener,
}

impl Server {
    /// Listens at all addresses.
    ///
    /// # Errors
    /// [`RendezvousError::Listen`].
    pub fn listen(port: u16) -> Result<Self, RendezvousError> {
        let listener = TcpListener::bind(("0.0.0.0", port));
        let listener = listener.and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let listener = listener.map_err(|source| RendezvousError::Listen { port, source })?;
        Ok(Self { listener })
    }

    /// Waits for a client. `connected` is called with the client's queue pair, and is to connect the own one before the client is
    /// told that it may begin.
    ///
    /// # Errors
    /// [`RendezvousError`], or what `connected` says.
    pub fn accept<E: From<RendezvousError>>(
        self,
        own: &Destination,
        patience: Duration,
        connected: impl FnOnce(&Destination) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut stream = self.client(patience)?;
        let io = |error: io::Error| E::from(RendezvousError::from(error));
        limit(&stream, patience).map_err(io)?;
        let mut message = [0; LEN];
        stream.read_exact(&mut message).map_err(io)?;
        connected(&Destination::parse(&message)?)?;
        stream.write_all(&own.message()).map_err(io)?;
        let mut done = [0; DONE.len()];
        stream.read_exact(&mut done).map_err(io)?;
        Ok(())
    }

    fn client(&self, patience: Duration) -> Result<TcpStream, RendezvousError> {
        let deadline = Instant::now() + patience;
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false)?;
                    return Ok(stream);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
            if Instant::now() > deadline {
                return Err(RendezvousError::Nobody(patience));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn limit(stream: &TcpStream, patience: Duration) -> io::Result<()> {
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destination(qpn: u32) -> Destination {
        Destination {
            lid: 0,
            qpn: Qpn::new(qpn),
            psn: Psn::new(0xABCDEF),
            gid: std::net::Ipv4Addr::new(10, 0, 0, 2).into(),
        }
    }

    #[test]
    fn a_message_is_52_bytes() {
        let message = destination(0x11).message();
        let text = b"0000:000011:abcdef:00000000000000000000ffff0a000002\0";
        assert_eq!(message, *text);
        assert_eq!(Destination::parse(&message).unwrap(), destination(0x11));
    }

    #[test]
    fn other_messages_are_refused() {
        let zero = "0000:000011:abcdef:00000000000000000000000000000000";
        assert!(matches!(
            Destination::parse(zero.as_bytes()),
            Err(RendezvousError::NoGid)
        ));
        for wrong in [
            "",
            "done",
            "0000:1000011:abcdef:00000000000000000000ffff0a000002",
            "0000:000011:abcdef:0000000000000000000ffff0a000002",
            "0000:+00011:abcdef:00000000000000000000ffff0a000002",
            "0000:000011:00000000000000000000ffff0a000002",
        ] {
            let refused = Destination::parse(wrong.as_bytes());
            assert!(matches!(refused, Err(RendezvousError::Message)), "{wrong}");
        }
        assert!(matches!(
            Destination::parse(&[0xFF; LEN]),
            Err(RendezvousError::Message)
        ));
    }

    #[test]
    fn two_programs_tell_each_other() {
        let server = Server::listen(0).unwrap();
        let port = server.listener.local_addr().unwrap().port();
        let patience = Duration::from_secs(10);
        let client = std::thread::spawn(move || {
            connect("127.0.0.1", port, &destination(1), patience).unwrap()
        });
        let mut told = None;
        server
            .accept(&destination(2), patience, |client| {
                told = Some(*client);
                Ok::<(), RendezvousError>(())
            })
            .unwrap();
        assert_eq!(told, Some(destination(1)));
        assert_eq!(client.join().unwrap(), destination(2));
    }
}
