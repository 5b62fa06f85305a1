//! Decides, by the frames that follow, whether a trigger (a condition that turns a fault on) was on for one key, such as one
//! connection.
//!
//! Usually a frame itself shows it. If it does not, the judge follows each candidate state of this key through the next frames,
//! separately from other keys: following the doubts about all keys at once would double the number of cases with each doubt. A
//! candidate that explains fewer frames of the key than another is given up within a few frames.

use scenario::replay::{Classified, Passage, State};

use super::port::PortFrames;

/// Maximum number of following frames examined to decide a doubt about a trigger while many are open.
pub const FAR: usize = 4096;
/// A candidate trigger state is given up if it leaves this many more frames unexplained than the best candidate.
const DECIDED: u32 = 2;
/// Number of frames between two checks whether all candidate trigger states have become equal.
const COMPARED_EVERY: usize = 16;

/// A frame at which a trigger's state is in doubt, and the frames after it, which decide the doubt.
pub struct Ahead<'a> {
    pub port: PortFrames<'a>,
    /// The epoch (step of the timeline) in force for these frames.
    pub epoch: u16,
    /// Number of the first frame to which another epoch (step of the timeline) may apply.
    pub until: usize,
}

/// A candidate state of a trigger, and the number of frames whose departures it does not explain.
struct Way {
    state: State,
    misfits: u32,
}

impl Ahead<'_> {
    /// For each candidate trigger state at frame `index`, whether it explains the next `frames` frames about as well as the
    /// best one; and the number of frames followed for this, summed over the candidates.
    pub fn likely(&self, index: usize, frames: usize, states: Vec<State>) -> (Vec<bool>, u64) {
        let mut followed = 0;
        let mut ways: Vec<Way> = states
            .into_iter()
            .map(|state| Way { state, misfits: 0 })
            .collect();
        let end = self.until.min(self.port.known);
        let next = (index..end).filter(|i| self.port.is_watched(*i));
        let mut open = ways.len();
        for (count, index) in next.take(frames).enumerate() {
            let frame = &self.port.queue[index].frame;
            let least = ways.iter().map(|way| way.misfits).min().unwrap_or(0);
            for way in ways.iter_mut().filter(|way| way.misfits < least + DECIDED) {
                // The candidates differ in the doubt about the first frame, so it is not settled here.
                if count > 0 {
                    self.settle(way, frame, index);
                }
                followed += 1;
                let passage = self
                    .port
                    .scene
                    .engine
                    .pass(&mut way.state, frame, self.epoch);
                way.misfits += u32::from(!self.fits(index, &passage));
            }
            let least = ways.iter().map(|way| way.misfits).min().unwrap_or(0);
            let is_open = |way: &&Way| way.misfits < least + DECIDED;
            open = ways.iter().filter(is_open).count();
            if open < 2 {
                break;
            }
            if count % COMPARED_EVERY == COMPARED_EVERY - 1 {
                let mut open = ways.iter().filter(is_open);
                let first = open.next().map(|way| &way.state);
                if open.all(|way| Some(&way.state) == first) {
                    break;
                }
            }
        }
        let least = ways.iter().map(|way| way.misfits).min().unwrap_or(0);
        // If all candidates reached the same state, or no more is known, one misfit decides as well as two.
        let bar = if open < 2 { DECIDED } else { 1 };
        let likely = ways.iter().map(|way| way.misfits < least + bar);
        (likely.collect(), followed)
    }

    /// Settles the doubts about a trigger's state at a frame, as far as this frame's own departure tells.
    fn settle(&self, way: &mut Way, frame: &Classified, index: usize) {
        let engine = self.port.scene.engine;
        if engine.is_refuted(&way.state, frame) {
            way.misfits += DECIDED;
            return;
        }
        for either in engine.doubts(&way.state, frame) {
            // Alternatives are tried in reverse order: if the frame gives no evidence, nothing is assumed.
            let mut tried = either.iter().rev().map(|doubt| {
                let mut state = way.state.clone();
                engine.settle(&mut state, *doubt, frame);
                let before = state.clone();
                let passage = engine.pass(&mut state, frame, self.epoch);
                (before, self.fits(index, &passage))
            });
            let found = tried.find(|(_, fits)| *fits);
            if let Some((state, _)) = found {
                way.state = state;
            }
        }
    }

    /// Whether a frame left as the model expects (`passage`), or its departure is no evidence because of equal frames.
    fn fits(&self, index: usize, passage: &Passage) -> bool {
        let (scene, arrival) = (self.port.scene, &self.port.queue[index]);
        let leaves_as = scene.leaves_as(arrival, &passage.ingress);
        !scene.is_telling(arrival, leaves_as) || scene.is_as_expected(arrival, passage, leaves_as)
    }
}
