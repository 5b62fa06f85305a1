//! The names of crate `scenario` against the P4Info of the programs that they address, and its numbers against the text.

use std::collections::{BTreeMap, BTreeSet};

use p4lang::p4info::P4Info;
use parser_gen::Arch;
use scenario::model::Direction;
use scenario::plan::SwitchPlan;
use scenario::plan::names::fault;
use scenario::plan::names::{
    aggregate, classify, forward, group, guard, lease, port, roce, timeline,
};
use scenario::{Plan, TargetModel, load, plan};

const TYPES: &str = include_str!("../../../../p4src/common/types.p4");
const AGGREGATE_TYPES: &str = include_str!("../../../../p4src/common/aggregate_types.p4");
const ROCE_TYPES: &str = include_str!("../../../../p4src/common/roce_types.p4");
const PSA_MAIN: &str = include_str!("../../../../p4src/psa/main.p4");
const TNA: &str = include_str!("../../../../p4src/tna/main.p4");
const V1MODEL: &str = include_str!("../../../../p4src/v1model/main.p4");
const PSA: &str = include_str!("../../../../p4src/include/psa.p4");

/// One fault for each way to select.
const EVERY_SELECTION: &str = "
weir: 1
name: all
topology: {star: {hosts: [a, b]}}
flows: {f: {from: a, to: b}}
faults:
  - {id: always, flows: f, effect: {delay: 1ms}}
  - {id: nth, flows: f, effect: duplicate, select: {nth: 3}}
  - {id: every, flows: f, effect: drop, select: {every: 5}}
  - {id: probability, flows: f, effect: drop, select: {probability: 0.1}}
  - {id: chain, flows: f, effect: drop, select: {gilbert_elliott: {to_bad: 0.1, to_good: 0.2}}}
  - {id: leaving, flows: f, effect: drop, select: {probability: 0.1}, where: {egress: sw}}
";

const ARCHS: [Arch; 3] = [Arch::Psa, Arch::V1model, Arch::Tna];

fn planned() -> Plan {
    let scenario = load("all.yaml", EVERY_SELECTION).unwrap_or_else(|error| panic!("{error}"));
    plan(&scenario, &TargetModel::EMBEDDED).unwrap_or_else(|error| panic!("{error}"))
}

/// What a control plane may address in the program of `EVERY_SELECTION`'s switch.
fn p4info(arch: Arch) -> P4Info {
    let mut switch = planned().switches.remove(0);
    // The names of what sums are asked for, too.
    switch.aggregates = Some(parser_gen::FrameValues::V256);
    p4info_of(&switch, arch)
}

fn p4info_of(switch: &SwitchPlan, arch: Arch) -> P4Info {
    let generated = switch.generate().unwrap();
    let mut files = p4lang::Files::new();
    for (path, text) in parser_gen::program(arch, &generated) {
        files.insert(&path, text);
    }
    let options = p4lang::Options::default();
    p4lang::compile(&files, &arch.main_path(), &options)
        .unwrap_or_else(|errors| panic!("{errors}"))
        .p4info
}

/// Tables with their keys, and the names of their actions.
fn tables(info: &P4Info) -> BTreeMap<&str, (BTreeSet<&str>, BTreeSet<&str>)> {
    let action = |id: u32| {
        let mut actions = info.actions.iter();
        let action = actions.find(|action| action.preamble.id == id).unwrap();
        action.preamble.name.as_str()
    };
    let described = info.tables.iter().map(|table| {
        let keys = table.match_fields.iter().map(|key| key.name.as_str());
        let actions = table
            .action_refs
            .iter()
            .map(|reference| action(reference.id));
        (
            table.preamble.name.as_str(),
            (keys.collect(), actions.collect()),
        )
    });
    described.collect()
}

fn parameters<'i>(info: &'i P4Info, action: &str) -> BTreeSet<&'i str> {
    let mut actions = info.actions.iter();
    let action = actions
        .find(|other| other.preamble.name == action)
        .unwrap_or_else(|| panic!("{action}"));
    action
        .params
        .iter()
        .map(|param| param.name.as_str())
        .collect()
}

