//! Exchange of the options that two ends of weir must have in common for a test (its terms).
//!
//! The two ends exchange their keys at least three times. In these tests, one field of the keys is unused: the number of a
//! shared receive queue. weir puts a number (a word) there: first its test and options, then the message size, then the number
//! of messages. perftest puts 0 there.

use std::fmt;

use super::message::Verb;

/// Bit that is set in each word (number in the unused field of the keys) that weir sends; perftest never sets it.
const MARK: u32 = 1 << 30;

/// Options that the lowest bits of the first word encode, from bit 0 on. Higher bits are the number of the tested operation.
const OPTIONS: [&str; 4] = ["-lat", " -a", " -D", " -b"];

/// A test and the options that both ends must have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// RDMA operation under test.
    pub verb: Verb,
    /// Whether the latency is tested (`-lat`), not the bandwidth.
    pub is_latency: bool,
    /// Whether all message sizes are tested (`-a`).
    pub all_sizes: bool,
    /// Whether the test has a duration (`-D`), not a number of messages.
    pub by_duration: bool,
    /// Whether both sides send (`-b`).
    pub is_bidirectional: bool,
    /// Length of a message in bytes (`-s`); not exchanged with `-a`.
    pub size: u32,
    /// Number of messages (`-n`); not exchanged with `-D`.
    pub messages: u64,
}

/// A test or option in which two ends differ, with the value of one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Term {
    /// The two ends differ in the test or its options; this is one end's encoding of both.
    Test(u32),
    /// The two ends differ in the length of a message; this is one end's, in bytes.
    Size(u32),
    /// The two ends differ in the number of messages; this is one end's number.
    Messages(u32),
}

impl Terms {
    /// Number of words (values in the unused field of the keys) that weir sends, one in each exchange of keys.
    pub const WORDS: usize = 3;

    /// The word that this end sends in the exchange of keys with the index `exchange`, from 0; 0 after the last word.
    pub fn word(&self, exchange: usize) -> u32 {
        // Both ends count messages if both send, or if one sends and the other receives.
        let both_count = match self.is_latency {
            true => self.verb != Verb::Read,
            false => self.verb == Verb::Send || self.is_bidirectional,
        };
        let value = match exchange {
            0 => self.test(),
            1 if self.all_sizes => 0,
            1 => self.size,
            2 if self.by_duration || !both_count => 0,
            2 => u32::try_from(self.messages).unwrap_or(u32::MAX),
            _ => return 0,
        };
        MARK | value.min(MARK - 1)
    }

    fn test(&self) -> u32 {
        let options: [bool; OPTIONS.len()] = [
            self.is_latency,
            self.all_sizes,
            self.by_duration,
            self.is_bidirectional,
        ];
        let bits = options.iter().rev();
        let bits = bits.fold(0, |bits, option| bits << 1 | u32::from(*option));
        (self.verb as u32) << options.len() | bits
    }

    /// Term of this end and term of the other end, if they differ in this exchange of keys; else `None`. Nothing differs if the
    /// other end is perftest, or has sent all its words.
    pub fn difference(&self, exchange: usize, theirs: u32) -> Option<(Term, Term)> {
        let own = self.word(exchange);
        if own == theirs || own & theirs & MARK == 0 {
            return None;
        }
        let term = match exchange {
            0 => Term::Test,
            1 => Term::Size,
            _ => Term::Messages,
        };
        Some((term(own & !MARK), term(theirs & !MARK)))
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Test(bits) => {
                f.write_str(match bits >> OPTIONS.len() {
                    0 => "`write",
                    1 => "`send",
                    2 => "`read",
                    _ => "another test than `write",
                })?;
                for (at, option) in OPTIONS.iter().enumerate() {
                    if bits >> at & 1 == 1 {
                        f.write_str(option)?;
                    }
                }
                f.write_str("`")
            }
            Self::Size(bytes) => write!(f, "messages of {bytes} bytes (`-s {bytes}`)"),
            Self::Messages(number) => write!(f, "{number} messages (`-n {number}`)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Terms = Terms {
        verb: Verb::Send,
        is_latency: false,
        all_sizes: false,
        by_duration: false,
        is_bidirectional: false,
        size: 65_536,
        messages: 1000,
    };

    fn difference(own: Terms, other: Terms) -> Option<(String, String)> {
        let differ = (0..5).find_map(|at| own.difference(at, other.word(at)));
        differ.map(|(own, theirs)| (own.to_string(), theirs.to_string()))
    }

    #[test]
    fn differences_are_named_by_their_options() {
        for (other, named) in [
            (
                Terms {
                    verb: Verb::Write,
                    ..PLAIN
                },
                "`write`",
            ),
            (
                Terms {
                    verb: Verb::Read,
                    is_latency: true,
                    ..PLAIN
                },
                "`read-lat`",
            ),
            (
                Terms {
                    all_sizes: true,
                    is_bidirectional: true,
                    ..PLAIN
                },
                "`send -a -b`",
            ),
            (
                Terms {
                    by_duration: true,
                    ..PLAIN
                },
                "`send -D`",
            ),
            (
                Terms {
                    size: 1 << 30,
                    ..PLAIN
                },
                "messages of 1073741823 bytes (`-s 1073741823`)",
            ),
            (
                Terms {
                    messages: u64::MAX,
                    ..PLAIN
                },
                "1073741823 messages (`-n 1073741823`)",
            ),
            (
                Terms {
                    messages: 999,
                    ..PLAIN
                },
                "999 messages (`-n 999`)",
            ),
        ] {
            let (own, theirs) = difference(PLAIN, other).unwrap();
            assert_eq!(theirs, named);
            assert_eq!(difference(other, PLAIN), Some((theirs, own)));
        }
    }

    #[test]
    fn options_of_one_end_may_differ() {
        let write = Terms {
            verb: Verb::Write,
            ..PLAIN
        };
        let other = Terms {
            messages: 3,
            ..write
        };
        assert_eq!(difference(write, other), None);
        let both = |terms| Terms {
            is_bidirectional: true,
            ..terms
        };
        assert!(difference(both(write), both(other)).is_some());
        // perftest sends 0.
        assert!((0..5).all(|at| PLAIN.difference(at, 0).is_none()));
    }
}
