//! `engine.p4`: all selections and actions for every architecture, and only the parts that are used.

use p4lang::Files;
use parser_gen::engine::{
    Action, Copies, EngineSpec, Hold, Keys, Reorder, Select, Stage, TriggerSpec, UnitSpec,
};
use parser_gen::key::PacketKey;
use parser_gen::pace::Pace;
use parser_gen::psn;
use parser_gen::rewrite::{NewValue, Rewrite};
use parser_gen::{Arch, Filter, Flow, Library, Options, generate_with, program};

const ARCHS: [Arch; 3] = [Arch::Psa, Arch::V1model, Arch::Tna];
const SELECTS: [Select; 5] = [
    Select::Always,
    Select::Counted,
    Select::Probability,
    Select::GilbertElliott,
    Select::Share,
];

fn actions() -> Vec<Action> {
    vec![
        Action::Observe,
        Action::Drop,
        Action::Delay(Hold::default()),
        Action::Delay(Hold {
            drawn: true,
            keeps_order: false,
        }),
        Action::Duplicate(copies()),
        Action::Rewrite(rewrite()),
        Action::Rewrite(drawn()),
        Action::Reset,
        Action::Pace(pace(true)),
        Action::Pace(pace(false)),
        Action::Truncate(60),
        Action::Reorder(Reorder {
            distance: 3,
            within_ns: 1_000_000,
        }),
    ]
}

fn pace(holds: bool) -> Pace {
    Pace {
        step: 800 << 16,
        most_ns: 50_000_000,
        holds,
    }
}

fn copies() -> Copies {
    Copies {
        group: 16,
        later_ns: vec![(256, 0), (257, 5_000_000), (258, 10_000_000)],
    }
}

fn drawn() -> Rewrite {
    Rewrite::new(&Library::builtin(), &[("tcp.seq", NewValue::Drawn)], true).unwrap()
}

/// Fields of every kind: aligned and not, narrow and wide, with and without a checksum over them.
fn rewrite() -> Rewrite {
    let changes = [
        ("ip.ecn", NewValue::Set(3)),
        ("ip.src", NewValue::Set(0x0a00_0063)),
        ("ip.ttl", NewValue::Xor(0x81)),
        ("ipv6.dst", NewValue::Xor(u128::MAX)),
        ("ipv6.hlim", NewValue::Set(1)),
        ("tcp.flags.psh", NewValue::Xor(1)),
        ("tcp.seq", NewValue::Set(0xFFFF_FFFF)),
        ("udp.sport", NewValue::Set(0)),
        ("eth.src", NewValue::Set(7)),
    ];
    Rewrite::new(&Library::builtin(), &changes, true).unwrap()
}

/// Fields of every kind, for a key.
fn key() -> PacketKey {
    let fields = [
        "ipv6.src",
        "ip.ecn",
        "tcp.sport",
        "tcp.flags.syn",
        "eth.src",
    ];
    PacketKey::new(&Library::builtin(), &fields).unwrap()
}

fn connection() -> PacketKey {
    let fields = ["ip.src", "ip.dst", "tcp.sport", "tcp.dport"];
    PacketKey::new(&Library::builtin(), &fields).unwrap()
}

fn unit(select: Select, action: Action) -> UnitSpec {
    UnitSpec {
        about: format!("{select:?}, {action:?}."),
        select,
        key: (select == Select::Share).then(key),
        keys: None,
        when: None,
        action,
        cells: 3,
        entries: 3,
        outcomes: 2,
    }
}

/// Text of `engine.p4`, after the whole program has been compiled.
fn engine(arch: Arch, spec: &EngineSpec, aggregate: bool) -> String {
    let library = Library::builtin();
    let filter = Filter::parse(&library, "udp.dport == 7").unwrap();
    let flows = [Flow {
        name: "f".to_owned(),
        filter,
    }];
    let options = Options {
        waits: spec.waits(),
        guards_jobs: false,
        ..Options::aggregating(aggregate)
    };
    let generated = generate_with(&library, &flows, &options, spec).unwrap();
    let mut files = Files::new();
    let mut engine = String::new();
    for (path, text) in program(arch, &generated) {
        if path.ends_with("/engine.p4") {
            engine.clone_from(&text);
        }
        files.insert(&path, text);
    }
    let compiled = p4lang::compile(&files, &arch.main_path(), &p4lang::Options::default());
    let compiled = match compiled {
        Ok(compiled) => compiled,
        Err(errors) => panic!("{arch:?} {spec:?}\n{errors}\n{engine}"),
    };
    // The sum looks up jobs for every packet but uses the result for updates only. The check takes longer than the rest.
    if !aggregate && (test_support::runs_all() || engine.len().is_multiple_of(16)) {
        let found = p4lang::validity::check(&compiled.program);
        assert!(found.is_empty(), "{arch:?} {spec:?}\n{found}");
    }
    engine
}

