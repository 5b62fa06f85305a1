//! What is explored: machines that send each other frames.

use std::fmt;

use aggregation::Destination;

/// Of so many frames that differ, and no more, a model may be made.
pub const MAX_FRAMES: usize = 1024;
/// Of so many nodes, and no more.
pub const MAX_NODES: usize = 16;

/// A frame under way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Which node sent it, and so by which port it comes.
    pub from: u8,
    /// Which node it is on its way to.
    pub to: u8,
    /// Whom it is addressed to.
    pub addressed: Destination,
    /// From the aggregation header on.
    pub bytes: Vec<u8>,
}

/// What a node may do by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Act {
    /// It is given what it has to do next.
    Submit,
    /// All its timers fire.
    Timer,
    /// It does nothing any more.
    Crash,
    /// It forgets everything.
    Restart,
    /// It is given one thing more than the model wants: does everything still work?
    More,
}

impl Act {
    pub(crate) const ALL: [Self; 5] = [
        Self::Submit,
        Self::Timer,
        Self::Crash,
        Self::Restart,
        Self::More,
    ];
}

/// What must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// Somebody took a sum that is none.
    Sum(String),
    /// Somebody called a frame malformed that one of ours sent, or gave up without a reason.
    Unexpected(String),
    /// Somebody waits for ever.
    Stuck,
    /// All is done, but what comes next does not work.
    Leaked,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sum(what) | Self::Unexpected(what) => what,
            Self::Stuck => {
                "if all that is under way is lost now, and nothing after, nobody gets any further"
            }
            Self::Leaked => "all is done, but what comes next does not work",
        })
    }
}

/// How far a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It only serves others.
    Serves,
    /// It has work to get.
    Wants,
    /// It has work to do.
    Works,
    /// Its work is done.
    Done,
    /// It has crashed, or was told to forget: nobody's progress is promised.
    Broken,
}

/// What a node does at a step, besides changing.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Each frame with the number of the message that it is a copy of.
    pub(crate) frames: Vec<(u8, Frame)>,
    pub(crate) messages: u8,
    pub(crate) wrong: Option<Wrong>,
}

impl Outbox {
    /// Sends one message to these nodes.
    pub fn send(
        &mut self,
        from: u8,
        to: impl IntoIterator<Item = u8>,
        addressed: Destination,
        bytes: &[u8],
    ) {
        let message = self.messages;
        self.messages += 1;
        self.frames.extend(to.into_iter().map(|to| {
            let bytes = bytes.to_vec();
            let frame = Frame {
                from,
                to,
                addressed,
                bytes,
            };
            (message, frame)
        }));
    }

    /// Says what is wrong; the first counts.
    pub fn wrong(&mut self, wrong: Wrong) {
        self.wrong.get_or_insert(wrong);
    }
}

/// Machines, and what connects them. All of it is deterministic: the checker makes the choices.
pub trait Model {
    /// One of the machines.
    type Node: Clone;

    /// Those at the beginning. A frame's `from` and `to` are indices of this list.
    fn nodes(&self) -> Vec<Self::Node>;

    /// The first so many of the nodes are interchangeable: what one can do, each can.
    fn interchangeable(&self) -> usize;

    /// Where each node goes, in all the ways in which nodes may change places; the first is the identity.
    fn orders(&self, nodes: u8) -> Vec<Vec<u8>> {
        orders_of_first(self.interchangeable() as u8, nodes)
    }

    /// Appends all of a node that decides what it does.
    fn state(&self, node: &Self::Node, out: &mut Vec<u8>);

    /// How far it is.
    fn status(&self, node: &Self::Node) -> Status;

    /// What it may do by itself now.
    fn acts(&self, node: &Self::Node) -> Vec<Act>;

    /// It does so.
    fn act(&self, node: &mut Self::Node, act: Act, out: &mut Outbox);

    /// It gets a frame.
    fn deliver(&self, node: &mut Self::Node, frame: &Frame, out: &mut Outbox);

    /// A frame that its sender passes on as another has sent it to the same node may be given `from` of that one: it has to be
    /// under way already then, and the checker makes sure of it. Takes from a frame what nobody reads, and gives other frames that nobody may tell from it: the checker tries.
    fn mask(&self, frame: &mut Frame) -> Vec<Frame>;

    /// Whether the frame is presumed to change nothing at whom it reaches. The checker makes sure; a wrong guess costs time.
    fn is_idle(&self, frame: &Frame) -> bool {
        let _ = frame;
        false
    }

    /// What is wrong with all nodes together.
    fn disagree(&self, nodes: &[&Self::Node]) -> Option<Wrong> {
        let _ = nodes;
        None
    }

    /// Whether those who are done can be given more.
    fn has_more(&self) -> bool {
        true
    }

    /// All are done: whether those who serve are as well, or will be.
    fn ends(&self, nodes: &[&Self::Node]) -> bool {
        let _ = nodes;
        true
    }

    /// A node's name.
    fn name(&self, node: u8) -> String;

    /// A node in a few words: what of it changed.
    fn describe(&self, node: &Self::Node) -> String;
}

/// All orders of so many, the first as they are.
pub(crate) fn permutations(of: u8) -> Vec<Vec<u8>> {
    let mut orders = vec![Vec::new()];
    for _ in 0..of {
        let longer = orders.iter().flat_map(|order: &Vec<u8>| {
            let free = (0..of).filter(|node| !order.contains(node));
            free.map(|node| order.iter().copied().chain([node]).collect())
        });
        orders = longer.collect();
    }
    orders
}

/// The same of the first nodes, where the others stay.
pub(crate) fn orders_of_first(interchangeable: u8, nodes: u8) -> Vec<Vec<u8>> {
    let orders = permutations(interchangeable).into_iter();
    let whole = orders.map(|order| order.into_iter().chain(interchangeable..nodes).collect());
    whole.collect()
}
