//! TNA's extern objects.

use crate::support;
use crate::support::tna::{TNA, Tna, words};
use crate::support::{call, entry, one, through};
use p4lang::runtime::Match;
use pipeline::{Executor, ExternError, FilterConfig, MeterConfig, Switch};

/// A byte in, and up to eight bytes in front of the payload out.
const IN_OUT: Tna<'static> = Tna {
    decls: "header out_h { bit<32> x; bit<32> y; } struct pair_t { bit<32> a; bit<32> b; }",
    headers: "byte_h b; out_h o;",
    parser: "state go { pkt.extract(hdr.b); hdr.o.setValid(); transition accept; }",
    deparser: "pkt.emit(hdr.o);",
    ..TNA
};

/// x and y of the packet that leaves.
fn out(switch: &mut Switch, packet: &[u8]) -> (u32, u32) {
    words(&one(switch, packet))
}

const PORT: &str = "tm.ucast_egress_port = 1;";

fn with(ingress: &str) -> String {
    format!("{ingress} {PORT}")
}

/// A switch with these objects, whose packets leave by port 1.
fn running(locals: &str, ingress: &str) -> Switch {
    IN_OUT.running(locals, ingress)
}

#[test]
fn register_actions_read_change_and_write() {
    let locals = "
        Register<pair_t, bit<8>>(4, {5, 6}) pairs;
        RegisterAction<pair_t, bit<8>, bit<32>>(pairs) add = {
            void apply(inout pair_t p, out bit<32> rv) {
                rv = p.a;
                if (p.b > 7) { p.a = p.a + 10; } else { p.b = p.b + 1; }
            }
        };
        RegisterAction<pair_t, bit<8>, bit<32>>(pairs) look = {
            void apply(inout pair_t p, out bit<32> rv) { rv = p.b; }
        };
        RegisterAction<pair_t, bit<8>, bit<32>>(pairs) silent = {
            void apply(inout pair_t p) { p.a = 1000; }
        };";
    let ingress = "
         if (hdr.b.v[7:7] == 1) { silent.execute(hdr.b.v & 0x7f); }
         else if (hdr.b.v[6:6] == 1) { hdr.o.y = look.execute(hdr.b.v & 0x3f); }
         else { hdr.o.x = add.execute(hdr.b.v); }";
    let mut switch = running(locals, ingress);
    assert_eq!(out(&mut switch, &[2]), (5, 0));
    assert_eq!(out(&mut switch, &[0x42]), (0, 7));
    assert_eq!(out(&mut switch, &[2]), (5, 0));
    assert_eq!(out(&mut switch, &[2]), (5, 0), "b is 8 now");
    assert_eq!(out(&mut switch, &[2]), (15, 0));
    assert_eq!(out(&mut switch, &[0x82]), (0, 0));
    assert_eq!(out(&mut switch, &[2]), (1000, 0));
    assert_eq!(out(&mut switch, &[3]), (5, 0), "its neighbour");
    assert_eq!(out(&mut switch, &[9]), (0, 0), "beyond the end");
    assert_eq!(
        switch.register_read("I.pairs", 2),
        Ok(vec![1010.into(), 8.into()])
    );
    assert_eq!(
        switch.stats().register_conflicts,
        0,
        "branches exclude each other"
    );
}

#[test]
fn a_second_execution_in_one_pass_is_counted() {
    let mut switch = running(
        "Register<bit<32>, bit<8>>(1) r;
                 RegisterAction<bit<32>, bit<8>, bit<32>>(r) next = {
                     void apply(inout bit<32> v, out bit<32> rv) { v = v + 1; rv = v; }
                 };",
        "if (hdr.b.v[0:0] == 1) { hdr.o.x = next.execute(0); }
         if (hdr.b.v[1:1] == 1) { hdr.o.y = next.execute(0); }",
    );
    assert_eq!(out(&mut switch, &[1]), (1, 0));
    assert_eq!(out(&mut switch, &[2]), (0, 2));
    assert_eq!(switch.stats().register_conflicts, 0);
    assert_eq!(out(&mut switch, &[3]), (3, 4));
    assert_eq!(switch.stats().register_conflicts, 1);
}

