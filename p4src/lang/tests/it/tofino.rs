//! Each limit and each rule of `tofino`, on the smallest program at the limit and on the smallest beyond it.

use p4lang::tofino::{Chip, NotTofino, Report, analyse};
use p4lang::{Files, Options};

/// A TNA program around an ingress control.
fn program(locals: &str, apply: &str, parser: &str) -> String {
    format!(
        "#include <tna.p4>
header h_t {{ bit<32> a; bit<32> b; bit<32> c; bit<32> d; bit<16> s; bit<8> k; bit<8> n; }}
header wide_t {{ bit<1024> bits; }}
struct headers_t {{ h_t h; wide_t w0; wide_t w1; wide_t w2; wide_t w3; wide_t w4; wide_t w5; }}
struct meta_t {{ bit<32> x; bit<32> y; bit<32> z; bit<8> f; }}
parser IP(packet_in pkt, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t md) {{
    state start {{ pkt.extract(md); pkt.advance(PORT_METADATA_SIZE); pkt.extract(hdr.h); {parser} }}
}}
control I(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t md,
          in ingress_intrinsic_metadata_from_parser_t p, inout ingress_intrinsic_metadata_for_deparser_t d,
          inout ingress_intrinsic_metadata_for_tm_t tm) {{
{locals}
    apply {{
{apply}
    }}
}}
control ID(packet_out pkt, inout headers_t hdr, in meta_t meta, in ingress_intrinsic_metadata_for_deparser_t d) {{
    apply {{ pkt.emit(hdr); }}
}}
parser EP(packet_in pkt, out headers_t hdr, out meta_t meta, out egress_intrinsic_metadata_t md) {{
    state start {{ pkt.extract(md); transition accept; }}
}}
control E(inout headers_t hdr, inout meta_t meta, in egress_intrinsic_metadata_t md,
          in egress_intrinsic_metadata_from_parser_t p, inout egress_intrinsic_metadata_for_deparser_t d,
          inout egress_intrinsic_metadata_for_output_port_t o) {{ apply {{ }} }}
control ED(packet_out pkt, inout headers_t hdr, in meta_t meta, in egress_intrinsic_metadata_for_deparser_t d) {{
    apply {{ }}
}}
Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;
"
    )
}

fn report_of(text: &str, chip: Chip) -> (Report, Vec<String>) {
    let files = Files::new().with("t.p4", text);
    let compiled = p4lang::compile(&files, "t.p4", &Options::default())
        .unwrap_or_else(|errors| panic!("{errors}"));
    let report = analyse(&compiled.program, chip).expect("a TNA program");
    let source = &compiled.program.source;
    let faults = report
        .faults
        .iter()
        .map(|f| {
            let line = source
                .line_text(source.line_index(f.span.start))
                .trim()
                .to_owned();
            format!("{line} | {}", f.message)
        })
        .collect();
    (report, faults)
}

fn report(locals: &str, apply: &str) -> (Report, Vec<String>) {
    report_of(&program(locals, apply, "transition accept;"), Chip::Tofino)
}

#[track_caller]
fn used(report: &Report, name: &str) -> u64 {
    report.pipes[0]
        .items
        .iter()
        .find(|i| i.name == name)
        .unwrap_or_else(|| panic!("no {name}"))
        .used
}

fn depth(locals: &str, apply: &str) -> u64 {
    used(&report(locals, apply).0, "dependency depth, ingress")
}

/// A register of `ty` and one RegisterAction.
fn register(ty: &str, body: &str) -> String {
    format!(
        "Register<{ty}, bit<16>>(1024) r;
RegisterAction<{ty}, bit<16>, bit<32>>(r) act = {{
    void apply(inout {ty} v, out bit<32> out_) {{
{body}
    }}
}};"
    )
}

const EXECUTE: &str = "meta.x = act.execute(hdr.h.s);";

fn register_faults(ty: &str, body: &str) -> Vec<String> {
    report(&register(ty, body), EXECUTE).1
}

