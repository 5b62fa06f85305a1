//! The embedded protocol library, and errors of the loader.

use parser_gen::{Filter, Library, LibraryError};

const NOTES: (&str, &str) = ("notes.yaml", "- {code: 1, name: truncated, about: x}");

const ROOT: &str = "
name: link
filter: link
about: x
root: true
header: {type: link_h}
fields:
  - {name: kind, bits: 8, filter: link.kind, about: x}
select: [kind]
next:
  - {when: [1], to: net}
";

const NET: &str = "
name: net
filter: net
about: x
header: {type: net_h}
fields:
  - {name: address, bits: 32, filter: net.address, type: ipv4, about: x}
";

fn load(root: &str, net: &str) -> Result<Library, LibraryError> {
    Library::from_sources(&[("link.yaml", root), ("net.yaml", net)], NOTES)
}

#[test]
fn builtin_library_loads() {
    let library = Library::builtin();
    for name in [
        "switch.port",
        "eth.dst",
        "vlan.id",
        "ip.src",
        "ipv6.src",
        "tcp.dport",
        "udp.dport",
        "agg.kind",
        "roce.psn",
        "redis.command",
        "redis.key",
    ] {
        assert!(library.field(name).is_some(), "{name}");
    }
    assert!(
        library.fields().all(|field| !field.about.is_empty()),
        "a field without a description"
    );
}

/// docs/filters.md lists every protocol, field and note, and shows one file unchanged.
#[test]
fn the_document_lists_protocols_fields_and_notes() {
    let document = include_str!("../../../docs/filters.md");
    let library = Library::builtin();
    let listed: String = document
        .lines()
        .skip_while(|line| !line.starts_with("Protocols, as presence tests"))
        .take_while(|line| !line.is_empty())
        .collect();
    for protocol in library.protocols() {
        let presence = Filter::parse(&library, &protocol.filter).is_ok();
        assert_eq!(
            listed.contains(&format!("`{}`", protocol.filter)),
            presence,
            "{} among the protocols of docs/filters.md",
            protocol.filter
        );
    }
    let (_origin, udp) = include_str!("../../protocols/udp.yaml")
        .split_once('\n')
        .expect("a first line");
    assert!(document.contains(udp), "not in docs/filters.md:\n{udp}");
    for field in library.fields() {
        assert!(
            document.contains(&format!("`{}`", field.name)),
            "{} is not in docs/filters.md",
            field.name
        );
    }
    for note in library.notes() {
        let row = format!("| {} | `{}` | {} |", note.code, note.name, note.about);
        assert!(document.contains(&row), "not in docs/filters.md:\n{row}");
    }
}

#[test]
fn a_small_library_loads() {
    let library = load(ROOT, NET).expect("well formed");
    assert_eq!(
        library.fields().map(|field| field.name).collect::<Vec<_>>(),
        ["link.kind", "net.address"]
    );
}

