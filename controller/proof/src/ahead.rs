//! A doubt about the trigger of one key, decided by what comes next.
//!
//! Mostly the frame itself tells. What a doubt leaves open of one key has nothing to do with what others leave open, so where
//! there is much of it, following all at once would double the readings with each. Then the frames that come next are followed
//! for each way by itself, and what explains them worse is given up: within a few frames of the key that tells.

use scenario::replay::{Classified, Passage, State};

use super::port::PortFrames;

/// So many frames are looked at where much is open; what is open then is followed like other doubts.
pub const FAR: usize = 4096;
/// A way that explains so many frames less than another is none.
const DECIDED: u32 = 2;
/// How often it is looked whether all have come to the same.
const COMPARED_EVERY: usize = 16;

/// What comes behind a frame.
pub struct Ahead<'a> {
    pub port: PortFrames<'a>,
    /// The step that is in force.
    pub epoch: u16,
    /// The first frame that another may meet.
    pub until: usize,
}

/// One of the ways.
struct Way {
    state: State,
    misfits: u32,
}

impl Ahead<'_> {
    /// Which of some states, from a frame on, explain what was seen of so many frames about as well as the best; and how many
    /// frames were followed for that, all states together.
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
                // What was in doubt of the first frame is what the ways differ in.
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
        // If all came to the same, or nothing more is known, one frame tells as well as two.
        let bar = if open < 2 { DECIDED } else { 1 };
        let likely = ways.iter().map(|way| way.misfits < least + bar);
        (likely.collect(), followed)
    }

    /// Settles what is in doubt of a frame by what became of that frame alone.
    fn settle(&self, way: &mut Way, frame: &Classified, index: usize) {
        let engine = self.port.scene.engine;
        if engine.is_refuted(&way.state, frame) {
            way.misfits += DECIDED;
            return;
        }
        for either in engine.doubts(&way.state, frame) {
            // Nothing is assumed where nothing tells.
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

    /// Whether a frame was seen to be treated so, or tells nothing.
    fn fits(&self, index: usize, passage: &Passage) -> bool {
        let (scene, arrival) = (self.port.scene, &self.port.queue[index]);
        let leaves_as = scene.leaves_as(arrival, &passage.ingress);
        !scene.is_telling(arrival, leaves_as) || scene.is_as_expected(arrival, passage, leaves_as)
    }
}
