//! The decision function as a random source: the marginal, lags, triples, pairs of faults, seeds, flows and words, many short
//! flows, and the run lengths of the Gilbert–Elliott chain. What was rejected is put to the same statistics, and must fail.

use std::collections::BTreeSet;

use scenario::model::decision::{self, Draws, coarse, fault_key, flow_key, limit, probability};
use scenario::model::selection::{Counted, GilbertElliott, Selection};

const PACKETS: usize = 200_000;
const LAGS: usize = 64;
const PROBABILITIES: [f64; 3] = [0.01, 0.1, 0.5];
/// Some 13,000 statistics are drawn here: 5 standard deviations leave room for chance (the counts of rare pairs are
/// Poisson, whose tail is the heavier one), and the defects looked for lie far above.
const TOLERANCE: f64 = 5.5;

/// A word for a key and an index.
type Draw = fn(&Draws, u32, u32) -> u32;

fn u(draws: &Draws, key: u32, index: u32) -> u32 {
    draws.words(key, index).u
}

fn v(draws: &Draws, key: u32, index: u32) -> u32 {
    draws.words(key, index).v
}

fn w(draws: &Draws, key: u32, index: u32) -> u32 {
    draws.words(key, index).w
}

/// Simple tabulation: without derived characters.
fn simple(draws: &Draws, key: u32, index: u32) -> u32 {
    let bytes = (index ^ key).to_le_bytes();
    let rows = bytes.iter().enumerate();
    rows.fold(0, |sum, (table, byte)| {
        sum ^ draws.row(table, *byte).words.u
    })
}

/// With one derived character.
fn one_derived(draws: &Draws, key: u32, index: u32) -> u32 {
    let bytes = (index ^ key).to_le_bytes();
    let rows = bytes.iter().enumerate();
    let (sum, derived) = rows.fold((0, 0), |(sum, derived), (table, byte)| {
        let row = draws.row(table, *byte);
        (sum ^ row.words.u, derived ^ row.derived)
    });
    sum ^ draws.row(4, derived as u8).words.u
}

/// What `weir` of before drew by is gone; a bare CRC is what it was built to be better than.
fn bare_crc(_: &Draws, key: u32, index: u32) -> u32 {
    crc32fast::hash(&(u64::from(key) << 32 | u64::from(index)).to_be_bytes())
}

/// Which indexes are hit, one bit each. The last word is there for the lags.
struct Hits(Vec<u64>);

impl Hits {
    fn draw(draw: Draw, draws: &Draws, key: u32, p: f64) -> Hits {
        let limit = limit(p).unwrap();
        let indexes: Vec<u32> = (0..(PACKETS + LAGS) as u32).collect();
        let word = |indexes: &[u32]| {
            indexes.iter().enumerate().fold(0, |word, (bit, index)| {
                word | u64::from(draw(draws, key, *index) <= limit) << bit
            })
        };
        Hits(indexes.chunks(64).map(word).collect())
    }

    /// The word at a position, seen `lag` indexes later.
    fn later(&self, word: usize, lag: usize) -> u64 {
        (u128::from(self.0[word]) | u128::from(self.0[word + 1]) << 64).wrapping_shr(lag as u32)
            as u64
    }

    fn count(&self) -> usize {
        (0..PACKETS / 64)
            .map(|word| self.0[word].count_ones() as usize)
            .sum()
    }
}

/// Distance of a count from its expectation in standard deviations.
fn deviation(count: usize, trials: usize, p: f64) -> f64 {
    let n = trials as f64;
    ((count as f64 - n * p) / (n * p * (1.0 - p)).sqrt()).abs()
}

/// How many ordinals are hit in `a`, and `lag` later in `b`.
fn both(a: &Hits, b: &Hits, lag: usize) -> usize {
    (0..PACKETS / 64)
        .map(|word| (a.0[word] & b.later(word, lag)).count_ones() as usize)
        .sum()
}

fn worst(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, f64::max)
}

