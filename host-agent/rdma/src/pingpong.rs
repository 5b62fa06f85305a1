//! Ping-pong test: messages back and forth over a reliable RDMA connection, compatible with libibverbs' ibv_rc_pingpong.
//!
//! The client sends first. A side sends its next message when the other side's message has arrived and its own was
//! acknowledged, until both have sent and received all messages.

use std::time::{Duration, Instant};

use roce::completion::{Status, WorkKind};
use roce::packet::{Mtu, Service};
use roce::{Access, Counters, Fault, Local, QpConfig, Qpn, ReceiveRequest, SendRequest, Work};

use crate::provider::{Connection, GOODBYE, Provider, ProviderError, Region, linger};
use crate::rendezvous::{self, Destination, RendezvousError};
use crate::talk::{PORT, Talk};

/// Options of the ping-pong test. The defaults are those of ibv_rc_pingpong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PingpongOptions {
    /// TCP port of the server.
    pub port: u16,
    /// Length of each message in bytes.
    pub size: u32,
    /// Number of messages in each direction.
    pub iterations: u64,
    /// Path MTU; both sides must use the same.
    pub mtu: Mtu,
    /// Number of receives that a side posts at once.
    pub receives: usize,
    /// Maximum time without progress of the peer, after which the test fails.
    pub patience: Duration,
}

impl Default for PingpongOptions {
    fn default() -> Self {
        Self {
            port: PORT,
            size: 4096,
            iterations: 1000,
            mtu: Mtu::B1024,
            receives: 500,
            patience: Duration::from_secs(30),
        }
    }
}

/// Result of the ping-pong test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PingpongOutcome {
    /// Description of this side's queue pair.
    pub own: Destination,
    /// Description of the peer's queue pair.
    pub peer: Destination,
    /// Bytes of all messages in both directions together.
    pub bytes: u64,
    /// Time from the first message of the test to the last.
    pub took: Duration,
    /// Number of received messages whose bytes differ from those that the peer sends.
    pub wrong: u64,
    /// Counters of this side's queue pair; `None` if the provider does not count.
    pub counters: Option<Counters>,
}

/// Reason why the ping-pong test failed.
#[derive(Debug, thiserror::Error)]
pub enum PingpongError {
    /// The RDMA provider failed.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The two programs could not exchange their queue pairs.
    #[error(transparent)]
    Rendezvous(#[from] RendezvousError),
    /// A message was not sent or not received.
    #[error("a message failed: {status}{}", because(.fault.as_ref()))]
    Failed {
        /// Status of the failed work request's completion.
        status: Status,
        /// Reason why the queue pair is in the state ERROR; `None` if it is not known.
        fault: Option<Fault>,
    },
    /// No message arrived for the maximum time without progress.
    #[error(
        "nothing received for {patience:?}: {sent} messages sent, {received} received; check that the peer has the same --mtu, --size and --iterations"
    )]
    Silent {
        /// The maximum time without progress.
        patience: Duration,
        /// Number of messages that this side had sent.
        sent: u64,
        /// Number of messages that this side had received.
        received: u64,
    },
}

fn because(fault: Option<&Fault>) -> String {
    fault.map_or(String::new(), |fault| format!(" ({fault})"))
}

/// Byte with which ibv_rc_pingpong fills its messages.
const FILL: u8 = 0x7b;
const RECEIVE: u64 = 1;
const SEND: u64 = 2;

/// Runs the ping-pong test with the server at `host`, or waits for a client if `host` is `None`.
///
/// # Errors
/// [`PingpongError`].
pub fn pingpong(
    provider: &mut dyn Provider,
    host: Option<&str>,
    options: &PingpongOptions,
) -> Result<PingpongOutcome, PingpongError> {
    let size = options.size as usize;
    let source = provider.register(size, Access::LOCAL_READ)?;
    provider.put(&source, 0, &vec![FILL; size]);
    // Separate from the source, so that received bytes can be checked.
    let target = match provider.register(size, Access::LOCAL_WRITE) {
        Ok(target) => target,
        Err(error) => {
            provider.deregister(&source);
            return Err(error.into());
        }
    };
    let played = play(provider, host, options, [&source, &target]);
    provider.deregister(&source);
    provider.deregister(&target);
    played
}

