//! Two endpoints under loss × duplication × reordering × corruption × wrapping PSNs × random operations, by seed: every byte
//! is correct, every completion comes once and in order, and every run ends.

use roce::packet::{Mtu, Service};
use roce::{Key, Psn, Qpn, Status, Work, WorkKind};
use test_support::seeds;

use crate::common::{Faults, Network, Rng, Setup, local, remote};

/// Sums over all runs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    pub runs: u64,
    /// Runs in which a packet was lost more often than it may be retransmitted.
    pub given_up: u64,
    pub messages: u64,
    pub packets: u64,
    pub retries: u64,
    pub duplicates: u64,
    pub gaps: u64,
    pub rnr: u64,
    pub icrc_errors: u64,
}

#[test]
fn every_byte_and_every_completion_is_right() {
    let totals = run(seeds(0..2000));
    assert!(totals.given_up * 100 < totals.runs, "{totals:?}");
    let never = [
        totals.retries,
        totals.duplicates,
        totals.gaps,
        totals.rnr,
        totals.icrc_errors,
    ];
    assert!(
        never.iter().all(|&count| 2 * count > totals.runs),
        "{totals:?}"
    );
}

#[test]
#[ignore = "minutes: cargo test --release -p roce --test it -- --ignored --nocapture"]
fn a_hundred_thousand_seeds() {
    let totals = run(0..100_000);
    println!("{totals:?}");
    assert!(totals.given_up * 100 < totals.runs, "{totals:?}");
}

#[test]
fn the_same_seed_is_the_same_run() {
    assert_eq!(run(7..9), run(7..9));
}

fn run(seeds: std::ops::Range<u64>) -> Totals {
    let mut totals = Totals::default();
    for seed in seeds {
        ChaosRun::new(seed).execute(&mut totals);
    }
    totals
}

/// One direction: the posted work requests, and their expected results.
#[derive(Default)]
struct Direction {
    works: Vec<Work>,
    /// For each work request that consumes a receive: its length, its immediate, whether it is a SEND.
    received: Vec<(u32, Option<[u8; 4]>, bool)>,
    /// Number of receives posted so far.
    receives: usize,
    /// Expected content of the other side's arena after all WRITEs.
    arena: Vec<u8>,
    /// Position and content of each SEND in the other side's inbox; of each READ in this side's outbox.
    inbox: Vec<(usize, Vec<u8>)>,
    read: Vec<(usize, Vec<u8>)>,
}

struct ChaosRun {
    seed: u64,
    rng: Rng,
    network: Network,
    qpns: [Qpn; 2],
    sources: [Vec<u8>; 2],
    /// Keys by node: of the source of SENDs and READs, of the target of WRITEs, of SENDs, of READs.
    source: [Key; 2],
    arena: [Key; 2],
    inbox: [Key; 2],
    outbox: [Key; 2],
    directions: [Direction; 2],
}

const UNTOUCHED: u8 = 0xEE;

impl ChaosRun {
    fn new(seed: u64) -> Self {
        let mut rng = Rng(seed ^ 0xC4A0_5000);
        let mut network = Network::new(rng.next(), 2);
        let mtu = Mtu::ALL[[0, 0, 0, 1, 1, 2, 4][rng.below(7) as usize]];
        let psn = |rng: &mut Rng| {
            let drawn = rng.next() as u32;
            Psn::new(match rng.below(3) {
                0 => drawn,
                1 => 0u32.wrapping_sub(drawn % 64),
                _ => (1 << 23) - drawn % 64,
            })
        };
        let setup = Setup {
            service: Service::Reliable,
            mtu,
            psns: [psn(&mut rng), psn(&mut rng)],
            timeout: 8,
            max_reads: [1, 2, 16][rng.below(3) as usize],
            window: [1, 3, 17, 128][rng.below(4) as usize],
            ..Setup::default()
        };
        let often = |rng: &mut Rng, percent: u64| rng.below(3).min(1) * rng.below(percent * 10_000);
        network.faults = Faults {
            loss: often(&mut rng, 8),
            copy: often(&mut rng, 20),
            late: often(&mut rng, 30),
            // From a few packets to many timeouts.
            late_ns: 2000 << rng.below(12),
            corrupt: often(&mut rng, 3),
        };
        // At the slowest rate, a window takes longer than the timeout.
        network.ps_per_byte = [0, 800, 4000][rng.below(3) as usize];
        let longest = mtu.bytes() * (1 + rng.below(20) as usize);
        let sources: [Vec<u8>; 2] = std::array::from_fn(|_| {
            let mut bytes = vec![0; longest];
            rng.fill(&mut bytes);
            bytes
        });
        let counts = [0; 2].map(|_| 1 + rng.below(12) as usize);
        let room = longest * counts[0].max(counts[1]);
        let mut register =
            |len: usize| [0, 1].map(|node| network.register(node, vec![UNTOUCHED; len]));
        let (arena, inbox, outbox) = (register(longest), register(room), register(room));
        let source = [0, 1].map(|node| network.register(node, sources[node].clone()));
        let qpns = network.connect(setup);
        let mut run = Self {
            seed,
            rng,
            network,
            qpns,
            sources,
            source,
            arena,
            inbox,
            outbox,
            directions: Default::default(),
        };
        for (side, count) in counts.into_iter().enumerate() {
            run.draw(side, count, longest);
        }
        run
    }

