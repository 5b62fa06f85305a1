//! Latency test: messages of one size over a reliable connection, one at a time; back and forth as in ib_write_lat and
//! ib_send_lat, or one READ after another as in ib_read_lat.

use std::time::{Duration, Instant};

use roce::completion::WorkKind;
use roce::packet::{Mtu, Service};
use roce::{Counters, Local, QpConfig, ReceiveRequest, Remote, SendRequest, Work};

use super::bandwidth::SIZES;
use super::message::{Keys, Verb};
use super::session::{self, Opening, PerftestError, Session};
use super::terms::Terms;
use crate::provider::Provider;
use crate::talk::PORT;

/// Options of the latency test. The defaults are those of perftest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyOptions {
    /// TCP port of the server.
    pub port: u16,
    /// Length of each message in bytes.
    pub size: u32,
    /// Number of messages of each side, at least two.
    pub iterations: u64,
    /// Maximum path MTU of this side (the smaller one of both sides is used); `None`: that of the interface.
    pub mtu: Option<Mtu>,
    /// Maximum time without progress of the peer, after which the test fails.
    pub patience: Duration,
    /// Whether to test all message sizes of [`SIZES`] instead of `size`.
    pub all_sizes: bool,
}

impl Default for LatencyOptions {
    fn default() -> Self {
        Self {
            port: PORT,
            size: 2,
            iterations: 1000,
            mtu: None,
            patience: Duration::from_secs(30),
            all_sizes: false,
        }
    }
}

/// Result of the latency test.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyOutcome {
    /// Description of this side's queue pair and memory.
    pub own: Keys,
    /// Description of the peer's queue pair and memory.
    pub peer: Keys,
    /// Path MTU that both sides use.
    pub mtu: Mtu,
    /// Message size in bytes, and latencies of messages of this size; empty at the side whose memory is read.
    pub sizes: Vec<(u32, Latencies)>,
    /// The last latencies in `sizes`; `None` if it is empty.
    pub measured: Option<Latencies>,
    /// Counters of this side's queue pair; `None` if the provider does not count.
    pub counters: Option<Counters>,
}

/// Statistics of latencies in microseconds, named as perftest's columns. A latency is the time from one posted message to the
/// next: half of it for WRITEs and SENDs, which is one direction, and all of it for READs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latencies {
    /// Minimum time in microseconds.
    pub min: f64,
    /// Maximum time in microseconds.
    pub max: f64,
    /// Median of the times in microseconds.
    pub typical: f64,
    /// Arithmetic mean of the times in microseconds.
    pub average: f64,
    /// Standard deviation of the times in microseconds.
    pub deviation: f64,
    /// 99th percentile of the times in microseconds.
    pub percentile_99: f64,
    /// 99.9th percentile of the times in microseconds.
    pub percentile_99_9: f64,
}

/// Interval at which this side polls its memory for a message that arrives without a completion.
const LOOK: Duration = Duration::from_micros(20);
/// Capacity of the send queue in messages: more than one, since a reply may arrive before an acknowledgement.
const SENDS: usize = 16;
/// Maximum number of receives that a side posts in advance.
const RECEIVES: u64 = 512;

/// Runs the latency test with the server at `host`, or waits for a client if `host` is `None`.
///
/// # Errors
/// [`PerftestError`].
pub fn latency(
    provider: &mut dyn Provider,
    verb: Verb,
    host: Option<&str>,
    options: &LatencyOptions,
) -> Result<LatencyOutcome, PerftestError> {
    let opening = Opening {
        host,
        port: options.port,
        patience: options.patience,
        config: QpConfig {
            max_sends: SENDS,
            max_receives: RECEIVES as usize,
            ..QpConfig::new(Service::Reliable)
        },
        terms: Terms {
            verb,
            is_latency: true,
            all_sizes: options.all_sizes,
            by_duration: false,
            is_bidirectional: false,
            size: options.size,
            messages: options.iterations,
        },
    };
    let largest = match options.all_sizes {
        true => SIZES[SIZES.len() - 1],
        false => options.size,
    };
    // The first half is for sent messages, the second for received ones.
    session::with(
        provider,
        opening,
        |_| 2 * largest as usize,
        |session| {
            let mut test = Test {
                verb,
                options: *options,
                largest,
                stamps: Vec::new(),
                session,
            };
            test.run()
        },
    )
}

