//! Meters keep their rates: over ten seconds of virtual time, the green traffic and the traffic that is not red match the
//! configuration within a thousandth, for packets and for bytes, on each architecture.

use crate::support::program::Dice;
use crate::support::tna::{TNA, Tna};
use crate::support::v1model::V1;
use crate::support::{Psa, sent};
use pipeline::{MeterConfig, Switch};

/// A program with one meter, and the function that reads a packet's color: 0 is green, 1 yellow, 2 red.
struct Metered {
    arch: &'static str,
    switch: Switch,
    meter: &'static str,
    /// Number of bytes that a meter counts beyond the frame.
    trailer: u64,
    colour: fn(&[u8]) -> usize,
}

/// `kind` is `PACKETS` or `BYTES`.
fn programs(kind: &str) -> [Metered; 3] {
    let first = |packet: &[u8]| usize::from(packet[0]);
    let psa = Psa {
        decls: "header x_h { bit<8> v; }",
        headers: "x_h x;",
        parser: "state start { pkt.extract(hdr.x); transition accept; }",
        locals: &format!("Meter<bit<8>>(1, PSA_MeterType_t.{kind}) m;"),
        ingress: "PSA_MeterColor_t colour = m.execute(0);
            if (colour == PSA_MeterColor_t.GREEN) { hdr.x.v = 0; }
            else if (colour == PSA_MeterColor_t.YELLOW) { hdr.x.v = 1; }
            else { hdr.x.v = 2; }
            send_to_port(ostd, (PortId_t) 1);",
        ..Psa::default()
    };
    let v1model = V1 {
        locals: &format!("meter(1, MeterType.{}) m;", kind.to_lowercase()),
        ingress: "m.execute_meter(0, hdr.x.a); s.egress_spec = 1;",
        ..V1::default()
    };
    let tna = Tna {
        parser: "state go { pkt.extract(hdr.b); transition accept; }",
        ..TNA
    };
    let tna = tna.running(
        &format!("Meter<bit<8>>(1, MeterType_t.{kind}) m;"),
        "hdr.b.v = (bit<8>) m.execute(0);",
    );
    [
        Metered {
            arch: "PSA",
            switch: psa.load(),
            meter: "ingress.m",
            trailer: 0,
            colour: first,
        },
        Metered {
            arch: "v1model",
            switch: v1model.load(),
            meter: "ingress.m",
            trailer: 0,
            colour: first,
        },
        Metered {
            arch: "TNA",
            switch: tna,
            meter: "I.m",
            // A Tofino counts the FCS.
            trailer: 4,
            // A Tofino's red is 3.
            colour: |packet| usize::from(packet[0].min(2)),
        },
    ]
}

const SECONDS: u64 = 10;
/// The average offered load; the rates below are a third and two thirds of it.
const PACKETS_A_SECOND: u64 = 3000;
const MEAN_LENGTH: u64 = 100;

/// The traffic that a meter passed, in units of its kind: green, and green or yellow.
fn passed(metered: &mut Metered, config: MeterConfig, bytes: bool) -> [u64; 2] {
    let Metered {
        switch,
        meter,
        colour,
        trailer,
        ..
    } = metered;
    switch.meter_configure(meter, 0, Some(config), 0).unwrap();
    let mut dice = Dice::new(7);
    let mut units = [0; 3];
    let gap = 1_000_000_000 / PACKETS_A_SECOND as usize;
    let mut now = 0;
    // Packets come at random times and with random lengths, so that no rhythm hides rounding errors.
    while now < SECONDS * 1_000_000_000 {
        now += dice.below(2 * gap) as u64;
        let length = MEAN_LENGTH as usize - 40 + dice.below(81);
        switch.handle_packet(now, 1, &vec![0; length]);
        let [(_, packet)] = &sent(switch)[..] else {
            panic!("one packet leaves");
        };
        units[colour(packet)] += if bytes { length as u64 + *trailer } else { 1 };
    }
    [units[0], units[0] + units[1]]
}

fn check(kind: &str, unit: u64) {
    let config = MeterConfig {
        cir: PACKETS_A_SECOND / 3 * unit,
        cburst: 5 * unit,
        pir: PACKETS_A_SECOND * 2 / 3 * unit,
        pburst: 10 * unit,
    };
    for mut metered in programs(kind) {
        let passed = passed(&mut metered, config, unit > 1);
        let asked = [
            config.cir * SECONDS + config.cburst,
            config.pir * SECONDS + config.pburst,
        ];
        for (what, (passed, asked)) in ["green", "green or yellow"]
            .into_iter()
            .zip(passed.into_iter().zip(asked))
        {
            let off = passed as f64 / asked as f64 - 1.0;
            println!(
                "{} {kind}: {what}: {passed} of {asked}: {:+.4} %",
                metered.arch,
                off * 100.0
            );
            assert!(
                off.abs() <= 0.001,
                "{} {kind} {what}: {passed} of {asked}",
                metered.arch
            );
        }
    }
}

#[test]
fn packets_pass_at_the_rates_of_a_meter() {
    check("PACKETS", 1);
}

#[test]
fn bytes_pass_at_the_rates_of_a_meter() {
    check("BYTES", MEAN_LENGTH);
}
