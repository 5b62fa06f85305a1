//! Messages of one size over a reliable connection, one at a time: to and fro as ib_write_lat and ib_send_lat do it, or READs one
//! after the other as ib_read_lat does.

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

/// What is measured. The defaults are perftest's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyOptions {
    /// Where the other program waits, or this one.
    pub port: u16,
    /// Bytes of a message.
    pub size: u32,
    /// Messages of each side; two at least.
    pub iterations: u64,
    /// The largest path MTU of this side; the smaller of both counts. `None`: what the interface carries.
    pub mtu: Option<Mtu>,
    /// What a peer may take for anything at all.
    pub patience: Duration,
    /// All of [`SIZES`] one after the other, in place of `size`.
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

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyOutcome {
    /// This side's queue pair.
    pub own: Keys,
    /// The other's.
    pub peer: Keys,
    /// The path MTU.
    pub mtu: Mtu,
    /// What this side has measured, by size in bytes: not who is read from.
    pub sizes: Vec<(u32, Latencies)>,
    /// The last of these.
    pub measured: Option<Latencies>,
    /// What the queue pair has counted.
    pub counters: Option<Counters>,
}

/// From one message to the next, in microseconds: of WRITEs and SENDs half of it, which is one way; of READs all of it. In the words
/// of perftest's columns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latencies {
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// The middle one.
    pub typical: f64,
    /// The mean.
    pub average: f64,
    /// Standard deviation.
    pub deviation: f64,
    /// Of a hundred, the one that only one is above.
    pub percentile_99: f64,
    /// Of a thousand, the same.
    pub percentile_99_9: f64,
}

/// What has come without a completion is looked for as often.
const LOOK: Duration = Duration::from_micros(20);
/// Messages whose acknowledgements may still be on their way when the answer is here.
const SENDS: usize = 16;
/// Receives that are posted at once, at most.
const RECEIVES: u64 = 512;

/// Measures with a server at `host`, or, without one, waits for a client.
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
    // What is sent lies in the first half, what comes in the second.
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
    /// With the size that is measured now.
    options: LatencyOptions,
    /// Bytes of the largest message: what comes lies behind as many of what is sent.
    largest: u32,
    /// When each message was begun.
    stamps: Vec<Instant>,
    session: &'t mut Session<'s>,
}

/// What has been done of a test.
#[derive(Default)]
struct Done {
    /// Messages that were posted, that have completed, and that have come.
    posted: u64,
    sent: u64,
    came: u64,
    /// Receives that were posted.
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
            // Both are connected; both are ready. Then both are ready for the next size.
            let turns = if number == 0 { 3 } else { 1 };
            for _ in 0..turns {
                self.session.exchange_keys(&own)?;
            }
            match self.verb {
                Verb::Read if is_client => self.read_all(&peer)?,
                // The device answers while this waits for a word.
                Verb::Read => {}
                Verb::Write => self.play(&peer, !is_client, &mut done)?,
                Verb::Send => self.play(&peer, is_client, &mut done)?,
            }
            if measures {
                measured.push((*size, latencies(&self.stamps, self.verb)));
            }
        }
        // ib_write_lat says nothing more.
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

    /// To and fro, until all of both sides' messages were sent and have come.
    fn play(&mut self, peer: &Keys, is_first: bool, done: &mut Done) -> Result<(), PerftestError> {
        let iterations = self.options.iterations;
        let mut quiet_since = Instant::now();
        while done.sent < iterations || done.came < iterations {
            // Each message answers the one before; the first answers none.
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

    /// Whether a message has completed here, or has come.
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
        // A WRITE tells nobody that it has come: its last byte is the message's number.
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

    /// The client's part.
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

    /// Begins message `number`.
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

    /// As many as may be needed, and no more.
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

/// Of the times between messages.
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
    fn times_between_messages_are_told_as_perftest_tells_them() {
        let begin = Instant::now();
        // 10, 20, … 1000 microseconds apart.
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
        // One way of two.
        assert_eq!(latencies(&stamps, Verb::Send).max, 500.0);
    }
}
