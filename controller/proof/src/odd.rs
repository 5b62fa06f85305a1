//! A replayed frame that needs a second look, and the counting of how faults treated it.

use scenario::plan::Plan;
use scenario::replay::Engine;

use super::epochs::{Decided, Judged};
use super::facts::EpochWrite;
use super::frame::{Digest, Identity};
use super::hits::{self, Found};
use super::judge::{self, Errors, Scene};
use super::order::Lazy;
use super::tally::{self, Left, Tally};
use super::trace::{Arrival, Passed};

/// Basis for judging a switch's frames, apart from the captures: its plan, and the model of its fault engine.
pub struct Ground<'a> {
    pub name: &'a str,
    pub plan: &'a Plan,
    pub engine: Engine,
    pub digest: Digest,
    /// The writes of epochs to this switch, in order of time.
    pub writes: Vec<EpochWrite>,
    /// Whether no fault of the switch looks at frames in egress.
    pub has_ingress_alone: bool,
    /// Whether some fault of the switch delays frames, so that the order of departures is evidence.
    pub is_timed: bool,
}

impl Ground<'_> {
    /// Combines this with the captured frames, to judge frames.
    pub fn scene<'s>(&'s self, passed: &'s Passed) -> Scene<'s> {
        Scene {
            engine: &self.engine,
            passed,
            digest: self.digest,
        }
    }

    /// Whether a frame that arrived at `at_ns` counts. No fault applies before the first epoch
    /// write and after the last one, and the captures of the ports do not start and end together.
    pub fn is_under_watch(&self, at_ns: u64) -> bool {
        let (Some(first), Some(last)) = (self.writes.first(), self.writes.last()) else {
            return false;
        };
        let is_over = last.epoch == 0 && at_ns > last.confirmed_ns;
        at_ns >= first.sent_ns && !is_over
    }
}

/// A replayed frame that is not decided.
#[derive(Debug)]
pub struct Odd {
    pub frame: Decided,
    /// For each equally good reading of the frame: indices of injections (faults on flows), and the frame's number at each.
    pub ordinals: Vec<Vec<(usize, u64)>>,
    /// Index of the stretch of frames with equally good readings to which the frame belongs; `None` if one reading explains it.
    pub tie: Option<usize>,
}

impl Odd {
    /// The fate that the model expects for the frame under this one of its equally good readings.
    pub fn judged(&self, reading: usize) -> &Judged {
        self.frame
            .judged
            .get(reading)
            .unwrap_or(&self.frame.judged[0])
    }
}

/// Departure times of a frame's copies, by egress port; `None` if they do not match the model or equal frames exist.
pub fn plainly(ground: &Ground<'_>, passed: &Passed, odd: &Odd) -> Option<Vec<Vec<u64>>> {
    let ([judged], arrival) = (&odd.frame.judged[..], &odd.frame.arrival) else {
        return None;
    };
    let (scene, passage) = (ground.scene(passed), &judged.passage);
    let is_plain = scene.is_telling(arrival, judged.leaves_as)
        && (judged.leaves_as == arrival.identity || passed.is_expected_once(judged.leaves_as))
        && scene.is_as_expected(arrival, passage, judged.leaves_as)
        && !(ground.is_timed && scene.took_as_long_as_held(arrival, passage, judged.leaves_as));
    let exits = passage.exits.iter();
    let left = exits.map(|(exit, _)| passed.left(*exit, judged.leaves_as).to_vec());
    let left: Vec<Vec<u64>> = if is_plain {
        left.collect()
    } else {
        return None;
    };
    let is_late = ground.is_timed
        && tally::is_beyond((&ground.engine, ground.plan), passage, arrival.at_ns, &left);
    (!is_late).then_some(left)
}

/// Counts how faults treated a frame if `reading` is right. Returns its identity at departure; `None`: the expected one.
pub fn count(
    ground: &Ground<'_>,
    passed: &Passed,
    (odd, left): (&Odd, &[Vec<u64>]),
    reading: usize,
    order: &Lazy<'_>,
    tally: &mut Tally,
) -> Option<Identity> {
    let (arrival, judged) = (&odd.frame.arrival, odd.judged(reading));
    let passage = &judged.passage;
    let was_hit = passage.verdicts().any(|verdict| !verdict.hits.is_empty());
    if !was_hit && !ground.is_under_watch(arrival.at_ns) {
        return None;
    }
    let errors = judge::explain(
        ground.scene(passed),
        arrival,
        passage,
        judged.leaves_as,
        left,
    );
    tally.strays.unexplained += u64::from(errors.stray);
    let found = Found {
        switch: ground.name,
        arrival,
        judged,
        ordinals: odd.ordinals.get(reading).map_or(&[], Vec::as_slice),
        left,
        errors: &errors,
    };
    tally.hits.extend(hits::of_frame(&ground.engine, &found));
    let seen = Left {
        index: number_of(arrival),
        came_ns: arrival.at_ns,
        left,
        errors: &errors,
        is_at_boundary: arrival.is_at_boundary,
    };
    tally.count(judged, seen);
    if ground.is_timed {
        tally.count_held((&ground.engine, ground.plan), passage, seen, order);
        tally.count_spared(&ground.engine, passage, seen, order);
    }
    let Errors { seen_as, .. } = errors;
    seen_as
}

/// Number of an arrived frame by which [`super::order::Order`] identifies it.
pub fn number_of(arrival: &Arrival) -> usize {
    (arrival.port as usize) << 40 | arrival.number as usize
}
