//! v1model: the paths of packets, and the metadata that they keep.

use crate::support::v1model::V1;
use crate::support::{one, sent, through};
use p4lang::runtime::{CloneSession, MulticastGroup, Replica};
use pipeline::{Config, DropReason, EgressQueues, Executor, Switch};

fn replicas(ports: &[(u32, u16)]) -> Vec<Replica> {
    let replica = |(port, instance): &(u32, u16)| Replica {
        port: *port,
        instance: *instance,
    };
    ports.iter().map(replica).collect()
}

fn group(switch: &mut Switch, id: u32, ports: &[(u32, u16)]) {
    let replicas = replicas(ports);
    switch
        .set_multicast_group(&MulticastGroup { id, replicas })
        .unwrap();
}

fn session(switch: &mut Switch, id: u32, ports: &[(u32, u16)], length: u32) {
    let session = CloneSession {
        id,
        replicas: replicas(ports),
        class_of_service: 0,
        packet_length_bytes: length,
    };
    switch.set_clone_session(&session).unwrap();
}

#[test]
fn a_packet_goes_to_egress_spec_and_from_0_to_0() {
    let mut switch = V1::default().load();
    assert_eq!(through(&mut switch, &[1, 2, 3]), [(1, vec![1, 2, 3])]);
    let untouched = V1 {
        ingress: "",
        ..V1::default()
    };
    assert_eq!(
        through(&mut untouched.load(), &[1, 2]),
        [(0, vec![1, 2])],
        "nothing was written: port 0"
    );
}

#[test]
fn port_511_drops_in_either_pipeline() {
    for (ingress, egress, reason) in [
        ("s.egress_spec = 511;", "", DropReason::Ingress),
        ("mark_to_drop(s);", "", DropReason::Ingress),
        ("s.mcast_grp = 1; mark_to_drop(s);", "", DropReason::Ingress),
        ("s.egress_spec = 1;", "mark_to_drop(s);", DropReason::Egress),
    ] {
        let program = V1 {
            ingress,
            egress,
            ..V1::default()
        };
        let mut switch = program.load();
        group(&mut switch, 1, &[(7, 0)]);
        assert_eq!(through(&mut switch, &[1, 2]), [], "{ingress} {egress}");
        assert_eq!(switch.stats().dropped(reason), 1, "{ingress} {egress}");
    }
}

#[test]
fn a_port_chosen_later_undoes_a_drop() {
    let program = V1 {
        ingress: "mark_to_drop(s); s.egress_spec = 3;",
        // The port that ingress chose is no longer relevant here; only 511 matters.
        egress: "hdr.x.a = (bit<8>) s.egress_spec; hdr.x.b = (bit<8>) s.egress_port; s.egress_spec = 9;",
        ..V1::default()
    };
    assert_eq!(through(&mut program.load(), &[1, 2]), [(3, vec![0, 3])]);
}

#[test]
fn parser_errors_reach_ingress_and_drop_nothing() {
    let program = V1 {
        ingress: "s.egress_spec = 1;
            if (s.parser_error == error.PacketTooShort) { s.egress_spec = 2; }
            if (s.parser_error == error.NoError) { s.egress_spec = 3; }",
        ..V1::default()
    };
    let mut switch = program.load();
    assert_eq!(through(&mut switch, &[1]), [(2, vec![1])]);
    assert_eq!(through(&mut switch, &[1, 2]), [(3, vec![1, 2])]);
    assert_eq!(switch.stats().parser_errors, 1);
}

#[test]
fn copies_of_a_group_do_not_see_each_other() {
    let program = V1 {
        meta: "bit<8> count;",
        ingress: "s.mcast_grp = 9; meta.count = 5; s.egress_spec = 511;",
        egress: "meta.count = meta.count + 1;
            hdr.x.a = (bit<8>) s.egress_rid;
            hdr.x.b = meta.count + (bit<8>) (s.instance_type << 4);
            if (s.egress_rid == 2) { hdr.x.setInvalid(); }",
        ..V1::default()
    };
    let mut switch = program.load();
    group(&mut switch, 9, &[(4, 1), (5, 2), (4, 3)]);
    assert_eq!(
        through(&mut switch, &[0, 0, 77]),
        [
            (4, vec![1, 0x56, 77]),
            (5, vec![77]),
            (4, vec![3, 0x56, 77])
        ],
        "instance_type 5"
    );
    switch.delete_multicast_group(9).unwrap();
    assert_eq!(through(&mut switch, &[0, 0]), []);
    assert_eq!(switch.stats().dropped(DropReason::EmptyGroup), 1);
}

