//! Bandwidth test: messages of one size over a reliable connection, as many as the client can keep in flight.

use std::time::{Duration, Instant};

use roce::completion::WorkKind;
use roce::packet::{Mtu, Service};
use roce::{Counters, Local, QpConfig, ReceiveRequest, Remote, SendRequest, Work};

use super::message::{Keys, Report, Verb};
use super::session::{self, Opening, PerftestError, Session};
use super::terms::Terms;
use crate::provider::Provider;
use crate::talk::PORT;

/// Options of the bandwidth test. The defaults are those of perftest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BandwidthOptions {
    /// TCP port of the server.
    pub port: u16,
    /// Length of each message in bytes.
    pub size: u32,
    /// Number of messages to send.
    pub iterations: u64,
    /// Maximum path MTU of this side (the smaller one of both sides is used); `None`: that of the interface.
    pub mtu: Option<Mtu>,
    /// Maximum number of messages in flight.
    pub posted: usize,
    /// Number of receives that the receiver posts at once.
    pub receives: usize,
    /// Maximum time without progress of the peer, after which the test fails.
    pub patience: Duration,
    /// Whether to test all message sizes of [`SIZES`] instead of `size`.
    pub all_sizes: bool,
    /// Time for which the sender posts messages, instead of `iterations`. Not available for bidirectional SENDs: neither side
    /// would know when the other has finished.
    pub duration: Option<Duration>,
    /// Whether both sides send at once; a report then covers both directions together.
    pub is_bidirectional: bool,
    /// Whether this side sends its report in Gbit/s, as perftest does with `--report_gbits`.
    pub reports_gbits: bool,
}

/// Message sizes in bytes in a test of all sizes: the powers of two from 2 bytes to 8 MiB, as in perftest.
pub const SIZES: [u32; 23] = {
    let (mut sizes, mut at) = ([2; 23], 1);
    while at < 23 {
        sizes[at] = 2 * sizes[at - 1];
        at += 1;
    }
    sizes
};

impl BandwidthOptions {
    /// Options with perftest's defaults for a test of this operation.
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

/// Result of the bandwidth test.
#[derive(Debug, Clone, PartialEq)]
pub struct BandwidthOutcome {
    /// Description of this side's queue pair and memory.
    pub own: Keys,
    /// Description of the peer's queue pair and memory.
    pub peer: Keys,
    /// Path MTU that both sides use.
    pub mtu: Mtu,
    /// Reports of this side, by message size; empty at the server of a WRITE or READ test that is not bidirectional.
    pub sizes: Vec<Report>,
    /// The last of this side's reports; `None` if this side has none.
    pub measured: Option<Report>,
    /// Report that the other side sent; `None` if it sent none.
    pub told: Option<Report>,
    /// Counters of this side's queue pair; `None` if the provider does not count.
    pub counters: Option<Counters>,
}

/// How long a side waits for frames before it checks the clock and the TCP connection.
const LOOK: Duration = Duration::from_millis(1);
/// Every 32nd message is signaled (causes a completion); more of them, if fewer than 32 may be in flight.
const SIGNALED: usize = 32;
/// Minimum interval over which a peak rate is measured. A program that shares its processor core may poll completions late, and
/// then many within microseconds; a shorter interval would take this burst for a high rate.
const PEAK_INTERVAL: Duration = Duration::from_millis(100);

/// Runs the bandwidth test with the server at `host`, or waits for a client if `host` is `None`.
///
/// # Errors
/// [`PerftestError`].
pub fn bandwidth(
    provider: &mut dyn Provider,
    verb: Verb,
    host: Option<&str>,
    options: &BandwidthOptions,
) -> Result<BandwidthOutcome, PerftestError> {
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
    // Small messages use the first bytes in turn.
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
    /// Options of the test; `size` is the message size that is being tested.
    options: BandwidthOptions,
    /// Length of the largest message in bytes.
    largest: u32,
    sends: bool,
    /// Whether this side posts receives for the other side's SENDs.
    receives: bool,
    session: &'t mut Session<'s>,
    /// Number of receives that are posted now.
    posted: usize,
}

impl Test<'_, '_> {
    fn run(&mut self) -> Result<BandwidthOutcome, PerftestError> {
        let mtu = self.session.agree_mtu(self.options.mtu)?;
        self.post_receives()?;
        let address = self.session.region.address;
        let own = self.session.own_keys(self.verb, address);
        let peer = self.session.exchange_keys(&own)?;
        self.session.connect(&own, &peer, mtu)?;
        // After these two exchanges, both sides are connected.
        for _ in 0..2 {
            self.session.exchange_keys(&own)?;
        }
        let sizes: &[u32] = match self.options.all_sizes {
            true => &SIZES,
            false => &[self.options.size],
        };
        let mut outcome = BandwidthOutcome {
            own,
            peer,
            mtu,
            sizes: Vec::new(),
            measured: None,
            told: None,
            counters: None,
        };
        // A device answers WRITEs and READs while its program waits for a message.
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

    /// Measures messages of the current size. If both sides take part, they begin and end together.
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

    /// Exchanges reports in MiB/s with the other side, and returns its report; a side without measurement sends zeros.
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

    /// Receive buffer for the largest message, since a receive posted for one message size may be used for the next.
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

    /// Sends messages, receives them, or both, until all messages of this size are complete.
    fn transfer(&mut self, peer: &Keys) -> Result<Report, PerftestError> {
        let BandwidthOptions {
            iterations,
            duration,
            patience,
            ..
        } = self.options;
        let depth = self.options.posted as u64;
        let each = SIGNALED.min(self.options.posted) as u64;
        let work = self.work(peer);
        let (mut posted, mut sent, mut came) = (0, 0, 0);
        // Whether the last posted message is signaled.
        let mut is_signaled = true;
        let options = self.options;
        let mut meter = Meter::start(&options);
        let began = Instant::now();
        let mut deadline = began + patience;
        let mut packets = None;
        loop {
            let is_over = duration.is_some_and(|duration| began.elapsed() >= duration);
            // The sender sends this message after the completions of all its messages; those have then arrived here.
            let has_word = duration.is_some() && self.session.talk.has_word();
            // At the end of the time, one more message is sent if the last one is not signaled.
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
            // A long message takes a while until its completion.
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
            // The end of the time, and a TCP message, come without a frame.
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

/// Measures average and peak rate of completed messages.
struct Meter {
    size: u64,
    start: Instant,
    last: (Instant, u64),
    done: u64,
    /// Highest rate so far in messages per second.
    peak: f64,
}

impl Meter {
    fn start(options: &BandwidthOptions) -> Self {
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

    /// Records that `done` messages in total are complete at `now`.
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

    /// Ratio of the peak to the link's rate, for batches of messages that are seen with these gaps in microseconds.
    fn peak(batch: u64, gaps_us: &[u64], batches: u64) -> f64 {
        let options = BandwidthOptions::new(Verb::Write);
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
            // A slow link: 12 MiB/s, two batches seen at once.
            (32, vec![340_000, 5]),
            (32, vec![510_000, 1, 1]),
            // A fast link, whose reader sleeps now and then.
            (32, vec![3_000, 1, 1, 1, 2_995, 2, 2, 2]),
            // Single messages, as a receiver counts them.
            (1, vec![9_000, 1, 1, 1, 1, 1, 1, 1, 1]),
        ] {
            let times = peak(batch, &gaps_us, 3_000);
            assert!((0.8..1.6).contains(&times), "{gaps_us:?}: {times}");
        }
        // Too short for a peak: the report has only the average.
        assert_eq!(peak(32, &[1_000], 50), 0.0);
    }
}
