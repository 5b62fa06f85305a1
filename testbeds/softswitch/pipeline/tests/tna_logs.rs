//! Registers of Tofino 2 as logs, queues and stacks; clearing, sweeping, addresses; learning.
#![allow(missing_docs)]

mod support;

use p4lang::runtime::Value;
use pipeline::Switch;
use std::collections::VecDeque;
use support::one;
use support::program::Dice;
use support::tna::{TNA, Tna, words};

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

/// x and y of what leaves.
fn out(switch: &mut Switch, op: u8, v: u32) -> (u32, u32) {
    let mut packet = vec![op];
    packet.extend(v.to_be_bytes());
    words(&one(switch, &packet))
}

/// Two actions on five cells; what is put in answers with its double.
const LINE: &str = "
    Register<bit<32>, _>(5) r;
    RegisterAction<bit<32>, _, bit<32>>(r) put = {
        void apply(inout bit<32> cell, out bit<32> rv) { cell = hdr.i.v; rv = hdr.i.v + hdr.i.v; }
    };
    RegisterAction<bit<32>, _, bit<32>>(r) take = {
        void apply(inout bit<32> cell, out bit<32> rv, out bit<32> rv2) { rv = cell; rv2 = 1; }
    };";

/// The same with what is executed at the ends, which other actions of the register may bring.
const LINE_WITH_ENDS: &str = "
    Register<bit<32>, _>(5) r;
    RegisterAction<bit<32>, _, bit<32>>(r) put = {
        void apply(inout bit<32> cell, out bit<32> rv) { cell = hdr.i.v; rv = hdr.i.v + hdr.i.v; }
        void underflow(inout bit<32> cell, out bit<32> rv, out bit<32> rv2) { rv = 0xeeee; rv2 = cell; }
    };
    RegisterAction<bit<32>, _, bit<32>>(r) take = {
        void apply(inout bit<32> cell, out bit<32> rv, out bit<32> rv2) { rv = cell; rv2 = 1; }
        void overflow(inout bit<32> cell, out bit<32> rv) { cell = 99; rv = 0xffff; }
    };";

/// Random operations beside a deque.
fn beside_a_deque(locals: &str, stack: bool, (full, empty): (u32, (u32, u32))) {
    let (put, take) = if stack {
        ("push", "pop")
    } else {
        ("enqueue", "dequeue")
    };
    let ingress = format!(
        "hdr.o.x = 7; hdr.o.y = 7;
         if (hdr.i.op == 0) {{ hdr.o.x = put.{put}(); }} else {{ hdr.o.x = take.{take}(hdr.o.y); }}"
    );
    let mut switch = running(locals, &ingress);
    let mut held = VecDeque::new();
    let mut dice = Dice::new(5);
    for n in 0..300u32 {
        // Now mostly in, now mostly out.
        let takes = dice.below(4) < if n / 30 % 2 == 0 { 1 } else { 3 };
        let expected = if takes {
            let taken = if stack {
                held.pop_back()
            } else {
                held.pop_front()
            };
            taken.map_or(empty, |v| (v, 1))
        } else if held.len() == 5 {
            (full, 7)
        } else {
            held.push_back(n);
            (2 * n, 7)
        };
        assert_eq!(out(&mut switch, takes.into(), n), expected, "packet {n}");
    }
    assert_eq!(switch.stats().register_conflicts, 0);
}

#[test]
fn a_queue_gives_what_came_first() {
    beside_a_deque(LINE, false, (0, (0, 0)));
    beside_a_deque(LINE_WITH_ENDS, false, (0xffff, (0xeeee, 0)));
}

#[test]
fn a_stack_gives_what_came_last() {
    beside_a_deque(LINE, true, (0, (0, 0)));
    beside_a_deque(LINE_WITH_ENDS, true, (0xffff, (0xeeee, 0)));
}