#[test]
fn mistakes_are_named() {
    let cases: &[(&str, &str, &str, &str)] = &[
        // (file, text to replace, replacement, end of the message)
        (
            "link",
            "bits: 8",
            "bits: 7",
            "link.yaml: the fields sum to 7 bits, which is not whole bytes",
        ),
        (
            "link",
            "bits: 8",
            "bits: 200",
            "link.yaml: field `kind`: use 1 to 128 bits, not 200",
        ),
        (
            "link",
            "to: net",
            "to: nat",
            "link.yaml: next 1: protocol `nat` does not exist",
        ),
        (
            "link",
            "to: net",
            "to: link",
            "link.yaml: next 1: `link` comes before this protocol",
        ),
        (
            "link",
            "to: net",
            "note: lost",
            "link.yaml: note `lost` does not exist",
        ),
        (
            "link",
            "to: net",
            "to: net, note: truncated",
            "link.yaml: next 1: write one of `to` and `note`",
        ),
        (
            "link",
            "when: [1]",
            "when: [256]",
            "link.yaml: next 1: 256 does not fit the 8 bits of `kind`",
        ),
        (
            "link",
            "when: [1]",
            "when: [1, 2]",
            "link.yaml: next 1: 2 values for 1 select fields",
        ),
        (
            "link",
            "when: [1]",
            "when: [all]",
            "link.yaml: next 1: `all` is neither a number nor `any`",
        ),
        (
            "link",
            "select: [kind]",
            "select: [sort]",
            "link.yaml: select: field `sort` does not exist",
        ),
        (
            "link",
            "filter: link.kind",
            "filter: kind",
            "link.yaml: filter name `kind` must begin with `link.`",
        ),
        (
            "link",
            "root: true",
            "root: false",
            "library: no protocol has `root`",
        ),
        (
            "net",
            "name: net",
            "name: Net",
            "net.yaml: name `Net` is not a lower-case identifier",
        ),
        (
            "net",
            "name: net",
            "name: link",
            "net.yaml: two protocols are named `link`",
        ),
        (
            "net",
            "bits: 32",
            "bits: 40",
            "net.yaml: field `address`: an IPv4 address has 32 bits, not 40",
        ),
        (
            "net",
            "about: x\nheader",
            "root: true\nabout: x\nheader",
            "net.yaml: a second root",
        ),
        (
            "net",
            "header: {type: net_h}",
            "",
            "net.yaml: write one of `metadata`, `header` and `message`",
        ),
    ];
    for (file, from, to, expected) in cases {
        let change = |name: &str, text: &str| {
            if name == *file {
                assert!(text.contains(from), "{from} is not in {name}");
                text.replacen(from, to, 1)
            } else {
                text.to_owned()
            }
        };
        let error = load(&change("link", ROOT), &change("net", NET)).expect_err(expected);
        assert_eq!(format!("{}: {}", error.file, error.message), *expected);
        assert!(error.line > 0 && error.column > 0, "{error}");
    }
}

#[test]
fn yaml_errors_have_a_place() {
    let error = load(&ROOT.replace("select:", "selects:"), NET).expect_err("an unknown key");
    let text = error.to_string();
    assert!(
        text.starts_with("link.yaml:9:1: unknown field `selects`"),
        "{text}"
    );
    let error = load(&ROOT.replace("bits: 8", "bits: eight"), NET).expect_err("not a number");
    assert!(error.to_string().starts_with("link.yaml:8:"), "{error}");
}

#[test]
fn notes_are_checked() {
    for (notes, expected) in [
        (
            "- {code: 0, name: a, about: x}",
            "notes.yaml: note `a`: the code must be 1 to 63",
        ),
        (
            "- {code: 64, name: a, about: x}",
            "notes.yaml: note `a`: the code must be 1 to 63",
        ),
        (
            "- {code: 1, name: a, about: x}\n- {code: 1, name: b, about: x}",
            "notes.yaml: note `b`: another note has its code or name",
        ),
    ] {
        let error =
            Library::from_sources(&[("net.yaml", NET)], ("notes.yaml", notes)).expect_err(expected);
        assert_eq!(format!("{}: {}", error.file, error.message), expected);
    }
}

/// Headers that p4src/common declares have the library's fields.
#[test]
fn common_headers_have_the_librarys_fields() {
    let text = include_str!("../../../p4src/common/headers.p4");
    for (file, header) in [
        (include_str!("../../protocols/ethernet.yaml"), "ethernet_h"),
        (include_str!("../../protocols/ipv4.yaml"), "ipv4_h"),
        (include_str!("../../protocols/udp.yaml"), "udp_h"),
        (include_str!("../../protocols/agg.yaml"), "agg_h"),
    ] {
        let begin = text.find(&format!("header {header} {{")).expect("declared");
        let body = &text[begin..][..text[begin..].find('}').expect("closed")];
        let declared: Vec<(u32, &str)> = body
            .lines()
            .skip(1)
            .filter_map(|line| line.trim().strip_suffix(';')?.split_once(' '))
            .map(|(ty, name)| {
                let width = match ty {
                    "mac_t" => 48,
                    "ipv4_t" | "chunk_t" => 32,
                    ty => ty
                        .trim_start_matches("bit<")
                        .trim_end_matches('>')
                        .parse()
                        .expect("a width"),
                };
                (width, name)
            })
            .collect();
        let yaml: serde_yaml::Value = serde_yaml::from_str(file).expect("YAML");
        let library: Vec<(u32, &str)> = yaml["fields"]
            .as_sequence()
            .expect("fields")
            .iter()
            .map(|field| {
                (
                    field["bits"].as_u64().expect("bits") as u32,
                    field["name"].as_str().expect("name"),
                )
            })
            .collect();
        assert_eq!(declared, library, "{header}");
    }
}