#[test]
fn parameters_predicates_and_functions() {
    let mut switch = running(
        "RegisterParam<bit<32>>(40) limit;
                 Register<bit<32>, bit<8>>(1) r;
                 RegisterAction<bit<32>, bit<8>, bit<32>>(r) act = {
                     void apply(inout bit<32> v, out bit<32> rv) {
                         v = v + limit.read();
                         rv = this.predicate(v > 50, v > 100);
                     }
                 };",
        "hdr.o.x = act.execute(0);
         hdr.o.y[31:24] = max(hdr.b.v, 8w9); hdr.o.y[23:16] = (bit<8>) min((int<8>) hdr.b.v, 8s3);
         hdr.o.y[15:8] = (bit<8>) sizeInBytes(hdr.o); hdr.o.y[7:0] = (bit<8>) sizeInBits(hdr.b);",
    );
    assert_eq!(out(&mut switch, &[7]), (1, 0x0903_0808));
    assert_eq!(
        out(&mut switch, &[0xf0]),
        (1, 0xf0f0_0808),
        "40 when it is read; -16 is less than 3"
    );
    assert_eq!(out(&mut switch, &[1]), (2, 0x0901_0808), "80");
    switch.register_write("I.limit", 0, &[0.into()]).unwrap();
    assert_eq!(out(&mut switch, &[1]).0, 8);
    assert_eq!(switch.register_read("I.r", 0), Ok(vec![120.into()]));
}

/// A table on the byte with this property and action body.
fn direct(locals: &str, property: &str, body: &str) -> String {
    format!(
        "{locals}
         action hit() {{ {body} }}
         table t {{ key = {{ hdr.b.v : exact; }} actions = {{ hit; NoAction; }} {property} size = 8; }}"
    )
}

#[test]
fn direct_registers_go_with_their_entries() {
    let locals = direct(
        "DirectRegister<bit<32>>(3) r;
         DirectRegisterAction<bit<32>, bit<32>>(r) next = {
             void apply(inout bit<32> v, out bit<32> rv) { v = v + 1; rv = v; }
         };",
        "registers = r;",
        "hdr.o.x = next.execute();",
    );
    let mut switch = running(&locals, "t.apply();");
    for v in [1, 2] {
        let e = entry("I.t", &[("hdr.b.v", Match::exact(v))], 0, "I.hit", &[]);
        switch.insert_entry(&e).unwrap();
    }
    let got: Vec<u32> = [1, 1, 2, 9, 1].map(|v| out(&mut switch, &[v]).0).into();
    assert_eq!(got, [4, 5, 4, 0, 6]);
    let e = entry("I.t", &[("hdr.b.v", Match::exact(1))], 0, "I.hit", &[]);
    switch.delete_entry(&e).unwrap();
    switch.insert_entry(&e).unwrap();
    assert_eq!(out(&mut switch, &[1]).0, 4, "a new entry starts anew");
}

/// Tofino 2's `clear`: clears the cells of all entries, in the packet's pipe; a new entry starts as before.
#[test]
fn a_direct_register_is_cleared_for_all_entries() {
    let locals = "
        DirectRegister<pair_t>({3, 4}) r;
        DirectRegisterAction<pair_t, bit<32>>(r) next = {
            void apply(inout pair_t p, out bit<32> rv) { p.a = p.a + 1; rv = p.a; }
        };
        action hit() { hdr.o.x = next.execute(); }
        action clear() { r.clear({ (bit<32>) hdr.b.v, 9 }); }
        action read() { pair_t p = r.read(); hdr.o.x = p.a; hdr.o.y = p.b; }
        table t { key = { hdr.b.v : exact; } actions = { hit; clear; read; NoAction; } registers = r; size = 8; }";
    let tofino2 = Tna {
        include: "t2na.p4",
        ..IN_OUT
    };
    let mut switch = tofino2.running(locals, "t.apply();");
    let e = |v: u128, action| entry("I.t", &[("hdr.b.v", Match::exact(v))], 0, action, &[]);
    for (v, action) in [(1, "I.hit"), (2, "I.hit"), (100, "I.clear")] {
        switch.insert_entry(&e(v, action)).unwrap();
    }
    let mut run = |packets: &[u8]| -> Vec<u32> {
        let x = |v: &u8| out(&mut switch, &[*v]).0;
        packets.iter().map(x).collect()
    };
    // A miss changes nothing, like a missing entry.
    assert_eq!(run(&[1, 1, 2, 77]), [4, 5, 4, 0]);
    assert_eq!(run(&[100, 1, 2, 1]), [0, 101, 101, 102]);
    switch.insert_entry(&e(3, "I.read")).unwrap();
    assert_eq!(out(&mut switch, &[3]), (3, 4), "new");
    assert_eq!(out(&mut switch, &[100]), (0, 0));
    assert_eq!(out(&mut switch, &[3]), (100, 9));
    assert_eq!(switch.stats().register_conflicts, 0);
    // The cells of the other pipes stay.
    switch.handle_packet(0, 128, &[3]);
    let sent = support::sent(&mut switch);
    assert_eq!(sent[0].1[..8], [0, 0, 0, 3, 0, 0, 0, 4]);
}