#[test]
fn sums_and_tables_take_stages_and_decisions_do_not() {
    assert_eq!(depth("", ""), 0);
    assert_eq!(
        depth("", "meta.x = hdr.h.a; meta.y = meta.x;"),
        0,
        "copies are propagated"
    );
    assert_eq!(depth("", "meta.x = hdr.h.a + 1;"), 1);
    assert_eq!(
        depth("", "meta.x = hdr.h.a + 1; meta.y = meta.x + hdr.h.b;"),
        2
    );
    assert_eq!(
        depth("", "meta.x = hdr.h.a + 1; meta.y = hdr.h.b + 1;"),
        1,
        "side by side"
    );
    assert_eq!(
        depth(
            "",
            "if (hdr.h.a == hdr.h.b) { meta.f = 1; } if (meta.f == 1) { hdr.h.k = 1; }"
        ),
        1
    );
    assert_eq!(
        depth("", "if (hdr.h.a > hdr.h.b) { hdr.h.k = 1; }"),
        2,
        "a comparison of two fields is a subtraction"
    );
    assert_eq!(depth("", "if (hdr.h.a > 5) { hdr.h.k = 1; }"), 1);
}

#[test]
fn a_match_waits_for_its_key_and_a_successor_does_not_wait() {
    let tables = "action set_x(bit<32> v) { meta.x = v; } action set_y(bit<32> v) { meta.y = v; }
        table t1 { key = { hdr.h.a: exact; } actions = { set_x; NoAction; } size = 64; }
        table t2 { key = { meta.x: exact; } actions = { set_y; NoAction; } size = 64; }
        table t3 { key = { hdr.h.b: exact; } actions = { set_y; NoAction; } size = 64; }";
    assert_eq!(
        depth(tables, "t1.apply(); t2.apply();"),
        2,
        "match dependency"
    );
    assert_eq!(depth(tables, "t1.apply(); t3.apply();"), 1);
    assert_eq!(
        depth(tables, "if (t1.apply().hit) { t3.apply(); }"),
        1,
        "successor dependency"
    );
    assert_eq!(
        depth(tables, "t1.apply(); meta.z = meta.x + 1;"),
        2,
        "action dependency"
    );
    assert_eq!(depth(tables, "t2.apply(); meta.z = meta.x + meta.y;"), 2);
}

#[test]
fn a_register_sits_in_one_stage_wherever_it_is_called_from() {
    let r = register("bit<32>", "v = v + 1; out_ = v;");
    assert_eq!(depth(&r, EXECUTE), 1);
    let both = "if (hdr.h.k == 0) { meta.x = act.execute(hdr.h.s); meta.z = meta.x + 1; }
        else { bit<16> i = hdr.h.s + 1; meta.x = act.execute(i); }";
    assert_eq!(
        depth(&r, both),
        3,
        "the first call waits for the second's index"
    );
}

#[test]
fn too_deep_a_program_is_an_error_with_its_line() {
    let chain = "meta.x = meta.x + hdr.h.a;\n".repeat(13);
    let (found, faults) = report("", &chain);
    assert_eq!(found.pipes[0].stages, 13);
    assert_eq!(found.pipes[0].passes, 2);
    assert_eq!(
        faults,
        [
            "meta.x = meta.x + hdr.h.a; | dependency depth, ingress: the program needs at least 13 of the 12 in a pipe of tofino"
        ]
    );
    let text = program("", &chain, "transition accept;");
    assert_eq!(report_of(&text, Chip::Tofino2).1, Vec::<String>::new());
}

