//! The blocks of docs/from-other-tools.md: each is planned with the network that the page describes.

use scenario::{TargetModel, load, plan};

const PAGE: &str = include_str!("../../../../docs/from-other-tools.md");

const AROUND: &str = "
weir: 1
name: translated
topology: {star: {hosts: [c, s, a, b]}}
";

/// Of blocks that say nothing else.
const WORKLOAD: &str = "workload: {idle: {for: 10s}}\n";

/// Each block, and the line of the page that it begins on.
fn blocks() -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut lines = PAGE.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if line == "```yaml" {
            let block = lines.by_ref().map(|(_, line)| line);
            let block: Vec<&str> = block.take_while(|line| *line != "```").collect();
            found.push((number + 1, block.join("\n")));
        }
    }
    found
}

#[test]
fn every_translation_can_be_planned() {
    let blocks = blocks();
    assert!(blocks.len() >= 6, "the page has {} blocks", blocks.len());
    for (line, block) in blocks {
        let own = block.contains("workload:");
        let workload = if own { "" } else { WORKLOAD };
        let text = format!("{AROUND}{workload}{block}\n");
        let scenario = load("translated.yaml", &text)
            .unwrap_or_else(|errors| panic!("docs/from-other-tools.md:{line}\n{errors}"));
        let plan = plan(&scenario, &TargetModel::EMBEDDED)
            .unwrap_or_else(|errors| panic!("docs/from-other-tools.md:{line}\n{errors}"));
        assert!(
            !plan.injections.is_empty() || !plan.disruptions.is_empty(),
            "docs/from-other-tools.md:{line}"
        );
        for fault in &scenario.faults {
            let met = plan.injections.iter().any(|point| point.fault == fault.id);
            assert!(
                met,
                "docs/from-other-tools.md:{line}: {} acts nowhere",
                fault.id
            );
        }
    }
}

/// Faults as users of other tools write them. Each is refused, and what the hint says to write is planned.
const FOREIGN: [&str; 24] = [
    "loss: 25",
    "effect: {loss: 0.5%}",
    "effect: {loss: {loss: \"30\", correlation: \"25\"}}",
    "effect: {bandwidth: 1mbit}",
    "effect: {bandwidth: {rate: 1mbps, limit: 20971520}}",
    "effect: blackhole",
    "effect: {latency: 300ms}",
    "effect: {delay: 100ms, jitter: 20ms}",
    "effect: {delay: 100ms, probability: 30%}",
    "effect: drop, toxicity: 50%",
    "effect: slow_close",
    "effect: limit_data",
    "effect: gemodel",
    "effect: reset_peer",
    "effect: ecn",
    "effect: mangle",
    "effect: {corrupt: 5%}",
    "effect: {reorder: 25%}",
    "effect: {duplicate: 1%}",
    "effect: {drop: 2.5%}",
    "effect: {rate: 1Mbit/s}",
    "effect: {police: 2gbit}",
    "effect: {reorder: 5}",
    "effect: {delay: 100ms 10ms}",
];

/// A scenario of one fault of a flow of TCP.
fn one_fault(fault: &str) -> String {
    let flow = "flows: {f: {from: c, to: s, filter: tcp}}";
    format!("{AROUND}{WORKLOAD}{flow}\nfaults:\n  - {{id: x, flows: f, {fault}}}\n")
}

/// The keys that a hint writes between backticks, without those that name what the file has to declare.
fn written(hint: &str) -> Vec<String> {
    let spans = hint.split('`').skip(1).step_by(2);
    let spans = spans.map(|span| match span.starts_with('{') {
        true => format!("effect: {span}"),
        false => span.to_owned(),
    });
    let mut keys: Vec<String> = spans
        .filter(|span| span.contains(": ") && !span.contains("STEP"))
        .collect();
    if !keys.iter().any(|key| key.starts_with("effect: ")) {
        keys.push("effect: drop".to_owned());
    }
    keys
}

#[test]
fn what_hints_write_for_other_tools_words_can_be_planned() {
    for fault in FOREIGN {
        let refused = load("foreign.yaml", &one_fault(fault)).unwrap_err();
        let hints = refused.0.iter().filter_map(|told| told.hint.as_deref());
        // What a missing key is goes without an example.
        let begins = ["write `", "write for example `"];
        let is_whole =
            |hint: &&str| begins.iter().any(|words| hint.starts_with(words)) && !hint.contains('…');
        let Some(hint) = hints.into_iter().find(is_whole) else {
            panic!("{fault}\n{refused}");
        };
        let mended = written(hint).join(", ");
        let scenario = load("mended.yaml", &one_fault(&mended))
            .unwrap_or_else(|errors| panic!("{fault}\n{hint}\n{mended}\n{errors}"));
        let planned = plan(&scenario, &TargetModel::EMBEDDED);
        assert!(planned.is_ok(), "{fault}\n{hint}\n{mended}");
    }
}
