//! Nodes in layers, every edge from a layer to the next: cycles are turned, layers that would be too wide are split,
//! long edges get bends (which edges to one node share), and each layer is ordered so that few edges cross.

use super::{Cluster, Edge};
use std::collections::BTreeMap;

/// A width that a layer's nodes and labels do not exceed, in pixels.
pub(super) const MOST: f64 = 1100.0;

/// What stands in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A node of the cluster.
    Node(usize),
    /// The label of one of [`Layered::links`].
    Label(usize),
    /// Lines pass here.
    Bend,
}

/// Something in a layer; places are set by [`super::place`].
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) what: What,
    pub(super) width: f64,
    pub(super) height: f64,
    /// Its middle.
    pub(super) x: f64,
    /// Its middle.
    pub(super) y: f64,
}

/// Edges of one direction between two nodes, drawn as one.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) label: Vec<String>,
    /// Items from top to bottom. Empty: a node's edge to itself. Where it comes to a bend of an edge drawn before it, whose way
    /// is the same from there on, it ends: below, or above if it leads back.
    pub(super) path: Vec<usize>,
    /// Drawn upwards: it leads back.
    pub(super) back: bool,
}

/// A cluster in layers.
#[derive(Debug, Default)]
pub(super) struct Layered {
    /// The first are the cluster's nodes.
    pub(super) items: Vec<Item>,
    pub(super) links: Vec<Link>,
    /// Items from left to right.
    pub(super) layers: Vec<Vec<usize>>,
}

/// Sizes of nodes and labels are for the drawing to say.
pub(super) trait Sizes {
    /// Width and height of a node.
    fn node(&self, n: usize) -> (f64, f64);
    /// What is written on edges that share their ends.
    fn label(&self, labels: &[&str]) -> Vec<String>;
    /// Width and height of that.
    fn text(&self, lines: &[String]) -> (f64, f64);
}

/// Arranges a cluster.
pub(super) fn arrange(cluster: &Cluster, sizes: &impl Sizes) -> Layered {
    let item = |what, (width, height)| Item {
        what,
        width,
        height,
        x: 0.0,
        y: 0.0,
    };
    let nodes = cluster.nodes.len();
    let mut all = Layered {
        items: (0..nodes)
            .map(|n| item(What::Node(n), sizes.node(n)))
            .collect(),
        links: links(&cluster.edges, nodes, sizes),
        layers: Vec::new(),
    };
    // Pairs of items, upper and lower, with the link they are of.
    let mut arcs: Vec<(usize, usize, usize)> = Vec::new();
    for n in 0..all.links.len() {
        let link = &all.links[n];
        if link.from == link.to {
            continue;
        }
        let (top, bottom) = match link.back {
            true => (link.to, link.from),
            false => (link.from, link.to),
        };
        if link.label.is_empty() {
            arcs.push((top, bottom, n));
        } else {
            let label = all.items.len();
            all.items
                .push(item(What::Label(n), sizes.text(&link.label)));
            arcs.push((top, label, n));
            arcs.push((label, bottom, n));
        }
    }
    let layer_of = layers(&all.items, &arcs);
    let count = layer_of.iter().max().map_or(0, |most| most + 1);
    all.layers = vec![Vec::new(); count];
    for (n, layer) in layer_of.iter().enumerate() {
        all.layers[*layer].push(n);
    }
    let mut segments = vec![Vec::new(); count];
    let mut bends: BTreeMap<(usize, bool, usize), usize> = BTreeMap::new();
    for (top, bottom, link) in arcs {
        let back = all.links[link].back;
        // Lines to the same node come together.
        let shared = if back { top } else { bottom };
        let mut path = vec![if back { bottom } else { top }];
        let mut between = layer_of[top] + 1..layer_of[bottom];
        let mut joins = false;
        // From the end that is this edge's own towards the one that it shares.
        while let Some(layer) = if back {
            between.next_back()
        } else {
            between.next()
        } {
            let found = bends.get(&(shared, back, layer)).copied();
            joins = found.is_some();
            path.push(found.unwrap_or(all.items.len()));
            if joins {
                break;
            }
            bends.insert((shared, back, layer), all.items.len());
            all.layers[layer].push(all.items.len());
            all.items.push(item(What::Bend, (2.0, 0.0)));
        }
        if !joins {
            path.push(shared);
        }
        let mut first = layer_of[top];
        if back {
            path.reverse();
            first = layer_of[bottom] + 1 - path.len();
        }
        for (layer, pair) in (first..).zip(path.windows(2)) {
            segments[layer].push((pair[0], pair[1]));
        }
        let whole = &mut all.links[link].path;
        let again = usize::from(!whole.is_empty());
        whole.extend(&path[again..]);
    }
    for layer in &mut segments {
        layer.sort_unstable();
        layer.dedup();
    }
    order(&mut all.layers, &segments, all.items.len());
    all
}

/// Edges with the same ends as one, and which of them lead back.
fn links(edges: &[Edge], nodes: usize, sizes: &impl Sizes) -> Vec<Link> {
    let mut merged: BTreeMap<(usize, usize), Vec<&str>> = BTreeMap::new();
    for e in edges.iter().filter(|e| e.from < nodes && e.to < nodes) {
        let labels = merged.entry((e.from, e.to)).or_default();
        if !e.label.is_empty() && !labels.contains(&e.label.as_str()) {
            labels.push(&e.label);
        }
    }
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for (from, to) in merged.keys() {
        next[*from].push(*to);
    }
    let back = back_edges(&next);
    let link = |((from, to), labels): ((usize, usize), Vec<&str>)| Link {
        from,
        to,
        label: match labels.is_empty() {
            true => Vec::new(),
            false => sizes.label(&labels),
        },
        path: Vec::new(),
        back: back.contains(&(from, to)),
    };
    merged.into_iter().map(link).collect()
}

