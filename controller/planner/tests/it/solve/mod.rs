//! Linear and integer programs, compared with arithmetic and enumeration, and models without an answer.

pub mod cases;

use cases::{Case, Kind};
use planner::solve::{
    Answer, Cmp, Limits, Model, Sense, SolveError, TOLERANCE, conflict, lp, milp,
};
use proptest::prelude::*;

/// In bit/s: max 3a + 2b with a + b ≤ 4e9, a + 3b ≤ 6e9, a ≤ 3e9. Corners: (3e9, 1e9) gives 11e9.
#[test]
fn a_program_in_bits_a_second_is_solved_as_it_is() {
    let mut model = Model::new(Sense::Maximize);
    let a = model.variable(0.0, 3e9, 3.0);
    let b = model.variable(0.0, f64::INFINITY, 2.0);
    model.constrain([(a, 1.0), (b, 1.0)], Cmp::Le, 4e9);
    model.constrain([(a, 1.0), (b, 3.0)], Cmp::Le, 6e9);
    let answer = lp(&model).unwrap();
    assert!(answer.proven, "{answer:?}");
    assert!((answer.objective - 11e9).abs() < 1e3, "{answer:?}");
    assert!(answer.bound >= answer.objective - 1e3, "{answer:?}");
    assert!((answer.value(a) - 3e9).abs() < 1e3, "{answer:?}");
}

/// 3x + 5y + 4z ≤ 9 with values 0 and 1, worth 4, 6, 5: the best pair is y and z, worth 11. With fractions x and z are worth
/// the most per unit, and 2/5 of y fill the rest: 4 + 5 + 2.4.
#[test]
fn a_knapsack_is_filled_with_whole_things() {
    let mut model = Model::new(Sense::Maximize);
    let things = [4.0, 6.0, 5.0].map(|worth| model.binary(worth));
    model.constrain(things.into_iter().zip([3.0, 5.0, 4.0]), Cmp::Le, 9.0);
    let answer = milp(&model, &Limits::default(), None).unwrap();
    assert_eq!(answer.values, [0.0, 1.0, 1.0]);
    assert_eq!((answer.objective, answer.bound), (11.0, 11.0));
    assert!(answer.proven);
    assert!((lp(&model).unwrap().objective - 11.4).abs() < 1e-6);
}

#[test]
fn what_has_no_answer_is_told_from_what_has_no_best() {
    let mut model = Model::new(Sense::Minimize);
    let x = model.variable(f64::NEG_INFINITY, f64::INFINITY, 1.0);
    let y = model.variable(0.0, f64::INFINITY, 0.0);
    model.constrain([(x, 1.0), (y, 1.0)], Cmp::Ge, 2.0);
    assert_eq!(lp(&model), Err(SolveError::Unbounded));
    assert_eq!(
        milp(&model, &Limits::default(), None),
        Err(SolveError::Unbounded)
    );
    model.constrain([(y, 1.0)], Cmp::Le, 5.0);
    assert!((lp(&model).unwrap().objective + 3.0).abs() < 1e-6);
    model.constrain([(x, 1.0), (y, 2.0)], Cmp::Le, 1.0);
    model.constrain([(x, 1.0), (y, 1.0)], Cmp::Ge, 3.0);
    model.constrain([(y, 1.0)], Cmp::Ge, 0.0);
    assert_eq!(lp(&model), Err(SolveError::Infeasible));
    assert_eq!(
        milp(&model, &Limits::default(), None),
        Err(SolveError::Infeasible)
    );
    model.bound(y, 3.0, 2.0);
    assert_eq!(lp(&model), Err(SolveError::Infeasible));
}

/// 2x + 2y = 3 has no integer solution, though its relaxation has one; nor do x ≤ y − 1 and y ≤ x without bounds.
#[test]
fn what_only_whole_numbers_refute_is_refuted() {
    let mut model = Model::new(Sense::Minimize);
    let x = model.integer(0.0, 9.0, 1.0);
    let y = model.integer(0.0, 9.0, 1.0);
    let odd = model.constrain([(x, 2.0), (y, 2.0)], Cmp::Eq, 3.0);
    assert!((lp(&model).unwrap().objective - 1.5).abs() < 1e-6);
    assert_eq!(
        milp(&model, &Limits::default(), None),
        Err(SolveError::Infeasible)
    );
    assert_eq!(conflict(&model), [odd]);

    let mut model = Model::new(Sense::Minimize);
    let x = model.variable(0.0, f64::INFINITY, 1.0);
    let y = model.variable(0.0, f64::INFINITY, 1.0);
    model.constrain([(x, 1.0), (y, -1.0)], Cmp::Le, -1.0);
    model.constrain([(y, 1.0), (x, -1.0)], Cmp::Le, 0.0);
    assert_eq!(lp(&model), Err(SolveError::Infeasible));
}

