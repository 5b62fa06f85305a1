//! What only the reference executor gives: steps, and reads of undefined values.
#![allow(missing_docs)]

mod support;

use p4lang::runtime::Match;
use pipeline::{Config, EventKind, Executor, Switch};
use support::tna::Tna;
use support::v1model::V1;
use support::{Psa, compile, entry};

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

/// What is undefined and decides something.
fn undefined(locals: &str, ingress: &str) -> Vec<String> {
    told(&mut poisoned(locals, ingress), &[7, 8])
}

/// The same of any program.
fn of(program: &str, packet: &[u8]) -> Vec<String> {
    let config = Config {
        executor: Executor::Reference,
        poison: Some(1),
        ..Config::default()
    };
    told(&mut Switch::new(compile(program), config).unwrap(), packet)
}

fn told(switch: &mut Switch, packet: &[u8]) -> Vec<String> {
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
fn undefined_values_are_told_by_which_a_packet_goes_its_way() {
    let way = |name: &str| vec![format!("{name}, by which the packet goes its way")];
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
        of(&program.text(), &[7, 8])
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
    let tna = |ingress: &str| {
        let program = Tna {
            ingress,
            ..Tna::default()
        };
        of(&program.text(), &[0; 64])
    };
    assert_eq!(
        tna("bit<9> p; tm.ucast_egress_port = p;"),
        way("ucast_egress_port")
    );
    assert_eq!(
        tna("bit<3> d; tm.ucast_egress_port = 1; dprsr.drop_ctl = d;"),
        way("drop_ctl")
    );
}

#[test]
fn undefined_values_are_told_where_they_decide() {
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
fn what_is_masked_out_or_overwritten_is_not_told() {
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
fn steps_of_a_packet_are_told_and_no_more_when_it_ends() {
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
fn a_tofino_program_is_traced_and_its_undefined_values_are_told() {
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

/// What a packet's calls of externs tell: name, arguments, result.
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

/// The result of the one call of that name.
fn result(calls: &[(String, Vec<String>, Vec<String>)], name: &str) -> String {
    let found: Vec<_> = calls.iter().filter(|(n, ..)| n == name).collect();
    assert_eq!(found.len(), 1, "{name}: {calls:?}");
    found[0].2.join(" ")
}

#[test]
fn v1model_tells_what_its_externs_give() {
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
fn psa_tells_what_its_externs_give() {
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
fn tna_tells_what_its_externs_give() {
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
                 RegisterAction<bit<32>, bit<8>, bit<32>>(r) where_ = {
                     void apply(inout bit<32> v, out bit<32> rv) { rv = this.address(); v = v + 1; }
                 };
                 Register<bit<32>, _>(1) line;
                 RegisterAction<bit<32>, _, bit<32>>(line) take = {
                     void apply(inout bit<32> v, out bit<32> rv) { rv = v; }
                 };
                 Hash<bit<8>>(HashAlgorithm_t.IDENTITY) h;",
        ingress: "
            hdr.b.v = max(hdr.b.v, 8w3);
            hdr.b.v = h.get({ hdr.b.v });
            bit<32> at = where_.execute(2);
            bit<32> none = take.dequeue();
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
    assert_eq!(of("I.where_.address"), "0x40");
    assert_eq!(of("I.take.dequeue"), "0x0");
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