#[test]
fn counters_count_without_metadata_and_with_adjustment() {
    let locals = direct(
        "Counter<bit<64>, bit<8>>(4, CounterType_t.PACKETS_AND_BYTES) c;
         DirectCounter<bit<64>>(CounterType_t.BYTES) d;",
        "counters = d;",
        "d.count(2);",
    );
    let mut switch = running(
        &locals,
        "c.count(1); c.count(2, 4); c.count(3, 100); t.apply();",
    );
    let e = entry("I.t", &[("hdr.b.v", Match::exact(1))], 0, "I.hit", &[]);
    switch.insert_entry(&e).unwrap();
    through(&mut switch, &[1; 10]);
    through(&mut switch, &[2; 10]);
    let counts = |i| switch.counter_read("I.c", i).map(|c| (c.packets, c.bytes));
    // A frame counts with the four bytes of its check sequence.
    assert_eq!(counts(1), Ok((2, 28)));
    assert_eq!(counts(2), Ok((2, 20)));
    assert_eq!(counts(3), Ok((2, 0)));
    let direct = switch.direct_counter_read("I.t", Some(&e)).unwrap();
    assert_eq!(direct.bytes, 12);
    let default = switch.direct_counter_read("I.t", None).unwrap();
    assert_eq!(default.bytes, 0, "counted by the action only");
}

#[test]
fn meters_have_colours_of_their_own() {
    let mut switch = running(
        "Meter<bit<8>>(1, MeterType_t.PACKETS) m; Meter<bit<8>>(1, MeterType_t.PACKETS, 30, 20, 10) own;",
        "hdr.o.x = (bit<32>) m.execute(0); hdr.o.y = (bit<32>) own.execute(0, MeterColor_t.YELLOW);",
    );
    let config = MeterConfig {
        cir: 1,
        cburst: 1,
        pir: 1,
        pburst: 2,
    };
    for name in ["I.m", "I.own"] {
        switch.meter_configure(name, 0, Some(config), 0).unwrap();
    }
    let got: Vec<_> = (0..3).map(|_| out(&mut switch, &[1])).collect();
    assert_eq!(
        got,
        [(0, 20), (1, 20), (3, 30)],
        "green, yellow, red; yellow at best"
    );
}

#[test]
fn an_unconfigured_meter_leaves_the_colour_and_yellow_has_two_numbers() {
    let mut switch = running(
        "Meter<bit<8>>(1, MeterType_t.PACKETS) m; Meter<bit<8>>(1, MeterType_t.PACKETS) aware;",
        "hdr.o.x = (bit<32>) m.execute(0, MeterColor_t.RED);
         if (hdr.b.v == 2) { hdr.o.y = (bit<32>) aware.execute(0, (MeterColor_t) 8w2); }
         else { hdr.o.y = (bit<32>) aware.execute(0, MeterColor_t.YELLOW); }",
    );
    let config = MeterConfig {
        cir: 1,
        cburst: 9,
        pir: 1,
        pburst: 9,
    };
    switch
        .meter_configure("I.aware", 0, Some(config), 0)
        .unwrap();
    assert_eq!(out(&mut switch, &[2]), (3, 1));
    assert_eq!(out(&mut switch, &[1]), (3, 1));
}

