//! A session between two programs that run one of perftest's tests: they connect over TCP, exchange versions and keys, and
//! connect their queue pairs.

use std::time::Duration;

use roce::completion::Status;
use roce::packet::Mtu;
use roce::{Access, Completion, Fault, QpConfig, Qpn};

use super::message::{self, CACHE_LINE, CYCLE, DONE, Keys, VERSION, Verb};
use super::terms::{Term, Terms};
use crate::provider::{Connection, GOODBYE, Provider, ProviderError, Region, linger};
use crate::talk::{Talk, TalkError};

/// Reason why a test in perftest's protocol failed.
#[derive(Debug, thiserror::Error)]
pub enum PerftestError {
    /// The RDMA provider failed.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The TCP connection to the other program failed.
    #[error(transparent)]
    Talk(#[from] TalkError),
    /// The other program has another version of perftest's protocol.
    #[error("the peer is perftest {theirs}: weir supports that of Debian 12, {}", version(&VERSION))]
    Version {
        /// Version that the other program sent.
        theirs: String,
    },
    /// The other program sent an unexpected message, in place of the one that is named.
    #[error(
        "the peer's message is not {0}: check that it runs the same test, over a GID ::ffff:a.b.c.d (`-x`)"
    )]
    Message(&'static str),
    /// The other program tests another operation.
    #[error("the peer measures {theirs}, and this end {own}: start the same test at both ends")]
    OtherTest {
        /// Operation that the other program tests, as far as its keys show.
        theirs: Verb,
        /// Operation that this side tests.
        own: Verb,
    },
    /// The other program is weir, too, and runs another test or has other options.
    #[error(
        "the peer has {theirs}, and this end {own}: start the same test with the same options at both ends"
    )]
    OtherTerms {
        /// Test or option of the other program.
        theirs: Term,
        /// Test or option of this side.
        own: Term,
    },
    /// A message was not sent or not received.
    #[error("a message failed: {status}{}", because(.fault.as_ref()))]
    Failed {
        /// Status of the failed work request's completion.
        status: Status,
        /// Reason why the queue pair is in the state ERROR; `None` if it is not known.
        fault: Option<Fault>,
    },
    /// No message arrived for the maximum time without progress.
    #[error("nothing received for {patience:?} after {done} messages")]
    Silent {
        /// The maximum time without progress.
        patience: Duration,
        /// Number of messages that were complete before.
        done: u64,
    },
}

fn because(fault: Option<&Fault>) -> String {
    fault.map_or(String::new(), |fault| format!(" ({fault})"))
}

fn version(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.trim_end_matches('\0').escape_debug().to_string()
}

/// Maximum length in bytes that the other program may announce for its area of small messages; it announces its page size.
const MOST_CYCLE: u32 = 1 << 24;
/// Maximum number of outstanding READs in each direction.
const READS: u16 = 16;

/// Parameters with which two programs connect for a test.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    /// Name or address of the server; `None` if this side is the server.
    pub host: Option<&'a str>,
    /// TCP port of the server.
    pub port: u16,
    /// Maximum time without progress of the peer, after which the test fails.
    pub patience: Duration,
    /// Configuration of this side's queue pair.
    pub config: QpConfig,
    /// Test and options that both ends must have in common.
    pub terms: Terms,
}

/// Session with the other program: TCP connection, and this side's memory region and queue pair.
pub struct Session<'a> {
    pub provider: &'a mut dyn Provider,
    pub talk: Talk,
    pub region: Region,
    pub qpn: Qpn,
    terms: Terms,
    /// Number of times that the two sides have exchanged keys so far.
    exchanges: usize,
}

