//! Hostile programs that compile: loading one is refused with its position and the limit, or done, within a second of
//! processor time, in bounded memory, on a small stack.

use crate::support;
use crate::support::compile;
use p4lang::ir::Program;
use pipeline::{Config, Executor, LoadError, Switch};
use std::fmt::Write;
use std::sync::Arc;
use test_support::cost;

/// The error for too many cells.
const LARGE: &str = "registers, counters and meters have more than 134217728 bytes";

/// Loads a program and sends a packet through it. Time and memory are bounded in any case.
#[track_caller]
fn outcome(program: Arc<Program>, config: Config) -> Result<(), LoadError> {
    // The program must be dropped here, not in the other thread.
    let here = Arc::clone(&program);
    let loaded = move || Switch::new(Arc::clone(&program), config.clone());
    let (switch, cost) = cost::least(loaded);
    drop(here);
    println!("{cost}  {:?}", switch.as_ref().map(Switch::code_size));
    cost.assert_small();
    let mut switch = switch?;
    switch.handle_packet(0, 1, &[0; 64]);
    assert_eq!(switch.stats().received, 1);
    Ok(())
}

/// Checks that the program is refused with this message and a position.
#[track_caller]
fn refused(program: Arc<Program>, message: &str) {
    let error = outcome(program, Config::default()).expect_err("the program should be refused");
    println!("    {error}");
    assert!(
        error.to_string().contains(message),
        "no `{message}` in {error}"
    );
    assert!(
        error.span().is_some_and(|span| span.end > 0),
        "no place: {error}"
    );
}

#[track_caller]
fn accepted(program: Arc<Program>) {
    outcome(program, Config::default()).unwrap_or_else(|error| panic!("{error}"));
}

fn v1model(decls: &str, locals: &str, apply: &str) -> Arc<Program> {
    compile(&format!(
        "#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<8> a; bit<8> b; }}
struct headers_t {{ h_t h; }}
struct meta_t {{ bit<8> a; bit<32> b; bit<1> c; bit<32> x; }}
{decls}
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    state start {{ pkt.extract(hdr.h); transition accept; }}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    {locals}
    apply {{ {apply} }}
}}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{ apply {{ }} }}
control U(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control D(packet_out pkt, in headers_t hdr) {{ apply {{ pkt.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), U(), D()) main;
"
    ))
}

fn local(locals: &str) -> Arc<Program> {
    v1model("", locals, "")
}

fn psa(locals: &str) -> Arc<Program> {
    let psa = support::Psa {
        locals,
        ..support::Psa::default()
    };
    compile(&psa.text())
}

fn tna(locals: &str) -> Arc<Program> {
    let tna = support::tna::Tna {
        locals,
        ..support::tna::Tna::default()
    };
    compile(&tna.text())
}

fn lines(count: usize, mut line: impl FnMut(usize, &mut String)) -> String {
    let mut text = String::new();
    for n in 0..count {
        line(n, &mut text);
        text.push('\n');
    }
    text
}

macro_rules! line {
    ($($format:tt)*) => {
        |n: usize, out: &mut String| { let _ = write!(out, $($format)*, n = n); }
    };
}

#[test]
fn the_frame_of_these_programs_loads() {
    accepted(local(""));
    accepted(psa(""));
    accepted(tna(""));
}

#[test]
fn huge_registers() {
    refused(local("register<bit<32>>(0xffffffff) r;"), LARGE);
    refused(local("register<bit<64>>(32w1 << 25) r;"), LARGE);
    refused(psa("Register<bit<8>, bit<32>>(0xffffffff) r;"), LARGE);
    refused(tna("Register<bit<32>, bit<32>>(0xffffffff) r;"), LARGE);
    // The largest size that is accepted.
    accepted(local("register<bit<64>>(32w1 << 24) r;"));
    accepted(local("register<bit<1>>(32w1 << 24) r;"));
}

#[test]
fn registers_with_a_value_to_start_with() {
    accepted(psa("Register<bit<32>, bit<32>>(32w1 << 24, 7) r;"));
    accepted(psa("Register<bit<64>, bit<32>>(32w1 << 23, 7) r;"));
}

#[test]
fn many_registers() {
    accepted(local(&lines(10_000, line!("register<bit<32>>(1) r{n};"))));
    accepted(local(&lines(2_000, line!("register<bit<32>>({n}) r{n};"))));
    refused(
        local(&lines(10_000, line!("register<bit<32>>(100000) r{n};"))),
        LARGE,
    );
}

