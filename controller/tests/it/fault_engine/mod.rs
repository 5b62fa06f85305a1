//! The fault engine of p4src, executed, against the model of crate `scenario`: which packets are hit, packet by packet.
//!
//! A scenario's own plan is written into a switch of its own program, so the path from YAML to a dropped packet is whole.

mod checksums;
mod cut;
mod equivalence;
mod followed;
mod keyed;
mod keys;
mod lease;
mod triggers;
mod wait;

use std::collections::BTreeMap;
use std::sync::Arc;

use p4lang::runtime::Match;
use parser_gen::Arch;
use parser_gen::Library;
use parser_gen::rewrite::{NewValue, Rewrite};
use pipeline::{Config, Switch};
use scenario::model::{Direction, Scenario};
use scenario::replay::{Classified, Engine, Recorded, State};
use scenario::{Plan, TargetModel, plan::names};

/// How many of so many keys or packets a run draws: without `--all`, a tenth.
fn tenth<T: TryFrom<u32, Error: std::fmt::Debug>>(of: u32) -> T {
    T::try_from(test_support::cases(of)).expect("a small number")
}

/// One pass over the recirculation port.
const LOOP_NS: u64 = 20_000;
/// Between two packets.
const GAP_NS: u64 = 70_000;
const FIRST: u16 = 1001;
const SECOND: u16 = 1002;
const OTHER: u16 = 1003;

type Fault = (&'static str, &'static str, u32);

/// One fault of each effect, and a second delay, since delays add up: its id, the effect as it is written, and a period.
/// No two periods have a divisor in common, so each effect meets packets alone, and all meet some together.
const EFFECTS: [Fault; 5] = [
    ("seen", "observe", 1),
    ("twice", "duplicate", 2),
    ("late", "{delay: 10ms}", 3),
    ("later", "{delay: 5ms}", 5),
    ("lost", "drop", 7),
];

/// Whose programs are held to the model.
const ARCHS: [Arch; 3] = [Arch::Psa, Arch::V1model, Arch::Tna];

/// How long a packet that is held stays: whole rounds, one at least. simple_switch tells a packet in ingress no time when it
/// comes back, so there it goes round once more when its deadline has passed.
fn held_ns(arch: Arch, fate: Fate) -> u64 {
    let rounds = fate.delay_ns.div_ceil(LOOP_NS);
    LOOP_NS
        * match (arch, fate) {
            (
                _,
                Fate {
                    copies: 1,
                    delay_ns: 0,
                },
            ) => 0,
            (Arch::V1model, _) => rounds + 1,
            _ => rounds.max(1),
        }
}

/// A packet that is held until now goes round all the same.
const HELD_NO_TIME: Fate = Fate {
    copies: 2,
    delay_ns: 0,
};

/// The embedded switch, with the architecture's recirculation port.
fn target(arch: Arch) -> TargetModel {
    let own = match arch {
        Arch::Psa => TargetModel::EMBEDDED,
        Arch::V1model => TargetModel::SIMPLE_SWITCH_GRPC,
        Arch::Tna => TargetModel::TOFINO2,
    };
    TargetModel {
        recirculation_port: own.recirculation_port,
        draw_bits: own.draw_bits,
        time_bits: own.time_bits,
        compares_deadlines: own.compares_deadlines,
        ..TargetModel::EMBEDDED
    }
}

/// A switch that runs what a scenario's plan says.
struct Lab {
    scenario: Scenario,
    plan: Plan,
    switch: Switch,
    now_ns: u64,
    /// When copies of a packet left, by the packet's number.
    left: BTreeMap<u32, Vec<u64>>,
    sent: u32,
}

/// Flows `first`, `second` from host a to host s, and `other`, which no fault touches; the rest is the test's.
fn scenario_text(seed: u64, rest: &str) -> String {
    format!(
        "weir: 1\nname: lab\nseed: {seed}\ntopology: {{star: {{hosts: [a, s], switch: sw}}}}\nflows:\n  \
         first: {{from: a, to: s, filter: udp.dport == {FIRST}}}\n  \
         second: {{from: a, to: s, filter: udp.dport == {SECOND}}}\n  \
         other: {{from: a, to: s, filter: udp.dport == {OTHER}}}\nprotect: [other]\n{rest}"
    )
}

impl Lab {
    /// Everything written, epoch 0.
    fn new(arch: Arch, seed: u64, rest: &str) -> Lab {
        Lab::with_text(arch, seed, rest, |_, text| text.to_owned())
    }

    /// The same with P4 text that `edit` may change, file by file.
    fn with_text(arch: Arch, seed: u64, rest: &str, edit: impl Fn(&str, &str) -> String) -> Lab {
        Lab::of(arch, &scenario_text(seed, rest), edit)
    }

    /// Of a whole scenario.
    fn of(arch: Arch, text: &str, edit: impl Fn(&str, &str) -> String) -> Lab {
        Lab::planned_for(&target(arch), arch, text, edit)
    }

    fn planned_for(
        target: &TargetModel,
        arch: Arch,
        text: &str,
        edit: impl Fn(&str, &str) -> String,
    ) -> Lab {
        let scenario =
            scenario::load("lab.yaml", text).unwrap_or_else(|error| panic!("{text}\n{error}"));
        Lab::of_scenario(target, arch, scenario, edit)
    }

