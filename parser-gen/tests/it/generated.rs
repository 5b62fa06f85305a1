//! The generated text for some sets of filters, as snapshots.

use parser_gen::{Filter, Flow, GenerateError, Generated, Library, MAX_FLOWS, Options, generate};

fn flows(filters: &[(&str, &str)]) -> Vec<Flow> {
    let library = Library::builtin();
    filters
        .iter()
        .map(|(name, text)| Flow {
            name: (*name).to_owned(),
            filter: Filter::parse(&library, text).unwrap_or_else(|error| panic!("{text}: {error}")),
        })
        .collect()
}

fn generated(filters: &[(&str, &str)], aggregate: bool) -> Result<Generated, GenerateError> {
    generate(&Library::builtin(), &flows(filters), &Options { aggregate })
}

/// Text and entries, for reading.
fn shown(filters: &[(&str, &str)], aggregate: bool) -> String {
    let generated = generated(filters, aggregate).expect("these filters generate");
    let mut text = generated.p4.clone();
    text.push_str("\n// Entries:\n");
    for entry in generated.entries_for("SwitchIngress.classify") {
        text.push_str(&format!(
            "// {} {} {}",
            entry.table, entry.priority, entry.action.name
        ));
        for field in entry.key {
            text.push_str(&format!(" {}={:x?}", field.field, field.value));
        }
        text.push('\n');
    }
    text
}

#[test]
fn aggregation_alone() {
    insta::assert_snapshot!(shown(&[], true));
}

#[test]
fn addresses() {
    insta::assert_snapshot!(shown(
        &[
            ("client-a", "ip.src == 10.0.0.1"),
            ("not_ssh", "tcp && !(tcp.dport == 22 || tcp.sport == 22)"),
            (
                "high_ports",
                "udp.dport in {1024..65535} && ip.dst == 10.0.0.0/8"
            ),
            ("tagged", "vlan.id == 5 && inner_vlan && switch.port == 3"),
        ],
        true,
    ));
}

#[test]
fn redis() {
    insta::assert_snapshot!(shown(
        &[
            (
                "gets",
                r#"ip.src == 10.0.0.1 && tcp.dport == 6379 && redis.command == "GET""#
            ),
            (
                "carts",
                r#"ip.src == 10.0.0.1 && redis.command == "SET" && redis.key startswith "cart:""#
            ),
            (
                "one_key",
                r#"ip && (redis.key == "cart:17" || redis.command in {"DEL", "UNLINK"})"#
            ),
        ],
        true,
    ));
}

#[test]
fn generating_twice_gives_the_same_bytes() {
    let filters = [
        ("a", r#"redis.key startswith "x""#),
        ("b", "ip.src == 10.0.0.0/8 || ipv6"),
    ];
    let once = generated(&filters, true).expect("generates");
    assert_eq!(once, generated(&filters, true).expect("generates"));
}

/// What nobody asks for is not parsed.
#[test]
fn only_needed_headers_are_parsed() {
    let text = generated(&[("a", "ip.src == 10.0.0.1 && tcp")], false)
        .expect("generates")
        .p4;
    for absent in [
        "ipv6",
        "redis",
        "parse_udp",
        "parse_agg",
        "bth_h",
        "parse_tcp_next",
    ] {
        assert!(!text.contains(absent), "{absent} is in\n{text}");
    }
    let text = generated(&[("a", "eth.type == 0x0806")], false)
        .expect("generates")
        .p4;
    assert!(!text.contains("parse_ipv4"), "{text}");
}

#[test]
fn flow_bits_follow_declared_order() {
    let generated = generated(&[("z", "tcp"), ("a", "udp")], false).expect("generates");
    assert_eq!(
        generated.flow_bits,
        [("z".to_owned(), 0), ("a".to_owned(), 1)]
    );
    let tables: Vec<String> = generated
        .entries_for("SwitchIngress.classify")
        .into_iter()
        .map(|entry| entry.table)
        .collect();
    assert_eq!(
        tables,
        [
            "SwitchIngress.classify.flow_z",
            "SwitchIngress.classify.flow_a"
        ]
    );
    // No fault acts there, so nothing is classified.
    assert_eq!(generated.entries_for("SwitchEgress.classify"), []);
}

#[test]
fn every_packet_can_be_a_flow() {
    let entries = generated(&[("all", "tcp || !tcp")], false)
        .expect("generates")
        .entries_for("SwitchIngress.classify");
    // One for each side: terms are not merged, but all are there.
    assert!(!entries.is_empty());
}

#[test]
fn contradictions_are_refused() {
    for filter in [
        "tcp.dport == 1 && tcp.dport == 2",
        "ip && ipv6",
        "tcp && udp",
        "tcp && !(ip || ipv6)",
    ] {
        let error = generated(&[("f", filter)], false).expect_err(filter);
        assert!(
            matches!(error, GenerateError::NeverMatches { .. }),
            "{filter}: {error}"
        );
    }
}

#[test]
fn too_many_terms_are_refused() {
    let sets = ["tcp.seq", "tcp.ack"].map(|field| format!("{field} in {{1..4294967294}}"));
    let error =
        generated(&[("wide", &sets.join(" && "))], false).expect_err("62 times 62 prefixes");
    assert!(
        matches!(error, GenerateError::TooManyTerms { .. }),
        "{error}"
    );
}

#[test]
fn names_and_numbers_of_flows_are_checked() {
    let error = generated(&[("a b", "tcp")], false).expect_err("a space");
    assert!(matches!(error, GenerateError::BadName { .. }));
    let error = generated(&[("a-b", "tcp"), ("a_b", "udp")], false).expect_err("the same in P4");
    assert!(matches!(error, GenerateError::DuplicateName { .. }));
    let names: Vec<String> = (0..=MAX_FLOWS).map(|n| format!("f{n}")).collect();
    let filters: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "tcp")).collect();
    assert!(generated(&filters[..MAX_FLOWS], false).is_ok());
    let error = generated(&filters, false).expect_err("33 flows");
    assert_eq!(
        error,
        GenerateError::TooManyFlows {
            count: MAX_FLOWS + 1
        }
    );
}
