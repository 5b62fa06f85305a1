//! Messages of one size over a reliable connection, as many as the client can keep under way.

use std::time::{Duration, Instant};

use roce::completion::WorkKind;
use roce::packet::{Mtu, Service};
use roce::{Counters, Local, QpConfig, ReceiveRequest, Remote, SendRequest, Work};

use super::message::{Keys, Report, Verb};
use super::session::{self, Opening, PerftestError, Session};
use super::terms::Terms;
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
    /// All of [`SIZES`] one after the other, in place of `size`.
    pub all_sizes: bool,
    /// The sender posts messages for this long, in place of `iterations`. Not for SENDs of both sides: neither would know when the
    /// other has ended.
    pub duration: Option<Duration>,
    /// Both sides send at once; a report is then that of both directions together.
    pub is_bidirectional: bool,
    /// Reports go to the other side in Gbit/s, as those of a perftest with `--report_gbits`.
    pub reports_gbits: bool,
}

/// Message sizes of a test of all sizes, in bytes: powers of two from 2 to 8 MiB, as perftest has them.
pub const SIZES: [u32; 23] = {
    let (mut sizes, mut at) = ([2; 23], 1);
    while at < 23 {
        sizes[at] = 2 * sizes[at - 1];
        at += 1;
    }
    sizes
};

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
            all_sizes: false,
            duration: None,
            is_bidirectional: false,
            reports_gbits: false,
        }
    }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// This side's queue pair.
    pub own: Keys,
    /// The other's.
    pub peer: Keys,
    /// The path MTU.
    pub mtu: Mtu,
    /// What this side has measured, by size: the client, who receives SENDs, and both sides of a bidirectional test.
    pub sizes: Vec<Report>,
    /// The last of these.
    pub measured: Option<Report>,
    /// What the other side says that it has measured.
    pub told: Option<Report>,
    /// What the queue pair has counted.
    pub counters: Option<Counters>,
}

/// How long a side waits for frames before it looks at the clock and for a word of the other side.
const LOOK: Duration = Duration::from_millis(1);
/// Messages between two signaled ones; fewer where fewer are under way.
const SIGNALED: usize = 32;
/// The shortest interval of a peak. Completions that were there already are polled within microseconds, and a program that shares
/// its core sees them milliseconds late: neither may pass for speed.
const PEAK_INTERVAL: Duration = Duration::from_millis(100);

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
        terms: Terms {
            verb,
            is_latency: false,
            all_sizes: options.all_sizes,
            by_duration: options.duration.is_some(),
            is_bidirectional: options.is_bidirectional,
            size: options.size,
            messages: options.iterations,
        },
    };
    let largest = match options.all_sizes {
        true => SIZES[SIZES.len() - 1],
        false => options.size,
    };
    // Small messages go round in the first bytes.
    let len = |cycle| largest.max(cycle) as usize;
    session::with(provider, opening, len, |session| {
        let is_client = session.talk.is_client();
        let mut test = Test {
            verb,
            options: *options,
            largest,
            sends: is_client || options.is_bidirectional,
            receives: verb == Verb::Send && (!is_client || options.is_bidirectional),
            session,
            posted: 0,
        };
        test.run()
    })
}

struct Test<'t, 's> {
    verb: Verb,
    /// With the size that is measured now.
    options: Options,
    /// Bytes of the largest message.
    largest: u32,
    sends: bool,
    /// Whether it has receives for the other side's SENDs.
    receives: bool,
    session: &'t mut Session<'s>,
    /// Receives.
    posted: usize,
}

