//! Generates networks of switches with random links (Singla, Hong, Popa and Godfrey: Jellyfish, NSDI 2012).

use std::collections::BTreeSet;

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;

use super::random::below;
use super::{Parts, at_least, fits};
use crate::network::{Network, NetworkError};

/// Number of random exchanges of link ends per link; as is customary, enough that more make no visible difference.
const EXCHANGES_PER_LINK: u64 = 10;

/// A connected graph of switches `s0` …, each linked to `degree` others, drawn by seed, and hosts `h0-0` … at each switch.
///
/// A ring lattice is randomized by repeatedly exchanging ends of two random links; components that are then separate are joined
/// by further exchanges.
#[derive(Debug, Clone, PartialEq)]
pub struct Jellyfish {
    /// Number of switches; at least 2.
    pub switches: u32,
    /// Number of other switches to which each switch is linked: at least 2 (1 of two switches), below the number of switches.
    pub degree: u32,
    /// Number of hosts at each switch.
    pub hosts_per_switch: u32,
    /// Rate of each host's link, in bit/s.
    pub host_rate_bps: u64,
    /// Rate of links between switches, in bit/s.
    pub rate_bps: u64,
    /// Seed from which the links are drawn.
    pub seed: u64,
    /// Properties of hosts, switches and links.
    pub parts: Parts,
}

impl Jellyfish {
    /// Builds the network with random links.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Shape`] if no such graph exists; `TooMany`, `NoRate` and `NoCapacity` as in [`Network`].
    pub fn build(&self) -> Result<Network, NetworkError> {
        let (count, degree) = (self.switches, self.degree);
        at_least(2, count, "a jellyfish", "switches")?;
        let least = if count == 2 { 1 } else { 2 };
        at_least(least, degree, "a jellyfish", "links between switches")?;
        let refuse = |message: String| Err(NetworkError::Shape(message));
        if degree >= count {
            return refuse(format!(
                "each of {count} switches has fewer than {count} others to be linked to, not {degree}"
            ));
        }
        if degree % 2 == 1 && count % 2 == 1 {
            return refuse(format!(
                "{count} switches with {degree} links each have an odd number of ends; write an even number for one of the two"
            ));
        }
        let [switches, ends] =
            [self.hosts_per_switch, degree].map(|each| u128::from(count) * u128::from(each));
        fits(u128::from(count) + switches, switches + ends / 2)?;

        let mut graph = Graph::ring(count, degree);
        let mut random = ChaCha12Rng::seed_from_u64(self.seed);
        graph.exchange_at_random(&mut random);
        graph.join();

        let mut network = Network::new();
        let made = self.parts.switches(&mut network, "s", count)?;
        for (number, switch) in made.iter().enumerate() {
            for host in 0..self.hosts_per_switch {
                let host = self
                    .parts
                    .host(&mut network, &format!("h{number}-{host}"))?;
                let ends = [host, *switch];
                self.parts.link(&mut network, ends, self.host_rate_bps)?;
            }
        }
        for [a, b] in graph.in_order() {
            let ends = [made[a as usize], made[b as usize]];
            self.parts.link(&mut network, ends, self.rate_bps)?;
        }
        Ok(network)
    }
}

/// A graph of switches without loops or parallel links. Exchanges of link ends keep all degrees.
struct Graph {
    links: Vec<[u32; 2]>,
    /// The graph's links, as switch numbers, the lower number first.
    known: BTreeSet<[u32; 2]>,
    nodes: u32,
}

fn sorted([a, b]: [u32; 2]) -> [u32; 2] {
    [a.min(b), a.max(b)]
}

impl Graph {
    /// Ring lattice: each switch is linked to the degree/2 next ones, and to the opposite one if the degree is odd.
    fn ring(nodes: u32, degree: u32) -> Graph {
        let mut links = Vec::new();
        for node in 0..nodes {
            for step in 1..=degree / 2 {
                links.push([node, (node + step) % nodes]);
            }
        }
        if degree % 2 == 1 {
            let half = nodes / 2;
            links.extend((0..half).map(|node| [node, node + half]));
        }
        let known = links.iter().copied().map(sorted).collect();
        Graph {
            links,
            known,
            nodes,
        }
    }

    fn exchange_at_random(&mut self, random: &mut ChaCha12Rng) {
        let count = self.links.len() as u64;
        for _ in 0..count * EXCHANGES_PER_LINK {
            let [first, second] = [(); 2].map(|()| below(random, count) as usize);
            if below(random, 2) == 1 {
                self.links[second].reverse();
            }
            self.exchange(first, second);
        }
    }