    fn of_scenario(
        target: &TargetModel,
        arch: Arch,
        scenario: Scenario,
        edit: impl Fn(&str, &str) -> String,
    ) -> Lab {
        let plan = scenario::plan(&scenario, target).unwrap_or_else(|error| panic!("{error}"));
        let planned = plan.switch("sw").unwrap();
        let generated = planned.generate().unwrap();
        let mut files = p4lang::Files::new();
        for (path, text) in parser_gen::program(arch, &generated) {
            files.insert(&path, edit(&path, &text));
        }
        let compiled = p4lang::compile(&files, &arch.main_path(), &p4lang::Options::default())
            .unwrap_or_else(|errors| panic!("{errors}"));
        let mut switch = Switch::new(Arc::new(compiled.program), Config::default()).unwrap();
        for entry in &planned.all_entries(arch, &generated) {
            switch
                .insert_entry(entry)
                .unwrap_or_else(|error| panic!("{entry:?}: {error}"));
        }
        for group in &planned.groups {
            switch.set_multicast_group(group).unwrap();
        }
        for session in &planned.sessions {
            switch.set_clone_session(session).unwrap();
        }
        Lab {
            scenario,
            plan,
            switch,
            now_ns: 1_000_000,
            left: BTreeMap::new(),
            sent: 0,
        }
    }

    /// Everything written, and the first stretch of the timeline in force.
    fn armed(arch: Arch, seed: u64, rest: &str) -> Lab {
        let mut lab = Lab::new(arch, seed, rest);
        lab.set_epoch(1);
        lab
    }

    fn set_epoch(&mut self, epoch: u16) {
        let planned = self.plan.switch("sw").unwrap();
        if let Some(before) = &planned.before_sum {
            let armed = before.epochs.iter().any(|epochs| epochs.contains(&epoch));
            self.switch
                .value_set_assign(names::fault::ARMED, &[])
                .unwrap();
            for port in before.ports.iter().filter(|_| armed) {
                let member = [Match::exact(u128::from(*port))];
                self.switch
                    .value_set_insert(names::fault::ARMED, &member)
                    .unwrap();
            }
            return;
        }
        for (table, call) in planned.set_epoch(epoch) {
            self.switch.set_default_action(&table, Some(&call)).unwrap();
        }
    }

    /// Sends the next packet at once, to this UDP port, and lets `GAP_NS` pass; its number.
    fn send(&mut self, port: u16) -> u32 {
        let number = self.sent;
        self.sent += 1;
        let (frame, in_port) = (self.frame(port, number), self.in_port());
        self.switch.handle_packet(self.now_ns, in_port, &frame);
        self.advance(GAP_NS);
        number
    }

    /// Lets time pass.
    fn advance(&mut self, ns: u64) {
        let until = self.now_ns + ns;
        self.collect(self.now_ns);
        while let Some(due) = self.switch.poll_timeout().filter(|due| *due <= until) {
            self.switch.handle_timeout(due);
            self.collect(due);
        }
        self.now_ns = until;
    }

    fn collect(&mut self, now_ns: u64) {
        let out_port = self.scenario.topology.next_hop("sw", "s").unwrap().number;
        while let Some(transmit) = self.switch.poll_transmit() {
            assert_eq!(transmit.port, out_port);
            assert_eq!(
                transmit.bytes.len(),
                46,
                "as it came in, without a hold header"
            );
            let number = u32::from_be_bytes(transmit.bytes[42..].try_into().unwrap());
            self.left.entry(number).or_default().push(now_ns);
        }
    }

    /// What the switch counted for a fault.
    fn fired(&self, fault: &str) -> u64 {
        let points = self
            .plan
            .injections
            .iter()
            .filter(|point| point.fault == fault);
        points
            .map(|point| {
                self.switch
                    .counter_read(&point.counter, point.cell as u64)
                    .unwrap()
                    .packets
            })
            .sum()
    }

    /// How many packets of a flow a fault has looked at.
    fn ordinal(&self, fault: &str, flow: &str) -> u128 {
        let mut points = self.plan.injections.iter();
        let point = points
            .find(|point| point.fault == fault && point.flow == flow)
            .unwrap();
        let register = names::fault::ordinals(Direction::Ingress, point.unit);
        let cell = self.switch.register_read(&register, point.cell as u64);
        cell.unwrap()[0].to_u128().unwrap()
    }

    /// A frame to this UDP port.
    fn frame(&self, port: u16, number: u32) -> Vec<u8> {
        let (a, s) = (
            self.scenario.topology.host("a").unwrap(),
            self.scenario.topology.host("s").unwrap(),
        );
        let mut frame = s.mac.value().to_be_bytes()[10..].to_vec();
        frame.extend(&a.mac.value().to_be_bytes()[10..]);
        frame.extend([0x08, 0x00, 0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0, 0]);
        frame.extend(a.ip.octets());
        frame.extend(s.ip.octets());
        frame.extend(999_u16.to_be_bytes());
        frame.extend(port.to_be_bytes());
        frame.extend([0, 12, 0, 0]);
        frame.extend(number.to_be_bytes());
        frame
    }

