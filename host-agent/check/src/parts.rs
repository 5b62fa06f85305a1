//! Parts: a node's state and all that it has sent so far. A state of the whole is one part a node, and the network is what all
//! of them have sent.

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};

use crate::machines::{Broken, Event, FrameSet, Machines};
use crate::model::{Act, Frame, Model};

/// What an event makes of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
    pub to: u32,
    /// Whether something is wrong with it; the step of the machine says what.
    pub wrong: bool,
}

struct Part {
    machine: u32,
    sent: FrameSet,
    /// Frames that are known to change nothing here.
    idle: FrameSet,
    /// All other events so far.
    next: Vec<(Event, Next)>,
}

pub struct Parts<'m, M: Model> {
    pub machines: Machines<'m, M>,
    parts: Vec<Part>,
    by_content: HashMap<(u32, FrameSet), u32, FixedState>,
    /// By node.
    at: Vec<Vec<u32>>,
    /// Frames that were sent and are not kept, as no part is changed by them; made sure of for every part.
    dropped: FrameSet,
    unsure: Vec<(u32, u16)>,
    /// Frames that were presumed to be idle, and are not.
    pub matters: HashSet<Frame, FixedState>,
    /// Whether one of them was found by now: then some states are missing.
    pub is_incomplete: bool,
    /// The parts at the beginning.
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

    /// The part of this content.
    pub fn intern(&mut self, machine: u32, sent: FrameSet) -> u32 {
        let next = self.parts.len() as u32;
        let part = *self.by_content.entry((machine, sent)).or_insert(next);
        if part == next {
            let at = usize::from(self.machines.at(machine));
            self.parts.push(Part {
                machine,
                sent,
                idle: FrameSet::default(),
                next: Vec::new(),
            });
            self.at[at].push(part);
            let dropped = self.dropped.within(self.machines.to(at));
            self.unsure
                .extend(dropped.iter().map(|frame| (part, frame)));
        }
        part
    }

    /// What an event makes of a part.
    pub fn next(&mut self, part: u32, event: Event) -> Result<Next, Broken> {
        let here = &self.parts[part as usize];
        let is_frame = event.as_act().is_none();
        if is_frame && here.idle.contains(event.0) {
            return Ok(Next {
                to: part,
                wrong: false,
            });
        }
        if let Some((_, next)) = here.next.iter().find(|(known, _)| *known == event) {
            return Ok(*next);
        }
        let machine = here.machine;
        let mut sent = here.sent;
        let step = self.machines.step(machine, event)?;
        let (to, wrong) = (step.to, step.wrong.is_some());
        let frames: Vec<u16> = step.sent.iter().map(|(_, frame)| *frame).collect();
        for frame in frames {
            if self.keeps(frame) {
                sent.insert(frame);
            }
        }
        let to = self.intern(to, sent);
        let next = Next { to, wrong };
        let here = &mut self.parts[part as usize];
        if is_frame && to == part && !wrong {
            here.idle.insert(event.0);
        } else {
            here.next.push((event, next));
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

    /// Makes sure that what is not kept changes nothing.
    pub fn make_sure(&mut self) -> Result<(), Broken> {
        while let Some((part, frame)) = self.unsure.pop() {
            if self.next(part, Event(frame))?.to != part {
                self.matters.insert(self.machines.frame(frame).clone());
                self.is_incomplete = true;
            }
        }
        Ok(())
    }

    /// The frames on their way to a node that may change it.
    pub fn under_way(&self, state: &[u32], node: usize) -> FrameSet {
        let mut sent = FrameSet::default();
        state.iter().for_each(|part| sent.add(self.sent(*part)));
        sent.within(self.machines.to(node))
            .without(&self.parts[state[node] as usize].idle)
    }

    /// All events that are possible at a node.
    pub fn events(&self, state: &[u32], node: usize) -> impl Iterator<Item = Event> + use<M> {
        let acts: Vec<Act> = self.machines.acts(self.machine(state[node])).to_vec();
        let frames = self.under_way(state, node);
        frames
            .iter()
            .map(Event)
            .chain(acts.into_iter().map(Event::act))
    }

    /// Does all that changes no node and only adds to what is under way: what is sent can be lost as well, so nothing that was
    /// possible before is impossible after. Tells the event at which something is wrong.
    pub fn saturate(
        &mut self,
        state: &mut [u32],
        mut log: impl FnMut(usize, Event),
    ) -> Result<Option<(usize, Event)>, Broken> {
        loop {
            let mut changed = false;
            for node in 0..state.len() {
                for event in self.events(state, node) {
                    let part = state[node];
                    let next = self.next(part, event)?;
                    if next.wrong {
                        return Ok(Some((node, event)));
                    }
                    if next.to != part && self.machine(next.to) == self.machine(part) {
                        log(node, event);
                        state[node] = next.to;
                        changed = true;
                    }
                }
            }
            if !changed {
                return Ok(None);
            }
        }
    }
}
