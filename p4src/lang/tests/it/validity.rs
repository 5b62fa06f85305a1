//! Warnings of `weir p4 check` about headers that may be invalid, and about values that are never set.

use p4lang::{Files, Options, compile, validity};

/// The parts of a v1model program with Ethernet, then IPv4, then TCP.
#[derive(Default)]
struct V1<'a> {
    start: &'a str,
    /// Statements in the state that extracts TCP.
    tcp: &'a str,
    /// Keys of the select after IPv4.
    keys: &'a str,
    cases: &'a str,
    decls: &'a str,
    locals: &'a str,
    ingress: &'a str,
    egress: &'a str,
}

impl V1<'_> {
    /// The warnings, each after the source text of its span.
    #[track_caller]
    fn said(&self) -> Vec<String> {
        let V1 {
            start,
            tcp,
            keys,
            cases,
            decls,
            locals,
            ingress,
            egress,
        } = self;
        let (keys, cases) = match keys.is_empty() {
            true => ("h.ip.proto", "6: tcp; default: accept;"),
            false => (*keys, *cases),
        };
        let text = format!(
            "#include <v1model.p4>
header eth_h {{ bit<16> kind; }}
header ip_h {{ bit<8> ttl; bit<8> proto; }}
header tcp_h {{ bit<16> port; }}
struct h_t {{ eth_h eth; ip_h ip; tcp_h tcp; ip_h[2] more; }}
struct m_t {{ bit<8> a; bit<8> b; ip_h kept; bit<8> has_tcp; @field_list(0) bit<8> kept_too; }}
{decls}
parser P(packet_in p, out h_t h, inout m_t m, inout standard_metadata_t s) {{
    state start {{ p.extract(h.eth); {start} transition select(h.eth.kind) {{ 0x800: ip; default: accept; }} }}
    state ip {{ p.extract(h.ip); transition select({keys}) {{ {cases} }} }}
    state tcp {{ p.extract(h.tcp); {tcp} transition accept; }}
}}
control V(inout h_t h, inout m_t m) {{ apply {{ }} }}
control I(inout h_t h, inout m_t m, inout standard_metadata_t s) {{
    {locals}
    apply {{ {ingress} }}
}}
control E(inout h_t h, inout m_t m, inout standard_metadata_t s) {{ apply {{ {egress} }} }}
control U(inout h_t h, inout m_t m) {{ apply {{ }} }}
control D(packet_out p, in h_t h) {{ apply {{ p.emit(h); }} }}
V1Switch(P(), V(), I(), E(), U(), D()) main;
"
        );
        let files = Files::new().with("a.p4", &text);
        let compiled = compile(&files, "a.p4", &Options::default());
        let compiled = compiled.unwrap_or_else(|errors| panic!("{errors}"));
        let found = validity::check(&compiled.program);
        found.list.into_iter().map(|w| w.message).collect()
    }
}

const TTL: &str = "`h.ip.ttl` is read where `h.ip` may be invalid";
const PORT: &str = "`h.tcp.port` is read where `h.tcp` may be invalid";