#[test]
fn huge_counters_and_meters() {
    refused(local("counter(32w1 << 31, CounterType.packets) c;"), LARGE);
    refused(local("meter(32w1 << 31, MeterType.packets) m;"), LARGE);
    refused(
        psa("Counter<bit<64>, bit<32>>(0x80000000, PSA_CounterType_t.BYTES) c;"),
        LARGE,
    );
    refused(
        psa("Meter<bit<32>>(0x80000000, PSA_MeterType_t.BYTES) m;"),
        LARGE,
    );
    refused(
        tna("Counter<bit<64>, bit<32>>(0x80000000, CounterType_t.BYTES) c;"),
        LARGE,
    );
    refused(
        tna("Meter<bit<32>>(0x80000000, MeterType_t.BYTES) m;"),
        LARGE,
    );
    refused(tna("Lpf<bit<32>, bit<32>>(0x80000000) l;"), LARGE);
    let many = lines(1000, line!("counter(1 << 16, CounterType.packets) c{n};"));
    refused(local(&many), LARGE);
    let many = lines(1000, line!("meter(1 << 16, MeterType.packets) c{n};"));
    refused(local(&many), LARGE);
}

#[test]
fn huge_tables_and_profiles() {
    let table = |size: &str| {
        v1model(
            "",
            &format!(
                "action a() {{ }} table t {{ key = {{ meta.b: ternary; }} actions = {{ a; }} size = {size}; }}"
            ),
            "t.apply();",
        )
    };
    refused(table("1 << 40"), "more than 16777216 entries");
    accepted(table("1 << 24"));
    refused(
        v1model(
            "",
            "action_profile(32w1 << 31) p; action a() { } table t { key = { meta.b: exact; } actions = { a; } implementation = p; }",
            "t.apply();",
        ),
        "more than 1048576 members",
    );
    refused(
        v1model(
            "",
            "action_selector(HashAlgorithm.crc16, 32w0xffffffff, 32w16) p; action a() { } table t { key = { meta.b: exact; meta.a: selector; } actions = { a; } implementation = p; }",
            "t.apply();",
        ),
        "more than 1048576 members",
    );
}

#[test]
fn many_tables() {
    let tables = |n: usize| {
        v1model(
            "",
            &lines(
                n,
                line!("table t{n} {{ key = {{ meta.b: ternary; }} actions = {{ NoAction; }} }}"),
            ),
            &lines(n, line!("t{n}.apply();")),
        )
    };
    accepted(tables(1000));
    refused(tables(20_000), "more than 4096 tables");
}

#[test]
fn many_const_entries() {
    let entries = |kind: &str, n: usize, each: &str| {
        let entries = lines(n, |n, out| {
            let _ = write!(out, "{n}{each}: a({});", n % 256);
        });
        v1model(
            "",
            &format!(
                "action a(bit<8> x) {{ meta.a = x; }} table t {{ key = {{ meta.b: {kind}; }} actions = {{ a; NoAction; }} size = 100000; const entries = {{ {entries} }} }}"
            ),
            "t.apply();",
        )
    };
    accepted(entries("exact", 50_000, ""));
    accepted(entries("ternary", 20_000, " &&& 0xffffff"));
    accepted(entries("lpm", 50_000, " &&& 0xffffffff"));
    accepted(entries("range", 2_000, " .. 0xffffffff"));
}

#[test]
fn huge_stacks_and_structs() {
    let stack = |n: u32, apply: &str| {
        v1model(
            &format!("header x_t {{ bit<2048> a; }} struct big_t {{ x_t[{n}] s; }}"),
            "big_t v; big_t w;",
            apply,
        )
    };
    refused(stack(65_536, "v = w;"), "1048576 slots");
    accepted(stack(
        4000,
        "v = w; v.s[0].setValid(); meta.a = (bit<8>) v.s[meta.b & 0xfff].a;",
    ));
    accepted(stack(
        2000,
        "v.s[0].setValid(); v.s.push_front(1); v.s.push_front(1999); if (v == w) { meta.a = 1; }",
    ));
}