#[test]
fn math_units_work_in_register_actions() {
    let mut switch = running("Register<bit<32>, bit<8>>(1) r;
                 MathUnit<bit<32>>(MathOp_t.SQR, 3) square;
                 RegisterAction<bit<32>, bit<8>, bit<32>>(r) run = {
                     void apply(inout bit<32> v, out bit<32> rv) { v = square.execute((bit<32>) hdr.b.v); rv = v; }
                 };
                 Register<bit<32>, bit<8>>(1, 4096) s;
                 MathUnit<bit<32>>(MathOp_t.MUL, 1, 2) half;
                 RegisterAction<bit<32>, bit<8>, bit<32>>(s) halve = {
                     void apply(inout bit<32> v, out bit<32> rv) { v = half.execute(v); rv = v; }
                 };", "hdr.o.x = run.execute(0); hdr.o.y = halve.execute(0);");
    assert_eq!(out(&mut switch, &[16]), (768, 2048));
    assert_eq!(out(&mut switch, &[2]), (12, 1024));
    let refused = Tna {
        locals: "MathUnit<bit<32>>(MathOp_t.MUL, 1, 0) half;",
        ingress: "bit<32> x = half.execute(1); tm.ucast_egress_port = (PortId_t) (bit<9>) x;",
        ..IN_OUT
    }
    .refused();
    assert!(refused.to_string().contains("math unit"), "{refused}");
}

#[test]
fn hashes_of_any_polynomial() {
    let mut switch = running("CRCPolynomial<bit<16>>(0x1021, false, false, false, 0xffff, 0) poly;
                 Hash<bit<16>>(HashAlgorithm_t.CUSTOM, poly) ccitt; Hash<bit<8>>(HashAlgorithm_t.CRC8) small;
                 Hash<bit<32>>(HashAlgorithm_t.CRC32) crc32; Hash<bit<8>>(HashAlgorithm_t.IDENTITY) same;", 
        "hdr.o.x[31:16] = ccitt.get({ hdr.b.v, 8w0x32, 56w0x33343536373839 });
         hdr.o.x[15:8] = small.get({ hdr.b.v, 8w0x32, 56w0x33343536373839 });
         hdr.o.y = crc32.get({ hdr.b.v, 8w0x32, 56w0x33343536373839 });
         hdr.o.x[7:0] = same.get({ hdr.b.v });");
    // Check values of "123456789".
    assert_eq!(out(&mut switch, b"1"), (0x29b1_f431, 0xcbf4_3926));
}

#[test]
fn random_numbers_fill_their_type() {
    let mut switch = running("Random<bit<3>>() r;", "hdr.o.x = (bit<32>) r.get();");
    let mut seen = [false; 8];
    for _ in 0..200 {
        seen[out(&mut switch, &[0]).0 as usize] = true;
    }
    assert_eq!(seen, [true; 8]);
}

#[test]
fn checksums_are_verified_updated_and_left_over() {
    // A UDP-like header whose checksum includes the payload.
    let mut switch = Tna {
        decls: "header l4_h { bit<16> port; bit<16> checksum; bit<16> more; } struct rest_t { bit<16> sum; }",
        headers: "l4_h h; byte_h wrong;",
        meta: "bit<16> rest; bit<1> bad;",
        parser_locals: "Checksum() whole; Checksum() part;",
        parser: "state go {
                     pkt.extract(hdr.h);
                     whole.add(hdr.h);
                     meta.bad = (bit<1>) whole.verify();
                     part.subtract({ hdr.h.port, hdr.h.checksum });
                     part.subtract_all_and_deposit(meta.rest);
                     transition select(hdr.h.port) { 0xffff: more; default: accept; }
                 }
                 state more { pkt.extract(hdr.wrong); transition accept; }",
        ingress: "hdr.h.port = hdr.h.port + 1; hdr.wrong.setValid(); hdr.wrong.v = (bit<8>) meta.bad; tm.ucast_egress_port = 1;",
        deparser_locals: "Checksum() c;",
        deparser: "hdr.h.checksum = c.update({ hdr.h.port, meta.rest }, true); pkt.emit(hdr);",
        ..Tna::default()
    }
    .load();
    let sum = |words: &[u16]| {
        let sum: u32 = words.iter().map(|w| u32::from(*w)).sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        ((folded & 0xffff) + (folded >> 16)) as u16
    };
    let packet = |port: u16, checksum: u16, rest: [u16; 3]| -> Vec<u8> {
        let words = [port, checksum, rest[0], rest[1], rest[2]];
        words.iter().flat_map(|w| w.to_be_bytes()).collect()
    };
    // `more` and the payload remain in the rest.
    let rest = [0x1234, 0xfedc, 0x0042];
    let right = |port: u16| !sum(&[port, rest[0], rest[1], rest[2]]);
    let mut out = one(&mut switch, &packet(80, right(80), rest));
    assert_eq!(out.remove(6), 1, "the header alone does not sum up");
    assert_eq!(out, packet(81, right(81), rest));
    let alone = packet(80, !sum(&[80, 7]), [7, 0, 0]);
    assert_eq!(
        one(&mut switch, &alone)[6],
        0,
        "true is wrong, false is right"
    );
}

#[test]
fn parser_counters_count_headers() {
    let mut switch = Tna {
        decls: "header list_h { bit<8> n; }",
        headers: "list_h l; byte_h[4] items; byte_h left;",
        parser_locals: "ParserCounter() todo;",
        parser: "state go {
                     pkt.extract(hdr.l);
                     // At most 0x4f, rotated by 4, masked to 3 bits, plus 0.
                     todo.set(hdr.l.n, 0x4f, 4, 2, 0);
                     transition next;
                 }
                 state next { transition select(todo.is_zero()) { true: accept; false: item; } }
                 state item { pkt.extract(hdr.items.next); todo.decrement(1); transition next; }",
        ingress: "hdr.left.setValid(); hdr.left.v = 0xee; tm.ucast_egress_port = 1;",
        ..Tna::default()
    }
    .load();
    assert_eq!(one(&mut switch, &[0x20, 1, 2, 3]), [0x20, 1, 2, 0xee, 3]);
    assert_eq!(one(&mut switch, &[0x0f, 1, 2, 3]), [0x0f, 0xee, 1, 2, 3]);
    assert_eq!(
        through(&mut switch, &[0x50, 1, 2, 3, 4, 5]),
        [],
        "beyond the range"
    );
}