/// A wire that drops and one that holds: on Tofino a held packet is forwarded when it has come around.
#[test]
fn a_wire_forwards_by_port_in_every_architecture() {
    let text = "weir: 1
name: wire
topology: {wire: [a, b]}
flows: {f: {from: a, filter: icmp}}
faults:
  - {id: gone, flows: f, effect: drop, select: {nth: 3}}
  - {id: late, flows: f, effect: {delay: 1ms}}
";
    let scenario = load("wire.yaml", text).unwrap_or_else(|error| panic!("{error}"));
    let plan = plan(&scenario, &TargetModel::EMBEDDED).unwrap_or_else(|error| panic!("{error}"));
    for arch in ARCHS {
        let info = p4info_of(&plan.switches[0], arch);
        let tables = tables(&info);
        let (keys, actions) = &tables[forward::WIRE];
        assert_eq!(*keys, [forward::WIRE_KEY].into(), "{arch:?}");
        assert!(actions.contains(forward::UNICAST), "{arch:?}");
        assert!(!tables.contains_key(forward::TABLE), "{arch:?}");
    }
}

/// Of a leaf under two spines, and of a switch that several whole ways lead past; Tofino's program has one way.
#[test]
fn several_ways_have_these_names() {
    let text = "weir: 1
name: ways
topology: {leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 1}}
routing: ecmp
";
    let scenario = load("ways.yaml", text).unwrap_or_else(|error| panic!("{error}"));
    let plan = plan(&scenario, &TargetModel::EMBEDDED).unwrap_or_else(|error| panic!("{error}"));
    let leaf = plan.switch("leaf0").unwrap();
    assert!(
        !leaf
            .generate()
            .unwrap()
            .engine(Arch::Tna)
            .contains("MULTIPATH")
    );
    for arch in [Arch::Psa, Arch::V1model] {
        let info = p4info_of(leaf, arch);
        let tables = tables(&info);
        let (_, actions) = &tables[forward::TABLE];
        let by_mac = [
            forward::UNICAST,
            forward::MULTICAST,
            forward::BACK,
            forward::SPREAD,
            forward::BETWEEN,
        ];
        assert!(
            by_mac.iter().all(|action| actions.contains(action)),
            "{arch:?}"
        );
        let spread = [
            forward::PORT,
            forward::LIST,
            forward::NUM_WAYS,
            forward::TURN,
        ];
        assert_eq!(parameters(&info, forward::SPREAD), spread.into());
        assert_eq!(
            parameters(&info, forward::BETWEEN),
            [forward::PORT, forward::TARGET].into()
        );
        assert_eq!(parameters(&info, forward::FROM), [forward::ORIGIN].into());
        assert_eq!(
            parameters(&info, forward::AMONG),
            [forward::LIST, forward::NUM_WAYS].into()
        );
        let keys = |table: &str| tables[table].0.clone();
        assert_eq!(keys(forward::ORIGINS), [forward::KEY_SOURCE].into());
        assert_eq!(
            keys(forward::PAIRS),
            [forward::KEY_ORIGIN, forward::KEY_TARGET].into()
        );
        assert_eq!(
            keys(forward::NEXT_HOPS),
            [forward::KEY_LIST, forward::KEY_WAY].into()
        );
        let mut sizes = info.tables.iter();
        let next_hops = sizes.find(|table| table.preamble.name == forward::NEXT_HOPS);
        assert_eq!(next_hops.unwrap().size, forward::MAX_NEXT_HOPS as i64);
    }
}