#[test]
fn headers_that_a_path_leaves_invalid() {
    let table = "action drop() { mark_to_drop(s); }
        action pop() { h.ip.setInvalid(); }
        action push() { h.ip.setValid(); h.ip = { 64, 6 }; }
        table t { key = { h.tcp.port: exact; } actions = { drop; pop; push; NoAction; } }
        table hits { key = { s.ingress_port: exact; } actions = { push; @defaultonly NoAction; } const default_action = NoAction(); }";
    let sub = "control Sub(inout ip_h i, in bit<8> n) { apply { i.ttl = i.ttl - n; } }
        bit<8> down(in bit<8> v) { return v - 1; }";
    let gone = "`h.ip.ttl` is read where `h.ip` is always invalid";
    let cases: &[(&str, &[&str])] = &[
        ("m.a = h.ip.ttl;", &[TTL]),
        ("h.ip.ttl = h.ip.ttl - 1;", &[TTL]),
        ("h.ip.ttl = 1;", &[]),
        ("if (h.ip.ttl == 0) { s.mcast_grp = 1; }", &[TTL]),
        (
            "if (h.ip.isValid()) { m.a = h.ip.ttl; } else { m.a = 0; }",
            &[],
        ),
        ("if (!h.ip.isValid()) { m.a = h.ip.ttl; }", &[gone]),
        (
            "if (h.ip.isValid() && h.ip.ttl == 0) { s.mcast_grp = 1; }",
            &[],
        ),
        (
            "if (h.ip.ttl == 0 && h.ip.isValid()) { s.mcast_grp = 1; }",
            &[TTL],
        ),
        (
            "if (!h.ip.isValid() || h.ip.ttl == 0) { return; } m.a = h.ip.ttl;",
            &[],
        ),
        // TCP implies IPv4, but IPv4 does not imply TCP.
        ("if (h.tcp.isValid()) { m.a = h.ip.ttl; }", &[]),
        ("if (h.ip.isValid()) { h.eth.kind = h.tcp.port; }", &[PORT]),
        // Tables, actions, hits, and which action ran.
        ("t.apply(); m.a = h.ip.ttl;", &[TTL]),
        ("if (h.ip.isValid()) { t.apply(); m.a = h.ip.ttl; }", &[TTL]),
        (
            "switch (t.apply().action_run) { push: { m.a = h.ip.ttl; } pop: { m.b = h.ip.ttl; } default: { } }",
            &[gone],
        ),
        ("if (hits.apply().hit) { m.a = h.ip.ttl; }", &[]),
        ("if (hits.apply().miss) { m.a = h.ip.ttl; }", &[TTL]),
        ("push(); m.a = h.ip.ttl;", &[]),
        ("pop(); m.a = h.ip.ttl;", &[gone]),
        // Copies, calls, loops.
        ("h.eth.kind = (bit<16>) down(h.ip.ttl);", &[TTL]),
        (
            "sub.apply(h.ip, 1);",
            &["`i.ttl` is read where `i` may be invalid"],
        ),
        ("if (h.ip.isValid()) { sub.apply(h.ip, 1); }", &[]),
        (
            "m.kept = h.ip; m.a = m.kept.ttl;",
            &["`m.kept.ttl` is read where `m.kept` may be invalid"],
        ),
        (
            "m.kept = h.ip; if (m.kept.isValid()) { m.a = m.kept.ttl; }",
            &[],
        ),
        (
            "ip_h i; m.a = i.ttl;",
            &["`i.ttl` is read where `i` is always invalid"],
        ),
        (
            "for (bit<8> n = 0; n < 3; n = n + 1) { if (n == 1) { h.ip.setInvalid(); break; } }
          if (h.ip.isValid()) { m.a = h.ip.ttl; }",
            &[],
        ),
        (
            "bit<16> d; hash(d, HashAlgorithm.crc16, 16w0, { h.ip.ttl }, 32w9);",
            &[TTL],
        ),
        (
            "update_checksum(h.ip.isValid(), { h.ip.ttl }, h.eth.kind, HashAlgorithm.csum16);",
            &[],
        ),
        (
            "update_checksum(true, { h.ip.ttl }, h.eth.kind, HashAlgorithm.csum16);",
            &[TTL],
        ),
        // Two calls of one function: the header that it reads is valid in only one of them.
        (
            "if (h.ip.isValid()) { sub.apply(h.ip, 1); } else { sub.apply(h.ip, 2); }",
            &["`i.ttl` is read where `i` may be invalid"],
        ),
        // The check does not warn of values that it does not follow.
        ("m.a = h.more[0].ttl;", &[]),
    ];
    for (ingress, expected) in cases {
        let program = V1 {
            decls: sub,
            locals: &format!("{table} Sub() sub;"),
            ingress: &format!("m.a = 0; {ingress}"),
            ..V1::default()
        };
        assert_eq!(program.said(), *expected, "{ingress}");
    }
}

#[test]
fn egress_sees_what_ingress_lets_through() {
    let egress = "m.a = h.ip.ttl;";
    for (ingress, expected) in [
        ("", &[TTL][..]),
        ("h.ip.setValid();", &[]),
        ("if (!h.ip.isValid()) { mark_to_drop(s); }", &[]),
        ("if (!h.ip.isValid()) { mark_to_drop(s); exit; }", &[]),
        (
            "if (!h.ip.isValid()) { mark_to_drop(s); s.egress_spec = 3; }",
            &[TTL],
        ),
        // A clone has the headers that the parser extracted.
        ("h.ip.setValid(); clone(CloneType.I2E, 5);", &[TTL]),
    ] {
        let program = V1 {
            ingress,
            egress,
            ..V1::default()
        };
        assert_eq!(program.said(), expected, "{ingress}");
    }
}

