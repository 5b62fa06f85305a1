//! Counts compilation units that one run of `cargo xtask test` compiles more than once.
//!
//! Cargo compiles a package's target again if its features or those of its dependencies differ. The
//! plans of all cargo commands of a run are compared: two units of one package, target, mode and
//! profile that differ in features or in what they depend on are one unit too many.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Surplus units: of each package, target, mode and profile, the units beyond the first.
#[derive(Debug, PartialEq)]
pub struct Surplus {
    /// Names of the surplus units of the workspace's packages.
    pub ours: BTreeSet<String>,
    /// Number of surplus units of other packages: build scripts and procedural macros need features
    /// that the product does not.
    pub others: u64,
}

/// Compares the unit graphs of one run, each a list of its units' JSON texts.
pub fn surplus(graphs: &[Vec<&str>]) -> Surplus {
    let mut variants: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for graph in graphs {
        let mut identities = vec![None; graph.len()];
        for (index, unit) in graph.iter().enumerate() {
            let identity = identity(graph, index, &mut identities);
            variants.entry(key(unit)).or_default().insert(identity);
        }
    }
    let mut surplus = Surplus {
        ours: BTreeSet::new(),
        others: 0,
    };
    for (key, variants) in variants {
        if variants.len() == 1 {
            continue;
        }
        match key.starts_with("\"path+file:") {
            true => _ = surplus.ours.insert(name(key)),
            false => surplus.others += variants.len() as u64 - 1,
        }
    }
    surplus
}

/// Package, target, profile and mode of a unit: the text before the features. A profile's name does
/// not affect the output, so all graphs have that of `cargo build`.
fn key(unit: &str) -> &str {
    unit.split(",\"features\":").next().unwrap_or(unit)
}

/// Name of a unit for a message: package and kind of target.
fn name(key: &str) -> String {
    let package = key.split('"').nth(1).unwrap_or_default();
    let package = package.rsplit('/').next().unwrap_or_default();
    let kind = key.split("\"kind\":[").nth(1).unwrap_or_default();
    let kind = kind.split(']').next().unwrap_or_default();
    format!("{package} ({})", kind.replace('"', ""))
}

/// Hash of the inputs of a compilation: the unit without its dependencies' numbers, and the
/// dependencies' identities.
fn identity(graph: &[&str], index: usize, known: &mut Vec<Option<u64>>) -> u64 {
    if let Some(identity) = known[index] {
        return identity;
    }
    let unit = graph[index];
    let (text, dependencies) = unit.split_once(",\"dependencies\":").unwrap_or((unit, ""));
    let dependencies = dependencies.split("\"index\":").skip(1).filter_map(|rest| {
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok().filter(|index| *index < graph.len())
    });
    let dependencies: Vec<usize> = dependencies.collect();
    let mut below: Vec<u64> = dependencies
        .into_iter()
        .map(|index| identity(graph, index, known))
        .collect();
    below.sort_unstable();
    let mut hasher = DefaultHasher::new();
    (text, below).hash(&mut hasher);
    let identity = hasher.finish();
    known[index] = Some(identity);
    identity
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(package: &str, features: &str, dependencies: &[usize]) -> String {
        let dependencies: Vec<String> = dependencies
            .iter()
            .map(|index| format!(r#"{{"index":{index},"extern_crate_name":"x"}}"#))
            .collect();
        format!(
            r#""{package}","target":{{"kind":["lib"]}},"mode":"build","features":[{features}],"dependencies":[{}]}}"#,
            dependencies.join(",")
        )
    }

    #[test]
    fn a_feature_below_makes_two_units_of_everything_above() {
        let ours = "path+file:///house/wire#0.1.0";
        let one = [unit("registry#serde@1", "", &[]), unit(ours, "", &[0])];
        // The units of `one`, numbered in reverse order.
        let same = [unit(ours, "", &[1]), unit("registry#serde@1", "", &[])];
        let other = [
            unit("registry#serde@1", "\"derive\"", &[]),
            unit(ours, "", &[0]),
        ];
        let graphs = |units: [&[String]; 2]| -> Surplus {
            let texts: Vec<Vec<&str>> = units
                .iter()
                .map(|units| units.iter().map(String::as_str).collect())
                .collect();
            surplus(&texts)
        };
        let none = graphs([&one, &same]);
        assert_eq!((none.ours.len(), none.others), (0, 0));
        let both = graphs([&one, &other]);
        assert_eq!(both.others, 1);
        assert!(both.ours.contains("wire#0.1.0 (lib)"), "{both:?}");
    }
}
