//! Results that only the reference executor gives: steps, and reads of undefined values.

use crate::support;
use crate::support::tna::Tna;
use crate::support::v1model::V1;
use crate::support::{Psa, compile, entry};
use p4lang::runtime::Match;
use pipeline::{Config, EgressQueues, EventKind, Executor, GeneratorApp, Switch, Trigger};

const BYTE: &str = "header byte_h { bit<8> v; }";

fn poisoned(locals: &str, ingress: &str) -> Switch {
    let program = Psa {
        decls: BYTE,
        headers: "byte_h x; byte_h y; byte_h[2] s;",
        meta: "bit<8> m;",
        parser: "state start { pkt.extract(hdr.x); transition accept; }",
        locals,
        ingress,
        ..Psa::default()
    };
    let config = Config {
        executor: Executor::Reference,
        poison: Some(1),
        ..Config::default()
    };
    Switch::new(compile(&program.text()), config).unwrap()
}

/// The undefined values that influence a decision.
fn undefined(locals: &str, ingress: &str) -> Vec<String> {
    take_undefined(&mut poisoned(locals, ingress), &[7, 8])
}

/// The undefined values that influence a decision of any program.
fn undefined_in(program: &str, packet: &[u8]) -> Vec<String> {
    let config = Config {
        executor: Executor::Reference,
        poison: Some(1),
        ..Config::default()
    };
    take_undefined(&mut Switch::new(compile(program), config).unwrap(), packet)
}

fn take_undefined(switch: &mut Switch, packet: &[u8]) -> Vec<String> {
    switch.handle_packet(0, 0, packet);
    let (events, lost) = switch.take_events();
    assert_eq!(lost, 0);
    let text = |event: pipeline::Event| match event.kind {
        EventKind::Undefined { what } => {
            let at = event.at.expect("a place in the source");
            assert!(at.file == "test.p4" && at.line > 0, "{at}");
            what
        }
        other => panic!("not asked for: {other:?}"),
    };
    events.into_iter().map(text).collect()
}

#[test]
fn undefined_values_that_choose_a_v1model_path_are_reported() {
    let way = |name: &str| vec![format!("{name}, which determines the packet's path")];
    let psa = |ingress: &str| undefined("bool b; PortId_t p; MulticastGroup_t m;", ingress);
    let sends = "send_to_port(ostd, (PortId_t) 1);";
    assert_eq!(psa("ostd.drop = b;"), way("drop"));
    assert_eq!(
        psa("ostd.drop = false; ostd.egress_port = p;"),
        way("egress_port")
    );
    assert_eq!(
        psa("ostd.drop = false; ostd.multicast_group = m;"),
        way("multicast_group")
    );
    assert_eq!(psa(&format!("{sends} ostd.clone = b;")), way("clone"));
    let class = |ingress: &str| {
        psa(&format!(
            "ClassOfService_t c; ostd.class_of_service = c; {ingress}"
        ))
    };
    assert_eq!(class(sends), way("class_of_service"));
    assert_eq!(class(""), [""; 0], "it is dropped");
    let cloned =
        format!("CloneSessionId_t i; {sends} ostd.clone = true; ostd.clone_session_id = i;");
    assert_eq!(psa(&cloned), way("clone_session_id"));
    assert_eq!(psa("ostd.egress_port = p;"), [""; 0], "it is dropped");
    let group =
        "ostd.drop = false; ostd.multicast_group = (MulticastGroup_t) 1; ostd.egress_port = p;";
    assert_eq!(psa(group), [""; 0], "the group comes first");

    let v1model = |ingress: &str, egress: &str| {
        let program = support::v1model::V1 {
            ingress,
            egress,
            ..Default::default()
        };
        undefined_in(&program.text(), &[7, 8])
    };
    let local = "bit<9> p; bit<16> g;";
    assert_eq!(
        v1model(&format!("{local} s.egress_spec = p;"), ""),
        way("egress_spec")
    );
    assert_eq!(
        v1model(&format!("{local} s.mcast_grp = g;"), ""),
        way("mcast_grp")
    );
    assert_eq!(
        v1model(&format!("{local} s.egress_spec = p; s.mcast_grp = 1;"), ""),
        [""; 0]
    );
    assert_eq!(
        v1model("s.egress_spec = 1;", "bit<9> p; s.egress_spec = p;"),
        way("egress_spec")
    );
    assert_eq!(
        v1model("bit<3> q; s.priority = q; s.egress_spec = 1;", ""),
        way("priority")
    );
    assert_eq!(
        v1model("bit<3> q; s.priority = q; mark_to_drop(s);", ""),
        [""; 0]
    );
}