#[test]
fn values_that_nothing_sets() {
    let a = "`m.a` is read, but no path to here sets it";
    let x = "`x` is read, but no path to here sets it";
    for (start, ingress, expected) in [
        ("", "m.b = m.a;", &[a][..]),
        ("m.a = 1;", "m.b = m.a;", &[]),
        ("", "if (s.ingress_port == 1) { m.a = 1; } m.b = m.a;", &[]),
        ("", "m.b = m.a; m.a = 1;", &[a]),
        ("", "bit<8> x; m.b = x;", &[x]),
        ("", "bit<8> x; if (x[3:0] == 1) { x = 2; }", &[x]),
        ("", "bit<8> x; x[3:0] = 1; m.b = x;", &[]),
        ("", "bit<8> x; give(x); m.b = x;", &[]),
        ("", "bit<8> x; random(x, 8w0, 8w9); m.b = x;", &[]),
        ("", "m_t n = { 1, 2, h.ip, 0, 0 }; m.b = n.a;", &[]),
        ("", "s.egress_spec = s.ingress_port;", &[]),
        ("m.a = p.lookahead<bit<8>>();", "m.b = m.a;", &[]),
    ] {
        let program = V1 {
            start,
            locals: "action give(out bit<8> v) { v = 1; }",
            ingress,
            ..V1::default()
        };
        assert_eq!(program.said(), expected, "{start} {ingress}");
    }
}