#[test]
fn loops_that_do_not_end() {
    accepted(v1model(
        "",
        "",
        "for (bit<32> i = 0; true; i = i + 1) { meta.b = i; }",
    ));
    accepted(states(
        1,
        "",
        "transition select(meta.b) { 0: s0; default: NEXT; }",
    ));
}

/// The number of iterations of an infinite loop that copies eight headers with `fields` fields.
fn rounds(fields: usize, config: Config) -> u32 {
    let fields = lines(fields, line!("bit<8> f{n};"));
    let decls = format!(
        "header h_t {{ bit<32> n; }} header row_t {{ {fields} }} struct rows_t {{ row_t[8] r; }}"
    );
    let psa = support::Psa {
        headers: "h_t h;",
        decls: &decls,
        parser: "state start { pkt.extract(hdr.h); transition accept; }",
        locals: "rows_t v; rows_t w;",
        ingress: "send_to_port(ostd, (PortId_t) 1);
            for (bit<32> i = 0; true; i = i + 1) {
                w = v;
                v.r[i & 7].f1 = w.r[i & 3].f2 + 1;
                hdr.h.n = i + 1;
            }",
        ..support::Psa::default()
    };
    let mut switch = Switch::new(compile(&psa.text()), config).expect("a program that loads");
    let (sent, cost) = cost::measure(move || {
        let sent = support::one(&mut switch, &[0; 4]);
        assert_eq!(switch.stats().out_of_steps, 1);
        sent
    });
    println!("{cost}");
    cost.assert_small();
    u32::from_be_bytes(sent.try_into().expect("four bytes"))
}

/// A step is an iteration, or some hundred moved words: a packet ends soon whatever its loops copy, and after the same
/// iteration in both executors.
#[test]
fn loops_that_copy_arrays() {
    let few = Config {
        executor: Executor::Both,
        max_steps: 1000,
        ..Config::default()
    };
    assert_eq!(rounds(10, few.clone()), 1000);
    let some = rounds(250, few);
    assert!((100..=300).contains(&some), "{some} rounds of 4,000 words");
    let fast = Config {
        executor: Executor::Fast,
        ..Config::default()
    };
    let many = rounds(8000, fast);
    assert!(
        (500..=2000).contains(&many),
        "{many} rounds of 128,000 words"
    );
}

fn states(n: usize, body: &str, transition: &str) -> Arc<Program> {
    in_order(0..n, body, transition)
}