/// As in simple_switch: only the validity changes when a header becomes valid or invalid.
#[test]
fn fields_of_invalid_headers_keep_written_values() {
    let keyed = |key: &str| {
        format!(
            "action found(bit<8> v) {{ hdr.x.a = v; }}
            table t {{
                key = {{ {key}: exact @name(\"k\"); }}
                actions = {{ found; NoAction; }}
                const entries = {{ 0 : found(40); 7 : found(47); }}
            }}"
        )
    };
    let exact = keyed("meta.y.a");
    let masked = keyed("meta.y.a & 0x0f");
    let part = keyed("meta.y.a[3:0]")
        .replace("0 :", "4w0 :")
        .replace("7 :", "4w7 :");
    let computed = keyed("meta.y.a + 0");
    let parts = "struct part_t { bit<8> f; x_h h; bit<8> n; }
        header_union u_t { x_h h; }
        header own_h { bit<8> a; }
        struct own_t { own_h h; bit<8> n; }";
    let within = keyed("meta.r.h.a");
    let inner = "control Sub(inout x_h h) { apply { h.b = h.a + 1; } }";
    // Declarations, locals, ingress, and the expected x.
    for (decls, locals, ingress, expected) in [
        ("", "", "meta.y.a = 7; hdr.x.a = meta.y.a;", [7, 2]),
        ("", "", "meta.y.a = 7; meta.y.setValid(); hdr.x.b = meta.y.a;", [1, 7]),
        (
            "",
            "",
            "meta.y.setValid(); meta.y.a = 9; meta.y.setInvalid(); hdr.x.a = meta.y.a; meta.y.setValid(); hdr.x.b = meta.y.a;",
            [9, 9],
        ),
        ("", "", "hdr.x.setInvalid(); hdr.x.b = 8; hdr.x.setValid();", [1, 8]),
        // Assigning an invalid header makes the destination invalid, and keeps its fields.
        (
            "",
            "",
            "meta.y.setValid(); meta.y.a = 3; meta.z.a = 4; meta.y = meta.z; hdr.x.a = meta.y.a;
            if (meta.y.isValid()) { hdr.x.b = 99; }",
            [3, 2],
        ),
        ("", "", "meta.y.a = 3; meta.y = {#}; hdr.x.a = meta.y.a;", [3, 2]),
        // This also holds within a struct, a list, a stack or a union; valid headers and other values are copied.
        (
            "",
            "",
            "meta.p.h.a = 9; meta.p.n = 5; meta.q = meta.p; hdr.x = { meta.q.h.a, meta.q.n };",
            [0, 5],
        ),
        (
            "",
            "",
            "meta.q.h = hdr.x; meta.p.h.a = 9; meta.q = meta.p; hdr.x.a = meta.q.h.b;
            if (meta.q.h.isValid()) { hdr.x.b = 99; }",
            [2, 2],
        ),
        ("", "", "meta.p.h = hdr.x; meta.q = meta.p; hdr.x.a = meta.q.h.b;", [2, 2]),
        ("", "", "meta.y.a = 9; meta.q = { 1, meta.y, 5 }; hdr.x = { meta.q.h.a, meta.q.n };", [0, 5]),
        ("", "", "meta.s[1].a = 9; meta.t = meta.s; hdr.x.a = meta.t[1].a;", [0, 2]),
        (
            "",
            "",
            "meta.s[0] = hdr.x; meta.s[1].a = 9; meta.t[1].a = 4; meta.t = meta.s; hdr.x = { meta.t[1].a, meta.t[0].b };",
            [4, 2],
        ),
        ("", "", "meta.u.h.a = 9; meta.v = meta.u; hdr.x.a = meta.v.h.a;", [0, 2]),
        ("", "", "meta.u.h = hdr.x; meta.v = meta.u; hdr.x.a = meta.v.h.b;", [2, 2]),
        (
            "struct deep_t { part_t p; bit<8> m; }",
            "deep_t d; deep_t e;",
            "d = { { 1, meta.y, 2 }, 3 }; d.p.h.a = 9; e.p.h.a = 4; e = d; hdr.x = { e.p.h.a, e.m };",
            [4, 3],
        ),
        // A header that becomes invalid in this way may hold values.
        (
            "",
            &within,
            "meta.r = { { 7 }, 1 }; meta.r = meta.o; t.apply();",
            [40, 2],
        ),
        ("", "", "meta.y = hdr.x; meta.y.setInvalid(); hdr.x.a = meta.y.b;", [2, 2]),
        ("", "", "meta.s[1].a = 6; bit<1> i = 1; meta.s[i].b = 5; hdr.x = { meta.s[1].b, meta.s[1].a };", [5, 6]),
        (inner, "Sub() sub;", "meta.y.a = 6; sub.apply(meta.y); hdr.x.a = meta.y.b;", [7, 2]),
        // All invalid headers are equal.
        ("", "", "meta.y.a = 1; if (meta.y == meta.z) { hdr.x.a = 77; }", [77, 2]),
        // A key that is such a field is 0, alone, under a mask or in part; a computed key is not.
        ("", &exact, "meta.y.a = 7; t.apply();", [40, 2]),
        ("", &exact, "meta.y.a = 7; meta.y.setValid(); t.apply();", [47, 2]),
        ("", &masked, "meta.y.a = 7; t.apply();", [40, 2]),
        ("", &part, "meta.y.a = 7; t.apply();", [40, 2]),
        ("", &within, "meta.r = { { 7 }, 1 }; t.apply();", [47, 2]),
        ("", &computed, "meta.y.a = 7; t.apply();", [47, 2]),
        // Such a field is also 0 in hashed data.
        (
            "",
            "",
            "meta.y.a = 7; bit<16> h; hash(h, HashAlgorithm.identity, 16w0, { meta.y.a, hdr.x.b }, 32w65535);
            hdr.x = { h[15:8], h[7:0] };",
            [0, 2],
        ),
    ] {
        let ingress = format!("s.egress_spec = 1; {ingress}");
        let program = V1 {
            decls: &format!("{parts} {decls}"),
            meta: "x_h y; x_h z; x_h[2] s; x_h[2] t; part_t p; part_t q; u_t u; u_t v; own_t o; own_t r;",
            locals,
            ingress: &ingress,
            ..V1::default()
        };
        for executor in [Executor::Fast, Executor::Reference, Executor::Both] {
            let mut switch = program.load_with(Config {
                executor,
                ..Config::default()
            });
            // A packet must not see anything of the previous one.
            for _ in 0..2 {
                assert_eq!(through(&mut switch, &[1, 2]), [(1, expected.to_vec())], "{ingress} {locals}");
            }
            assert_eq!(switch.take_differences(), [""; 0], "{ingress} {locals}");
        }
    }
}

#[test]
fn egress_reads_ingress_writes_to_an_invalid_header() {
    let program = V1 {
        meta: "x_h y;",
        ingress: "s.egress_spec = 1; meta.y.a = 6; hdr.x.setInvalid();",
        egress: "meta.y.b = hdr.x.b; hdr.x.setValid(); hdr.x.a = meta.y.a; hdr.x.b = meta.y.b + 1;",
        ..V1::default()
    };
    assert_eq!(one(&mut program.load(), &[1, 2]), [6, 3]);
}

const LISTS: &str = "@field_list(1) bit<8> kept; @field_list(1, 2) bit<8> both; bit<8> lost;";

#[test]
fn an_ingress_clone_is_the_packet_that_came_in() {
    let program = V1 {
        meta: LISTS,
        ingress: "meta.kept = 0x10; meta.both = 0x20; meta.lost = 0x40;
            clone_preserving_field_list(CloneType.I2E, 5, 1);
            hdr.x.a = 99; meta.kept = meta.kept + 1;
            mark_to_drop(s);",
        egress: "if (s.instance_type == 1) { hdr.x.b = meta.kept + meta.both + meta.lost; }",
        ..V1::default()
    };
    let mut switch = program.load();
    assert_eq!(through(&mut switch, &[1, 2, 3]), []);
    assert_eq!(switch.stats().dropped(DropReason::NoSession), 1);
    session(&mut switch, 5, &[(6, 0), (7, 0)], 0);
    let clone = vec![1, 0x31, 3];
    assert_eq!(
        through(&mut switch, &[1, 2, 3]),
        [(6, clone.clone()), (7, clone)],
        "made of a dropped packet; fields as they are when ingress ends"
    );
    session(&mut switch, 5, &[(6, 0)], 2);
    assert_eq!(through(&mut switch, &[1, 2, 3]), [(6, vec![1, 0x31])]);
}

#[test]
fn the_original_goes_on_as_if_nothing_had_been_cloned() {
    let program = V1 {
        meta: LISTS,
        ingress: "clone(CloneType.I2E, 5); hdr.x.a = 99; meta.lost = 7; s.egress_spec = 2;",
        egress: "hdr.x.b = meta.lost;",
        ..V1::default()
    };
    let mut switch = program.load();
    session(&mut switch, 5, &[(6, 0)], 0);
    assert_eq!(
        through(&mut switch, &[1, 2, 3]),
        [(6, vec![1, 0, 3]), (2, vec![99, 7, 3])]
    );
}

#[test]
fn an_egress_clone_has_the_headers_of_egress() {
    let program = V1 {
        meta: LISTS,
        ingress: "s.egress_spec = 1; meta.both = 3; meta.lost = 4;",
        egress: "if (s.instance_type == 2) { hdr.x.b = meta.both + meta.lost; }
            else {
                hdr.x.a = hdr.x.a + 1;
                clone_preserving_field_list(CloneType.E2E, 8, 2);
                mark_to_drop(s);
            }",
        ..V1::default()
    };
    let mut switch = program.load();
    session(&mut switch, 8, &[(3, 0)], 0);
    assert_eq!(through(&mut switch, &[1, 2, 9]), [(3, vec![2, 3, 9])]);
}

#[test]
fn endless_egress_clones_end() {
    let program = V1 {
        egress: "clone(CloneType.E2E, 8);",
        ..V1::default()
    };
    let mut switch = program.load_with(Config {
        max_passes: 4,
        ..Config::default()
    });
    session(&mut switch, 8, &[(3, 0)], 0);
    assert_eq!(through(&mut switch, &[1, 2]).len(), 5);
    assert_eq!(switch.stats().dropped(DropReason::PassLimit), 1);
}

#[test]
fn a_resubmitted_packet_starts_again() {
    let program = V1 {
        meta: LISTS,
        ingress: "if (s.instance_type == 0) {
                hdr.x.a = 99; meta.kept = 1; meta.both = 2; meta.lost = 4;
                s.egress_spec = 5;
                resubmit_preserving_field_list(2);
            } else {
                hdr.x.b = meta.kept + meta.both + meta.lost + (bit<8>) (s.instance_type << 4)
                    + (bit<8>) s.ingress_port;
                s.egress_spec = 1;
            }",
        ..V1::default()
    };
    let mut switch = program.load();
    switch.handle_packet(0, 8, &[1, 2, 3]);
    assert_eq!(
        sent(&mut switch),
        [(1, vec![1, 0x62, 3])],
        "instance_type 6; the port is not kept"
    );
}

#[test]
fn a_recirculated_packet_was_deparsed() {
    let program = V1 {
        meta: "@field_list(0) bit<8> rounds;",
        ingress: "s.egress_spec = 1; hdr.x.a = hdr.x.a + 1;
            if (s.instance_type == 4) { hdr.x.b = (bit<8>) s.packet_length; }",
        egress: "if (meta.rounds < 3) { meta.rounds = meta.rounds + 1; recirculate_preserving_field_list(0); }",
        ..V1::default()
    };
    let mut switch = program.load();
    switch.handle_packet(0, 0, &[1, 2, 3]);
    assert_eq!(sent(&mut switch), []);
    while let Some(due) = switch.poll_timeout() {
        switch.handle_timeout(due);
    }
    assert_eq!(sent(&mut switch), [(1, vec![5, 3, 3])]);
    assert_eq!(switch.stats().recirculated, 3);
}

#[test]
fn deprecated_calls_carry_their_field_lists() {
    let program = V1 {
        meta: "bit<8> kept; bit<8> lost;",
        ingress: "if (s.instance_type == 0) {
                meta.kept = 1; meta.lost = 4;
                resubmit({ meta.kept, s.ingress_port });
            } else {
                hdr.x.b = meta.kept + meta.lost + (bit<8>) s.ingress_port;
                s.egress_spec = 1;
            }",
        ..V1::default()
    };
    let mut switch = program.load();
    switch.handle_packet(0, 8, &[1, 2]);
    assert_eq!(sent(&mut switch), [(1, vec![1, 9])]);
}

#[test]
fn packets_are_cut_when_they_leave() {
    let program = V1 {
        egress: "truncate(3);",
        ..V1::default()
    };
    let mut switch = program.load();
    assert_eq!(one(&mut switch, &[1, 2, 3, 4]), [1, 2, 3]);
    assert_eq!(one(&mut switch, &[1, 2]), [1, 2]);
}

/// As in BMv2: the length applies to the packet, not to its copies, and the smallest of several applies.
#[test]
fn a_length_of_ingress_cuts_the_packet_that_leaves() {
    let program = V1 {
        ingress: "s.egress_spec = 1; truncate(4); truncate(6);
            if (hdr.x.a == 2) { s.mcast_grp = 1; }
            if (hdr.x.a == 3) { truncate(0); }
            if (hdr.x.a == 4 && s.instance_type == 0) { resubmit_preserving_field_list(1); truncate(1); }",
        egress: "if (hdr.x.a == 5) { truncate(2); }
            if (hdr.x.a == 6) { hdr.x.a = 8; truncate(3); recirculate_preserving_field_list(1); }
            if (hdr.x.a == 7) { truncate(5); }",
        ..V1::default()
    };
    for rate_bps in [None, Some(8_000_000)] {
        let egress_queues = EgressQueues {
            rate_bps,
            ..EgressQueues::default()
        };
        let mut switch = program.load_with(Config {
            egress_queues,
            ..Config::default()
        });
        group(&mut switch, 1, &[(2, 0)]);
        let mut now_ns = 0;
        for (first, length) in [(1, 4), (2, 8), (3, 0), (4, 4), (5, 2), (6, 4), (7, 4)] {
            // The first makes the second wait, if there is a rate.
            for _ in 0..2 {
                switch.handle_packet(now_ns, 0, &[first, 1, 2, 3, 4, 5, 6, 7]);
            }
            while let Some(due_ns) = switch.poll_timeout() {
                now_ns = due_ns;
                switch.handle_timeout(now_ns);
            }
            now_ns += 1_000_000;
            let lengths = sent(&mut switch).into_iter().map(|(_, bytes)| bytes.len());
            let lengths: Vec<_> = lengths.collect();
            assert_eq!(lengths, [length; 2], "{first} at {rate_bps:?}");
        }
    }
}

#[test]
fn times_are_microseconds_and_lengths_bytes() {
    let program = V1 {
        ingress: "s.egress_spec = 1;
            hdr.x.a = (bit<8>) s.ingress_global_timestamp; hdr.x.b = (bit<8>) s.packet_length;",
        egress: "hdr.x.a = hdr.x.a + (bit<8>) s.egress_global_timestamp + (bit<8>) s.deq_timedelta;
            hdr.x.b = hdr.x.b + (bit<8>) s.packet_length + (bit<8>) s.enq_qdepth;",
        ..V1::default()
    };
    let mut switch = program.load();
    switch.handle_packet(7_999, 0, &[0; 5]);
    assert_eq!(sent(&mut switch), [(1, vec![14, 10, 0, 0, 0])]);
}

#[test]
fn the_later_version_has_named_ports() {
    let program = V1 {
        before: "#define V1MODEL_VERSION 20200408",
        ingress: "PortId_t p = s.ingress_port + 1; s.egress_spec = p;",
        ..V1::default()
    };
    let mut switch = program.load();
    switch.handle_packet(0, 4, &[1, 2]);
    assert_eq!(sent(&mut switch), [(5, vec![1, 2])]);
}
