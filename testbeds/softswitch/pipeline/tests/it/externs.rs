//! PSA's externs in programs.

use crate::support::{Psa, compile, entry, one, through};
use p4lang::runtime::Match;
use pipeline::{Config, CounterValue, ExternError, LoadError, MeterConfig, Switch};

fn with<'a>(decls: &'a str, locals: &'a str, ingress: &'a str) -> Psa<'a> {
    Psa {
        decls,
        headers: "x_h x;",
        parser: "state start { pkt.extract(hdr.x); transition accept; }",
        locals,
        ingress,
        ..Psa::default()
    }
}

#[test]
fn registers_keep_scalars_and_structs() {
    let mut switch = with(
        "header x_h { bit<8> i; bit<32> v; } struct cell_t { bit<16> n; bit<70> sum; }",
        "Register<bit<32>, bit<8>>(4) r;
         Register<bit<32>, bit<8>>(4, 7) started;
         Register<cell_t, bit<8>>(4) pairs;",
        "
        bit<32> before = r.read(hdr.x.i);
        r.write(hdr.x.i, before + hdr.x.v);
        cell_t cell = pairs.read(hdr.x.i);
        cell.n = cell.n + 1;
        cell.sum = cell.sum + ((bit<70>) hdr.x.v << 64);
        pairs.write(hdr.x.i, cell);
        hdr.x.v = before + started.read(hdr.x.i);
        send_to_port(ostd, (PortId_t) 1);",
    )
    .load();
    assert_eq!(one(&mut switch, &[2, 0, 0, 0, 5]), [2, 0, 0, 0, 7]);
    assert_eq!(one(&mut switch, &[2, 0, 0, 0, 1]), [2, 0, 0, 0, 12]);
    assert_eq!(switch.register_read("ingress.r", 2), Ok(vec![6.into()]));
    assert_eq!(switch.register_read("ingress.r", 1), Ok(vec![0.into()]));
    assert_eq!(
        switch.register_read("ingress.pairs", 2),
        Ok(vec![2.into(), (6 << 64).into()])
    );
    assert_eq!(
        one(&mut switch, &[9, 0, 0, 0, 1]),
        [9, 0, 0, 0, 0],
        "beyond the end"
    );
    switch
        .register_write("ingress.r", 2, &[100.into()])
        .unwrap();
    assert_eq!(one(&mut switch, &[2, 0, 0, 0, 1]), [2, 0, 0, 0, 107]);
    assert_eq!(
        switch.register_read("ingress.r", 4),
        Err(ExternError::OutOfRange)
    );
    assert_eq!(
        switch.register_read("ingress.q", 0),
        Err(ExternError::NotFound)
    );
    assert_eq!(
        switch.register_write("ingress.r", 0, &[(1 << 32).into()]),
        Err(ExternError::ValueTooWide)
    );
}

#[test]
fn counters_count_packets_and_bytes() {
    let mut switch = with(
        "header x_h { bit<8> i; }",
        "Counter<bit<64>, bit<8>>(4, PSA_CounterType_t.PACKETS_AND_BYTES) c;
         DirectCounter<bit<64>>(PSA_CounterType_t.PACKETS) d;
         action count() { d.count(); }
         table t {
             key = { hdr.x.i: exact; }
             actions = { count; }
             default_action = count;
             psa_direct_counter = d;
         }",
        "c.count(hdr.x.i); t.apply(); send_to_port(ostd, (PortId_t) 1);",
    )
    .load();
    let e = entry(
        "ingress.t",
        &[("hdr.x.i", p4lang::runtime::Match::exact(1))],
        0,
        "ingress.count",
        &[],
    );
    switch.insert_entry(&e).unwrap();
    for packet in [&[1, 0, 0][..], &[1], &[2], &[200]] {
        one(&mut switch, packet);
    }
    let read = |i| switch.counter_read("ingress.c", i);
    assert_eq!(
        read(1),
        Ok(CounterValue {
            packets: 2,
            bytes: 4
        })
    );
    assert_eq!(
        read(2),
        Ok(CounterValue {
            packets: 1,
            bytes: 1
        })
    );
    assert_eq!(read(4), Err(ExternError::OutOfRange));
    assert_eq!(
        switch.direct_counter_read("ingress.t", Some(&e)),
        Ok(CounterValue {
            packets: 2,
            bytes: 0
        })
    );
    assert_eq!(
        switch.direct_counter_read("ingress.t", None),
        Ok(CounterValue {
            packets: 2,
            bytes: 0
        })
    );
    assert_eq!(switch.direct_counter_table("ingress.d"), Some("ingress.t"));
    switch
        .counter_write("ingress.c", 1, CounterValue::default())
        .unwrap();
    assert_eq!(
        switch.counter_read("ingress.c", 1),
        Ok(CounterValue::default())
    );
}

