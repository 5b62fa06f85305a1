//! Connections that share two spines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use scenario::model::routing::hash::FiveTuple;

use super::shipped;
use crate::support::leftovers::Watched;
use crate::support::*;

const FILE: &str = "ecmp-black-hole.yaml";
const PORT: u16 = 7000;

/// Each connection crosses one spine, the one that its ports say, and both are crossed: as the spines' own captures have it.
#[test]
fn connections_over_one_spine_are_lost() {
    if !has_namespaces(FILE) || !has_program(FILE, "python3") {
        return;
    }
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let file = repository("testbeds/scenarios").join(FILE);
    let command = [
        "run",
        file.to_str().unwrap(),
        "--json",
        "--captures",
        "all",
        "--out",
        "run",
    ];
    let finished = Watched::weir(folder.path(), &command).run();
    finished.expect_code(PASSED);
    let run = finished.json();
    for fault in run["faults"].as_array().unwrap() {
        assert_eq!(fault["proved"], true, "{fault}");
    }

    let scenario = scenario::load(FILE, &shipped(FILE)).unwrap();
    let ways = scenario.ways.as_ref().unwrap();
    let mut spines: BTreeMap<FiveTuple, BTreeSet<String>> = BTreeMap::new();
    for spine in ["spine0", "spine1"] {
        for frame in frames(&folder.path().join(format!("run/{spine}.pcapng"))) {
            let flow = FiveTuple::from_frame(&frame).filter(|flow| flow.dst_port == PORT);
            if let Some(flow) = flow {
                spines.entry(flow).or_default().insert(spine.to_owned());
            }
        }
    }
    assert!(spines.len() >= 16, "{} connections", spines.len());
    for (flow, crossed) in &spines {
        let taken = ways.taken("h0-0", "h1-0", flow.hash()).unwrap();
        assert_eq!(
            *crossed,
            BTreeSet::from([taken.switches[1].clone()]),
            "{flow:?}"
        );
    }
    let both: BTreeSet<&String> = spines.values().flatten().collect();
    assert_eq!(both.len(), 2);
}

/// The frames of a pcapng file of this machine: its enhanced packet blocks.
pub(super) fn frames(file: &Path) -> Vec<Vec<u8>> {
    const ENHANCED_PACKET: u32 = 6;
    let bytes = std::fs::read(file).unwrap();
    let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut at, mut frames) = (0, Vec::new());
    while at < bytes.len() {
        if word(at) == ENHANCED_PACKET {
            let start = at + 28;
            frames.push(bytes[start..start + word(at + 20) as usize].to_vec());
        }
        at += word(at + 4) as usize;
    }
    frames
}
