//! Generates leaf–spine networks: each leaf has hosts below it, and links to every spine above it.

use super::{Parts, at_least, fits};
use crate::network::{Network, NetworkError};

/// Leaf–spine network: spines `spine0` …, leaves `leaf0` …, and hosts `h0-0` (the first host of the first leaf) ….
#[derive(Debug, Clone, PartialEq)]
pub struct LeafSpine {
    /// Number of switches with hosts; at least one.
    pub leaves: u32,
    /// Number of switches above the leaves; at least one.
    pub spines: u32,
    /// Number of hosts per leaf; at least one.
    pub hosts_per_leaf: u32,
    /// Rate of each host's link, in bit/s.
    pub host_rate_bps: u64,
    /// Rate of the links between leaves and spines.
    pub uplinks: Uplinks,
    /// Properties of hosts, switches and links.
    pub parts: Parts,
}

/// Rate of the link between a leaf and a spine switch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Uplinks {
    /// Rate of each link, in bit/s.
    Rate(u64),
    /// Rate of all hosts at a leaf divided by the rate of all its uplinks: 1 is nonblocking, 3 is usual.
    Oversubscription(f64),
}

impl LeafSpine {
    /// Builds the leaf–spine network.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Shape`] if a count is 0, or the oversubscription is not a number above 0, or
    /// leaves less than 1 bit/s; `TooMany`, `NoRate` and `NoCapacity` as in [`Network`].
    pub fn build(&self) -> Result<Network, NetworkError> {
        for (count, what) in [
            (self.leaves, "leaves"),
            (self.spines, "spines"),
            (self.hosts_per_leaf, "hosts on each leaf"),
        ] {
            at_least(1, count, "a leaf-spine network", what)?;
        }
        let [leaves, spines] = [self.leaves, self.spines].map(u128::from);
        let hosts = leaves * u128::from(self.hosts_per_leaf);
        fits(spines + leaves + hosts, hosts + leaves * spines)?;
        let uplink_bps = self.uplink_bps()?;

        let mut network = Network::new();
        let spines = self.parts.switches(&mut network, "spine", self.spines)?;
        let leaves = self.parts.switches(&mut network, "leaf", self.leaves)?;
        for (number, leaf) in leaves.iter().enumerate() {
            for host in 0..self.hosts_per_leaf {
                let host = self
                    .parts
                    .host(&mut network, &format!("h{number}-{host}"))?;
                let ends = [host, *leaf];
                self.parts.link(&mut network, ends, self.host_rate_bps)?;
            }
        }
        for leaf in &leaves {
            for spine in &spines {
                self.parts.link(&mut network, [*leaf, *spine], uplink_bps)?;
            }
        }
        Ok(network)
    }

    fn uplink_bps(&self) -> Result<u64, NetworkError> {
        let times = match self.uplinks {
            Uplinks::Rate(rate_bps) => return Ok(rate_bps),
            Uplinks::Oversubscription(times) => times,
        };
        if !(times.is_finite() && times > 0.0) {
            let message = format!("`oversubscription` is above 0; found {times}");
            return Err(NetworkError::Shape(message));
        }
        let below = self.host_rate_bps as f64 * f64::from(self.hosts_per_leaf);
        let rate = (below / (f64::from(self.spines) * times)).round();
        if rate < 1.0 || rate > u64::MAX as f64 {
            let message = format!("an oversubscription of {times} leaves {rate} bit/s an uplink");
            return Err(NetworkError::Shape(message));
        }
        Ok(rate as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::generate::tests::{components, degrees};

    const G: u64 = 1_000_000_000;

    fn shape() -> LeafSpine {
        LeafSpine {
            leaves: 4,
            spines: 2,
            hosts_per_leaf: 12,
            host_rate_bps: 100 * G,
            uplinks: Uplinks::Oversubscription(3.0),
            parts: Parts::default(),
        }
    }

    #[test]
    fn each_leaf_has_each_spine_above_it() {
        let network = shape().build().unwrap();
        assert_eq!(degrees(&network, "spine"), [4; 2]);
        assert_eq!(degrees(&network, "leaf"), [14; 4]);
        assert_eq!(degrees(&network, "h"), [1; 48]);
        assert_eq!(components(&network), 1);
    }

    #[test]
    fn uplinks_carry_what_the_oversubscription_leaves() {
        let network = shape().build().unwrap();
        let up: Vec<_> = network.links()[48..].iter().map(|l| l.rate_bps).collect();
        // 12 × 100 Gbit/s below the leaf, a third of that above it, over 2 spines.
        assert_eq!(up, [200 * G; 8]);
        let given = LeafSpine {
            uplinks: Uplinks::Rate(400 * G),
            ..shape()
        };
        assert_eq!(given.build().unwrap().links()[48].rate_bps, 400 * G);
    }

    #[test]
    fn numbers_that_make_no_network_are_refused() {
        let refused = |shape: LeafSpine| shape.build().unwrap_err().to_string();
        let times = |times| LeafSpine {
            uplinks: Uplinks::Oversubscription(times),
            ..shape()
        };
        assert_eq!(
            refused(times(0.0)),
            "`oversubscription` is above 0; found 0"
        );
        assert!(refused(times(f64::NAN)).contains("NaN"));
        assert!(refused(times(1e30)).contains("leaves 0 bit/s"));
        let none = LeafSpine {
            spines: 0,
            ..shape()
        };
        assert!(refused(none).contains("spines of a leaf-spine network: at least 1, not 0"));
        let vast = LeafSpine {
            leaves: u32::MAX,
            spines: u32::MAX,
            hosts_per_leaf: u32::MAX,
            ..shape()
        };
        assert!(refused(vast).contains("at most 200000"));
    }
}
