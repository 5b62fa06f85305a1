//! Generated programs, executed on all architectures: class and note of each packet, and that it leaves unchanged.

use crate::common::Random;
use crate::common::bench::{ARCHES, Bench, expected};
use crate::common::filters::random_flows;
use crate::common::packets::random_frame;
use parser_gen::{Filter, Flow, Generated, Library, Options, generate};

fn flows(library: &Library, filters: &[&str]) -> Vec<Flow> {
    let numbered = filters.iter().enumerate();
    let flow = |(n, text): (usize, &&str)| Flow {
        name: format!("f{n}"),
        filter: Filter::parse(library, text).unwrap_or_else(|error| panic!("{text}: {error}")),
    };
    numbered.map(flow).collect()
}

/// Sends random frames, and compares the class of each with the plain meaning of the filters.
fn hold_against_filters(
    library: &Library,
    flows: &[Flow],
    generated: &Generated,
    random: &mut Random,
    frames: usize,
) {
    let mut benches = ARCHES.map(|arch| Bench::new(arch, generated));
    for _ in 0..frames {
        let frame = random_frame(random);
        let expected = expected(library, flows, &frame);
        for (bench, arch) in benches.iter_mut().zip(ARCHES) {
            let (class, _) = bench.send(&frame);
            assert_eq!(
                generated.classes().sets()[class],
                expected,
                "{arch:?} {:?}\n{frame:02x?}\n{}",
                flows
                    .iter()
                    .map(|flow| flow.filter.text())
                    .collect::<Vec<_>>(),
                generated.p4
            );
        }
    }
}

const SETS: &[&[&str]] = &[
    &[
        "ip.src == 10.0.0.0/8 && tcp.dport in {1..100, 6379}",
        "vlan.id == 5",
        "ipv6",
        "agg.kind == 1",
        "roce",
    ],
    &[
        r#"ip.src == 10.0.0.1 && tcp.dport == 6379 && redis.command == "GET""#,
        r#"redis.command == "SET" && redis.key startswith "cart:""#,
        r#"redis.key == "cart:17""#,
        r#"redis.key != "cart:1234567890a""#,
        r#"redis.command in {"DEL", "PING", "INCRBYFLOAT"}"#,
        r#"!(redis.key startswith "c")"#,
        "redis",
        "!tcp",
    ],
    &[
        r#"http.method == "GET" && http.path startswith "/cart""#,
        r#"kafka.client == "app" && kafka.api_key != 18"#,
        r#"memcached.command in {"get", "gets"} && memcached.key == "cart:17""#,
        r#"postgres.type == "Q" && postgres.query startswith "SELECT""#,
        r#"dns.name == "www.example.com" && dns.type == 28"#,
        r#"!(dns.name startswith "www.")"#,
        "reth.len > 0 || aeth.syndrome == 1",
        "roce_data.first > 0x01000000",
        "arp.op == 1 || icmp || icmpv6 || vxlan.vni > 1",
        "ipv6_hop || ipv6_routing || ipv6_fragment.more || ipv6_dest.option == 3",
    ],
];

#[test]
fn the_switch_means_what_the_filters_mean() {
    let library = Library::builtin();
    for (seed, filters) in SETS.iter().enumerate() {
        let flows = flows(&library, filters);
        let options = Options::aggregating(true);
        let generated = generate(&library, &flows, &options).expect("generates");
        let mut random = Random(seed as u64);
        hold_against_filters(&library, &flows, &generated, &mut random, 3000);
    }
}

/// Tests many random filters that overlap in many ways. Returns the number of flows and of classes.
fn many_random_filters(seed: u64, rounds: usize, frames: usize) -> (usize, usize) {
    let library = Library::builtin();
    let mut random = Random(seed);
    let (mut num_flows, mut num_classes) = (0, 0);
    for _ in 0..rounds {
        let count = 4 + random.below(24);
        let (flows, generated) = random_flows(&library, &mut random, count);
        num_flows += flows.len();
        num_classes += generated.classes().sets().len();
        hold_against_filters(&library, &flows, &generated, &mut random, frames);
    }
    (num_flows, num_classes)
}

#[test]
fn classes_mean_what_many_filters_mean() {
    let (flows, classes) = many_random_filters(7, 5, 200);
    assert!(
        classes > flows,
        "{flows} flows overlap in {classes} classes only"
    );
}

/// 1,050,000 frames over the three architectures: `cargo xtask equivalence`.
#[test]
#[ignore = "minutes: cargo xtask equivalence"]
fn a_million_frames() {
    let (rounds, frames) = (25, 2000);
    for seed in 0..7 {
        let (flows, classes) = many_random_filters(100 + seed, rounds, frames);
        println!(
            "{} frames, {flows} filters, {classes} classes of packets: no difference",
            rounds * frames * ARCHES.len()
        );
    }
}
