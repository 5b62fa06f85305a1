//! Generated text and entries against the meaning of the filters, on random filters and random packets.
//!
//! One side: the generated parser states run on the bytes, then table lookups with the generated entries. The other
//! side: [`Library::dissect`] and [`Filter::matches`].

use crate::common::Random;
use crate::common::filters::{TESTS, random_filter};
use crate::common::packets::{Frame, Network, Transport, random_frame, resp};
use crate::common::text::Program;
use parser_gen::{Filter, Flow, GenerateError, Library, Options, generate};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: test_support::cases(400), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn entries_mean_what_filters_mean(seed: u64) {
        let library = Library::builtin();
        let mut random = Random(seed);
        let mut flows = Vec::new();
        while flows.len() < 3 {
            let text = random_filter(&mut random, 3);
            let filter = Filter::parse(&library, &text).expect("well formed");
            let flow = Flow { name: format!("f{}", flows.len()), filter };
            // Filters that can be generated alone can be generated together.
            match generate(&library, std::slice::from_ref(&flow), &Options::default()) {
                Ok(_) => flows.push(flow),
                Err(GenerateError::TooManyTerms { .. }) => {}
                Err(GenerateError::NeverMatches { .. }) => {
                    for _ in 0..20 {
                        let frame = random_frame(&mut random);
                        let values = library.dissect(&frame, 3);
                        prop_assert!(!flow.filter.matches(&values), "{text} matches {frame:02x?}");
                    }
                }
                Err(error) => prop_assert!(false, "{text}: {error}"),
            }
        }
        let aggregate = random.one_in(2);
        let generated = generate(&library, &flows, &Options::aggregating(aggregate)).expect("each alone is generated");
        let entries = generated.entries_for("SwitchIngress.classify");
        for parser in ["FlowParser", "FlowParserShort"] {
            let program = Program::new(&generated.p4, parser);
            prop_assert_eq!(program.unreachable(), Vec::<&str>::new());
            for _ in 0..40 {
                let frame = random_frame(&mut random);
                let port = *random.pick(&[&1, &2, &3]);
                let parsed = program.parse(&frame, port);
                prop_assert_eq!(parsed.deparsed(), frame.clone(), "{} of {:02x?}", parser, frame);
                let values = library.dissect(&frame, port);
                let class = parsed.class(&entries);
                let expected: Vec<usize> =
                    (0..flows.len()).filter(|flow| flows[*flow].filter.matches(&values)).collect();
                prop_assert_eq!(
                    &generated.classes().sets()[class],
                    &expected,
                    "{:?} on {:?}\n{:02x?}\n{}",
                    flows.iter().map(|flow| flow.filter.text()).collect::<Vec<_>>(), values, frame, generated.p4
                );
            }
        }
    }
}

/// Random packets and filters prove something only if they match often enough.
#[test]
fn random_packets_meet_random_filters() {
    let library = Library::builtin();
    let mut random = Random(1);
    let mut filters: Vec<Filter> = [
        "redis.command == \"GET\" && redis.key startswith \"cart:\"",
        "redis.key == \"cart:1234567890a\"",
        "redis.command == \"INCRBYFLOAT\"",
        "ipv6 && redis",
        "vlan && redis",
        "ip.ihl > 5 && redis",
        "agg.kind == 1",
    ]
    .iter()
    .map(|text| Filter::parse(&library, text).expect("well formed"))
    .collect();
    for protocol in library.protocols() {
        // Metadata is present without a header.
        let Ok(presence) = Filter::parse(&library, &protocol.filter) else {
            continue;
        };
        let is_tested = |test: &&str| {
            let name = test.split([' ', '.']).next();
            name == Some(protocol.filter.as_str())
        };
        assert!(TESTS.iter().any(is_tested), "{}", protocol.filter);
        filters.push(presence);
    }
    let mut met = vec![0; filters.len()];
    for _ in 0..20_000 {
        let values = library.dissect(&random_frame(&mut random), 1);
        for (filter, met) in filters.iter().zip(&mut met) {
            *met += u32::from(filter.matches(&values));
        }
    }
    for (filter, met) in filters.iter().zip(met) {
        assert!(met >= 50, "{}: {met}", filter.text());
    }
}

fn note_of(filter: &str, frame: &Frame, cut: usize) -> u128 {
    let library = Library::builtin();
    let flow = Flow {
        name: "f".to_owned(),
        filter: Filter::parse(&library, filter).expect("well formed"),
    };
    let generated = generate(&library, &[flow], &Options::default()).expect("generates");
    let mut bytes = frame.bytes();
    bytes.truncate(bytes.len() - cut);
    Program::new(&generated.p4, "FlowParser")
        .parse(&bytes, 1)
        .note
}

/// Notes that the parser sets.
#[test]
fn the_parser_says_why_it_stopped() {
    let get = resp(&[b"GET", b"cart:17"]);
    let frame = Frame::redis(&get);
    assert_eq!(note_of("redis", &frame, 0), 0);
    assert_eq!(
        note_of("redis", &Frame::redis(b""), 0),
        0,
        "a bare acknowledgement"
    );
    assert_eq!(
        note_of("redis", &frame, get.len() + 15),
        1,
        "cut in the TCP options"
    );
    assert_eq!(
        note_of("redis.key == \"a\"", &frame, get.len() - 6),
        0,
        "cut in the command's length: no hit, and no note"
    );
    let mut fragment = frame.clone();
    if let Network::Ipv4 { frag_offset, .. } = &mut fragment.network {
        *frag_offset = 185;
    }
    assert_eq!(note_of("tcp", &fragment, 0), 3);
    assert_eq!(note_of("ip", &fragment, 0), 0, "nobody asks for TCP");
    let mut extension = frame.clone();
    extension.network = Network::Ipv6 { src: 1, dst: 2 };
    extension.transport = Transport::Other(43);
    assert_eq!(note_of("tcp", &extension, 0), 4);
}

/// Tofino's parser has 256 rows; the largest text must stay in reach.
#[test]
fn sizes_stay_bounded() {
    let library = Library::builtin();
    let flows: Vec<Flow> = (1..=16)
        .map(|n| Flow {
            name: format!("f{n}"),
            filter: Filter::parse(
                &library,
                &format!("redis.key startswith \"{}\"", "k".repeat(n)),
            )
            .expect("well formed"),
        })
        .collect();
    let generated = generate(&library, &flows, &Options::aggregating(true)).expect("generates");
    let states = Program::new(&generated.p4, "FlowParser").num_states();
    assert!(states < 200, "{states} states");
    let small = generate(&library, &[], &Options::aggregating(true)).expect("generates");
    let states = Program::new(&small.p4, "FlowParser").num_states();
    assert!(states <= 8, "{states} states without a filter");
}