#[test]
fn undefined_values_that_choose_a_psa_path_are_reported() {
    let told = |egress: &str| {
        let program = Psa {
            egress,
            ..Psa::default()
        };
        undefined_in(&program.text(), &[7, 8])
    };
    assert_eq!(told("bool b; ostd.drop = b;"), way(&["drop"]));
    assert_eq!(
        told("CloneSessionId_t i; ostd.clone = true; ostd.clone_session_id = i;"),
        way(&["clone_session_id"])
    );
    assert_eq!(
        told("CloneSessionId_t i; ostd.clone_session_id = i;"),
        [""; 0],
        "nothing is cloned"
    );
}

/// The messages for fields that an architecture uses.
fn way(names: &[&str]) -> Vec<String> {
    let told = |name: &&str| format!("{name}, which determines the packet's path");
    names.iter().map(told).collect()
}

/// All requests to the traffic manager of a Tofino, undefined.
const UNDEFINED: &str = "
    ingress_intrinsic_metadata_for_tm_t u;
    tm.copy_to_cpu = u.copy_to_cpu; tm.bypass_egress = u.bypass_egress; tm.qid = u.qid;
    tm.packet_color = u.packet_color; tm.deflect_on_drop = u.deflect_on_drop; tm.rid = u.rid;
    tm.level1_mcast_hash = u.level1_mcast_hash; tm.level2_mcast_hash = u.level2_mcast_hash;
    tm.level1_exclusion_id = u.level1_exclusion_id; tm.level2_exclusion_id = u.level2_exclusion_id;";

#[test]
fn undefined_values_that_choose_a_tofino_path_are_reported() {
    let ingress = |ingress: &str| {
        let program = Tna {
            ingress,
            ..Tna::default()
        };
        undefined_in(&program.text(), &[0; 64])
    };
    let told = |text: &str| ingress(&format!("bit<16> g; bit<9> p; bit<3> d; {text}"));
    assert_eq!(
        told("tm.ucast_egress_port = p;"),
        way(&["ucast_egress_port"])
    );
    assert_eq!(told("tm.mcast_grp_a = g;"), way(&["mcast_grp_a"]));
    assert_eq!(told("tm.mcast_grp_b = g;"), way(&["mcast_grp_b"]));
    let dropped = "dprsr.drop_ctl = d; tm.ucast_egress_port = 1;";
    assert_eq!(told(dropped), way(&["drop_ctl"]));
    let reserved = "dprsr.drop_ctl[2:2] = d[2:2]; tm.ucast_egress_port = 1;";
    assert_eq!(
        told(reserved),
        [""; 0],
        "the bit decides nothing in ingress"
    );

    let of_any = ["bypass_egress", "qid", "packet_color"];
    let (cpu, unicast) = (["copy_to_cpu"], ["deflect_on_drop"]);
    let trees = [
        "level1_mcast_hash",
        "level2_mcast_hash",
        "level1_exclusion_id",
        "level2_exclusion_id",
        "rid",
    ];
    let all = |text: &str| ingress(&format!("{UNDEFINED} {text}"));
    assert_eq!(
        all("tm.ucast_egress_port = 1;"),
        way(&[&cpu[..], &unicast, &of_any].concat())
    );
    assert_eq!(
        all("tm.mcast_grp_b = 1;"),
        way(&[&cpu[..], &trees, &of_any].concat())
    );
    let nowhere = "tm.ucast_egress_port = 1; tm.mcast_grp_a = 1; dprsr.drop_ctl = 3;";
    assert_eq!(all(nowhere), [""; 0], "nothing goes anywhere");
    assert_eq!(told(""), [""; 0], "never assigned: invalid, or 0");

    let egress = |mirrors: &str, egress: &str| {
        let program = Tna {
            egress,
            egress_deparser_locals: "Mirror() m;",
            egress_deparser: &format!("{mirrors} pkt.emit(hdr);"),
            ..Tna::default()
        };
        undefined_in(&program.text(), &[0; 64])
    };
    let drops = "bit<3> d; dprsr.drop_ctl = d;";
    let of_mirrors = "bit<3> d; dprsr.mirror_type = 1; dprsr.drop_ctl[2:2] = d[2:2];";
    let emit = "if (dprsr.mirror_type == 1) { m.emit<byte_h>(1, { 8w7 }); }";
    assert_eq!(egress("", drops), way(&["drop_ctl"]));
    assert_eq!(egress(emit, of_mirrors), way(&["drop_ctl"]));
    assert_eq!(egress("", of_mirrors), [""; 0], "nothing is mirrored");
}