#[test]
fn a_log_is_the_registers() {
    let mut switch = running(
        LINE,
        "if (hdr.i.op == 0) { hdr.o.x = put.execute_log(); } else { hdr.o.x = take.execute_log(hdr.o.y); }",
    );
    for v in 1..=4 {
        assert_eq!(out(&mut switch, 0, v), (2 * v, 0));
    }
    assert_eq!(out(&mut switch, 1, 0), (0, 1), "the fifth cell");
    assert_eq!(out(&mut switch, 1, 0), (1, 1), "round");
    assert_eq!(out(&mut switch, 0, 50), (100, 0), "over the second");
    let cells = [1u128, 50, 3, 4, 0];
    for (i, cell) in (0..).zip(cells) {
        assert_eq!(switch.register_read("I.r", i), Ok(vec![cell.into()]));
    }
}

#[test]
fn counters_are_each_pipes_own() {
    let mut switch = running(
        LINE,
        "if (hdr.i.op == 0) { hdr.o.x = put.enqueue(); } else { hdr.o.x = take.dequeue(hdr.o.y); }",
    );
    let mut at = |port: u32, op: u8, v: u8| {
        switch.handle_packet(0, port, &[op, 0, 0, 0, v]);
        let sent = support::sent(&mut switch);
        u32::from_be_bytes(sent[0].1[..4].try_into().expect("four bytes"))
    };
    assert_eq!(at(0, 0, 10), 20);
    assert_eq!(at(128, 1, 0), 0, "nothing in pipe 1");
    assert_eq!(at(130, 0, 11), 22);
    assert_eq!(at(1, 1, 0), 10);
    assert_eq!(at(129, 1, 0), 11);
}

#[test]
fn registers_in_a_chain_are_one_queue() {
    let link = |i: u32| {
        format!(
            "Register<bit<32>, bit<32>>(4) r{i};
             @chain_address RegisterAction<bit<32>, bit<32>, bit<32>>(r{i}) put{i} = {{
                 void apply(inout bit<32> cell) {{ cell = hdr.i.v; }}
             }};
             @chain_address RegisterAction<bit<32>, bit<32>, bit<32>>(r{i}) take{i} = {{
                 void apply(inout bit<32> cell, out bit<32> rv) {{ rv = cell; }}
             }};"
        )
    };
    let locals = format!("@chain_total_size(12) {} {} {}", link(0), link(1), link(2));
    let mut switch = running(
        &locals,
        "if (hdr.i.op == 0) {
             put0.enqueue(); meta.at = put0.address();
             put1.execute(meta.at); meta.at = put1.address();
             put2.execute(meta.at);
         } else {
             hdr.o.x = take0.dequeue(); meta.at = take0.address();
             hdr.o.x = hdr.o.x | take1.execute(meta.at); meta.at = take1.address();
             hdr.o.x = hdr.o.x | take2.execute(meta.at);
         }",
    );
    for v in 1..=13 {
        out(&mut switch, 0, v);
    }
    for (register, first) in [("I.r0", 1u128), ("I.r1", 5), ("I.r2", 9)] {
        for i in 0..4u64 {
            let cell = switch.register_read(register, i);
            let expected = first + u128::from(i);
            assert_eq!(cell, Ok(vec![expected.into()]), "{register}");
        }
    }
    let taken: Vec<u32> = (0..13).map(|_| out(&mut switch, 1, 0).0).collect();
    assert_eq!(taken, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0]);
}

