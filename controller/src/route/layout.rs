//! Computes where a network's nodes are drawn: hosts at the bottom, each switch one layer above its lowest neighbor.

use planner::{Network, NodeId};

/// Positions of a network's nodes in the drawing, in units of one node's width and one layer's height.
pub(super) struct Layout {
    /// Position (x, y) of each node, by node index; `None` for a host that is drawn in a box of many hosts.
    pub places: Vec<Option<(f64, f64)>>,
    /// Boxes that stand for all hosts of a switch: the switch, the box's position (x, y), and the number of hosts.
    pub boxes: Vec<(NodeId, (f64, f64), usize)>,
    /// Width of the drawing, in widths of a node.
    pub width: f64,
    /// Number of layers, including that of the hosts.
    pub layers: usize,
}

/// Maximum number of hosts that are drawn individually; more are drawn as one box per switch.
const MAX_HOSTS: usize = 48;
/// Number of passes that sort each layer by the positions of its neighbors.
const SWEEPS: usize = 4;

impl Layout {
    pub fn new(network: &Network) -> Layout {
        let draws_hosts = network.hosts().count() <= MAX_HOSTS;
        let mut layers = layers(network);
        order(network, &mut layers);
        let widest = layers.iter().enumerate();
        let widest = widest.filter(|(layer, _)| draws_hosts || *layer > 0);
        let width = widest.map(|(_, nodes)| nodes.len()).max().unwrap_or(1) as f64;
        let height = layers.len() - 1;
        let mut places = vec![None; network.nodes().len()];
        for (layer, nodes) in layers.iter().enumerate() {
            if layer == 0 && !draws_hosts {
                continue;
            }
            let step = width / nodes.len().max(1) as f64;
            for (index, node) in nodes.iter().enumerate() {
                let x = (index as f64 + 0.5) * step;
                places[node.index()] = Some((x, (height - layer) as f64));
            }
        }
        let mut boxes = Vec::new();
        if !draws_hosts {
            for switch in network.switches() {
                let links = network.adjacent(switch).iter();
                let hosts = links.filter(|(_, peer)| network.host(*peer).is_some());
                let (count, place) = (hosts.count(), places[switch.index()]);
                if let Some((x, _)) = place.filter(|_| count > 0) {
                    boxes.push((switch, (x, height as f64), count));
                }
            }
        }
        Layout {
            places,
            boxes,
            width,
            layers: layers.len(),
        }
    }
}

/// Groups the nodes into layers: the hosts, then switches by their distance from the nearest host.
fn layers(network: &Network) -> Vec<Vec<NodeId>> {
    let mut layer = vec![usize::MAX; network.nodes().len()];
    let mut layers: Vec<Vec<NodeId>> = vec![network.hosts().collect()];
    for host in &layers[0] {
        layer[host.index()] = 0;
    }
    loop {
        let height = layers.len();
        let mut next: Vec<NodeId> = Vec::new();
        for node in layers.last().into_iter().flatten() {
            for (_, peer) in network.adjacent(*node) {
                if layer[peer.index()] == usize::MAX {
                    layer[peer.index()] = height;
                    next.push(*peer);
                }
            }
        }
        if next.is_empty() {
            break;
        }
        next.sort_unstable();
        layers.push(next);
    }
    // A switch without a path to a host is at the top.
    let apart: Vec<NodeId> = network
        .switches()
        .filter(|id| layer[id.index()] == usize::MAX)
        .collect();
    if !apart.is_empty() {
        layers.push(apart);
    }
    layers
}

/// Sorts the nodes of each layer by the mean position of their neighbors in the layer above and, in the next pass, below.
fn order(network: &Network, layers: &mut [Vec<NodeId>]) {
    let mut place = vec![0.0; network.nodes().len()];
    let spread = |nodes: &[NodeId], place: &mut Vec<f64>| {
        for (index, node) in nodes.iter().enumerate() {
            place[node.index()] = (index as f64 + 0.5) / nodes.len() as f64;
        }
    };
    layers.iter().for_each(|nodes| spread(nodes, &mut place));
    for sweep in 0..SWEEPS {
        let up = sweep % 2 == 1;
        for step in 1..layers.len() {
            let (layer, other) = match up {
                true => (step, step - 1),
                false => (layers.len() - 1 - step, layers.len() - step),
            };
            let near = layers[other].clone();
            let middle = |node: &NodeId| {
                let peers = network.adjacent(*node).iter().map(|(_, peer)| *peer);
                let peers: Vec<f64> = peers
                    .filter(|peer| near.contains(peer))
                    .map(|peer| place[peer.index()])
                    .collect();
                match peers.len() {
                    0 => place[node.index()],
                    count => peers.iter().sum::<f64>() / count as f64,
                }
            };
            let mut keyed: Vec<(f64, NodeId)> = layers[layer]
                .iter()
                .map(|node| (middle(node), *node))
                .collect();
            keyed.sort_by(|(a, one), (b, another)| a.total_cmp(b).then(one.cmp(another)));
            layers[layer] = keyed.into_iter().map(|(_, node)| node).collect();
            let nodes = layers[layer].clone();
            spread(&nodes, &mut place);
        }
    }
}
