//! Messages of one size over a reliable connection, as many as the client can keep under way.

use std::time::{Duration, Instant};

use roce::completion::Status;
use roce::packet::{Mtu, Service};
use roce::{
    Access, Completion, Counters, Fault, Local, QpConfig, Qpn, ReceiveRequest, Remote, SendRequest,
    Work,
};

use super::message::{self, CACHE_LINE, CYCLE, DONE, Keys, Report, VERSION};
use crate::provider::{Connection, GOODBYE, Provider, ProviderError, Region, linger};
use crate::talk::{PORT, Talk, TalkError};

/// What the client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// As ib_write_bw.
    Write,
    /// As ib_send_bw.
    Send,
    /// As ib_read_bw.
    Read,
}

/// What is measured. The defaults are perftest's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Where the other program waits, or this one.
    pub port: u16,
    /// Bytes of a message.
    pub size: u32,
    /// Messages.
    pub iterations: u64,
    /// The largest path MTU of this side; the smaller of both counts. `None`: what the interface carries.
    pub mtu: Option<Mtu>,
    /// Messages under way.
    pub posted: usize,
    /// Receives that are posted at once.
    pub receives: usize,
    /// What a peer may take for anything at all.
    pub patience: Duration,
}

impl Options {
    /// perftest's defaults for this test.
    pub fn new(verb: Verb) -> Self {
        Self {
            port: PORT,
            size: 65_536,
            iterations: match verb {
                Verb::Write => 5000,
                Verb::Send | Verb::Read => 1000,
            },
            mtu: None,
            posted: 128,
            receives: 512,
            patience: Duration::from_secs(30),
        }
    }
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// This side's queue pair.
    pub own: Keys,
    /// The other's.
    pub peer: Keys,
    /// The path MTU.
    pub mtu: Mtu,
    /// What this side has measured: the client, and who receives SENDs.
    pub measured: Option<Report>,
    /// What the other side says that it has measured.
    pub told: Option<Report>,
    /// What the queue pair has counted.
    pub counters: Option<Counters>,
}