#[test]
fn clearing_and_sweeping_reach_every_cell() {
    let locals = "
        Register<pair_t, bit<32>>(6, {1, 2}) r;
        RegisterAction<pair_t, bit<32>, bit<32>>(r) add = {
            void apply(inout pair_t p, out bit<32> rv, out bit<32> rv2) { p.a = p.a + hdr.i.v; rv = p.a; rv2 = p.b; }
        };
        RegisterAction<pair_t, bit<32>, bit<32>>(r) age = {
            void apply(inout pair_t p) { if (p.a > 20) { p.a = p.a - 20; } else { p = {7, 8}; } }
        };";
    let ingress = "
        if (hdr.i.op < 6) { hdr.o.x = add.execute((bit<32>) hdr.i.op, hdr.o.y); }
        else if (hdr.i.op == 6) { age.sweep(); }
        else { r.clear({hdr.i.v, 5}); }";
    let mut switch = running(locals, ingress);
    let all = |switch: &Switch| -> Vec<Value> {
        let cell = |i| switch.register_read("I.r", i).expect("a cell");
        (0..6).flat_map(cell).collect()
    };
    let values = |words: &[u128]| -> Vec<Value> { words.iter().map(|w| (*w).into()).collect() };
    assert_eq!(out(&mut switch, 0, 19), (20, 2));
    assert_eq!(out(&mut switch, 5, 20), (21, 2));
    assert_eq!(out(&mut switch, 6, 0), (0, 0));
    assert_eq!(all(&switch), values(&[7, 8, 7, 8, 7, 8, 7, 8, 7, 8, 1, 2]));
    assert_eq!(out(&mut switch, 7, 1000), (0, 0));
    assert_eq!(all(&switch), values(&[1000, 5].repeat(6)));
    assert_eq!(out(&mut switch, 3, 1), (1001, 5));
    assert_eq!(switch.stats().register_conflicts, 0);
}

#[test]
fn an_address_counts_bits_and_names_a_half() {
    let locals = "
        Register<wide_t, bit<32>>(64) w;
        RegisterAction<wide_t, bit<32>, bit<32>>(w) of_wide = {
            void apply(inout wide_t p, out bit<32> rv, out bit<32> rv2) { rv = this.address(0); rv2 = this.address(1); }
        };
        Register<bit<16>, bit<32>>(64) s;
        RegisterAction<bit<16>, bit<32>, bit<32>>(s) of_short = {
            void apply(inout bit<16> cell, out bit<32> rv) { rv = this.address(); }
        };";
    let ingress = "
        if (hdr.i.op == 0) { hdr.o.x = of_wide.execute(hdr.i.v, hdr.o.y); }
        else { hdr.o.x = of_short.execute(hdr.i.v); }";
    let mut switch = running(locals, ingress);
    assert_eq!(out(&mut switch, 0, 5), (5 * 128, 5 * 128 + 64));
    assert_eq!(out(&mut switch, 1, 5), (5 * 16, 0));
}

#[test]
fn what_a_registers_counters_cannot_do_is_refused() {
    let both = refused(LINE, "hdr.o.x = put.enqueue(); hdr.o.x = take.pop();");
    assert!(both.contains("I.r as a queue and as a stack"), "{both}");
    let both = refused(LINE, "r.clear(0); hdr.o.x = take.dequeue();");
    assert!(both.contains("swept or cleared and as a queue"), "{both}");
    let where_ = refused(LINE, "hdr.o.x = take.address();");
    assert!(where_.contains("@chain_address"), "{where_}");
}

/// The register's `overflow` is executed by any action that finds it full, also by one that `overflow` calls.
#[test]
fn an_overflow_that_overflows_is_refused() {
    let why = refused(
        "Register<bit<32>, _>(5) r;
         RegisterAction<bit<32>, _, bit<32>>(r) again = {
             void apply(inout bit<32> cell, out bit<32> rv) { rv = cell; }
         };
         RegisterAction<bit<32>, _, bit<32>>(r) put = {
             void apply(inout bit<32> cell, out bit<32> rv) { rv = cell; }
             void overflow(inout bit<32> cell, out bit<32> rv) { rv = again.push(); }
         };",
        "hdr.o.x = put.push();",
    );
    assert!(why.contains("leads back to itself"), "{why}");
}