#[test]
fn tables_actions_and_cells_have_these_names_in_every_architecture() {
    for arch in ARCHS {
        let info = p4info(arch);
        let tables = tables(&info);
        let assert_table = |table: &str, keys: &[&str], actions: &[&str]| {
            let Some((found_keys, found_actions)) = tables.get(table) else {
                panic!("{arch:?}: no table {table}");
            };
            assert_eq!(
                *found_keys,
                keys.iter().copied().collect(),
                "{arch:?} {table}"
            );
            for action in actions {
                assert!(found_actions.contains(action), "{arch:?} {table}: {action}");
            }
        };
        assert_table(
            forward::TABLE,
            &[forward::KEY],
            &[forward::UNICAST, forward::MULTICAST, forward::BACK],
        );
        assert_eq!(parameters(&info, forward::UNICAST), [forward::PORT].into());
        assert_eq!(
            parameters(&info, forward::MULTICAST),
            [forward::GROUP].into()
        );
        assert_table(
            aggregate::JOBS,
            &[aggregate::KEY_JOB],
            &[aggregate::AGGREGATE_JOB, aggregate::AGGREGATE_PART],
        );
        let members = [
            aggregate::KEY_JOB,
            aggregate::KEY_WORKER,
            aggregate::KEY_PROBE,
            aggregate::KEY_PORT,
        ];
        assert_table(aggregate::MEMBERS, &members, &[aggregate::MEMBER]);
        let of_a_job = [
            aggregate::ALL_WORKERS,
            aggregate::BASE,
            aggregate::WINDOW,
            aggregate::SLOT_MASK,
        ];
        assert_eq!(parameters(&info, aggregate::AGGREGATE_JOB), of_a_job.into());
        let of_a_part = of_a_job
            .into_iter()
            .chain([aggregate::UP_PORT, aggregate::UP_WORKER]);
        assert_eq!(
            parameters(&info, aggregate::AGGREGATE_PART),
            of_a_part.collect()
        );
        // A chip of Tofino's size has no room for another register (docs/tofino.md).
        let (_, actions) = &tables[aggregate::JOBS];
        let closes = arch != Arch::Tna;
        assert_eq!(
            actions.contains(aggregate::AGGREGATE_UNTIL),
            closes,
            "{arch:?}"
        );
        if closes {
            let parameters = parameters(&info, aggregate::AGGREGATE_UNTIL);
            assert_eq!(parameters, of_a_job.into());
        }
        assert_eq!(
            parameters(&info, aggregate::MEMBER),
            [aggregate::WORKER_BIT].into()
        );
        let counters: BTreeSet<&str> = info
            .counters
            .iter()
            .map(|c| c.preamble.name.as_str())
            .collect();
        let registers: BTreeSet<&str> = info
            .registers
            .iter()
            .map(|r| r.preamble.name.as_str())
            .collect();
        for direction in [Direction::Ingress, Direction::Egress] {
            let set_epoch = timeline::set_epoch(direction);
            assert_table(&timeline::table(direction), &[], &[&set_epoch]);
            assert_eq!(parameters(&info, &set_epoch), [timeline::EPOCH].into());
            let until = lease::until(direction);
            assert_table(&lease::table(direction), &[], &[&until]);
            assert_eq!(parameters(&info, &until), [lease::DEADLINE].into());
            assert!(counters.contains(&*lease::lapsed(direction)), "{arch:?}");
            let plan = planned();
            for planned in &plan.switches[0].units {
                let unit = planned.unit;
                if planned.direction != direction {
                    continue;
                }
                let pick = fault::part(direction, unit, fault::PICK);
                let keys = [fault::KEY_CLASS, fault::KEY_EPOCH];
                assert_table(&fault::select_table(direction, unit), &keys, &[&pick]);
                assert!(
                    counters.contains(&*fault::fired(direction, unit)),
                    "{arch:?}"
                );
                let counts = planned.fault != "always";
                assert_eq!(
                    registers.contains(&*fault::ordinals(direction, unit)),
                    counts,
                    "{arch:?}"
                );
            }
            let instance = format!("{}.", classify::instance(direction));
            assert!(
                tables.keys().any(|table| table.starts_with(&instance)),
                "{arch:?}"
            );
        }
        assert!(counters.contains(classify::NOTES), "{arch:?}");
        let sums = [0, 31, 32, 255].map(aggregate::sums);
        let state = [
            aggregate::OWNERS,
            aggregate::BITMAPS,
            aggregate::FLAGS,
            aggregate::SCALES,
        ];
        for register in state.into_iter().chain(sums.iter().map(String::as_str)) {
            assert!(registers.contains(register), "{arch:?} {register}");
        }
        assert_eq!(registers.contains(aggregate::MARKS), closes, "{arch:?}");
        let has_arrivals = registers.contains(aggregate::ARRIVALS);
        assert_eq!(has_arrivals, arch == Arch::Tna, "{arch:?}");
        assert!(counters.contains(aggregate::OUTCOMES), "{arch:?}");
    }
}