    fn draw(&mut self, side: usize, count: usize, longest: usize) {
        let rng = &mut self.rng;
        let mut direction = Direction {
            arena: vec![UNTOUCHED; longest],
            ..Direction::default()
        };
        let (mut in_inbox, mut in_outbox) = (0, 0);
        for _ in 0..count {
            let len = match rng.below(4) {
                0 => rng.below(8) as usize,
                _ => rng.below(longest as u64 + 1) as usize,
            };
            let len = len.min(longest);
            let from = rng.below((longest - len) as u64 + 1) as usize;
            let to = rng.below((longest - len) as u64 + 1) as usize;
            let immediate = rng
                .happens(500_000)
                .then(|| (rng.next() as u32).to_be_bytes());
            let sent = local(self.source[side], from, len);
            let bytes = &self.sources[side][from..from + len];
            let work = match rng.below(3) {
                0 => {
                    direction.inbox.push((in_inbox, bytes.to_vec()));
                    in_inbox += len;
                    direction.received.push((len as u32, immediate, true));
                    Work::Send {
                        local: sent,
                        immediate,
                    }
                }
                1 => {
                    direction.arena[to..to + len].copy_from_slice(bytes);
                    if immediate.is_some() {
                        direction.received.push((len as u32, immediate, false));
                    }
                    let remote = remote(self.arena[1 - side], to);
                    Work::Write {
                        local: sent,
                        remote,
                        immediate,
                    }
                }
                _ => {
                    let bytes = &self.sources[1 - side][from..from + len];
                    direction.read.push((in_outbox, bytes.to_vec()));
                    let local = local(self.outbox[side], in_outbox, len);
                    in_outbox += len;
                    Work::Read {
                        local,
                        remote: remote(self.source[1 - side], from),
                    }
                }
            };
            direction.works.push(work);
        }
        self.directions[side] = direction;
    }

    /// Posts the next receive for this side's messages.
    fn post_receive(&mut self, side: usize) {
        let direction = &mut self.directions[side];
        let index = direction.receives;
        let Some(&(len, _, is_send)) = direction.received.get(index) else {
            return;
        };
        let sends_before = direction.received[..index].iter().filter(|r| r.2).count();
        let place = if is_send {
            direction.inbox[sends_before].0
        } else {
            0
        };
        let len = if is_send { len as usize } else { 0 };
        direction.receives += 1;
        let local = local(self.inbox[1 - side], place, len);
        self.network
            .receive(1 - side, self.qpns[1 - side], index as u64, local);
    }

    fn execute(mut self, totals: &mut Totals) {
        for side in 0..2 {
            for (index, work) in self.directions[side].works.clone().into_iter().enumerate() {
                self.network.send(side, self.qpns[side], index as u64, work);
            }
        }
        let deadline_ns = self.network.now_ns + 60_000_000_000;
        loop {
            for side in 0..2 {
                let connected = self.network.nodes[1 - side]
                    .endpoint
                    .state(self.qpns[1 - side]);
                if connected == Some(roce::State::Rts) && self.rng.happens(200_000) {
                    self.post_receive(side);
                }
            }
            let going = self.network.step(deadline_ns);
            let all_posted = self
                .directions
                .iter()
                .all(|d| d.receives == d.received.len());
            if !going && (all_posted || self.has_failed()) {
                break;
            }
        }
        assert!(
            self.network.now_ns < deadline_ns,
            "seed {}: hangs",
            self.seed
        );
        self.check(totals);
    }

