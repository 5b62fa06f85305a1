//! docs/faults.md: its table of effects and targets, and its sections, against the code.

use scenario::TargetModel;
use scenario::model::disruption::Does;
use scenario::model::effect::Effect;

const PAGE: &str = include_str!("../../../../docs/faults.md");

const TARGETS: [TargetModel; 5] = [
    TargetModel::EMBEDDED,
    TargetModel::SIMPLE_SWITCH_GRPC,
    TargetModel::PSA_SWITCH,
    TargetModel::TOFINO,
    TargetModel::TOFINO2,
];

/// The effect of a row, and whether each target takes it.
fn rows() -> Vec<(&'static str, Vec<bool>)> {
    let lines = PAGE
        .lines()
        .skip_while(|line| !line.starts_with("| effect |"));
    let lines = lines.skip(2).take_while(|line| line.starts_with('|'));
    let rows = lines.map(|line| {
        let mut cells = line.trim_matches('|').split(" | ").map(str::trim);
        let effect = cells.next().unwrap().trim_matches('`');
        let marks = cells.map(|mark| match mark {
            "✓" => true,
            "–" => false,
            _ => panic!("{line}"),
        });
        (effect, marks.collect())
    });
    rows.collect()
}

#[test]
fn the_table_of_targets_is_as_the_code_has_it() {
    let rows = rows();
    let packets = Effect::samples();
    let words = packets.iter().map(|effect| effect.word());
    for word in words.chain(Does::WORDS) {
        let begins = |text: &str| text == word || text.starts_with(&format!("{{{word}:"));
        assert!(rows.iter().any(|(row, _)| begins(row)), "no row of {word}");
        assert!(
            PAGE.contains(&format!("\n## `{word}`\n")),
            "no section of {word}"
        );
    }
    for (effect, marks) in rows {
        // Those of programs and switches have no flows.
        let is_of_program = Does::WORDS
            .iter()
            .any(|word| effect.starts_with(&format!("{{{word}:")));
        let flows = if is_of_program { "" } else { "flows: f, " };
        let text = format!(
            "weir: 1\nname: t\ntopology: {{star: {{hosts: [a, s], switch: sw}}}}\n\
             workload: {{commands: [{{name: web, host: s, run: nginx}}]}}\n\
             flows: {{f: {{from: a, to: s, filter: tcp}}}}\nfaults: [{{id: x, {flows}effect: {effect}}}]\n"
        );
        let scenario =
            scenario::load("t.yaml", &text).unwrap_or_else(|refused| panic!("{effect}\n{refused}"));
        let taken = TARGETS.map(|target| scenario::plan(&scenario, &target).is_ok());
        assert_eq!(marks, taken, "{effect}");
    }
}