#[test]
fn every_unit_compiles_for_every_architecture() {
    for arch in ARCHS {
        let mut all = EngineSpec::default();
        for select in SELECTS {
            // A plan for Tofino refuses queues, truncated packets and waits.
            let is_refused = |action: &Action| {
                matches!(
                    action,
                    Action::Pace(_) | Action::Truncate(_) | Action::Reorder(_)
                )
            };
            let has_text = |action: &Action| arch != Arch::Tna || !is_refused(action);
            for action in actions().into_iter().filter(has_text) {
                all.ingress.push(unit(select, action.clone()));
                let mut alone = EngineSpec {
                    ingress: vec![unit(select, action)],
                    ..EngineSpec::default()
                };
                engine(arch, &alone, false);
                // On Tofino, a plan also refuses units that number keys.
                if arch != Arch::Tna && select != Select::Share {
                    alone.ingress[0].key = Some(connection());
                    for restarts in [false, true] {
                        alone.ingress[0].keys = Some(Keys { bits: 12, restarts });
                        engine(arch, &alone, false);
                    }
                }
            }
            all.egress.push(unit(select, Action::Drop));
        }
        engine(arch, &all, true);
    }
}

#[test]
fn a_program_has_only_what_its_faults_use() {
    for arch in ARCHS {
        let none = engine(arch, &EngineSpec::default(), false);
        for absent in ["egister", "ounter", "table ", "#define", "FaultUnit"] {
            assert!(!none.contains(absent), "{arch:?} {absent}: {none}");
        }
        assert!(engine(arch, &EngineSpec::default(), true).contains("#define AGGREGATES"));
        let counted = EngineSpec {
            ingress: vec![unit(Select::Counted, Action::Drop)],
            ..EngineSpec::default()
        };
        let counted = engine(arch, &counted, false);
        for absent in ["table t0", "states", "key_", "hold", "EGRESS"] {
            assert!(!counted.contains(absent), "{arch:?} {absent}: {counted}");
        }
    }
}

/// Each of a thousand flows has its own cells.
#[test]
fn registers_have_room_for_every_flow() {
    for arch in ARCHS {
        let spec = |cells: usize| EngineSpec {
            ingress: vec![UnitSpec {
                cells,
                entries: cells,
                ..unit(Select::Counted, Action::Drop)
            }],
            ..EngineSpec::default()
        };
        let text = engine(arch, &spec(1000), false);
        assert!(
            text.contains("1024") && text.contains("bit<16> cell_"),
            "{text}"
        );
        let text = engine(arch, &spec(256), false);
        assert!(
            text.contains("256") && text.contains("bit<8> cell_"),
            "{text}"
        );
    }
}

#[test]
fn texts() {
    let spec = EngineSpec {
        ingress: vec![
            unit(Select::GilbertElliott, Action::Delay(Hold::default())),
            unit(Select::Counted, Action::Drop),
            unit(Select::Always, Action::Delay(Hold::default())),
            unit(Select::Probability, Action::Duplicate(copies())),
            unit(Select::Always, Action::Observe),
        ],
        egress: vec![unit(Select::Counted, Action::Drop)],
        ..EngineSpec::default()
    };
    for arch in ARCHS {
        insta::assert_snapshot!(
            format!("engine_{}", arch.name()),
            engine(arch, &spec, false)
        );
    }
}

/// Packets of RDMA connections by their position, with every action. A plan for Tofino refuses them.
#[test]
fn places_in_connections() {
    let placed = |action| UnitSpec {
        key: Some(PacketKey::new(&Library::builtin(), &psn::CONNECTION).unwrap()),
        keys: Some(Keys {
            bits: 12,
            restarts: false,
        }),
        ..unit(Select::Psn, action)
    };
    for arch in [Arch::Psa, Arch::V1model] {
        let all = EngineSpec {
            ingress: actions().into_iter().map(placed).collect(),
            ..EngineSpec::default()
        };
        engine(arch, &all, true);
        let dropped = EngineSpec {
            ingress: vec![placed(Action::Drop)],
            ..EngineSpec::default()
        };
        insta::assert_snapshot!(
            format!("engine_psn_{}", arch.name()),
            engine(arch, &dropped, false)
        );
    }
}