#[test]
fn undefined_generator_requests_are_reported() {
    let told = |ingress: &str, deparser: &str| {
        let program = Tna {
            include: "t2na.p4",
            ingress: &format!("bit<1> b; bit<14> a; tm.ucast_egress_port = 1; {ingress}"),
            deparser_locals: "Pktgen() g;",
            deparser,
            ..Tna::default()
        };
        undefined_in(&program.text(), &[0; 64])
    };
    let emit = "g.emit<byte_h>({ 8w7 });";
    assert_eq!(told("dprsr.pktgen = b;", emit), way(&["pktgen"]));
    assert_eq!(
        told("dprsr.pktgen = 1; dprsr.pktgen_address = a;", emit),
        way(&["pktgen_address"])
    );
    assert_eq!(told("dprsr.pktgen_address = a;", emit), [""; 0]);
    assert_eq!(told("dprsr.pktgen = b;", ""), [""; 0]);
}

/// A Tofino program whose deparsers select their outputs by types.
fn picking(ingress: &str, deparser: &str) -> Switch {
    let program = Tna {
        ingress: &format!("tm.ucast_egress_port = 1; {ingress}"),
        deparser_locals: "Mirror() m; Resubmit() r; Digest<byte_h>() g;",
        deparser,
        egress_deparser_locals: "Mirror() m;",
        egress_deparser: "if (dprsr.mirror_type == 1) { m.emit<byte_h>(1, { 8w7 }); }",
        meta: "bit<8> never;",
        ..Tna::default()
    };
    let config = Config {
        executor: Executor::Reference,
        poison: Some(1),
        ..Config::default()
    };
    Switch::new(compile(&program.text()), config).unwrap()
}

const PICKS: &str = "if (dprsr.mirror_type == 1) { m.emit<byte_h>(1, { 8w7 }); }
                     if (dprsr.resubmit_type == 2) { r.emit(); }
                     if (dprsr.digest_type == 3) { g.pack({ 8w7 }); }";

#[test]
fn unassigned_types_pick_nothing_and_are_not_reported() {
    assert_eq!(take_undefined(&mut picking("", PICKS), &[0; 64]), [""; 0]);
    for seed in 1..=64 {
        let mut switch = picking("", PICKS);
        switch.set_tracing(true);
        switch.handle_packet(seed, 0, &[0; 64]);
        let events = switch.take_events().0;
        let branch = |e: &pipeline::Event| match e.kind {
            EventKind::Branch { taken, .. } => Some(taken),
            _ => None,
        };
        let taken: Vec<_> = events.iter().filter_map(branch).collect();
        assert_eq!(taken, [false; 4], "seed {seed}");
    }
    let assigned = "bit<3> t; dprsr.resubmit_type = t;";
    assert_eq!(
        take_undefined(&mut picking(assigned, PICKS), &[0; 64]),
        ["a condition"]
    );
    // The control must not read an unassigned type: there it is a value.
    let read = "if (dprsr.mirror_type == 1) { tm.qid = 3; }";
    assert_eq!(
        take_undefined(&mut picking(read, PICKS), &[0; 64]),
        ["a condition"]
    );
}

#[test]
fn gated_calls_do_nothing_and_their_arguments_decide_nothing() {
    let emits = "m.emit<byte_h>(1, { meta.never }); g.pack({ meta.never });";
    assert_eq!(take_undefined(&mut picking("", emits), &[0; 64]), [""; 0]);
    assert_eq!(
        take_undefined(&mut picking("dprsr.digest_type = 0;", emits), &[0; 64]),
        ["argument 1 of ID.g.pack"]
    );
    let undefined = "bit<3> t; dprsr.mirror_type = t;";
    assert_eq!(
        take_undefined(
            &mut picking(undefined, "m.emit<byte_h>(1, { 8w7 });"),
            &[0; 64]
        ),
        way(&["mirror_type"])
    );
    let calls = called(&mut picking("dprsr.digest_type = 0;", emits), &[0; 64]);
    assert_eq!(result(&calls, "ID.m.emit"), "nothing");
    assert_eq!(result(&calls, "ID.g.pack"), "");
}

#[test]
fn an_undefined_operand_without_influence_is_not_reported() {
    let told = |condition: &str| {
        let text = format!(
            "bool u; bool yes = hdr.x.isValid(); bool no = !yes;
             if ({condition}) {{ hdr.x.v = 1; }} send_to_port(ostd, (PortId_t) 1);"
        );
        undefined("", &text)
    };
    for decided in ["u && no", "no && u", "u || yes", "yes || u", "!u && no"] {
        assert_eq!(told(decided), [""; 0], "{decided}");
    }
    for open in ["u && yes", "yes && u", "u || no", "no || u", "!u && yes"] {
        assert_eq!(told(open), ["a condition"], "{open}");
    }
    assert_eq!(
        told("hdr.y.v == 1 && hdr.y.isValid()"),
        [""; 0],
        "the header is asked for too late, but it is"
    );
}

