//! Malformed schedules: each rule is broken once, in an otherwise correct schedule.

use collectives::execute::{ExecutionError, execute};
use collectives::graph::{At, FormError, Graph};
use collectives::verify::VerifyError;
use collectives::{
    Action, Algorithm, Buffer, BuildError, Collective, Hierarchy, Options, Program, ReduceOp,
    Schedule, Signal, Span, Step, build, verify,
};
use proptest::prelude::*;

const IN: Span = Span {
    buffer: Buffer::Input,
    start: 0,
    len: 4,
};
const OUT: Span = Span {
    buffer: Buffer::Output,
    start: 0,
    len: 4,
};

fn step(action: Action, after: &[usize]) -> Step {
    Step {
        action,
        after: after.to_vec(),
    }
}

fn put(to: usize, source: Span, target: Span, signal: u32) -> Action {
    Action::Put {
        to,
        source,
        target,
        signal: Signal(signal),
    }
}

fn wait(from: usize, signal: u32) -> Action {
    Action::Wait {
        from,
        signal: Signal(signal),
    }
}

/// Ranks with four elements of each buffer.
fn schedule(programs: &[&[Step]]) -> Schedule {
    let program = |steps: &&[Step]| Program {
        lens: [4; 3],
        steps: steps.to_vec(),
    };
    Schedule {
        element_bytes: 4,
        op: ReduceOp::Sum,
        programs: programs.iter().map(program).collect(),
    }
}

fn form(programs: &[&[Step]]) -> FormError {
    Graph::new(&schedule(programs)).unwrap_err()
}

#[test]
fn form_is_checked() {
    let at = At { rank: 0, step: 0 };
    let good = step(put(1, IN, OUT, 0), &[]);
    let heard = step(wait(0, 0), &[]);
    assert!(
        verify(&schedule(&[
            std::slice::from_ref(&good),
            std::slice::from_ref(&heard)
        ]))
        .is_ok()
    );

    let span = Buffer::Output.span(2, 4);
    let outside = step(put(1, IN, span, 0), &[]);
    assert_eq!(
        form(&[&[outside], &[]]),
        FormError::Outside { at, span, has: 4 }
    );
    let span = Buffer::Output.span(usize::MAX, 4);
    let wraps = step(put(1, IN, span, 0), &[]);
    assert_eq!(
        form(&[&[wraps], &[]]),
        FormError::Outside { at, span, has: 4 }
    );
    let differ = step(put(1, IN, OUT.part(0, 3), 0), &[]);
    assert_eq!(form(&[&[differ], &[]]), FormError::Lengths { at });
    let (source, target) = (OUT.part(0, 2), OUT.part(1, 2));
    let overlap = step(Action::Copy { source, target }, &[]);
    assert_eq!(form(&[&[overlap]]), FormError::Overlap { at });
    let writes = step(put(1, OUT, IN, 0), &[]);
    assert_eq!(form(&[&[writes], &[]]), FormError::WritesInput { at });
    for peer in [0, 2] {
        let to = step(put(peer, IN, OUT, 0), &[]);
        assert_eq!(form(&[&[to], &[]]), FormError::Peer { at, peer });
        let from = step(wait(peer, 0), &[]);
        assert_eq!(form(&[&[from], &[]]), FormError::Peer { at, peer });
    }
    let itself = step(put(1, IN, OUT, 0), &[0]);
    assert_eq!(form(&[&[itself], &[]]), FormError::After { at, after: 0 });
    assert_eq!(
        form(&[std::slice::from_ref(&good), &[]]),
        FormError::NoWait { at }
    );
    let at = At { rank: 1, step: 0 };
    assert_eq!(
        form(&[&[], std::slice::from_ref(&heard)]),
        FormError::NoPut { at }
    );
    let at = At { rank: 0, step: 1 };
    let twice = [good.clone(), good.clone()];
    assert_eq!(
        form(&[&twice, &[]]),
        FormError::SignalTwice { at, first: 0 }
    );
    let at = At { rank: 1, step: 1 };
    let twice = [heard.clone(), heard];
    assert_eq!(
        form(&[&[good], &twice]),
        FormError::SignalTwice { at, first: 0 }
    );
}