fn in_order(order: impl Iterator<Item = usize>, body: &str, transition: &str) -> Arc<Program> {
    let (mut text, mut last) = (String::new(), 0);
    for n in order {
        let transition = transition.replace("NEXT", &format!("s{}", n + 1));
        let _ = writeln!(text, "state s{n} {{ {body} {transition} }}");
        last = last.max(n + 1);
    }
    let parser =
        format!("state start {{ transition s0; }} {text} state s{last} {{ transition accept; }}");
    compile(&format!(
        "#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<8> a; bit<8> b; }}
struct headers_t {{ h_t h; }}
struct meta_t {{ bit<8> a; bit<32> b; }}
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    bit<32> x = 0;
    {parser}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{ apply {{ }} }}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{ apply {{ }} }}
control U(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control D(packet_out pkt, in headers_t hdr) {{ apply {{ pkt.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), U(), D()) main;
"
    ))
}

#[test]
fn many_states() {
    accepted(states(50_000, "", "transition NEXT;"));
    let select = "transition select(hdr.h.a) { 1: NEXT; 2: s0; default: accept; }";
    accepted(states(20_000, "pkt.extract(hdr.h);", select));
    // Each state goes to the previous one in the code, so the analysis of live slots needs one pass per state.
    accepted(in_order(
        (0..2_000).rev(),
        "x = x + meta.b; meta.a = meta.a + 1;",
        select,
    ));
    accepted(in_order(
        (0..20_000).rev(),
        "x = x + meta.b; meta.a = meta.a + 1;",
        select,
    ));
    accepted(in_order(
        (0..20_000).rev(),
        "bit<32> y = x; pkt.extract(hdr.h); x = y + 1;",
        select,
    ));
}

#[test]
fn doubling_code() {
    let mut decls = "bit<8> f0(in bit<8> x) { return x + 1; }\n".to_owned();
    decls += &lines(50, |n, out| {
        let _ = write!(
            out,
            "bit<8> f{m}(in bit<8> x) {{ return f{n}(x) + f{n}(x); }}",
            m = n + 1
        );
    });
    refused(v1model(&decls, "", "meta.a = f50(meta.a);"), "instructions");
    accepted(v1model(&decls, "", "meta.a = f12(meta.a);"));
}

#[test]
fn long_code() {
    accepted(v1model(
        "",
        "",
        &"meta.b = meta.b * 3 + meta.x;\n".repeat(100_000),
    ));
    accepted(v1model(
        "",
        "",
        &lines(10_000, line!("meta.b = meta.b * {n} + meta.x;")),
    ));
    accepted(v1model(
        "",
        "",
        &lines(
            10_000,
            line!("if (meta.b == {n}) {{ meta.x = meta.x + {n}; }}"),
        ),
    ));
    accepted(v1model(
        "",
        "",
        &"if (meta.b == meta.x) { meta.x = meta.x + 1; }\n".repeat(50_000),
    ));
    let locals = lines(20_000, line!("bit<32> v{n} = 1;"));
    let uses = lines(20_000, line!("if (meta.b == v{n}) {{ v{n} = meta.x; }}"));
    accepted(v1model("", &locals, &uses));
    refused(
        v1model("", "", &lines(100_000, line!("meta.b = meta.b ^ {n}000;"))),
        "constants",
    );
}

#[test]
fn wide_values() {
    let fields = lines(4000, line!("bit<32> f{n};"));
    let decls = format!(
        "struct wide_t {{ {fields} }} header big_t {{ {fields} }} struct all_t {{ big_t[60] s; }}"
    );
    accepted(v1model(
        &decls,
        "wide_t v; wide_t w;",
        "v = w; if (v == w) { meta.a = 1; } v.f7 = w.f9;",
    ));
    accepted(v1model(
        &decls,
        "all_t v; all_t w;",
        "v = w; v.s[meta.b] = w.s[meta.x]; meta.b = v.s[0].f1;",
    ));
    let digests = "digest<wide_t>(1, v);\n".repeat(200);
    accepted(v1model(&decls, "wide_t v;", &digests));
    let hashes = lines(
        200,
        line!("hash(meta.b, HashAlgorithm.crc32, 32w0, v, 32w{n});"),
    );
    accepted(v1model(&decls, "wide_t v;", &hashes));
}

/// The error for too many values that are moved to bytes.
const MOVED: &str = "more than 1048576 slots of 64 bits in data that is extracted, emitted, hashed";

#[test]
fn hashes_of_thousands_of_fields() {
    let fields = lines(4000, line!("bit<8> f{n};"));
    let decls = format!("struct bytes_t {{ {fields} }}");
    let hash = "hash(meta.b, HashAlgorithm.crc32, 32w0, { v, w, v }, 32w7);\n";
    let program = |statements: &str| v1model(&decls, "bytes_t v; bytes_t w;", statements);
    accepted(program(&hash.repeat(80)));
    refused(program(&hash.repeat(500)), MOVED);
    refused(program(&"digest<bytes_t>(1, v);\n".repeat(2000)), MOVED);
    let one = "hash(meta.b, HashAlgorithm.crc32, 32w0, v, 32w7);\n";
    refused(program(&one.repeat(2000)), MOVED);
    let mixed = lines(2000, line!("bit<13> p{n}; bit<128> q{n}; bit<1> r{n};"));
    let decls = format!("struct mixed_t {{ {mixed} }}");
    accepted(v1model(&decls, "mixed_t v; mixed_t w;", &hash.repeat(40)));
}

#[test]
fn structs_of_many_fields() {
    let fields = lines(60_000, line!("bit<8> f{n};"));
    let decls = format!("struct many_t {{ {fields} }}");
    let hash = "hash(meta.b, HashAlgorithm.crc32, 32w0, v, 32w7);";
    accepted(v1model(&decls, "many_t v;", hash));
}

#[test]
fn copies_of_thousands_of_slots() {
    let fields = lines(2000, line!("bit<8> f{n};"));
    let decls = format!("header row_t {{ {fields} }} struct rows_t {{ row_t[50] r; row_t s; }}");
    let program = |statements: &str| v1model(&decls, "rows_t v; rows_t w;", statements);
    // v1model copies each of the 51 headers separately, so 8,000 copies come close to the limit of instructions.
    accepted(program(&"v = w; w = v;\n".repeat(4000)));
    // Jumps between the copies: tests the analysis of live slots at each.
    let jumps = "if (meta.b == meta.x) { v = w; } w = v;\n";
    accepted(program(&jumps.repeat(4000)));
    let action = "action a(inout rows_t z) { z.s.f1 = 1; } rows_t v;";
    accepted(v1model(&decls, action, &"a(v);\n".repeat(4000)));
}

#[test]
fn many_headers() {
    let fields = lines(2000, line!("bit<8> f{n};"));
    let decls = format!("header w_t {{ {fields} }}");
    let locals = lines(400, line!("w_t v{n};"));
    let uses = lines(
        400,
        line!("v{n}.setValid(); if (v{n}.f7 == 1) {{ meta.a = 1; }}"),
    );
    accepted(v1model(&decls, &locals, &uses));
    let extracted = |n: usize| {
        let parser = "pkt.extract(hdr.w.next);\n".repeat(n);
        compile(&format!(
            "#include <core.p4>
#include <v1model.p4>
header w_t {{ {fields} }}
struct headers_t {{ w_t[{n}] w; }}
struct meta_t {{ bit<8> a; }}
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    state start {{ {parser} transition accept; }}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    apply {{ hdr.w[0].setInvalid(); hdr.w[1] = hdr.w[2]; {} }}
}}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{ apply {{ }} }}
control U(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control D(packet_out pkt, in headers_t hdr) {{ apply {{ pkt.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), U(), D()) main;
",
            "hdr.w[3].setInvalid();\n".repeat(20_000)
        ))
    };
    accepted(extracted(100));
}

#[test]
fn many_actions_and_parameters() {
    let actions = lines(
        2000,
        line!("action a{n}(bit<32> p, bit<128> q) {{ meta.b = p; meta.x = (bit<32>) q; }}"),
    );
    let names = lines(2000, line!("a{n};"));
    let locals = format!(
        "{actions} table t {{ key = {{ meta.b: exact; }} actions = {{ {names} }} }} table u {{ key = {{ meta.b: lpm; meta.x: exact; }} actions = {{ {names} }} }}"
    );
    accepted(v1model("", &locals, "t.apply(); u.apply();"));
    let params = (0..2000)
        .map(|n| format!("bit<8> p{n}"))
        .collect::<Vec<_>>()
        .join(", ");
    let sum = lines(2000, line!("meta.a = meta.a + p{n};"));
    let locals = format!(
        "action a({params}) {{ {sum} }} table t {{ key = {{ meta.b: exact; }} actions = {{ a; }} }}"
    );
    accepted(v1model("", &locals, "t.apply();"));
}

#[test]
fn traced_too() {
    let program = v1model(
        "",
        &lines(
            4000,
            line!(
                "action a{n}() {{ }} table t{n} {{ key = {{ meta.b: exact; }} actions = {{ a{n}; }} }}"
            ),
        ),
        &lines(4000, line!("t{n}.apply();")),
    );
    let config = Config {
        trace: true,
        ..Config::default()
    };
    outcome(program, config).unwrap_or_else(|error| panic!("{error}"));
}

/// The packets that leave, including compilation, in both executors and on a small stack.
fn through(psa: support::Psa<'_>, packets: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let text = psa.text();
    let (sent, cost) = cost::measure(move || {
        let mut switch = support::load(&text, Config::default());
        let sent = packets.iter().map(|p| support::one(&mut switch, p));
        sent.collect()
    });
    println!("{cost}");
    sent
}

#[test]
fn the_right_one_of_thousands_of_arms() {
    const N: usize = 3000;
    let arms = lines(
        N,
        line!("if (hdr.h.a == {n}) {{ hdr.h.b = {n} ^ 0xffff; }} else"),
    );
    let psa = support::Psa {
        headers: "h_t h;",
        decls: "header h_t { bit<16> a; bit<16> b; }",
        parser: "state start { pkt.extract(hdr.h); transition accept; }",
        ingress: &format!("send_to_port(ostd, (PortId_t) 1); {arms} {{ hdr.h.b = 7; }}"),
        ..support::Psa::default()
    };
    let asked = [0u16, 1, 95, 96, 1500, 2998, 2999, 3000, 65535];
    let packets = asked.map(|n| [n.to_be_bytes(), [0; 2]].concat());
    let sent = through(psa, packets.to_vec());
    for (n, packet) in asked.into_iter().zip(sent) {
        let answer = if usize::from(n) < N { n ^ 0xffff } else { 7 };
        assert_eq!(packet[2..], answer.to_be_bytes(), "{n}");
    }
}

#[test]
fn thousands_of_conditions_are_evaluated_until_one_holds() {
    // Each evaluated condition counts in `hdr.h.b`.
    let arms = lines(
        3000,
        line!("if (is(hdr.h.b, hdr.h.a, {n})) {{ hdr.h.c = {n}; }} else"),
    );
    let psa = support::Psa {
        headers: "h_t h;",
        decls: "header h_t { bit<16> a; bit<16> b; bit<16> c; }
            bool is(inout bit<16> asked, in bit<16> a, in bit<16> b) { asked = asked + 1; return a == b; }",
        parser: "state start { pkt.extract(hdr.h); transition accept; }",
        ingress: &format!("send_to_port(ostd, (PortId_t) 1); {arms} {{ hdr.h.c = 0xffff; }}"),
        ..support::Psa::default()
    };
    let asked = [0u16, 1, 777, 2999, 3000];
    let packets = asked.map(|n| [n.to_be_bytes(), [0; 2], [0; 2]].concat());
    for (n, packet) in asked.into_iter().zip(through(psa, packets.to_vec())) {
        let (count, arm) = if n < 3000 { (n + 1, n) } else { (3000, 0xffff) };
        assert_eq!(packet[2..4], count.to_be_bytes(), "{n}");
        assert_eq!(packet[4..6], arm.to_be_bytes(), "{n}");
    }
}

#[test]
fn thousands_of_operators() {
    // a + 1 * b - 2 * b + 3 * b …; some of the summands are calls that count.
    let sum = lines(3000, |n, out| {
        let sign = ["+", "-"][n % 2];
        let _ = match n % 7 {
            0 => write!(out, "{sign} count(hdr.h.calls, hdr.h.b)"),
            _ => write!(out, "{sign} {n} * hdr.h.b"),
        };
    });
    let all = lines(3000, line!("&& hdr.h.a != {n} + 1"));
    let any = lines(3000, |n, out| {
        let _ = match n % 100 {
            // Evaluated only if no earlier condition holds.
            99 => write!(out, "|| count(hdr.h.calls, 1) == 0"),
            _ => write!(out, "|| hdr.h.a == {n} + 1"),
        };
    });
    let psa = support::Psa {
        headers: "h_t h;",
        decls: "header h_t { bit<32> a; bit<32> b; bit<32> sum; bit<32> calls; bit<8> all; bit<8> any; }
            bit<32> count(inout bit<32> calls, in bit<32> b) { calls = calls + 1; return b; }",
        parser: "state start { pkt.extract(hdr.h); transition accept; }",
        ingress: &format!(
            "send_to_port(ostd, (PortId_t) 1);
            hdr.h.sum = hdr.h.a {sum};
            hdr.h.all = true {all} ? 8w1 : 0;
            if (false {any}) {{ hdr.h.any = 1; }}"
        ),
        ..support::Psa::default()
    };
    let asked = [(0u32, 5u32), (1, 0), (2999, 0xffff_ffff), (4000, 77)];
    let packet = |(a, b): (u32, u32)| [&a.to_be_bytes()[..], &b.to_be_bytes(), &[0; 10]].concat();
    let sent = through(psa, asked.iter().map(|ab| packet(*ab)).collect());
    for ((a, b), packet) in asked.into_iter().zip(sent) {
        let mut sum = a;
        for n in 0..3000u32 {
            let summand = if n % 7 == 0 { b } else { n.wrapping_mul(b) };
            sum = match n % 2 {
                0 => sum.wrapping_add(summand),
                _ => sum.wrapping_sub(summand),
            };
        }
        let is_any = (1..=3000).contains(&a) && a % 100 != 0;
        let before = if is_any { a / 100 } else { 30 };
        let calls = 3000u32.div_ceil(7) + before;
        assert_eq!(packet[8..12], sum.to_be_bytes(), "{a} {b}");
        assert_eq!(packet[12..16], calls.to_be_bytes(), "{a} {b}");
        let all = !(1..=3000).contains(&a);
        assert_eq!(packet[16..], [u8::from(all), u8::from(is_any)], "{a} {b}");
    }
}
