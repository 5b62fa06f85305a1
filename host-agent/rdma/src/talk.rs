//! TCP connection of two RDMA programs, over which they exchange messages about their queue pairs.
//!
//! While this side waits for a message, it runs the RDMA provider, so that the peer gets answers. A device needs no such help.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use roce::Qpn;

use crate::provider::{Provider, ProviderError};

/// TCP port of libibverbs' examples and of perftest.
pub const PORT: u16 = 18_515;

/// How long the provider waits for frames before the TCP connection is polled.
const LOOK: Duration = Duration::from_millis(1);
/// Interval between attempts to reach the server.
const RETRY: Duration = Duration::from_millis(100);

/// Reason why the TCP connection of two RDMA programs failed.
#[derive(Debug, thiserror::Error)]
pub enum TalkError {
    /// The server cannot be reached.
    #[error("cannot reach {host}:{port}: {source}")]
    Connect {
        /// Name or address of the server.
        host: String,
        /// TCP port of the server.
        port: u16,
        /// Error of the system call.
        source: io::Error,
    },
    /// The server's TCP port cannot be bound.
    #[error("cannot listen on port {port}: {source}")]
    Listen {
        /// The TCP port that cannot be bound.
        port: u16,
        /// Error of the system call.
        source: io::Error,
    },
    /// No client has connected within this time.
    #[error("no client within {0:?}")]
    Nobody(Duration),
    /// The other program has sent no message for this time.
    #[error("the peer sent nothing for {0:?}: check that it runs the same test")]
    Silent(Duration),
    /// The other program has closed the connection.
    #[error("the connection to the peer failed: {0}")]
    Gone(#[from] io::Error),
    /// The RDMA provider failed, which runs while this side waits.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

/// TCP connection to the other RDMA program.
pub struct Talk {
    stream: TcpStream,
    is_client: bool,
    patience: Duration,
    /// Queue pair whose incoming packets show that the other program is alive; `None` for no queue pair.
    watched: Option<Qpn>,
}

impl Talk {
    /// Connects to the server as the client; retries for at most `patience`.
    pub fn connect(host: &str, port: u16, patience: Duration) -> Result<Self, TalkError> {
        let deadline = Instant::now() + patience;
        loop {
            match reach(host, port, deadline) {
                Ok(stream) => return Ok(Self::over(stream, true, patience)?),
                Err(_) if Instant::now() + RETRY < deadline => std::thread::sleep(RETRY),
                Err(source) => {
                    return Err(TalkError::Connect {
                        host: host.to_owned(),
                        port,
                        source,
                    });
                }
            }
        }
    }

    /// Waits as the server until a client connects, for at most `patience`.
    pub fn accept(port: u16, patience: Duration) -> Result<Self, TalkError> {
        let listen = |source| TalkError::Listen { port, source };
        let listener = TcpListener::bind(("0.0.0.0", port)).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let deadline = Instant::now() + patience;
        loop {
            match listener.accept() {
                Ok((stream, _)) => return Ok(Self::over(stream, false, patience)?),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
            if Instant::now() > deadline {
                return Err(TalkError::Nobody(patience));
            }
            std::thread::sleep(LOOK);
        }
    }

    fn over(stream: TcpStream, is_client: bool, patience: Duration) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            is_client,
            patience,
            watched: None,
        })
    }

    /// From now on, counts packets to this queue pair as a sign that the other program is alive.
    pub fn watch(&mut self, qpn: Qpn) {
        self.watched = Some(qpn);
    }

    /// Whether this side is the client, which sends first.
    pub fn is_client(&self) -> bool {
        self.is_client
    }

    /// Exchanges messages of equal length: the client sends first, and the server replies. Returns the other side's message.
    pub fn exchange<const N: usize>(
        &mut self,
        provider: &mut dyn Provider,
        own: [u8; N],
    ) -> Result<[u8; N], TalkError> {
        if self.is_client {
            self.send(&own)?;
            return self.receive(provider);
        }
        let theirs = self.receive(provider)?;
        self.send(&own)?;
        Ok(theirs)
    }

    /// Sends a message to the other program.
    pub fn send(&mut self, mut bytes: &[u8]) -> Result<(), TalkError> {
        let deadline = Instant::now() + self.patience;
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(0) => return Err(TalkError::Gone(io::ErrorKind::WriteZero.into())),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if is_passing(&error) && Instant::now() < deadline => {
                    std::thread::sleep(LOOK);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Whether a message of the other program, or the end of the connection, can be read without waiting.
    pub fn has_word(&self) -> bool {
        match self.stream.peek(&mut [0]) {
            Ok(_) => true,
            Err(error) => !is_passing(&error),
        }
    }

    /// Receives a message of `N` bytes from the other program; runs the provider meanwhile.
    pub fn receive<const N: usize>(
        &mut self,
        provider: &mut dyn Provider,
    ) -> Result<[u8; N], TalkError> {
        let (mut bytes, mut heard) = ([0; N], 0);
        let mut deadline = Instant::now() + self.patience;
        let mut packets = None;
        while heard < N {
            match self.stream.read(&mut bytes[heard..]) {
                Ok(0) => return Err(TalkError::Gone(io::ErrorKind::UnexpectedEof.into())),
                Ok(more) => heard += more,
                Err(error) if is_passing(&error) => provider.wait(LOOK)?,
                Err(error) => return Err(error.into()),
            }
            let came = self.watched.and_then(|qpn| provider.arrivals(qpn));
            if came != packets {
                packets = came;
                deadline = Instant::now() + self.patience;
            }
            if heard < N && Instant::now() > deadline {
                return Err(TalkError::Silent(self.patience));
            }
        }
        Ok(bytes)
    }
}

fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted)
}

fn reach(host: &str, port: u16, deadline: Instant) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in (host, port).to_socket_addrs()? {
        let left = deadline.saturating_duration_since(Instant::now());
        match TcpStream::connect_timeout(&address, left.max(LOOK)) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}
