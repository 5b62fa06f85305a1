//! P4Info of small programs. The ids are those that p4c assigns to objects with these names.

use p4lang::p4info::*;
use p4lang::runtime::MatchKind;
use p4lang::{Options, compile};

fn p4info(text: &str) -> P4Info {
    let load = |path: &str| (path == "a.p4").then(|| text.to_owned());
    match compile(&load, "a.p4", &Options::default()) {
        Ok(compiled) => compiled.p4info,
        Err(diagnostics) => panic!("{diagnostics}"),
    }
}

fn v1model(ingress: &str) -> P4Info {
    p4info(&format!(
        r#"#include <core.p4>
        #include <v1model.p4>
        struct message_t {{ bit<48> mac; int<8> delta; bool new; }}
        @controller_header("packet_in")
        header packet_in_t {{ @id(7) bit<9> port; bit<7> pad; bit<16> reason; }}
        struct meta_t {{ bit<32> x; message_t message; }}
        struct headers_t {{ packet_in_t in_h; }}
        parser p(packet_in b, out headers_t h, inout meta_t m, inout standard_metadata_t s) {{
            value_set<bit<16>>(4) types;
            state start {{ transition select(16w1) {{ types: accept; _: reject; }} }}
        }}
        control v(inout headers_t h, inout meta_t m) {{ apply {{ }} }}
        control ingress(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {{ {ingress} }}
        control eg(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {{ apply {{ }} }}
        control k(inout headers_t h, inout meta_t m) {{ apply {{ }} }}
        control d(packet_out b, in headers_t h) {{ apply {{ }} }}
        V1Switch(p(), v(), ingress(), eg(), k(), d()) main;"#
    ))
}

#[test]
fn a_table_with_all_that_belongs_to_it() {
    let info = v1model(
        r#"
        direct_counter(CounterType.packets_and_bytes) seen;
        direct_meter<bit<2>>(MeterType.bytes) rate;
        action set(bit<9> port, @name("how") bool flag) { s.egress_spec = port; rate.read(m.x[1:0]); seen.count(); }
        action gone() { }
        @hidden action secret() { }
        @foo("bar") table ipv4_da_lpm {
            key = { m.x : lpm; s.ingress_port : exact @name("port"); m.x[3:0] : ternary @id(1); }
            actions = { set; @defaultonly NoAction; }
            default_action = NoAction();
            counters = seen;
            meters = rate;
            size = 16;
        }
        table never { actions = { gone; } }
        apply { ipv4_da_lpm.apply(); }
    "#,
    );
    assert_eq!(info.arch, "v1model");
    let [table] = info.tables.as_slice() else {
        panic!("{:?}", info.tables);
    };
    assert_eq!(table.preamble.id, 35996228);
    assert_eq!(table.preamble.name, "ingress.ipv4_da_lpm");
    assert_eq!(table.preamble.alias, "ipv4_da_lpm");
    assert_eq!(table.preamble.annotations, ["@foo(\"bar\")"]);
    let fields: Vec<_> = table
        .match_fields
        .iter()
        .map(|f| (f.id, f.name.as_str(), f.bitwidth, f.match_type.clone()))
        .collect();
    assert_eq!(
        fields,
        [
            (2, "m.x", 32, MatchType::Standard(MatchKind::Lpm)),
            (3, "port", 9, MatchType::Standard(MatchKind::Exact)),
            (1, "m.x[3:0]", 4, MatchType::Standard(MatchKind::Ternary)),
        ]
    );
    assert_eq!(table.action_refs[1].id, 21257015);
    assert_eq!(table.action_refs[1].scope, ActionScope::DefaultOnly);
    assert_eq!(table.initial_default_action_id, 21257015);
    assert_eq!(table.const_default_action_id, 0);
    assert_eq!(table.size, 16);
    assert_eq!(
        table.direct_resource_ids,
        [
            info.direct_counters[0].preamble.id,
            info.direct_meters[0].preamble.id
        ]
    );
    assert_eq!(info.direct_counters[0].unit, Unit::Both);
    assert_eq!(info.direct_counters[0].table_id, table.preamble.id);
    assert_eq!(info.direct_counters[0].preamble.id >> 24, 0x13);
    assert_eq!(info.direct_meters[0].unit, Unit::Bytes);
    let names: Vec<_> = info.actions.iter().map(|a| &a.preamble.name).collect();
    assert_eq!(names, ["NoAction", "ingress.set"]);
    let set = &info.actions[1];
    let params: Vec<_> = set.params.iter().map(|p| (p.id, p.bitwidth)).collect();
    assert_eq!(params, [(1, 9), (2, 1)]);
}

#[test]
fn entries_profiles_and_implied_defaults() {
    let info = v1model(
        r#"
        action_profile(32) members;
        @max_group_size(8) @kept action_selector(HashAlgorithm.crc16, 64, 14) groups;
        action a() { }
        table direct { key = { m.x : exact; } actions = { a; } const entries = { 1 : a(); 2 : a(); } }
        table b { key = { m.x : exact; } actions = { a; } implementation = members; }
        table a_too { key = { m.x : exact; m.message.mac : selector; } actions = { a; } implementation = groups; }
        table c { key = { m.x : exact; } actions = { a; } implementation = groups; const default_action = a(); }
        apply { direct.apply(); b.apply(); a_too.apply(); c.apply(); }
    "#,
    );
    let table = |name: &str| {
        let found = info.tables.iter().find(|t| t.preamble.alias == name);
        found.unwrap_or_else(|| panic!("{name}"))
    };
    assert!(table("direct").is_const_table && table("direct").has_initial_entries);
    let implied = table("b").action_refs.last().expect("an action");
    assert_eq!(
        (implied.id, implied.scope),
        (21257015, ActionScope::DefaultOnly)
    );
    assert_eq!(implied.annotations, ["@defaultonly"]);
    assert_eq!(
        table("a_too").match_fields.len(),
        1,
        "a selector field is not matched on"
    );
    assert_eq!(
        table("c").const_default_action_id,
        table("c").action_refs[0].id
    );

    let [members, groups] = info.action_profiles.as_slice() else {
        panic!("{:?}", info.action_profiles);
    };
    assert!(!members.with_selector && groups.with_selector);
    assert_eq!((members.size, groups.size), (32, 64));
    assert_eq!(table("b").implementation_id, members.preamble.id);
    assert_eq!(members.table_ids, [table("b").preamble.id]);
    assert_eq!(
        groups.table_ids,
        [table("a_too").preamble.id, table("c").preamble.id]
    );
    assert_eq!(groups.preamble.annotations, ["@kept"]);
}

#[test]
fn registers_counters_digests_headers_value_sets() {
    let info = v1model(
        r#"
        register<bit<32>>(8) words;
        register<message_t>(4) messages;
        counter(16, CounterType.packets) hits;
        meter(2, MeterType.packets) rate;
        apply {
            words.write(0, 1);
            messages.write(0, m.message);
            hits.count(0);
            rate.execute_meter(0, m.x);
            digest<message_t>(1, m.message);
        }
    "#,
    );
    let fields = |element: &[ElementField]| -> Vec<(String, u32, bool, bool)> {
        element
            .iter()
            .map(|f| (f.name.clone(), f.bitwidth, f.signed, f.boolean))
            .collect()
    };
    let message = [
        ("mac".to_owned(), 48, false, false),
        ("delta".to_owned(), 8, true, false),
        ("new".to_owned(), 1, false, true),
    ];
    assert_eq!(
        fields(&info.registers[0].element),
        [(String::new(), 32, false, false)]
    );
    assert_eq!(info.registers[0].size, 8);
    assert_eq!(fields(&info.registers[1].element), message);
    assert_eq!(info.registers[1].struct_name.as_deref(), Some("message_t"));
    assert_eq!(
        (info.counters[0].size, info.counters[0].unit),
        (16, Unit::Packets)
    );
    assert_eq!(
        (info.meters[0].size, info.meters[0].unit),
        (2, Unit::Packets)
    );
    assert_eq!(info.digests[0].preamble.name, "message_t");
    assert_eq!(fields(&info.digests[0].element), message);

    let header = &info.controller_packet_metadata[0];
    assert_eq!(header.preamble.name, "packet_in");
    assert_eq!(header.preamble.id >> 24, 0x04);
    let metadata: Vec<_> = header.metadata.iter().map(|f| (f.id, f.bitwidth)).collect();
    assert_eq!(metadata, [(7, 9), (2, 7), (3, 16)]);

    let set = &info.value_sets[0];
    assert_eq!((set.preamble.name.as_str(), set.size), ("p.types", 4));
    assert_eq!(set.match_fields[0].bitwidth, 16);
}

/// As in p4c: inner controls stand where their instances are declared; shared actions come first, in order of use.
#[test]
fn the_order_of_nested_controls() {
    let info = p4info(
        r#"#include <core.p4>
        #include <v1model.p4>
        @name("new") struct rec<T> { T a; }
        @note("y") type bit<9> port_t;
        struct m_t { bit<8> a; port_t p; }
        struct h_t { }
        action shared() { }
        control leaf(inout m_t m) {
            table deep { key = { m.p : exact; } actions = { shared; } }
            apply { deep.apply(); }
        }
        control mid(inout m_t m) {
            leaf() l;
            action own() { }
            table flat { actions = { own; } }
            apply { l.apply(m); flat.apply(); }
        }
        parser p(packet_in b, out h_t h, inout m_t m, inout standard_metadata_t s) { state start { transition accept; } }
        control v(inout h_t h, inout m_t m) { apply { } }
        control i(inout h_t h, inout m_t m, inout standard_metadata_t s) {
            table first { actions = { NoAction; } }
            mid() x;
            table last { actions = { NoAction; } @max_group_size(7) implementation = action_selector(HashAlgorithm.crc16, 32w8, 32w8); key = { m.a : selector; } }
            apply { last.apply(); x.apply(m); first.apply(); digest<rec<bit<8>>>(1, { m.a }); }
        }
        @name("other") control e(inout h_t h, inout m_t m, inout standard_metadata_t s) {
            table out_t { actions = { NoAction; } }
            apply { out_t.apply(); }
        }
        control k(inout h_t h, inout m_t m) { apply { } }
        control d(packet_out b, in h_t h) { apply { } }
        V1Switch(p(), v(), i(), e(), k(), d()) main;"#,
    );
    let tables: Vec<_> = info
        .tables
        .iter()
        .map(|t| t.preamble.name.as_str())
        .collect();
    assert_eq!(
        tables,
        ["i.first", "i.x.l.deep", "i.x.flat", "i.last", "e.out_t"]
    );
    let actions: Vec<_> = info
        .actions
        .iter()
        .map(|a| a.preamble.name.as_str())
        .collect();
    assert_eq!(actions, ["NoAction", "shared", "i.x.own"]);
    let [selector] = info.action_profiles.as_slice() else {
        panic!("{:?}", info.action_profiles);
    };
    assert_eq!(selector.max_group_size, 7);
    assert_eq!(info.digests[0].preamble.name, "new");
    assert_eq!(info.types.new_types["port_t"].annotations, ["@note(\"y\")"]);
}

/// As in p4c: a new type keeps all annotations except the translation, with a space between the tokens.
#[test]
fn annotations_that_nobody_here_reads() {
    let info = p4info(
        r#"#include <core.p4>
        #include <v1model.p4>
        @p4runtime_translation("", string) @p4runtime_translation_mappings({ {"",0}, })
        type bit<10> vrf_t;
        struct m_t { vrf_t vrf; }
        struct h_t { }
        parser p(packet_in b, out h_t h, inout m_t m, inout standard_metadata_t s) { state start { transition accept; } }
        control v(inout h_t h, inout m_t m) { apply { } }
        control i(inout h_t h, inout m_t m, inout standard_metadata_t s) {
            @refers_to(builtin::group_table,group_id) @composite(@field(A),@field( B ))
            table t { key = { m.vrf: exact; } actions = { NoAction; } }
            apply { t.apply(); }
        }
        control e(inout h_t h, inout m_t m, inout standard_metadata_t s) { apply { } }
        control k(inout h_t h, inout m_t m) { apply { } }
        control d(packet_out b, in h_t h) { apply { } }
        V1Switch(p(), v(), i(), e(), k(), d()) main;"#,
    );
    assert_eq!(
        info.types.new_types["vrf_t"].annotations,
        ["@p4runtime_translation_mappings({ { \"\" , 0 } , })"]
    );
    assert_eq!(
        info.tables[0].preamble.annotations,
        [
            "@refers_to(builtin : : group_table , group_id)",
            "@composite(@ field ( A ) , @ field ( B ))"
        ]
    );
}

#[test]
fn an_id_of_another_kind_is_refused() {
    let text = "#include <core.p4>\n\
        control c(inout bit<8> v) {\n\
            @id(0x01000001) table t { key = { v : exact; } actions = { NoAction; } }\n\
            apply { t.apply(); }\n\
        }\n\
        control C(inout bit<8> v);\npackage P(C c);\nP(c()) main;";
    let load = |path: &str| (path == "a.p4").then(|| text.to_owned());
    let refused =
        compile(&load, "a.p4", &Options::default()).expect_err("a table with an action's id");
    let kinds: Vec<_> = refused.errors().map(|d| d.code).collect();
    assert_eq!(kinds, [p4lang::diagnostics::Code::Architecture]);
}
