//! Generated text in the whole program: p4lang compiles it for every architecture.

use crate::common::text::Program;
use p4lang::Files;
use parser_gen::{Arch, Filter, Flow, Generated, Library, Options, generate, program};

const SETS: &[&[&str]] = &[
    &[],
    &[
        "ip.src == 10.0.0.1",
        "vlan.id == 5 || eth.dst == 02:00:00:00:00:01",
    ],
    &[
        "tcp.dport in {1..100, 443} && !tcp.flags.syn",
        "ipv6.src == 2001:db8::/32 && udp",
    ],
    &[
        "agg.worker == 3 && agg.kind in {1, 2}",
        "roce.opcode == 4 && roce.qp == 7",
    ],
    &[
        r#"ip.src == 10.0.0.1 && tcp.dport == 6379 && redis.command == "GET""#,
        r#"redis.command == "SET" && redis.key startswith "cart:""#,
        r#"!(redis.key in {"a", "sixteen-bytes-xx", "\"\\\x00"})"#,
    ],
];

fn generated(filters: &[&str], aggregate: bool) -> Generated {
    let library = Library::builtin();
    let flows: Vec<Flow> = filters
        .iter()
        .enumerate()
        .map(|(n, text)| Flow {
            name: format!("flow-{n}"),
            filter: Filter::parse(&library, text).unwrap_or_else(|error| panic!("{text}: {error}")),
        })
        .collect();
    generate(&library, &flows, &Options::aggregating(aggregate)).expect("these filters generate")
}

#[test]
fn every_text_compiles_for_every_architecture() {
    for arch in [Arch::Psa, Arch::V1model, Arch::Tna] {
        for filters in SETS {
            for aggregate in [false, true] {
                let generated = generated(filters, aggregate);
                let mut files = Files::new();
                for (path, text) in program(arch, &generated) {
                    files.insert(&path, text);
                }
                let compiled =
                    p4lang::compile(&files, &arch.main_path(), &p4lang::Options::default());
                if let Err(errors) = compiled {
                    panic!("{arch:?} {filters:?}\n{errors}");
                }
            }
        }
    }
}

#[test]
fn no_state_is_out_of_reach() {
    for filters in SETS {
        let generated = generated(filters, true);
        for parser in ["FlowParser", "FlowParserShort"] {
            assert_eq!(
                Program::new(&generated.p4, parser).unreachable(),
                Vec::<&str>::new(),
                "{filters:?}"
            );
        }
    }
}

/// Every entry names a key of its table, with the table's match kind.
#[test]
fn entries_fit_their_tables() {
    for filters in SETS {
        let generated = generated(filters, true);
        for entry in generated.entries_for("SwitchIngress.classify") {
            let table = entry.table.trim_start_matches("SwitchIngress.classify.");
            let begin = generated
                .p4
                .find(&format!("table {table} "))
                .expect("its table");
            let text = &generated.p4[begin..];
            let text = &text[..text.find("actions").expect("actions")];
            let kinds: Vec<&str> = text.lines().filter(|line| line.contains("@name")).collect();
            for field in &entry.key {
                let line = kinds
                    .iter()
                    .find(|line| line.contains(&format!("@name(\"{}\")", field.field)))
                    .unwrap_or_else(|| panic!("no key {} in {text}", field.field));
                let kind = match &field.value {
                    p4lang::runtime::Match::Exact(_) => ": exact ",
                    p4lang::runtime::Match::Ternary { .. } => ": ternary ",
                    p4lang::runtime::Match::Range { .. } => ": range ",
                    other => panic!("{other:?}"),
                };
                assert!(line.contains(kind), "{line} for {field:?}");
            }
            let all_exact = kinds.iter().all(|line| line.contains(": exact "));
            assert_eq!(entry.priority == 0, all_exact, "{entry:?}");
            if all_exact {
                assert_eq!(
                    entry.key.len(),
                    kinds.len(),
                    "an exact field is never left out: {entry:?}"
                );
            }
        }
    }
}