/// The text that p4lang's tests check against a Tofino is the generated one.
#[test]
fn the_text_that_is_measured_is_this_one() {
    let spec = EngineSpec {
        ingress: vec![UnitSpec {
            about: "Fault loss: drop, bursts, 1 % in, 33 % out.".to_owned(),
            ..unit(Select::GilbertElliott, Action::Drop)
        }],
        ..EngineSpec::default()
    };
    let measured = include_str!("../../../p4src/lang/tests/tofino/engine.p4");
    let written = engine(Arch::Tna, &spec, true);
    assert_eq!(written, measured, "{written}");
}

/// Each key follows a separate trigger: counted, with and without time limits, for both directions of a connection, and without
/// a unit beside it.
#[test]
fn triggers_per_key() {
    let ends = [
        ["ip.src", "ip.dst"],
        ["tcp.sport", "tcp.dport"],
        ["udp.sport", "udp.dport"],
    ];
    let both = PacketKey::both_ways(&Library::builtin(), &ends).unwrap();
    let stage = |count, units: &[usize], within_ns| Stage {
        count,
        units: units.to_vec(),
        within_ns,
    };
    let plain = TriggerSpec {
        about: "Trigger plain.".to_owned(),
        stages: vec![stage(3, &[], None)],
        on_for_ns: None,
        resets: Vec::new(),
        key: Some(both),
        keys: Some(Keys {
            bits: 12,
            restarts: true,
        }),
        counted: true,
        entries: 1,
    };
    let timed = TriggerSpec {
        about: "Trigger timed.".to_owned(),
        stages: vec![stage(1, &[], None), stage(2, &[0], Some(1_000_000))],
        on_for_ns: Some(50_000_000),
        resets: vec![1],
        key: Some(key()),
        keys: Some(Keys {
            bits: 16,
            restarts: false,
        }),
        counted: true,
        entries: 1,
    };
    let waiting = |when, select, action| UnitSpec {
        when: Some(when),
        ..unit(select, action)
    };
    let spec = EngineSpec {
        ingress: vec![
            unit(Select::Counted, Action::Drop),
            waiting(0, Select::Probability, Action::Delay(Hold::default())),
            waiting(1, Select::Always, Action::Observe),
        ],
        triggers: vec![plain.clone(), timed],
        ..EngineSpec::default()
    };
    let alone = EngineSpec {
        triggers: vec![plain],
        ..EngineSpec::default()
    };
    for arch in [Arch::Psa, Arch::V1model] {
        insta::assert_snapshot!(
            format!("engine_triggers_per_key_{}", arch.name()),
            engine(arch, &spec, false)
        );
        assert!(engine(arch, &alone, false).contains("#define FAULTS"));
    }
}

/// Two triggers with all features, and units that wait for them.
#[test]
fn triggers() {
    let stage = |count, units: &[usize], within_ns| Stage {
        count,
        units: units.to_vec(),
        within_ns,
    };
    let waiting = |when, select, action| UnitSpec {
        when: Some(when),
        ..unit(select, action)
    };
    let spec = EngineSpec {
        ingress: vec![
            unit(Select::Counted, Action::Drop),
            waiting(0, Select::Probability, Action::Delay(Hold::default())),
            waiting(1, Select::Always, Action::Observe),
        ],
        triggers: vec![
            TriggerSpec {
                about: "Trigger plain.".to_owned(),
                stages: vec![stage(3, &[0], None)],
                on_for_ns: None,
                resets: Vec::new(),
                key: None,
                keys: None,
                counted: false,
                entries: 0,
            },
            TriggerSpec {
                about: "Trigger timed.".to_owned(),
                stages: vec![stage(1, &[], None), stage(2, &[0, 1], Some(1_000_000))],
                on_for_ns: Some(50_000_000),
                resets: vec![1],
                key: None,
                keys: None,
                counted: false,
                entries: 1,
            },
        ],
        ..EngineSpec::default()
    };
    for arch in [Arch::Psa, Arch::V1model] {
        insta::assert_snapshot!(
            format!("engine_triggers_{}", arch.name()),
            engine(arch, &spec, false)
        );
    }
}
