//! Keys whose packets are numbered: none is without a cell, and no two have one, of connections as they come.

use std::collections::BTreeMap;

use scenario::TargetModel;
use scenario::replay::{Classified, Engine, State};
use test_support::seeds;

/// Source and destination, each with its port.
type Connection = (u32, u16, u32, u16);

fn frame((source, sport, destination, dport): Connection) -> Vec<u8> {
    let mut frame = vec![
        2, 0x57, 0x45, 0, 0, 2, 2, 0x57, 0x45, 0, 0, 1, 8, 0, 0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6,
        0, 0,
    ];
    frame.extend(source.to_be_bytes());
    frame.extend(destination.to_be_bytes());
    frame.extend(sport.to_be_bytes());
    frame.extend(dport.to_be_bytes());
    frame.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0xFF, 0xFF, 0, 0, 0, 0]);
    frame
}

fn engine(seed: u64, select: &str) -> Engine {
    let text = format!(
        "weir: 1\nname: t\nseed: {seed}\ntopology: {{star: {{hosts: [a, s], switch: sw}}}}\n\
         flows: {{f: {{to: s, filter: tcp}}, g: {{to: a, filter: tcp}}}}\n\
         faults: [{{id: x, flows: [f, g], effect: drop, select: {select}, per: connection}}]\n"
    );
    let text = text.replace("{to: s, filter: tcp}", "'tcp && ip.ttl == 64'");
    let scenario = scenario::load("t.yaml", &text).unwrap_or_else(|error| panic!("{error}"));
    let plan = scenario::plan(&scenario, &TargetModel::EMBEDDED).unwrap();
    Engine::new(&scenario, &plan, "sw").unwrap()
}

/// A generator of numbers that look random (xorshift64*).
fn random(seed: u64) -> impl FnMut() -> u32 {
    let mut state = seed | 1;
    move || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) as u32
    }
}

/// 10,000 connections each: how clients and load generators take addresses and ports. Without `--all`, every third of them.
fn populations() -> BTreeMap<&'static str, Vec<Connection>> {
    const HOST: u32 = 0x0a00_0001;
    const SERVER: u32 = 0x0a00_0002;
    let mut any = random(7);
    let count = 0..10_000_u16;
    [
        (
            "ports one after the other",
            count
                .clone()
                .map(|n| (HOST, 32_768 + n, SERVER, 80))
                .collect(),
        ),
        (
            "every second port, as Linux",
            count
                .clone()
                .map(|n| (HOST, 32_768 + 2 * n, SERVER, 80))
                .collect(),
        ),
        (
            "a few hosts, many ports",
            count
                .clone()
                .map(|n| (HOST + u32::from(n % 16), 40_000 + n / 16, SERVER, 6379))
                .collect(),
        ),
        (
            "many hosts, one port",
            count
                .clone()
                .map(|n| (0x0a10_0000 + u32::from(n), 50_000, SERVER, 80))
                .collect(),
        ),
        (
            "many servers' ports",
            count
                .clone()
                .map(|n| (HOST, 32_768, SERVER, 1_000 + n))
                .collect(),
        ),
        (
            "a grid of hosts and servers",
            count
                .clone()
                .map(|n| {
                    (
                        HOST + u32::from(n / 100),
                        33_000,
                        SERVER + 256 * u32::from(n % 100),
                        80,
                    )
                })
                .collect(),
        ),
        (
            "at random",
            count
                .map(|_| (any(), any() as u16, any(), any() as u16))
                .collect(),
        ),
    ]
    .into_iter()
    .step_by(if test_support::runs_all() { 1 } else { 3 })
    .collect()
}

fn pass(engine: &Engine, state: &mut State, connection: Connection) -> scenario::replay::Verdict {
    let classified = engine.classify(&frame(connection), 1);
    engine.pass(state, &classified, 1).ingress
}

#[test]
fn ten_thousand_connections_find_cells_of_their_own() {
    for seed in seeds(0..2) {
        let engine = engine(seed, "{nth: 3}");
        for (name, connections) in populations() {
            let mut state = engine.start();
            let mut hits = 0;
            for round in 1..=4 {
                for connection in &connections {
                    let verdict = pass(&engine, &mut state, *connection);
                    assert_eq!(verdict.met.len(), 1);
                    assert!(
                        verdict.keyless.is_empty(),
                        "{name}, seed {seed}: {connection:?}"
                    );
                    assert!(
                        verdict.conflated.is_empty(),
                        "{name}, seed {seed}: {connection:?}"
                    );
                    assert_eq!(
                        !verdict.hits.is_empty(),
                        round == 3,
                        "{name}: {connection:?}"
                    );
                    hits += verdict.hits.len();
                }
            }
            assert_eq!(hits, connections.len());
        }
    }
}