#[test]
fn a_number_that_is_none_is_refused() {
    let is_invalid = |model: &Model| matches!(lp(model), Err(SolveError::Invalid { .. }));
    let mut model = Model::new(Sense::Minimize);
    let x = model.variable(0.0, 1.0, f64::NAN);
    assert!(is_invalid(&model));
    model.set_objective(x, 1.0);
    assert_eq!(lp(&model).unwrap().objective, 0.0);
    model.bound(x, f64::NAN, 1.0);
    assert!(is_invalid(&model));
    model.bound(x, 0.0, 1.0);
    let row = model.constrain([(x, 1.0)], Cmp::Ge, f64::INFINITY);
    assert!(is_invalid(&model));
    model.set_rhs(row, 0.5);
    assert!((lp(&model).unwrap().objective - 0.5).abs() < 1e-7);
    model.constrain([(x, f64::INFINITY)], Cmp::Ge, 0.0);
    assert!(is_invalid(&model));
}

/// Three workers of 4, a link of 10, and unrelated rows.
#[test]
fn a_conflict_names_the_rows_that_clash_and_no_others() {
    let mut model = Model::new(Sense::Maximize);
    let rates = [0; 3].map(|_| model.variable(0.0, 100.0, 1.0));
    let wants = rates.map(|rate| model.constrain([(rate, 1.0)], Cmp::Ge, 4.0));
    model.constrain([(rates[0], 1.0)], Cmp::Le, 50.0);
    let link = model.constrain(rates.map(|rate| (rate, 1.0)), Cmp::Le, 10.0);
    model.constrain([(rates[1], 1.0), (rates[2], -1.0)], Cmp::Eq, 0.0);
    model.name(link, "the link");
    let found = conflict(&model);
    assert_eq!(found, [wants[0], wants[1], wants[2], link]);
    assert_eq!(model.row_name(found[3]), Some("the link"));
    model.set_rhs(link, 12.0);
    assert_eq!(conflict(&model), []);
}

#[test]
fn a_start_is_used_and_a_wrong_one_does_no_harm() {
    let case = Case::new(Kind::SetCover, 5);
    let model = case.model();
    let best = milp(&model, &Limits::default(), None).unwrap();
    let one = Limits {
        nodes: 1,
        ..Limits::default()
    };
    let from = milp(&model, &one, Some(&best.values)).unwrap();
    assert_eq!(from.objective, best.objective);
    for wrong in [
        vec![],
        vec![f64::NAN; best.values.len()],
        vec![-7.0; best.values.len()],
    ] {
        let answer = milp(&model, &Limits::default(), Some(&wrong)).unwrap();
        assert_eq!(answer.objective, best.objective);
    }
}

#[test]
fn the_same_model_gives_the_same_answer_to_the_bit() {
    for kind in Kind::ALL {
        let model = Case::new(kind, 3).model();
        let limits = Limits::default();
        assert_eq!(milp(&model, &limits, None), milp(&model, &limits, None));
    }
}

/// Integer and fractional variables: without any one row of a conflict, the others can be met.
#[test]
fn a_conflict_is_one_and_is_no_larger_than_it_need_be() {
    for seed in 0..20 {
        let case = Case::new(Kind::Infeasible, seed);
        let found = conflict(&case.model());
        assert!(!found.is_empty());
        let answer = |case: &Case| milp(&case.model(), &Limits::default(), None);
        let all = case.with_rows(|row| found.iter().any(|found| found.index() == row));
        assert_eq!(answer(&all), Err(SolveError::Infeasible));
        for leave in 0..found.len() {
            let rest = all.with_rows(|row| row != leave);
            assert!(answer(&rest).is_ok(), "{seed}: {found:?} without {leave}");
        }
    }
}

/// Best objective over all values of the variables, if all are integers; `None` if none is feasible.
fn enumerated(case: &Case) -> Option<f64> {
    let n = case.variables.len();
    let mut best: Option<f64> = None;
    for choice in 0..1_u32 << n {
        let x: Vec<f64> = (0..n).map(|j| f64::from(choice >> j & 1)).collect();
        if case.missed(&x) <= 0.0 {
            let value = case.objective(&x);
            best = Some(best.map_or(value, |best| match case.sense {
                Sense::Minimize => best.min(value),
                Sense::Maximize => best.max(value),
            }));
        }
    }
    best
}

