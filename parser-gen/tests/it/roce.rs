//! Programs that sum RoCEv2 compile and load with any other faults and filters.

use std::sync::Arc;

use p4lang::Files;
use parser_gen::engine::{Action, Copies, EngineSpec, Hold, Reorder, Select, UnitSpec};
use parser_gen::{Arch, Filter, Flow, Library, Options, generate_with, program};

fn unit(action: Action) -> UnitSpec {
    UnitSpec {
        about: format!("{action:?}."),
        select: Select::Counted,
        key: None,
        keys: None,
        when: None,
        action,
        cells: 3,
        entries: 3,
        outcomes: 2,
    }
}

fn copies() -> Copies {
    Copies {
        group: 16,
        later_ns: vec![(256, 0), (257, 5_000_000)],
    }
}

/// Compiles and loads a program; returns the text of `generated.p4`.
fn generated(arch: Arch, filter: &str, guards_jobs: bool, spec: &EngineSpec) -> String {
    let library = Library::builtin();
    let flows = [Flow {
        name: "f".to_owned(),
        filter: Filter::parse(&library, filter).unwrap(),
    }];
    let options = Options {
        waits: spec.waits(),
        guards_jobs,
        sums_roce: true,
        ..Options::aggregating(true)
    };
    let generated = generate_with(&library, &flows, &options, spec).unwrap();
    let mut files = Files::new();
    for (path, text) in program(arch, &generated) {
        files.insert(&path, text);
    }
    let compiled = p4lang::compile(&files, &arch.main_path(), &p4lang::Options::default());
    let compiled = compiled.unwrap_or_else(|errors| panic!("{arch:?} {filter}\n{errors}"));
    assert!(
        compiled.warnings.is_empty(),
        "{}",
        compiled.warnings.render(false)
    );
    let loaded = pipeline::Switch::new(Arc::new(compiled.program), pipeline::Config::default());
    loaded.unwrap_or_else(|error| panic!("{arch:?} {filter}: {error}"));
    generated.p4
}

#[test]
fn programs_that_sum_roce_compile_with_all_else() {
    for arch in [Arch::Psa, Arch::V1model] {
        let of = |ingress: Vec<Action>, egress: Vec<Action>| EngineSpec {
            ingress: ingress.into_iter().map(unit).collect(),
            egress: egress.into_iter().map(unit).collect(),
            ..EngineSpec::default()
        };
        let reorder = Action::Reorder(Reorder {
            distance: 3,
            within_ns: 1_000_000,
        });
        let specs = [
            EngineSpec::default(),
            of(vec![Action::Drop], vec![]),
            of(vec![], vec![Action::Drop]),
            of(vec![Action::Truncate(60)], vec![]),
            of(vec![Action::Truncate(60)], vec![Action::Drop]),
            of(
                vec![Action::Duplicate(copies()), reorder],
                vec![Action::Drop],
            ),
            of(vec![Action::Delay(Hold::default())], vec![]),
        ];
        for spec in &specs {
            for filter in [
                "agg.kind == 1",
                "udp.dport == 4791",
                "reth.len == 1024 && ip.ttl > 3",
                "aeth",
                "roce_data.first == 1",
            ] {
                generated(arch, filter, false, spec);
            }
            generated(arch, "roce.psn == 3", true, spec);
        }
    }
}

/// A WRITE to another address holds no values, and a SEND to another address is no registration.
#[test]
fn only_what_comes_to_a_jobs_address_is_parsed_so() {
    let text = generated(Arch::Psa, "udp", false, &EngineSpec::default());
    let state = text.split("state parse_roce {").nth(1).unwrap();
    let state = state.split("state ").next().unwrap();
    assert!(
        state.contains("(0x02005e5745, 0x2b): parse_roce_write;"),
        "{state}"
    );
    assert!(
        state.contains("(0x02005e5745, 0x24): parse_roce_hello;"),
        "{state}"
    );
    assert!(state.contains("default: parse_roce_next;"), "{state}");
}
