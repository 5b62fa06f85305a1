//! Random filters.

use super::Random;
use parser_gen::{Filter, Flow, GenerateError, Generated, Library, Options, generate};

/// `count` flows with random filters that can be generated together, and the result. Skips filters that no packet matches.
pub fn random_flows(
    library: &Library,
    random: &mut Random,
    count: usize,
) -> (Vec<Flow>, Generated) {
    let mut flows: Vec<Flow> = Vec::new();
    while flows.len() < count {
        // A few arbitrary filters among many that compare the same fields.
        let text = match flows.len() {
            0..3 => random_filter(random, 2),
            _ => random_values(random),
        };
        let flow = Flow {
            name: format!("f{}", flows.len()),
            filter: Filter::parse(library, &text).expect("well formed"),
        };
        match generate(library, std::slice::from_ref(&flow), &Options::default()) {
            Ok(_) => flows.push(flow),
            Err(GenerateError::TooManyTerms { .. } | GenerateError::NeverMatches { .. }) => {}
            Err(error) => panic!("{text}: {error}"),
        }
    }
    let aggregate = random.one_in(2);
    let generated = generate(library, &flows, &Options::aggregating(aggregate))
        .expect("each alone is generated");
    (flows, generated)
}

/// Random filters combine one to four of these, like the filters of one scenario.
const VALUES: &[&[&str]] = &[
    &[
        "ip.src == 10.0.0.1",
        "ip.src == 10.0.0.0/8",
        "ip.src == 10.0.0.0/31",
        "ip.src != 10.0.0.2",
        "ipv6",
    ],
    &["ip.ttl == 1", "ip.ttl > 1", "tcp.flags.syn"],
    &[
        "tcp.dport == 6379",
        "tcp.dport in {1..100, 6000..7000}",
        "tcp.dport != 80",
        "udp.dport == 53",
    ],
    &[
        "redis.command == \"GET\"",
        "redis.command in {\"SET\", \"GETSET\"}",
        "redis.command startswith \"s\"",
    ],
    &[
        "redis.key == \"cart:17\"",
        "redis.key startswith \"cart:\"",
        "redis.key startswith \"c\"",
    ],
];

fn random_values(random: &mut Random) -> String {
    let mut tests = Vec::new();
    for of in VALUES {
        if random.one_in(2) {
            tests.push(of[random.below(of.len())]);
        }
    }
    if tests.is_empty() {
        return "vlan".to_owned();
    }
    tests.join(" && ")
}

pub fn random_filter(random: &mut Random, depth: usize) -> String {
    if depth > 0 && random.one_in(2) {
        return match random.below(5) {
            0 => format!("!({})", random_filter(random, depth - 1)),
            1 | 2 => format!(
                "({}) && ({})",
                random_filter(random, depth - 1),
                random_filter(random, depth - 1)
            ),
            _ => format!(
                "{} || ({})",
                random_test(random),
                random_filter(random, depth - 1)
            ),
        };
    }
    random_test(random)
}

/// Parts of random filters.
pub const TESTS: &[&str] = &[
    "eth",
    "vlan",
    "inner_vlan",
    "ip",
    "ipv6",
    "tcp",
    "udp",
    "agg",
    "redis",
    "roce",
    "tcp.flags.syn",
    "switch.port == 3",
    "switch.port in {1, 3..9}",
    "eth.src == 02:00:00:00:00:01",
    "eth.type != 0x0800",
    "vlan.id == 5",
    "inner_vlan.id in {5, 6..9}",
    "ip.src == 10.0.0.1",
    "ip.src == 10.0.0.0/8",
    "ip.src in {10.0.0.1..10.0.0.200, 192.168.0.1}",
    "ip.src != 10.0.0.2",
    "ip.ttl <= 1",
    "ip.ihl > 5",
    "ip.frag_offset == 0",
    "ipv6.src == 2001:db8::/32",
    "ipv6.src < ::2",
    "tcp.dport == 6379",
    "tcp.dport in {1..100, 6000..7000}",
    "tcp.seq >= 1",
    "udp.dport == 22341",
    "agg.kind == 1",
    "agg.chunk > 0x01000000",
    "agg.flags.again || !agg.flags.version",
    "roce.opcode != 4",
    "roce_data",
    "roce_data.first != 0x01010101",
    "reth",
    "reth.len > 0",
    "aeth",
    "aeth.syndrome in {0..1}",
    "vxlan",
    "vxlan.vni != 1",
    "arp",
    "arp.op == 1",
    "icmp",
    "icmp.type < 4",
    "icmpv6",
    "icmpv6.type == 3",
    "ipv6_hop",
    "ipv6_hop.option == 5",
    "ipv6_routing",
    "ipv6_fragment.more",
    "ipv6_fragment",
    "ipv6_dest",
    "dns",
    "dns.name == \"www.example.com\"",
    "dns.name != \"example.com\" && dns.type == 28",
    "dns.name startswith \"www.\"",
    "dns.type == 1",
    "kafka",
    "kafka.api_key in {0, 18}",
    "kafka.client == \"app\"",
    "kafka.client != \"\"",
    "kafka.client startswith \"app\"",
    "kafka.correlation_id > 1",
    "http",
    "http.method == \"GET\"",
    "http.method != \"POST\"",
    "http.path startswith \"/cart\"",
    "http.method startswith \"G\" && http.path == \"/cart\"",
    "memcached",
    "memcached.command == \"get\" && memcached.key startswith \"cart:\"",
    "memcached.key != \"cart:17\"",
    "memcached.command in {\"delete\", \"version\"}",
    "postgres",
    "postgres.type == \"Q\"",
    "postgres.query startswith \"SELECT\"",
    "postgres.len > 10 || postgres.query != \"\"",
    "redis.elements == 2",
    "redis.elements in {3..11}",
    "redis.elements != 10",
    "redis.command == \"GET\"",
    "redis.command != \"SET\"",
    "redis.command in {\"DEL\", \"PING\", \"INCRBYFLOAT\"}",
    "redis.command startswith \"ge\"",
    "redis.key == \"cart:17\"",
    "redis.key != \"cart:1234567890a\"",
    "redis.key == \"\"",
    "redis.key startswith \"cart:\"",
    "redis.key startswith \"c\"",
    "redis.key startswith \"cart:1234567890a\"",
    "redis.key startswith \"\"",
    "redis.key in {\"cart\", \"cart:170\"}",
];

fn random_test(random: &mut Random) -> String {
    let at = random.below(TESTS.len());
    TESTS[at].to_owned()
}
