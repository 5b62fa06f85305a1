//! Filter language: a corpus of invalid filters with their diagnostics, and the meaning of valid ones.
#![allow(clippy::disallowed_methods, reason = "the corpus is a folder of files")]

use std::path::Path;

use parser_gen::{FieldValues, Filter, Library};

/// `tests/corpus/NAME.filter` holds a filter, `NAME.expected` its diagnostic. `UPDATE_CORPUS=1` rewrites the latter.
#[test]
fn corpus_of_errors() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let library = Library::builtin();
    let mut cases: Vec<_> = std::fs::read_dir(&folder)
        .expect("the corpus is there")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "filter")
        })
        .collect();
    cases.sort();
    assert!(cases.len() >= 30, "only {} cases", cases.len());
    for path in cases {
        let text = std::fs::read_to_string(&path).expect("readable");
        let text = text.trim_end_matches('\n');
        let error =
            Filter::parse(&library, text).expect_err(&format!("{} is accepted", path.display()));
        let shown = diagnostic(text, &error);
        let expected = path.with_extension("expected");
        if std::env::var_os("UPDATE_CORPUS").is_some() {
            std::fs::write(&expected, &shown).expect("writable");
        }
        let expected = std::fs::read_to_string(&expected).unwrap_or_default();
        assert_eq!(shown, expected, "{}", path.display());
    }
}

fn diagnostic(text: &str, error: &parser_gen::FilterError) -> String {
    assert!(
        text.get(error.span.clone()).is_some(),
        "{:?} is no place in {text:?}",
        error.span
    );
    let begin = text[..error.span.start].chars().count();
    let width = text[error.span.clone()].chars().count().max(1);
    let mut shown = format!(
        "{text}\n{}{} {error}\n",
        " ".repeat(begin),
        "^".repeat(width)
    );
    if let Some(hint) = &error.hint {
        shown.push_str(&format!("hint: {hint}\n"));
    }
    shown
}

fn matches(text: &str, values: &FieldValues) -> bool {
    Filter::parse(&Library::builtin(), text)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .matches(values)
}

#[test]
fn precedence_and_spelling() {
    let mut values = FieldValues::new();
    values.set_number("tcp.dport", 80);
    // `and` binds closer than `or`, `not` closest.
    assert!(matches("tcp.dport == 80 || tcp && udp", &values));
    assert!(!matches("(tcp.dport == 80 || tcp) && udp", &values));
    assert!(matches("not udp and tcp", &values));
    assert!(!matches("!(tcp or udp)", &values));
    assert!(matches("tcp.dport==0x50&&!udp", &values));
}

#[test]
fn an_absent_field_passes_no_comparison() {
    let mut values = FieldValues::new();
    values.set_number("ip.ttl", 3);
    assert!(!matches("tcp.dport != 80", &values));
    assert!(matches("!(tcp.dport == 80)", &values));
    assert!(matches("ip.ttl != 4", &values));
}

#[test]
fn numbers() {
    let mut values = FieldValues::new();
    values.set_number("ip.ttl", 64);
    for (text, expected) in [
        ("ip.ttl < 64", false),
        ("ip.ttl <= 64", true),
        ("ip.ttl > 64", false),
        ("ip.ttl >= 64", true),
        ("ip.ttl in {1, 2, 60..64}", true),
        ("ip.ttl in {60..63, 65..255}", false),
        ("ip.ttl >= 0", true),
    ] {
        assert_eq!(matches(text, &values), expected, "{text}");
    }
}