    fn in_port(&self) -> u32 {
        self.scenario.topology.next_hop("sw", "a").unwrap().number
    }

    /// The model that runs are proved with: what each packet meets from now on.
    fn model(&self) -> Model {
        let engine = Engine::new(&self.scenario, &self.plan, "sw").unwrap();
        let named = [("first", FIRST), ("second", SECOND), ("other", OTHER)];
        let classified = named.map(|(name, port)| {
            let frame = self.frame(port, 0);
            (name, engine.classify(&frame, self.in_port()))
        });
        Model {
            state: engine.start(),
            engine,
            classified: classified.into(),
            hits: vec![0; self.plan.injections.len()],
            spaced_ns: 0,
            engine_hit: false,
        }
    }

    /// What the model has hit, and the switch has counted, for each injection.
    fn assert_counts(&self, model: &Model) {
        for (index, point) in self.plan.injections.iter().enumerate() {
            let counted = self.switch.counter_read(&point.counter, point.cell as u64);
            assert_eq!(
                counted.unwrap().packets,
                model.hits[index],
                "{} on {}",
                point.fault,
                point.flow
            );
        }
    }
}

struct Model {
    engine: Engine,
    state: State,
    classified: BTreeMap<&'static str, Classified>,
    /// By injection.
    hits: Vec<u64>,
    /// How far the copies of the last packet are apart.
    spaced_ns: u64,
    /// Whether any fault hit the last packet.
    engine_hit: bool,
}

/// What should become of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fate {
    copies: usize,
    delay_ns: u64,
}

impl Model {
    fn next(&mut self, flow: &str) -> Fate {
        self.next_at(flow, 0)
    }

    /// The same of one that comes at a time.
    fn next_at(&mut self, flow: &str, at_ns: u64) -> Fate {
        let frame = Classified {
            at_ns,
            ..self.classified[flow].clone()
        };
        let passage = self.engine.pass(&mut self.state, &frame, 1);
        self.spaced_ns = passage.ingress.fate.spaced_ns;
        self.engine_hit = passage.verdicts().any(|verdict| !verdict.hits.is_empty());
        for hit in passage.verdicts().flat_map(|verdict| &verdict.hits) {
            self.hits[*hit] += 1;
        }
        let copies = passage.leaving(0);
        Fate {
            copies,
            delay_ns: if copies == 0 {
                0
            } else {
                passage.ingress.fate.delay_ns
            },
        }
    }
}

/// Packets of the two flows, interleaved without a pattern that a counter could share.
fn interleaved(packets: u32) -> impl Iterator<Item = (u16, &'static str)> {
    let mut state = 12345_u32;
    (0..packets).map(move |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        match state >> 29 {
            0..=3 => (FIRST, "first"),
            4..=6 => (SECOND, "second"),
            _ => (OTHER, "other"),
        }
    })
}

fn drop_with(select: &str, place: &str) -> String {
    format!(
        "faults:\n  - {{id: hit, flows: [first, second], effect: drop, select: {select}, where: {place}}}\n"
    )
}

#[test]
fn every_way_to_select_hits_the_packets_that_the_model_names() {
    for arch in ARCHS {
        let selections = [
            "always",
            "{nth: 7}",
            "{every: 5}",
            "{every: 1}",
            "{first: 9}",
            "{after: 100}",
            "{ordinals: [1, 7..12, 200..]}",
            "{burst: {start: 3, length: 4, every: 11}}",
            "{burst: {start: 20, length: 30}}",
            "{pattern: '01101'}",
            "{probability: 0.1}",
            "{probability: 1}",
            "{gilbert_elliott: {to_bad: 0.05, to_good: 0.3}}",
            "{gilbert_elliott: {to_bad: 0.1, to_good: 0.2, loss_bad: 0.7, loss_good: 0.02}}",
        ];
        for select in selections {
            for place in ["{ingress: sw}", "{egress: sw}"] {
                let mut lab = Lab::armed(arch, 42, &drop_with(select, place));
                let mut model = lab.model();
                let (mut hit, mut missed) = (0, 0);
                for (port, flow) in interleaved(600) {
                    let number = lab.send(port);
                    let expected = model.next(flow).copies;
                    let copies = lab.left.get(&number).map_or(0, Vec::len);
                    assert_eq!(
                        copies, expected,
                        "{select} {place}: packet {number} of flow {flow}"
                    );
                    assert!(flow != "other" || copies == 1, "a protected packet");
                    *(if copies == 0 { &mut hit } else { &mut missed }) += 1;
                }
                assert_eq!(lab.fired("hit"), hit, "{select} {place}");
                lab.assert_counts(&model);
                assert!(
                    hit > 0 && missed > 0,
                    "{select} {place}: {hit} hit, {missed} missed"
                );
            }
        }
    }
}