/// Checks the properties of any answer.
pub fn is_honest(case: &Case, answer: &Answer, is_whole: bool) {
    for (x, variable) in answer.values.iter().zip(&case.variables) {
        assert!(*x >= variable.lower && *x <= variable.upper);
        assert!(!(is_whole && variable.is_integer) || *x == x.round());
    }
    let missed = case.missed(&answer.values);
    assert!(missed <= TOLERANCE, "{missed}");
    let value = case.objective(&answer.values);
    assert!((value - answer.objective).abs() <= 1e-9 * value.abs().max(1.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Small whole coefficients, so that sums are exact: the result is that of enumeration, also for infeasible models.
    #[test]
    fn binaries_are_chosen_as_enumeration_would(
        n in 1_usize..=10,
        seed in 0_u64..1 << 40,
        maximize: bool,
    ) {
        let case = Case::with_binaries(n, seed, maximize);
        let model = case.model();
        match (milp(&model, &Limits::default(), None), enumerated(&case)) {
            (Ok(answer), Some(best)) => {
                is_honest(&case, &answer, true);
                prop_assert!(answer.proven);
                prop_assert_eq!(answer.objective, best);
                prop_assert_eq!(answer.bound, best);
            }
            (Err(SolveError::Infeasible), None) => {
                let rows = conflict(&model);
                prop_assert!(!rows.is_empty());
                // Together they are infeasible, and each row is needed.
                prop_assert_eq!(enumerated(&case.with_rows(|row| rows.iter().any(|r| r.index() == row))), None);
                for leave in &rows {
                    let rest = |row: usize| row != leave.index() && rows.iter().any(|r| r.index() == row);
                    prop_assert!(enumerated(&case.with_rows(rest)).is_some());
                }
            }
            (got, want) => prop_assert!(false, "{got:?}, but {want:?}"),
        }
    }
}

proptest! {
    // The solver makes all its attempts at each case, which is slow.
    #![proptest_config(ProptestConfig::with_cases(30))]

    /// Numbers of all sizes, and infinities: every answer is valid, and every claim passes the checks.
    #[test]
    fn numbers_far_apart_do_no_harm(
        sizes in prop::collection::vec((-12_i32..=12, -9_i8..=9), 40),
        integers in 0_u8..16,
        maximize: bool,
    ) {
        let mut size = sizes.iter().map(|(power, digit)| f64::from(*digit) * 10_f64.powi(*power)).cycle();
        let mut next = || size.next().unwrap_or(0.0);
        let mut case = Case::empty(if maximize { Sense::Maximize } else { Sense::Minimize });
        for at in 0..4 {
            let ends = [next(), next()];
            let upper = if ends[1] == 0.0 { f64::INFINITY } else { ends[0].max(ends[1]) };
            case.add(ends[0].min(ends[1]), upper, next(), integers >> at & 1 == 1);
        }
        for cmp in [Cmp::Le, Cmp::Ge, Cmp::Le, Cmp::Eq] {
            let terms = (0..4).map(|j| (j, next())).collect();
            case.row(terms, cmp, next());
        }
        let model = case.model();
        let limits = Limits { nodes: 10, ..Limits::default() };
        if let Ok(answer) = lp(&model) {
            is_honest(&case, &answer, false);
        }
        if let Ok(answer) = milp(&model, &limits, None) {
            is_honest(&case, &answer, true);
        }
        let _ = conflict(&model);
    }
}

/// A row whose first term cancels, before one with as many terms: a row does not depend on earlier rows.
#[test]
fn terms_that_cancel_leave_the_next_row_as_it_was_written() {
    let mut model = Model::new(Sense::Minimize);
    let [x, y, z] = [1.0, 2.0, 4.0].map(|cost| model.variable(0.0, 5.0, cost));
    model.constrain([(x, 1.0), (z, 1.0), (y, 1.0), (x, -1.0)], Cmp::Ge, 3.0);
    model.constrain([(y, 1.0), (x, 1.0)], Cmp::Ge, 4.0);
    // y = 3 for the first row, and x = 1 besides for the second.
    let answer = lp(&model).unwrap();
    assert!((answer.objective - 7.0).abs() < 1e-6, "{answer:?}");
    assert!((answer.value(x) - 1.0).abs() < 1e-6 && answer.value(z).abs() < 1e-6);
}