#[test]
fn memories() {
    let (found, _) = report(
        &register("bit<32>", "out_ = v;").replace("1024", "16384"),
        EXECUTE,
    );
    assert_eq!(
        used(&found, "SRAM blocks"),
        5,
        "16,384 words of 32 bits, and a spare block"
    );
    assert_eq!(used(&found, "map RAMs"), 5);
    assert_eq!(used(&found, "stateful ALUs"), 1);
    assert_eq!(used(&found, "logical tables"), 1);
    let table = "action set(bit<32> v) { meta.x = v; }
        table t { key = { hdr.h.a: ternary; hdr.h.b: ternary; } actions = { set; NoAction; } size = 1024; }
        table e { key = { hdr.h.a: exact; } actions = { NoAction; } size = 65536; }";
    let (found, _) = report(table, "t.apply(); e.apply();");
    assert_eq!(
        used(&found, "TCAM blocks"),
        4,
        "64 bits are two blocks of 44, 1,024 entries two of 512"
    );
    assert_eq!(used(&found, "ternary tables"), 1);
    assert_eq!(used(&found, "logical tables"), 2);
    assert_eq!(used(&found, "ternary crossbar bytes"), 8);
    assert_eq!(used(&found, "exact crossbar bytes"), 4);
    assert_eq!(
        used(&found, "SRAM blocks"),
        1 + 13,
        "65,536 entries of 22 bits and 4 of version"
    );
}

#[test]
fn more_registers_than_stateful_alus() {
    let registers: String = (0..49)
        .map(|n| {
            register("bit<32>", "out_ = v;")
                .replace(" r;", &format!(" r{n};"))
                .replace("(r) act", &format!("(r{n}) act{n}"))
        })
        .collect();
    let calls: String = (0..49)
        .map(|n| format!("meta.x = act{n}.execute(hdr.h.s);\n"))
        .collect();
    let (found, faults) = report(&registers, &calls);
    assert_eq!(used(&found, "stateful ALUs"), 49);
    assert_eq!(found.pipes[0].stages_by_resources, 13);
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(
        faults[0].contains("stateful ALUs: the program needs at least 49 of the 48"),
        "{faults:?}"
    );
}

#[test]
fn registers_that_wait_pack_behind_what_they_wait_for() {
    let registers: String = (0..8)
        .map(|n| {
            register("bit<32>", "out_ = v;")
                .replace(" r;", &format!(" r{n};"))
                .replace("(r) act", &format!("(r{n}) act{n}"))
        })
        .collect();
    let calls: String = (0..8)
        .map(|n| format!("meta.x = act{n}.execute(i);\n"))
        .collect();
    let (found, _) = report(&registers, &format!("bit<16> i = hdr.h.s + 1;\n{calls}"));
    assert_eq!(found.pipes[0].stages_by_resources, 2);
    assert_eq!(found.pipes[0].stages, 3);
}

#[test]
fn one_execution_per_path() {
    let r = register("bit<32>", "v = v + 1; out_ = v;");
    let two = format!("{EXECUTE}\nmeta.y = act.execute(hdr.h.s);");
    let faults = report(&r, &two).1;
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(
        faults[0].starts_with("meta.y = act.execute(hdr.h.s); | `I.r` is executed a second time"),
        "{faults:?}"
    );
    let either = "if (hdr.h.k == 1) { meta.x = act.execute(hdr.h.s); } else { meta.y = act.execute(hdr.h.s); }";
    assert_eq!(report(&r, either).1, Vec::<String>::new());
}

#[test]
fn what_a_cell_may_be() {
    assert_eq!(
        register_faults("bit<32>", "out_ = v;"),
        Vec::<String>::new()
    );
    let faults = register_faults("bit<24>", "out_ = 0;");
    assert!(
        faults[0].contains("a register's cell is bit<1>, or one or two words"),
        "{faults:?}"
    );
    assert_eq!(
        register_faults("bit<8>", "v = v + 1; out_ = 0;"),
        Vec::<String>::new()
    );
    let flip = register_faults("bit<1>", "v = ~v; out_ = 0;");
    assert!(
        flip[0].starts_with("v = ~v; out_ = 0; | a one-bit cell can only be set, cleared and read"),
        "{flip:?}"
    );
    assert_eq!(
        register_faults("bit<1>", "v = 1; out_ = 0;"),
        Vec::<String>::new()
    );
}

