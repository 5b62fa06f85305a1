//! Parts of global states: a part is one node's state with all frames that it has sent so far. A global state has one part per
//! node, and the network is the union of the parts' frames.

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};

use crate::machines::{Broken, Event, FrameSet, Machines};
use crate::model::{Frame, MAX_NODES, Model};

/// Result of an event at a part (a node's state with its sent frames).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
    pub to: u32,
    /// Whether the event reveals an error, which the node's [`Step`](crate::machines::Step) describes.
    pub wrong: bool,
}

struct Part {
    machine: u32,
    sent: FrameSet,
    /// Frames whose delivery to this part has a known result. Of these, `moves` change the part, `grows` only make it send
    /// frames, and `wrong` reveal an error.
    known: FrameSet,
    moves: FrameSet,
    grows: FrameSet,
    wrong: FrameSet,
    /// Frames that the node sends in the name of other nodes, as a rank does with a kept sum.
    borrowed: FrameSet,
    /// Results of the node's acts, and of the frames that change the part, in ascending order of events.
    next: Vec<(Event, Next)>,
}

pub struct Parts<'m, M: Model> {
    pub machines: Machines<'m, M>,
    parts: Vec<Part>,
    by_content: HashMap<(u32, FrameSet), u32, FixedState>,
    /// Numbers of all known parts, by node.
    at: Vec<Vec<u32>>,
    /// Frames that were sent but are not recorded, since they change no part; the checker verifies this for every part.
    dropped: FrameSet,
    unsure: Vec<(u32, u16)>,
    /// Frames that the model assumed to have no effect, but that have one.
    pub matters: HashSet<Frame, FixedState>,
    /// Whether a frame assumed to have no effect had one in this run, so that some global states are missing.
    pub is_incomplete: bool,
    /// The initial part of each node.
    pub first: Vec<u32>,
}

impl<'m, M: Model> Parts<'m, M> {
    pub fn new(model: &'m M, matters: HashSet<Frame, FixedState>) -> Self {
        let machines = Machines::new(model);
        let mut parts = Self {
            parts: Vec::new(),
            by_content: HashMap::default(),
            at: vec![Vec::new(); machines.nodes()],
            machines,
            dropped: FrameSet::default(),
            unsure: Vec::new(),
            matters,
            is_incomplete: false,
            first: Vec::new(),
        };
        for machine in parts.machines.first.clone() {
            let part = parts.intern(machine, FrameSet::default());
            parts.first.push(part);
        }
        parts
    }

    pub fn len(&self) -> usize {
        self.parts.len()
    }

    pub fn machine(&self, part: u32) -> u32 {
        self.parts[part as usize].machine
    }

    pub fn sent(&self, part: u32) -> &FrameSet {
        &self.parts[part as usize].sent
    }

    /// The number of the part with this state and these sent frames; adds it if it is new.
    pub fn intern(&mut self, machine: u32, sent: FrameSet) -> u32 {
        let next = self.parts.len() as u32;
        let part = *self.by_content.entry((machine, sent)).or_insert(next);
        if part == next {
            let at = usize::from(self.machines.at(machine));
            self.parts.push(Part {
                machine,
                sent,
                known: FrameSet::default(),
                moves: FrameSet::default(),
                grows: FrameSet::default(),
                wrong: FrameSet::default(),
                borrowed: FrameSet::default(),
                next: Vec::new(),
            });
            self.at[at].push(part);
            let dropped = self.dropped.within(self.machines.to(at));
            self.unsure
                .extend(dropped.iter().map(|frame| (part, frame)));
        }
        part
    }

    /// The result of an event at a part; computed if it is not known yet.
    pub fn next(&mut self, part: u32, event: Event) -> Result<Next, Broken> {
        let here = &self.parts[part as usize];
        let is_frame = event.as_act().is_none();
        if is_frame && here.known.contains(event.0) && !here.moves.contains(event.0) {
            return Ok(Next {
                to: part,
                wrong: false,
            });
        }
        let place = here.next.binary_search_by_key(&event, |(known, _)| *known);
        if let Ok(at) = place {
            return Ok(here.next[at].1);
        }
        let machine = here.machine;
        let mut sent = here.sent;
        let step = self.machines.step(machine, event)?;
        let (to, wrong) = (step.to, step.wrong.is_some());
        let frames: Vec<u16> = step.sent.iter().map(|(_, frame)| *frame).collect();
        let mut borrowed = FrameSet::default();
        for frame in frames {
            if self.machines.frame(frame).from != self.machines.at(machine) {
                borrowed.insert(frame);
            } else if self.keeps(frame) {
                sent.insert(frame);
            }
        }
        self.parts[part as usize].borrowed.add(&borrowed);
        let to = self.intern(to, sent);
        let next = Next { to, wrong };
        let grows = to != part && self.machine(to) == machine;
        let here = &mut self.parts[part as usize];
        if is_frame {
            here.known.insert(event.0);
            if wrong {
                here.wrong.insert(event.0);
            }
            if grows {
                here.grows.insert(event.0);
            }
            if to == part && !wrong {
                return Ok(next);
            }
            here.moves.insert(event.0);
        }
        if let Err(at) = here.next.binary_search_by_key(&event, |(known, _)| *known) {
            here.next.insert(at, (event, next));
        }
        Ok(next)
    }