fn play(
    provider: &mut dyn Provider,
    host: Option<&str>,
    options: &PingpongOptions,
    [source, target]: [&Region; 2],
) -> Result<PingpongOutcome, PingpongError> {
    let config = QpConfig {
        max_sends: 1,
        max_receives: options.receives,
        ..QpConfig::new(Service::Reliable)
    };
    let qpn = provider.create(config, Access::LOCAL_READ)?;
    let mut game = Game {
        source,
        target,
        options,
        qpn,
        posted: 0,
        sent: 0,
        received: 0,
        awaits: RECEIVE,
        wrong: 0,
    };
    let played = game.run(provider, host);
    let gone = linger(provider, GOODBYE);
    provider.destroy(qpn);
    let outcome = played?;
    gone?;
    Ok(outcome)
}

struct Game<'a> {
    source: &'a Region,
    target: &'a Region,
    options: &'a PingpongOptions,
    qpn: Qpn,
    /// Number of posted receives that no message has used yet.
    posted: usize,
    sent: u64,
    received: u64,
    /// Completions that must arrive before the next message is sent: RECEIVE, SEND, or both bits.
    awaits: u64,
    wrong: u64,
}

impl Game<'_> {
    fn run(
        &mut self,
        provider: &mut dyn Provider,
        host: Option<&str>,
    ) -> Result<PingpongOutcome, PingpongError> {
        self.post_receives(provider)?;
        let own = Destination {
            lid: 0,
            qpn: self.qpn,
            psn: provider.draw_psn(),
            gid: provider.gid(),
        };
        let (qpn, options) = (self.qpn, self.options);
        let connection = |peer: &Destination| {
            Connection::new(peer.gid, peer.qpn, peer.psn, own.psn, options.mtu)
        };
        let mut talk = match host {
            Some(host) => Talk::connect(host, options.port, options.patience),
            None => Talk::accept(options.port, options.patience),
        }
        .map_err(RendezvousError::from)?;
        let peer = rendezvous::meet(&mut talk, provider, &own, |provider, peer| {
            provider.connect(qpn, &connection(peer))
        })?;
        let start = Instant::now();
        if host.is_some() {
            self.send(provider)?;
        }
        self.exchange(provider)?;
        let took = start.elapsed();
        Ok(PingpongOutcome {
            own,
            peer,
            bytes: 2 * self.options.iterations * u64::from(self.options.size),
            took,
            wrong: self.wrong,
            counters: provider.counters(qpn),
        })
    }

    fn exchange(&mut self, provider: &mut dyn Provider) -> Result<(), PingpongError> {
        let patience = self.options.patience;
        let mut deadline = Instant::now() + patience;
        while self.sent < self.options.iterations || self.received < self.options.iterations {
            let Some(completion) = provider.poll()? else {
                if Instant::now() > deadline {
                    return Err(PingpongError::Silent {
                        patience,
                        sent: self.sent,
                        received: self.received,
                    });
                }
                provider.wait(patience)?;
                continue;
            };
            if completion.status != Status::Success {
                return Err(PingpongError::Failed {
                    status: completion.status,
                    fault: provider.fault(self.qpn),
                });
            }
            deadline = Instant::now() + patience;
            match completion.kind {
                WorkKind::Send => {
                    self.sent += 1;
                    self.awaits &= !SEND;
                }
                _ => {
                    self.received += 1;
                    self.awaits &= !RECEIVE;
                    self.posted -= 1;
                    self.check(provider, completion.byte_len);
                    if self.posted <= 1 {
                        self.post_receives(provider)?;
                    }
                }
            }
            if self.awaits == 0 && self.sent < self.options.iterations {
                self.send(provider)?;
            }
        }
        Ok(())
    }

    fn check(&mut self, provider: &mut dyn Provider, len: u32) {
        let mut bytes = vec![0; self.target.len];
        provider.copy_out(self.target, 0, &mut bytes);
        let is_whole = len == self.options.size && bytes.iter().all(|&byte| byte == FILL);
        self.wrong += u64::from(!is_whole);
        bytes.fill(0);
        provider.put(self.target, 0, &bytes);
    }

    fn local(&self, region: &Region) -> Local {
        Local {
            key: region.lkey,
            address: region.address,
            len: self.options.size,
        }
    }

    fn send(&mut self, provider: &mut dyn Provider) -> Result<(), PingpongError> {
        let request = SendRequest {
            wr_id: SEND,
            work: Work::Send {
                local: self.local(self.source),
                immediate: None,
            },
            signaled: true,
            solicited: false,
        };
        provider.post_send(self.qpn, request)?;
        self.awaits = RECEIVE | SEND;
        Ok(())
    }

    fn post_receives(&mut self, provider: &mut dyn Provider) -> Result<(), PingpongError> {
        while self.posted < self.options.receives {
            let request = ReceiveRequest {
                wr_id: RECEIVE,
                local: self.local(self.target),
            };
            provider.post_receive(self.qpn, request)?;
            self.posted += 1;
        }
        Ok(())
    }
}