#[test]
fn comparators() {
    let two = "if (v == 0 || v > hdr.h.a) { v = 1; } else { v = v + 1; } out_ = v;";
    assert_eq!(register_faults("bit<32>", two), Vec::<String>::new());
    let three = "if (v == 0 || v > hdr.h.a || v == 7) { v = 1; } out_ = v;";
    assert!(
        register_faults("bit<32>", three)[0].contains("makes 3 comparisons: a stateful ALU has 2")
    );
    let same = "if (v == 0 || v > hdr.h.a || v <= hdr.h.a) { v = 1; } out_ = v;";
    assert_eq!(
        register_faults("bit<32>", same),
        Vec::<String>::new(),
        "a comparison and its opposite are one"
    );
}

#[test]
fn computations() {
    let twice = register_faults("bit<32>", "v = v + hdr.h.a;\nv = v | hdr.h.b;\nout_ = v;");
    assert_eq!(twice.len(), 1, "{twice:?}");
    assert!(
        twice[0].starts_with("v = v | hdr.h.b; | this uses a word that"),
        "{twice:?}"
    );
    let three = "if (hdr.h.a == 0) { v = v + 1; } else if (hdr.h.a == 1) { v = v + 2; } else { v = v + 3; } out_ = v;";
    assert!(register_faults("bit<32>", three)[0].contains("2 instructions per word"));
    let product = register_faults("bit<32>", "v = v * hdr.h.a; out_ = v;");
    assert!(
        product[0].contains("not support multiplication"),
        "{product:?}"
    );
    let inputs = register_faults(
        "bit<32>",
        "if (v == hdr.h.a) { v = hdr.h.b; } else { v = hdr.h.c; } out_ = v;",
    );
    assert!(
        inputs[0].contains("reads 3 fields of the packet: a stateful ALU takes 2"),
        "{inputs:?}"
    );
}

#[test]
fn constants_and_actions() {
    let actions = |constants: &[i32]| -> (String, String) {
        let texts = constants.iter().enumerate().map(|(n, c)| {
            format!(
                "RegisterAction<bit<32>, bit<16>, bit<32>>(r) a{n} = {{ void apply(inout bit<32> v, out bit<32> o) {{
                    if (v == {c}) {{ v = v + {}; }} o = v; }} }};\n",
                c + 1000
            )
        });
        let calls = (0..constants.len())
            .map(|n| format!("if (hdr.h.k == {n}) {{ meta.x = a{n}.execute(hdr.h.s); }} else "));
        let locals: String = texts.collect();
        let calls: String = calls.collect();
        (
            format!("Register<bit<32>, bit<16>>(16) r;\n{locals}"),
            format!("{calls} {{ }}"),
        )
    };
    let faults = |constants: &[i32]| {
        let (locals, apply) = actions(constants);
        report(&locals, &apply).1
    };
    assert_eq!(faults(&[100, 200]), Vec::<String>::new());
    let five = faults(&[100, 200, 300]);
    assert!(
        five[0].contains("have 6 constants outside -8..7: a stateful ALU holds 4"),
        "{five:?}"
    );
    assert_eq!(faults(&[1, 2, -1000, -1000]), Vec::<String>::new());
    let many = faults(&[7, 7, 7, 7, 7]);
    assert!(
        many.iter()
            .any(|f| f.contains("has 5 RegisterActions: a stateful ALU holds 4")),
        "{many:?}"
    );
}

#[test]
fn outputs() {
    let pair = "struct pair_t { bit<32> lo; bit<32> hi; }\n";
    let text = |body: &str| {
        let locals = register("pair_t", body);
        format!(
            "{}{}",
            "",
            program(&locals, EXECUTE, "transition accept;")
                .replace("header wide_t", &format!("{pair}header wide_t"))
        )
    };
    let written = text("v.hi = hdr.h.a - v.lo; v.lo = hdr.h.a; out_ = v.hi;");
    assert_eq!(report_of(&written, Chip::Tofino).1, Vec::<String>::new());
    let computed = text("v.lo = hdr.h.a; v.hi = hdr.h.b;\nout_ = v.lo + v.hi;");
    let faults = report_of(&computed, Chip::Tofino).1;
    assert!(
        faults[0].starts_with("out_ = v.lo + v.hi; | a RegisterAction on a pair can return"),
        "{faults:?}"
    );
}

