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
