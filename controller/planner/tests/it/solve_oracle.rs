//! Compares optima with those of HiGHS, an independent solver.

use crate::solve::cases::{Case, Kind, Variable};
use crate::solve::is_honest;
use planner::solve::{Answer, Cmp, Limits, Sense, SolveError, lp, milp};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};

/// Number of seeds for each kind; `WEIR_ORACLE_SEEDS` overrides it.
fn seeds() -> u64 {
    let given = std::env::var("WEIR_ORACLE_SEEDS").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(8)
}

#[test]
fn optima_are_those_that_highs_finds() {
    let Some(python) = python() else {
        test_support::skip("optima_are_those_that_highs_finds", "highspy");
        return;
    };
    let of = |kind| (0..seeds()).map(move |seed| (kind, seed));
    let all: Vec<(Kind, u64)> = Kind::ALL.into_iter().flat_map(of).collect();
    // Each program twice: as it is, and with all variables fractional.
    let plain = all.iter().map(|(kind, seed)| Case::plain(*kind, *seed));
    let told: String = plain
        .flat_map(|case| [written(&case, true), written(&case, false)])
        .collect();
    let answers = asked(&python, &told);
    assert_eq!(answers.len(), 2 * all.len());
    let mut wrong = Vec::new();
    for ((kind, seed), want) in all.iter().zip(answers.chunks(2)) {
        let case = Case::new(*kind, *seed);
        let model = case.model();
        let whole = milp(&model, &Limits::default(), None);
        let fractional = lp(&model);
        for (got, want, what) in [
            (whole, &want[0], "whole"),
            (fractional, &want[1], "fractional"),
        ] {
            if !agrees(&case, &got, want) {
                wrong.push(format!("{kind:?} {seed}, {what}: {got:?}, but {want}"));
            }
            if let Ok(answer) = &got {
                is_honest(&case, answer, what == "whole");
            }
        }
    }
    let wrongs = wrong.len();
    assert!(
        wrong.is_empty(),
        "{wrongs} of {}:\n{}",
        2 * all.len(),
        wrong.join("\n")
    );
}

/// Whether an answer is the oracle's and proved, and its bound is not better than the oracle's optimum.
fn agrees(case: &Case, got: &Result<Answer, SolveError>, want: &Value) -> bool {
    let answer = match got {
        Ok(answer) => answer,
        Err(SolveError::Infeasible) => return want["status"] == "infeasible",
        Err(SolveError::Unbounded) => return want["status"] == "unbounded",
        Err(_) => return false,
    };
    let best = want["objective"].as_f64().unwrap_or(f64::NAN);
    // Magnitude of the objective, or of its terms if they cancel.
    let terms = case.variables.iter().zip(&answer.values);
    let sizes = terms.map(|(variable, x)| (variable.objective * x).abs());
    let near = 3e-6 * sizes.fold(best.abs(), f64::max);
    let better = match case.sense {
        Sense::Minimize => answer.bound - best,
        Sense::Maximize => best - answer.bound,
    };
    want["status"] == "optimal"
        && (answer.objective - best).abs() <= near
        && better <= near
        && answer.proven
}

/// Python with highspy: the one that `cargo xtask test` made, or the one on the PATH.
fn python() -> Option<String> {
    let python = std::env::var("WEIR_HIGHS").unwrap_or_else(|_| "python3".to_owned());
    let imports = Command::new(&python)
        .args(["-c", "import highspy"])
        .stderr(Stdio::null())
        .status();
    imports
        .is_ok_and(|status| status.success())
        .then_some(python)
}

fn asked(python: &str, told: &str) -> Vec<Value> {
    let mut oracle = Command::new(python)
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/oracle/highs.py"
        ))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = oracle.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(told.as_bytes()).unwrap());
        let output = oracle.wait_with_output().unwrap();
        assert!(output.status.success());
        let lines = String::from_utf8(output.stdout).unwrap();
        lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    })
}

fn written(case: &Case, whole: bool) -> String {
    let bound = |x: f64| x.clamp(-1e30, 1e30);
    let variable = |v: &Variable| {
        json!([
            bound(v.lower),
            bound(v.upper),
            v.objective,
            v.is_integer && whole
        ])
    };
    let rows = case.rows.iter().map(|(terms, cmp, rhs)| {
        let (low, high) = match cmp {
            Cmp::Le => (-1e30, *rhs),
            Cmp::Ge => (*rhs, 1e30),
            Cmp::Eq => (*rhs, *rhs),
        };
        json!([terms, low, high])
    });
    let case = json!({
        "maximize": case.sense == Sense::Maximize,
        "variables": case.variables.iter().map(variable).collect::<Vec<_>>(),
        "rows": rows.collect::<Vec<_>>(),
    });
    format!("{case}\n")
}