/// Why it did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum PerftestError {
    /// This side.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The conversation.
    #[error(transparent)]
    Talk(#[from] TalkError),
    /// The other program is of another version.
    #[error("the other program is perftest {theirs}; this one speaks that of Debian 12, {}", version(&VERSION))]
    Version {
        /// What it says of itself.
        theirs: String,
    },
    /// It says something else.
    #[error(
        "the other program says something else than {0}: is it the same test, over a GID ::ffff:a.b.c.d (`-x`)?"
    )]
    Message(&'static str),
    /// A message was not sent, or not received.
    #[error("a message failed: {status}{}", because(.fault.as_ref()))]
    Failed {
        /// How.
        status: Status,
        /// Why the queue pair is in the state ERROR.
        fault: Option<Fault>,
    },
    /// Nothing has come for so long.
    #[error("nothing has come for {patience:?} after {done} messages")]
    Silent {
        /// For how long.
        patience: Duration,
        /// Messages before.
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

/// READs that this side has under way, or answers at once.
const READS: u16 = 16;
/// Messages between two signaled ones; fewer where fewer are under way.
const SIGNALED: usize = 32;

/// Measures with a server at `host`, or, without one, waits for a client.
///
/// # Errors
/// [`PerftestError`].
pub fn bandwidth(
    provider: &mut dyn Provider,
    verb: Verb,
    host: Option<&str>,
    options: &Options,
) -> Result<Outcome, PerftestError> {
    let mut talk = match host {
        Some(host) => Talk::connect(host, options.port, options.patience)?,
        None => Talk::accept(options.port, options.patience)?,
    };
    let cycle = greet(provider, &mut talk)?;
    // Small messages go round in the first bytes.
    let region = provider.register(options.size.max(cycle) as usize, Access::ALL)?;
    let config = QpConfig {
        max_sends: options.posted,
        max_receives: options.receives,
        ..QpConfig::new(Service::Reliable)
    };
    let made = provider.create(config, Access::ALL);
    let outcome = match made {
        Err(error) => Err(error.into()),
        Ok(qpn) => {
            let mut test = Test {
                verb,
                options,
                region: &region,
                qpn,
                posted: 0,
            };
            let outcome = test.run(provider, &mut talk);
            let gone = linger(provider, GOODBYE);
            provider.destroy(qpn);
            outcome.and_then(|outcome| Ok(gone.map(|()| outcome)?))
        }
    };
    provider.deregister(&region);
    outcome
}

/// Says which program this is, and how small messages go round: the larger of both ends' bytes.
fn greet(provider: &mut dyn Provider, talk: &mut Talk) -> Result<u32, PerftestError> {
    let theirs = talk.exchange(provider, VERSION)?;
    if theirs != VERSION {
        let theirs = version(&theirs);
        return Err(PerftestError::Version { theirs });
    }
    let theirs = u32::from_be_bytes(talk.exchange(provider, CYCLE.to_be_bytes())?);
    if theirs > MOST_CYCLE {
        return Err(PerftestError::Message("how small messages go round"));
    }
    talk.exchange(provider, CACHE_LINE.to_be_bytes())?;
    Ok(theirs.max(CYCLE))
}

/// Pages are no larger.
const MOST_CYCLE: u32 = 1 << 24;

struct Test<'a> {
    verb: Verb,
    options: &'a Options,
    region: &'a Region,
    qpn: Qpn,
    /// Receives.
    posted: usize,
}

impl Test<'_> {
    fn run(
        &mut self,
        provider: &mut dyn Provider,
        talk: &mut Talk,
    ) -> Result<Outcome, PerftestError> {
        let most = provider.max_mtu();
        let mtu = self.options.mtu.unwrap_or(most);
        let theirs = talk.exchange(provider, message::encode_mtu(mtu))?;
        let theirs = message::decode_mtu(theirs).ok_or(PerftestError::Message("an MTU"))?;
        let mtu = mtu.min(theirs);

        let receives = self.verb == Verb::Send && !talk.is_client();
        if receives {
            self.post_receives(provider)?;
        }
        let own = self.keys(provider);
        let peer = self.exchange_keys(provider, talk, &own)?;
        let connection = Connection {
            max_reads: peer.reads.clamp(1, 128) as u8,
            max_peer_reads: own.reads as u8,
            ..Connection::new(peer.gid, peer.qpn, peer.psn, own.psn, mtu)
        };
        provider.connect(self.qpn, &connection)?;
        // Both are connected; both are ready.
        for _ in 0..self.turns_before() {
            self.exchange_keys(provider, talk, &own)?;
        }
        let measured = match (talk.is_client(), self.verb) {
            (true, _) => Some(self.send_all(provider, &peer)?),
            (false, Verb::Send) => Some(self.receive_all(provider)?),
            // The device does it while this waits for a word.
            (false, Verb::Write | Verb::Read) => None,
        };
        let mut told = None;
        if self.verb != Verb::Send {
            self.exchange_keys(provider, talk, &own)?;
            let mut fields = [[0; 8]; 5];
            let report = measured.unwrap_or(Report {
                size: self.options.size.into(),
                iterations: self.options.iterations,
                peak: 0.0,
                average: 0.0,
                rate: 0.0,
            });
            for (theirs, ours) in fields.iter_mut().zip(report.encode()) {
                *theirs = talk.exchange(provider, ours)?;
            }
            told = (!talk.is_client()).then(|| Report::decode(fields));
        }
        self.exchange_keys(provider, talk, &own)?;
        // All is measured: who is gone before the goodbye does no harm.
        let _ = talk.say(DONE);
        let _ = talk.hear::<{ DONE.len() }>(provider);
        Ok(Outcome {
            own,
            peer,
            mtu,
            measured,
            told,
            counters: provider.counters(self.qpn),
        })
    }

    /// Keys are said again, when one is connected and when one is ready.
    fn turns_before(&self) -> usize {
        match self.verb {
            Verb::Write | Verb::Read => 2,
            Verb::Send => 3,
        }
    }

    fn keys(&self, provider: &mut dyn Provider) -> Keys {
        let is_remote = self.verb != Verb::Send;
        Keys {
            reads: match self.verb {
                Verb::Read => READS,
                Verb::Write | Verb::Send => 1,
            },
            qpn: self.qpn,
            psn: provider.draw_psn(),
            rkey: if is_remote { self.region.rkey } else { 0 },
            address: self.region.address,
            gid: provider.gid(),
        }
    }

    /// While packets come, the other program has something else to do than to speak.
    fn exchange_keys(
        &self,
        provider: &mut dyn Provider,
        talk: &mut Talk,
        own: &Keys,
    ) -> Result<Keys, PerftestError> {
        talk.watch(self.qpn);
        let theirs = talk.exchange(provider, own.encode())?;
        Keys::decode(&theirs).ok_or(PerftestError::Message("a queue pair's keys"))
    }

    fn local(&self) -> Local {
        Local {
            key: self.region.lkey,
            address: self.region.address,
            len: self.options.size,
        }
    }

    fn work(&self, peer: &Keys) -> Work {
        let (local, remote) = (
            self.local(),
            Remote {
                address: peer.address,
                rkey: peer.rkey,
            },
        );
        let immediate = None;
        match self.verb {
            Verb::Write => Work::Write {
                local,
                remote,
                immediate,
            },
            Verb::Send => Work::Send { local, immediate },
            Verb::Read => Work::Read { local, remote },
        }
    }

    /// The client's part.
    fn send_all(&self, provider: &mut dyn Provider, peer: &Keys) -> Result<Report, PerftestError> {
        let (iterations, depth) = (self.options.iterations, self.options.posted as u64);
        let each = SIGNALED.min(self.options.posted) as u64;
        let work = self.work(peer);
        let (mut posted, mut done) = (0, 0);
        let mut meter = Meter::start(self.options);
        while done < iterations {
            while posted < iterations && posted - done < depth {
                posted += 1;
                let request = SendRequest {
                    wr_id: posted,
                    work,
                    signaled: posted % each == 0 || posted == iterations,
                    solicited: false,
                };
                provider.post_send(self.qpn, request)?;
            }
            let completion = self.completion(provider, done, &mut meter)?;
            done = completion.wr_id;
            meter.reached(done);
        }
        Ok(meter.report())
    }

    /// Who receives SENDs.
    fn receive_all(&mut self, provider: &mut dyn Provider) -> Result<Report, PerftestError> {
        let mut meter = Meter::start(self.options);
        let mut done = 0;
        while done < self.options.iterations {
            self.completion(provider, done, &mut meter)?;
            done += 1;
            self.posted -= 1;
            if self.posted * 2 <= self.options.receives {
                self.post_receives(provider)?;
            }
            meter.reached(done);
        }
        Ok(meter.report())
    }

    fn post_receives(&mut self, provider: &mut dyn Provider) -> Result<(), PerftestError> {
        while self.posted < self.options.receives {
            let request = ReceiveRequest {
                wr_id: 0,
                local: self.local(),
            };
            provider.post_receive(self.qpn, request)?;
            self.posted += 1;
        }
        Ok(())
    }

    fn completion(
        &self,
        provider: &mut dyn Provider,
        done: u64,
        meter: &mut Meter,
    ) -> Result<Completion, PerftestError> {
        let patience = self.options.patience;
        let mut deadline = Instant::now() + patience;
        let mut packets = None;
        loop {
            if let Some(completion) = provider.poll()? {
                if completion.status == Status::Success {
                    return Ok(completion);
                }
                return Err(PerftestError::Failed {
                    status: completion.status,
                    fault: provider.fault(self.qpn),
                });
            }
            // A long message has no completion for a while.
            let came = provider.arrivals(self.qpn);
            if came != packets {
                packets = came;
                deadline = Instant::now() + patience;
            }
            if Instant::now() > deadline {
                return Err(PerftestError::Silent { patience, done });
            }
            provider.wait(patience)?;
            // A receiver's time begins with its first message.
            if done == 0 && self.posted > 0 {
                meter.restart();
            }
        }
    }
}