#[test]
fn a_parser_counter_is_loaded_with_the_fields_byte() {
    // The length in words is in the left half of its byte: rotated by 2 it is in bytes, including the header's own word.
    let mut switch = Tna {
        decls: "header list_h { bit<4> words; bit<4> kind; bit<24> rest; }",
        headers: "list_h l; byte_h[8] items; byte_h left;",
        parser_locals: "ParserCounter() todo;",
        parser: "state go {
                     pkt.extract(hdr.l);
                     todo.set(hdr.l.words, 0xf0, 2, 5, 252);
                     transition next;
                 }
                 state next { transition select(todo.is_zero()) { true: accept; false: item; } }
                 state item { pkt.extract(hdr.items.next); todo.decrement(1); transition next; }",
        ingress: "hdr.left.setValid(); hdr.left.v = 0xee; tm.ucast_egress_port = 1;",
        ..Tna::default()
    }
    .load();
    let mut packet = vec![0x23, 0, 0, 0, 1, 2, 3, 4, 5];
    assert_eq!(one(&mut switch, &packet)[8..], [0xee, 5]);
    packet[0] = 0x13;
    assert_eq!(one(&mut switch, &packet)[4..], [0xee, 1, 2, 3, 4, 5]);
}

#[test]
fn a_parser_counter_of_tofino_2_has_a_stack() {
    // A list with its length in front; an entry consists of its length and its bytes, the last of which is kept.
    let parser = |update: &str| {
        format!(
            "state go {{ pkt.extract(hdr.l); todo.set(hdr.l.n); transition next; }}
             state next {{ transition select(todo.is_zero()) {{ true: accept; false: item; }} }}
             state item {{
                 bit<8> length = pkt.lookahead<bit<8>>();
                 todo.push(length, {update});
                 pkt.advance(8);
                 transition inside;
             }}
             state inside {{
                 todo.decrement(1);
                 transition select(todo.is_zero()) {{ true: kept; false: skip; }}
             }}
             state skip {{ pkt.advance(8); transition inside; }}
             state kept {{ pkt.extract(hdr.items.next); todo.pop(); todo.decrement(1); transition next; }}"
        )
    };
    for executor in [Executor::Fast, Executor::Both] {
        let load = |update: &str| {
            let config = pipeline::Config {
                executor,
                ..Default::default()
            };
            Tna {
                include: "t2na.p4",
                decls: "header list_h { bit<8> n; }",
                headers: "list_h l; byte_h[4] items; byte_h left;",
                parser_locals: "ParserCounter() todo;",
                parser: &parser(update),
                ingress: "hdr.left.setValid(); hdr.left.v = 0xee; tm.ucast_egress_port = 1;",
                ..Tna::default()
            }
            .load_with(config)
        };
        // Updating the list's counter: entries of 2 and 3 bytes, with their lengths, take 7.
        let mut switch = load("true");
        let list = [7, 2, 0xa, 0xb, 3, 0xc, 0xd, 0xe, 9];
        assert_eq!(one(&mut switch, &list), [7, 0xb, 0xe, 0xee, 9]);
        assert_eq!(switch.take_differences(), Vec::<String>::new());
        // Without the update the list counts entries.
        let mut switch = load("false");
        let list = [2, 2, 0xa, 0xb, 3, 0xc, 0xd, 0xe, 9];
        assert_eq!(one(&mut switch, &list), [2, 0xb, 0xe, 0xee, 9]);
        assert_eq!(switch.take_differences(), Vec::<String>::new());
    }
}

