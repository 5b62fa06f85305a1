//! States of single nodes of a model, and the result of each event in them: the code to be checked runs once for each pair.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::model::{Act, Frame, MAX_FRAMES, MAX_NODES, Model, Outbox, Wrong};

/// A set of frames, by number, as a bitmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FrameSet([u64; MAX_FRAMES / 64]);

impl FrameSet {
    pub fn insert(&mut self, frame: u16) {
        self.0[usize::from(frame) / 64] |= 1 << (frame % 64);
    }

    pub fn contains(&self, frame: u16) -> bool {
        self.0[usize::from(frame) / 64] & 1 << (frame % 64) != 0
    }

    pub fn add(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(other.0) {
            *word |= other;
        }
    }

    #[must_use]
    pub fn without(mut self, other: &Self) -> Self {
        for (word, other) in self.0.iter_mut().zip(other.0) {
            *word &= !other;
        }
        self
    }

    #[must_use]
    pub fn within(mut self, other: &Self) -> Self {
        for (word, other) in self.0.iter_mut().zip(other.0) {
            *word &= other;
        }
        self
    }

    pub fn iter(self) -> impl Iterator<Item = u16> {
        self.0.into_iter().enumerate().flat_map(|(at, mut word)| {
            std::iter::from_fn(move || {
                let bit = word.trailing_zeros();
                (word != 0).then(|| {
                    word &= word - 1;
                    at as u16 * 64 + bit as u16
                })
            })
        })
    }
}

/// An event at a node of a model: the delivery of the frame with this number, or, from [`MAX_FRAMES`] on, an act of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Event(pub u16);

impl Event {
    pub fn act(act: Act) -> Self {
        Self(MAX_FRAMES as u16 + act as u16)
    }

    pub fn as_act(self) -> Option<Act> {
        let act = usize::from(self.0).checked_sub(MAX_FRAMES)?;
        Act::ALL.get(act).copied()
    }
}

/// Result of an event at a node of a model.
#[derive(Debug, Clone)]
pub struct Step {
    pub to: u32,
    /// Sent frames, as pairs of message number and frame number; the copies of a multicast message share a message number.
    pub sent: Vec<(u8, u16)>,
    pub wrong: Option<Wrong>,
}

/// Reason why a model cannot be checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The model has more than [`MAX_FRAMES`] distinct frames.
    #[error("the model has more than {MAX_FRAMES} different frames")]
    Frames,
    /// The model has more than [`MAX_NODES`] nodes.
    #[error("more than {MAX_NODES} nodes")]
    Nodes,
    /// Single nodes have more states than the encoding of a global state in 128 bits can distinguish.
    #[error("the nodes have too many states for 128 bits")]
    Parts,
    /// A node reads a field of a frame that the model declares unread.
    #[error("a node distinguishes this frame from an equivalent one: {0}")]
    Mask(String),
    /// Nodes of equal serialized states behave differently, so the serialization lacks a field.
    #[error("a state does not determine what its node does")]
    State,
    /// Nodes that the model declares interchangeable behave differently.
    #[error("the nodes are not interchangeable")]
    Symmetry,
    /// A node forwards a frame in the name of another node that has not sent it.
    #[error("a node forwards a frame that no node has sent")]
    Borrowed,
    /// A node with a task in progress returned to an earlier state, so that its progress has no end.
    #[error("a node in progress returned to an earlier state")]
    Circle,
}

struct Machine<N> {
    node: N,
    at: u8,
    acts: Vec<Act>,
    /// The first step that led to this state, as previous state and event; `None` for an initial state.
    origin: Option<(u32, Event)>,
}

struct Known {
    frame: Frame,
    /// The first step that sent the frame, as state and event, and how many frames that step sent to the same node before it.
    origin: (u32, Event, usize),
}

pub struct Machines<'m, M: Model> {
    pub model: &'m M,
    machines: Vec<Machine<M::Node>>,
    by_state: HashMap<(u8, Vec<u8>), u32, FixedState>,
    frames: Vec<Known>,
    by_frame: HashMap<Frame, u16, FixedState>,
    /// The known frames to each node.
    to: Vec<FrameSet>,
    steps: Vec<Step>,
    by_event: HashMap<(u32, Event), u32, FixedState>,
    /// The initial state of each node.
    pub first: Vec<u32>,
    /// Maximum number of times that all timers had to fire before some node made progress.
    pub periods: u32,
    /// Whether nodes with equal states are tested to behave equally, which takes long.
    pub compares: bool,
}

impl<'m, M: Model> Machines<'m, M> {
    pub fn new(model: &'m M) -> Self {
        let nodes = model.nodes();
        let mut machines = Self {
            model,
            machines: Vec::new(),
            by_state: HashMap::default(),
            frames: Vec::new(),
            by_frame: HashMap::default(),
            to: vec![FrameSet::default(); nodes.len()],
            steps: Vec::new(),
            by_event: HashMap::default(),
            first: Vec::new(),
            periods: 0,
            compares: false,
        };
        for (at, node) in nodes.into_iter().enumerate() {
            let machine = machines.intern(at as u8, node, None);
            machines.first.push(machine);
        }
        machines
    }

    pub fn len(&self) -> usize {
        self.machines.len()
    }

    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    pub fn nodes(&self) -> usize {
        self.to.len()
    }

    pub fn node(&self, machine: u32) -> &M::Node {
        &self.machines[machine as usize].node
    }

    pub fn at(&self, machine: u32) -> u8 {
        self.machines[machine as usize].at
    }

