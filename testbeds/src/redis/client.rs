//! A Redis client that sends one request at a time and measures the time until each answer.
//!
//! Each request and each answer is one packet, without pipelining. If a switch drops a packet, it drops one request,
//! and the client measures the fate of that packet.

use std::io::{self, Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};

use super::resp::{Reply, ReplyError, encode_request, parse_reply};

/// A client's work. Also the arguments of the hidden command that runs a client in a host.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct ClientArgs {
    /// Name of the client in the report.
    #[arg(long)]
    pub name: String,
    /// Address of the server.
    #[arg(long, value_name = "IP:PORT")]
    pub server: SocketAddrV4,
    /// A command: words separated by spaces, with `{n}` for the number of the request from 1; repeat for commands in turn. A
    /// `SET` without a value gets one.
    #[arg(long = "command", value_name = "WORDS", required = true)]
    pub commands: Vec<String>,
    /// Number of requests.
    #[arg(long, default_value_t = 1)]
    pub requests: u32,
    /// Length of the values that `SET`s get, in bytes.
    #[arg(long, default_value_t = 16)]
    pub value_bytes: u32,
    /// Pause between an answer and the next request, in microseconds.
    #[arg(long, default_value_t = 0)]
    pub pause_us: u64,
    /// Time limit of an answer, in milliseconds.
    #[arg(long, default_value_t = 5_000)]
    pub timeout_ms: u64,
}

/// One request of a client and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// The command, in capital letters.
    pub command: String,
    /// The first argument of the command, which is the key in most commands.
    pub key: String,
    /// Time at which the request was sent, in nanoseconds since the client's first request.
    pub at_ns: u64,
    /// Time from the request to the answer, in nanoseconds.
    pub latency_ns: u64,
    /// The error with which the server answered; `None`: it answered without an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Number and latencies of the requests with one command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandSummary {
    /// Name of the command, in capital letters.
    pub command: String,
    /// Number of requests with this command.
    pub count: u64,
    /// Median latency, in nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile of the latency, in nanoseconds.
    pub p99_ns: u64,
    /// Maximum latency, in nanoseconds.
    pub max_ns: u64,
}

/// Results of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientReport {
    /// The client's name.
    pub name: String,
    /// Time of the first request, in nanoseconds since 1970 (UTC).
    pub began_ns: u64,
    /// Number of requests that the server answered with an error.
    pub errors: u64,
    /// Summary for each command name, in alphabetical order.
    pub commands: Vec<CommandSummary>,
    /// All requests with their results, in the order in which they were sent.
    pub operations: Vec<Operation>,
}

/// Error that ends a client before all its requests.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A command in the arguments has no words; the value is its position.
    #[error("command {0} is empty")]
    EmptyCommand(usize),
    /// The client cannot connect to the server.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// Address of the server.
        address: SocketAddrV4,
        /// Error that the operating system reported.
        source: io::Error,
    },
    /// The server did not answer within the timeout, or the connection broke.
    #[error("request {index} ({command}): {source}")]
    Request {
        /// Number of the request, from 0.
        index: usize,
        /// Command name of the request.
        command: String,
        /// Error that the operating system reported.
        source: io::Error,
    },
}

/// Runs a client until it has sent all its requests or fails.
pub fn run_client(args: &ClientArgs) -> Result<ClientReport, ClientError> {
    if let Some(index) = args
        .commands
        .iter()
        .position(|command| command.trim().is_empty())
    {
        return Err(ClientError::EmptyCommand(index));
    }
    let timeout = Duration::from_millis(args.timeout_ms.max(1));
    let mut connection =
        Connection::open(args.server, timeout).map_err(|source| ClientError::Connect {
            address: args.server,
            source,
        })?;
    let mut operations: Vec<Operation> = Vec::new();
    let began = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let began_ns = began.map_or(0, |since| since.as_nanos() as u64);
    let start = Instant::now();
    for (number, template) in (1..=args.requests).zip(args.commands.iter().cycle()) {
        if number > 1 {
            thread::sleep(Duration::from_micros(args.pause_us));
        }
        let words = request(template, number, args.value_bytes);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let command = words[0].to_ascii_uppercase();
        let sent = Instant::now();
        let error = connection
            .request(&words)
            .map_err(|source| ClientError::Request {
                index: operations.len(),
                command: command.clone(),
                source,
            })?;
        operations.push(Operation {
            command,
            key: words.get(1).copied().unwrap_or_default().to_owned(),
            at_ns: (sent - start).as_nanos() as u64,
            latency_ns: sent.elapsed().as_nanos() as u64,
            error,
        });
    }
    Ok(report(&args.name, began_ns, operations))
}