impl Test<'_, '_> {
    fn run(&mut self) -> Result<Outcome, PerftestError> {
        let mtu = self.session.agree_mtu(self.options.mtu)?;
        self.post_receives()?;
        let address = self.session.region.address;
        let own = self.session.own_keys(self.verb, address);
        let peer = self.session.exchange_keys(&own)?;
        self.session.connect(&own, &peer, mtu)?;
        // Both are connected.
        for _ in 0..2 {
            self.session.exchange_keys(&own)?;
        }
        let sizes: &[u32] = match self.options.all_sizes {
            true => &SIZES,
            false => &[self.options.size],
        };
        let mut outcome = Outcome {
            own,
            peer,
            mtu,
            sizes: Vec::new(),
            measured: None,
            told: None,
            counters: None,
        };
        // A device answers WRITEs and READs while its program waits for a word.
        if self.sends || self.receives {
            for size in sizes {
                self.options.size = *size;
                let report = self.measure(&own, &peer)?;
                outcome.sizes.push(report);
            }
        }
        outcome.measured = outcome.sizes.last().copied();
        if self.verb != Verb::Send && !self.options.is_bidirectional {
            self.session.exchange_keys(&own)?;
            let theirs = self.exchange_reports(outcome.measured)?;
            outcome.told = (!self.session.talk.is_client()).then_some(theirs);
        }
        self.session.exchange_keys(&own)?;
        self.session.say_goodbye();
        let Session { provider, qpn, .. } = &self.session;
        outcome.counters = provider.counters(*qpn);
        Ok(outcome)
    }

    /// Messages of one size. Where both sides have a part in it, they begin and end it together.
    fn measure(&mut self, own: &Keys, peer: &Keys) -> Result<Report, PerftestError> {
        let is_common = self.verb == Verb::Send || self.options.is_bidirectional;
        self.post_receives()?;
        if is_common {
            self.session.exchange_keys(own)?;
        }
        let mut report = self.transfer(peer)?;
        if self.options.is_bidirectional {
            report = report.with(self.exchange_reports(Some(report))?);
        }
        if is_common && self.options.all_sizes {
            self.session.exchange_keys(own)?;
        }
        Ok(report)
    }

    /// The other side's report, in MiB/s; a side that has measured nothing sends zeros.
    fn exchange_reports(&mut self, own: Option<Report>) -> Result<Report, PerftestError> {
        let nothing = Report {
            size: self.options.size.into(),
            iterations: self.options.iterations,
            peak: 0.0,
            average: 0.0,
            rate: 0.0,
        };
        let own = own.unwrap_or(nothing);
        let own = match self.options.reports_gbits {
            true => own.in_gbits(),
            false => own,
        };
        let mut fields = [[0; 8]; 5];
        for (theirs, ours) in fields.iter_mut().zip(own.encode()) {
            *theirs = self.session.exchange(ours)?;
        }
        Ok(Report::decode(fields).in_mib())
    }

