//! Compares the two executors: random programs, entries and packets by seed, and p4src's own programs. All other tests of
//! this crate also run their programs in both (`support::load`).

use crate::support::aggregate::{self, WINDOW, WORKERS, update};
use crate::support::program::{Dice, Writer};
use crate::support::{call, compile, sent};
use p4lang::runtime::{FieldMatch, Match, TableEntry};
use parser_gen::{Arch, FrameValues};
use pipeline::{Config, Executor, FilterConfig, MeterConfig, Switch};

/// Default number of programs; `WEIR_DIFFERENTIAL_PROGRAMS` sets another one, `WEIR_DIFFERENTIAL_SEED` the first seed.
const PROGRAMS: u64 = 150;
const PACKETS: usize = 12;

fn both() -> Config {
    Config {
        executor: Executor::Both,
        ..Config::default()
    }
}

fn from_environment(name: &str, otherwise: u64) -> u64 {
    #[allow(clippy::disallowed_methods, reason = "a switch of this test")]
    let value = std::env::var(name).ok();
    value.and_then(|v| v.parse().ok()).unwrap_or(otherwise)
}

/// Configures meters and filters with small limits, if the program has them, and a member of its value set.
fn configure(switch: &mut Switch, dice: &mut Dice) {
    let meter = MeterConfig {
        cir: 1,
        cburst: 1 + dice.word() % 60,
        pir: 2,
        pburst: 1 + dice.word() % 90,
    };
    let filter = FilterConfig {
        gain_ns: 1000,
        decay_ns: 500,
        low: 10,
        high: 1000,
        probability_ppm: 500_000,
    };
    for index in 0..8 {
        for name in ["I.m", "I.own"] {
            let _absent = switch.meter_configure(name, index, Some(meter), 0);
        }
        for name in ["I.low", "I.red"] {
            let _absent = switch.filter_configure(name, index, Some(filter), 0);
        }
    }
}

fn random_entry(dice: &mut Dice, control: &str) -> TableEntry {
    let small = |dice: &mut Dice, n| u128::from(dice.word() % n);
    let (table, key, priority) = match dice.below(3) {
        0 => {
            let key = vec![
                ("hdr.x.a", Match::exact(small(dice, 16))),
                ("valid", Match::exact(small(dice, 2))),
            ];
            ("exact", key, 0)
        }
        1 => {
            let mask = *[0, 1, 3, 0xff00, 0xffff].get(dice.below(5)).unwrap_or(&0);
            let mut key = vec![("t", Match::ternary(small(dice, 65_536) & mask, mask))];
            let low = small(dice, 200);
            let high = low + small(dice, 56);
            key.push(("r", Match::range(low, high)));
            if dice.below(3) == 0 {
                key.push(("o", Match::optional(small(dice, 2))));
            }
            ("masked", key, 1 + dice.below(4) as i32)
        }
        _ => {
            let prefix_len = dice.below(33) as u32;
            let value = small(dice, 1 << 32);
            let value = (value >> (32 - prefix_len)) << (32 - prefix_len);
            ("routed", vec![("l", Match::lpm(value, prefix_len))], 0)
        }
    };
    let action = match dice.below(3) {
        0 => {
            let wide = u128::from(dice.word()) << 6;
            call(
                &format!("{control}.set_a"),
                &[("v", small(dice, 256)), ("wide", wide)],
            )
        }
        1 => call(&format!("{control}.add"), &[("v", small(dice, 65_536))]),
        _ => call("NoAction", &[]),
    };
    let field = |(field, value): (&str, Match)| FieldMatch {
        field: field.into(),
        value,
    };
    TableEntry {
        table: format!("{control}.{table}"),
        key: key.into_iter().map(field).collect(),
        priority,
        action,
    }
}

fn random_packet(dice: &mut Dice) -> Vec<u8> {
    let length = dice.below(50);
    (0..length)
        .map(|_| match dice.below(3) {
            0 => dice.word() as u8,
            1 => dice.word() as u8 & 7,
            _ => dice.word() as u8 & 0x3f,
        })
        .collect()
}

#[test]
fn random_programs_do_the_same() {
    compare("ingress", &|seed| Writer::new(seed).program());
}