/// Connects to the other program, runs `test`, and closes the session. `len` returns the length of this side's memory region,
/// given the length of the area for small messages; both in bytes.
pub fn with<T>(
    provider: &mut dyn Provider,
    opening: Opening<'_>,
    len: impl FnOnce(u32) -> usize,
    test: impl FnOnce(&mut Session<'_>) -> Result<T, PerftestError>,
) -> Result<T, PerftestError> {
    let Opening { port, patience, .. } = opening;
    let mut talk = match opening.host {
        Some(host) => Talk::connect(host, port, patience)?,
        None => Talk::accept(port, patience)?,
    };
    let cycle = greet(provider, &mut talk)?;
    let region = provider.register(len(cycle), Access::ALL)?;
    let outcome = match provider.create(opening.config, Access::ALL) {
        Err(error) => Err(error.into()),
        Ok(qpn) => {
            talk.watch(qpn);
            let mut session = Session {
                provider: &mut *provider,
                talk,
                region,
                qpn,
                terms: opening.terms,
                exchanges: 0,
            };
            let outcome = test(&mut session);
            let gone = linger(session.provider, GOODBYE);
            provider.destroy(qpn);
            outcome.and_then(|outcome| Ok(gone.map(|()| outcome)?))
        }
    };
    provider.deregister(&region);
    outcome
}

/// Exchanges versions and the length of the area for small messages; returns the larger of both lengths.
fn greet(provider: &mut dyn Provider, talk: &mut Talk) -> Result<u32, PerftestError> {
    let theirs = talk.exchange(provider, VERSION)?;
    if theirs != VERSION {
        let theirs = version(&theirs);
        return Err(PerftestError::Version { theirs });
    }
    let theirs = u32::from_be_bytes(talk.exchange(provider, CYCLE.to_be_bytes())?);
    if theirs > MOST_CYCLE {
        return Err(PerftestError::Message("the mode of small messages"));
    }
    talk.exchange(provider, CACHE_LINE.to_be_bytes())?;
    Ok(theirs.max(CYCLE))
}

impl Session<'_> {
    /// Agrees with the other side on the path MTU: the smaller one of both ends.
    pub fn agree_mtu(&mut self, asked: Option<Mtu>) -> Result<Mtu, PerftestError> {
        let mtu = asked.unwrap_or(self.provider.max_mtu());
        let theirs = self.exchange(message::encode_mtu(mtu))?;
        let theirs = message::decode_mtu(theirs).ok_or(PerftestError::Message("an MTU"))?;
        Ok(mtu.min(theirs))
    }

    /// Keys that this side sends to the peer; its memory begins at `address`.
    pub fn own_keys(&mut self, verb: Verb, address: u64) -> Keys {
        Keys {
            reads: match verb {
                Verb::Read => READS,
                Verb::Write | Verb::Send => 1,
            },
            qpn: self.qpn,
            psn: self.provider.draw_psn(),
            rkey: match verb {
                Verb::Send => 0,
                Verb::Write | Verb::Read => self.region.rkey,
            },
            address,
            gid: self.provider.gid(),
        }
    }

    /// Exchanges keys, and returns the other program's. Waits as long as packets of the other program arrive.
    pub fn exchange_keys(&mut self, own: &Keys) -> Result<Keys, PerftestError> {
        let theirs = self.exchange(own.encode(self.terms.word(self.exchanges)))?;
        let decoded = Keys::decode(&theirs);
        let (theirs, word) = decoded.ok_or(PerftestError::Message("a queue pair's keys"))?;
        let differ = self.terms.difference(self.exchanges, word);
        self.exchanges += 1;
        if let Some((own, theirs)) = differ {
            return Err(PerftestError::OtherTerms { theirs, own });
        }
        is_same_test(own, &theirs)?;
        Ok(theirs)
    }

    /// Exchanges one message of `N` bytes, and returns the other side's.
    pub fn exchange<const N: usize>(&mut self, own: [u8; N]) -> Result<[u8; N], PerftestError> {
        Ok(self.talk.exchange(self.provider, own)?)
    }

    /// Connects this side's queue pair to the peer's.
    pub fn connect(&mut self, own: &Keys, peer: &Keys, mtu: Mtu) -> Result<(), PerftestError> {
        let connection = Connection {
            max_reads: peer.reads.clamp(1, 128) as u8,
            max_peer_reads: own.reads as u8,
            ..Connection::new(peer.gid, peer.qpn, peer.psn, own.psn, mtu)
        };
        Ok(self.provider.connect(self.qpn, &connection)?)
    }

    /// Returns the next successful completion, or `None` if there is none yet; a failed completion is an error.
    pub fn poll(&mut self) -> Result<Option<Completion>, PerftestError> {
        match self.provider.poll()? {
            Some(completion) if completion.status != Status::Success => {
                Err(PerftestError::Failed {
                    status: completion.status,
                    fault: self.provider.fault(self.qpn),
                })
            }
            completion => Ok(completion),
        }
    }

    /// Exchanges the last message over TCP. An error is ignored, since the measurement is already complete.
    pub fn say_goodbye(&mut self) {
        let _ = self.talk.send(DONE);
        let _ = self.talk.receive::<{ DONE.len() }>(self.provider);
    }
}

/// Checks that the other program tests the same operation, as far as its keys show.
fn is_same_test(own: &Keys, theirs: &Keys) -> Result<(), PerftestError> {
    let (own, theirs) = (own.verb(), theirs.verb());
    // perftest with one READ at a time (`-o 1`) has the same keys as with WRITEs.
    let is_read = own == Verb::Read && theirs == Verb::Write;
    match own == theirs || is_read {
        true => Ok(()),
        false => Err(PerftestError::OtherTest { theirs, own }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_of_a_perftest_is_known_by_its_keys() {
        let keys = |verb| Keys {
            reads: if verb == Verb::Read { 128 } else { 1 },
            qpn: Qpn::new(0x11),
            psn: roce::Psn::new(1),
            rkey: if verb == Verb::Send { 0 } else { 7 },
            address: 0,
            gid: std::net::Ipv4Addr::new(10, 77, 0, 1).into(),
        };
        let all = [Verb::Write, Verb::Send, Verb::Read];
        for (own, theirs) in all.iter().flat_map(|own| all.map(|theirs| (*own, theirs))) {
            let same = is_same_test(&keys(own), &keys(theirs));
            let is_fine = own == theirs || (own, theirs) == (Verb::Read, Verb::Write);
            let told = format!("measures {theirs}, and this end {own}");
            match same {
                Ok(()) => assert!(is_fine, "{told}"),
                Err(error) => assert!(!is_fine && error.to_string().contains(&told), "{error}"),
            }
        }
    }
}