    fn keeps(&mut self, frame: u16) -> bool {
        if self.dropped.contains(frame) {
            return false;
        }
        let content = self.machines.frame(frame);
        if !self.machines.model.is_idle(content) || self.matters.contains(content) {
            return true;
        }
        self.dropped.insert(frame);
        let parts = &self.at[usize::from(content.to)];
        self.unsure.extend(parts.iter().map(|part| (*part, frame)));
        false
    }

    /// Verifies that frames which are not recorded change no part.
    pub fn make_sure(&mut self) -> Result<(), Broken> {
        while let Some((part, frame)) = self.unsure.pop() {
            if self.next(part, Event(frame))?.to != part {
                self.matters.insert(self.machines.frame(frame).clone());
                self.is_incomplete = true;
            }
        }
        Ok(())
    }

    /// Whether all frames that nodes of a global state send in the name of other nodes are already in flight.
    pub fn owes_nothing(&self, state: &[u32]) -> bool {
        let mut sent = FrameSet::default();
        let mut borrowed = FrameSet::default();
        for part in state {
            sent.add(self.sent(*part));
            borrowed.add(&self.parts[*part as usize].borrowed);
        }
        borrowed.without(&sent) == FrameSet::default()
    }

    /// The frames in flight to a node in a global state.
    fn under_way(&self, state: &[u32], node: usize) -> FrameSet {
        let mut sent = FrameSet::default();
        state.iter().for_each(|part| sent.add(self.sent(*part)));
        sent.within(self.machines.to(node))
    }

    /// Computes the results of delivering these frames to a part, as far as they are unknown.
    fn know(&mut self, part: u32, frames: FrameSet) -> Result<(), Broken> {
        let unknown = frames.without(&self.parts[part as usize].known);
        for frame in unknown.iter() {
            self.next(part, Event(frame))?;
        }
        Ok(())
    }

    /// All events that can change a node's part in a global state.
    pub fn events(&mut self, state: &[u32], node: usize) -> Result<Vec<Event>, Broken> {
        let part = state[node];
        let frames = self.under_way(state, node);
        self.know(part, frames)?;
        let here = &self.parts[part as usize];
        let acts = self.machines.acts(here.machine).iter();
        let frames = frames.within(&here.moves).iter().map(Event);
        Ok(frames.chain(acts.map(|act| Event::act(*act))).collect())
    }

    /// Performs all events that change no node's state and only add frames in flight, after `step` (the node's index, and its
    /// part before the step; `None` at the beginning). Frames may also be lost, so everything that was possible before remains
    /// possible. Returns an event that reveals an error, with its node; otherwise `None`.
    pub fn saturate(
        &mut self,
        state: &mut [u32],
        step: Option<(usize, u32)>,
        mut log: impl FnMut(usize, Event),
    ) -> Result<Option<(usize, Event)>, Broken> {
        // Frames to process: all at the changed node, and new ones at the others.
        let mut look = [FrameSet::default(); MAX_NODES];
        let mut acts = [step.is_none(); MAX_NODES];
        for (node, look) in look.iter_mut().enumerate().take(state.len()) {
            *look = match step {
                Some((changed, before)) if changed != node => {
                    let new = self.sent(state[changed]).without(self.sent(before));
                    new.within(self.machines.to(node))
                }
                _ => self.under_way(state, node),
            };
        }
        if let Some((changed, _)) = step {
            acts[changed] = true;
        }
        loop {
            let waits = |node: &usize| acts[*node] || look[*node] != FrameSet::default();
            let Some(node) = (0..state.len()).find(waits) else {
                return Ok(None);
            };
            let part = state[node];
            self.know(part, look[node])?;
            let here = &self.parts[part as usize];
            if let Some(frame) = look[node].within(&here.wrong).iter().next() {
                return Ok(Some((node, Event(frame))));
            }
            let growing = look[node].within(&here.grows).iter().next().map(Event);
            let growing = match growing {
                Some(event) => Some(event),
                None => {
                    look[node] = FrameSet::default();
                    acts[node] = false;
                    self.growing_act(part)?
                }
            };
            let Some(event) = growing else {
                continue;
            };
            let next = self.next(part, event)?;
            if next.wrong {
                return Ok(Some((node, event)));
            }
            log(node, event);
            state[node] = next.to;
            acts[node] = true;
            let new = self.sent(next.to).without(self.sent(part));
            for (to, look) in look.iter_mut().enumerate().take(state.len()) {
                look.add(&new.within(self.machines.to(to)));
            }
            // Frames without effect on the previous part may affect this one.
            look[node] = self.under_way(state, node);
        }
    }

    /// An act of the node that only makes it send frames, without a change of its state; `None` if there is none.
    fn growing_act(&mut self, part: u32) -> Result<Option<Event>, Broken> {
        for at in 0..self.machines.acts(self.machine(part)).len() {
            let event = Event::act(self.machines.acts(self.machine(part))[at]);
            let next = self.next(part, event)?;
            if next.wrong || next.to != part && self.machine(next.to) == self.machine(part) {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }
}
