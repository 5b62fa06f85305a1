//! The Redis serialization protocol (RESP 2): encodes and decodes what the workload sends, and what reports find in captures.

/// A Redis request: a command and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    /// The words of the request; the first is the command.
    pub words: Vec<&'a [u8]>,
}

impl Request<'_> {
    /// The request's command in capital letters.
    pub fn command(&self) -> String {
        self.words
            .first()
            .map(|word| String::from_utf8_lossy(word).to_ascii_uppercase())
            .unwrap_or_default()
    }

    /// The request's first argument, which is the key in most commands.
    pub fn key(&self) -> Option<&[u8]> {
        self.words.get(1).copied()
    }
}

/// Encodes a request as an array of bulk strings.
pub fn encode_request<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        let word = word.as_ref();
        bytes.extend(format!("${}\r\n", word.len()).into_bytes());
        bytes.extend(word);
        bytes.extend(b"\r\n");
    }
    bytes
}

/// Reads one request from the start of `bytes`, and returns it with its length; `None` if it is not complete.
pub fn parse_request(bytes: &[u8]) -> Option<(Request<'_>, usize)> {
    let (count, mut at) = prefixed_number(bytes, b'*')?;
    // Redis's own limit.
    if !(1..=1024 * 1024).contains(&count) {
        return None;
    }
    let mut words = Vec::new();
    for _ in 0..count {
        let (length, header) = prefixed_number(&bytes[at..], b'$')?;
        let start = at + header;
        let end = start.checked_add(usize::try_from(length).ok()?)?;
        let word = bytes.get(start..end)?;
        if bytes.get(end..end + 2)? != b"\r\n" {
            return None;
        }
        words.push(word);
        at = end + 2;
    }
    Some((Request { words }, at))
}

/// A reply of a Redis server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply<'a> {
    /// A status, such as `+OK`.
    Simple(&'a [u8]),
    /// An error, such as `-ERR …`.
    Error(&'a [u8]),
    /// An integer, such as `:1`.
    Integer(i64),
    /// The content of a bulk string.
    Bulk(&'a [u8]),
    /// The null reply, for a key that does not exist.
    Nil,
}

/// Error of parsing a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// More bytes are needed for a whole reply.
    #[error("the reply is not complete")]
    Incomplete,
    /// The bytes are not a reply of RESP 2.
    #[error("this is no reply of RESP 2")]
    Malformed,
}

/// Reads one reply from the start of `bytes`, and returns it with its length in bytes.
pub fn parse_reply(bytes: &[u8]) -> Result<(Reply<'_>, usize), ReplyError> {
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else {
        return Err(ReplyError::Incomplete);
    };
    let (line, after) = (&bytes[..end], end + 2);
    let number = |digits: &[u8]| {
        std::str::from_utf8(digits)
            .ok()
            .and_then(|text| text.parse::<i64>().ok())
            .ok_or(ReplyError::Malformed)
    };
    match line.split_first() {
        Some((b'+', text)) => Ok((Reply::Simple(text), after)),
        Some((b'-', text)) => Ok((Reply::Error(text), after)),
        Some((b':', digits)) => Ok((Reply::Integer(number(digits)?), after)),
        Some((b'$', digits)) => match number(digits)? {
            -1 => Ok((Reply::Nil, after)),
            length => {
                let length = usize::try_from(length).map_err(|_| ReplyError::Malformed)?;
                let stop = after.checked_add(length).ok_or(ReplyError::Malformed)?;
                let text = bytes.get(after..stop).ok_or(ReplyError::Incomplete)?;
                match bytes.get(stop..stop + 2) {
                    Some(b"\r\n") => Ok((Reply::Bulk(text), stop + 2)),
                    Some(_) => Err(ReplyError::Malformed),
                    None => Err(ReplyError::Incomplete),
                }
            }
        },
        _ => Err(ReplyError::Malformed),
    }
}

fn prefixed_number(bytes: &[u8], prefix: u8) -> Option<(u64, usize)> {
    let rest = bytes.strip_prefix(&[prefix])?;
    let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
    let digits = &rest[..end];
    // Ten digits are more than any length that Redis takes.
    if !(1..=10).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits
        .iter()
        .fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
    Some((number, 1 + end + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_round_trip() {
        let bytes = encode_request(&["set", "cart:1", "two\r\nlines"]);
        assert_eq!(&bytes[..13], b"*3\r\n$3\r\nset\r\n");
        let (request, length) = parse_request(&bytes).unwrap();
        assert_eq!(length, bytes.len());
        assert_eq!(request.command(), "SET");
        assert_eq!(request.key(), Some(&b"cart:1"[..]));
        for short in 0..bytes.len() {
            assert_eq!(parse_request(&bytes[..short]), None);
        }
    }

    #[test]
    fn other_bytes_are_not_a_request() {
        for bytes in [
            &b"PING\r\n"[..],
            b"*0\r\n",
            b"*-1\r\n",
            b"*1\r\n$99999999999\r\n",
            b"*1\r\n$4\r\nPINGxx",
            b"*1\r\n:1\r\n",
        ] {
            assert_eq!(parse_request(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn replies_are_read_one_at_a_time() {
        assert_eq!(
            parse_reply(b"+OK\r\n+NEXT\r\n"),
            Ok((Reply::Simple(b"OK"), 5))
        );
        assert_eq!(parse_reply(b"$-1\r\n"), Ok((Reply::Nil, 5)));
        assert_eq!(parse_reply(b"$2\r\nhi\r\n"), Ok((Reply::Bulk(b"hi"), 8)));
        assert_eq!(parse_reply(b":-7\r\n"), Ok((Reply::Integer(-7), 5)));
        assert_eq!(
            parse_reply(b"-ERR no\r\n"),
            Ok((Reply::Error(b"ERR no"), 9))
        );
        for incomplete in [&b""[..], b"$2\r\nh", b"$2\r\nhi", b"+OK\r"] {
            assert_eq!(
                parse_reply(incomplete),
                Err(ReplyError::Incomplete),
                "{incomplete:?}"
            );
        }
        for malformed in [
            &b"\r\n"[..],
            b"?\r\n",
            b"$x\r\n",
            b"$-2\r\n",
            b"$2\r\nhiXX",
            b":\r\n",
        ] {
            assert_eq!(
                parse_reply(malformed),
                Err(ReplyError::Malformed),
                "{malformed:?}"
            );
        }
    }
}
