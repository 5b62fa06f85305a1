//! Defects of the P4 text, one each: a comparison that accepts them is worth nothing.

use cluster::{Compare, Config, Faults, SlotSwitch};
use parser_gen::Arch;

use super::p4_switch::{Admission, P4Switch, Patch, compile};
use super::runs::{chaotic, run, run_in_used_cells};
use super::wild::wild_differences;

const AGGREGATE: &str = "common/aggregate.p4";
const SLOTS: &str = "psa/slots.p4";
const VALUES: &str = "common/values256.p4";

/// A defect of the P4 text.
struct Mutant {
    name: &'static str,
    patch: Patch,
    /// Whether training itself must show it, by wrong sums or needless errors, in some of the runs.
    breaks_training: bool,
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "no bitmap check: a duplicate is merged again",
        patch: (
            SLOTS,
            "presence = before & worker_bit;",
            "presence = PRESENT_OTHERS;",
        ),
        breaks_training: true,
    },
    Mutant {
        name: "no stale check",
        patch: (
            SLOTS,
            "if (ahead[31:31] == 0) {\n            @atomic",
            "if (true) {\n            @atomic",
        ),
        breaks_training: false,
    },
    Mutant {
        name: "no takeover",
        patch: (
            SLOTS,
            "if (ahead != 0) {\n                    before = 0;",
            "if (false) {\n                    before = 0;",
        ),
        breaks_training: true,
    },
    Mutant {
        name: "an empty bitmap is not taken over",
        patch: (SLOTS, "if (before == 0) {", "if (ahead != 0) {"),
        breaks_training: false,
    },
    Mutant {
        name: "one version of each slot",
        patch: (
            AGGREGATE,
            "LOCATE(cell, base_ + hdr.agg.slot, hdr.agg.slot_version);
    }
    // Like aggregate_job, at a switch of a tree",
            "LOCATE(cell, base_ + hdr.agg.slot, 1w0);
    }
    // Like aggregate_job, at a switch of a tree",
        ),
        breaks_training: false,
    },
    Mutant {
        name: "a duplicate of a complete cell is dropped",
        patch: (
            AGGREGATE,
            "actions = { sum; sum_to_all; sum_back; ascend; }\n        const default_action = sum(OUTCOME_AGAIN, 1);",
            "actions = { sum; sum_to_all; sum_back; ascend; end; }\n        const default_action = end(OUTCOME_DUPLICATE);",
        ),
        breaks_training: true,
    },
    Mutant {
        name: "a duplicate of an incomplete cell goes on as SUM",
        patch: (
            AGGREGATE,
            "actions = { end; tell; }\n        const default_action = end(OUTCOME_DUPLICATE);",
            "actions = { sum; end; tell; }\n        const default_action = sum(OUTCOME_AGAIN, 1);",
        ),
        breaks_training: true,
    },
    Mutant {
        name: "no AGAIN",
        patch: (
            AGGREGATE,
            "action sum(bit<8> outcome_, bit<1> again) {
        outcome = outcome_;
        hdr.agg.kind = AGG_SUM;
        hdr.agg.contributors = (bit<64>) all_workers;
        hdr.agg.deadline = 0;
        hdr.agg.again = again;",
            "action sum(bit<8> outcome_, bit<1> again) {
        outcome = outcome_;
        hdr.agg.kind = AGG_SUM;
        hdr.agg.contributors = (bit<64>) all_workers;
        hdr.agg.deadline = 0;
        hdr.agg.again = 0;",
        ),
        breaks_training: true,
    },
    Mutant {
        name: "the last flag alone",
        patch: (SLOTS, "merged | 7w0 ++ added;", "7w0 ++ added;"),
        breaks_training: false,
    },
    Mutant {
        name: "contributors are the packet's own",
        patch: (
            AGGREGATE,
            "action sum(bit<8> outcome_, bit<1> again) {
        outcome = outcome_;
        hdr.agg.kind = AGG_SUM;
        hdr.agg.contributors = (bit<64>) all_workers;",
            "action sum(bit<8> outcome_, bit<1> again) {
        outcome = outcome_;
        hdr.agg.kind = AGG_SUM;",
        ),
        breaks_training: true,
    },
    Mutant {
        name: "a block of 32 values is forgotten",
        patch: (VALUES, "sum5.apply(hdr.values5, cell, presence);", ""),
        breaks_training: true,
    },
    Mutant {
        name: "scale-only frames touch the values",
        patch: (
            AGGREGATE,
            "if (hdr.agg.scale_only == 0 && hdr.agg.probe == 0) {",
            "if (true) {",
        ),
        breaks_training: false,
    },
    Mutant {
        name: "unsigned comparison of chunks",
        patch: (
            SLOTS,
            "ahead = chunk - owners.read(cell);",
            "chunk_t owner = owners.read(cell);
             ahead = chunk - owner;
             if (chunk > owner) { ahead = 1; } else if (chunk < owner) { ahead = AHEAD_NOTHING; }",
        ),
        breaks_training: true,
    },
    Mutant {
        name: "the smallest exponent",
        patch: (SLOTS, "scale > stored", "scale < stored"),
        breaks_training: true,
    },
    Mutant {
        name: "values are overwritten",
        patch: (SLOTS, "value = value + sums.read(cell);", ""),
        breaks_training: true,
    },
];