#[test]
fn the_seed_and_the_flow_decide_and_nothing_else() {
    for arch in ARCHS {
        let dropped = |seed: u64, port: u16| -> Vec<u32> {
            let mut lab = Lab::armed(arch, seed, &drop_with("{probability: 0.1}", "sw"));
            (0..300)
                .filter(|_| {
                    let number = lab.send(port);
                    !lab.left.contains_key(&number)
                })
                .collect()
        };
        let first = dropped(42, FIRST);
        assert!((10..60).contains(&first.len()), "{first:?}");
        assert_eq!(first, dropped(42, FIRST));
        assert_ne!(first, dropped(43, FIRST));
        assert_ne!(first, dropped(42, SECOND));
    }
}

/// A list of faults on flow `first`, each with its selection.
fn faults_on_first(faults: impl Iterator<Item = (&'static str, &'static str, String)>) -> String {
    let listed = faults.map(|(id, effect, select)| {
        format!("  - {{id: {id}, flows: first, effect: {effect}, select: {select}}}\n")
    });
    format!("faults:\n{}", listed.collect::<String>())
}

/// What an effect makes of packets that no other fault hits.
fn alone(effect: &scenario::model::effect::Effect) -> Fate {
    let fate = scenario::model::effect::Fate::after([(effect, 0)]);
    Fate {
        copies: fate.copies as usize,
        delay_ns: fate.delay_ns,
    }
}

#[test]
fn a_packet_that_is_held_advances_no_ordinal() {
    // A packet that is held for 10 ms passes 500 times while others come in.
    for arch in ARCHS {
        for faults in [&EFFECTS[..], &EFFECTS[2..3]] {
            let by_chance = faults.iter();
            let by_chance =
                by_chance.map(|(id, effect, _)| (*id, *effect, "{probability: 0.2}".to_owned()));
            let mut lab = Lab::armed(arch, 3, &faults_on_first(by_chance));
            let holds = lab
                .scenario
                .faults
                .iter()
                .any(|fault| fault.effect.longest_hold_ns() > 0);
            let mut model = lab.model();
            let fates: Vec<Fate> = (0..400)
                .map(|_| {
                    lab.send(FIRST);
                    model.next("first")
                })
                .collect();
            lab.advance(20_000_000);
            for (number, fate) in (0..).zip(&fates) {
                assert_eq!(
                    lab.left.get(&number).map_or(0, Vec::len),
                    fate.copies,
                    "packet {number}"
                );
            }
            for (fault, ..) in faults {
                assert_eq!(lab.ordinal(fault, "first"), 400, "{fault}");
            }
            if holds {
                let held = fates.iter().filter(|fate| fate.delay_ns > 0).count();
                assert!(held > 50, "{held}");
            }
            lab.assert_counts(&model);
            assert_eq!(lab.switch.recirculating(), 0);
        }
    }
}

#[test]
fn delays_are_drawn_and_order_is_kept_as_the_model_says() {
    let delays = [
        ("{uniform: [100us, 9ms]}", true),
        ("{normal: {mean: 5ms, sd: 2ms}, order: free}", true),
        ("{pareto: {scale: 200us, shape: 2}}", true),
        ("{uniform: [0s, 3ms], order: kept}", false),
        ("{latency: 2ms, jitter: 2ms, order: kept}", false),
    ];
    let selections = ["always", "{every: 3}", "{probability: 0.4}"];
    for arch in ARCHS {
        for (delay, everywhere) in delays {
            for select in selections {
                let text = format!(
                    "faults:\n  - {{id: late, flows: [first, second], effect: {{delay: {delay}}}, select: {select}}}\n"
                );
                if arch == Arch::Tna && !everywhere {
                    let scenario = scenario::load("lab.yaml", &scenario_text(3, &text)).unwrap();
                    let refused = scenario::plan(&scenario, &target(arch)).unwrap_err();
                    assert!(refused.to_string().contains("cannot keep the order"));
                    continue;
                }
                let mut lab = Lab::armed(arch, 3, &text);
                let mut model = lab.model();
                let mut expected = BTreeMap::new();
                for (port, flow) in interleaved(500) {
                    let at = lab.now_ns;
                    let fate = model.next_at(flow, at);
                    let number = lab.send(port);
                    let hit = model.engine_hit;
                    let held = if hit {
                        held_ns(arch, fate).max(held_ns(arch, HELD_NO_TIME))
                    } else {
                        0
                    };
                    expected.insert(number, vec![at + held]);
                }
                lab.advance(60_000_000);
                assert_eq!(lab.left, expected, "{arch:?}: {delay} {select}");
                let different: std::collections::BTreeSet<_> = lab.left.values().collect();
                assert!(different.len() > 100);
                lab.assert_counts(&model);
            }
        }
    }
}

