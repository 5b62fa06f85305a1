//! Generates the fat tree of Al-Fares, Loukissas and Vahdat (SIGCOMM 2008).

use super::{Parts, at_least, fits};
use crate::network::{Network, NetworkError};

/// Fat tree: k pods of k/2 edge and k/2 aggregation switches, and k²/4 core switches. Each switch has k ports, except edge
/// switches with another number of hosts.
///
/// Cores are `core0` …; `agg1-0` is the first aggregation switch of the second pod, `edge1-0` its first edge switch, and
/// `h1-0-0` the first host there. The i-th aggregation switch of each pod is linked to the i-th group of k/2 cores.
#[derive(Debug, Clone, PartialEq)]
pub struct FatTree {
    /// Number of ports per switch; even, at least 2.
    pub k: u32,
    /// Number of hosts per edge switch; `None`: k/2, which is nonblocking.
    pub hosts_per_edge: Option<u32>,
    /// Rate of each link, in bit/s.
    pub rate_bps: u64,
    /// Properties of hosts, switches and links.
    pub parts: Parts,
}

impl FatTree {
    /// Builds the fat tree's network.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Shape`] if k is 0 or odd, or an edge switch would have no host; `TooMany`,
    /// `NoRate` and `NoCapacity` as in [`Network`].
    pub fn build(&self) -> Result<Network, NetworkError> {
        let k = self.k;
        if k == 0 || !k.is_multiple_of(2) {
            let message = format!("`k` of a fat tree is even and 2 or more; found {k}");
            return Err(NetworkError::Shape(message));
        }
        let half = k / 2;
        let hosts_per_edge = self.hosts_per_edge.unwrap_or(half);
        at_least(1, hosts_per_edge, "a fat tree", "hosts on each edge switch")?;
        let [wide, in_a_half] = [k, half].map(u128::from);
        let hosts = wide * in_a_half * u128::from(hosts_per_edge);
        let above = wide * in_a_half * in_a_half;
        fits(
            in_a_half * in_a_half + wide * wide + hosts,
            hosts + 2 * above,
        )?;

        let (parts, mut network) = (&self.parts, Network::new());
        // The maximum number of nodes is checked, so k² does not overflow.
        let cores = parts.switches(&mut network, "core", half * half)?;
        let mut layer = |name: &str| {
            let pods = (0..k).map(|pod| format!("{name}{pod}-"));
            let mut made = pods.map(|prefix| parts.switches(&mut network, &prefix, half));
            made.by_ref().collect::<Result<Vec<_>, _>>()
        };
        let (aggregations, edges) = (layer("agg")?, layer("edge")?);
        for (pod, edges) in edges.iter().enumerate() {
            for (number, edge) in edges.iter().enumerate() {
                for host in 0..hosts_per_edge {
                    let name = format!("h{pod}-{number}-{host}");
                    let host = parts.host(&mut network, &name)?;
                    parts.link(&mut network, [host, *edge], self.rate_bps)?;
                }
            }
        }
        for (edges, aggregations) in edges.iter().zip(&aggregations) {
            for edge in edges {
                for aggregation in aggregations {
                    parts.link(&mut network, [*edge, *aggregation], self.rate_bps)?;
                }
            }
        }
        for aggregations in &aggregations {
            for (aggregation, cores) in aggregations.iter().zip(cores.chunks(half as usize)) {
                for core in cores {
                    parts.link(&mut network, [*aggregation, *core], self.rate_bps)?;
                }
            }
        }
        Ok(network)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::generate::tests::{components, degrees};

    fn shape(k: u32, hosts_per_edge: Option<u32>) -> FatTree {
        FatTree {
            k,
            hosts_per_edge,
            rate_bps: 1,
            parts: Parts::default(),
        }
    }

    #[test]
    fn one_of_eight_has_eighty_switches_of_eight_ports() {
        let network = shape(8, None).build().unwrap();
        assert_eq!(degrees(&network, "core"), [8; 16]);
        assert_eq!(degrees(&network, "agg"), [8; 32]);
        assert_eq!(degrees(&network, "edge"), [8; 32]);
        assert_eq!(degrees(&network, "h"), [1; 128]);
        assert_eq!(components(&network), 1);
    }

    #[test]
    fn grids_has_192_hosts() {
        let network = shape(8, Some(6)).build().unwrap();
        assert_eq!(network.switches().count(), 80);
        assert_eq!(network.hosts().count(), 192);
        assert_eq!(degrees(&network, "edge"), [10; 32]);
    }

    #[test]
    fn an_aggregation_switch_leads_to_its_own_cores_in_each_pod() {
        let network = shape(4, None).build().unwrap();
        for pod in 0..4 {
            for (number, cores) in [(0, ["core0", "core1"]), (1, ["core2", "core3"])] {
                let aggregation = network.node(&format!("agg{pod}-{number}")).unwrap();
                let peers = network.adjacent(aggregation).iter();
                let names: Vec<_> = peers.map(|(_, peer)| network.name(*peer)).collect();
                assert_eq!(names[2..], cores);
            }
        }
    }

    #[test]
    fn numbers_that_make_no_network_are_refused() {
        let refused = |shape: FatTree| shape.build().unwrap_err().to_string();
        let odd = "`k` of a fat tree is even and 2 or more; found 3";
        assert_eq!(refused(shape(3, None)), odd);
        assert!(refused(shape(0, None)).contains("even"));
        assert!(
            refused(shape(4, Some(0)))
                .contains("hosts on each edge switch of a fat tree: at least 1")
        );
        assert!(refused(shape(u32::MAX - 1, None)).contains("at most 200000"));
    }
}