/// Edges that lead to a node through which a search is still going.
fn back_edges(next: &[Vec<usize>]) -> std::collections::BTreeSet<(usize, usize)> {
    let mut found = std::collections::BTreeSet::new();
    let mut seen = vec![false; next.len()];
    let mut open = vec![false; next.len()];
    for root in 0..next.len() {
        if std::mem::replace(&mut seen[root], true) {
            continue;
        }
        open[root] = true;
        let mut stack = vec![(root, 0)];
        while let Some((node, at)) = stack.last_mut() {
            let Some(to) = next[*node].get(*at).copied() else {
                open[*node] = false;
                stack.pop();
                continue;
            };
            *at += 1;
            if open[to] {
                found.insert((*node, to));
            } else if !std::mem::replace(&mut seen[to], true) {
                open[to] = true;
                stack.push((to, 0));
            }
        }
    }
    found
}

/// Each item's layer: below what leads to it, in the first that has room.
fn layers(items: &[Item], arcs: &[(usize, usize, usize)]) -> Vec<usize> {
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); items.len()];
    let mut above = vec![0usize; items.len()];
    for (top, bottom, _) in arcs {
        below[*top].push(*bottom);
        above[*bottom] += 1;
    }
    let mut depth = vec![0usize; items.len()];
    let mut ready: Vec<usize> = (0..items.len()).filter(|n| above[*n] == 0).collect();
    let mut order = Vec::with_capacity(items.len());
    while let Some(n) = ready.pop() {
        order.push(n);
        for &to in &below[n] {
            depth[to] = depth[to].max(depth[n] + 1);
            above[to] -= 1;
            if above[to] == 0 {
                ready.push(to);
            }
        }
    }
    order.sort_by_key(|n| (depth[*n], *n));
    let mut layer = vec![0usize; items.len()];
    let mut width: Vec<f64> = Vec::new();
    for n in order {
        let needed = items[n].width + super::place::GAP;
        while let Some(used) = width.get(layer[n])
            && *used > 0.0
            && used + needed > MOST
        {
            layer[n] += 1;
        }
        while width.len() <= layer[n] {
            width.push(0.0);
        }
        width[layer[n]] += needed;
        for &to in &below[n] {
            layer[to] = layer[to].max(layer[n] + 1);
        }
    }
    layer
}

/// Sweeps over the layers, down and up; the order with the fewest crossings wins.
fn order(layers: &mut Vec<Vec<usize>>, segments: &[Vec<(usize, usize)>], items: usize) {
    const SWEEPS: usize = 16;
    let mut best = layers.clone();
    let mut place = vec![0; items];
    let mut fewest = crossings(layers, segments, &mut place);
    for sweep in 0..SWEEPS {
        if fewest == 0 {
            break;
        }
        let down = sweep % 2 == 0;
        let count = layers.len();
        for step in 1..count {
            let (fixed, moved) = match down {
                true => (step - 1, step),
                false => (count - step, count - step - 1),
            };
            set_positions(&mut place, &layers[fixed]);
            let mut sums: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
            for &(top, bottom) in &segments[fixed.min(moved)] {
                let (item, other) = if down { (bottom, top) } else { (top, bottom) };
                let sum = sums.entry(item).or_default();
                sum.0 += place[other] as f64;
                sum.1 += 1.0;
            }
            // What nothing leads to keeps its place.
            set_positions(&mut place, &layers[moved]);
            let key = |n: &usize| match sums.get(n) {
                Some((sum, count)) => sum / count,
                None => place[*n] as f64,
            };
            let own = |n: &usize| place[*n];
            layers[moved].sort_by(|a, b| key(a).total_cmp(&key(b)).then(own(a).cmp(&own(b))));
        }
        let found = crossings(layers, segments, &mut place);
        if found < fewest {
            fewest = found;
            best.clone_from(layers);
        }
    }
    *layers = best;
}

/// Places of a layer's items in it; of each item there is one, since it is in one layer.
fn set_positions(place: &mut [usize], layer: &[usize]) {
    for (n, item) in layer.iter().enumerate() {
        place[*item] = n;
    }
}

/// Pairs of segments that cross: inversions, counted with a Fenwick tree.
fn crossings(layers: &[Vec<usize>], segments: &[Vec<(usize, usize)>], place: &mut [usize]) -> u64 {
    let mut sum = 0;
    for layer in layers {
        set_positions(place, layer);
    }
    for (n, segments) in segments.iter().enumerate() {
        let Some(lower) = layers.get(n + 1) else {
            continue;
        };
        let mut pairs: Vec<(usize, usize)> = segments
            .iter()
            .map(|(a, b)| (place[*a], place[*b]))
            .collect();
        pairs.sort_unstable();
        let mut tree = vec![0u64; lower.len() + 1];
        for (seen, (_, at)) in pairs.iter().enumerate() {
            let mut not_right = 0;
            let mut i = at + 1;
            while i > 0 {
                not_right += tree[i];
                i &= i - 1;
            }
            sum += seen as u64 - not_right;
            let mut i = at + 1;
            while i < tree.len() {
                tree[i] += 1;
                i += i & i.wrapping_neg();
            }
        }
    }
    sum
}
