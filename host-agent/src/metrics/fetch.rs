//! HTTP client that fetches the status of a rank, worker or server.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::serve::Address;
use super::status::Status;

/// Maximum length of an HTTP response in bytes.
const LIMIT: u64 = 1 << 20;

/// Reason why a status could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The HTTP server cannot be reached, or the connection broke.
    #[error("no reply from {address}: {source}")]
    Io {
        /// Address of the HTTP server.
        address: Address,
        /// Error of the connection.
        source: io::Error,
    },
    /// The HTTP server's response is not a status of weir.
    #[error("the server at {address} is not a rank of weir: {reason}")]
    Stranger {
        /// Address of the HTTP server.
        address: Address,
        /// Error in the response.
        reason: String,
    },
}

/// Fetches the status that a rank, worker or server serves at this address, within `patience`.
pub fn fetch(address: &Address, patience: Duration) -> Result<Status, FetchError> {
    let io = |source| FetchError::Io {
        address: address.clone(),
        source,
    };
    let stranger = |reason: String| FetchError::Stranger {
        address: address.clone(),
        reason,
    };
    let text = match address {
        Address::Tcp(to) => TcpStream::connect_timeout(to, patience).and_then(|stream| {
            stream.set_read_timeout(Some(patience))?;
            stream.set_write_timeout(Some(patience))?;
            exchange(stream)
        }),
        Address::Unix(path) => UnixStream::connect(path).and_then(|stream| {
            stream.set_read_timeout(Some(patience))?;
            stream.set_write_timeout(Some(patience))?;
            exchange(stream)
        }),
    };
    let text = text.map_err(io)?;
    let (head, body) = text
        .split_once("\r\n\r\n")
        .ok_or_else(|| stranger("its reply is not HTTP".to_owned()))?;
    let first = head.lines().next().unwrap_or_default();
    if !first.starts_with("HTTP/1.") || first.split(' ').nth(1) != Some("200") {
        return Err(stranger(format!("it replied `{}`", shortened(first))));
    }
    serde_json::from_str(body).map_err(|error| stranger(error.to_string()))
}

fn exchange(mut stream: impl Read + Write) -> io::Result<String> {
    stream.write_all(b"GET /status HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n")?;
    let mut bytes = Vec::new();
    stream.take(LIMIT).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}