fn draws() -> Draws {
    Draws::of_seed(42)
}

fn key_of(seed: u64, fault: &str, flow: &str) -> u32 {
    decision::key(fault_key(seed, fault), flow_key(flow))
}

/// Random keys, as a scenario has them, and the worst ones: small and consecutive.
fn keys() -> Vec<u32> {
    let ids = ["loss", "duplicate", "delay", "x"];
    ids.iter()
        .map(|id| key_of(42, id, "f"))
        .chain(0..12)
        .collect()
}

fn marginal(draw: Draw) -> f64 {
    let draws = draws();
    worst(PROBABILITIES.iter().flat_map(|&p| {
        let draws = &draws;
        keys()
            .into_iter()
            .map(move |key| deviation(Hits::draw(draw, draws, key, p).count(), PACKETS, p))
    }))
}

fn lags(draw: Draw) -> f64 {
    let draws = draws();
    worst(PROBABILITIES.iter().flat_map(|&p| {
        let draws = &draws;
        keys().into_iter().map(move |key| {
            let drawn = Hits::draw(draw, draws, key, p);
            worst((1..=LAGS).map(|lag| deviation(both(&drawn, &drawn, lag), PACKETS, p * p)))
        })
    }))
}

fn triples(draw: Draw) -> f64 {
    let draws = draws();
    worst(PROBABILITIES.iter().flat_map(|&p| {
        let draws = &draws;
        keys().into_iter().map(move |key| {
            let drawn = Hits::draw(draw, draws, key, p);
            let triple = |word| drawn.0[word] & drawn.later(word, 1) & drawn.later(word, 2);
            let count: usize = (0..PACKETS / 64)
                .map(|word| triple(word).count_ones() as usize)
                .sum();
            deviation(count, PACKETS, p * p * p)
        })
    }))
}

fn pairs(streams: &[Hits], p: f64) -> f64 {
    worst(streams.iter().enumerate().flat_map(|(i, a)| {
        streams[i + 1..]
            .iter()
            .flat_map(move |b| (0..=4).map(move |lag| deviation(both(a, b, lag), PACKETS, p * p)))
    }))
}

/// Of faults and flows, whose keys are all that differs. Keys that differed in their lowest bits alone would see each other's
/// words, a few packets apart: they are hashes, so that no two of a scenario do.
fn pairs_of_keys(draw: Draw) -> f64 {
    let draws = draws();
    let ids = ["loss", "duplicate", "delay", "x"];
    let flows = ["f", "w6", "w7", "a.b"];
    let keys = ids
        .iter()
        .flat_map(|id| flows.map(|flow| key_of(42, id, flow)));
    let keys: Vec<u32> = keys.collect();
    worst(PROBABILITIES.iter().map(|&p| {
        let streams: Vec<_> = keys
            .iter()
            .map(|key| Hits::draw(draw, &draws, *key, p))
            .collect();
        pairs(&streams, p)
    }))
}

fn pairs_of_seeds(draw: Draw) -> f64 {
    worst(PROBABILITIES.iter().map(|&p| {
        let streams: Vec<_> = (0..6)
            .map(|seed| Hits::draw(draw, &Draws::of_seed(seed), key_of(seed, "loss", "f"), p))
            .collect();
        pairs(&streams, p)
    }))
}

/// Largest deviation that a statistic finds.
type Statistic = fn(Draw) -> f64;

const STATISTICS: [(&str, Statistic); 5] = [
    ("marginal", marginal),
    ("lags", lags),
    ("triples", triples),
    ("pairs of keys", pairs_of_keys),
    ("pairs of seeds", pairs_of_seeds),
];

#[test]
fn one_long_flow_passes_every_statistic() {
    let words = [("u", u as Draw), ("v", v), ("w", w)];
    let words = &words[..test_support::cases(3) as usize];
    for (name, statistic) in STATISTICS {
        for (word, draw) in words {
            let draw = *draw;
            let found = statistic(draw);
            println!("{name} of {word}: {found:.1} standard deviations");
            assert!(
                found < TOLERANCE,
                "{name} of {word}: {found:.1} standard deviations"
            );
        }
    }
}