    /// Replaces links a–b and c–d by a–c and b–d, unless that makes a loop or a parallel link.
    fn exchange(&mut self, first: usize, second: usize) -> bool {
        let ([a, b], [c, d]) = (self.links[first], self.links[second]);
        let (one, other) = (sorted([a, c]), sorted([b, d]));
        let makes_loop = first == second || a == c || b == d;
        if makes_loop || self.known.contains(&one) || self.known.contains(&other) {
            return false;
        }
        self.known.remove(&sorted([a, b]));
        self.known.remove(&sorted([c, d]));
        self.known.extend([one, other]);
        (self.links[first], self.links[second]) = ([a, c], [b, d]);
        true
    }

    /// Makes the graph connected: exchanges ends of a link on a cycle in the first component and of a link in another
    /// component. The first component stays connected without its link, and both ends of the other link are then attached to
    /// it.
    fn join(&mut self) {
        loop {
            let mut parts = Together::new(self.nodes);
            let closing: Vec<bool> = self.links.iter().map(|link| !parts.join(*link)).collect();
            let first = parts.component(0);
            let mut is_in_first = self.links.iter().map(|[a, _]| parts.component(*a) == first);
            let Some(apart) = is_in_first.position(|is_in| !is_in) else {
                return;
            };
            let cycle = (0..self.links.len())
                .find(|link| closing[*link] && parts.component(self.links[*link][0]) == first);
            // If each node has two links or more, each component has a cycle; a link between components is never parallel.
            if !cycle.is_some_and(|cycle| self.exchange(cycle, apart)) {
                return;
            }
        }
    }

    /// The graph's links, as pairs of switch numbers, in ascending order.
    fn in_order(&self) -> impl Iterator<Item = [u32; 2]> + '_ {
        self.known.iter().copied()
    }
}

/// Connected components of a graph while links are added (union–find).
struct Together(Vec<u32>);

impl Together {
    fn new(nodes: u32) -> Together {
        Together((0..nodes).collect())
    }

    /// Representative of a node's component.
    fn component(&mut self, node: u32) -> u32 {
        let mut at = node;
        while self.0[at as usize] != at {
            let above = self.0[self.0[at as usize] as usize];
            self.0[at as usize] = above;
            at = above;
        }
        at
    }

    /// Joins the components of a link's two ends; returns whether they were separate.
    fn join(&mut self, [a, b]: [u32; 2]) -> bool {
        let (a, b) = (self.component(a), self.component(b));
        self.0[a.max(b) as usize] = a.min(b);
        a != b
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::network::generate::tests::{components, degrees};

    fn shape(switches: u32, degree: u32, seed: u64) -> Jellyfish {
        Jellyfish {
            switches,
            degree,
            hosts_per_switch: 1,
            host_rate_bps: 1,
            rate_bps: 2,
            seed,
            parts: Parts::default(),
        }
    }

    proptest! {
        /// Degree 2 is the hardest case: a random graph of it mostly consists of several rings.
        #[test]
        fn each_switch_has_so_many_others_and_all_hang_together(
            half in 2_u32..30, degree in 2_u32..8, seed: u64
        ) {
            let switches = 2 * half;
            prop_assume!(degree < switches);
            let network = shape(switches, degree, seed).build().unwrap();
            prop_assert_eq!(degrees(&network, "s"), vec![degree as usize + 1; switches as usize]);
            prop_assert_eq!(components(&network), 1);
            let mut between: Vec<_> = network.links().iter().map(|link| link.ends).collect();
            between.sort_unstable();
            between.dedup();
            prop_assert_eq!(between.len(), network.links().len());
        }
    }

    #[test]
    fn the_seed_decides() {
        let links = |seed| shape(40, 5, seed).build().unwrap();
        assert_eq!(links(1), links(1));
        assert_ne!(links(1), links(2));
    }

    #[test]
    fn rings_apart_are_joined() {
        let apart = [[0, 1], [1, 2], [0, 2], [3, 4], [4, 5], [3, 5]];
        let mut graph = Graph {
            links: apart.to_vec(),
            known: apart.into_iter().collect(),
            nodes: 6,
        };
        graph.join();
        let mut parts = Together::new(6);
        for link in graph.in_order() {
            parts.join(link);
        }
        assert!((0..6).all(|node| parts.component(node) == 0));
        assert_eq!(graph.in_order().count(), 6);
    }

    #[test]
    fn numbers_that_make_no_graph_are_refused() {
        let refused = |shape: Jellyfish| shape.build().unwrap_err().to_string();
        assert_eq!(
            refused(shape(4, 4, 0)),
            "each of 4 switches has fewer than 4 others to be linked to, not 4"
        );
        assert!(refused(shape(5, 3, 0)).contains("an odd number of ends"));
        assert!(refused(shape(5, 1, 0)).contains("at least 2, not 1"));
        assert!(refused(shape(1, 1, 0)).contains("switches of a jellyfish: at least 2"));
        assert!(refused(shape(u32::MAX, 4, 0)).contains("at most 200000"));
        assert_eq!(shape(2, 1, 0).build().unwrap().links().len(), 3);
    }
}