struct Test<'t, 's> {
    verb: Verb,
    /// Options of the test; `size` is the message size that is being tested.
    options: LatencyOptions,
    /// Length of the largest message in bytes. Memory has so many bytes for sent messages, then so many for received ones.
    largest: u32,
    /// Time at which each message of the current size was posted.
    stamps: Vec<Instant>,
    session: &'t mut Session<'s>,
}

/// Progress of the test for one message size.
#[derive(Default)]
struct Done {
    /// Number of messages posted, number completed, and number received from the peer.
    posted: u64,
    sent: u64,
    came: u64,
    /// Number of receives that were posted.
    receives: u64,
}

impl Test<'_, '_> {
    fn run(&mut self) -> Result<LatencyOutcome, PerftestError> {
        let mtu = self.session.agree_mtu(self.options.mtu)?;
        let is_client = self.session.talk.is_client();
        let target = self.session.region.address + u64::from(self.largest);
        let own = self.session.own_keys(self.verb, target);
        let peer = self.session.exchange_keys(&own)?;
        self.session.connect(&own, &peer, mtu)?;
        let sizes: &[u32] = match self.options.all_sizes {
            true => &SIZES,
            false => &[self.options.size],
        };
        let measures = is_client || self.verb != Verb::Read;
        let mut measured = Vec::new();
        for (number, size) in sizes.iter().enumerate() {
            self.options.size = *size;
            self.stamps.clear();
            let mut done = Done::default();
            if self.verb == Verb::Send {
                self.post_receives(&mut done)?;
            }
            // Both sides are connected; then both are ready. Before the next size, both are ready again.
            let turns = if number == 0 { 3 } else { 1 };
            for _ in 0..turns {
                self.session.exchange_keys(&own)?;
            }
            match self.verb {
                Verb::Read if is_client => self.read_all(&peer)?,
                // The device answers while this side waits for a message.
                Verb::Read => {}
                Verb::Write => self.play(&peer, !is_client, &mut done)?,
                Verb::Send => self.play(&peer, is_client, &mut done)?,
            }
            if measures {
                measured.push((*size, latencies(&self.stamps, self.verb)));
            }
        }
        // ib_write_lat exchanges nothing more.
        if self.verb != Verb::Write {
            self.session.exchange_keys(&own)?;
            self.session.say_goodbye();
        }
        let Session { provider, qpn, .. } = &self.session;
        Ok(LatencyOutcome {
            own,
            peer,
            mtu,
            measured: measured.last().map(|(_, of)| *of),
            sizes: measured,
            counters: provider.counters(*qpn),
        })
    }

    /// Sends messages back and forth until both sides have sent and received all messages of this size.
    fn play(&mut self, peer: &Keys, is_first: bool, done: &mut Done) -> Result<(), PerftestError> {
        let iterations = self.options.iterations;
        let mut quiet_since = Instant::now();
        while done.sent < iterations || done.came < iterations {
            // Each message answers the previous one; the first answers none.
            let answered = done.came + u64::from(is_first);
            if done.posted < iterations && done.posted < answered {
                self.post(peer, done.posted + 1)?;
                done.posted += 1;
                quiet_since = Instant::now();
            }
            if self.has_progressed(done)? {
                quiet_since = Instant::now();
                continue;
            }
            if quiet_since.elapsed() > self.options.patience {
                return Err(PerftestError::Silent {
                    patience: self.options.patience,
                    done: done.came,
                });
            }
            self.session.provider.wait(LOOK)?;
        }
        Ok(())
    }

