//! Networks and jobs on which the papers compare planners, drawn by seed, and [`examples`] that can be computed by hand.
//!
//! GRID (ToN 2023) gives the numbers of switches and hosts, the range of a switch's throughput, and which switches sum, but
//! neither link rates nor the number of workers. Here all links of hosts have equal rates, also in a fat tree; each leaf's
//! links to spines have in total the rate of its links to hosts; a job's hosts are drawn.

pub mod examples;

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::gradient::{Job, Server};
use crate::network::generate::{
    FatTree, LeafSpine, PAPERS_THROUGHPUT_BPS, Parts, Programmable, Uplinks, draw_throughputs,
    make_programmable,
};
use crate::network::{Network, NetworkError, NodeId};

/// Shape of a network: one that the papers use, or one of any size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Fat tree with 80 switches (k = 8) and 192 hosts.
    FatTree,
    /// Leaf–spine network: 60 switches (50 leaves, 10 spines), 500 hosts. The paper gives the total, not the number of spines.
    LeafSpine,
    /// Fat tree of InArt's paper (WWW 2024): 45 switches (k = 6) and 54 hosts.
    FatTreeOf45,
    /// Nonblocking fat tree with k³/4 hosts, to measure how planning time grows.
    FatTreeOf {
        /// Number of ports per switch; even.
        k: u32,
    },
    /// Nonblocking leaf–spine network with 40 hosts per leaf and 16 spines, to measure how planning time grows.
    LeafSpineOf {
        /// Number of leaves, the switches with hosts.
        leaves: u32,
    },
}

/// Parameters from which a network and a job on it are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Instance {
    /// Shape of the network.
    pub shape: Shape,
    /// Which switches of the network can sum gradients.
    pub programmable: Programmable,
    /// Number of the job's workers; at most the network's hosts less the job's servers.
    pub workers: usize,
    /// Number of the job's servers.
    pub servers: usize,
    /// Rate of each host's link, in bit/s.
    pub host_rate_bps: u64,
    /// Rate of each server's link, in bit/s.
    pub server_rate_bps: u64,
}

impl Instance {
    /// Draws switch throughputs from GRID's range, and the job's hosts. Ranks ascend with host numbers, hence rack by rack.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Shape`] if the job has more hosts than the network, and errors of the generators.
    pub fn draw(&self, seed: u64) -> Result<(Network, Job), NetworkError> {
        let mut network = self.network()?;
        make_programmable(&mut network, self.programmable, seed)?;
        draw_throughputs(&mut network, PAPERS_THROUGHPUT_BPS, seed)?;
        let mut hosts: Vec<NodeId> = network.hosts().collect();
        let count = self.workers + self.servers;
        if count > hosts.len() {
            let message = format!(
                "the job needs {count} hosts; the network has {}",
                hosts.len()
            );
            return Err(NetworkError::Shape(message));
        }
        let mut random = ChaCha12Rng::seed_from_u64(seed);
        for place in 0..count {
            let left = (hosts.len() - place) as u64;
            // The modulo bias is negligible, since 2⁶⁴ is far greater than `left`.
            let other = place + (random.next_u64() % left) as usize;
            hosts.swap(place, other);
        }
        let mut workers = hosts[self.servers..count].to_vec();
        workers.sort_unstable();
        for server in &hosts[..self.servers] {
            for (link, _) in network.adjacent(*server).to_vec() {
                network.link_mut(link).rate_bps = self.server_rate_bps;
            }
        }
        let job = Job {
            name: format!("job-{seed}"),
            workers,
            servers: hosts[..self.servers]
                .iter()
                .map(|host| Server::on(*host))
                .collect(),
        };
        Ok((network, job))
    }

    fn network(&self) -> Result<Network, NetworkError> {
        let fat_tree = |k, hosts_per_edge| FatTree {
            k,
            hosts_per_edge,
            rate_bps: self.host_rate_bps,
            parts: Parts::default(),
        };
        let leaf_spine = |leaves, spines, hosts_per_leaf| LeafSpine {
            leaves,
            spines,
            hosts_per_leaf,
            host_rate_bps: self.host_rate_bps,
            uplinks: Uplinks::Oversubscription(1.0),
            parts: Parts::default(),
        };
        match self.shape {
            Shape::FatTree => fat_tree(8, Some(6)).build(),
            Shape::LeafSpine => leaf_spine(50, 10, 10).build(),
            Shape::FatTreeOf45 => fat_tree(6, None).build(),
            Shape::FatTreeOf { k } => fat_tree(k, None).build(),
            Shape::LeafSpineOf { leaves } => leaf_spine(leaves, 16, 40).build(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(shape: Shape) -> Instance {
        Instance {
            shape,
            programmable: Programmable::TopsOfRacks,
            workers: 64,
            servers: 1,
            host_rate_bps: 100_000_000_000,
            server_rate_bps: 400_000_000_000,
        }
    }

    #[test]
    fn networks_have_grids_numbers() {
        for (shape, switches, hosts) in [
            (Shape::FatTree, 80, 192),
            (Shape::LeafSpine, 60, 500),
            (Shape::FatTreeOf { k: 12 }, 180, 432),
            (Shape::LeafSpineOf { leaves: 3 }, 19, 120),
        ] {
            let (network, job) = instance(shape).draw(1).unwrap();
            assert_eq!(network.switches().count(), switches);
            assert_eq!(network.hosts().count(), hosts);
            assert_eq!(job.workers.len(), 64);
            assert_eq!(job.check(&network), Ok(()));
            assert_eq!(job.servers[0].spare_bps(&network), 400_000_000_000);
        }
    }

    #[test]
    fn inarts_has_45_switches_and_four_servers() {
        let inarts = Instance {
            workers: 50,
            servers: 4,
            ..instance(Shape::FatTreeOf45)
        };
        let (network, job) = inarts.draw(1).unwrap();
        assert_eq!(network.switches().count(), 45);
        assert_eq!(network.hosts().count(), 54);
        assert_eq!(job.check(&network), Ok(()));
        assert_eq!(job.servers.len(), 4);
    }

    #[test]
    fn a_seed_says_which() {
        let draw = |seed| instance(Shape::FatTree).draw(seed).unwrap();
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3).1.workers, draw(4).1.workers);
        let vast = Instance {
            workers: 192,
            ..instance(Shape::FatTree)
        };
        let refused = vast.draw(0).unwrap_err().to_string();
        assert_eq!(refused, "the job needs 193 hosts; the network has 192");
    }
}
