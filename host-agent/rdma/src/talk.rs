//! The conversation beside the queue pairs, over TCP, of two programs that are about to use RDMA.
//!
//! A device goes on while its program waits for a word. So does this side: while it waits, the provider does what there is.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use roce::Qpn;

use crate::provider::{Provider, ProviderError};

/// The port of libibverbs' examples and of perftest.
pub const PORT: u16 = 18_515;

/// What the provider waits for frames before one looks for a word.
const LOOK: Duration = Duration::from_millis(1);
/// Between two tries to reach the server.
const RETRY: Duration = Duration::from_millis(100);

/// Why a conversation ends.
#[derive(Debug, thiserror::Error)]
pub enum TalkError {
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
    /// It says no word.
    #[error("the other program says nothing for {0:?}: is it the same test?")]
    Silent(Duration),
    /// It is gone.
    #[error("the other program is gone: {0}")]
    Gone(#[from] io::Error),
    /// This side's packets.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

/// See the module.
pub struct Talk {
    stream: TcpStream,
    is_client: bool,
    patience: Duration,
    /// As long as its packets come, the other program is not silent.
    watched: Option<Qpn>,
}

impl Talk {
    /// As client: tries for so long to reach the server.
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

    /// As server: waits for a client.
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

    /// Whoever sends packets to this queue pair is not silent.
    pub fn watch(&mut self, qpn: Qpn) {
        self.watched = Some(qpn);
    }

    /// Whether this side speaks first.
    pub fn is_client(&self) -> bool {
        self.is_client
    }

    /// A turn: the client speaks first, and the server answers with as many bytes; what the other has said.
    pub fn exchange<const N: usize>(
        &mut self,
        provider: &mut dyn Provider,
        own: [u8; N],
    ) -> Result<[u8; N], TalkError> {
        if self.is_client {
            self.say(&own)?;
            return self.hear(provider);
        }
        let theirs = self.hear(provider)?;
        self.say(&own)?;
        Ok(theirs)
    }

    /// Says something.
    pub fn say(&mut self, mut bytes: &[u8]) -> Result<(), TalkError> {
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

    /// Whether the other program has said something, or is gone, that is not read yet.
    pub fn has_word(&self) -> bool {
        match self.stream.peek(&mut [0]) {
            Ok(_) => true,
            Err(error) => !is_passing(&error),
        }
    }

    /// Hears so many bytes.
    pub fn hear<const N: usize>(
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