#[test]
fn a_deadlock_names_its_ranks() {
    // 1 and 2 wait for each other; 0 has finished, 3 waits for one of them.
    let nothing = OUT.part(0, 0);
    let each = |peer| {
        [
            step(wait(peer, 0), &[]),
            step(put(peer, nothing, nothing, 0), &[0]),
        ]
    };
    let mut two = each(1).to_vec();
    two.push(step(put(3, nothing, nothing, 0), &[0]));
    let schedule = schedule(&[&[], &each(2), &two, &[step(wait(2, 0), &[])]]);
    let ranks = vec![1, 2, 3];
    assert_eq!(
        execute(&schedule, 1).unwrap_err(),
        ExecutionError::Deadlock {
            ranks: ranks.clone()
        }
    );
    assert_eq!(
        verify(&schedule).unwrap_err(),
        VerifyError::Form(FormError::Deadlock { ranks })
    );
}

#[test]
fn undefined_elements_are_not_read() {
    let copy = Action::Copy {
        source: Buffer::Scratch.span(1, 2),
        target: OUT.part(0, 2),
    };
    let failed = execute(&schedule(&[&[step(copy, &[])]]), 0).unwrap_err();
    let (at, buffer) = (At { rank: 0, step: 0 }, Buffer::Scratch);
    assert_eq!(
        failed,
        ExecutionError::Undefined {
            at,
            buffer,
            element: 1
        }
    );
}

fn race(programs: &[&[Step]]) -> (usize, Span) {
    match verify(&schedule(programs)) {
        Err(VerifyError::Race { rank, span, .. }) => (rank, span),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_source_is_not_overwritten_before_its_put_is_done() {
    let copy = Action::Copy {
        source: IN,
        target: OUT,
    };
    let over = Action::Copy {
        source: IN.part(0, 3),
        target: OUT.part(1, 3),
    };
    let scratch = Buffer::Scratch.span(0, 4);
    let heard = [step(wait(0, 0), &[])];
    let programs = |after: &[usize]| {
        [
            step(copy, &[]),
            step(put(1, OUT, scratch, 0), &[0]),
            step(over, after),
        ]
    };
    assert_eq!(race(&[&programs(&[0]), &heard]), (0, OUT.part(1, 3)));
    assert!(verify(&schedule(&[&programs(&[1]), &heard])).is_ok());
}

#[test]
fn a_target_is_not_read_before_its_signal() {
    let read = Action::Copy {
        source: OUT,
        target: Buffer::Scratch.span(0, 4),
    };
    let sender = [step(put(1, IN, OUT, 0), &[])];
    let hasty = [step(wait(0, 0), &[]), step(read, &[])];
    assert_eq!(race(&[&sender, &hasty]), (1, OUT));
    let patient = [step(wait(0, 0), &[]), step(read, &[0])];
    assert!(verify(&schedule(&[&sender, &patient])).is_ok());
}

#[test]
fn a_target_is_not_overwritten_before_its_reader_signals() {
    let nothing = OUT.part(0, 0);
    let read = Action::Copy {
        source: OUT,
        target: Buffer::Scratch.span(0, 4),
    };
    let reader = |ready_after: usize| {
        [
            step(wait(0, 0), &[]),
            step(read, &[0]),
            step(put(0, nothing, nothing, 0), &[ready_after]),
            step(wait(0, 1), &[]),
        ]
    };
    let writer = [
        step(put(1, IN, OUT, 0), &[]),
        step(wait(1, 0), &[]),
        step(put(1, IN, OUT, 1), &[1]),
    ];
    assert_eq!(race(&[&writer, &reader(0)]), (1, OUT));
    assert!(verify(&schedule(&[&writer, &reader(1)])).is_ok());
}

#[test]
fn two_writers_are_an_error() {
    let both = [step(wait(0, 0), &[]), step(wait(1, 0), &[])];
    let one = [step(put(2, IN, OUT, 0), &[])];
    let other = [step(put(2, IN.part(0, 2), OUT.part(2, 2), 0), &[])];
    assert_eq!(race(&[&one, &other, &both]), (2, OUT.part(2, 2)));
}

#[test]
fn invalid_schedules_are_refused() {
    let build = |collective: &Collective, algorithm| {
        build(collective, algorithm, &Options::default()).unwrap_err()
    };
    let ring = Algorithm::Ring;
    assert_eq!(
        build(&Collective::all_gather(0, 1), ring),
        BuildError::Ranks(0)
    );
    assert_eq!(
        build(&Collective::all_gather(4097, 1), ring),
        BuildError::Ranks(4097)
    );
    let (ranks, root, len) = (3, 3, 1);
    let broadcast = Collective::Broadcast { ranks, root, len };
    assert_eq!(
        build(&broadcast, Algorithm::Tree),
        BuildError::Root { root, ranks }
    );
    let counts = vec![vec![1, 1], vec![1]];
    assert_eq!(
        build(&Collective::AllToAll { counts }, Algorithm::Direct),
        BuildError::Counts(2)
    );
    assert_eq!(
        build(&Collective::all_gather(3, usize::MAX / 2), ring),
        BuildError::Sizes
    );
    let not = build(&Collective::Barrier { ranks: 2 }, ring);
    assert!(matches!(
        not,
        BuildError::NotOffered {
            collective: "barrier",
            ..
        }
    ));
    assert!(matches!(
        build(&Collective::all_to_all(2000, 1), Algorithm::Direct),
        BuildError::TooManySteps(_)
    ));
    let tiny = Options {
        tile: Some(1),
        ..Options::default()
    };
    let tiles = collectives::build(&Collective::all_gather(3, 1 << 36), ring, &tiny);
    assert!(matches!(tiles, Err(BuildError::TooManySteps(_))));
    assert_eq!(
        Hierarchy::new(vec![vec![0, 2]]).unwrap_err(),
        BuildError::Membership
    );
    assert_eq!(
        Hierarchy::new(vec![vec![0], vec![0]]).unwrap_err(),
        BuildError::Membership
    );
    let none = Hierarchy::new(vec![vec![0], vec![]]).unwrap_err();
    assert_eq!(
        none,
        BuildError::Rails {
            rails: 0,
            smallest: 0
        }
    );
    let options = Options {
        order: Some(vec![0, 0]),
        ..Options::default()
    };
    let twice = collectives::build(&Collective::all_gather(2, 1), ring, &options);
    assert_eq!(twice.unwrap_err(), BuildError::Order);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(test_support::cases(300)))]

    /// A removed dependency may follow from others. Then the verifier accepts the schedule, and no run fails.
    #[test]
    fn verified_schedules_are_correct_in_every_order(
        which in 0_usize..4,
        ranks in 2_usize..6,
        victim in any::<prop::sample::Index>(),
        seed in any::<u64>(),
    ) {
        let algorithm = [Algorithm::Ring, Algorithm::Direct, Algorithm::Tree, Algorithm::HalvingDoubling][which];
        let collective = Collective::AllReduce { ranks, len: 7 };
        let mut schedule = build(&collective, algorithm, &Options::default()).unwrap();
        let all: Vec<(usize, usize, usize)> = (0..ranks)
            .flat_map(|rank| {
                let steps = schedule.programs[rank].steps.iter().enumerate();
                steps.flat_map(move |(s, step)| (0..step.after.len()).map(move |a| (rank, s, a)))
            })
            .collect();
        let (rank, s, a) = *victim.get(&all);
        schedule.programs[rank].steps[s].after.remove(a);
        if verify(&schedule).is_ok() {
            for run in 0..20 {
                let ran = execute(&schedule, seed.wrapping_add(run));
                let ran = ran.and_then(|contents| collectives::execute::check(&collective, &contents));
                prop_assert!(ran.is_ok(), "verified, and wrong: {ran:?}");
            }
        }
    }
}

