//! A share of the keys: as many as asked, whichever they are, and each by itself.

use parser_gen::Library;
use parser_gen::key::PacketKey;
use scenario::model::decision::{self, Draws, limit};
use scenario::model::selection::Share;

const KEYS: usize = 10_000;

/// A SYN of a connection.
fn frame(client: u32, sport: u16, dport: u16) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([0x08, 0x00, 0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0]);
    frame.extend(client.to_be_bytes());
    frame.extend([10, 0, 0, 100]);
    frame.extend(sport.to_be_bytes());
    frame.extend(dport.to_be_bytes());
    frame.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0]);
    frame
}

/// Hashes of connections as one client opens them (Linux hands out every second port), and of random ones.
fn hashes() -> [Vec<u32>; 2] {
    let fields = [
        "ip.src",
        "ip.dst",
        "tcp.sport",
        "tcp.dport",
        "udp.sport",
        "udp.dport",
    ];
    let library = Library::builtin();
    let key = PacketKey::new(&library, &fields).unwrap();
    let consecutive = (0..KEYS as u32).map(|n| frame(0x0a00_0001, (32_768 + 2 * n) as u16, 80));
    let random = (0..KEYS as u64).map(|n| {
        let bits = decision::flow_key(&n.to_string());
        frame(bits as u32, (bits >> 32) as u16, (bits >> 48) as u16)
    });
    [
        consecutive
            .map(|f| key.hash(&library, &f, &library.parsed(&f)).hash)
            .collect(),
        random
            .map(|f| key.hash(&library, &f, &library.parsed(&f)).hash)
            .collect(),
    ]
}

#[test]
fn no_two_of_ten_thousand_connections_have_one_hash() {
    for mut hashes in hashes() {
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), KEYS);
    }
}

/// Of each of 40 seeds: how many are hit, and how many of them are neighbours of one that is.
#[test]
fn as_many_keys_as_asked_are_hit_and_neighbours_no_more_often() {
    const SEEDS: u64 = 40;
    let library = Library::builtin();
    for (kind, hashes) in hashes().into_iter().enumerate() {
        for p in [0.01, 0.1, 0.5] {
            let share = Share {
                limit: limit(p).unwrap(),
                key: PacketKey::new(&library, &["ip.src"]).unwrap(),
                of: "sources".to_owned(),
            };
            let mut pairs = [0_u32; 8];
            let mut all = 0;
            for seed in 0..SEEDS {
                let draws = Draws::of_seed(seed);
                let key = decision::key(
                    decision::fault_key(seed, "gray"),
                    decision::flow_key("requests"),
                );
                let hit: Vec<bool> = hashes
                    .iter()
                    .map(|hash| share.fires_on(&draws, key, *hash))
                    .collect();
                let count = hit.iter().filter(|hit| **hit).count() as f64;
                let deviation = (KEYS as f64 * p * (1.0 - p)).sqrt();
                let off = (count - KEYS as f64 * p) / deviation;
                assert!(off.abs() < 4.5, "seed {seed}, p {p}: {count} of {KEYS}");
                all += count as u32;
                for (lag, pairs) in pairs.iter_mut().enumerate() {
                    let later = hit.iter().skip(lag + 1);
                    *pairs += hit.iter().zip(later).filter(|(a, b)| **a && **b).count() as u32;
                }
            }
            let mean = SEEDS as f64 * KEYS as f64;
            let off = (f64::from(all) - mean * p) / (mean * p * (1.0 - p)).sqrt();
            assert!(off.abs() < 4.5, "kind {kind}, p {p}: {all} in all");
            for (lag, pairs) in pairs.iter().enumerate() {
                let expected = mean * p * p;
                // Overlapping pairs are not independent: at most three times the variance of as many that are.
                let off = (f64::from(*pairs) - expected) / (3.0 * expected).sqrt();
                let lag = lag + 1;
                assert!(
                    off.abs() < 4.5,
                    "kind {kind}, p {p}, lag {lag}: {pairs}, {expected}"
                );
            }
        }
    }
}