#[test]
fn hashes_of_serialised_data() {
    let mut switch = with(
        "header x_h { bit<72> text; bit<32> crc32; bit<16> crc16; bit<16> sum; bit<8> id; bit<8> bounded; bit<32> parts; }",
        "Hash<bit<32>>(PSA_HashAlgorithm_t.CRC32) crc32;
         Hash<bit<16>>(PSA_HashAlgorithm_t.CRC16) crc16;
         Hash<bit<16>>(PSA_HashAlgorithm_t.ONES_COMPLEMENT16) sum;
         Hash<bit<8>>(PSA_HashAlgorithm_t.IDENTITY) id;",
        "
        hdr.x.crc32 = crc32.get_hash(hdr.x.text);
        hdr.x.crc16 = crc16.get_hash(hdr.x.text);
        hdr.x.sum = sum.get_hash({ 16w0x4500, 16w0x0073 });
        hdr.x.id = id.get_hash({ hdr.x.text[15:8], hdr.x.text[7:0] });
        hdr.x.bounded = id.get_hash(8w100, hdr.x.text, 8w7);
        hdr.x.parts = crc32.get_hash({ hdr.x.text[71:68], hdr.x.text[67:3], hdr.x.text[2:0] });
        send_to_port(ostd, (PortId_t) 1);",
    )
    .load();
    let packet = [b"123456789".to_vec(), vec![0; 14]].concat();
    let out = one(&mut switch, &packet);
    assert_eq!(out[9..13], 0xcbf4_3926u32.to_be_bytes());
    assert_eq!(out[13..15], 0xbb3du16.to_be_bytes());
    assert_eq!(out[15..17], (!0x4573u16).to_be_bytes());
    assert_eq!(out[17], b'9');
    assert_eq!(out[18], 100 + b'9' % 7);
    assert_eq!(out[19..23], out[9..13], "the same bits in other pieces");
}