/// Draws of one key are as independent of those of another as they are of each other.
#[test]
fn chance_is_each_keys_own() {
    for (name, connections) in populations() {
        let engine = engine(3, "{probability: 0.5}");
        let mut state = engine.start();
        // Of each connection, which of its first 12 packets are hit.
        let mut patterns: BTreeMap<u32, u32> = BTreeMap::new();
        let mut all = Vec::new();
        for connection in connections.iter().take(5_000) {
            let hit =
                |state: &mut State| u32::from(!pass(&engine, state, *connection).hits.is_empty());
            let pattern = (0..12).fold(0, |pattern, _| pattern << 1 | hit(&mut state));
            *patterns.entry(pattern).or_default() += 1;
            all.push(pattern);
        }
        // 5,000 into 4,096: 4,096 (1 - e^(-5000/4096)) = 2,888 are to be seen, give or take 27.
        let seen = patterns.len() as f64;
        assert!(
            (seen - 2_888.0).abs() < 5.5 * 27.0,
            "{name}: {seen} patterns"
        );
        let hits: u32 = all.iter().map(|pattern| pattern.count_ones()).sum();
        let sigma = (60_000.0_f64 * 0.25).sqrt();
        assert!(
            (f64::from(hits) - 30_000.0).abs() < 5.5 * sigma,
            "{name}: {hits}"
        );
        // Neighbours share half of their fates.
        let alike: u32 = all
            .windows(2)
            .map(|pair| (pair[0] ^ pair[1]).count_zeros() - 20)
            .sum();
        let sigma = (12.0 * 4_999.0_f64 * 0.25).sqrt();
        assert!(
            (f64::from(alike) - 6.0 * 4_999.0).abs() < 5.5 * sigma,
            "{name}: {alike}"
        );
    }
}

/// The frame of the other direction, which has another TTL.
fn answer((source, sport, destination, dport): Connection) -> Vec<u8> {
    let mut frame = frame((destination, dport, source, sport));
    frame[22] = 63;
    frame
}

fn engine_with_trigger(seed: u64, select: &str) -> Engine {
    let text = format!(
        "weir: 1\nname: t\nseed: {seed}\ntopology: {{star: {{hosts: [a, s], switch: sw}}}}\n\
         flows: {{asked: tcp && ip.ttl == 64, answers: tcp && ip.ttl == 63}}\n\
         triggers: {{third: {{after: {{flow: asked, packets: 3}}, per: {{connection: both}}}}}}\n\
         faults: [{{id: x, flows: answers, effect: drop, when: third, select: {select}}}]\n"
    );
    let scenario = scenario::load("t.yaml", &text).unwrap_or_else(|error| panic!("{error}"));
    let plan = scenario::plan(&scenario, &TargetModel::EMBEDDED).unwrap();
    Engine::new(&scenario, &plan, "sw").unwrap()
}

#[test]
fn ten_thousand_connections_follow_triggers_of_their_own() {
    let engine = engine_with_trigger(0, "always");
    for (name, connections) in populations() {
        let mut state = engine.start();
        let mut at_ns = 0;
        let mut pass = |frame: &[u8], port| {
            at_ns += 1_000;
            let classified = Classified {
                at_ns,
                ..engine.classify(frame, port)
            };
            engine.pass(&mut state, &classified, 1)
        };
        let mut came_on = 0;
        for round in 1..=4 {
            for connection in &connections {
                let asked = pass(&frame(*connection), 1);
                let answered = pass(&answer(*connection), 2);
                for triggered in [&asked.triggered, &answered.triggered] {
                    assert!(triggered.keyless.is_empty(), "{name}: {connection:?}");
                    assert!(triggered.conflated.is_empty(), "{name}: {connection:?}");
                    came_on += triggered.came_on.len();
                }
                let is_hit = !answered.ingress.hits.is_empty();
                assert_eq!(is_hit, round >= 3, "{name}: {connection:?}");
            }
        }
        assert_eq!(came_on, connections.len(), "{name}");
    }
}

/// What a target cannot do is refused by name, with the reason.
#[test]
fn tofino_follows_no_keys_and_compares_no_fields() {
    let text = "weir: 1
name: t
topology: {star: {hosts: [a, s], switch: sw}}
flows: {web: tcp.sport == 80 || tcp.dport == 80}
triggers: {third: {after: {flow: web, packets: 3}, per: {connection: both}}}
faults:
  - {id: gray, flows: web, effect: drop, select: {share: 10%}, per: {connection: both}}
  - {id: next, flows: web, effect: observe, when: third}
";
    let scenario = scenario::load("t.yaml", text).unwrap_or_else(|error| panic!("{error}"));
    scenario::plan(&scenario, &TargetModel::SIMPLE_SWITCH_GRPC).unwrap();
    for target in [TargetModel::TOFINO, TargetModel::TOFINO2] {
        let refused = scenario::plan(&scenario, &target).unwrap_err();
        insta::assert_snapshot!("tofino_and_keys", refused.to_string());
    }
}
