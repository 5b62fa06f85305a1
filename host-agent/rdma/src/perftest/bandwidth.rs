//! Messages of one size over a reliable connection, as many as the client can keep under way.

use std::time::{Duration, Instant};

use roce::packet::{Mtu, Service};
use roce::{Completion, Counters, Local, QpConfig, ReceiveRequest, Remote, SendRequest, Work};

use super::message::{Keys, Report};
use super::session::{self, Opening, PerftestError, Session, Verb};
use crate::provider::Provider;
use crate::talk::PORT;

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
    let opening = Opening {
        host,
        port: options.port,
        patience: options.patience,
        config: QpConfig {
            max_sends: options.posted,
            max_receives: options.receives,
            ..QpConfig::new(Service::Reliable)
        },
    };
    // Small messages go round in the first bytes.
    let len = |cycle| options.size.max(cycle) as usize;
    session::with(provider, opening, len, |session| {
        let mut test = Test {
            verb,
            options,
            session,
            posted: 0,
        };
        test.run()
    })
}

struct Test<'t, 's> {
    verb: Verb,
    options: &'t Options,
    session: &'t mut Session<'s>,
    /// Receives.
    posted: usize,
}

impl Test<'_, '_> {
    fn run(&mut self) -> Result<Outcome, PerftestError> {
        let mtu = self.session.agree_mtu(self.options.mtu)?;
        let is_client = self.session.talk.is_client();
        if self.verb == Verb::Send && !is_client {
            self.post_receives()?;
        }
        let address = self.session.region.address;
        let own = self.session.own_keys(self.verb, address);
        let peer = self.session.exchange_keys(&own)?;
        self.session.connect(&own, &peer, mtu)?;
        // Both are connected; both are ready.
        for _ in 0..self.turns_before() {
            self.session.exchange_keys(&own)?;
        }
        let measured = match (is_client, self.verb) {
            (true, _) => Some(self.send_all(&peer)?),
            (false, Verb::Send) => Some(self.receive_all()?),
            // The device does it while this waits for a word.
            (false, Verb::Write | Verb::Read) => None,
        };
        let mut told = None;
        if self.verb != Verb::Send {
            self.session.exchange_keys(&own)?;
            let mut fields = [[0; 8]; 5];
            let report = measured.unwrap_or(Report {
                size: self.options.size.into(),
                iterations: self.options.iterations,
                peak: 0.0,
                average: 0.0,
                rate: 0.0,
            });
            for (theirs, ours) in fields.iter_mut().zip(report.encode()) {
                *theirs = self.session.exchange(ours)?;
            }
            told = (!is_client).then(|| Report::decode(fields));
        }
        self.session.exchange_keys(&own)?;
        self.session.say_goodbye();
        let Session { provider, qpn, .. } = &self.session;
        Ok(Outcome {
            own,
            peer,
            mtu,
            measured,
            told,
            counters: provider.counters(*qpn),
        })
    }

    /// Keys are said again, when one is connected and when one is ready.
    fn turns_before(&self) -> usize {
        match self.verb {
            Verb::Write | Verb::Read => 2,
            Verb::Send => 3,
        }
    }

    fn local(&self) -> Local {
        let region = self.session.region;
        Local {
            key: region.lkey,
            address: region.address,
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
    fn send_all(&mut self, peer: &Keys) -> Result<Report, PerftestError> {
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
                let Session { provider, qpn, .. } = &mut *self.session;
                provider.post_send(*qpn, request)?;
            }
            let completion = self.completion(done, &mut meter)?;
            done = completion.wr_id;
            meter.reached(done);
        }
        Ok(meter.report())
    }

    /// Who receives SENDs.
    fn receive_all(&mut self) -> Result<Report, PerftestError> {
        let mut meter = Meter::start(self.options);
        let mut done = 0;
        while done < self.options.iterations {
            self.completion(done, &mut meter)?;
            done += 1;
            self.posted -= 1;
            if self.posted * 2 <= self.options.receives {
                self.post_receives()?;
            }
            meter.reached(done);
        }
        Ok(meter.report())
    }

    fn post_receives(&mut self) -> Result<(), PerftestError> {
        while self.posted < self.options.receives {
            let request = ReceiveRequest {
                wr_id: 0,
                local: self.local(),
            };
            let Session { provider, qpn, .. } = &mut *self.session;
            provider.post_receive(*qpn, request)?;
            self.posted += 1;
        }
        Ok(())
    }

    fn completion(&mut self, done: u64, meter: &mut Meter) -> Result<Completion, PerftestError> {
        let patience = self.options.patience;
        let mut deadline = Instant::now() + patience;
        let mut packets = None;
        loop {
            if let Some(completion) = self.session.poll()? {
                return Ok(completion);
            }
            // A long message has no completion for a while.
            let Session { provider, qpn, .. } = &mut *self.session;
            let came = provider.arrivals(*qpn);
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