#[test]
fn values_that_psa_carries_to_egress_stay_undefined() {
    let switch = |deparser: &str| {
        let program = Psa {
            decls: BYTE,
            headers: "byte_h x;",
            parser: "state start { pkt.extract(hdr.x); transition accept; }",
            carried: "bit<1> c; bit<8> d;",
            ingress: "send_to_port(ostd, (PortId_t) 1); ostd.clone = true; ostd.clone_session_id = (CloneSessionId_t) 0;",
            deparser,
            egress_parser: "
                state start {
                    transition select(istd.egress_port == (PortId_t) 1) { true: sent; default: cloned; }
                }
                state sent { transition select(normal.c, normal.d) { (1, 5): accept; default: accept; } }
                state cloned { transition select(cloned_i2e.d) { 5: accept; default: accept; } }",
            ..Psa::default()
        };
        let config = Config {
            executor: Executor::Reference,
            poison: Some(1),
            egress_queues: EgressQueues {
                port_rates_bps: [(1, 8_000_000)].into(),
                ..EgressQueues::default()
            },
            ..Config::default()
        };
        Switch::new(compile(&program.text()), config).unwrap()
    };
    let of = |deparser: &str| take_undefined(&mut switch(deparser), &[7, 8]);
    let key = ["a key of select"];
    assert_eq!(of("normal.c = 1; cloned.d = 1;"), key, "normal.d");
    assert_eq!(of("normal.c = 1; normal.d = 1;"), key, "cloned.d");
    assert_eq!(of(""), [key, key].concat(), "both");
    let all = "normal.c = 1; normal.d = 1; cloned.d = 1;";
    assert_eq!(of(all), [""; 0]);

    // For a packet that waits, it is unknown.
    let mut switch = switch("cloned.d = 1; if (hdr.x.v == 1) { normal.c = 1; normal.d = 1; }");
    for first in [1, 1, 2] {
        switch.handle_packet(0, 0, &[first, 8]);
    }
    switch.handle_timeout(1_000_000);
    assert_eq!(switch.take_events().0, []);
}

#[test]
fn undefined_values_are_not_reported_for_another_waiting_packet() {
    let program = V1 {
        meta: "bit<1> m;",
        ingress: "s.egress_spec = 1; bit<1> u; if (hdr.x.a == 1) { meta.m = 1; } else { meta.m = u; }",
        egress: "if (hdr.x.a == 1) { if (meta.m == 1) { hdr.x.b = 4; } }",
        ..V1::default()
    };
    let config = Config {
        executor: Executor::Reference,
        poison: Some(1),
        egress_queues: EgressQueues {
            rate_bps: Some(8_000_000),
            ..EgressQueues::default()
        },
        ..Config::default()
    };
    let mut switch = Switch::new(compile(&program.text()), config).unwrap();
    for first in [1, 1, 2] {
        switch.handle_packet(0, 0, &[first, 8]);
    }
    switch.handle_timeout(1_000_000);
    assert_eq!(switch.stats().transmitted, 3);
    assert_eq!(switch.take_events().0, []);
}

#[test]
fn undefined_values_are_not_reported_for_a_later_packet() {
    let mut switch = poisoned(
        "",
        "bool b; if (hdr.x.v == 1) { ostd.drop = b; }
         else { if (ostd.drop) { hdr.x.v = 3; } send_to_port(ostd, (PortId_t) 1); }",
    );
    assert_eq!(take_undefined(&mut switch, &[1, 8]), way(&["drop"]));
    assert_eq!(
        take_undefined(&mut switch, &[2, 8]),
        [""; 0],
        "true by PSA's default"
    );
}

#[test]
fn an_ingress_clone_keeps_the_originals_undefined_values() {
    let told = |clone: &str| {
        let program = V1 {
            meta: "bit<8> m;",
            ingress: &format!("bit<8> n; meta.m = n; {clone} s.egress_spec = 1;"),
            egress: "if (s.instance_type == 0) { if (meta.m == 3) { hdr.x.a = 4; } }",
            ..V1::default()
        };
        let config = Config {
            executor: Executor::Reference,
            poison: Some(1),
            ..Config::default()
        };
        let mut switch = Switch::new(compile(&program.text()), config).unwrap();
        let replicas = vec![p4lang::runtime::Replica {
            port: 2,
            instance: 0,
        }];
        let session = p4lang::runtime::CloneSession {
            id: 5,
            replicas,
            class_of_service: 0,
            packet_length_bytes: 0,
        };
        switch.set_clone_session(&session).unwrap();
        take_undefined(&mut switch, &[7, 8])
    };
    assert_eq!(told(""), ["a condition"]);
    assert_eq!(told("clone(CloneType.I2E, 5);"), ["a condition"]);
}

