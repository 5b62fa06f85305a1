//! Carries out a scenario in four phases, and proves its effects. `weir run` does so once, `weir demo` three times.
//!
//! 1. [`prepare`]: a network whose switches run the plan's programs, and the environment of the user's programs.
//! 2. [`observe`]: frames are recorded at the switches' ports, and judged while they pass.
//! 3. [`carry_out`]: the workload runs, and the timeline puts faults in force.
//! 4. [`conclude`]: the switches' counts are compared with the judged frames.
//!
//! All phases speak to the switches by way of the [`fleet`]. Modules that need no network of their own also compile without the
//! feature `testbed`: `weir control` uses them.

pub mod carry_out;
#[cfg(feature = "testbed")]
pub mod conclude;
pub mod fleet;
#[cfg(feature = "testbed")]
pub mod observe;
#[cfg(feature = "testbed")]
pub(crate) mod percentile;
mod planned;
#[cfg(feature = "testbed")]
pub mod prepare;
#[cfg(feature = "testbed")]
mod process_end;

pub use planned::{Planned, Switches};

#[cfg(feature = "testbed")]
pub use self::{
    carry_out::{ExperimentError, Observer},
    conclude::RunResult,
    prepare::Conditions,
};

/// Carries out a scenario in all four phases, and returns the results and their evidence.
#[cfg(feature = "testbed")]
pub fn run(
    planned: &Planned,
    conditions: Conditions<'_>,
    observer: &mut dyn Observer,
) -> Result<RunResult, ExperimentError> {
    let before = observe::machine::Before::read();
    prepare::check_installed(&planned.scenario)?;
    let mut testbed = prepare::Testbed::up(planned, conditions, &mut |switch, process| {
        observer.switch_started(switch, process);
    })?;
    let judging = observe::start(&mut testbed, conditions)?;
    let (environment, connections) =
        prepare::Environment::prepare(&testbed.bed, &planned.scenario)?;
    let (carried_out, disruptions) = carry_out::run(
        &mut testbed,
        conditions,
        &environment,
        connections,
        &judging.so_far(),
        observer,
    )?;
    let result = conclude::conclude(
        testbed,
        judging,
        carried_out,
        disruptions,
        &before,
        observer,
    )?;
    let training = result.carried_out.training.as_ref();
    let accuracy = training.map(|training| training.accuracy);
    observer.ends(result.carried_out.wall, accuracy);
    Ok(result)
}