/// A condition that implies a header's validity without asking for it.
#[test]
fn conditions_that_imply_a_header() {
    let table = "action push() { h.ip.setValid(); }
        table hits { key = { s.ingress_port: exact; } actions = { push; @defaultonly NoAction; } const default_action = NoAction(); }
        bit<8> form = 0;
        action form_is(bit<8> f) { form = f; }
        table forms {
            key = { h.ip.isValid(): exact; h.ip.proto: ternary; s.ingress_port: ternary; }
            actions = { form_is; }
            const default_action = form_is(0);
            const entries = { (true, 6, _): form_is(2); (false, _, 7): form_is(3); (true, _, _): form_is(1); }
        }
        table open {
            key = { h.ip.isValid(): exact; }
            actions = { form_is; }
            default_action = form_is(0);
            const entries = { true: form_is(1); }
        }
        table free {
            key = { h.ip.isValid(): exact; }
            actions = { form_is; }
            const default_action = form_is(0);
            entries = { true: form_is(1); }
        }";
    let cases: &[(&str, &[&str])] = &[
        // A variable that holds `isValid()`, alone or combined.
        ("bool x = h.ip.isValid(); if (x) { m.a = h.ip.ttl; }", &[]),
        (
            "bool x = h.ip.isValid(); if (!x) { return; } m.a = h.ip.ttl;",
            &[],
        ),
        (
            "bool x = !h.ip.isValid(); if (!x && h.ip.ttl == 0) { s.mcast_grp = 1; }",
            &[],
        ),
        (
            "bool x = h.ip.isValid() && s.ingress_port == 1; if (x) { m.a = h.ip.ttl; }",
            &[],
        ),
        (
            "bool x = h.ip.isValid() || s.ingress_port == 1; if (x) { m.a = h.ip.ttl; }",
            &[TTL],
        ),
        (
            "bool x = h.ip.isValid(); bool y = x; if (y == true) { m.a = h.ip.ttl; }",
            &[],
        ),
        (
            "bool x = h.ip.isValid(); h.ip.setInvalid(); if (x) { m.a = h.ip.ttl; }",
            &["`h.ip.ttl` is read where `h.ip` is always invalid"],
        ),
        (
            "bool x = h.ip.isValid(); x = s.ingress_port == 1; if (x) { m.a = h.ip.ttl; }",
            &[TTL],
        ),
        (
            "bit<1> x = (bit<1>) h.ip.isValid(); if (x == 1) { m.a = h.ip.ttl; }",
            &[],
        ),
        (
            "bit<1> x = (bit<1>) h.ip.isValid(); if (x == 0) { m.a = h.ip.ttl; }",
            &["`h.ip.ttl` is read where `h.ip` is always invalid"],
        ),
        ("if (h.ip.isValid() == true) { m.a = h.ip.ttl; }", &[]),
        (
            "if (h.ip.isValid() ? h.ip.ttl == 1 : false) { m.a = h.ip.ttl; }",
            &[],
        ),
        (
            "bit<8> l = h.ip.isValid() ? 8w4 : 8w0; if (l == 4) { m.a = h.ip.ttl; }",
            &[],
        ),
        // A flag that is set where a header is extracted, and is 0 elsewhere.
        ("if (m.has_tcp == 1) { h.eth.kind = h.tcp.port; }", &[]),
        ("if (m.has_tcp != 0) { m.a = h.ip.ttl; }", &[]),
        (
            "if (m.has_tcp == 0) { h.eth.kind = h.tcp.port; }",
            &["`h.tcp.port` is read where `h.tcp` is always invalid"],
        ),
        (
            "if (s.ingress_port == 1) { m.has_tcp = 1; } if (m.has_tcp == 1) { h.eth.kind = h.tcp.port; }",
            &[PORT],
        ),
        (
            "m.b = m.has_tcp; if (m.b == 1) { h.eth.kind = h.tcp.port; }",
            &[],
        ),
        (
            "m.has_tcp = m.has_tcp + 1; if (m.has_tcp == 1) { h.eth.kind = h.tcp.port; }",
            &[PORT],
        ),
        (
            "m.has_tcp[0:0] = 1; if (m.has_tcp == 1) { h.eth.kind = h.tcp.port; }",
            &[PORT],
        ),
        (
            "random(m.has_tcp, 8w0, 8w1); if (m.has_tcp == 1) { h.eth.kind = h.tcp.port; }",
            &[PORT],
        ),
        (
            "switch (m.has_tcp) { 1: { h.eth.kind = h.tcp.port; } default: { m.b = 1; } }",
            &[],
        ),
        // The values on which the parser selects.
        ("if (h.eth.kind == 0x800) { m.a = h.ip.ttl; }", &[]),
        (
            "if (h.eth.kind == 0x801) { m.a = h.ip.ttl; }",
            &["`h.ip.ttl` is read where `h.ip` is always invalid"],
        ),
        (
            "if (h.ip.isValid() && h.ip.proto == 6) { h.eth.kind = h.tcp.port; }",
            &[],
        ),
        (
            "if (h.ip.isValid() && h.ip.proto == 17) { h.eth.kind = h.tcp.port; }",
            &["`h.tcp.port` is read where `h.tcp` is always invalid"],
        ),
        (
            "h.ip.setValid(); if (h.ip.proto == 6) { h.eth.kind = h.tcp.port; }",
            &[PORT],
        ),
        (
            "if (h.eth.kind == 0x800) { h.eth.kind = 0; m.a = h.ip.ttl; }",
            &[],
        ),
        (
            "h.eth.kind = 0x800; if (h.eth.kind == 0x800) { m.a = h.ip.ttl; }",
            &[TTL],
        ),
        // A table whose entries are constant.
        ("forms.apply(); if (form == 1) { m.a = h.ip.ttl; }", &[]),
        (
            "forms.apply(); if (form == 2) { h.eth.kind = h.tcp.port; }",
            &[],
        ),
        (
            "forms.apply(); if (form == 3) { m.a = h.ip.ttl; }",
            &["`h.ip.ttl` is read where `h.ip` is always invalid"],
        ),
        (
            "forms.apply(); if (form == 0) { m.a = h.ip.ttl; }",
            &["`h.ip.ttl` is read where `h.ip` is always invalid"],
        ),
        (
            "if (forms.apply().hit) { if (form != 3) { m.a = h.ip.ttl; } }",
            &[],
        ),
        ("open.apply(); if (form == 1) { m.a = h.ip.ttl; }", &[TTL]),
        ("free.apply(); if (form == 1) { m.a = h.ip.ttl; }", &[TTL]),
        // Whether a table hit, and which action ran, after other statements.
        (
            "bool hit = hits.apply().hit; m.b = 1; if (hit) { m.a = h.ip.ttl; }",
            &[],
        ),
        (
            "bool hit = hits.apply().hit; m.b = 1; if (!hit) { m.a = h.ip.ttl; }",
            &[TTL],
        ),
    ];
    for (ingress, expected) in cases {
        let program = V1 {
            decls: "",
            tcp: "m.has_tcp = 1;",
            locals: table,
            ingress,
            ..V1::default()
        };
        assert_eq!(program.said(), *expected, "{ingress}");
    }
}