#[test]
fn checksums_of_a_header() {
    let mut switch = Psa {
        deparser_locals: "InternetChecksum() ck; Checksum<bit<32>>(PSA_HashAlgorithm_t.CRC32) crc;",
        deparser: "
            ck.clear();
            ck.add({ hdr.x.a, hdr.x.b });
            bit<16> state = ck.get_state();
            ck.subtract(hdr.x.b);
            hdr.x.only_a = ck.get();
            ck.set_state(state);
            hdr.x.both = ck.get();
            crc.update(hdr.x.a);
            crc.update(hdr.x.b);
            hdr.x.crc = crc.get();
            pkt.emit(hdr);",
        ..with(
            "header x_h { bit<32> a; bit<16> b; bit<16> only_a; bit<16> both; bit<32> crc; }",
            "",
            "send_to_port(ostd, (PortId_t) 1);",
        )
    }
    .load();
    let mut packet = b"123456".to_vec();
    packet.extend([0; 8]);
    let expected = |words: &[u16]| {
        let sum = words.iter().fold(0u32, |s, w| s + u32::from(*w));
        (!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes()
    };
    for _ in 0..2 {
        let out = one(&mut switch, &packet);
        assert_eq!(out[6..8], expected(&[0x3132, 0x3334]));
        assert_eq!(out[8..10], expected(&[0x3132, 0x3334, 0x3536]));
        assert_eq!(
            out[10..14],
            0x0972_d361u32.to_be_bytes(),
            "each packet starts anew"
        );
    }
}

#[test]
fn random_numbers_follow_the_seed() {
    let program = with(
        "header x_h { bit<16> v; bit<16> w; }",
        "Random<bit<16>>(100, 199) a; Random<bit<16>>(0, 0xffff) b;",
        "hdr.x.v = a.read(); hdr.x.w = b.read(); send_to_port(ostd, (PortId_t) 1);",
    );
    let draw = |seed| {
        let mut switch = program.load_with(Config {
            seed,
            ..Config::default()
        });
        (0..50)
            .map(|_| one(&mut switch, &[0; 4]))
            .collect::<Vec<_>>()
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    assert!(
        draw(1)
            .iter()
            .all(|p| (100..200).contains(&u16::from_be_bytes([p[0], p[1]])))
    );
}

#[test]
fn digests_are_queued_as_values() {
    let program = Psa {
        deparser_locals: "Digest<note_t>() digest;",
        deparser: "digest.pack({ hdr.x.v, 70w1 << 69 }); pkt.emit(hdr);",
        ..with(
            "header x_h { bit<8> v; } struct note_t { bit<8> v; bit<70> wide; }",
            "",
            "send_to_port(ostd, (PortId_t) 1);",
        )
    };
    let mut switch = program.load();
    one(&mut switch, &[5]);
    let message = switch.poll_digest().unwrap();
    assert_eq!(
        (message.name.as_str(), message.fields),
        ("ID.digest", vec![5.into(), (1 << 69).into()])
    );
    // Only one executor: with both, each block would copy all waiting messages.
    let mut switch = Switch::new(compile(&program.text()), Config::default()).unwrap();
    for _ in 0..5000 {
        one(&mut switch, &[5]);
    }
    assert_eq!(switch.digests_lost(), 5000 - 4096);
}

#[test]
fn meters_paint_packets() {
    let mut switch = with(
        "header x_h { bit<8> v; }",
        "Meter<bit<8>>(2, PSA_MeterType_t.PACKETS) m;",
        "
        PSA_MeterColor_t colour = m.execute(1);
        if (colour == PSA_MeterColor_t.GREEN) { hdr.x.v = 1; }
        else if (colour == PSA_MeterColor_t.YELLOW) { hdr.x.v = 2; }
        else { hdr.x.v = 3; }
        send_to_port(ostd, (PortId_t) 1);",
    )
    .load();
    assert_eq!(one(&mut switch, &[0]), [1], "not configured");
    let config = MeterConfig {
        cir: 1,
        cburst: 1,
        pir: 1,
        pburst: 2,
    };
    switch
        .meter_configure("ingress.m", 1, Some(config), 0)
        .unwrap();
    let painted: Vec<u8> = (0..4).map(|_| one(&mut switch, &[0])[0]).collect();
    assert_eq!(painted, [1, 2, 3, 3]);
    assert_eq!(switch.meter_config("ingress.m", 1), Ok(Some(config)));
    assert_eq!(switch.meter_config("ingress.m", 0), Ok(None));
}

#[test]
fn assertions_are_counted() {
    let mut switch = with(
        "header x_h { bit<8> v; }",
        "",
        "assert(hdr.x.v == 1); send_to_port(ostd, (PortId_t) 1);",
    )
    .load();
    through(&mut switch, &[1]);
    through(&mut switch, &[2]);
    assert_eq!(switch.stats().failed_assertions, 1);
}

#[test]
fn direct_meters_mark_when_they_are_called() {
    let mut switch = with(
        "header x_h { bit<8> i; bit<8> colour; }",
        "DirectMeter(PSA_MeterType_t.PACKETS) m;
         PSA_MeterColor_t c = PSA_MeterColor_t.RED;
         action marked() { c = m.execute(); }
         action still() {}
         table t { key = { hdr.x.i: exact; } actions = { marked; still; NoAction; } psa_direct_meter = m; }",
        "t.apply();
         hdr.x.colour = 9;
         if (c == PSA_MeterColor_t.GREEN) { hdr.x.colour = 0; }
         if (c == PSA_MeterColor_t.YELLOW) { hdr.x.colour = 1; }
         send_to_port(ostd, (PortId_t) 1);",
    )
    .load();
    let at = |v, action| entry("ingress.t", &[("hdr.x.i", Match::exact(v))], 0, action, &[]);
    let (metered, silent) = (at(1, "ingress.marked"), at(2, "ingress.still"));
    let config = MeterConfig {
        cir: 1,
        cburst: 1,
        pir: 1,
        pburst: 2,
    };
    for entry in [&metered, &silent] {
        switch.insert_entry(entry).unwrap();
        switch
            .direct_meter_configure("ingress.t", Some(entry), Some(config), 0)
            .unwrap();
    }
    let mut colours = |i: u8| {
        (0..3)
            .map(|_| one(&mut switch, &[i, 0])[1])
            .collect::<Vec<u8>>()
    };
    assert_eq!(colours(2), [9, 9, 9], "a hit alone marks nothing");
    assert_eq!(colours(1), [0, 1, 9]);
    assert_eq!(
        switch.direct_meter_config("ingress.t", Some(&metered)),
        Ok(Some(config))
    );
}

#[test]
fn unsupported_constructs_are_refused_with_their_position() {
    let error = with(
        "header x_h { bit<8> v; } struct b_t { x_h[4] v; }",
        "",
        "b_t[2] s; s[hdr.x.v].v.push_front(1); hdr.x.v = s[0].v[0].v;",
    )
    .refused();
    let LoadError::Unsupported { what, span } = error else {
        panic!("{error:?}")
    };
    assert!(
        what.contains("push or pop of a stack inside a stack element") && span.end > span.start,
        "{what}"
    );
}

#[test]
fn hashes_of_odd_sizes_are_filled_up_on_the_left() {
    // As in psa_switch: 0x456 in 12 bits is hashed as 04 56.
    let crc = |decls: &str, data: &str| {
        let ingress =
            format!("hdr.x.v = (bit<8>) h.get_hash({data}); send_to_port(ostd, (PortId_t) 1);");
        let mut switch = with(
            "header x_h { bit<8> v; }",
            &format!("Hash<bit<16>>(PSA_HashAlgorithm_t.CRC16) h; {decls}"),
            &ingress,
        )
        .load();
        one(&mut switch, &[0])
    };
    assert_eq!(
        crc("bit<12> a = 0x456;", "{ a }"),
        crc("bit<16> a = 0x0456;", "{ a }")
    );
    assert_ne!(
        crc("bit<12> a = 0x456;", "{ a }"),
        crc("bit<16> a = 0x4560;", "{ a }")
    );
}

#[test]
fn another_architecture_is_named() {
    let text = "#include <core.p4>
parser Reads<H>(packet_in pkt, out H hdr);
package Mine<H>(Reads<H> p);
struct headers_t {}
parser P(packet_in pkt, out headers_t hdr) { state start { transition accept; } }
Mine(P()) main;
";
    let error = Switch::new(compile(text), Config::default()).err();
    assert_eq!(error, Some(LoadError::Architecture("Mine".into())));
    assert_eq!(
        error.unwrap().to_string(),
        "architecture Mine is not supported; use psa, v1model, tna or t2na"
    );
}
