//! Protocol files of the user's in scenarios.

use scenario::diagnostic::Source;
use scenario::{Given, TargetModel, check_together, load_with, named_files, plan};

use parser_gen::ProtocolSource;

const SCENARIO: &str = include_str!("../../../../testbeds/scenarios/memo-authors.yaml");
const MEMO: &str = include_str!("../../../../testbeds/scenarios/protocols/memo.yaml");

fn source(file: &str, text: &str) -> ProtocolSource {
    ProtocolSource {
        file: file.to_owned(),
        text: text.to_owned(),
    }
}

fn given(memo: &str) -> Given {
    let file = "protocols/memo.yaml";
    Given {
        files: [(file.to_owned(), Ok(source(file, memo)))].into(),
        ..Given::default()
    }
}

fn told(text: &str, given: &Given) -> String {
    let source = Source {
        file: "s.yaml",
        text,
    };
    match load_with("s.yaml", text, given) {
        Ok(_) => "valid\n".to_owned(),
        Err(found) => found.0.iter().map(|found| found.render(&source)).collect(),
    }
}

#[test]
fn what_is_wrong_with_a_protocol_is_told_where_it_is_named() {
    let named = |list: &str| SCENARIO.replace("[protocols/memo.yaml]", list);
    let unreadable = Given {
        files: [(
            "protocols/memo.yaml".to_owned(),
            Err("no such file".to_owned()),
        )]
        .into(),
        ..Given::default()
    };
    let twice = Given {
        protocols: vec![source("protocols/memo.yaml", MEMO)],
        ..given(MEMO)
    };
    let other = MEMO
        .replace("author_len}", "author}")
        .replace("length: author_len", "length: autor");
    let cases = [
        ("as it is shipped", SCENARIO.to_owned(), given(MEMO)),
        ("a broken file", SCENARIO.to_owned(), given(&other)),
        (
            "a shipped name",
            SCENARIO.to_owned(),
            given(&MEMO.replace("name: memo ", "name: redis ")),
        ),
        ("no such file", SCENARIO.to_owned(), unreadable),
        (
            "carried by itself",
            SCENARIO.to_owned(),
            given(&MEMO.replace("{by: tcp, when: [7070]}", "{by: memo, when: [7070]}")),
        ),
        ("read by nobody", SCENARIO.to_owned(), Given::default()),
        ("given twice", SCENARIO.to_owned(), twice),
        ("not named", named("[]"), given(MEMO)),
        ("no list", named("protocols/memo.yaml"), given(MEMO)),
        ("no name", named("[{a: b}]"), given(MEMO)),
        (
            "too many",
            named(&format!("[{}x]", "x, ".repeat(64))),
            given(MEMO),
        ),
    ];
    let all = cases.map(|(what, text, given)| format!("# {what}\n{}", told(&text, &given)));
    insta::with_settings!({omit_expression => true}, {
        insta::assert_snapshot!(all.join("\n"));
    });
}

#[test]
fn the_caller_is_told_which_files_to_read() {
    assert_eq!(named_files("s.yaml", SCENARIO), ["protocols/memo.yaml"]);
    assert_eq!(named_files("s.yaml", "weir: 1"), [""; 0]);
    assert_eq!(named_files("s.yaml", "protocols: [1, a, {b: c}]"), ["a"]);
    assert_eq!(named_files("s.yaml", "protocols: {"), [""; 0]);
}

/// The plan's program parses the protocol, and two scenarios with the same or other files are held against each other.
#[test]
fn plans_and_pairs_know_each_scenarios_protocols() {
    let of = |text: &str, given: &Given| {
        let scenario = load_with("s.yaml", text, given).unwrap_or_else(|error| panic!("{error}"));
        let plan = plan(&scenario, &TargetModel::EMBEDDED).unwrap();
        (scenario, plan)
    };
    let (first, first_plan) = of(SCENARIO, &given(MEMO));
    let generated = first_plan.switch("sw").unwrap().generate().unwrap();
    assert!(generated.p4.contains("parse_memo"), "{}", generated.p4);
    let text = SCENARIO
        .replace("memo", "diary")
        .replace("diary-authors", "d");
    let diary = MEMO.replace("memo", "diary").replace("7070", "7071");
    let file = "protocols/diary.yaml".to_owned();
    let given_diary = Given {
        files: [(file.clone(), Ok(source(&file, &diary)))].into(),
        ..Given::default()
    };
    let (second, second_plan) = of(&text, &given_diary);
    let pair = |a, b| check_together(&[a, b], &TargetModel::EMBEDDED).to_string();
    let apart = pair((&first, &first_plan), (&second, &second_plan));
    assert!(!apart.contains("`slow-ann` and `slow-ann`"), "{apart}");
    let same = pair((&first, &first_plan), (&first, &first_plan));
    assert!(same.contains("slow-ann"), "{same}");
    let (third, third_plan) = of(SCENARIO, &given(&MEMO.replace("bits: 8", "bits: 16")));
    let against = pair((&first, &first_plan), (&third, &third_plan));
    assert!(
        against.contains("protocol `memo` already exists"),
        "{against}"
    );
}