#[test]
fn a_hash_wider_than_its_algorithm_repeats_it() {
    let locals =
        "Hash<bit<32>>(HashAlgorithm_t.CRC16) wide; Hash<bit<16>>(HashAlgorithm_t.CRC16) fits;";
    let mut switch = running(
        locals,
        "hdr.o.x = wide.get({ hdr.b.v }); hdr.o.y = (bit<32>) fits.get({ hdr.b.v });",
    );
    let (wide, fits) = out(&mut switch, &[0x31]);
    // CRC-16/ARC of "1".
    assert_eq!((wide, fits), (0xd4c1_d4c1, 0xd4c1));
}

#[test]
fn selectors_pick_by_hash() {
    let locals = "
        Hash<bit<8>>(HashAlgorithm_t.IDENTITY) h;
        ActionProfile(8) profile;
        ActionSelector(profile, h, SelectorMode_t.FAIR, 4, 2) selector;
        action give(bit<32> v) { hdr.o.x = v; }
        table t {
            key = { hdr.o.y : exact; hdr.b.v : selector; }
            actions = { give; NoAction; }
            implementation = selector;
            size = 8;
        }";
    let mut switch = running(locals, "t.apply();");
    for id in 0..3u32 {
        let action = call("I.give", &[("v", u128::from(id) * 100)]);
        switch.insert_member("I.profile", id, &action).unwrap();
    }
    let group = [(0, 1), (1, 1), (2, 1)];
    switch.insert_group("I.selector", 1, &group).unwrap();
    let e = entry("I.t", &[("hdr.o.y", Match::exact(0))], 0, "I.give", &[]);
    switch
        .insert_indirect(&e, pipeline::Indirect::Group(1))
        .unwrap();
    let got: Vec<u32> = [0, 1, 2, 3].map(|v| out(&mut switch, &[v]).0).into();
    assert_eq!(got, [0, 100, 200, 0]);
}

#[test]
fn a_selector_action_takes_members_out_and_back_in() {
    let locals = "
        Hash<bit<8>>(HashAlgorithm_t.IDENTITY) h;
        ActionProfile(8) profile;
        ActionSelector(profile, h, SelectorMode_t.FAIR, 4, 2) selector;
        SelectorAction(selector) fail = { void apply(inout bit<1> up, out bit<1> was) { was = up; up = 0; } };
        SelectorAction(selector) repair = { void apply(inout bit<1> up) { up = 1; } };
        action give(bit<32> v) { hdr.o.x = v; }
        table t {
            key = { hdr.o.y : exact; hdr.b.v : selector; }
            actions = { give; NoAction; }
            implementation = selector;
            size = 8;
        }";
    // The low bits are the index.
    let ingress = with(
        "if (hdr.b.v[7:7] == 1) { hdr.o.y[0:0] = fail.execute((bit<32>) hdr.b.v[5:0]); }
         else if (hdr.b.v[6:6] == 1) { repair.execute((bit<32>) hdr.b.v[5:0]); }
         else { t.apply(); }",
    );
    let program = Tna {
        locals,
        ingress: &ingress,
        ..IN_OUT
    };
    let mut switch = program.load();
    for id in 0..3u32 {
        let action = call("I.give", &[("v", u128::from(id) * 100)]);
        switch.insert_member("I.profile", id, &action).unwrap();
    }
    // Group 1 has at most four places: 4 to 7.
    let group = [(0, 1), (1, 1), (2, 2)];
    switch.insert_group("I.selector", 1, &group).unwrap();
    let e = entry("I.t", &[("hdr.o.y", Match::exact(0))], 0, "I.give", &[]);
    switch
        .insert_indirect(&e, pipeline::Indirect::Group(1))
        .unwrap();
    let picked = |switch: &mut Switch| [0, 1, 2, 3].map(|v| out(switch, &[v]).0);
    assert_eq!(picked(&mut switch), [0, 100, 200, 200]);
    assert_eq!(out(&mut switch, &[0x85]).1, 1, "member 1 was in");
    assert_eq!(out(&mut switch, &[0x85]).1, 0);
    assert_eq!(picked(&mut switch), [0, 200, 200, 0]);
    assert_eq!(out(&mut switch, &[0x86]).1, 1, "half of member 2");
    assert_eq!(picked(&mut switch), [0, 200, 0, 200]);
    for nobody in [0x80, 0x88, 0xbf] {
        assert_eq!(out(&mut switch, &[nobody]).1, 0, "no group, no place");
    }
    assert_eq!(picked(&mut switch), [0, 200, 0, 200]);
    out(&mut switch, &[0x45]);
    assert_eq!(picked(&mut switch), [0, 100, 200, 0]);
    switch.modify_group("I.selector", 1, &group).unwrap();
    assert_eq!(picked(&mut switch), [0, 100, 200, 200], "written anew");

    let refused = |from: &str, to: &str| {
        let (locals, ingress) = (locals.replace(from, to), ingress.replace(from, to));
        let (locals, ingress) = (&*locals, &*ingress);
        let program = Tna {
            locals,
            ingress,
            ..IN_OUT
        };
        program.refused().to_string()
    };
    let sizeless = refused(
        "ActionSelector(profile, h, SelectorMode_t.FAIR, 4, 2)",
        "ActionSelector(8, h, SelectorMode_t.FAIR)",
    );
    assert!(sizeless.contains("max_group_size"), "{sizeless}");
    let nowhere = refused("repair.execute((bit<32>) hdr.b.v[5:0])", "repair.execute()");
    assert!(nowhere.contains("index"), "{nowhere}");
}