/// Learns `hdr.i.v` at the index `hdr.i.op`: x is where, y what the comparators say. From 0x40 on it is forgotten.
fn learning(ways: &str) -> String {
    format!(
        "Register<wide_t, bit<32>>(8) known;
         LearnAction2<wide_t, bit<32>, bit<64>, bit<32>, bit<32>>(known) look = {{
             void apply(inout wide_t cell, in bit<64> digest, in bool learn, out bit<32> rv, out bit<32> rv2) {{
                 if (cell.a & ~64w3 == digest) {{ rv = this.address<bit<32>>(0); }}
                 else if (cell.b & ~64w3 == digest) {{ rv = this.address<bit<32>>(1); }}
                 else if (!learn && cell.a == 0) {{ cell.a = digest | 3; rv = this.address<bit<32>>(0); }}
                 else if (!learn && cell.b == 0) {{ cell.b = digest | 3; rv = this.address<bit<32>>(1); }}
                 else {{ rv = 0xffff; }}
                 rv2 = this.predicate<bit<32>>();
             }}
         }};
         LearnAction2<wide_t, bit<32>, bit<64>, bit<32>, bit<32>>(known) forget = {{
             void apply(inout wide_t cell, in bit<64> digest, in bool learn, out bit<32> rv, out bit<32> rv2) {{
                 if (cell.a & ~64w3 == digest) {{ cell.a = 0; rv = 7; }}
                 else if (cell.b & ~64w3 == digest) {{ cell.b = 0; rv = 7; }}
             }}
         }};
         action find() {{ hdr.o.x = look.execute((bit<32>) hdr.i.op, hdr.o.y); }}
         action lose() {{ hdr.o.x = forget.execute((bit<32>) hdr.i.op, hdr.o.y); }}
         {ways} table learned {{
             key = {{ hdr.i.v : dleft_hash; hdr.i.op : ternary; }}
             actions = {{ find; lose; }}
             const entries = {{ (_, 0x40 &&& 0x40) : lose(); (_, _) : find(); }}
         }}"
    )
}

/// Beside a list of what each index has, in the order of the places.
fn learns(annotation: &str, ways: usize) {
    let mut switch = running(&learning(annotation), "learned.apply();");
    let mut dice = Dice::new(9);
    let cells = 8 / ways;
    let mut known = vec![vec![None; 2 * ways]; cells];
    for n in 0..400 {
        let (index, v) = (dice.below(8), 1 + dice.below(9) as u32);
        let here = &mut known[index % cells];
        let found = here.iter().position(|k| *k == Some(v));
        if dice.below(4) == 0 {
            let (x, _) = out(&mut switch, 0x40 | index as u8, v);
            assert_eq!(x, if found.is_some() { 7 } else { 0 }, "packet {n}");
            if let Some(at) = found {
                here[at] = None;
            }
            continue;
        }
        let place = found.or_else(|| here.iter().position(Option::is_none));
        let (x, y) = out(&mut switch, index as u8, v);
        match place {
            Some(at) => {
                here[at] = Some(v);
                let (way, half) = (at / 2, at % 2);
                let missed = if ways > 1 { 0xffff } else { 0 };
                let address = (way << 23 | (index % cells) << 7 | half << 6) as u32 | missed;
                assert_eq!(x, address, "packet {n}");
            }
            None => assert_eq!(x, 0xffff, "packet {n}"),
        }
        // Bits whose number says that one of the first two comparisons is true, or only one of the others.
        assert_eq!(y & 0xeeee != 0, found.is_some(), "packet {n}: {y:#x}");
        if found.is_none() {
            assert_eq!(y & 0x1110 != 0, place.is_some(), "packet {n}: {y:#x}");
        }
    }
    assert_eq!(switch.stats().register_conflicts, 0);
}

#[test]
fn a_digest_is_learned_where_there_is_room() {
    learns("", 1);
}

#[test]
fn ways_learn_one_after_the_other() {
    learns("@ways(2)", 2);
    learns("@ways(4)", 4);
}

#[test]
fn learning_needs_a_table_with_a_digest() {
    let why = refused(
        &learning("").replace("dleft_hash", "ternary"),
        "learned.apply();",
    );
    assert!(why.contains("dleft_hash"), "{why}");
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

/// A row of narrow cells: the greatest or least is told, where it is, and changed.
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