#[test]
fn undefined_values_are_reported_where_they_decide() {
    let send = "send_to_port(ostd, (PortId_t) 1);";
    let told = |locals: &str, ingress: &str| undefined(locals, &format!("{ingress} {send}"));
    assert_eq!(told("", "hdr.x.v = hdr.x.v + 1;"), [""; 0]);
    assert_eq!(
        told("", "bit<8> a; if (a == 1) { hdr.x.v = 1; }"),
        ["a condition"]
    );
    assert_eq!(
        told("", "if (hdr.y.v == 1) { hdr.x.v = 1; }"),
        ["a condition"],
        "a field of an invalid header"
    );
    assert_eq!(
        told("", "hdr.y.setValid();"),
        ["emitted field hdr.y.v"],
        "a header that was made valid"
    );
    assert_eq!(
        told(
            "Register<bit<8>, bit<8>>(9) r;",
            "bit<8> i; r.write(i, 8w1);"
        ),
        ["argument 1 of ingress.r.write"]
    );
    assert_eq!(
        told("", "hdr.s[0].v = 1; bit<8> i; hdr.x.v = hdr.s[i].v & 8w0;"),
        ["a stack index"]
    );
    let table = "bit<8> k; table t { key = { k: exact; } actions = { NoAction; } }";
    assert_eq!(
        told(table, "t.apply();"),
        ["key field k of table ingress.t"]
    );
}

#[test]
fn masked_or_overwritten_values_are_not_reported() {
    let send = "send_to_port(ostd, (PortId_t) 1);";
    let told = |ingress: &str| undefined("", &format!("{ingress} {send}"));
    assert_eq!(
        told("bit<8> a; a[3:0] = 5; if (a & 15 == 5) { hdr.x.v = 1; }"),
        [""; 0]
    );
    assert_eq!(told("bit<8> a; if (a & 16 == 5) { hdr.x.v = 1; }"), [""; 0]);
    assert_eq!(
        told("hdr.y.setValid(); hdr.y.v = 1; hdr.x.v = hdr.y.v;"),
        [""; 0]
    );
}