/// The words of the request with this number: `{n}` in the template is replaced, and a `SET` without a value gets one.
fn request(template: &str, number: u32, value_bytes: u32) -> Vec<String> {
    let number = number.to_string();
    let mut words: Vec<String> = template
        .split_whitespace()
        .map(|word| word.replace("{n}", &number))
        .collect();
    if words.len() == 2 && words[0].eq_ignore_ascii_case("SET") {
        words.push("v".repeat(value_bytes as usize));
    }
    words
}

struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    fn open(address: SocketAddrV4, timeout: Duration) -> io::Result<Connection> {
        let stream = TcpStream::connect_timeout(&address.into(), timeout)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(Connection {
            stream,
            buffer: Vec::new(),
        })
    }

    /// Sends a request and waits for its answer. The result is the error with which the server answered; `None`: no error.
    fn request(&mut self, words: &[&str]) -> io::Result<Option<String>> {
        self.stream.write_all(&encode_request(words))?;
        loop {
            let outcome = match parse_reply(&self.buffer) {
                Ok((Reply::Error(text), length)) => {
                    Some((Some(String::from_utf8_lossy(text).into_owned()), length))
                }
                Ok((_, length)) => Some((None, length)),
                Err(ReplyError::Incomplete) => None,
                Err(error @ ReplyError::Malformed) => {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
            };
            if let Some((error, length)) = outcome {
                self.buffer.drain(..length);
                return Ok(error);
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut chunk = [0; 4096];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => {
                self.buffer.extend(&chunk[..length]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(io::ErrorKind::TimedOut.into())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn report(name: &str, began_ns: u64, operations: Vec<Operation>) -> ClientReport {
    let mut latencies: std::collections::BTreeMap<&str, Vec<u64>> = Default::default();
    for operation in &operations {
        latencies
            .entry(&operation.command)
            .or_default()
            .push(operation.latency_ns);
    }
    let commands = latencies
        .into_iter()
        .map(|(command, mut latencies)| {
            latencies.sort_unstable();
            CommandSummary {
                command: command.to_owned(),
                count: latencies.len() as u64,
                p50_ns: percentile(&latencies, 50),
                p99_ns: percentile(&latencies, 99),
                max_ns: percentile(&latencies, 100),
            }
        })
        .collect();
    let errors = operations
        .iter()
        .filter(|operation| operation.error.is_some())
        .count() as u64;
    ClientReport {
        name: name.to_owned(),
        began_ns,
        errors,
        commands,
        operations,
    }
}

/// Percentile by nearest rank: the smallest value that at least `percent` of all values do not exceed.
fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled_in() {
        assert_eq!(request("GET user:{n}", 7, 3), ["GET", "user:7"]);
        assert_eq!(request("set cart:{n}", 1, 3), ["set", "cart:1", "vvv"]);
        assert_eq!(request("SET k own", 1, 3), ["SET", "k", "own"]);
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let sorted: Vec<u64> = (1..=10).collect();
        assert_eq!(
            [50, 99, 100].map(|percent| percentile(&sorted, percent)),
            [5, 10, 10]
        );
        assert_eq!(percentile(&[7], 50), 7);
        assert_eq!(percentile(&[], 50), 0);
    }

    #[test]
    fn a_summary_per_command() {
        let operation = |command: &str, latency_ns, error: Option<&str>| Operation {
            command: command.into(),
            key: "k".into(),
            at_ns: 0,
            latency_ns,
            error: error.map(str::to_owned),
        };
        let report = report(
            "a",
            7,
            vec![
                operation("SET", 5, None),
                operation("GET", 3, Some("ERR")),
                operation("GET", 1, None),
            ],
        );
        assert_eq!(report.errors, 1);
        let summary: Vec<_> = report
            .commands
            .iter()
            .map(|c| (c.command.as_str(), c.count, c.max_ns))
            .collect();
        assert_eq!(summary, [("GET", 2, 3), ("SET", 1, 5)]);
    }
}
