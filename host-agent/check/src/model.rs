//! The interface of a model for the model checker: nodes (state machines) that send each other frames.

use std::fmt;

use aggregation::Destination;

/// Maximum number of distinct frames of a model.
pub const MAX_FRAMES: usize = 1024;
/// Maximum number of nodes of a model.
pub const MAX_NODES: usize = 16;

/// A frame in flight between nodes of a model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Index of the sending node, which determines the input port.
    pub from: u8,
    /// Index of the receiving node.
    pub to: u8,
    /// Destination to which the sender addressed the frame.
    pub addressed: Destination,
    /// The frame's bytes from the aggregation header on.
    pub bytes: Vec<u8>,
}

/// An action that a node of a model performs without receiving a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Act {
    /// The node starts its next task (an operation or a round).
    Submit,
    /// All timers of the node fire.
    Timer,
    /// The node stops forever, as after a crash.
    Crash,
    /// The node (a switch) restarts and forgets all registers.
    Restart,
    /// The node starts a task beyond those of the model, to check that everything still works.
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

/// An error that the model checker finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// A node accepted a wrong sum.
    Sum(String),
    /// A node called a valid frame malformed, or gave up without a valid reason.
    Unexpected(String),
    /// A node waits forever, although no further frame is lost.
    Stuck,
    /// All tasks are done, but a further task does not complete.
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

/// Progress of a node with its tasks (operations or rounds).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The node has no tasks; it serves other nodes.
    Serves,
    /// The node will start further tasks.
    Wants,
    /// The node has a task in progress.
    Works,
    /// The node has finished all its tasks.
    Done,
    /// The node has crashed or was restarted, so progress is not guaranteed.
    Broken,
}

/// Frames and error that a node of a model outputs in a step.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Sent frames, each with its message number: the copies of a multicast message have the same number.
    pub(crate) frames: Vec<(u8, Frame)>,
    pub(crate) messages: u8,
    pub(crate) wrong: Option<Wrong>,
}

impl Outbox {
    /// Sends one message to each of the nodes `to`.
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

    /// Reports an error that the node detects; only the first error counts.
    pub fn wrong(&mut self, wrong: Wrong) {
        self.wrong.get_or_insert(wrong);
    }
}

/// A model to be checked: state machines and their network. All functions are deterministic: the checker makes the choices.
pub trait Model {
    /// The state machine of one node of the model.
    type Node: Clone;

    /// The nodes in their initial states. A frame's `from` and `to` are indices of this list.
    fn nodes(&self) -> Vec<Self::Node>;

    /// Number of nodes at the beginning of the list that are interchangeable.
    fn interchangeable(&self) -> usize;

    /// All permutations of interchangeable nodes, as the new index of each node; the first one is the identity.
    fn orders(&self, nodes: u8) -> Vec<Vec<u8>> {
        orders_of_first(self.interchangeable() as u8, nodes)
    }

    /// Appends to `out` all fields of a node that determine its behavior.
    fn state(&self, node: &Self::Node, out: &mut Vec<u8>);

    /// Progress of a node with its tasks.
    fn status(&self, node: &Self::Node) -> Status;

    /// Acts that a node may perform now, without a frame.
    fn acts(&self, node: &Self::Node) -> Vec<Act>;

    /// Performs an act of a node, and outputs the frames that it sends.
    fn act(&self, node: &mut Self::Node, act: Act, out: &mut Outbox);

    /// Delivers a frame to a node, and outputs the frames that it sends in reply.
    fn deliver(&self, node: &mut Self::Node, frame: &Frame, out: &mut Outbox);

    /// Clears the fields of a frame that no node reads, so that equivalent frames become equal. Returns variants of the frame
    /// that no node may distinguish from it: the checker tries them. If a node passes on a frame that another node has sent to
    /// the same receiver, `from` may be set to that other node; the checker verifies that it has sent the frame.
    fn mask(&self, frame: &mut Frame) -> Vec<Frame>;

    /// Whether the frame is assumed to have no effect at its receiver. The checker verifies it; a wrong assumption costs time.
    fn is_idle(&self, frame: &Frame) -> bool {
        let _ = frame;
        false
    }

    /// The error if the states of all nodes together are inconsistent; `None` if they are not.
    fn disagree(&self, nodes: &[&Self::Node]) -> Option<Wrong> {
        let _ = nodes;
        None
    }

    /// Whether nodes that have finished their tasks can get a further task.
    fn has_more(&self) -> bool {
        true
    }

    /// Whether the nodes without own tasks are finished, too, or will be; called when all other nodes have finished.
    fn ends(&self, nodes: &[&Self::Node]) -> bool {
        let _ = nodes;
        true
    }

    /// Name of a node, for traces.
    fn name(&self, node: u8) -> String;

    /// Short description of a node's current state, for traces.
    fn describe(&self, node: &Self::Node) -> String;
}

/// All permutations of the numbers below `of`, the identity first.
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

/// All permutations of the first `interchangeable` nodes, with the remaining nodes fixed.
pub(crate) fn orders_of_first(interchangeable: u8, nodes: u8) -> Vec<Vec<u8>> {
    let orders = permutations(interchangeable).into_iter();
    let whole = orders.map(|order| order.into_iter().chain(interchangeable..nodes).collect());
    whole.collect()
}