#[test]
fn the_words_of_a_packet_say_nothing_of_each_other() {
    let draws = draws();
    for p in PROBABILITIES {
        for key in keys() {
            let streams = [u as Draw, v, w].map(|draw| Hits::draw(draw, &draws, key, p));
            let found = pairs(&streams, p);
            assert!(
                found < TOLERANCE,
                "key {key}: {found:.1} standard deviations"
            );
        }
    }
}

#[test]
fn a_bare_crc_passes_the_marginal_and_fails_the_rest() {
    assert!(
        marginal(bare_crc) < TOLERANCE,
        "this is what makes the defect easy to miss"
    );
    for (name, statistic) in &STATISTICS[1..4] {
        let found = statistic(bare_crc);
        assert!(found > 20.0, "{name} does not see a bare CRC: {found:.1}");
    }
}

/// Many flows of few packets: flows, packets of each, probability.
const SHORT: [(usize, u32, f64); 3] = [(5000, 16, 0.5), (5000, 16, 0.1), (5000, 100, 0.01)];
const SEEDS: u64 = 20;

/// How many packets of each flow are hit, against the binomial distribution: χ² per degree of freedom. And how many patterns
/// of hits there are.
fn short_flows(draw: Draw, seed: u64, (flows, packets, p): (usize, u32, f64)) -> (f64, usize) {
    let (draws, limit) = (Draws::of_seed(seed), limit(p).unwrap());
    let mut patterns = BTreeSet::new();
    let mut found = vec![0.0; packets as usize + 1];
    for flow in 0..flows {
        let key = key_of(seed, "loss", &format!("flow-{flow}"));
        let pattern = (0..packets).fold(0_u128, |pattern, index| {
            pattern << 1 | u128::from(draw(&draws, key, index) <= limit)
        });
        found[pattern.count_ones() as usize] += 1.0;
        patterns.insert(pattern);
    }
    let mut due = flows as f64 * (1.0 - p).powi(packets as i32);
    let (mut statistic, mut bins) = (0.0, 0.0);
    let (mut due_in_bin, mut found_in_bin) = (0.0, 0.0);
    for (hits, found) in found.iter().enumerate() {
        due_in_bin += due;
        found_in_bin += found;
        // Small ones are put together with their neighbours.
        if due_in_bin >= 20.0 {
            statistic += (found_in_bin - due_in_bin) * (found_in_bin - due_in_bin) / due_in_bin;
            bins += 1.0;
            (due_in_bin, found_in_bin) = (0.0, 0.0);
        }
        due *= (f64::from(packets) - hits as f64) / (hits as f64 + 1.0) * p / (1.0 - p);
    }
    (statistic / (bins - 1.0), patterns.len())
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

#[test]
fn many_short_flows_are_as_different_as_chance_makes_them() {
    for case in SHORT {
        let of = |draw: Draw| -> Vec<(f64, usize)> {
            (0..SEEDS)
                .map(|seed| short_flows(draw, seed, case))
                .collect()
        };
        for (name, draw) in [
            ("mixed", u as Draw),
            ("simple", simple),
            ("one derived", one_derived),
        ] {
            let found = of(draw);
            let squares = mean(found.iter().map(|(square, _)| *square));
            let largest = worst(found.iter().map(|(square, _)| *square));
            let patterns = mean(found.iter().map(|(_, patterns)| *patterns as f64));
            println!("{case:?} {name}: {squares:.2}, at most {largest:.1}; {patterns:.0} patterns");
            if name == "mixed" {
                assert!((0.6..1.5).contains(&squares), "{case:?}: {squares:.2}");
                assert!(largest < 4.0, "{case:?}: {largest:.1}");
            }
            if case == SHORT[0] {
                // 65,536 patterns, of which 5,000 draws find 4,814.
                match name {
                    "mixed" => assert!((4790.0..4840.0).contains(&patterns), "{patterns}"),
                    "simple" => {
                        assert!(squares > 20.0 && patterns < 1000.0, "{squares} {patterns}")
                    }
                    _ => assert!(largest > 2.0, "{largest}"),
                }
            }
        }
    }
}

#[test]
fn published_check_values() {
    let draws = draws();
    let row = |table: usize, byte: u8| {
        let row = draws.row(table, byte);
        let decision::Words { u, v, w } = row.words;
        format!("{u:08X} {v:08X} {w:08X} {:04X}", row.derived)
    };
    let words = |key: u32, index: u32| {
        let decision::Words { u, v, w } = draws.words(key, index);
        format!("{u:08X} {v:08X} {w:08X}")
    };
    let values = [
        row(0, 0),
        row(0, 1),
        row(5, 255),
        words(0, 0),
        words(0, 1),
        words(0xDEAD_BEEF, 1_000_000),
        format!("{:016X}", fault_key(42, "drop-gets")),
        format!("{:016X}", flow_key("a-get")),
        format!("{:08X}", key_of(42, "drop-gets", "a-get")),
    ];
    println!("{values:#?}");
    let document = include_str!("../../../../docs/fault-engine.md");
    for value in values {
        assert!(
            document.contains(value.as_str()),
            "docs/fault-engine.md lacks {value}"
        );
    }
}

#[test]
fn limits_are_inclusive_and_exact() {
    assert_eq!(limit(1.0), Some(u32::MAX));
    assert_eq!(limit(0.5), Some(0x7FFF_FFFF));
    assert_eq!(limit(1.0 / 4_294_967_296.0), Some(0));
    assert_eq!(limit(0.0), None);
    assert_eq!(limit(1e-11), None);
}

#[test]
fn coarse_limits_hold_for_the_upper_half_of_a_word() {
    assert_eq!(coarse(u32::MAX, 16), Some(u32::MAX));
    assert_eq!(coarse(0x7FFF_FFFF, 16), Some(0x7FFF_FFFF));
    assert_eq!(coarse(limit(1e-5).unwrap(), 16), Some(0xFFFF));
    assert_eq!(coarse(limit(7e-6).unwrap(), 16), None);
    for p in [0.01, 0.3, 0.000_1, 1e-5] {
        let fine = limit(p).unwrap();
        assert_eq!(coarse(fine, 32), Some(fine));
        let held = coarse(fine, 16).unwrap();
        assert!((probability(held) - p).abs() <= 0.5 / 65_536.0, "{p}");
        for draw in [0, held - 1, held, held.saturating_add(1), u32::MAX] {
            assert_eq!(draw <= held, draw >> 16 <= held >> 16, "{p} {draw:#x}");
        }
    }
}

/// Geometric run lengths, means 1/to_bad and 1/to_good, checked bin by bin with χ².
#[test]
fn gilbert_elliott_stays_in_its_states_as_long_as_it_should() {
    // Loss 1 in bad and 0 in good makes the state visible.
    for (to_bad, to_good) in [(0.02, 0.3), (0.1, 0.1), (0.005, 0.5)] {
        let chain = Selection::GilbertElliott(GilbertElliott {
            to_bad: limit(to_bad).unwrap(),
            to_good: limit(to_good).unwrap(),
            loss_bad: u32::MAX,
            loss_good: None,
        });
        let draws = Draws::of_seed(7);
        let states: Vec<bool> = chain
            .decisions(&draws, key_of(7, "burst", "w6"))
            .take(4 * PACKETS)
            .collect();
        let mut runs: [Vec<usize>; 2] = [Vec::new(), Vec::new()];
        for run in states.chunk_by(|a, b| a == b) {
            runs[usize::from(run[0])].push(run.len());
        }
        for (lengths, leave) in [(&runs[0], to_bad), (&runs[1], to_good)] {
            let found = chi_squared_of_geometric(lengths, leave);
            assert!(found < 5.0, "leave {leave}: {found:.1} standard deviations");
        }
        let share = states.iter().filter(|bad| **bad).count() as f64 / states.len() as f64;
        let expected = to_bad / (to_bad + to_good);
        assert!(
            (share / expected - 1.0).abs() < 0.05,
            "share of bad {share}, expected {expected}"
        );
    }
}

#[test]
fn gilbert_elliott_loses_at_each_states_rate() {
    let draws = Draws::of_seed(3);
    let chain = |loss_bad: f64, loss_good: f64| {
        Selection::GilbertElliott(GilbertElliott {
            to_bad: limit(0.05).unwrap(),
            to_good: limit(0.15).unwrap(),
            loss_bad: limit(loss_bad).unwrap(),
            loss_good: limit(loss_good),
        })
        .decisions(&draws, key_of(3, "burst", "w7"))
        .take(PACKETS)
        .filter(|fired| *fired)
        .count() as f64
            / PACKETS as f64
    };
    // A quarter of the packets meet the bad state.
    assert!((chain(0.8, 0.0) - 0.2).abs() < 0.01);
    assert!((chain(0.8, 0.1) - 0.275).abs() < 0.01);
}

#[test]
fn counting_selections() {
    let fired = |selection: Selection| -> Vec<usize> {
        let draws = Draws::of_seed(1);
        let decisions = selection.decisions(&draws, 2).take(20).enumerate();
        decisions
            .filter(|(_, fired)| *fired)
            .map(|(i, _)| i + 1)
            .collect()
    };
    let counted = |counted| fired(Selection::Counted(counted));
    assert_eq!(counted(Counted::nth(3)), [3]);
    assert_eq!(counted(Counted::every(5)), [5, 10, 15, 20]);
    assert_eq!(counted(Counted::every(1)).len(), 20);
    assert_eq!(counted(Counted::first(2)), [1, 2]);
    assert_eq!(counted(Counted::after(18)), [19, 20]);
    assert_eq!(
        counted(Counted::once([2..=3, 19..=u32::MAX])),
        [2, 3, 19, 20]
    );
    assert_eq!(counted(Counted::burst(3, 2, 8)), [3, 4, 11, 12, 19, 20]);
    assert_eq!(counted(Counted::burst(3, 2, 0)), [3, 4]);
    let pattern = [false, true, true, false, false, false, true];
    assert_eq!(
        counted(Counted::pattern(&pattern)),
        [2, 3, 7, 9, 10, 14, 16, 17]
    );
    assert_eq!(fired(Selection::Always).len(), 20);
    assert_eq!(fired(Selection::Never), [0; 0]);
    assert_eq!(fired(Selection::Probability { limit: u32::MAX }).len(), 20);
}

/// (χ² − degrees of freedom) in standard deviations, over bins of neighbouring lengths that each expect n/20 runs.
fn chi_squared_of_geometric(lengths: &[usize], leave: f64) -> f64 {
    let n = lengths.len() as f64;
    assert!(n > 2000.0, "too few runs to say anything: {n}");
    let (mut statistic, mut bins) = (0.0, 0usize);
    let (mut expected, mut count, mut beyond) = (0.0, 0.0, n);
    for length in 1.. {
        expected += n * leave * (1.0 - leave).powi(length - 1);
        count += lengths.iter().filter(|l| **l == length as usize).count() as f64;
        let expected_beyond = n * (1.0 - leave).powi(length);
        if expected_beyond < n / 20.0 {
            // The last bin takes the tail.
            let (expected, count) = (expected + expected_beyond, beyond);
            statistic += (count - expected).powi(2) / expected;
            break;
        }
        if expected >= n / 20.0 {
            statistic += (count - expected).powi(2) / expected;
            beyond -= count;
            bins += 1;
            (expected, count) = (0.0, 0.0);
        }
    }
    let freedom = bins as f64;
    (statistic - freedom) / (2.0 * freedom.max(1.0)).sqrt()
}