/// The runs that find mutants: the faults that bring each rule into play, and few enough timeouts that a job which
/// cannot finish ends soon.
fn telling(seed: u64) -> Config {
    let mut config = chaotic(seed);
    config.job.workers = 2 + config.job.workers % 4;
    config.faults = Faults {
        loss: 0.05,
        duplicate: 0.3,
        reorder: 0.3,
        reorder_ns: 1_000_000,
    };
    config.retransmission.max_timeouts = 30;
    config.rounds = 2;
    config
}

/// In how many of how many cases the comparison finds a mutant.
#[derive(Debug, Default)]
struct Caught {
    /// Runs in which a frame or a cell differs.
    differ: u64,
    /// Runs that end with a wrong sum or a needless error.
    go_wrong: u64,
    /// Runs in cells that another job has used in which a frame differs, or that go wrong.
    used_cells: u64,
    /// Jobs of wild UPDATEs in which a frame or a cell differs.
    wild: u64,
}

const MUTANT_RUNS: u64 = 12;
const MUTANT_USED_CELLS: u64 = 6;
const MUTANT_WILD_JOBS: u64 = 5;

fn hunt(patches: &[Patch]) -> Caught {
    let mut caught = Caught::default();
    let mut p4 = P4Switch::load(compile(Arch::Psa, patches));
    for seed in 400_000..400_000 + MUTANT_RUNS {
        let config = telling(seed);
        let job = config.checked_job().expect("a job");
        p4.admit(job, Admission::Cleared);
        let mut both = Compare::new(job, p4, SlotSwitch::new(job));
        let (_, violations) = run(&config, &mut both);
        caught.differ += u64::from(!both.mismatches.is_empty());
        caught.go_wrong += u64::from(!violations.is_empty());
        p4 = both.first;
    }
    for seed in 500_000..500_000 + MUTANT_USED_CELLS {
        let (back, _, _, right) = run_in_used_cells(p4, &telling(seed));
        caught.used_cells += u64::from(!right);
        p4 = back;
    }
    for seed in 600_000..600_000 + MUTANT_WILD_JOBS {
        let differences;
        (p4, differences) = wild_differences(p4, seed, 300);
        caught.wild += u64::from(differences > 0);
    }
    caught
}

#[test]
fn every_mutant_of_the_p4_text_is_caught() {
    println!(
        "of {MUTANT_RUNS} runs, {MUTANT_USED_CELLS} in used cells, {MUTANT_WILD_JOBS} wild jobs:"
    );
    let unchanged = hunt(&[]);
    let all = [
        unchanged.differ,
        unchanged.go_wrong,
        unchanged.used_cells,
        unchanged.wild,
    ];
    assert_eq!(
        all, [0; 4],
        "the text itself is right, or the mutants prove nothing"
    );
    for mutant in MUTANTS {
        let caught = hunt(&[mutant.patch]);
        println!("{}: {caught:?}", mutant.name);
        let found = caught.differ + caught.used_cells + caught.wild;
        assert!(found > 0, "{}: nothing differs", mutant.name);
        if mutant.breaks_training {
            assert!(
                caught.differ > 0 && caught.go_wrong > 0,
                "{}: {caught:?}",
                mutant.name
            );
        }
    }
}