#[test]
fn parsers_and_containers() {
    let cases: String = (0..260).map(|n| format!("{n}: accept;\n")).collect();
    let text = program(
        "",
        "",
        &format!("transition select(hdr.h.s) {{ {cases} default: reject; }}"),
    );
    let (found, faults) = report_of(&text, Chip::Tofino);
    assert_eq!(used(&found, "parser rows, ingress"), 261);
    assert!(
        faults[0].contains("parser rows, ingress: the program needs at least 261 of the 256"),
        "{faults:?}"
    );
    let wide: String = (0..6).map(|n| format!("pkt.extract(hdr.w{n});")).collect();
    let (found, faults) = report_of(
        &program("", "", &format!("{wide} transition accept;")),
        Chip::Tofino,
    );
    assert!(used(&found, "PHV bits") > 6144);
    assert!(
        faults[0].contains("PHV bits: the program needs at least"),
        "{faults:?}"
    );
}

#[test]
fn hashes_are_operands() {
    let hash = "Hash<bit<32>>(HashAlgorithm_t.CRC32) h; Hash<bit<32>>(HashAlgorithm_t.CRC32) g;";
    assert_eq!(depth(hash, "meta.x = hdr.h.a + h.get({ hdr.h.b });"), 1);
    assert_eq!(
        depth(
            hash,
            "meta.x = h.get({ hdr.h.b }); meta.y = hdr.h.c + g.get({ meta.x });"
        ),
        2
    );
    let (found, _) = report(hash, "hdr.h.a = h.get({ hdr.h.b, hdr.h.c });");
    assert_eq!(used(&found, "hash distribution units"), 2);
    assert_eq!(used(&found, "exact crossbar bytes"), 8);
}

/// bf-p4c places such programs with less hash distribution and smaller crossbars than a naive count needs.
#[test]
fn what_needs_no_distribution() {
    let buses = |locals: &str, apply: &str| {
        let (found, faults) = report(locals, apply);
        assert_eq!(faults, Vec::<String>::new());
        ["hash distribution units", "exact crossbar bytes"].map(|name| used(&found, name))
    };
    let r = register("bit<32>", "v = v + 1; out_ = v;");
    let table = |of: &str| {
        format!(
            "{r} action run(bit<16> cell) {{ meta.x = act.execute({of}); }}
             table t {{ key = {{ hdr.h.k: exact; }} actions = {{ run; NoAction; }} }}"
        )
    };
    assert_eq!(buses(&table("hdr.h.s"), "t.apply();"), [1, 3]);
    assert_eq!(
        buses(&table("cell"), "t.apply();"),
        [0, 1],
        "an entry's own index"
    );
    let hash = "Hash<bit<32>>(HashAlgorithm_t.CRC32) h;
        table k { key = { meta.x: exact; } actions = { NoAction; } }";
    let hashed = "meta.x = h.get({ hdr.h.b, hdr.h.c });";
    assert_eq!(buses(hash, hashed), [0, 0], "nobody reads it");
    assert_eq!(
        buses(hash, &format!("{hashed} k.apply();")),
        [0, 4],
        "only a key"
    );
    let both = format!("{hashed} k.apply(); hdr.h.a = meta.x;");
    assert_eq!(buses(hash, &both), [2, 12]);
    let cell = format!("{hash} {r}");
    let index = "meta.x = h.get({ hdr.h.b }); meta.y = act.execute(meta.x[15:0]);";
    assert_eq!(
        buses(&cell, index),
        [2, 4],
        "a hash goes to its register by one way"
    );
}