/// Metadata of a packet that enters ingress again, or of a clone, may differ from 0.
#[test]
fn metadata_that_an_earlier_pass_leaves() {
    let read = "if (m.has_tcp == 1) { h.eth.kind = h.tcp.port; }";
    for (ingress, egress, expected) in [
        (read, "", &[][..]),
        ("", read, &[]),
        (read, "recirculate_preserving_field_list(0);", &[PORT][..]),
        (
            "clone_preserving_field_list(CloneType.I2E, 5, 0);",
            read,
            &[PORT],
        ),
    ] {
        let program = V1 {
            tcp: "m.has_tcp = 1;",
            ingress,
            egress,
            ..V1::default()
        };
        assert_eq!(program.said(), expected, "{ingress} {egress}");
    }
    let unset = "`m.kept_too` is read, but no path to here sets it";
    for (egress, expected) in [
        ("m.kept_too = 1;", &[unset][..]),
        ("m.kept_too = 1; recirculate_preserving_field_list(0);", &[]),
    ] {
        let program = V1 {
            ingress: "m.b = m.kept_too;",
            egress,
            ..V1::default()
        };
        assert_eq!(program.said(), expected, "{egress}");
    }
}

/// A select on two keys, such as a fragment's offset and the protocol.
#[test]
fn a_select_on_two_keys() {
    for (cases, expected) in [
        ("(0, 6): tcp; default: accept;", &[][..]),
        ("(_, 17): accept; (0, _): tcp; default: accept;", &[]),
        ("(0, 17): tcp; (0, 6): tcp; default: accept;", &[]),
        (
            "(0, 17): tcp; default: accept;",
            &["`h.tcp.port` is read where `h.tcp` is always invalid"],
        ),
        ("(0 &&& 1, 6): tcp; default: accept;", &[PORT]),
    ] {
        let program = V1 {
            keys: "h.ip.ttl, h.ip.proto",
            cases,
            ingress: "if (h.ip.isValid() && h.ip.proto == 6 && h.ip.ttl == 0) { h.eth.kind = h.tcp.port; }",
            ..V1::default()
        };
        assert_eq!(program.said(), expected, "{cases}");
    }
}

/// The size of a program does not change the warnings, and independent combinations of headers cost nothing.
#[test]
fn many_headers_are_followed() {
    type Each = fn(usize, usize) -> String;
    let cases: [(&str, Each); 3] = [
        ("each by itself", |n, _| {
            format!("if (s.ingress_port == {n}) {{ x{n}.setValid(); }} ")
        }),
        ("each with its neighbor", |n, count| {
            format!(
                "if (x{n}.isValid() || s.ingress_port == {n}) {{ x{}.setValid(); }} ",
                (n + 1) % count
            )
        }),
        ("each asked in two ways", |n, count| {
            format!(
                "if (x{n}.isValid() || x{}.isValid()) {{ x{n}.setValid(); }} else if (s.ingress_port == 1) {{ x{n}.setInvalid(); }} ",
                (n + 3) % count
            )
        }),
    ];
    for (name, each) in cases {
        for count in [1, 12, 13, 64] {
            let declared: String = (0..count).map(|n| format!("ip_h x{n}; ")).collect();
            let each: String = (0..count).map(|n| each(n, count)).collect();
            let program = V1 {
                ingress: &format!(
                    "{declared} {each} m.a = h.ip.ttl; if (h.tcp.isValid()) {{ m.b = h.ip.ttl; }}"
                ),
                ..V1::default()
            };
            assert_eq!(program.said(), [TTL], "{count} {name}");
        }
    }
}

/// Headers that are valid in pairs, far apart: too many relations. The check warns of more reads, and reports that it does.
#[test]
fn too_many_relations_are_followed_coarsely() {
    let declared = ["x", "y"].map(|name| {
        let each = (0..32).map(|n| format!("ip_h {name}{n}; "));
        each.collect::<String>()
    });
    let declared = declared.concat();
    let x: String = (0..32)
        .map(|n| format!("if (s.ingress_port > {n}) {{ x{n}.setValid(); }} "))
        .collect();
    let y: String = (0..32)
        .map(|n| format!("if (x{n}.isValid()) {{ y{n}.setValid(); }} "))
        .collect();
    let program = V1 {
        ingress: &format!(
            "{declared} {x} {y} if (x1.isValid()) {{ m.a = y1.ttl; }} m.a = h.ip.ttl; h.ip.setValid(); m.b = h.ip.ttl;"
        ),
        ..V1::default()
    };
    let mut said = program.said();
    said.sort();
    let coarse = "reads in `I` were checked approximately: its headers and values have too many combinations";
    let pair = "`y1.ttl` is read where `y1` may be invalid";
    assert_eq!(said, [TTL, pair, coarse]);
}