    /// Whether a message was acknowledged, or arrived, since the last call.
    fn has_progressed(&mut self, done: &mut Done) -> Result<bool, PerftestError> {
        if let Some(completion) = self.session.poll()? {
            match completion.kind {
                WorkKind::Receive => {
                    done.came += 1;
                    self.post_receives(done)?;
                }
                _ => done.sent += 1,
            }
            return Ok(true);
        }
        // A WRITE arrives without a completion: its last byte is the number of the message.
        let size = self.options.size as usize;
        let awaited = done.came + 1;
        if self.verb == Verb::Write && awaited <= self.options.iterations {
            let mut last = [0];
            let Session {
                provider, region, ..
            } = &*self.session;
            provider.copy_out(region, self.largest as usize + size - 1, &mut last);
            if last[0] == awaited as u8 {
                done.came = awaited;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Performs the client's READs, one after another.
    fn read_all(&mut self, peer: &Keys) -> Result<(), PerftestError> {
        for done in 0..self.options.iterations {
            self.post(peer, done)?;
            let begin = Instant::now();
            while self.session.poll()?.is_none() {
                if begin.elapsed() > self.options.patience {
                    let patience = self.options.patience;
                    return Err(PerftestError::Silent { patience, done });
                }
                self.session.provider.wait(LOOK)?;
            }
        }
        Ok(())
    }

    /// Posts the message with this number, from 0, to the send queue.
    fn post(&mut self, peer: &Keys, number: u64) -> Result<(), PerftestError> {
        let (size, verb) = (self.options.size, self.verb);
        let Session {
            provider,
            region,
            qpn,
            ..
        } = &mut *self.session;
        let local = Local {
            key: region.lkey,
            address: region.address,
            len: size,
        };
        let remote = Remote {
            address: peer.address,
            rkey: peer.rkey,
        };
        let immediate = None;
        let work = match verb {
            Verb::Write => {
                provider.put(region, size as usize - 1, &[number as u8]);
                Work::Write {
                    local,
                    remote,
                    immediate,
                }
            }
            Verb::Send => Work::Send { local, immediate },
            Verb::Read => Work::Read { local, remote },
        };
        let request = SendRequest {
            wr_id: number,
            work,
            signaled: true,
            solicited: false,
        };
        self.stamps.push(Instant::now());
        Ok(provider.post_send(*qpn, request)?)
    }

    /// Posts receives for the peer's SENDs, only as many as the remaining messages need.
    fn post_receives(&mut self, done: &mut Done) -> Result<(), PerftestError> {
        let (size, largest) = (self.options.size, self.largest);
        let Session {
            provider,
            region,
            qpn,
            ..
        } = &mut *self.session;
        while done.receives < self.options.iterations && done.receives - done.came < RECEIVES {
            let local = Local {
                key: region.lkey,
                address: region.address + u64::from(largest),
                len: size,
            };
            provider.post_receive(*qpn, ReceiveRequest { wr_id: 0, local })?;
            done.receives += 1;
        }
        Ok(())
    }
}

/// Computes the statistics from the times at which messages were posted.
fn latencies(stamps: &[Instant], verb: Verb) -> Latencies {
    let ways = match verb {
        Verb::Write | Verb::Send => 2.0,
        Verb::Read => 1.0,
    };
    let between = stamps.windows(2).map(|pair| pair[1] - pair[0]);
    let mut times: Vec<f64> = between
        .map(|time| time.as_secs_f64() * 1e6 / ways)
        .collect();
    times.sort_by(f64::total_cmp);
    let count = times.len();
    let share = |of: f64| {
        let rank = (count as f64 * of).ceil() as usize;
        times
            .get(rank.clamp(1, count.max(1)) - 1)
            .copied()
            .unwrap_or(0.0)
    };
    let mean = times.iter().sum::<f64>() / count.max(1) as f64;
    let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>();
    Latencies {
        min: share(0.0),
        max: share(1.0),
        typical: share(0.5),
        average: mean,
        deviation: (variance / count.max(1) as f64).sqrt(),
        percentile_99: share(0.99),
        percentile_99_9: share(0.999),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_computed_as_in_perftest() {
        let begin = Instant::now();
        // Intervals of 10, 20, … 1000 microseconds.
        let mut at = Duration::ZERO;
        let mut stamps = vec![begin];
        for number in 1..=100 {
            at += Duration::from_micros(10 * number);
            stamps.push(begin + at);
        }
        let told = latencies(&stamps, Verb::Read);
        assert_eq!((told.min, told.max, told.typical), (10.0, 1000.0, 500.0));
        assert_eq!((told.percentile_99, told.percentile_99_9), (990.0, 1000.0));
        assert!((told.average - 505.0).abs() < 1e-6, "{told:?}");
        assert!((told.deviation - 288.66).abs() < 0.01, "{told:?}");
        // One way of a round trip.
        assert_eq!(latencies(&stamps, Verb::Send).max, 500.0);
    }
}