#[test]
fn copies_leave_one_after_the_other_and_the_first_declared_duplicate_is_made() {
    let faults = "faults:
  - {id: thrice, flows: [first, second], effect: {duplicate: {copies: 2, spaced: 1ms}}, select: {every: 2}}
  - {id: late, flows: first, effect: {delay: 3ms}, select: {every: 3}}
  - {id: burst, flows: [first, second], effect: {duplicate: {copies: 15}}, select: {every: 5}}
  - {id: echo, flows: second, effect: {duplicate: {spaced: 50us}}, select: {probability: 0.5}}
  - {id: twice, flows: [first, second], effect: duplicate, select: {every: 7}}
";
    for arch in ARCHS {
        let mut lab = Lab::armed(arch, 5, faults);
        let mut model = lab.model();
        let mut expected: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        let mut copies = std::collections::BTreeSet::new();
        for (port, flow) in interleaved(400) {
            let at = lab.now_ns;
            let fate = model.next(flow);
            let number = lab.send(port);
            let times = (0..fate.copies).map(|copy| {
                let delay_ns = fate.delay_ns + model.spaced_ns * copy as u64;
                at + held_ns(arch, Fate { delay_ns, ..fate })
            });
            expected.insert(number, times.collect());
            copies.insert((fate.copies, model.spaced_ns));
        }
        lab.advance(60_000_000);
        assert_eq!(lab.left, expected, "{arch:?}");
        let kinds = [(1, 0), (2, 0), (2, 50_000), (3, 1_000_000), (16, 0)];
        assert_eq!(copies, kinds.into());
        lab.assert_counts(&model);
    }
}

#[test]
fn packets_leave_at_a_rate_or_end_beyond_it_as_the_model_says() {
    // 46 bytes each 70 us are 5.3 Mbit/s, of three flows.
    let effects = [
        "{rate: {limit: 1Mbit/s, queue: 13ms}}",
        "{rate: {limit: 300kbit/s, queue: 2kB}}",
        "{police: {rate: 900kbit/s, burst: 2kB}}",
    ];
    for arch in [Arch::Psa, Arch::V1model] {
        for effect in effects {
            for select in ["always", "{every: 2}", "{probability: 0.7}"] {
                let text = format!(
                    "faults:\n  - {{id: slow, flows: [first, second], effect: {effect}, select: {select}}}\n"
                );
                let mut lab = Lab::armed(arch, 3, &text);
                let mut model = lab.model();
                let mut expected = BTreeMap::new();
                let (mut lost, mut waited) = (0, 0);
                for (port, flow) in interleaved(900) {
                    let at = lab.now_ns;
                    let fate = model.next_at(flow, at);
                    let number = lab.send(port);
                    let held = match fate.delay_ns {
                        0 => 0,
                        _ => held_ns(arch, fate),
                    };
                    if fate.copies > 0 {
                        expected.insert(number, vec![at + held]);
                    }
                    lost += usize::from(fate.copies == 0);
                    waited += usize::from(held > 0);
                }
                lab.advance(100_000_000);
                assert_eq!(lab.left, expected, "{arch:?}: {effect} {select}");
                assert!(lost > 5, "{effect} {select}: {lost}");
                assert_eq!(
                    waited > 10,
                    effect.starts_with("{rate"),
                    "{effect} {select}"
                );
                lab.assert_counts(&model);
            }
        }
    }
}

#[test]
fn the_faults_of_a_step_start_and_end_together() {
    for arch in ARCHS {
        let mut lab = Lab::new(
            arch,
            1,
            "timeline:\n  - {name: storm, at: 1s, for: 1s}\nfaults:\n  \
         - {id: lost, flows: first, effect: drop, during: storm}\n  \
         - {id: late, flows: second, effect: {delay: 1ms}, during: storm}\n  \
         - {id: first-of-all, flows: second, effect: duplicate, select: {nth: 1}, during: storm}\n",
        );
        let storm = lab
            .plan
            .timeline
            .iter()
            .position(|epoch| epoch.step.as_deref() == Some("storm"))
            .unwrap();
        let epochs: Vec<u16> = lab.plan.timeline.iter().map(|epoch| epoch.epoch).collect();
        assert_eq!(
            epochs.len(),
            3,
            "before, storm, after: {:?}",
            lab.plan.timeline
        );
        let calm = |lab: &mut Lab| {
            for port in [FIRST, SECOND, FIRST, SECOND] {
                let at = lab.now_ns;
                let number = lab.send(port);
                assert_eq!(lab.left.get(&number), Some(&vec![at]), "untouched");
            }
        };
        calm(&mut lab);
        lab.set_epoch(epochs[0]);
        calm(&mut lab);
        assert_eq!(
            lab.fired("lost") + lab.fired("late") + lab.fired("first-of-all"),
            0
        );
        // All is written already: one write of the epoch, and the very next packets are hit, by ordinal 1.
        lab.set_epoch(epochs[storm]);
        let at = lab.now_ns;
        let (lost, late) = (lab.send(FIRST), lab.send(SECOND));
        let fate = Fate {
            copies: 2,
            delay_ns: 1_000_000,
        };
        let held = held_ns(arch, fate);
        lab.advance(5_000_000);
        assert_eq!(lab.left.get(&lost), None);
        assert_eq!(lab.left.get(&late), Some(&vec![at + GAP_NS + held; 2]));
        assert_eq!(
            (
                lab.fired("lost"),
                lab.fired("late"),
                lab.fired("first-of-all")
            ),
            (1, 1, 1)
        );
        lab.set_epoch(epochs[storm + 1]);
        calm(&mut lab);
        lab.set_epoch(0);
        calm(&mut lab);
        assert_eq!(
            (
                lab.fired("lost"),
                lab.fired("late"),
                lab.fired("first-of-all")
            ),
            (1, 1, 1)
        );
    }
}