    /// Receives have room for the largest message: those of one size may be left for the next.
    fn room(&self) -> Local {
        Local {
            len: self.largest,
            ..self.local()
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

    /// Sends messages, receives them, or both, until all are done.
    fn transfer(&mut self, peer: &Keys) -> Result<Report, PerftestError> {
        let Options {
            iterations,
            duration,
            patience,
            ..
        } = self.options;
        let depth = self.options.posted as u64;
        let each = SIGNALED.min(self.options.posted) as u64;
        let work = self.work(peer);
        let (mut posted, mut sent, mut came) = (0, 0, 0);
        // Whether the last message that was posted has a completion.
        let mut is_signaled = true;
        let options = self.options;
        let mut meter = Meter::start(&options);
        let began = Instant::now();
        let mut deadline = began + patience;
        let mut packets = None;
        loop {
            let is_over = duration.is_some_and(|duration| began.elapsed() >= duration);
            // The sender speaks when it has completions of all its messages: those are in the queue here then.
            let has_word = duration.is_some() && self.session.talk.has_word();
            // When the time is over, one more is sent if the last has no completion.
            let has_more = |posted, is_signaled: bool| match duration {
                Some(_) => !is_over || !is_signaled,
                None => posted < iterations,
            };
            while self.sends && has_more(posted, is_signaled) && posted - sent < depth {
                posted += 1;
                let is_last = is_over || duration.is_none() && posted == iterations;
                is_signaled = is_last || posted % each == 0;
                let request = SendRequest {
                    wr_id: posted,
                    work,
                    signaled: is_signaled,
                    solicited: false,
                };
                let Session { provider, qpn, .. } = &mut *self.session;
                provider.post_send(*qpn, request)?;
            }
            if let Some(completion) = self.session.poll()? {
                deadline = Instant::now() + patience;
                if completion.kind == WorkKind::Receive {
                    came += 1;
                    self.posted -= 1;
                    if self.posted * 2 <= self.options.receives {
                        self.post_receives()?;
                    }
                } else {
                    sent = completion.wr_id;
                }
                meter.reached(if self.sends { sent } else { came }, Instant::now());
                continue;
            }
            let has_sent = !self.sends || sent == posted && !has_more(posted, is_signaled);
            let has_received =
                !self.receives || has_word || came == iterations && duration.is_none();
            if has_sent && has_received {
                return Ok(meter.report());
            }
            // A long message has no completion for a while.
            let Session { provider, qpn, .. } = &mut *self.session;
            let arrivals = provider.arrivals(*qpn);
            if arrivals != packets {
                packets = arrivals;
                deadline = Instant::now() + patience;
            }
            if Instant::now() > deadline {
                let done = if self.sends { sent } else { came };
                return Err(PerftestError::Silent { patience, done });
            }
            // The end of a duration, and a word, come without a frame.
            provider.wait(duration.map_or(patience, |_| LOOK))?;
            // A receiver's time begins with its first message.
            if came == 0 && !self.sends {
                meter.restart();
            }
        }
    }

    fn post_receives(&mut self) -> Result<(), PerftestError> {
        while self.receives && self.posted < self.options.receives {
            let request = ReceiveRequest {
                wr_id: 0,
                local: self.room(),
            };
            let Session { provider, qpn, .. } = &mut *self.session;
            provider.post_receive(*qpn, request)?;
            self.posted += 1;
        }
        Ok(())
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
    fn reached(&mut self, done: u64, now: Instant) {
        let (since, before) = self.last;
        self.done = done;
        let interval = now - since;
        if interval >= PEAK_INTERVAL {
            let rate = (done - before) as f64 / interval.as_secs_f64();
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Batches of messages, each seen so many microseconds after the one before: the peak, as a multiple of the link's rate.
    fn peak(batch: u64, gaps_us: &[u64], batches: u64) -> f64 {
        let options = Options::new(Verb::Write);
        let mut meter = Meter::start(&options);
        let (mut at, mut done) = (meter.start, 0);
        let mut waited_us = 0;
        for (_, gap) in (0..batches).zip(gaps_us.iter().cycle()) {
            at += Duration::from_micros(*gap);
            waited_us += gap;
            done += batch;
            meter.reached(done, at);
        }
        meter.peak / (done as f64 / (waited_us as f64 / 1e6))
    }

    #[test]
    fn completions_that_are_polled_at_once_are_no_peak() {
        for (batch, gaps_us) in [
            // A slow link: 12 MiB/s, two batches seen in one turn.
            (32, vec![340_000, 5]),
            (32, vec![510_000, 1, 1]),
            // A fast one, whose reader sleeps now and then.
            (32, vec![3_000, 1, 1, 1, 2_995, 2, 2, 2]),
            // Single messages, as a receiver counts them.
            (1, vec![9_000, 1, 1, 1, 1, 1, 1, 1, 1]),
        ] {
            let times = peak(batch, &gaps_us, 3_000);
            assert!((0.8..1.6).contains(&times), "{gaps_us:?}: {times}");
        }
        // Too short for a peak: the report has the average.
        assert_eq!(peak(32, &[1_000], 50), 0.0);
    }
}