#[test]
fn addresses() {
    let mut values = FieldValues::new();
    values.set_number("ip.src", 0x0a01_0203);
    values.set_number("ipv6.dst", 0x2001_0db8_0000_0000_0000_0000_0000_0001);
    values.set_number("eth.src", 0x0200_0000_00ff);
    for (text, expected) in [
        ("ip.src == 10.1.2.3", true),
        ("ip.src == 10.0.0.0/8", true),
        ("ip.src == 10.1.0.0/24", false),
        ("ip.src != 192.168.0.0/16", true),
        ("ip.src in {10.1.2.0..10.1.2.9}", true),
        ("ip.src in {192.168.0.0/16, 10.1.0.0/16}", true),
        ("ip.src < 10.1.2.4", true),
        ("ip.src == 0.0.0.0/0", true),
        ("ipv6.dst == 2001:db8::1", true),
        ("ipv6.dst == 2001:db8::/32", true),
        ("ipv6.dst == ::1", false),
        ("eth.src == 02:00:00:00:00:ff", true),
        ("eth.src == 02-00-00-00-00-FE", false),
    ] {
        assert_eq!(matches(text, &values), expected, "{text}");
    }
}

#[test]
fn texts() {
    let mut values = FieldValues::new();
    values.set_text("redis.command", b"gEt");
    values.set_text("redis.key", b"cart:\x01\"");
    for (text, expected) in [
        (r#"redis.command == "GET""#, true),
        (r#"redis.command != "get""#, false),
        (r#"redis.command == "GETSET""#, false),
        (r#"redis.command startswith "ge""#, true),
        (r#"redis.command in {"SET", "GET"}"#, true),
        (r#"redis.key == "cart:\x01\"""#, true),
        (r#"redis.key == "CART:\x01\"""#, false),
        (r#"redis.key startswith "cart:""#, true),
        (r#"redis.key startswith "cart:17:more""#, false),
        (r#"redis.key != "cart:""#, true),
    ] {
        assert_eq!(matches(text, &values), expected, "{text}");
    }
}

#[test]
fn flags_stand_alone() {
    let mut values = FieldValues::new();
    values.set_number("tcp.flags.syn", 1);
    values.set_number("tcp.flags.ack", 0);
    assert!(matches("tcp.flags.syn && !tcp.flags.ack", &values));
    assert!(matches("tcp.flags.ack == 0", &values));
}

/// Filters of tcpdump, iptables, Wireshark, P4 and C, and the filter that the hint has in backquotes.
const FOREIGN: [(&str, &str); 42] = [
    (
        "tcp.flags == 0x02",
        "tcp.flags.syn && !(tcp.flags.cwr || tcp.flags.ece || tcp.flags.urg || tcp.flags.ack || tcp.flags.psh || tcp.flags.rst || tcp.flags.fin)",
    ),
    ("tcp.flags & 2 != 0", "tcp.flags.syn"),
    (
        "ip.ttl < 9 && tcp.flags & 0x12",
        "ip.ttl < 9 && (tcp.flags.ack || tcp.flags.syn)",
    ),
    (
        "(tcp.flags & 0x12) == 0x12",
        "(tcp.flags.ack && tcp.flags.syn)",
    ),
    ("tcp.flags & 4 == 0", "!tcp.flags.rst"),
    ("tcp[13] & 2 != 0", "tcp.flags.syn"),
    (
        "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
        "(tcp.flags.syn || tcp.flags.fin)",
    ),
    ("ip.version == 4", "ip"),
    ("hdr.ipv4.version == 6", "ipv6"),
    ("ip.tos == 4", "ip.dscp == 1 && ip.ecn == 0"),
    ("ipv4.diffserv == 0xba", "ip.dscp == 46 && ip.ecn == 2"),
    ("tos == 4", "ip.dscp == 1 && ip.ecn == 0"),
    ("tcp.hdr_len == 20", "tcp.hdr_words == 5"),
    ("ip.hdr_len == 24", "ip.ihl == 6"),
    (
        "ip.addr == 10.0.0.1",
        "(ip.src == 10.0.0.1 || ip.dst == 10.0.0.1)",
    ),
    (
        "ip.addr != 10.0.0.1",
        "(ip.src != 10.0.0.1 && ip.dst != 10.0.0.1)",
    ),
    (
        "tcp.port in {80, 443..445}",
        "(tcp.sport in {80, 443..445} || tcp.dport in {80, 443..445})",
    ),
    ("infiniband.bth.psn", "roce.psn"),
    ("ttl < 5", "ip.ttl"),
    ("bootp", "udp.dport in {67, 68}"),
    ("tls", "(tcp.sport == 443 || tcp.dport == 443)"),
    ("tcp port 80", "(tcp.sport == 80 || tcp.dport == 80)"),
    ("tcp dst port 80", "tcp.dport == 80"),
    (
        "port 53",
        "(tcp.sport == 53 || tcp.dport == 53 || udp.sport == 53 || udp.dport == 53)",
    ),
    (
        "udp portrange 5-9",
        "(udp.sport in {5..9} || udp.dport in {5..9})",
    ),
    (
        "host 10.0.0.1",
        "(ip.src == 10.0.0.1 || ip.dst == 10.0.0.1)",
    ),
    (
        "src host 10.0.0.1 and not dst port 22",
        "ip.src == 10.0.0.1 && !(tcp.dport == 22 || udp.dport == 22)",
    ),
    ("src 10.0.0.1", "ip.src == 10.0.0.1"),
    ("dst net 10.0.0.0/8", "ip.dst == 10.0.0.0/8"),
    (
        "ip6 and (tcp or udp) and dst 2001:db8::1",
        "ipv6 && (tcp || udp) && ipv6.dst == 2001:db8::1",
    ),
    ("tcp.dport eq 80", "tcp.dport == 80"),
    (
        "tcp.dport ge 80 AND ip.ttl lt 3",
        "tcp.dport >= 80 && ip.ttl < 3",
    ),
    ("tcp.dport in {80 443}", "tcp.dport in {80, 443}"),
    (
        "tcp.dport in {80 443 .. 445}",
        "tcp.dport in {80, 443 .. 445}",
    ),
    ("tcp.dport = 80", "tcp.dport == 80"),
    ("tcp & ip.ttl < 3 | udp", "tcp && ip.ttl < 3 || udp"),
    ("redis.command eq \"GET\"", "redis.command == \"GET\""),
    ("-p tcp --dport 80", "tcp.dport == 80"),
    ("-p udp --sport 67:68", "udp.sport in {67..68}"),
    (
        "-s 10.0.0.0/8 -d 10.0.0.9 -p icmp",
        "ip.src == 10.0.0.0/8 && ip.dst == 10.0.0.9 && icmp",
    ),
    (
        "-A INPUT -p tcp -m multiport --dports 80,443 -j DROP",
        "tcp.dport in {80, 443}",
    ),
    ("tpc.dport == 80", "tcp.dport"),
];

/// Texts in backquotes.
fn code(hint: &str) -> impl Iterator<Item = &str> {
    hint.split('`').skip(1).step_by(2)
}

#[test]
fn what_hints_write_for_filters_of_other_tools_means_the_same() {
    let library = Library::builtin();
    for (written, meant) in FOREIGN {
        let error = Filter::parse(&library, written).expect_err(written);
        let hint = error.hint.clone().unwrap_or_default();
        assert!(code(&hint).any(|code| code == meant), "{written}: {hint}");
        // A suggested field replaces the name that was written.
        let name = &written[error.span.clone()];
        let is_name = matches!(error.kind, parser_gen::FilterErrorKind::Unknown { .. });
        let pasted = match library.field(meant) {
            Some(_) if is_name => written.replace(name, meant),
            _ => meant.to_owned(),
        };
        let is_bare = pasted == "roce.psn";
        assert!(
            is_bare || Filter::parse(&library, &pasted).is_ok(),
            "{written}: {pasted}"
        );
    }
}

/// Whatever foreign name is written, a hint names only existing fields and protocols, and no field of another protocol.
#[test]
fn names_in_hints_exist_and_are_of_the_protocol_that_was_written() {
    let library = Library::builtin();
    let fields = [
        "addr",
        "version",
        "flags",
        "tos",
        "hdr_len",
        "len",
        "length",
        "port",
        "checksum",
        "srcAddr",
        "frag",
        "seqno",
        "window_size",
        "stream",
        "payload",
        "options",
        "flags.df",
        "nothing",
    ];
    let protocols = [
        "ip", "ipv4", "ipv6", "tcp", "udp", "eth", "vlan", "icmp", "arp", "hdr.ipv4",
    ];
    let mut hints = 0;
    for (protocol, field) in protocols
        .iter()
        .flat_map(|protocol| fields.map(|field| (*protocol, field)))
    {
        let name = format!("{protocol}.{field}");
        let own = protocol.trim_start_matches("hdr.").replace("ipv4", "ip");
        let in_filter = Filter::parse(&library, &format!("{name} == 1")).err();
        let in_filter = in_filter.and_then(|error| error.hint);
        let fits = |field: &str| library.field(field).is_some() && !field.starts_with("switch");
        let of_field = parser_gen::filter::hint_for_field(&library, &name, Some(1), &fits);
        for hint in in_filter.iter().chain(&of_field) {
            hints += 1;
            for code in code(hint) {
                let names =
                    code.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '_'));
                for known in names.filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
                {
                    let is_protocol = library.protocols().iter().any(|one| one.filter == known);
                    assert!(
                        is_protocol || library.field(known).is_some(),
                        "{name}: {hint}"
                    );
                    let of = known.split('.').next();
                    let is_length = known == "ip.len" || field == "version";
                    assert!(of == Some(&own) || is_length, "{name}: {hint}");
                }
            }
        }
    }
    assert!(hints > 200, "{hints}");
}

/// Where one field is expected, a hint is no filter: it names fields that fit, and values that they can have.
#[test]
fn hints_for_a_field_name_fields() {
    let library = Library::builtin();
    let fits = |field: &str| library.field(field).is_some() && field != "ip.dst";
    let hint = |name: &str, value| {
        parser_gen::filter::hint_for_field(&library, name, value, &fits).unwrap_or_default()
    };
    for (name, value, told) in [
        ("tcp.port", None, "name one end: `tcp.sport` or `tcp.dport`"),
        ("ip.addr", None, "name one end: `ip.src`"),
        (
            "tcp.flags",
            Some(4),
            "each flag is a field: write `tcp.flags.rst: 1`, and 0 for flags that must be off",
        ),
        (
            "tcp.flags",
            Some(0x12),
            "each flag is a field: write `tcp.flags.ack: 1`, `tcp.flags.syn: 1`, and 0 for flags that must be off",
        ),
        (
            "ip.tos",
            Some(4),
            "it is two fields: write `ip.dscp: 1` and `ip.ecn: 0`",
        ),
        (
            "tos",
            Some(0xb8),
            "it is two fields: write `ip.dscp: 46` and `ip.ecn: 0`",
        ),
        (
            "ip.tos",
            None,
            "it is two fields: `ip.dscp`, its upper six bits, and `ip.ecn`",
        ),
        (
            "tcp.len",
            None,
            "the length in a header is `ip.len`, which includes the headers of IP and TCP",
        ),
        ("ttl", Some(1), "write `ip.ttl`"),
        ("tcp.dprot", Some(1), "did you mean `tcp.dport`?"),
        (
            "udp.color",
            None,
            "the fields of `udp` are udp.sport, udp.dport, udp.len",
        ),
    ] {
        assert_eq!(hint(name, value), told, "{name}");
    }
    assert!(hint("ip.version", Some(6)).starts_with("the fields of `ip` are ip.ihl"));
    assert!(hint("payload", None).starts_with("bytes of a payload have no field"));
    assert_eq!(hint("nothing.at.all", None), "");
}
