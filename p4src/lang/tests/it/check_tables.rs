//! Tables: names, keys, bound arguments, entries and their priorities.

use crate::check_support::{Text, control, control_errors, lower, named};
use p4lang::ir::{Arg, Const, Table};

fn table(locals: &str) -> (p4lang::ir::Program, Table) {
    let p = lower(&control(locals, "t.apply();"));
    let t = named(&p, "C").tables[0].clone();
    (p, t)
}

#[test]
fn keys_are_named_as_written() {
    let (_, t) = table(
        "table t {
             key = {
                 meta.a : exact;
                 hdr.eth.isValid() : exact;
                 hdr.eth.dst[7:0] : ternary;
                 hdr.tags[1].id : lpm;
                 meta.w & 0xff : exact @name(\"low\");
             }
             actions = { NoAction; }
         }",
    );
    let names: Vec<&str> = t.key.iter().map(|k| k.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "meta.a",
            "hdr.eth.$valid$",
            "hdr.eth.dst[7:0]",
            "hdr.tags[1].id",
            "low"
        ]
    );
    let kinds: Vec<&str> = t.key.iter().map(|k| k.match_kind.as_str()).collect();
    assert_eq!(kinds, ["exact", "exact", "ternary", "lpm", "exact"]);
}

#[test]
fn a_fields_own_name_counts() {
    let text = control(
        "bit<8> x; outer_t o; table t { key = { o.inner.v : exact; o.plain : exact; o.hdr.isValid() : exact; } actions = { NoAction; } }",
        "t.apply();",
    )
    .replace(
        "control C(",
        "struct inner_t { @name(\"V\") bit<8> v; }
         struct outer_t { @name(\".top\") inner_t inner; bit<8> plain; @name(\".eth\") eth_t hdr; }
         control C(",
    );
    let p = lower(&text);
    let names: Vec<&str> = named(&p, "C").tables[0]
        .key
        .iter()
        .map(|k| k.name.as_str())
        .collect();
    assert_eq!(names, ["top.V", "o.plain", "eth.$valid$"]);
}

#[test]
fn actions_defaults_and_properties() {
    let (p, t) = table(
        "action set(inout bit<8> where, bit<8> to) { where = to; }
         @name(\"renamed\") action other() {}
         action hidden() {}
         table t {
             key = { meta.a : exact; }
             actions = { set(meta.b); other; @defaultonly hidden; }
             size = 4 * 256;
             const default_action = set(meta.b, 7);
             idle = true;
         }",
    );
    let c = named(&p, "C");
    let offered: Vec<&str> = t
        .actions
        .iter()
        .map(|a| c.actions[a.action.index()].name.as_str())
        .collect();
    assert_eq!(offered, ["C.set", "C.renamed", "C.hidden"]);
    let text = Text::of(&p, &c.vars);
    match &t.actions[0].args[..] {
        [Arg::InOut(lv)] => assert_eq!(text.place(lv), "meta.b"),
        other => panic!("{other:?}"),
    }
    assert_eq!(t.actions[2].annotations[0].name, "defaultonly");
    assert_eq!(t.name, "C.t");
    assert_eq!(t.size, Some(1024));
    assert!(t.const_default);
    assert_eq!(t.default_action.action, Some(0));
    assert_eq!(text.constant(&t.default_action.args[0]), "8w7");
    assert_eq!(t.properties, [("idle".to_owned(), Const::Bool(true))]);
}

#[test]
fn a_table_without_default_runs_no_action() {
    let (_, t) = table("action a() {} table t { actions = { a; } }");
    assert_eq!(t.default_action.action, None);
    let (_, t) = table("action a() {} table t { actions = { a; } default_action = NoAction(); }");
    assert_eq!(t.default_action.action, None);
    let (_, t) =
        table("action a() {} table t { actions = { a; NoAction; } default_action = NoAction; }");
    assert_eq!(t.default_action.action, Some(1));
}

#[test]
fn top_level_actions_are_copied_under_their_own_name() {
    let text = control(
        "table t { actions = { set_a; NoAction; } default_action = set_a(3); } action local() { set_a(4); }",
        "t.apply(); local();",
    )
    .replace(
        "struct headers_t",
        "header pad_t { bit<8> x; } struct headers_t",
    )
    .replace(
        "control C(",
        "action set_a(bit<8> v) { bit<8> x = v; x = x + 1; } control C(",
    );
    let p = lower(&text);
    let c = named(&p, "C");
    let names: Vec<&str> = c.actions.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["set_a", "NoAction", "C.local"]);
}

fn priorities(locals: &str) -> Vec<i32> {
    let (_, t) = table(locals);
    t.entries.iter().map(|e| e.priority).collect()
}

#[test]
fn priorities_follow_the_order() {
    let make = |kind: &str, rest: &str| {
        format!(
            "action a(bit<8> x) {{}}
             table t {{ key = {{ meta.a : {kind}; }} actions = {{ a; }} {rest} }}"
        )
    };
    assert_eq!(
        priorities(&make(
            "ternary",
            "const entries = { 1 &&& 3 : a(1); _ : a(2); 5 : a(3); }"
        )),
        [3, 2, 1]
    );
    assert_eq!(
        priorities(&make("exact", "const entries = { 1 : a(1); 2 : a(2); }")),
        [0, 0]
    );
    assert_eq!(
        priorities(&make(
            "ternary",
            "largest_priority_wins = false; entries = { priority = 10: 1 : a(1); priority = 20: 2 : a(2); 3: a(3); }"
        )),
        [12, 2, 1]
    );
    assert_eq!(
        priorities(&make(
            "range",
            "priority_delta = 10; entries = { 1 .. 3 : a(1); const 4 : a(2); _ : a(3); }"
        )),
        [21, 11, 1]
    );
}

#[test]
fn entries_are_constants_of_the_keys_width() {
    let (p, t) = table(
        "const bit<8> K = 4;
         action a(bit<8> x) {}
         table t {
             key = { meta.a : exact; meta.w : lpm; meta.f : exact; }
             actions = { a; }
             const entries = {
                 (K + 1, 0x0a00 &&& 0xff00, true) : a(9);
                 (2, _, false) : a(x = 1);
             }
         }",
    );
    assert!(t.const_entries);
    let text = Text::of(&p, &[]);
    let keys: Vec<Vec<String>> = t
        .entries
        .iter()
        .map(|e| e.keys.iter().map(|k| text.keyset(k)).collect())
        .collect();
    assert_eq!(keys[0], ["8w5", "16w2560 &&& 16w65280", "true"]);
    assert_eq!(keys[1], ["8w2", "_", "false"]);
    assert_eq!(text.constant(&t.entries[1].action.args[0]), "8w1");
}

#[test]
fn faults_in_tables() {
    let faults = control_errors(
        "action a(bit<8> x) {}
         table t1 { key = { meta.a : exac; } actions = { a; } }
         table t2 { actions = { missing; } }
         table t3 { actions = { a; a; } }
         table t4 { actions = { NoAction; } default_action = a(1); }
         table t5 { key = { meta.a : exact; } actions = { a; } const entries = { meta.b : a(1); } }
         table t6 { key = { meta.a : lpm; } actions = { a; } const entries = { 1 &&& 5 : a(1); } }
         table t7 { key = { meta.a : exact; } actions = { a; } const entries = { (1, 2) : a(1); } }
         table t8 { key = { hdr.eth : exact; } actions = { a; } }
         table t9 { key = { meta.a : exact; } }
         table t10 { actions = { NoAction; } size = meta.a; }
         action two(inout bit<8> v, bit<8> x) {}
         table t12 { key = { meta.a + 1 : exact; } actions = { NoAction; } }
         table t13 { actions = { NoAction; } entries = { _ : NoAction; } }
         table t14 { actions = { two(meta.a); } default_action = two(meta.b, 1); }
         table t15 { actions = { two(meta.a); } default_action = two(meta.a, 1); }
         @name(\"t15\") table t16 { actions = { NoAction; } }
         table t11 { actions = { a; } default_action = a(); size = 1; size = 2; }",
        "t15.apply(); t16.apply();",
    );
    insta::assert_snapshot!(faults.join("\n"));
}

/// 14.2.1.4.1: priorities below 0 are invalid.
#[test]
fn priorities_do_not_count_below_zero() {
    let entries = |entries: &str| {
        format!(
            "table t {{ key = {{ meta.a : ternary; }} actions = {{ NoAction; }} entries = {{ {entries} }} }}"
        )
    };
    let two = entries("priority = 1: 1 : NoAction; 2 : NoAction;");
    assert_eq!(control_errors(&two, ""), [""; 0]);
    let three = entries("priority = 1: 1 : NoAction; 2 : NoAction; 3 : NoAction;");
    let found = control_errors(&three, "");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("the priority of this entry is -1"),
        "{found:?}"
    );
}

/// 14.2.1.4.1: priorities that are legal, but may be unintended.
#[test]
fn odd_priorities_are_warned_of() {
    let warnings = |before: &str, entries: &str| {
        let table = format!(
            "table t {{ key = {{ meta.a : ternary; }} actions = {{ NoAction; }} {before} entries = {{ {entries} }} }}"
        );
        let files = p4lang::Files::new().with("test.p4", control(&table, "t.apply();"));
        let compiled = p4lang::compile(&files, "test.p4", &p4lang::Options::default());
        let warnings = compiled.expect("a program").warnings;
        let said = warnings.list.iter().map(|w| w.message.clone());
        said.filter(|m| m.contains("entry")).collect::<Vec<_>>()
    };
    let equal = "priority = 2: 1 : NoAction; priority = 2: 2 : NoAction;";
    let rising = "priority = 1: 1 : NoAction; priority = 2: 2 : NoAction;";
    let falling = "priority = 2: 1 : NoAction; priority = 1: 2 : NoAction;";
    let smallest = "largest_priority_wins = false;";
    let twice = ["another entry also has priority 2"];
    let order = ["this entry takes precedence over the one before it"];
    assert_eq!(warnings("", equal), twice);
    assert_eq!(warnings("", rising), order);
    assert_eq!(warnings(smallest, falling), order);
    for (before, entries) in [
        ("@noWarn(\"duplicate_priorities\")", equal),
        ("@noWarn(\"entries_out_of_priority_order\")", rising),
        ("", falling),
        (smallest, rising),
    ] {
        assert_eq!(warnings(before, entries), [""; 0], "{before} {entries}");
    }
}

#[test]
fn two_entries_of_one_exact_key_are_an_error() {
    let entries = |kind: &str, entries: &str| {
        let table = format!(
            "table t {{ key = {{ meta.a : {kind}; meta.b : exact; }} actions = {{ NoAction; }} const entries = {{ {entries} }} }}"
        );
        control_errors(&table, "")
    };
    let twice = "(1, 2) : NoAction; (1, 3) : NoAction; (0x1, 2) : NoAction;";
    let found = entries("exact", twice);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("another entry has this key"), "{found:?}");
    // The first entry wins.
    assert_eq!(entries("ternary", twice), [""; 0]);
}
