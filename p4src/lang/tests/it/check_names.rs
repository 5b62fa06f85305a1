//! Instances: one per instantiation, fully qualified names, constructor arguments, abstract methods, architectures.

use crate::check_support::{Text, control, lower, named};
use p4lang::ir::{Arch, Const, PackageArg, Program, Type};
use p4lang::{Files, Options};
use std::collections::BTreeSet;

fn with(decls: &str, locals: &str, apply: &str) -> Program {
    lower(&control(locals, apply).replace("control C(", &format!("{decls}\ncontrol C(")))
}

#[test]
fn nested_instances_are_named_by_their_path() {
    let p = with(
        "control Leaf(inout bit<8> x)(bit<8> k) {
             Register<bit<8>, bit<8>>(4) cells;
             action add() { x = x + k; }
             table t { key = { x : exact; } actions = { add; } }
             apply { t.apply(); }
         }
         control Mid(inout bit<8> x) { Leaf(3) left; @name(\"RIGHT\") Leaf(4) right; apply { left.apply(x); right.apply(x); } }",
        "Mid() one; @name(\".two\") Mid() second;",
        "one.apply(meta.a); second.apply(meta.b); Mid.apply(meta.a);",
    );
    let mut tables: Vec<&str> = p
        .controls
        .iter()
        .flat_map(|c| c.tables.iter().map(|t| t.name.as_str()))
        .collect();
    tables.sort_unstable();
    assert_eq!(
        tables,
        [
            "C.Mid.RIGHT.t",
            "C.Mid.left.t",
            "C.one.RIGHT.t",
            "C.one.left.t",
            "two.RIGHT.t",
            "two.left.t",
        ]
    );
    let leaf = named(&p, "C.one.RIGHT");
    assert_eq!(leaf.type_name, "Leaf");
    assert_eq!(leaf.actions[0].name, "C.one.RIGHT.add");
    let text = Text::of(&p, &leaf.vars).block(&leaf.actions[0].body);
    assert_eq!(text, "x = (x Add 8w4)\n");
    let registers: Vec<&str> = p.externs.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(registers[0], "C.one.left.cells");
    assert_eq!(registers.len(), 6);
}

#[test]
fn constructor_arguments_of_externs() {
    let p = with(
        "",
        "Register<bit<8>, bit<4>>(initial = 7, size = 2 * 8) r;",
        "",
    );
    let e = &p.externs[0];
    assert_eq!(e.type_name, "Register");
    assert_eq!(e.type_args, [Type::Bit(8), Type::Bit(4)]);
    let text = Text::of(&p, &[]);
    let args: Vec<String> = e
        .args
        .iter()
        .map(|(n, c)| format!("{n}={}", text.constant(c)))
        .collect();
    assert_eq!(args, ["size=32w16", "initial=8w7"]);
}

#[test]
fn abstract_methods_become_actions_of_their_control() {
    let p = with(
        "",
        "Register<bit<8>, bit<8>>(16) cells;
         RegisterAction<bit<8>, bit<8>, bit<8>>(cells) count = {
             void apply(inout bit<8> value, out bit<8> before) { before = value; value = value + meta.a; }
         };
         Picker() picker = { bit<8> pick(in bit<8> from) { if (from == 0) { return 1; } return from; } };",
        "meta.a = count.execute(meta.b); count.execute(3); meta.a = picker.run(4);",
    );
    let c = named(&p, "C");
    let count = &p.externs[1];
    assert_eq!(count.name, "C.count");
    assert_eq!(p.controls[count.owner.expect("owned").index()].name, "C");
    assert_eq!(count.args[0].0, "reg");
    assert!(matches!(count.args[0].1, Const::Extern(id) if id.index() == 0));
    let method = &count.methods[0];
    assert_eq!(method.method.name(), "apply");
    assert_eq!(Some(method.control), count.owner);
    let text = Text::of(&p, &c.vars);
    assert_eq!(
        text.block(&c.actions[method.action.index()].body),
        "before = value\nvalue = (value Add meta.a)\n"
    );
    let pick = &c.actions[p.externs[2].methods[0].action.index()];
    assert_eq!(pick.params.len(), 2, "the result is an extra parameter");
    insta::assert_snapshot!(format!(
        "{}----\n{}",
        text.block(&pick.body),
        text.block(&c.body)
    ));
}

#[test]
fn generic_structs_are_instantiated_once() {
    let p = with(
        "struct pair_t<A, B> { A first; B second; }
         struct outer_t { pair_t<bit<8>, bit<16>> x; pair_t<bit<8>, bit<16>> y; }",
        "",
        "outer_t o; o.x = { 1, 2 }; o.y = o.x; pair_t<bool, bit<8>> z = { true, meta.a };",
    );
    let names: Vec<&str> = p
        .types
        .iter()
        .filter(|t| t.name.starts_with("pair_t"))
        .map(|t| t.name.as_str())
        .collect();
    assert_eq!(names, ["pair_t<bit<8>, bit<16>>", "pair_t<bool, bit<8>>"]);
}

#[test]
fn enums_errors_and_new_types() {
    let p = with(
        "enum Colour { RED, GREEN }
         enum bit<8> Kind { A = 1, B = 2, C = A }
         type bit<8> port_t;
         typedef port_t alias_t;
         struct extra_t { Colour c; Kind k; alias_t p; error e; }",
        "",
        "extra_t x;
         x.c = Colour.GREEN; x.k = Kind.C; x.p = (port_t) meta.a; x.e = error.NoMatch;
         meta.a = x.k; meta.a = (bit<8>) x.p; x.k = (Kind) 7; meta.f = x.k == Kind.B; meta.f = x.c == Colour.RED;
         meta.a = x.k + 1;",
    );
    let c = named(&p, "C");
    insta::assert_snapshot!(Text::of(&p, &c.vars).block(&c.body));
}

fn compile_arch(include: &str, rest: &str) -> Program {
    compiled_arch(include, rest).program
}

fn compiled_arch(include: &str, rest: &str) -> p4lang::Compiled {
    let files = Files::new().with(
        "test.p4",
        format!("#include <core.p4>\n#include <{include}>\n{rest}"),
    );
    match p4lang::compile(&files, "test.p4", &Options::default()) {
        Ok(compiled) => compiled,
        Err(d) => panic!("{d}"),
    }
}

#[test]
fn v1model() {
    let p = compile_arch(
        "v1model.p4",
        "header e_t { bit<48> d; } struct h_t { e_t e; } struct m_t { bit<9> p; }
         parser MyP(packet_in k, out h_t h, inout m_t m, inout standard_metadata_t s) { state start { k.extract(h.e); transition accept; } }
         control MyV(inout h_t h, inout m_t m) { apply { } }
         control MyI(inout h_t h, inout m_t m, inout standard_metadata_t s) {
             direct_counter(CounterType.packets) hits;
             action fwd(bit<9> port) { s.egress_spec = port; hits.count(); }
             action toss() { mark_to_drop(s); }
             table t { key = { h.e.d : exact; } actions = { fwd; toss; } counters = hits; size = 16; }
             apply { t.apply(); hash(m.p, HashAlgorithm.crc16, 9w0, { h.e.d }, 9w8); }
         }
         control MyE(inout h_t h, inout m_t m, inout standard_metadata_t s) { apply { } }
         control MyC(inout h_t h, inout m_t m) { apply { } }
         control MyD(packet_out k, in h_t h) { apply { k.emit(h); } }
         V1Switch(MyP(), MyV(), MyI(), MyE(), MyC(), MyD()) main;",
    );
    assert_eq!(p.arch, Arch::V1model);
    assert_eq!(p.main.name, "main");
    assert_eq!(p.main.args.len(), 6);
    let t = &named(&p, "MyI").tables[0];
    assert!(matches!(t.properties.as_slice(), [(n, Const::Extern(_))] if n == "counters"));
    let d = named(&p, "MyD");
    assert_eq!(Text::of(&p, &d.vars).block(&d.body), "emit h\n");
}

#[test]
fn psa() {
    let p = compile_arch(
        "psa.p4",
        "header e_t { bit<48> d; } struct h_t { e_t e; } struct m_t { bit<9> p; } struct empty_t { }
         parser IP(packet_in k, out h_t h, inout m_t m, in psa_ingress_parser_input_metadata_t i, in empty_t r, in empty_t c) { state start { k.extract(h.e); transition accept; } }
         control I(inout h_t h, inout m_t m, in psa_ingress_input_metadata_t i, inout psa_ingress_output_metadata_t o) {
             Register<bit<32>, bit<8>>(8) cells;
             apply { cells.write(1, cells.read(1) + 1); send_to_port(o, (PortId_t) 3); }
         }
         control ID(packet_out k, out empty_t a, out empty_t b, out empty_t c, inout h_t h, in m_t m, in psa_ingress_output_metadata_t o) { apply { k.emit(h.e); } }
         parser EP(packet_in k, out h_t h, inout m_t m, in psa_egress_parser_input_metadata_t i, in empty_t a, in empty_t b, in empty_t c) { state start { transition accept; } }
         control E(inout h_t h, inout m_t m, in psa_egress_input_metadata_t i, inout psa_egress_output_metadata_t o) { apply { } }
         control ED(packet_out k, out empty_t a, out empty_t b, inout h_t h, in m_t m, in psa_egress_output_metadata_t o, in psa_egress_deparser_input_metadata_t d) { apply { k.emit(h); } }
         IngressPipeline(IP(), I(), ID()) ip;
         EgressPipeline(EP(), E(), ED()) ep;
         PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;",
    );
    assert_eq!(p.arch, Arch::Psa);
    let PackageArg::Package(ip) = &p.main.args[0].1 else {
        panic!("{:?}", p.main.args[0]);
    };
    assert_eq!(ip.type_name, "IngressPipeline");
    assert_eq!(ip.name, "ip");
    let PackageArg::Control(i) = &ip.args[1].1 else {
        panic!("{:?}", ip.args[1]);
    };
    assert_eq!(p.controls[i.index()].name, "I");
    assert_eq!(p.externs[0].name, "I.cells");
}

#[test]
fn tna() {
    let p = compile_arch(
        "tna.p4",
        "header e_t { bit<48> d; } struct h_t { e_t e; } struct m_t { bit<8> p; }
         parser IP(packet_in k, out h_t h, out m_t m, out ingress_intrinsic_metadata_t i) { state start { k.extract(i); k.advance(PORT_METADATA_SIZE); transition accept; } }
         control I(inout h_t h, inout m_t m, in ingress_intrinsic_metadata_t i, in ingress_intrinsic_metadata_from_parser_t fp, inout ingress_intrinsic_metadata_for_deparser_t fd, inout ingress_intrinsic_metadata_for_tm_t tm) {
             Register<bit<32>, bit<8>>(8, 0) cells;
             RegisterAction<bit<32>, bit<8>, bit<32>>(cells) bump = { void apply(inout bit<32> v, out bit<32> r) { r = v; v = v + 1; } };
             RegisterAction<bit<32>, bit<8>, bit<32>>(cells) clear = { void apply(inout bit<32> v) { v = 0; } };
             apply { if (m.p == 1) { bump.execute(m.p); } else { clear.execute(m.p); } tm.ucast_egress_port = 3; }
         }
         control ID(packet_out k, inout h_t h, in m_t m, in ingress_intrinsic_metadata_for_deparser_t fd) { apply { k.emit(h); } }
         parser EP(packet_in k, out h_t h, out m_t m, out egress_intrinsic_metadata_t i) { state start { k.extract(i); transition accept; } }
         control E(inout h_t h, inout m_t m, in egress_intrinsic_metadata_t i, in egress_intrinsic_metadata_from_parser_t fp, inout egress_intrinsic_metadata_for_deparser_t fd, inout egress_intrinsic_metadata_for_output_port_t fo) { apply { } }
         control ED(packet_out k, inout h_t h, in m_t m, in egress_intrinsic_metadata_for_deparser_t fd) { apply { k.emit(h); } }
         Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
         Switch(pipe) main;",
    );
    assert_eq!(p.arch, Arch::Tna);
    let bump = p.externs.iter().find(|e| e.name == "I.bump").expect("bump");
    assert_eq!(bump.methods.len(), 1);
    let clear = p
        .externs
        .iter()
        .find(|e| e.name == "I.clear")
        .expect("clear");
    let i = named(&p, "I");
    assert_eq!(i.actions[clear.methods[0].action.index()].params.len(), 1);
}

#[test]
fn pipelines_with_one_control_have_tables_and_objects_of_their_own() {
    let program = |pipes: &str| {
        compiled_arch(
            "tna.p4",
            &format!(
                "struct h_t {{ }} struct m_t {{ bit<8> p; }}
                 parser IP(packet_in k, out h_t h, out m_t m, out ingress_intrinsic_metadata_t i) {{ state start {{ k.extract(i); k.advance(PORT_METADATA_SIZE); transition accept; }} }}
                 control I(inout h_t h, inout m_t m, in ingress_intrinsic_metadata_t i, in ingress_intrinsic_metadata_from_parser_t fp, inout ingress_intrinsic_metadata_for_deparser_t fd, inout ingress_intrinsic_metadata_for_tm_t tm) {{
                     DirectMeter(MeterType_t.BYTES) rate;
                     action mark() {{ m.p = rate.execute(); }}
                     table t {{ key = {{ i.ingress_port : exact; }} actions = {{ mark; NoAction; }} meters = rate; }}
                     apply {{ t.apply(); }}
                 }}
                 control ID(packet_out k, inout h_t h, in m_t m, in ingress_intrinsic_metadata_for_deparser_t fd) {{ apply {{ k.emit(h); }} }}
                 parser EP(packet_in k, out h_t h, out m_t m, out egress_intrinsic_metadata_t i) {{ state start {{ k.extract(i); transition accept; }} }}
                 control E(inout h_t h, inout m_t m, in egress_intrinsic_metadata_t i, in egress_intrinsic_metadata_from_parser_t fp, inout egress_intrinsic_metadata_for_deparser_t fd, inout egress_intrinsic_metadata_for_output_port_t fo) {{ table only {{ actions = {{ NoAction; }} }} apply {{ only.apply(); }} }}
                 control None(inout h_t h, inout m_t m, in egress_intrinsic_metadata_t i, in egress_intrinsic_metadata_from_parser_t fp, inout egress_intrinsic_metadata_for_deparser_t fd, inout egress_intrinsic_metadata_for_output_port_t fo) {{ apply {{ }} }}
                 control ED(packet_out k, inout h_t h, in m_t m, in egress_intrinsic_metadata_for_deparser_t fd) {{ apply {{ k.emit(h); }} }}
                 {pipes}"
            ),
        )
    };
    let names = |p: &p4lang::ir::Program| {
        let tables = p.controls.iter().flat_map(|c| &c.tables);
        let objects = p.externs.iter().map(|e| e.name.clone());
        let mut names: Vec<String> = tables.map(|t| t.name.clone()).chain(objects).collect();
        names.sort();
        names
    };
    let two = program(
        "Pipeline(IP(), I(), ID(), EP(), E(), ED()) left;
         Pipeline(IP(), I(), ID(), EP(), None(), ED()) right;
         Switch(left, right) main;",
    );
    let wanted = [
        "E.only",
        "left.I.rate",
        "left.I.t",
        "right.I.rate",
        "right.I.t",
    ];
    assert_eq!(names(&two.program), wanted);
    let info = two.p4info;
    let tables = info.tables.iter().map(|t| t.preamble.name.as_str());
    assert_eq!(
        tables.collect::<BTreeSet<_>>(),
        ["E.only", "left.I.t", "right.I.t"].into()
    );
    let marks = info.actions.iter().filter(|a| a.preamble.name == "I.mark");
    assert_eq!(marks.count(), 1);
    let one = program(
        "Pipeline(IP(), I(), ID(), EP(), E(), ED()) left;
         Switch(left) main;",
    );
    assert_eq!(names(&one.program), ["E.only", "I.rate", "I.t"]);
}

#[test]
fn objects_of_the_top_level_have_their_methods_in_each_control_that_calls_them() {
    let p = with(
        "Register<bit<8>, bit<8>>(16) cells;
         RegisterAction<bit<8>, bit<8>, bit<8>>(cells) count = {
             Register<bit<8>, bit<8>>(4) inner;
             void apply(inout bit<8> value, out bit<8> before) { before = inner.read(1); value = value + 1; }
         };
         RegisterAction<bit<8>, bit<8>, bit<8>>(cells) unused = { void apply(inout bit<8> value) { value = 0; } };
         control Other(inout bit<8> v) { apply { v = count.execute(2); v = count.execute(3); } }",
        "Other() other;",
        "meta.a = count.execute(meta.b); other.apply(meta.a);",
    );
    let object = |name: &str| p.externs.iter().find(|e| e.name == name).expect(name);
    let count = object("count");
    assert_eq!(count.owner, None);
    let mut controls: Vec<&str> = count
        .methods
        .iter()
        .map(|m| p.controls[m.control.index()].name.as_str())
        .collect();
    controls.sort_unstable();
    assert_eq!(controls, ["C", "C.other"], "one copy each");
    for m in &count.methods {
        let c = &p.controls[m.control.index()];
        let text = Text::of(&p, &c.vars).block(&c.actions[m.action.index()].body);
        assert!(text.contains("value = (value Add 8w1)"), "{text}");
    }
    assert_eq!(object("count.inner").type_name, "Register");
    assert!(object("unused").methods.is_empty());
}

#[test]
fn objects_that_are_parameters_are_told_apart_by_number() {
    let p = with(
        "control One(Register<bit<8>, bit<8>> cells, inout bit<8> v) { apply { v = cells.read(v); } }
         control Two(Register<bit<8>, bit<8>> cells, inout bit<8> v) { One() one; apply { one.apply(cells, v); } }
         control Never(Register<bit<8>, bit<8>> cells) { apply { cells.write(0, 1); } }",
        "Register<bit<8>, bit<8>>(16) a;
         Register<bit<8>, bit<8>>(16) b;
         One() one; Two() two; Never() never;",
        "one.apply(b, meta.a); two.apply(a, meta.a); two.apply(b, meta.b);",
    );
    let show = |name: &str| {
        let c = named(&p, name);
        Text::of(&p, &c.vars).block(&c.body)
    };
    insta::assert_snapshot!(format!(
        "C:\n{}C.one:\n{}C.two:\n{}C.two.one:\n{}C.never:\n{}",
        show("C"),
        show("C.one"),
        show("C.two"),
        show("C.two.one"),
        show("C.never")
    ));
}