#[test]
fn algorithmic_tables_match_as_plain_ones() {
    let locals = "
        Alpm(1024, 512) alpm;
        Atcam(16) atcam;
        action give(bit<32> v) { hdr.o.x = v; }
        action other(bit<32> v) { hdr.o.y = v; }
        table a { key = { hdr.b.v : lpm; } actions = { give; NoAction; } implementation = alpm; size = 8; }
        table b { key = { hdr.o.x[7:0] : atcam_partition_index; hdr.b.v : ternary; } actions = { other; NoAction; }
                  implementation = atcam; size = 8; idle_timeout = true; }";
    let mut switch = running(locals, "a.apply(); b.apply();");
    let lpm = |value, prefix_len| Match::lpm(value, prefix_len);
    for (key, v) in [(lpm(0, 0), 1), (lpm(0x80, 1), 2), (lpm(0xc0, 4), 3)] {
        let e = entry("I.a", &[("hdr.b.v", key)], 0, "I.give", &[("v", v)]);
        switch.insert_entry(&e).unwrap();
    }
    let partition = switch.tables().find(|t| t.name == "I.b").unwrap().fields[0]
        .name
        .clone();
    let key = [
        (partition.as_str(), Match::exact(3)),
        ("hdr.b.v", Match::ternary(1, 1)),
    ];
    let e = entry("I.b", &key, 5, "I.other", &[("v", 77)]);
    switch.insert_entry(&e).unwrap();
    let got: Vec<_> = [1, 0x81, 0xc0, 0xc1].map(|v| out(&mut switch, &[v])).into();
    assert_eq!(got, [(1, 0), (2, 0), (3, 0), (3, 77)]);
}

#[test]
fn filters_smooth_and_detect() {
    let mut switch = running(
        "Lpf<bit<32>, bit<8>>(1) low; Wred<bit<32>, bit<8>>(1, 9, 4) red;",
        "hdr.o.x = low.execute((bit<32>) hdr.b.v, 0); hdr.o.y = (bit<32>) red.execute((bit<32>) hdr.b.v, 0);",
    );
    assert_eq!(out(&mut switch, &[200]), (200, 4), "unconfigured");
    let config = FilterConfig {
        gain_ns: 1000,
        decay_ns: 1000,
        low: 10,
        high: 20,
        probability_ppm: 1_000_000,
    };
    switch
        .filter_configure("I.low", 0, Some(config), 0)
        .unwrap();
    switch
        .filter_configure("I.red", 0, Some(config), 0)
        .unwrap();
    let mut at = |now: u64, v: u8| {
        switch.handle_packet(now, 0, &[v]);
        let b = support::sent(&mut switch).remove(0).1;
        (b[3], b[7])
    };
    assert_eq!(at(1000, 10), (5, 4));
    assert_eq!(at(2000, 100), (52, 9), "half of what is left");
}

