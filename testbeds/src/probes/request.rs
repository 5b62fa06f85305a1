//! Sends one request of a probe over the probe's own sockets: TCP, UDP or HTTP.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

/// Maximum number of bytes that are read of an HTTP answer.
const ANSWER_BYTES: usize = 16 << 20;
/// Maximum number of header lines in an HTTP answer.
const HEADERS: usize = 128;

/// Opens a TCP connection, and closes it at once.
pub(super) async fn connect(to: SocketAddrV4) -> io::Result<()> {
    TcpStream::connect(to).await.map(drop)
}

/// Sends a datagram and waits for any datagram from the receiver.
pub(super) async fn datagram(to: SocketAddrV4, send: &[u8]) -> io::Result<()> {
    // Connected, so that an ICMP error counts as an answer, and datagrams of other hosts do not.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
    socket.connect(to).await?;
    socket.send(send).await?;
    let mut answer = [0; 2048];
    socket.recv(&mut answer).await.map(drop)
}

/// Sends an HTTP GET and waits for a complete, successful answer; `host` is the server's name in the request.
pub(super) async fn http(to: SocketAddrV4, host: &str, path: &str) -> io::Result<()> {
    let mut stream = TcpStream::connect(to).await?;
    stream.set_nodelay(true)?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: weir\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    // The server closes the connection at the end of its answer.
    while stream.read_buf(&mut answer).await? > 0 {
        if answer.len() > ANSWER_BYTES {
            return Err(io::Error::other(format!(
                "an answer of more than {ANSWER_BYTES} bytes"
            )));
        }
    }
    judge(&answer)
}

/// Checks that an HTTP answer is complete and successful.
fn judge(answer: &[u8]) -> io::Result<()> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let head = match response.parse(answer) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => {
            return Err(io::Error::other(
                "the connection was closed before the answer was whole",
            ));
        }
        Err(error) => return Err(io::Error::other(format!("no HTTP: {error}"))),
    };
    let status = response.code.unwrap_or_default();
    if !(100..400).contains(&status) {
        return Err(io::Error::other(format!("status {status}")));
    }
    let length = response
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("content-length"))
        .and_then(|header| {
            std::str::from_utf8(header.value)
                .ok()?
                .trim()
                .parse::<usize>()
                .ok()
        });
    match length {
        Some(length) if answer.len() - head < length => Err(io::Error::other(format!(
            "{} of {length} bytes came",
            answer.len() - head
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(answer: &str) -> String {
        judge(answer.as_bytes()).map_or_else(|error| error.to_string(), |()| "good".to_owned())
    }

    #[test]
    fn answers_are_judged() {
        assert_eq!(
            verdict("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
            "good"
        );
        assert_eq!(verdict("HTTP/1.0 304 Not Modified\r\n\r\n"), "good");
        assert_eq!(
            verdict("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok"),
            "2 of 9 bytes came"
        );
        assert_eq!(verdict("HTTP/1.1 502 Bad Gateway\r\n\r\n"), "status 502");
        assert!(verdict("HTTP/1.1 200 OK\r\nConte").starts_with("the connection was closed"));
        assert!(verdict("").starts_with("the connection was closed"));
        assert!(verdict("SSH-2.0-OpenSSH\r\n").starts_with("no HTTP"));
    }
}