#[test]
fn what_fires_is_composed_and_everything_is_counted() {
    // So many that each period meets each other one.
    let packets: u32 = EFFECTS.iter().map(|(.., period)| period).product();
    let (mut backwards, mut turned, mut turned_more) = (EFFECTS, EFFECTS, EFFECTS);
    backwards.reverse();
    turned.rotate_left(1);
    turned_more.rotate_left(2);
    for arch in ARCHS {
        let mut outcomes = Vec::new();
        for order in [EFFECTS, backwards, turned, turned_more] {
            let counted =
                order.map(|(id, effect, period)| (id, effect, format!("{{every: {period}}}")));
            let mut lab = Lab::armed(arch, 1, &faults_on_first(counted.into_iter()));
            let effects = lab.scenario.faults.iter().map(|fault| fault.effect.clone());
            let effects: Vec<_> = effects.collect();
            let mut model = lab.model();
            let (mut sent_at, mut fates) = (Vec::new(), Vec::new());
            for _ in 0..packets {
                sent_at.push(lab.now_ns);
                lab.send(FIRST);
                fates.push(model.next("first"));
            }
            lab.advance(50_000_000);
            for (number, (at, fate)) in (0..).zip(sent_at.iter().zip(&fates)) {
                let expected = vec![at + held_ns(arch, *fate); fate.copies];
                let left = lab.left.get(&number).cloned().unwrap_or_default();
                assert_eq!(left, expected, "order {order:?}, packet {number}: {fate:?}");
            }
            lab.assert_counts(&model);
            for effect in effects {
                assert!(
                    fates.contains(&alone(&effect)),
                    "{order:?}: nothing was hit by {effect} alone"
                );
            }
            // Each counts what the others drop.
            for (fault, _, period) in order {
                assert_eq!(lab.fired(fault), u64::from(packets / period), "{fault}");
            }
            let together = Fate {
                copies: 2,
                delay_ns: 15_000_000,
            };
            assert!(
                fates.contains(&together),
                "{order:?}: nothing was doubled and late twice"
            );
            outcomes.push(fates);
        }
        // No fault hides a packet from another, so the order of these does not matter.
        assert!(outcomes.iter().all(|fates| *fates == outcomes[0]));
    }
}

/// The sum over 16-bit words that a right checksum makes 0xFFFF (RFC 1071).
fn sum_of(parts: &[&[u8]]) -> u32 {
    let bytes: Vec<u8> = parts.concat();
    let words = bytes.chunks(2);
    let sum: u32 = words
        .map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)))
        .sum();
    let sum = (sum & 0xFFFF) + (sum >> 16);
    (sum & 0xFFFF) + (sum >> 16)
}

/// A frame with right checksums: Ethernet, tags, IPv4 with words of options, and UDP or TCP.
fn sound_frame(lab: &Lab, tags: &[u8], options: usize, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = lab.frame(FIRST, 0)[..12].to_vec();
    frame.extend(tags);
    frame.extend([0x08, 0x00]);
    let mut transport = match protocol {
        17 => vec![0x03, 0xE7, 0x03, 0xE9, 0, 8 + payload.len() as u8, 0, 0],
        _ => vec![
            0x03, 0xE7, 0x03, 0xE9, 0, 0, 0, 7, 0, 0, 0, 9, 0x50, 0x18, 1, 0, 0, 0, 0, 0,
        ],
    };
    transport.extend(payload);
    let (a, s) = (
        lab.scenario.topology.host("a"),
        lab.scenario.topology.host("s"),
    );
    let addresses = [a.unwrap().ip.octets(), s.unwrap().ip.octets()].concat();
    let length = 20 + 4 * options + transport.len();
    let mut ip = vec![
        0x45 + options as u8,
        0,
        0,
        length as u8,
        0,
        1,
        0x40,
        0,
        64,
        protocol,
        0,
        0,
    ];
    ip.extend(&addresses);
    ip.extend(vec![1; 4 * options]);
    let checksum = !(sum_of(&[&ip]) as u16);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    let pseudo = [0, protocol, 0, transport.len() as u8];
    let checksum = !(sum_of(&[&addresses, &pseudo, &transport]) as u16);
    let place = if protocol == 17 { 6 } else { 16 };
    transport[place..place + 2].copy_from_slice(&checksum.to_be_bytes());
    [frame, ip, transport].concat()
}

/// Bytes of tags, and words of options, before the checksums of such a frame.
type Sums = (usize, usize);

/// Whether the checksums of such a frame are right.
fn is_sound(frame: &[u8], tags: usize, options: usize) -> (bool, bool) {
    let ip = &frame[14 + tags..34 + tags + 4 * options];
    let transport = &frame[34 + tags + 4 * options..];
    let pseudo = [0, ip[9], 0, transport.len() as u8];
    let transport = sum_of(&[&ip[12..20], &pseudo, transport]);
    (sum_of(&[ip]) == 0xFFFF, transport == 0xFFFF)
}

