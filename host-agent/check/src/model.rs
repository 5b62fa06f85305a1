//! The interface of a model: state machines that send each other frames.

use std::fmt;

use aggregation::Destination;

/// Maximum number of distinct frames of a model.
pub const MAX_FRAMES: usize = 1024;
/// Maximum number of nodes of a model.
pub const MAX_NODES: usize = 16;

/// A frame in flight.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The sending node, which determines the input port.
    pub from: u8,
    /// The receiving node.
    pub to: u8,
    /// The addressee in the frame.
    pub addressed: Destination,
    /// The frame from the aggregation header on.
    pub bytes: Vec<u8>,
}

/// An action of a node without a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Act {
    /// The node gets its next task.
    Submit,
    /// All timers of the node fire.
    Timer,
    /// The node stops forever.
    Crash,
    /// The node forgets everything.
    Restart,
    /// The node gets a task beyond the model's, to check that everything still works.
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

/// An error in a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// A node accepted a wrong sum.
    Sum(String),
    /// A node called a valid frame malformed, or gave up without a reason.
    Unexpected(String),
    /// A node waits forever.
    Stuck,
    /// All tasks are done, but a further one does not work.
    Leaked,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sum(what) | Self::Unexpected(what) => what,
            Self::Stuck => {
                "if all frames in flight are lost now, and none afterwards, no node makes progress"
            }
            Self::Leaked => "all tasks are done, but a further one does not work",
        })
    }
}

/// Progress of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The node only serves others.
    Serves,
    /// The node has tasks to get.
    Wants,
    /// The node has a task in progress.
    Works,
    /// The node has finished its tasks.
    Done,
    /// The node has crashed or was reset: no progress is guaranteed.
    Broken,
}

/// Output of a node in a step.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Sent frames, each with the number of the message that it is a copy of.
    pub(crate) frames: Vec<(u8, Frame)>,
    pub(crate) messages: u8,
    pub(crate) wrong: Option<Wrong>,
}

impl Outbox {
    /// Sends one message to each of these nodes.
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

    /// Reports an error; the first one counts.
    pub fn wrong(&mut self, wrong: Wrong) {
        self.wrong.get_or_insert(wrong);
    }
}

/// State machines and their network. All functions are deterministic: the checker makes the choices.
pub trait Model {
    /// A node of the model.
    type Node: Clone;

    /// The initial nodes. A frame's `from` and `to` are indices of this list.
    fn nodes(&self) -> Vec<Self::Node>;

    /// Number of nodes, from the first on, that are interchangeable.
    fn interchangeable(&self) -> usize;

    /// All permutations of interchangeable nodes, as the new index of each node; the first one is the identity.
    fn orders(&self, nodes: u8) -> Vec<Vec<u8>> {
        orders_of_first(self.interchangeable() as u8, nodes)
    }

    /// Appends all fields of a node that determine its behavior.
    fn state(&self, node: &Self::Node, out: &mut Vec<u8>);

    /// Progress of the node.
    fn status(&self, node: &Self::Node) -> Status;

    /// Acts that the node may perform now.
    fn acts(&self, node: &Self::Node) -> Vec<Act>;

    /// Performs an act.
    fn act(&self, node: &mut Self::Node, act: Act, out: &mut Outbox);

    /// Delivers a frame.
    fn deliver(&self, node: &mut Self::Node, frame: &Frame, out: &mut Outbox);

    /// Reduces a frame to its meaning: clears the fields that no node reads, and returns variants of the frame that no node
    /// may distinguish from it, which the checker tries. If a node passes on a frame that another node has sent to the same
    /// receiver, `from` may become that node: the frame must already be in flight, which the checker verifies.
    fn mask(&self, frame: &mut Frame) -> Vec<Frame>;

    /// Whether the frame is assumed to have no effect at its receiver. The checker verifies this; a wrong assumption costs time.
    fn is_idle(&self, frame: &Frame) -> bool {
        let _ = frame;
        false
    }

    /// An error that concerns all nodes together.
    fn disagree(&self, nodes: &[&Self::Node]) -> Option<Wrong> {
        let _ = nodes;
        None
    }

    /// Whether finished nodes can get further tasks.
    fn has_more(&self) -> bool {
        true
    }

    /// Whether the serving nodes are finished, too, or will be; called when all others are.
    fn ends(&self, nodes: &[&Self::Node]) -> bool {
        let _ = nodes;
        true
    }

    /// Name of a node.
    fn name(&self, node: u8) -> String;

    /// Short description of a node's variable state.
    fn describe(&self, node: &Self::Node) -> String;
}

/// All permutations of `of` elements, the identity first.
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

/// All permutations of the first nodes, with the others fixed.
pub(crate) fn orders_of_first(interchangeable: u8, nodes: u8) -> Vec<Vec<u8>> {
    let orders = permutations(interchangeable).into_iter();
    let whole = orders.map(|order| order.into_iter().chain(interchangeable..nodes).collect());
    whole.collect()
}