/// Jobs of which one has a rate: a switch that asks who may speak for them, where there is a text for it.
const RATED: &str = "
weir: 1
name: rated
topology: {star: {hosts: [a, b]}}
jobs: {j: {ranks: [a, b], rate: 1 Mbit/s}}
workload: {idle: {for: 1s}}
";

#[test]
fn the_guard_of_jobs_has_these_names() {
    let scenario = load("rated.yaml", RATED).unwrap_or_else(|error| panic!("{error}"));
    let plan = plan(&scenario, &TargetModel::EMBEDDED).unwrap_or_else(|error| panic!("{error}"));
    let switch = &plan.switches[0];
    assert!(switch.guards_jobs);
    for arch in [Arch::Psa, Arch::V1model] {
        let info = p4info_of(switch, arch);
        let tables = tables(&info);
        let (keys, actions) = &tables[guard::LEASES];
        assert_eq!(*keys, [guard::KEY_JOB].into(), "{arch:?}");
        assert!(actions.contains(guard::UNLIMITED) && actions.contains(guard::UNTIL));
        assert_eq!(parameters(&info, guard::UNTIL), [guard::DEADLINE].into());
        let (keys, actions) = &tables[guard::SENDERS];
        assert_eq!(*keys, [guard::KEY_JOB, guard::KEY_PORT].into(), "{arch:?}");
        assert!(actions.contains(guard::SENDER), "{arch:?}");
        let of = |name: &str| {
            info.counters
                .iter()
                .any(|counter| counter.preamble.name == name)
        };
        assert!(of(guard::OUTCOMES) && of(guard::STRANGERS), "{arch:?}");
        let meters: Vec<&str> = info
            .meters
            .iter()
            .map(|meter| meter.preamble.name.as_str())
            .collect();
        assert_eq!(meters, [guard::METERS], "{arch:?}");
    }
    // Without a rate it is not there: on Tofino it has no room.
    let info = p4info(Arch::Psa);
    assert!(!tables(&info).contains_key(guard::LEASES));
}

#[test]
fn outcomes_of_the_guard_have_these_numbers() {
    for (name, outcome) in [
        ("PASSED", guard::Guarded::Passed),
        ("STRANGER", guard::Guarded::Stranger),
        ("LAPSED", guard::Guarded::Lapsed),
        ("OVER_RATE", guard::Guarded::OverRate),
    ] {
        let text = format!("const guarded_t GUARDED_{name} = {};", outcome as u64);
        assert!(AGGREGATE_TYPES.contains(&text), "{text}");
        assert_eq!(
            guard::outcome_cell(0x1FF, outcome),
            4 * 255 + outcome as u64
        );
    }
}

#[test]
fn a_rate_is_refused_by_targets_that_have_no_meter_before_sums() {
    let scenario = load("rated.yaml", RATED).unwrap_or_else(|error| panic!("{error}"));
    for target in [
        TargetModel::TOFINO,
        TargetModel::TOFINO2,
        TargetModel::PSA_SWITCH,
    ] {
        let refused = plan(&scenario, &target).expect_err("refused").to_string();
        assert!(
            refused.contains("this target cannot limit the rate of job `j`"),
            "{refused}"
        );
    }
    assert!(plan(&scenario, &TargetModel::SIMPLE_SWITCH_GRPC).is_ok());
}

#[test]
fn entries_give_actions_exactly_their_parameters() {
    for arch in ARCHS {
        let info = p4info(arch);
        let tables = tables(&info);
        for entry in planned().switches.iter().flat_map(|switch| &switch.entries) {
            let given: BTreeSet<&str> = entry
                .action
                .params
                .iter()
                .map(|(name, _)| name.as_str())
                .collect();
            assert_eq!(
                parameters(&info, &entry.action.name),
                given,
                "{}",
                entry.action.name
            );
            let (keys, actions) = &tables[entry.table.as_str()];
            assert!(actions.contains(entry.action.name.as_str()));
            assert!(
                entry
                    .key
                    .iter()
                    .all(|key| keys.contains(key.field.as_str()))
            );
        }
    }
}

