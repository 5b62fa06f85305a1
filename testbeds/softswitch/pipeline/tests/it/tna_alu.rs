//! Stateful ALUs of Tofino 2: clearing, predicates, rows of narrow cells, and refused uses.

use crate::support::one;
use crate::support::program::Dice;
use crate::support::tna::{TNA, Tna, words};
use p4lang::runtime::Value;
use pipeline::Switch;

/// An operation and its data in, the same byte and 16 bytes out.
const IN_OUT: Tna<'static> = Tna {
    include: "t2na.p4",
    decls: "header in_h { bit<8> op; bit<32> v; } header out_h { bit<32> x; bit<32> y; }
            struct pair_t { bit<32> a; bit<32> b; } struct wide_t { bit<64> a; bit<64> b; }",
    headers: "in_h i; out_h o;",
    meta: "bit<32> at;",
    parser: "state go { pkt.extract(hdr.i); hdr.o.setValid(); meta.at = 0; transition accept; }",
    deparser: "pkt.emit(hdr.o);",
    ..TNA
};

fn running(locals: &str, ingress: &str) -> Switch {
    IN_OUT.running(locals, ingress)
}

fn refused(locals: &str, ingress: &str) -> String {
    let program = Tna {
        locals,
        ingress,
        ..IN_OUT
    };
    program.refused().to_string()
}

/// x and y of the packet that leaves.
fn out(switch: &mut Switch, op: u8, v: u32) -> (u32, u32) {
    let mut packet = vec![op];
    packet.extend(v.to_be_bytes());
    words(&one(switch, &packet))
}

#[test]
fn clearing_reaches_every_cell() {
    let locals = "
        Register<pair_t, bit<32>>(6, {1, 2}) r;
        RegisterAction<pair_t, bit<32>, bit<32>>(r) add = {
            void apply(inout pair_t p, out bit<32> rv, out bit<32> rv2) { p.a = p.a + hdr.i.v; rv = p.a; rv2 = p.b; }
        };
";
    let ingress = "
        if (hdr.i.op < 6) { hdr.o.x = add.execute((bit<32>) hdr.i.op, hdr.o.y); }
        else { r.clear({hdr.i.v, 5}); }";
    let mut switch = running(locals, ingress);
    let all = |switch: &Switch| -> Vec<Value> {
        let cell = |i| switch.register_read("I.r", i).expect("a cell");
        (0..6).flat_map(cell).collect()
    };
    let values = |words: &[u128]| -> Vec<Value> { words.iter().map(|w| (*w).into()).collect() };
    assert_eq!(out(&mut switch, 0, 19), (20, 2));
    assert_eq!(out(&mut switch, 5, 20), (21, 2));
    assert_eq!(all(&switch)[..3], values(&[20, 2, 1]));
    assert_eq!(out(&mut switch, 7, 1000), (0, 0));
    assert_eq!(all(&switch), values(&[1000, 5].repeat(6)));
    assert_eq!(out(&mut switch, 3, 1), (1001, 5));
    assert_eq!(switch.stats().register_conflicts, 0);
}

#[test]
fn queues_logs_sweeps_and_digests_are_refused() {
    let locals = "
        Register<bit<32>, _>(5) r;
        RegisterAction<bit<32>, _, bit<32>>(r) put = {
            void apply(inout bit<32> cell, out bit<32> rv) { rv = cell; cell = hdr.i.v; }
        };";
    for (call, method) in [
        ("hdr.o.x = put.enqueue();", "enqueue"),
        ("hdr.o.x = put.pop();", "pop"),
        ("hdr.o.x = put.execute_log();", "execute_log"),
        ("put.sweep();", "sweep"),
    ] {
        let why = refused(locals, call);
        assert!(
            why.contains(&format!("method {method} of a register action")),
            "{why}"
        );
    }
    let digest = "
        Register<wide_t, bit<32>>(8) known;
        LearnAction<wide_t, bit<32>, bit<64>, bit<32>>(known) look = {
            void apply(inout wide_t cell, in bit<64> digest, in bool learn, out bit<32> rv) { rv = 1; }
        };
        action find() { hdr.o.x = look.execute(0); }
        table learned { key = { hdr.i.v : dleft_hash; } actions = { find; } }";
    let why = refused(digest, "learned.apply();");
    assert!(why.contains("LearnAction"), "{why}");
}

