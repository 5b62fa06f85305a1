//! A plain search to compare with: each frame is in flight individually, may be sent and duplicated a limited number of
//! times, and may be lost; no step is skipped, and no nodes are interchangeable.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::all_reduce::{self, AllReduce, Operation};
use crate::machines::{Event, Machines};
use crate::model::{Act, Frame, Model, Outbox, Status};
use crate::parameter_server::{self, ParameterServer};
use crate::search::{Exploration, Search, explore};
use crate::space::StateSpace;
use aggregation::job::ChunkId;
use aggregation::server::Mode;

/// A model whose nodes count as not interchangeable; with the flag, no frame is assumed to be idle, either.
struct Plain<'m, M>(&'m M, bool);

impl<M: Model> Model for Plain<'_, M> {
    type Node = M::Node;

    fn nodes(&self) -> Vec<M::Node> {
        self.0.nodes()
    }

    fn interchangeable(&self) -> usize {
        0
    }

    fn state(&self, node: &M::Node, out: &mut Vec<u8>) {
        self.0.state(node, out);
    }

    fn status(&self, node: &M::Node) -> Status {
        self.0.status(node)
    }

    fn acts(&self, node: &M::Node) -> Vec<Act> {
        self.0.acts(node)
    }

    fn act(&self, node: &mut M::Node, act: Act, out: &mut Outbox) {
        self.0.act(node, act, out);
    }

    fn deliver(&self, node: &mut M::Node, frame: &Frame, out: &mut Outbox) {
        self.0.deliver(node, frame, out);
    }

    fn mask(&self, frame: &mut Frame) -> Vec<Frame> {
        self.0.mask(frame)
    }

    fn is_idle(&self, frame: &Frame) -> bool {
        self.1 && self.0.is_idle(frame)
    }

    fn has_more(&self) -> bool {
        self.0.has_more()
    }

    fn name(&self, node: u8) -> String {
        self.0.name(node)
    }

    fn describe(&self, node: &M::Node) -> String {
        self.0.describe(node)
    }
}

/// States of all nodes, as bytes.
type States = BTreeSet<Vec<Vec<u8>>>;

fn bytes<M: Model>(machines: &Machines<'_, M>, nodes: &[u32]) -> Vec<Vec<u8>> {
    let state = |node: &u32| {
        let mut state = Vec::new();
        machines.model.state(machines.node(*node), &mut state);
        state
    };
    nodes.iter().map(state).collect()
}

/// For each frame: copies in flight, times sent, times duplicated.
type Network = BTreeMap<u16, [u8; 3]>;

/// Maximum number of states of the plain search.
const MAX_STATES: usize = 60_000;

/// The states reachable if each frame is sent at most twice and duplicated at most once; explores states near the beginning
/// and far from it alternately.
fn plainly<M: Model>(model: &M) -> States {
    let mut machines = Machines::new(model);
    let first = (machines.first.clone(), Network::new());
    let mut seen = BTreeSet::from([first.clone()]);
    let mut queue = VecDeque::from([first]);
    let mut states = States::new();
    let mut turn = false;
    while let Some((nodes, network)) = match turn {
        true => queue.pop_back(),
        false => queue.pop_front(),
    } {
        turn = !turn;
        states.insert(bytes(&machines, &nodes));
        let mut next = Vec::new();
        for (frame, [copies, sent, duplicated]) in &network {
            if *copies == 0 {
                continue;
            }
            if *duplicated == 0 {
                let mut network = network.clone();
                network.insert(*frame, [copies + 1, *sent, 1]);
                next.push((nodes.clone(), network));
            }
            // A copy that never arrives is lost.
            let mut network = network.clone();
            network.insert(*frame, [copies - 1, *sent, *duplicated]);
            let to = usize::from(machines.frame(*frame).to);
            next.push(after(&mut machines, &nodes, network, to, Event(*frame)));
        }
        for node in 0..nodes.len() {
            for act in machines.acts(nodes[node]).to_vec() {
                let event = Event::act(act);
                next.push(after(&mut machines, &nodes, network.clone(), node, event));
            }
        }
        for state in next {
            if seen.len() < MAX_STATES && seen.insert(state.clone()) {
                queue.push_back(state);
            }
        }
    }
    states
}

