//! HTTP server of a member's status: `/metrics` for Prometheus, `/status` as JSON. It serves one short connection at a time.

use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::page;
use super::status::Status;

/// Maximum length of an HTTP request in bytes, including its headers.
const REQUEST_LIMIT: usize = 8 << 10;
/// Maximum duration of an HTTP connection.
const PATIENCE: Duration = Duration::from_secs(2);
const BETWEEN_FAILURES: Duration = Duration::from_millis(10);

/// Address at which an HTTP server serves a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// An IP address and a port.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

/// The text is not an address of a status server: neither `IP:PORT` nor `unix:PATH`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an address: use one such as 127.0.0.1:9477 or unix:/run/weir/rank0.sock")]
pub struct AddressError(String);

impl FromStr for Address {
    type Err = AddressError;
    fn from_str(text: &str) -> Result<Address, AddressError> {
        let wrong = || AddressError(text.to_owned());
        match text.strip_prefix("unix:") {
            Some("") => Err(wrong()),
            Some(path) => Ok(Address::Unix(path.into())),
            None => text.parse().map(Address::Tcp).map_err(|_| wrong()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => write!(f, "{address}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    fn bind(address: &Address) -> io::Result<Listener> {
        let listener = match address {
            Address::Tcp(address) => {
                let listener = TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                Listener::Tcp(listener)
            }
            Address::Unix(path) => {
                let listener = match UnixListener::bind(path) {
                    // A killed process has left its socket behind, without a listener.
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_left(path) => {
                        fs::remove_file(path)?;
                        UnixListener::bind(path)?
                    }
                    bound => bound?,
                };
                listener.set_nonblocking(true)?;
                Listener::Unix(listener)
            }
        };
        Ok(listener)
    }

    /// Accepts one HTTP connection and answers its request.
    fn answer(&self, show: &dyn Fn() -> Status) -> io::Result<()> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                converse(stream, show)
            }
            Listener::Unix(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                converse(stream, show)
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Unix(listener) => listener.as_fd(),
        }
    }
}

/// Whether a path is a Unix socket that no process listens on, left by a process that has ended.
fn is_left(path: &std::path::Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    is_socket
        && UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// A thread that serves a status by HTTP until this value is dropped.
#[derive(Debug)]
pub struct Exporter {
    address: Address,
    descriptor: RawFd,
    ends: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

impl Exporter {
    /// Starts an HTTP server at this address for the status that `show` returns; port 0 selects a free port.
    pub fn start(
        address: &Address,
        show: impl Fn() -> Status + Send + 'static,
    ) -> io::Result<Exporter> {
        let listener = Listener::bind(address)?;
        let address = match &listener {
            Listener::Tcp(listener) => Address::Tcp(listener.local_addr()?),
            Listener::Unix(_) => address.clone(),
        };
        let descriptor = listener.as_fd().as_raw_fd();
        let ends = Arc::new(EventFd::from_flags(EfdFlags::EFD_CLOEXEC)?);
        let told = Arc::clone(&ends);
        let thread = std::thread::Builder::new().name("weir metrics".to_owned());
        let thread = thread.spawn(move || {
            loop {
                let mut sources = [listener.as_fd(), told.as_fd()]
                    .map(|source| PollFd::new(source, PollFlags::POLLIN));
                match poll(&mut sources, PollTimeout::NONE) {
                    Ok(_) if sources[1].any() == Some(true) => return,
                    // A client that disconnects or sends an invalid request needs nothing more. If descriptors are exhausted,
                    // pause instead of retrying at once.
                    Ok(_) => {
                        if listener.answer(&show).is_err() {
                            std::thread::sleep(BETWEEN_FAILURES);
                        }
                    }
                    Err(Errno::EINTR) => {}
                    Err(_) => return,
                }
            }
        })?;
        Ok(Exporter {
            address,
            descriptor,
            ends,
            thread: Some(thread),
        })
    }

    /// Descriptor of the listening socket, which a forked process must close.
    pub fn descriptor(&self) -> RawFd {
        self.descriptor
    }

    /// Address of the listening socket.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.ends.write(1);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if let Address::Unix(path) = &self.address {
            let _ = fs::remove_file(path);
        }
    }
}

/// Answers one HTTP request with the status.
fn converse(mut stream: impl Read + Write, show: &dyn Fn() -> Status) -> io::Result<()> {
    let begun = Instant::now();
    let (mut request, mut buffer) = (Vec::new(), [0; 1024]);
    while !request.windows(4).any(|four| four == b"\r\n\r\n") {
        let came = stream.read(&mut buffer)?;
        request.extend_from_slice(&buffer[..came]);
        if came == 0 || request.len() > REQUEST_LIMIT || begun.elapsed() > PATIENCE {
            return respond(&mut stream, "400 Bad Request", "text/plain", "no request\n");
        }
    }
    let line = request.split(|byte| *byte == b'\r').next();
    let line = String::from_utf8_lossy(line.unwrap_or_default());
    let mut words = line.split(' ');
    let (method, target) = (words.next(), words.next().unwrap_or_default());
    if method != Some("GET") {
        let told = "only GET is supported\n";
        return respond(&mut stream, "405 Method Not Allowed", "text/plain", told);
    }
    match target.split('?').next().unwrap_or_default() {
        "/metrics" => {
            let kind = "text/plain; version=0.0.4; charset=utf-8";
            respond(&mut stream, "200 OK", kind, &page(&show()))
        }
        "/status" => {
            let text = serde_json::to_string(&show())?;
            respond(&mut stream, "200 OK", "application/json", &text)
        }
        _ => {
            let told = "use /metrics or /status\n";
            respond(&mut stream, "404 Not Found", "text/plain", told)
        }
    }
}

fn respond(stream: &mut impl Write, status: &str, kind: &str, body: &str) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    stream.flush()
}
