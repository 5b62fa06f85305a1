//! The decision function as a random source: the marginal, lags, triples, pairs of faults, seeds and flows, and the run
//! lengths of the Gilbert–Elliott chain. Every statistic that passes here is also put to a bare CRC, which must fail.

use scenario::decision::{crc32, decide, fault_key, flow_key, limit};
use scenario::selection::{GilbertElliott, Selection};

const PACKETS: usize = 200_000;
const LAGS: usize = 64;
const PROBABILITIES: [f64; 3] = [0.01, 0.1, 0.5];
/// Some 7,000 statistics are drawn here: 5 standard deviations leave room for chance (the counts of rare pairs are
/// Poisson, whose tail is the heavier one), and the defects looked for lie at 15 to 400.
const TOLERANCE: f64 = 5.5;

type Decide = fn(u32, u32, u32) -> u32;

fn bare_crc(key: u32, flow_key: u32, ordinal: u32) -> u32 {
    crc32(key ^ flow_key, ordinal)
}

/// The function with its last round taken off: a defect that only the stricter statistics see.
fn three_rounds(key: u32, flow_key: u32, ordinal: u32) -> u32 {
    let a = flow_key.wrapping_add(crc32(key, ordinal));
    let b = ordinal.wrapping_add(crc32(key ^ 0x9E37_79B9, a));
    a.wrapping_add(crc32(key ^ 0x7F4A_7C15, b))
}

/// Which ordinals are hit, one bit each: bit 0 is ordinal 1. The last word is there for the lags.
struct Hits(Vec<u64>);

impl Hits {
    fn draw(decide: Decide, key: u32, flow_key: u32, p: f64) -> Hits {
        let limit = limit(p).unwrap();
        let ordinals: Vec<u32> = (1..=(PACKETS + LAGS) as u32).collect();
        let word = |ordinals: &[u32]| {
            ordinals.iter().enumerate().fold(0, |word, (bit, ordinal)| {
                word | u64::from(decide(key, flow_key, *ordinal) <= limit) << bit
            })
        };
        Hits(ordinals.chunks(64).map(word).collect())
    }