/// How fast messages are done.
struct Meter {
    size: u64,
    start: Instant,
    last: (Instant, u64),
    done: u64,
    /// Messages a second.
    peak: f64,
}

impl Meter {
    fn start(options: &Options) -> Self {
        let now = Instant::now();
        Self {
            size: options.size.into(),
            start: now,
            last: (now, 0),
            done: 0,
            peak: 0.0,
        }
    }

    fn restart(&mut self) {
        self.start = Instant::now();
        self.last = (self.start, 0);
    }

    /// So many are done now.
    fn reached(&mut self, done: u64) {
        let now = Instant::now();
        let (since, before) = self.last;
        self.done = done;
        // As long as clocks and batches say nothing there is no peak.
        if done - before >= SIGNALED as u64 {
            let rate = (done - before) as f64 / (now - since).as_secs_f64();
            self.peak = self.peak.max(rate);
            self.last = (now, done);
        }
    }

    fn report(&self) -> Report {
        let seconds = self.start.elapsed().as_secs_f64();
        let rate = self.done as f64 / seconds;
        let mib = self.size as f64 / f64::from(1 << 20);
        Report {
            size: self.size,
            iterations: self.done,
            peak: self.peak.max(rate) * mib,
            average: rate * mib,
            rate: rate / 1e6,
        }
    }
}
