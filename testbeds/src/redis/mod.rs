//! Runs a real Redis server, and our own clients that measure its latency.

mod client;
mod resp;

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

pub use client::{ClientArgs, ClientError, ClientReport, CommandSummary, Operation, run_client};
pub use resp::{Reply, ReplyError, Request, encode_request, parse_reply, parse_request};

use crate::host::{Host, Process, ProcessError};

/// Error of starting a Redis server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// redis-server is not installed.
    #[error(
        "redis-server is not on the PATH: install the package redis-server (Debian, Ubuntu) or redis (Fedora, Arch, Alpine)"
    )]
    NotInstalled,
    /// The server's process could not be started.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The server ended right after its start; the value describes its end.
    #[error("redis-server ended at once: {0}")]
    Ended(String),
    /// The server does not answer at this address.
    #[error("redis-server does not answer at {0}")]
    Silent(SocketAddrV4),
}

/// A Redis server without storage on disk. Dropping it ends the server.
#[derive(Debug)]
pub struct Server {
    process: Process,
    address: SocketAddrV4,
}

impl Server {
    /// Starts a server in a host and waits until it answers.
    pub fn start(host: &Host, address: SocketAddrV4) -> Result<Server, ServerError> {
        let program = find_program("redis-server").ok_or(ServerError::NotInstalled)?;
        let mut command = Command::new(program);
        command.args([
            "--port",
            &address.port().to_string(),
            "--bind",
            &address.ip().to_string(),
        ]);
        // Only the loopback and the hosts of this experiment reach the server.
        command.args([
            "--protected-mode",
            "no",
            "--daemonize",
            "no",
            "--save",
            "",
            "--appendonly",
            "no",
        ]);
        command
            .args(["--loglevel", "warning"])
            .current_dir(Path::new("/"));
        let mut server = Server {
            process: host.spawn(command)?,
            address,
        };
        server.await_answer(host, Duration::from_secs(10))?;
        Ok(server)
    }

    /// Address on which the server listens.
    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }

    fn await_answer(&mut self, host: &Host, timeout: Duration) -> Result<(), ServerError> {
        let deadline = Instant::now() + timeout;
        while Instant::now() < deadline {
            if let Some(status) = self.process.try_wait()? {
                let said = self.last_words();
                return Err(ServerError::Ended(format!("{status}: {said}")));
            }
            if host.namespace().run(|| ping(self.address)).is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(ServerError::Silent(self.address))
    }

    /// Waits up to `within` for the server's end; returns its exit status and last output, or `None` if it still runs.
    pub fn ended(&mut self, within: Duration) -> Result<Option<String>, ProcessError> {
        let status = match self.process.try_wait()? {
            None if !within.is_zero() => self.process.wait(within)?,
            status => status,
        };
        Ok(status.map(|status| {
            let said = self.last_words();
            match said.is_empty() {
                true => status.to_string(),
                false => format!("{status}: {said}"),
            }
        }))
    }

    /// The last line that the server has printed, errors included, as it writes them to the standard output too.
    fn last_words(&mut self) -> String {
        let mut last = String::new();
        while let crate::host::Output::Line(line) =
            self.process.next_line(Duration::from_millis(100))
        {
            if !line.trim().is_empty() {
                last = line;
            }
        }
        self.process
            .stderr()
            .lines()
            .rfind(|line| !line.trim().is_empty())
            .map_or(last, str::to_owned)
    }
}

fn ping(address: SocketAddrV4) -> io::Result<()> {
    let timeout = Duration::from_secs(1);
    let mut stream = TcpStream::connect_timeout(&address.into(), timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.write_all(&encode_request(&["PING"]))?;
    let mut answer = [0; 7];
    stream.read_exact(&mut answer)?;
    // While the server loads, it answers -LOADING.
    if &answer == b"+PONG\r\n" {
        Ok(())
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}

/// Path of the program with this name on the PATH; `None`: it is not installed.
pub fn find_program(name: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let runnable = |path: &PathBuf| {
        fs::metadata(path)
            .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(runnable)
}