#[test]
fn random_tofino_programs_do_the_same() {
    compare("I", &|seed| Writer::new(seed).tofino_program());
}

fn compare(control: &str, write: &dyn Fn(u64) -> String) {
    let first = from_environment("WEIR_DIFFERENTIAL_SEED", 0);
    let count = from_environment("WEIR_DIFFERENTIAL_PROGRAMS", PROGRAMS);
    let (mut heard, mut failures) = (0, Vec::new());
    for seed in first..first + count {
        let text = write(seed);
        let mut switch = Switch::new(compile(&text), both())
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        let mut dice = Dice::new(seed ^ 0xd1ce);
        for _ in 0..20 {
            // Equal keys are refused.
            let _refused = switch.insert_entry(&random_entry(&mut dice, control));
        }
        configure(&mut switch, &mut dice);
        let mut sum = 0;
        for i in 0..PACKETS {
            let packet = random_packet(&mut dice);
            switch.handle_packet(i as u64 * 1000, dice.below(4) as u32, &packet);
            while let Some(transmit) = switch.poll_transmit() {
                sum += transmit.bytes.len();
            }
        }
        let differences = switch.take_differences();
        if let Some(difference) = differences.first() {
            failures.push(format!("seed {seed}: {difference}"));
            if failures.len() == 1 {
                println!("{text}");
            }
        }
        heard += u64::from(sum > 0);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(
        heard * 10 >= count * 9,
        "{heard} of {count} let a packet through"
    );
}

#[test]
fn the_aggregator_does_the_same() {
    for arch in [Arch::Psa, Arch::Tna] {
        the_aggregator(arch, FrameValues::V256);
    }
    for arch in [Arch::Psa, Arch::V1model] {
        the_aggregator(arch, FrameValues::V2048);
    }
}

fn the_aggregator(arch: Arch, size: FrameValues) {
    let mut switch = aggregate::switch_of(arch, size, both());
    let values = |worker, chunk| aggregate::values_of(size.count().into(), worker, chunk);
    let mut dice = Dice::new(3);
    for round in 0..4 {
        for worker in 0..WORKERS {
            let chunk = round % 2 * WINDOW + dice.below(2) as u32;
            let mut frame = update(worker, chunk, &values(worker, chunk));
            if dice.below(4) == 0 {
                let cut = dice.below(frame.len());
                frame.truncate(cut);
            }
            switch.handle_packet(1000, worker, &frame);
            sent(&mut switch);
        }
    }
}

#[test]
fn generated_parsers_and_the_fault_engine_do_the_same() {
    for arch in [Arch::Psa, Arch::Tna] {
        generated_parsers(arch);
    }
}

fn generated_parsers(arch: Arch) {
    let filters = [
        "ip.src == 10.0.0.0/8 && udp.dport == 53",
        "tcp.flags.syn && !tcp.flags.ack",
        "ipv6",
    ];
    let mut switch = match Switch::new(aggregate::program_for(arch, &filters), both()) {
        Ok(switch) => switch,
        Err(error) => panic!("{error}"),
    };
    let mut dice = Dice::new(7);
    for i in 0..60 {
        let mut frame = update(0, 0, &[1, 2, 3]);
        // Ethernet types, protocols, header lengths and ports that lead to other states, and any other byte.
        match dice.below(4) {
            0 => frame[12..14].copy_from_slice(dice_of(&mut dice, &[0x86dd, 0x8100, 0x0806])),
            1 => frame[23] = [6, 17, 1, 47][dice.below(4)],
            2 => frame[14] = 0x40 | dice.below(16) as u8,
            _ => {}
        }
        for _ in 0..dice.below(3) {
            let at = dice.below(frame.len());
            frame[at] = dice.word() as u8;
        }
        frame.truncate(14 + dice.below(frame.len() - 13));
        switch.handle_packet(i * 1000, dice.below(3) as u32, &frame);
        sent(&mut switch);
    }
}

fn dice_of(dice: &mut Dice, of: &[u16]) -> &'static [u8] {
    match of[dice.below(of.len())] {
        0x86dd => &[0x86, 0xdd],
        0x8100 => &[0x81, 0x00],
        _ => &[0x08, 0x06],
    }
}