    pub fn acts(&self, machine: u32) -> &[Act] {
        &self.machines[machine as usize].acts
    }

    pub fn machine_origin(&self, machine: u32) -> Option<(u32, Event)> {
        self.machines[machine as usize].origin
    }

    pub fn frame(&self, frame: u16) -> &Frame {
        &self.frames[usize::from(frame)].frame
    }

    pub fn frame_origin(&self, frame: u16) -> (u32, Event, usize) {
        self.frames[usize::from(frame)].origin
    }

    /// All known frames to a node, whether or not they were sent in a given global state.
    pub fn to(&self, node: usize) -> &FrameSet {
        &self.to[node]
    }

    /// All transitions of single nodes found so far, as pairs of state before and state after.
    pub fn edges(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.by_event
            .iter()
            .map(|((from, _), step)| (*from, self.steps[*step as usize].to))
    }

    /// The result of an event at a node in the state `machine`; runs the checked code if it is not known yet.
    pub fn step(&mut self, machine: u32, event: Event) -> Result<&Step, Broken> {
        if let Some(step) = self.by_event.get(&(machine, event)) {
            return Ok(&self.steps[*step as usize]);
        }
        let (node, out) = self.run(machine, event, None);
        if event.as_act().is_none() {
            self.try_variants(machine, event, &node, &out)?;
        }
        let at = self.at(machine);
        let before = self.machines.len();
        let double = self.compares.then(|| node.clone());
        let to = self.intern(at, node, Some((machine, event)));
        if let Some(double) = double.filter(|_| (to as usize) < before) {
            self.compare(to, &double)?;
        }
        let mut sent: Vec<(u8, u16)> = Vec::new();
        for (message, mut frame) in out.frames {
            self.model.mask(&mut frame);
            let to = frame.to;
            let before = sent
                .iter()
                .filter(|(_, frame)| self.frame(*frame).to == to)
                .count();
            let known = self.intern_frame(frame, (machine, event, before))?;
            sent.push((message, known));
        }
        let wrong = out.wrong;
        self.by_event
            .insert((machine, event), self.steps.len() as u32);
        self.steps.push(Step { to, sent, wrong });
        Ok(&self.steps[self.steps.len() - 1])
    }

    fn run(&self, machine: u32, event: Event, frame: Option<&Frame>) -> (M::Node, Outbox) {
        self.run_node(self.node(machine).clone(), event, frame)
    }

    fn run_node(
        &self,
        mut node: M::Node,
        event: Event,
        frame: Option<&Frame>,
    ) -> (M::Node, Outbox) {
        let mut out = Outbox::default();
        match event.as_act() {
            Some(act) => self.model.act(&mut node, act, &mut out),
            None => {
                let frame = frame.unwrap_or_else(|| self.frame(event.0));
                self.model.deliver(&mut node, frame, &mut out);
            }
        }
        (node, out)
    }

    /// Delivers variants of a frame that differ only in fields declared unread, and fails if a result differs.
    fn try_variants(
        &self,
        machine: u32,
        event: Event,
        node: &M::Node,
        out: &Outbox,
    ) -> Result<(), Broken> {
        let seen = self.seen(node, out);
        for variant in self.model.mask(&mut self.frame(event.0).clone()) {
            let (node, out) = self.run(machine, event, Some(&variant));
            if self.seen(&node, &out) != seen {
                return Err(Broken::Mask(format!("{variant:?}")));
            }
        }
        Ok(())
    }

    /// Fails unless `double`, a node in a known state, behaves for every next event as the first node in that state did.
    fn compare(&self, known: u32, double: &M::Node) -> Result<(), Broken> {
        let acts = self.acts(known).iter().map(|act| Event::act(*act));
        let frames = self.to[usize::from(self.at(known))].iter().map(Event);
        for event in acts.chain(frames) {
            let (node, out) = self.run(known, event, None);
            let (other, other_out) = self.run_node(double.clone(), event, None);
            if self.seen(&node, &out) != self.seen(&other, &other_out) {
                return Err(Broken::State);
            }
        }
        Ok(())
    }

    fn seen(&self, node: &M::Node, out: &Outbox) -> (Vec<u8>, Vec<Frame>) {
        let mut state = Vec::new();
        self.model.state(node, &mut state);
        let frames = out.frames.iter().map(|(_, frame)| {
            let mut frame = frame.clone();
            self.model.mask(&mut frame);
            frame
        });
        (state, frames.collect())
    }

    fn intern(&mut self, at: u8, node: M::Node, origin: Option<(u32, Event)>) -> u32 {
        let mut state = Vec::new();
        self.model.state(&node, &mut state);
        let next = self.machines.len() as u32;
        let machine = *self.by_state.entry((at, state)).or_insert(next);
        if machine == next {
            let acts = self.model.acts(&node);
            self.machines.push(Machine {
                node,
                at,
                acts,
                origin,
            });
        }
        machine
    }

    fn intern_frame(&mut self, frame: Frame, origin: (u32, Event, usize)) -> Result<u16, Broken> {
        if let Some(known) = self.by_frame.get(&frame) {
            return Ok(*known);
        }
        if self.frames.len() == MAX_FRAMES {
            return Err(Broken::Frames);
        }
        let number = self.frames.len() as u16;
        self.to[usize::from(frame.to)].insert(number);
        self.by_frame.insert(frame.clone(), number);
        self.frames.push(Known { frame, origin });
        Ok(number)
    }
}