    fn has_failed(&self) -> bool {
        let state = |side: usize| self.network.nodes[side].endpoint.state(self.qpns[side]);
        [0, 1]
            .iter()
            .any(|&side| state(side) == Some(roce::State::Error))
    }

    fn check(&mut self, totals: &mut Totals) {
        let seed = self.seed;
        let failed = self.has_failed();
        totals.runs += 1;
        totals.given_up += u64::from(failed);
        for side in 0..2 {
            let counters = self.network.nodes[side].endpoint.counters();
            totals.packets += counters.sent_pkts;
            totals.retries += counters.completer_retry_err;
            totals.duplicates += counters.duplicate_request;
            totals.gaps += counters.out_of_seq_request;
            totals.rnr += counters.rcvd_rnr_err;
            totals.icrc_errors += counters.icrc_errors;
            let is_receive =
                |kind| matches!(kind, WorkKind::Receive | WorkKind::ReceiveWriteImmediate);
            let all = self.network.completions(side);
            let (receives, sends): (Vec<_>, Vec<_>) =
                all.into_iter().partition(|c| is_receive(c.kind));
            let direction = &self.directions[side];
            totals.messages += direction.works.len() as u64;
            // Each completion comes once and in order, with or without failure.
            let ids: Vec<u64> = sends.iter().map(|c| c.wr_id).collect();
            let expected: Vec<u64> = (0..direction.works.len() as u64).collect();
            if self.network.nodes[side].endpoint.state(self.qpns[side]) == Some(roce::State::Rts)
                && failed
            {
                // Its peer has failed, and this side notices only through its own requests.
                assert!(expected.starts_with(&ids), "seed {seed}");
            } else {
                assert_eq!(ids, expected, "seed {seed}");
            }
            let succeeded = sends
                .iter()
                .take_while(|c| c.status == Status::Success)
                .count();
            let others: Vec<Status> = sends[succeeded..].iter().map(|c| c.status).collect();
            let flushed = others
                .iter()
                .skip(1)
                .all(|&status| status == Status::Flushed);
            assert!(flushed, "seed {seed}: {others:?}");
            assert!(failed || others.is_empty(), "seed {seed}: {others:?}");
            if let Some(first) = others.first() {
                assert!(
                    matches!(first, Status::RetryExceeded | Status::Flushed),
                    "seed {seed}: {others:?}"
                );
            }
            self.check_receives(1 - side, &receives, failed);
            if !failed {
                self.check_bytes(side);
            }
        }
    }

    /// Checks the other side's receives of this side's messages.
    fn check_receives(&self, side: usize, receives: &[roce::Completion], failed: bool) {
        let seed = self.seed;
        let expected = &self.directions[side].received;
        for (index, completion) in receives.iter().enumerate() {
            assert_eq!(completion.wr_id, index as u64, "seed {seed}");
            if completion.status == Status::Flushed && failed {
                continue;
            }
            let (len, immediate, is_send) = expected[index];
            let kind = if is_send {
                WorkKind::Receive
            } else {
                WorkKind::ReceiveWriteImmediate
            };
            let seen = (
                completion.status,
                completion.kind,
                completion.byte_len,
                completion.immediate,
            );
            assert_eq!(seen, (Status::Success, kind, len, immediate), "seed {seed}");
        }
        assert!(failed || receives.len() == expected.len(), "seed {seed}");
    }

    fn check_bytes(&self, side: usize) {
        let (seed, direction) = (self.seed, &self.directions[side]);
        let arena = self.network.bytes(1 - side, self.arena[1 - side]);
        assert!(arena == direction.arena, "seed {seed}: arena");
        for (parts, node, key) in [
            (&direction.inbox, 1 - side, self.inbox[1 - side]),
            (&direction.read, side, self.outbox[side]),
        ] {
            let bytes = self.network.bytes(node, key);
            let mut end = 0;
            for (at, part) in parts {
                assert!(bytes[*at..*at + part.len()] == **part, "seed {seed}: {at}");
                end = at + part.len();
            }
            assert!(
                bytes[end..].iter().all(|&byte| byte == UNTOUCHED),
                "seed {seed}: too far"
            );
        }
    }
}