#[test]
fn a_missing_dependency_is_a_race() {
    // Each dependency of a ring all-reduce, except for those that follow from others.
    let collective = Collective::AllReduce { ranks: 4, len: 8 };
    let schedule = build(&collective, Algorithm::Ring, &Options::default()).unwrap();
    let (mut removed, mut raced) = (0, 0);
    for rank in 0..4 {
        for s in 0..schedule.programs[rank].steps.len() {
            for a in 0..schedule.programs[rank].steps[s].after.len() {
                let mut less = schedule.clone();
                less.programs[rank].steps[s].after.remove(a);
                removed += 1;
                raced += usize::from(matches!(verify(&less), Err(VerifyError::Race { .. })));
            }
        }
    }
    assert_eq!(raced, removed, "none is there for nothing");
}

/// The executor is an independent oracle: a schedule with a race fails in some run.
#[test]
fn races_go_wrong_for_some_seed() {
    let collective = Collective::AllReduce { ranks: 4, len: 8 };
    let schedule = build(&collective, Algorithm::Ring, &Options::default()).unwrap();
    let good: Vec<_> = execute(&schedule, 0).unwrap().memory;
    let (mut racy, mut caught) = (0, 0);
    for rank in 0..4 {
        for s in 0..schedule.programs[rank].steps.len() {
            if schedule.programs[rank].steps[s].after.is_empty() {
                continue;
            }
            let mut less = schedule.clone();
            less.programs[rank].steps[s].after.clear();
            racy += 1;
            let goes_wrong = |seed| execute(&less, seed).map_or(true, |ran| ran.memory != good);
            caught += usize::from((0..100).any(goes_wrong));
        }
    }
    assert_eq!(caught, racy);
}