/// Whether a frame is the reset of the TCP connection that another one belongs to, as a receiver sees it: it ends where IPv4
/// says, behind a header of five words with the flag and a right checksum.
fn is_reset(frame: &[u8], before: &[u8]) -> bool {
    let Some(ip) = frame[12..].windows(2).position(|pair| pair == [0x08, 0x00]) else {
        return false;
    };
    let ip = 14 + ip;
    let begin = ip + 4 * usize::from(frame[ip] & 15);
    if frame[ip + 9] != 6 || frame.len() < begin + 20 {
        return false;
    }
    let length = usize::from(u16::from_be_bytes([frame[ip + 2], frame[ip + 3]]));
    assert_eq!(ip + length, begin + 20);
    let tcp = &frame[begin..begin + 20];
    assert_eq!(tcp[12..14], [0x50, 0x14]);
    assert_eq!(frame.len(), before.len());
    let pseudo = [0, 6, 0, 20];
    assert_eq!(sum_of(&[&frame[ip + 12..ip + 20], &pseudo, tcp]), 0xFFFF);
    true
}

#[test]
fn bytes_change_as_the_model_says_and_checksums_follow() {
    let faults = "faults:\n  \
         - {id: marked, flows: all, effect: {set: {ip.ecn: 3, ip.ttl: 9, ip.src: 10.0.0.77}}, select: {every: 2}}\n  \
         - {id: moved, flows: all, effect: {set: {udp.sport: 53, tcp.seq: 0xfffffffe, tcp.flags.psh: 0}}, select: {every: 3}}\n  \
         - {id: broken, flows: all, effect: {corrupt: {field: ip.id, xor: 0xff}}, select: {every: 5}}\n  \
         - {id: mended, flows: all, effect: {corrupt: {field: tcp.window, xor: 0x8001, checksums: mended}}, select: {every: 7}}\n  \
         - {id: drawn, flows: all, effect: {corrupt: {field: tcp.ack, bits: 5, checksums: mended}}, select: {every: 4}}\n  \
         - {id: bytes, flows: all, effect: {corrupt: {field: udp.dport, bytes: 1, checksums: mended}}, select: {probability: 0.3}}\n  \
         - {id: rst, flows: all, effect: reset, select: {every: 11}}\n";
    let text = format!(
        "weir: 1\nname: lab\ntopology: {{star: {{hosts: [a, s], switch: sw}}}}\n\
         flows: {{all: 'eth.src == 02:57:45:00:00:01'}}\n{faults}"
    );
    for arch in ARCHS {
        let mut lab = Lab::of(arch, &text, |_, text| text.to_owned());
        lab.set_epoch(1);
        let engine = Engine::new(&lab.scenario, &lab.plan, "sw").unwrap();
        let mut state = engine.start();
        let tag: &[u8] = &[0x81, 0x00, 0x00, 0x05];
        let no_sum = |mut frame: Vec<u8>| {
            frame[40..42].fill(0);
            frame
        };
        // What may come, and where its checksums are.
        let kinds: Vec<(Vec<u8>, Option<Sums>)> = vec![
            (sound_frame(&lab, &[], 0, 17, b"abc"), Some((0, 0))),
            (sound_frame(&lab, tag, 0, 6, b"hello"), Some((4, 0))),
            (sound_frame(&lab, &[], 2, 6, b""), Some((0, 2))),
            (
                sound_frame(&lab, tag, 3, 17, b"\xff\xff\xff\xff"),
                Some((4, 3)),
            ),
            (no_sum(sound_frame(&lab, &[], 0, 17, b"none")), None),
            (sound_frame(&lab, &[], 0, 6, b"cut")[..40].to_vec(), None),
            (sound_frame(&lab, &[], 0, 6, b"cut")[..20].to_vec(), None),
        ];
        let (mut changed, mut resets) = (0, 0);
        for number in 0..7 * 210 {
            let (frame, sums) = &kinds[number % 7 * 3 % 7];
            let classified = engine.classify(frame, lab.in_port());
            let passage = engine.pass(&mut state, &classified, 1);
            let expected = engine.leaves_as(&passage.ingress, Recorded::whole(frame));
            let expected = expected.map(|expected| expected.bytes);
            changed += usize::from(expected.is_some());
            let in_port = lab.in_port();
            lab.switch.handle_packet(lab.now_ns, in_port, frame);
            lab.now_ns += GAP_NS;
            let left = lab.switch.poll_transmit().map(|transmit| transmit.bytes);
            let expected = expected.unwrap_or_else(|| frame.clone());
            assert_eq!(left.as_ref(), Some(&expected), "{arch:?}: packet {number}");
            let hit = |id: &str| {
                let hits = passage.ingress.hits.iter();
                hits.clone()
                    .any(|hit| lab.plan.injections[*hit].fault == id)
            };
            if hit("rst") && frame.len() > 50 {
                resets += usize::from(is_reset(&expected, frame));
            }
            if let Some((tags, options)) = sums.filter(|_| !hit("rst")) {
                let sound = is_sound(&expected, tags, options);
                assert_eq!(sound, (!hit("broken"), true), "{arch:?}: packet {number}");
            }
            if frame.len() == 46 {
                let ecn = expected[15] & 3;
                assert_eq!(ecn == 3, hit("marked"), "{arch:?}: packet {number}");
            }
        }
        assert!(changed > 700, "{changed}");
        assert!(resets > 20, "{resets}");
    }
    // What has no checksum gets none, and 0 is never made (RFC 768).
    let library = Library::builtin();
    let set = |to| Rewrite::new(&library, &[("udp.dport", NewValue::Set(to))], true).unwrap();
    let lab = Lab::of(Arch::Psa, &text, |_, text| text.to_owned());
    for port in 0..=u16::MAX {
        let mut frame = sound_frame(&lab, &[], 0, 17, b"x");
        let headers = library.parsed(&frame);
        set(port.into()).apply(&library, &headers, &mut frame, 0);
        assert_ne!(frame[40..42], [0, 0], "{port}");
        assert_eq!(is_sound(&frame, 0, 0), (true, true), "{port}");
    }
}

