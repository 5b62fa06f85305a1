//! Snapshots of the generated text for some sets of filters.

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
    generate(
        &Library::builtin(),
        &flows(filters),
        &Options::aggregating(aggregate),
    )
}

/// Text and entries, formatted for reading.
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

/// Headers that no filter needs are not parsed.
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
fn classes_are_numbered_by_their_flows() {
    let filters = [
        ("web", "tcp.dport in {80, 443}"),
        ("tls", "tcp.dport == 443"),
        ("dns", "udp.dport == 53"),
        ("mine", "ip.src == 10.0.0.1"),
    ];
    let generated = generated(&filters, false).expect("generates");
    let sets: &[&[usize]] = &[&[], &[0], &[2], &[3], &[0, 1], &[0, 3], &[2, 3], &[0, 1, 3]];
    assert_eq!(generated.classes().sets(), sets);
    let classes = generated.classes();
    assert_eq!(classes.number(&[0, 3]), Some(5));
    assert_eq!(classes.number(&[0, 2]), None);
    assert_eq!(classes.containing(1), [4, 7]);
    assert!(classes.implies(1, 0) && !classes.implies(0, 1));
    assert!(classes.meet(2, 3) && !classes.meet(1, 2));
}

/// The P4 text does not depend on the values in filters, so a change of values is a change of entries only.
#[test]
fn values_are_in_entries_not_in_the_text() {
    let one = generated(
        &[("a", "tcp.dport == 80"), ("b", "ip.src == 10.0.0.1")],
        true,
    );
    let other = generated(
        &[("x", "tcp.dport == 81"), ("y", "ip.src == 10.9.0.1")],
        true,
    );
    assert_eq!(one.expect("generates").p4, other.expect("generates").p4);
}

#[test]
fn every_packet_can_be_a_flow() {
    let entries = generated(&[("all", "tcp || !tcp")], false)
        .expect("generates")
        .entries_for("SwitchIngress.classify");
    // One for each side: terms are not merged, but none is missing.
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
fn too_many_alternatives_are_refused() {
    // 4^5 alternatives.
    let fields = ["ip.src", "ip.dst", "tcp.seq", "tcp.ack", "ip.id"];
    let either = |field: &&str| {
        let bits = if field.starts_with("ip.s") || field.starts_with("ip.d") {
            ["0.0.0.1", "0.0.0.2", "0.0.0.4", "0.0.0.8"]
        } else {
            ["1", "2", "4", "8"]
        };
        let tests = bits
            .iter()
            .zip(["eth", "vlan", "inner_vlan", "tcp.flags.syn"]);
        let tests = tests.map(|(bit, other)| format!("{field} == {bit} && {other}"));
        format!("({})", tests.collect::<Vec<_>>().join(" || "))
    };
    let filter: Vec<String> = fields.iter().map(either).collect();
    let error = generated(&[("wide", &filter.join(" && "))], false).expect_err("too many");
    assert!(
        matches!(error, GenerateError::TooManyTerms { .. }),
        "{error}"
    );
}

#[test]
fn too_many_classes_are_refused_and_named() {
    let filters: Vec<(String, String)> = (0..300)
        .flat_map(|n| {
            [
                (format!("s{n}"), format!("tcp.sport == {n}")),
                (format!("d{n}"), format!("tcp.dport == {n}")),
            ]
        })
        .collect();
    let shown: Vec<(&str, &str)> = filters
        .iter()
        .map(|(n, f)| (n.as_str(), f.as_str()))
        .collect();
    let error = generated(&shown, false).expect_err("300 times 300 sets");
    insta::assert_snapshot!(error);
    assert!(generated(&shown[..400], false).is_ok(), "200 times 200");
}

#[test]
fn filters_that_share_branches_become_a_chain_of_tables() {
    // 100 networks with 100 ports each are 10,000 pairs, but two tables in a chain have 200 rows.
    let set = |of: &dyn Fn(usize) -> String| (0..100).map(of).collect::<Vec<_>>().join(", ");
    let networks = set(&|n| format!("10.{}.0.0/16", 2 * n));
    let ports = set(&|n| (3 * n + 1).to_string());
    let filter = format!("ip.src in {{{networks}}} && tcp.dport in {{{ports}}}");
    let generated = generated(&[("a", &filter)], false).expect("generates");
    let entries = generated.entries_for("C");
    assert!(entries.len() < 250, "{} entries", entries.len());
    assert!(generated.p4.contains("table flows1 "), "{}", generated.p4);
}

#[test]
fn names_and_numbers_of_flows_are_checked() {
    let error = generated(&[("a b", "tcp")], false).expect_err("a space");
    assert!(matches!(error, GenerateError::BadName { .. }));
    let error = generated(&[("a-b", "tcp"), ("a_b", "udp")], false).expect_err("the same in P4");
    assert!(matches!(error, GenerateError::DuplicateName { .. }));
    let names: Vec<String> = (0..=MAX_FLOWS).map(|n| format!("f{n}")).collect();
    let filters: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "tcp")).collect();
    let error = generated(&filters, false).expect_err("one too many");
    assert_eq!(
        error,
        GenerateError::TooManyFlows {
            count: MAX_FLOWS + 1
        }
    );
}