#[test]
fn numbers_agree_with_the_text() {
    assert!(TYPES.contains(&format!("DUPLICATE_GROUP = {};", group::DUPLICATE)));
    let psa = PSA.to_uppercase();
    assert!(psa.contains(&format!(
        "PSA_PORT_RECIRCULATE = (PORTID_T) 0X{:X};",
        port::PSA_RECIRCULATE
    )));
    assert!(V1MODEL.contains(&format!("HOLD_PORT = {};", port::V1MODEL_HOLD)));
    let tofino = format!("RECIRCULATION_PORT = {};", port::TOFINO_RECIRCULATE);
    assert!(TNA.contains(&tofino));
    for model in [TargetModel::TOFINO, TargetModel::TOFINO2] {
        let (time, draw) = (model.time_bits, model.draw_bits);
        assert!(TNA.contains(&format!("typedef bit<{time}> time_ns_t;")));
        assert!(TNA.contains(&format!("typedef bit<{draw}> draw_t;")));
    }
}

/// What the controller writes of queue pairs stands in the programs that sum RoCEv2, and in no other.
#[test]
fn queue_pairs_have_these_names_where_roce_is_summed() {
    for arch in [Arch::Psa, Arch::V1model] {
        let mut switch = planned().switches.remove(0);
        switch.aggregates = Some(parser_gen::FrameValues::V256);
        assert!(!tables(&p4info_of(&switch, arch)).contains_key(roce::JOBS));
        switch.sums_roce = true;
        let info = p4info_of(&switch, arch);
        let tables = tables(&info);
        let wanted: [(&str, &[&str], &str, &[&str]); 3] = [
            (
                roce::JOBS,
                &[roce::KEY_ADDRESS],
                roce::SUMS,
                &[roce::JOB, roce::WINDOW],
            ),
            (
                roce::SENDERS,
                &[roce::KEY_QPN, roce::KEY_PORT],
                roce::SPEAKS,
                &[roce::JOB, roce::WORKER],
            ),
            (
                roce::WORKERS,
                &[
                    roce::KEY_JOB,
                    roce::KEY_COPY,
                    roce::KEY_ADDRESSED,
                    roce::KEY_PORT,
                ],
                roce::REACHES,
                &[roce::CONTACT, roce::MAC, roce::IP, roce::ALL_WORKERS],
            ),
        ];
        for (table, keys, action, params) in wanted {
            let (found_keys, actions) = &tables[table];
            assert_eq!(
                *found_keys,
                keys.iter().copied().collect(),
                "{arch:?} {table}"
            );
            assert!(actions.contains(action), "{arch:?} {table}: {actions:?}");
            assert_eq!(parameters(&info, action), params.iter().copied().collect());
        }
        let counts = |name: &str| info.counters.iter().any(|c| c.preamble.name == name);
        assert!(counts(roce::OUTCOMES), "{arch:?}");
        assert!(info.registers.iter().any(|r| r.preamble.name == roce::QPNS));
    }
}

#[test]
fn numbers_of_roce_are_those_of_the_text() {
    use roce::Outcome;
    for (name, outcome) in [
        ("UPDATED", Outcome::Updated),
        ("REGISTERED", Outcome::Registered),
        ("STRANGER", Outcome::Stranger),
        ("WRONG_ICRC", Outcome::WrongIcrc),
        ("MALFORMED", Outcome::Malformed),
        ("OTHER", Outcome::Other),
    ] {
        let text = format!("const bit<8> ROCE_{name} = {};", outcome as u64);
        assert!(ROCE_TYPES.contains(&text), "{text}");
    }
    let contacts = format!("#define NUM_CONTACTS {}\n", scenario::model::job::CONTACTS);
    for (text, name) in [(PSA_MAIN, "psa"), (V1MODEL, "v1model")] {
        assert!(text.contains(&contacts), "{name}");
    }
    // A bit, the job, the worker.
    assert_eq!(roce::qpn(0x0102, 3), 1 << 23 | 0x0102 << 6 | 3);
}