/// The comparison above can fail: P4 text that decides otherwise is told from the model.
#[test]
fn changed_p4_text_is_noticed() {
    let chain = "{gilbert_elliott: {to_bad: 0.1, to_good: 0.2, loss_bad: 0.7, loss_good: 0.02}}";
    let mutants = [
        (
            "u = u ^ u_;\n        d = d ^ d_;\n    }\n    table t1",
            "u = u_;\n        d = d ^ d_;\n    }\n    table t1",
            "{probability: 0.1}",
        ),
        (
            "mixed[31:24]: exact",
            "mixed[23:16]: exact",
            "{probability: 0.1}",
        ),
        (" d[15:8]: exact", " d[7:0]: exact", "{probability: 0.1}"),
        ("        t5.apply();\n", "", "{probability: 0.1}"),
        ("mixed = mixed ^ key_;", "", "{probability: 0.1}"),
        ("bad = bad ^ 1;", "bad = 1;", chain),
        ("v: range", "u: range", chain),
        (
            "t5.apply();\n            channel.apply();",
            "t5.apply();",
            chain,
        ),
        ("index == last_", "index == last_ + 1", "{every: 5}"),
        (
            "index = ordinals.read(cell_)",
            "index = ordinals.read(0)",
            "{every: 5}",
        ),
        (
            "ordinals.write(cell_, index + 1)",
            "ordinals.write(cell_, index)",
            "{first: 5}",
        ),
        ("fire0 == 1", "fire0 == 2", "{nth: 5}"),
    ];
    for (old, new, select) in mutants {
        let path = "psa/engine.p4";
        let mut lab = Lab::with_text(Arch::Psa, 42, &drop_with(select, "sw"), |file, text| {
            if file == path {
                assert_eq!(text.matches(old).count(), 1, "{old}: {text}");
                return text.replace(old, new);
            }
            text.to_owned()
        });
        lab.set_epoch(1);
        let mut model = lab.model();
        let differences = interleaved(600).filter(|(port, flow)| {
            let number = lab.send(*port);
            lab.left.get(&number).map_or(0, Vec::len) != model.next(flow).copies
        });
        assert!(
            differences.count() > 0,
            "`{new}` for `{old}` was not noticed"
        );
    }
}

/// Tofino has no stages for a sum that waits for a fault. A drop by ordinal is decided before it, in the same pass.
#[test]
fn a_drop_by_ordinal_stands_before_a_sum_on_tofino() {
    let workload = "workload: {training: {server: s, workers: [a], iterations: 1, aggregate_on: sw, window: 64}}\n";
    for select in ["{every: 5}", "{every: 1}", "{nth: 7}", "{nth: 1}"] {
        let rest = format!("{workload}{}", drop_with(select, "{ingress: sw}"));
        let text = scenario_text(42, &rest);
        for chip in [TargetModel::TOFINO, TargetModel::TOFINO2] {
            let mut lab = Lab::planned_for(&chip, Arch::Tna, &text, |_, text| text.to_owned());
            assert!(lab.plan.switch("sw").unwrap().before_sum.is_some());
            let mut model = lab.model();
            // Nothing is counted before it is armed, nor after.
            for (port, _) in interleaved(20) {
                let number = lab.send(port);
                assert!(lab.left.contains_key(&number), "{select}");
            }
            lab.set_epoch(1);
            let mut hit = 0;
            for (port, flow) in interleaved(100) {
                let number = lab.send(port);
                let copies = lab.left.get(&number).map_or(0, Vec::len);
                assert_eq!(copies, model.next(flow).copies, "{select} {number} {flow}");
                assert!(flow != "other" || copies == 1, "a protected packet");
                hit += u64::from(copies == 0);
            }
            assert_eq!(lab.fired("hit"), hit, "{select}");
            assert!(hit > 0, "{select}");
            lab.set_epoch(0);
            let number = lab.send(FIRST);
            assert!(lab.left.contains_key(&number), "{select}");
        }
    }
    // What is more than one stage has no room before a sum of Tofino 1, and takes two passes of Tofino 2.
    let text = scenario_text(
        42,
        &format!(
            "{workload}{}",
            drop_with("{probability: 0.1}", "{ingress: sw}")
        ),
    );
    let scenario = scenario::load("lab.yaml", &text).unwrap();
    let refused = scenario::plan(&scenario, &TargetModel::TOFINO).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("no pipeline stage left for fault `hit`"),
        "{refused}"
    );
    let plan = scenario::plan(&scenario, &TargetModel::TOFINO2).unwrap();
    assert!(plan.switch("sw").unwrap().before_sum.is_none());
}