#[test]
fn tables_that_an_algorithm_or_a_profile_holds() {
    let found = |property: &str| {
        let locals = format!(
            "ActionProfile(64) profile;
             action set(bit<32> v, bit<32> w) {{ meta.x = v; meta.y = w; }}
             table t {{
                 key = {{ hdr.h.a: lpm; hdr.h.b: ternary; }} actions = {{ set; NoAction; }}
                 size = 16384; {property}
             }}"
        );
        let found = report(&locals, "t.apply(); hdr.h.c = meta.x; hdr.h.d = meta.y;").0;
        [
            "SRAM blocks",
            "TCAM blocks",
            "ternary tables",
            "ternary crossbar bytes",
        ]
        .map(|name| used(&found, name))
    };
    assert_eq!(found(""), [9, 64, 1, 8]);
    assert_eq!(found("implementation = profile;"), [1, 64, 1, 8]);
    assert_eq!(
        found("alpm = Alpm(number_partitions = 1024);"),
        [1, 0, 0, 0]
    );
    assert_eq!(
        found("atcam = Atcam(number_partitions = 1024);"),
        [1, 0, 0, 0]
    );
}

#[test]
fn a_word_that_stays_takes_no_instruction() {
    let body = |then: &str| {
        format!(
            "if (hdr.h.a == 0) {{ v = v + 1; }} else if (hdr.h.a == 1) {{ v = v + 2; }} else {{ {then} }} out_ = v;"
        )
    };
    assert_eq!(
        register_faults("bit<32>", &body("v = v;")),
        Vec::<String>::new()
    );
    assert_eq!(register_faults("bit<32>", &body("v = hdr.h.b;")).len(), 1);
}

#[test]
fn counters() {
    let (found, _) = report(
        "Counter<bit<64>, bit<8>>(256, CounterType_t.PACKETS) c;",
        "c.count(hdr.h.k);",
    );
    assert_eq!(used(&found, "statistics ALUs"), 1);
    assert_eq!(used(&found, "SRAM blocks"), 2);
}

#[test]
fn other_architectures_are_refused() {
    let text = "#include <core.p4>\nparser P(); control C();\npackage Top(C c);\ncontrol D() { apply { } }\nTop(D()) main;\n";
    let files = Files::new().with("t.p4", text);
    let compiled = p4lang::compile(&files, "t.p4", &Options::default())
        .unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(
        analyse(&compiled.program, Chip::Tofino).unwrap_err(),
        NotTofino::Architecture
    );
}

#[test]
fn a_queue_is_executed_once_and_its_address_is_no_execution() {
    let text = |apply: &str| {
        let queue = "Register<bit<32>, _>(64) r;
            @chain_address RegisterAction<bit<32>, _, bit<32>>(r) take = {
                void apply(inout bit<32> v, out bit<32> rv) { rv = v; }
            };";
        program(queue, apply, "transition accept;").replace("tna.p4", "t2na.p4")
    };
    let faults = |apply: &str| report_of(&text(apply), Chip::Tofino2).1;
    assert_eq!(
        faults("meta.x = take.dequeue(); meta.y = take.address();"),
        [""; 0]
    );
    let twice = faults("meta.x = take.dequeue(); meta.y = take.dequeue();");
    assert!(
        twice.iter().any(|f| f.contains("a second time")),
        "{twice:?}"
    );
}

#[test]
fn arms_of_a_chain_exclude_each_other_however_many() {
    let arms = |count: usize| -> String {
        let arm = |n| format!("if (hdr.h.a == {n}) {{ meta.x = hdr.h.b + {n}; }} else ");
        (0..count).map(arm).collect()
    };
    // One instruction deep; the instruction that reads the result takes one more stage.
    let behind = "{ meta.x = 0; } meta.y = meta.x + 1; hdr.h.c = meta.y;";
    let (few, faults) = report("", &(arms(3) + behind));
    assert!(faults.is_empty(), "{faults:?}");
    let text = program("", &(arms(3000) + behind), "transition accept;");
    let ((many, faults), cost) =
        test_support::cost::measure(move || report_of(&text, Chip::Tofino));
    println!("{cost}");
    cost.assert_small();
    assert!(faults.is_empty(), "{faults:?}");
    let name = "dependency depth, ingress";
    assert_eq!(used(&many, name), used(&few, name));
}