#[test]
fn stack_elements_are_reported_with_their_headers() {
    let program = Psa {
        decls: "struct k_t { bit<8> k; } header a_t { bit<8>[2] v; k_t[1] s; }",
        headers: "a_t[2] a;",
        parser: "state start { pkt.extract(hdr.a.next); transition accept; }",
        ingress: "send_to_port(ostd, (PortId_t) 3);",
        ..Psa::default()
    };
    let mut switch = program.load();
    switch.set_tracing(true);
    switch.handle_packet(0, 0, &[7, 8, 9]);
    let (events, _) = switch.take_events();
    let fields = events.iter().find_map(|event| match &event.kind {
        EventKind::Extract { fields, .. } => Some(fields),
        _ => None,
    });
    let fields = fields.expect("a header").iter();
    let shown: Vec<_> = fields.map(|f| (&*f.name, &*f.value, f.width)).collect();
    let expected = [
        ("v[0].value", "0x7", 8),
        ("v[1].value", "0x8", 8),
        ("s[0].k", "0x9", 8),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn steps_are_traced_until_tracing_stops() {
    let program = Psa {
        decls: BYTE,
        headers: "byte_h x;",
        parser: "state start { pkt.extract(hdr.x); transition accept; }",
        locals: "action to(PortId_t port) { send_to_port(ostd, port); }
                 table t { key = { hdr.x.v: exact; } actions = { to; NoAction; } }",
        ingress: "t.apply();",
        ..Psa::default()
    };
    let mut switch = program.load();
    let key = [("hdr.x.v", Match::exact(7))];
    let written = entry("ingress.t", &key, 0, "ingress.to", &[("port", 3)]);
    switch.insert_entry(&written).unwrap();
    switch.set_tracing(true);
    switch.handle_packet(0, 0, &[7, 8]);
    let (events, _) = switch.take_events();
    let kinds: Vec<_> = events.iter().map(|e| &e.kind).collect();
    assert!(
        matches!(kinds[0], EventKind::Received { port: 0, bytes } if bytes == &[7, 8]),
        "{kinds:?}"
    );
    let extracted = kinds.iter().any(|k| {
        matches!(k, EventKind::Extract { header, offset_bits: 0, fields }
            if header == "hdr.x" && fields[0].name == "v" && fields[0].value == "0x7")
    });
    assert!(extracted, "{kinds:?}");
    let applied = kinds.iter().find_map(|k| match k {
        EventKind::Table {
            keys,
            entry: Some((key, 0)),
            action: Some(action),
            ..
        } => Some((keys[0].value.clone(), key.clone(), action.clone())),
        _ => None,
    });
    let (value, found, action) = applied.expect("a hit");
    assert_eq!((value.as_str(), found), ("0x7", written.key));
    assert_eq!(action.name, "ingress.to");
    assert_eq!(action.params[0].value, "0x3");
    assert!(
        matches!(kinds.last(), Some(EventKind::Transmit { port: 3, bytes }) if bytes == &[7, 8]),
        "{kinds:?}"
    );
    switch.set_tracing(false);
    switch.handle_packet(0, 0, &[7, 8]);
    assert_eq!(switch.take_events().0, []);
    assert!(switch.take_differences().is_empty());
}

#[test]
fn a_tofino_program_is_traced_with_its_undefined_values() {
    let program = Tna {
        parser: "state go { pkt.extract(hdr.b); transition accept; }",
        meta: "bit<8> never;",
        locals: "Register<bit<32>, bit<8>>(4) r;
                 RegisterAction<bit<32>, bit<8>, bit<32>>(r) next = {
                     void apply(inout bit<32> v, out bit<32> rv) { v = v + 2; rv = v; }
                 };",
        ingress: "bit<32> n = next.execute(3);
                  if (tm.mcast_grp_a == 5) { hdr.b.v = 1; }
                  hdr.b.v = hdr.b.v + meta.never;
                  tm.ucast_egress_port = (PortId_t) (bit<9>) n;",
        ..Tna::default()
    };
    let config = Config {
        executor: Executor::Reference,
        poison: Some(1),
        ..Config::default()
    };
    let mut switch = Switch::new(compile(&program.text()), config).unwrap();
    switch.set_tracing(true);
    switch.handle_packet(0, 0, &[7, 8]);
    let (events, _) = switch.take_events();
    let undefined = events.iter().filter_map(|e| match &e.kind {
        EventKind::Undefined { what } => Some(what.as_str()),
        _ => None,
    });
    let undefined: Vec<_> = undefined.collect();
    assert_eq!(
        undefined,
        ["a condition", "emitted field hdr.b.v"],
        "an invalid field, and what the parser left of its metadata"
    );
    let executed = events.iter().find_map(|e| match &e.kind {
        EventKind::Extern {
            object,
            method,
            args,
            result,
        } if object == "I.next" => Some((method.clone(), args[0].value.clone(), result.clone())),
        _ => None,
    });
    let (method, index, result) = executed.expect("the register is executed");
    assert_eq!((method.as_str(), index.as_str()), ("execute", "0x3"));
    let shown: Vec<_> = result
        .iter()
        .map(|f| (f.name.as_str(), f.value.as_str()))
        .collect();
    assert_eq!(shown, [("rv", "0x2"), ("cell.0", "0x2")]);
    assert!(
        matches!(&events[events.len() - 1].kind, EventKind::Transmit { port: 2, bytes } if bytes[1] == 8),
        "{:?}",
        events.last()
    );
}

/// The architecture's events: arrivals and fates of packets.
fn ends(switch: &mut Switch) -> Vec<EventKind> {
    let events = switch.take_events().0.into_iter();
    events.filter(|e| e.at.is_none()).map(|e| e.kind).collect()
}

#[test]
fn a_waiting_packet_is_traced_when_it_joins_and_leaves_the_queue() {
    let queues = EgressQueues {
        depth: 1,
        rate_bps: Some(8_000_000),
        ..EgressQueues::default()
    };
    let config = Config {
        egress_queues: queues,
        ..Config::default()
    };
    let psa = Psa {
        decls: BYTE,
        headers: "byte_h x;",
        egress_parser: "state start { pkt.extract(hdr.x); transition accept; }",
        egress: "hdr.x.v = hdr.x.v + 1; ostd.drop = hdr.x.v == 4;",
        ..Psa::default()
    };
    let tna = Tna {
        egress_parser: "state go { pkt.extract(hdr.b); transition accept; }",
        egress: "hdr.b.v = hdr.b.v + 1; if (hdr.b.v == 4) { dprsr.drop_ctl = 1; }",
        ..Tna::default()
    };
    let v1model = V1 {
        egress: "hdr.x.a = hdr.x.a + 1; if (hdr.x.a == 4) { mark_to_drop(s); }",
        ..V1::default()
    };
    for text in [psa.text(), tna.text(), v1model.text()] {
        let mut switch = support::load(&text, config.clone());
        switch.set_tracing(true);
        let frame = |first: u8| [&[first][..], &[0; 99]].concat();
        let received = |first| EventKind::Received {
            port: 0,
            bytes: frame(first),
        };
        let dequeued = |first| EventKind::Dequeued {
            port: 1,
            bytes: frame(first),
        };
        let transmit = |first| EventKind::Transmit {
            port: 1,
            bytes: frame(first),
        };
        let joined = EventKind::Enqueued { packets: 1 };
        let drop = |reason| EventKind::Drop { reason };
        for (packet, verdict) in [
            (1, transmit(2)),
            (2, joined.clone()),
            (9, drop("queue_full")),
        ] {
            switch.handle_packet(0, 0, &frame(packet));
            assert_eq!(ends(&mut switch), [received(packet), verdict]);
        }
        switch.handle_timeout(100_000);
        assert_eq!(ends(&mut switch), [dequeued(2), transmit(3)]);
        switch.handle_packet(100_000, 0, &frame(3));
        assert_eq!(ends(&mut switch), [received(3), joined]);
        switch.handle_timeout(200_000);
        assert_eq!(ends(&mut switch), [dequeued(3), drop("egress")]);
    }
}

#[test]
fn a_generated_packet_is_traced_with_its_verdict() {
    let mut switch = Tna {
        parser: "state go { pkt.advance(48); pkt.extract(hdr.b); transition accept; }",
        ingress: "if (hdr.b.v == 1) { tm.ucast_egress_port = 1; }",
        ..Tna::default()
    }
    .load();
    switch.set_tracing(true);
    for (app, first) in [(3, 1), (4, 2)] {
        let config = GeneratorApp {
            trigger: Trigger::OneShot { after_ns: 500 },
            offset: 0,
            length: 2,
            batches: 1,
            packets: 1,
            batch_gap_ns: 0,
            packet_gap_ns: 0,
            port: 68,
        };
        let buffer = (0, &[first, 9][..]);
        let set = switch.set_generator(0, 0, buffer, app, Some(config));
        set.unwrap();
        switch.handle_timeout(500);
        let made = [&[app as u8, 0, 0, 0, 0, 0][..], &[first, 9]].concat();
        let received = EventKind::Received {
            port: 68,
            bytes: made,
        };
        let verdict = match first {
            1 => EventKind::Transmit {
                port: 1,
                bytes: vec![1, 9],
            },
            _ => EventKind::Drop { reason: "ingress" },
        };
        assert_eq!(ends(&mut switch), [received, verdict]);
    }
}

/// The calls of externs for a packet: name, arguments, result.
fn called(switch: &mut Switch, packet: &[u8]) -> Vec<(String, Vec<String>, Vec<String>)> {
    switch.set_tracing(true);
    switch.handle_packet(0, 0, packet);
    let (events, _) = switch.take_events();
    let values = |fields: Vec<pipeline::EventField>| -> Vec<String> {
        fields.into_iter().map(|f| f.value).collect()
    };
    let calls = events.into_iter().filter_map(|e| match e.kind {
        EventKind::Extern {
            object,
            method,
            args,
            result,
        } => Some((format!("{object}.{method}"), values(args), values(result))),
        _ => None,
    });
    calls.collect()
}

/// The result of the only call with this name.
fn result(calls: &[(String, Vec<String>, Vec<String>)], name: &str) -> String {
    let found: Vec<_> = calls.iter().filter(|(n, ..)| n == name).collect();
    assert_eq!(found.len(), 1, "{name}: {calls:?}");
    found[0].2.join(" ")
}

#[test]
fn v1model_traces_the_results_of_externs() {
    let mut switch = V1 {
        decls: "struct list_t { bit<8> x; bit<8> y; }",
        verify: "verify_checksum(true, { hdr.x.a, hdr.x.b }, (bit<16>) 5, HashAlgorithm.csum16);
                 verify_checksum(false, { hdr.x.a }, (bit<16>) 5, HashAlgorithm.csum16);",
        locals: "register<bit<8>>(4) r; meter(4, MeterType.packets) m;",
        ingress: "
            bit<16> h; bit<16> d; bit<8> got; bit<2> colour;
            hash(h, HashAlgorithm.identity, (bit<16>) 0, (list_t) { x = hdr.x.a, y = hdr.x.b }, (bit<32>) 0x10000);
            random(d, (bit<16>) 7, (bit<16>) 7);
            r.write(1, 0x2a); r.read(got, 1);
            m.execute_meter((bit<32>) 2, colour);
            s.egress_spec = 1;",
        ..V1::default()
    }
    .load();
    let calls = called(&mut switch, &[0x12, 0x34]);
    let of = |name| result(&calls, name);
    assert_eq!(of(".hash"), "0x1234");
    assert_eq!(of(".random"), "0x7");
    assert_eq!(of("ingress.r.read"), "0x2a");
    assert_eq!(of("ingress.m.execute_meter"), "0x0");
    let checks: Vec<_> = calls
        .iter()
        .filter(|(n, ..)| n == ".verify_checksum")
        .collect();
    assert_eq!(checks[0].2, ["0xedcb"], "what was computed");
    assert_eq!(checks[0].1[..4], ["true", "0x12", "0x34", "0x5"]);
    assert!(checks[1].2.is_empty(), "nothing was");
}

#[test]
fn psa_traces_the_results_of_externs() {
    let mut switch = Psa {
        deparser: "if (psa_normal(istd)) { pkt.emit(hdr); } assert(!psa_resubmit(istd));",
        ..Psa::default()
    }
    .load();
    let calls = called(&mut switch, &[0x12, 0x34]);
    assert_eq!(result(&calls, ".psa_normal"), "true");
    assert_eq!(result(&calls, ".psa_resubmit"), "false");
    let asserted = calls.iter().find(|(n, ..)| n == ".assert").expect("told");
    assert_eq!(asserted.1, ["true"]);
}

#[test]
fn tna_traces_the_results_of_externs() {
    let mut switch = Tna {
        include: "t2na.p4",
        decls: "header two_h { bit<8> x; bit<16> sum; }",
        headers: "two_h t; byte_h b;",
        meta: "bit<16> left;",
        parser_locals: "Checksum() left;",
        parser: "state go {
            pkt.extract(hdr.t); left.subtract({ hdr.t.sum }); left.subtract_all_and_deposit(meta.left);
            pkt.extract(hdr.b); transition accept;
        }",
        locals: "Register<bit<32>, bit<8>>(4) r;
                 RegisterAction<bit<32>, bit<8>, bit<32>>(r) was_zero = {
                     void apply(inout bit<32> v, out bit<32> rv) { rv = this.predicate(v == 0); v = v + 1; }
                 };
                 Hash<bit<8>>(HashAlgorithm_t.IDENTITY) h;",
        ingress: "
            hdr.b.v = max(hdr.b.v, 8w3);
            hdr.b.v = h.get({ hdr.b.v });
            bit<32> at = was_zero.execute(2);
            if (is_validated(tm.ucast_egress_port)) { hdr.b.v = 1; }
            hdr.t.x = (bit<8>) sizeInBytes(hdr.t);
            funnel_shift_right(hdr.t.sum, 16w0x1234, 16w0x5678, 8);
            tm.ucast_egress_port = 1;",
        ..Tna::default()
    }
    .load();
    let calls = called(&mut switch, &[0x12, 0, 1, 0x99]);
    let of = |name| result(&calls, name);
    assert_eq!(of(".max"), "0x99");
    assert_eq!(of("I.h.get"), "0x99");
    assert_eq!(of("I.was_zero.predicate"), "0x2");
    assert_eq!(of(".is_validated"), "false");
    assert_eq!(of(".sizeInBytes"), "0x3");
    assert_eq!(of(".funnel_shift_right"), "0x3456");
    assert!(of("IP.left.subtract_all_and_deposit").starts_with("0x"));
    let asked = calls
        .iter()
        .find(|(n, ..)| n == ".is_validated")
        .expect("told");
    assert_eq!(asked.1, ["tm.ucast_egress_port"]);
}

/// A call whose result is discarded must report it like other calls.
#[test]
fn discarded_results_are_reported() {
    let psa = Psa {
        headers: "byte_h b;",
        decls: "header byte_h { bit<8> v; }",
        parser: "state start { pkt.extract(hdr.b); transition accept; }",
        locals: "Register<bit<8>, bit<8>>(4, 0x2a) r;
                 Hash<bit<16>>(PSA_HashAlgorithm_t.IDENTITY) h;
                 action inner() { r.read(2); }",
        ingress: "inner(); h.get_hash({ hdr.b.v }); send_to_port(ostd, (PortId_t) 1);",
        ..Psa::default()
    };
    let tna = Tna {
        parser: "state go { pkt.extract(hdr.b); transition accept; }",
        locals: "Register<bit<32>, bit<8>>(4) r;
                 RegisterAction<bit<32>, bit<8>, bit<32>>(r) next = {
                     void apply(inout bit<32> v, out bit<32> rv) { v = v + 2; rv = v + 1; }
                 };",
        ingress: "next.execute(1); if (hdr.b.v == 0x12) { max(hdr.b.v, 8w3); } tm.ucast_egress_port = 1;",
        ..Tna::default()
    };
    for (text, expected) in [
        (
            psa.text(),
            &[("ingress.r.read", "0x2a"), ("ingress.h.get_hash", "0x12")],
        ),
        (
            tna.text(),
            &[("I.next.execute", "0x3 0x2"), (".max", "0x12")],
        ),
    ] {
        let calls = called(
            &mut crate::support::load(&text, Config::default()),
            &[0x12, 0x34],
        );
        for (name, value) in expected {
            assert_eq!(result(&calls, name), *value, "{name}");
        }
    }
}