fn after<M: Model>(
    machines: &mut Machines<'_, M>,
    nodes: &[u32],
    mut network: Network,
    at: usize,
    event: Event,
) -> (Vec<u32>, Network) {
    let step = machines.step(nodes[at], event).expect("a sound model");
    assert_eq!(step.wrong, None);
    let mut nodes = nodes.to_vec();
    nodes[at] = step.to;
    for (_, frame) in &step.sent {
        let [copies, sent, _] = network.entry(*frame).or_default();
        if *sent < 2 {
            *copies += 1;
            *sent += 1;
        }
    }
    (nodes, network)
}

/// The states that the checker's search finds.
fn searched<M: Model>(model: &M) -> States {
    let mut run = Exploration::new(model, Search::ALL, Default::default()).expect("a sound model");
    let report = run.explore().expect("a sound model");
    assert!(report.complete && !run.space.parts.is_incomplete);
    let states = run.all_states();
    let nodes = |state: &Vec<u32>| -> Vec<u32> {
        let parts = &run.space.parts;
        state.iter().map(|part| parts.machine(*part)).collect()
    };
    states
        .iter()
        .map(|state| bytes(&run.space.parts.machines, &nodes(state)))
        .collect()
}

/// The checker's search misses no state of the plain search, and finds few others, which need more repetitions or more states
/// than the plain one allows.
fn none_is_missing<M: Model>(model: &M) {
    let (plain, searched) = (plainly(model), searched(&Plain(model, false)));
    assert!(plain.is_subset(&searched));
    assert!(
        plain.len() * 3 >= searched.len() * 2,
        "{} of {}",
        plain.len(),
        searched.len()
    );
}

fn all_reduce(ranks: u8, operations: Vec<Operation>) -> all_reduce::AllReduceBounds {
    all_reduce::AllReduceBounds::new(ranks, 1, operations)
}

#[test]
fn an_all_reduce_plainly() {
    let operations = vec![Operation::Integers(1); 2];
    let model = AllReduce::new(all_reduce(2, operations)).expect("a job");
    none_is_missing(&model);
}

#[test]
fn guesses_plainly() {
    let operations = vec![Operation::Floats(1, vec![9, 0])];
    let model = AllReduce::new(all_reduce(2, operations)).expect("a job");
    none_is_missing(&model);
}

#[test]
fn a_restart_plainly() {
    let bounds = all_reduce::AllReduceBounds {
        restarts: 1,
        first_chunk: ChunkId(0),
        ..all_reduce(2, vec![Operation::Integers(1)])
    };
    let model = AllReduce::new(bounds).expect("a job");
    none_is_missing(&model);
}

#[test]
fn a_server_plainly() {
    for mode in [Mode::Direct, Mode::Switch] {
        let bounds = parameter_server::TrainingBounds::new(mode, 2, 1, 1, 1);
        let model = ParameterServer::new(bounds).expect("a job");
        none_is_missing(&model);
    }
}

/// One of the states that differ by a permutation of nodes is kept, and none is lost.
#[test]
fn permutations_of_nodes_keep_all_states() {
    let operations = vec![Operation::Integers(2); 2];
    let bounds = all_reduce::AllReduceBounds::new(3, 2, operations);
    let model = AllReduce::new(bounds).expect("a job");
    let mut run = Exploration::new(&model, Search::ALL, Default::default()).expect("a sound model");
    run.explore().expect("a sound model");
    let states = run.all_states();
    let StateSpace {
        parts, symmetry, ..
    } = &mut run.space;
    let orbits = states
        .iter()
        .map(|state| symmetry.orbit(parts, state).expect("parts"));
    let orbits: usize = orbits.sum();
    let plain = explore(&Plain(&model, true), Search::ALL).expect("a sound model");
    assert_eq!(orbits, plain.states);
}