#[test]
fn a_condition_sees_what_those_before_it_call() {
    let locals = "action set(bit<32> v) { meta.x = v; }
        table t { key = { hdr.h.a: exact; } actions = { set; } }
        table u { key = { meta.x: exact; } actions = { set; } }";
    // `u` matches on a value that `t` writes; the first arm runs if `u` is not applied.
    let depth = |apply: &str| used(&report(locals, apply).0, "dependency depth, ingress");
    let nested = "if (t.apply().hit) { hdr.h.b = meta.x; } else { if (u.apply().hit) { hdr.h.c = meta.x; } }";
    let chain =
        "if (t.apply().hit) { hdr.h.b = meta.x; } else if (u.apply().hit) { hdr.h.c = meta.x; }";
    assert_eq!(depth(chain), depth(nested));
    assert!(depth(chain) > depth("if (t.apply().hit) { hdr.h.b = meta.x; }"));
}

#[test]
fn operators_in_a_hash_take_no_stage() {
    for (apply, stages) in [
        ("meta.x = hdr.h.a ^ hdr.h.b ^ hdr.h.c;", 2),
        ("@in_hash { meta.x = hdr.h.a ^ hdr.h.b ^ hdr.h.c; }", 0),
        (
            "@in_hash { meta.x = (hdr.h.a >> 3) ^ hdr.h.b; } meta.y = meta.x + hdr.h.c;",
            1,
        ),
        ("mix();", 0),
        ("t.apply(); meta.y = meta.x + 1;", 1),
        // The inputs of the block must be known; operators after the block are not the hash unit's.
        (
            "meta.z = hdr.h.a + hdr.h.b; @in_hash { meta.x = meta.z ^ hdr.h.c; }",
            1,
        ),
        (
            "@in_hash { meta.x = hdr.h.a ^ hdr.h.b; } meta.y = hdr.h.a ^ hdr.h.b ^ hdr.h.c;",
            2,
        ),
    ] {
        let locals = "action mix() { @in_hash { meta.x = hdr.h.a ^ hdr.h.b ^ hdr.h.d; } }
            table t { key = { hdr.h.k: exact; } actions = { mix; } }";
        assert_eq!(depth(locals, apply), stages, "{apply}");
    }
}

/// States with a direct transition can be merged with their neighbors: only choices and further extracted bytes take rows.
#[test]
fn parser_states_without_a_choice_take_no_row() {
    let chain = |n: usize, body: &str| {
        let states: String = (0..n)
            .map(|i| format!("state s{i} {{ {body} transition s{}; }}\n", i + 1))
            .collect();
        format!("transition s0; }} {states} state s{n} {{ transition accept;")
    };
    let rows = |parser: &str, chip: Chip| {
        let (found, faults) = report_of(&program("", "", parser), chip);
        assert_eq!(faults, [""; 0]);
        used(&found, "parser rows, ingress")
    };
    assert_eq!(rows("transition accept;", Chip::Tofino), 1);
    assert_eq!(rows(&chain(300, ""), Chip::Tofino), 1);
    assert_eq!(rows(&chain(300, "pkt.advance(8);"), Chip::Tofino), 1);
    let choice = "transition select(hdr.h.k) { 1: s0; 2: s1; default: accept; }
        } state s0 { transition s1; } state s1 { transition accept;";
    assert_eq!(rows(choice, Chip::Tofino), 3);
    // 128 bytes are more than one row extracts.
    let wide = chain(1, "pkt.extract(hdr.w0);");
    assert!(rows(&wide, Chip::Tofino) > 1);
}