    /// The word at a position, seen `lag` ordinals later.
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

/// Random keys, as a scenario has them, and the worst ones: small and consecutive.
fn keys() -> Vec<u32> {
    let ids = ["loss", "duplicate", "delay", "x"];
    ids.iter()
        .map(|id| fault_key(42, id))
        .chain(0..12)
        .collect()
}

fn flow_keys() -> Vec<u32> {
    vec![flow_key("w6"), flow_key("w7"), 0, 1, 2]
}

fn marginal(decide: Decide) -> f64 {
    worst(PROBABILITIES.iter().flat_map(|&p| {
        keys().into_iter().map(move |key| {
            let drawn = Hits::draw(decide, key, flow_key("f"), p);
            deviation(drawn.count(), PACKETS, p)
        })
    }))
}

fn lags(decide: Decide) -> f64 {
    worst(PROBABILITIES.iter().flat_map(|&p| {
        keys().into_iter().map(move |key| {
            // Flow key 0 adds nothing in the first round: the hardest case.
            let drawn = Hits::draw(decide, key, 0, p);
            worst((1..=LAGS).map(|lag| deviation(both(&drawn, &drawn, lag), PACKETS, p * p)))
        })
    }))
}

fn triples(decide: Decide) -> f64 {
    worst(PROBABILITIES.iter().flat_map(|&p| {
        keys().into_iter().map(move |key| {
            let drawn = Hits::draw(decide, key, flow_key("f"), p);
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

fn pairs_of_faults(decide: Decide) -> f64 {
    worst(PROBABILITIES.iter().map(|&p| {
        let streams: Vec<_> = keys()
            .into_iter()
            .map(|key| Hits::draw(decide, key, 0, p))
            .collect();
        pairs(&streams, p)
    }))
}

fn pairs_of_seeds(decide: Decide) -> f64 {
    worst(PROBABILITIES.iter().map(|&p| {
        let streams: Vec<_> = (0..6)
            .map(|seed| Hits::draw(decide, fault_key(seed, "loss"), flow_key("f"), p))
            .collect();
        pairs(&streams, p)
    }))
}

fn pairs_of_flows(decide: Decide) -> f64 {
    worst(PROBABILITIES.iter().map(|&p| {
        let streams: Vec<_> = flow_keys()
            .into_iter()
            .map(|flow| Hits::draw(decide, fault_key(42, "loss"), flow, p))
            .collect();
        pairs(&streams, p)
    }))
}

/// Largest deviation that a statistic finds.
type Statistic = fn(Decide) -> f64;

const STATISTICS: [(&str, Statistic); 6] = [
    ("marginal", marginal),
    ("lags", lags),
    ("triples", triples),
    ("pairs of faults", pairs_of_faults),
    ("pairs of seeds", pairs_of_seeds),
    ("pairs of flows", pairs_of_flows),
];

#[test]
fn decide_passes_every_statistic() {
    for (name, statistic) in STATISTICS {
        let found = statistic(decide);
        assert!(found < TOLERANCE, "{name}: {found:.1} standard deviations");
    }
}

#[test]
fn a_bare_crc_passes_the_marginal_and_fails_the_rest() {
    assert!(
        marginal(bare_crc) < TOLERANCE,
        "this is what makes the defect easy to miss"
    );
    for (name, statistic) in &STATISTICS[1..] {
        let found = statistic(bare_crc);
        assert!(found > 20.0, "{name} does not see a bare CRC: {found:.1}");
    }
}

#[test]
fn three_rounds_are_too_few() {
    let found = worst(
        STATISTICS
            .iter()
            .map(|(_, statistic)| statistic(three_rounds)),
    );
    assert!(found > 2.0 * TOLERANCE, "{found:.1}");
}

#[test]
fn a_bare_crc_never_hits_neighbours_together() {
    let neighbours = |decide: Decide| {
        let drawn = Hits::draw(decide, fault_key(42, "loss"), 0, 0.1);
        // Bit i is ordinal i + 1, so the even ordinals are the odd bits.
        let starts_even = 0xAAAA_AAAA_AAAA_AAAA;
        let pairs = |word| drawn.0[word] & drawn.later(word, 1) & starts_even;
        (0..PACKETS / 64)
            .map(|word| pairs(word).count_ones())
            .sum::<u32>()
    };
    assert_eq!(neighbours(bare_crc), 0);
    assert!(
        (850..1150).contains(&neighbours(decide)),
        "{}",
        neighbours(decide)
    );
}

#[test]
fn published_check_values() {
    assert_eq!(crc32(0x3132_3334, 0x3536_3738), 0x9AE0_DAAF);
    let values = [
        (0, 0, 0),
        (0, 0, 1),
        (1, 2, 3),
        (0xDEAD_BEEF, 0x0123_4567, 1_000_000),
    ]
    .map(|(key, flow, ordinal)| format!("{:#010X}", decide(key, flow, ordinal)));
    let keys = [fault_key(42, "drop-gets"), flow_key("a-get")].map(|key| format!("{key:#010X}"));
    println!("{values:?} {keys:?}");
    let document = include_str!("../../../../docs/fault-engine.md");
    for value in values.iter().chain(&keys) {
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
        let states: Vec<bool> = chain
            .decisions(fault_key(7, "burst"), flow_key("w6"))
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
    let chain = |loss_bad: f64, loss_good: f64| {
        Selection::GilbertElliott(GilbertElliott {
            to_bad: limit(0.05).unwrap(),
            to_good: limit(0.15).unwrap(),
            loss_bad: limit(loss_bad).unwrap(),
            loss_good: limit(loss_good),
        })
        .decisions(fault_key(3, "burst"), flow_key("w7"))
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
        let decisions = selection.decisions(1, 2).take(20).enumerate();
        decisions
            .filter(|(_, fired)| *fired)
            .map(|(i, _)| i + 1)
            .collect()
    };
    assert_eq!(fired(Selection::Nth(3)), [3]);
    assert_eq!(fired(Selection::Every(5)), [5, 10, 15, 20]);
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
