//! Which frames were hit, by their place in the captures.

use scenario::replay::Passage;

use super::judge::Errors;
use super::trace::SwitchTrace;

/// A fault hit a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Index into [`scenario::Plan::injections`].
    pub injection: usize,
    /// Where the frame came in.
    pub switch: String,
    /// By which port.
    pub port: u32,
    /// Its number, from 1, among the frames that came in there, as packet analysers count.
    pub frame: usize,
}

/// What hit the frame at `index`: what had to and did, and what had to spare it and did not.
pub fn of_frame(
    switch: &str,
    trace: &SwitchTrace<'_>,
    index: usize,
    passage: &Passage,
    errors: &Errors,
) -> Vec<Hit> {
    // Nothing is known of a frame whose end no fault explains.
    let (Some(range), false) = (
        trace.ports.iter().find(|range| range.contains(&index)),
        errors.stray,
    ) else {
        return Vec::new();
    };
    let due = passage.verdicts().flat_map(|verdict| &verdict.hits);
    let done = due.filter(|injection| !errors.missed.contains(injection));
    done.chain(&errors.collateral)
        .map(|injection| Hit {
            injection: *injection,
            switch: switch.to_owned(),
            port: trace.arrivals[index].port,
            frame: index - range.start + 1,
        })
        .collect()
}