#[test]
fn a_predicate_is_of_the_cell_as_it_was_read() {
    let mut switch = running(
        "Register<bit<32>, bit<32>>(1) r;
         RegisterAction<bit<32>, bit<32>, bit<32>>(r) both = {
             void apply(inout bit<32> cell, out bit<32> rv, out bit<32> rv2) {
                 if (cell == 5 || !(cell < hdr.i.v)) { cell = 6; } else if (cell == 5) { cell = 7; } else { cell = 5; }
                 rv = this.predicate();
                 rv2 = this.predicate(cell == 6, cell == 5);
             }
         };",
        "hdr.o.x = both.execute(0, hdr.o.y);",
    );
    assert_eq!(out(&mut switch, 0, 1), (1 << 2, 1), "0 < 1");
    assert_eq!(out(&mut switch, 0, 1), (1 << 1, 1 << 2), "5");
    assert_eq!(out(&mut switch, 0, 7), (1 << 2, 1 << 1), "6 < 7");
    assert_eq!(out(&mut switch, 0, 5), (1 << 1, 1 << 2), "5");
}

/// A row of narrow cells: reports the maximum or minimum and its index, and changes it.
fn extremes(width: u32, method: &str, mask: u64, change: i64) {
    let cells = 128 / width;
    let index_bits = if width == 8 { 4 } else { 3 };
    let locals = format!(
        "Register<bit<{width}>, bit<32>>({}) r;
         RegisterAction<bit<{width}>, bit<32>, bit<32>>(r) put = {{
             void apply(inout bit<{width}> cell) {{ cell = hdr.i.v[{}:0]; }}
         }};
         MinMaxAction2<bit<{width}>, bit<32>, bit<{width}>, bit<{index_bits}>>(r) found = {{
             void apply(inout bit<128> row, out bit<{width}> rv, out bit<{index_bits}> rv2) {{
                 rv2 = 0;
                 rv = this.{method}(row, {mask}, rv2, {change});
             }}
         }};",
        2 * cells,
        width - 1,
    );
    let ingress = format!(
        "if (hdr.i.op < 32) {{ put.execute((bit<32>) hdr.i.op); }}
         else {{
             bit<{width}> x; bit<{index_bits}> y;
             x = found.execute((bit<32>) hdr.i.op[0:0], y);
             hdr.o.x = (bit<32>) x; hdr.o.y = (bit<32>) y;
         }}"
    );
    let mut switch = running(&locals, &ingress);
    let mut dice = Dice::new(width.into());
    let mut row = vec![0u32; 2 * cells as usize];
    for n in 0..300 {
        if dice.below(3) > 0 {
            let (at, v) = (
                dice.below(row.len()),
                dice.word() as u32 & ((1 << width) - 1),
            );
            row[at] = v;
            out(&mut switch, at as u8, v);
            continue;
        }
        let which = dice.below(2);
        let here = &mut row[which * cells as usize..][..cells as usize];
        let named = (0..here.len()).filter(|i| mask >> i & 1 == 1);
        let best = match method.starts_with("min") {
            true => named.min_by_key(|i| (here[*i], *i)),
            false => named.max_by_key(|i| (here[*i], here.len() - i)),
        };
        let best = best.expect("a mask");
        let expected = (here[best], best as u32);
        here[best] = (i64::from(here[best]) + change) as u32 & ((1 << width) - 1);
        assert_eq!(
            out(&mut switch, 32 | which as u8, 0),
            expected,
            "packet {n}"
        );
    }
    for (i, cell) in (0..).zip(row) {
        let read = switch.register_read("I.r", i);
        assert_eq!(read, Ok(vec![u128::from(cell).into()]));
    }
}

#[test]
fn a_row_of_narrow_cells_has_an_extreme() {
    extremes(16, "max16", 0xff, -8);
    extremes(16, "min16", 0x5a, 9);
    extremes(8, "min8", 0xff7f, 3);
    extremes(8, "max8", 0xffff, -1);
}