/// Calls, each followed separately, that exceed the limit of the walk: it warns of the reads before the limit.
#[test]
fn a_walk_ends_at_a_limit() {
    let mut decls = "bit<8> f0(in bit<8> v) { return v + 1; }".to_owned();
    for n in 1..18 {
        decls += &format!(
            "bit<8> f{n}(in bit<8> v) {{ return f{0}(f{0}(v)); }}\n",
            n - 1
        );
    }
    let program = V1 {
        decls: &decls,
        ingress: "m.a = h.ip.ttl; m.a = f17(m.a); h.eth.kind = h.tcp.port;",
        ..V1::default()
    };
    let said = program.said();
    assert!(said.contains(&TTL.to_owned()), "{said:?}");
    assert!(
        said.iter().any(|w| w.contains("checked only up to here")),
        "{said:?}"
    );
}

/// One empty struct for all metadata that PSA needs; ingress and egress have separate headers.
#[test]
fn psa_has_two_pipelines() {
    let text = "#include <psa.p4>
header eth_h { bit<16> kind; }
header ip_h { bit<8> ttl; }
struct h_t { eth_h eth; ip_h ip; }
struct m_t { bit<8> a; }
struct none_t { }
parser IP(packet_in p, out h_t h, inout m_t m, in psa_ingress_parser_input_metadata_t i, in none_t r, in none_t c) {
    state start { p.extract(h.eth); transition select(h.eth.kind) { 0x800: ip; default: accept; } }
    state ip { p.extract(h.ip); transition accept; }
}
control I(inout h_t h, inout m_t m, in psa_ingress_input_metadata_t i, inout psa_ingress_output_metadata_t o) {
    table t { key = { h.ip.ttl: exact; } actions = { NoAction; } }
    apply { if (i.parser_error == error.NoError) { t.apply(); } }
}
control ID(packet_out p, out none_t a, out none_t b, out none_t c, inout h_t h, in m_t m, in psa_ingress_output_metadata_t o) {
    apply { p.emit(h); }
}
parser EP(packet_in p, out h_t h, inout m_t m, in psa_egress_parser_input_metadata_t i, in none_t n, in none_t a, in none_t b) {
    state start { p.extract(h.eth); transition accept; }
}
control E(inout h_t h, inout m_t m, in psa_egress_input_metadata_t i, inout psa_egress_output_metadata_t o) {
    apply { m.a = h.ip.ttl; }
}
control ED(packet_out p, out none_t a, out none_t b, inout h_t h, in m_t m, in psa_egress_output_metadata_t o,
           in psa_egress_deparser_input_metadata_t d) { apply { p.emit(h); } }
IngressPipeline(IP(), I(), ID()) ip;
EgressPipeline(EP(), E(), ED()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
";
    let files = Files::new().with("a.p4", text);
    let compiled = compile(&files, "a.p4", &Options::default());
    let compiled = compiled.unwrap_or_else(|errors| panic!("{errors}"));
    let found = validity::check(&compiled.program);
    let said: Vec<_> = found.list.iter().map(|w| w.message.as_str()).collect();
    let always = "`h.ip.ttl` is read where `h.ip` is always invalid";
    // A read in a key counts: only v1model defines its value.
    assert_eq!(said, [TTL, always]);
    // Entries match on the header's validity where the field counts, or omit the field.
    for keys in [
        "h.ip.isValid(): exact; h.ip.ttl[3:0]: exact;",
        "h.ip.ttl: ternary;",
    ] {
        let text = text.replace("h.ip.ttl: exact;", keys);
        let files = Files::new().with("a.p4", text);
        let compiled = compile(&files, "a.p4", &Options::default());
        let found = validity::check(&compiled.unwrap().program);
        let said: Vec<_> = found.list.iter().map(|w| w.message.as_str()).collect();
        assert_eq!(said, [always], "{keys}");
    }
}