#[test]
fn direct_filters_have_a_cell_for_each_entry() {
    let locals = direct(
        "DirectLpf<bit<32>>() low; DirectWred<bit<32>>(9, 4) red;",
        "filters = low; drops = red;",
        "hdr.o.x = low.execute((bit<32>) hdr.b.v); hdr.o.y = (bit<32>) red.execute((bit<32>) hdr.b.v);",
    );
    let mut switch = running(&locals, "t.apply();");
    let keys = [10, 100];
    let entries = keys.map(|v| entry("I.t", &[("hdr.b.v", Match::exact(v))], 0, "I.hit", &[]));
    let config = FilterConfig {
        gain_ns: 1000,
        decay_ns: 1000,
        low: 10,
        high: 20,
        probability_ppm: 1_000_000,
    };
    let absent = switch.direct_filter_configure("I.low", &entries[0], Some(config), 0);
    assert_eq!(absent, Err(ExternError::NotFound), "no such entry");
    for e in &entries {
        switch.insert_entry(e).unwrap();
    }
    assert_eq!(out(&mut switch, &[10]), (10, 4), "not configured");
    for (e, filter) in entries.iter().flat_map(|e| [(e, "I.low"), (e, "I.red")]) {
        switch
            .direct_filter_configure(filter, e, Some(config), 0)
            .unwrap();
    }
    let mut at = |now: u64, v: u8| {
        switch.handle_packet(now, 0, &[v]);
        let b = support::sent(&mut switch).remove(0).1;
        (b[3], b[7])
    };
    assert_eq!(at(1000, 10), (5, 4));
    assert_eq!(at(1000, 100), (50, 9), "knows nothing of the other");
    assert_eq!(at(2000, 10), (7, 4), "half of what is left");
    assert_eq!(at(2000, 100), (75, 9));
    switch.delete_entry(&entries[1]).unwrap();
    assert_eq!(out(&mut switch, &[100]), (0, 0));
    switch.insert_entry(&entries[1]).unwrap();
    assert_eq!(
        out(&mut switch, &[100]),
        (100, 4),
        "a new entry starts anew"
    );
}

#[test]
fn tofino_2_gives_several_values() {
    let ingress = with(
        "bit<8> second; bit<32> first = act.execute(1, second); hdr.o.x = first; hdr.o.y[7:0] = second;
         hdr.o.y[15:8] = least.execute(0);",
    );
    let mut switch = Tna {
        include: "t2na.p4",
        locals: "Register<bit<32>, bit<8>>(2, 9) r;
                 RegisterAction2<bit<32>, bit<8>, bit<32>, bit<8>>(r) act = {
                     void apply(inout bit<32> v, out bit<32> a, out bit<8> b) {
                         a = v; v = v + (bit<32>) hdr.b.v; b = 0x20;
                     }
                 };
                 Register<bit<128>, bit<8>>(1, 0x0f0e0d0c0b0a09080706050403020107) wide;
                 MinMaxAction<bit<128>, bit<8>, bit<8>>(wide) least = {
                     void apply(inout bit<128> v, out bit<8> rv) { rv = this.min8(v, 0xfff5); }
                 };",
        ingress: &ingress,
        ..IN_OUT
    }
    .load();
    // Bytes 1 and 3 are masked out: 7, 2, 4 … remain.
    assert_eq!(out(&mut switch, &[5]), (9, 0x0220));
    assert_eq!(out(&mut switch, &[5]), (14, 0x0220));
}

/// As in Tofino's compiler; `p4lang`'s tests check the warning.
#[test]
fn a_program_runs_without_its_verify() {
    let mut switch = Tna {
        parser: "state go { pkt.extract(hdr.b); verify(hdr.b.v == 9, error.NoMatch); transition accept; }",
        deparser: "pkt.emit(hdr.b);",
        ..IN_OUT
    }
    .load();
    assert_eq!(one(&mut switch, &[5, 6]), [5, 6]);
}

/// The priority orders packets that wait for the parser; here none waits.
#[test]
fn a_parser_has_a_priority() {
    let mut switch = Tna {
        parser_locals: "ParserPriority() priority;",
        parser: "state go { pkt.extract(hdr.b); priority.set(hdr.b.v[2:0]); transition accept; }",
        deparser: "pkt.emit(hdr.b);",
        ..IN_OUT
    }
    .load();
    assert_eq!(one(&mut switch, &[5, 6]), [5, 6]);
}
