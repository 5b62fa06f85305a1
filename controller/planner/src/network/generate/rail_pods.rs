//! Generates pods of hosts with many network cards, wired by rails, as in GPU clusters.

use super::{Parts, at_least, fits};
use crate::network::{Network, NetworkError};

/// Rail-wired pods: in each, card r of every host is linked to rail switch r; every rail switch is linked to every spine.
///
/// Spines are `spine0` …; `rail1-0` is the first rail switch of the second pod, and `h1-0` that pod's first host. A host's
/// links are in the order of its cards.
#[derive(Debug, Clone, PartialEq)]
pub struct RailPods {
    /// Number of pods; at least one.
    pub pods: u32,
    /// Number of hosts per pod; at least one.
    pub hosts_per_pod: u32,
    /// Number of cards per host, and of rail switches per pod; at least one.
    pub rails: u32,
    /// Number of spine switches; at least one if there are several pods.
    pub spines: u32,
    /// Number of GPUs per host; `None`: one per network card.
    pub gpus_per_host: Option<u32>,
    /// Rate of each network card, in bit/s.
    pub nic_rate_bps: u64,
    /// Rate of each link between a rail switch and a spine, in bit/s.
    pub uplink_rate_bps: u64,
    /// Properties of hosts, switches and links; `gpus_per_host` replaces the host's number of GPUs.
    pub parts: Parts,
}

impl RailPods {
    /// Builds the network of pods.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Shape`] if a count is 0, or there are several pods and no spine; `TooMany`,
    /// `NoRate` and `NoCapacity` as in [`Network`].
    pub fn build(&self) -> Result<Network, NetworkError> {
        for (count, what) in [
            (self.pods, "pods"),
            (self.hosts_per_pod, "hosts in each pod"),
            (self.rails, "rails"),
        ] {
            at_least(1, count, "a network of rails", what)?;
        }
        if self.pods > 1 && self.spines == 0 {
            let message = format!(
                "{} pods need `spines`, 1 or more, to join them; found 0",
                self.pods
            );
            return Err(NetworkError::Shape(message));
        }
        let [pods, hosts, rails, spines] =
            [self.pods, self.hosts_per_pod, self.rails, self.spines].map(u128::from);
        // A product of three 32-bit numbers does not overflow.
        let cards = pods * hosts * rails;
        fits(
            spines + pods * (rails + hosts),
            cards + pods * rails * spines,
        )?;

        let mut parts = self.parts.clone();
        parts.host.gpus = self.gpus_per_host.unwrap_or(self.rails);
        let mut network = Network::new();
        let spines = parts.switches(&mut network, "spine", self.spines)?;
        let prefixes = (0..self.pods).map(|pod| format!("rail{pod}-"));
        let rails = prefixes.map(|prefix| parts.switches(&mut network, &prefix, self.rails));
        let rails = rails.collect::<Result<Vec<_>, _>>()?;
        for (pod, rails) in rails.iter().enumerate() {
            for host in 0..self.hosts_per_pod {
                let host = parts.host(&mut network, &format!("h{pod}-{host}"))?;
                for rail in rails {
                    parts.link(&mut network, [host, *rail], self.nic_rate_bps)?;
                }
            }
        }
        for rail in rails.iter().flatten() {
            for spine in &spines {
                parts.link(&mut network, [*rail, *spine], self.uplink_rate_bps)?;
            }
        }
        Ok(network)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::generate::tests::{components, degrees};

    fn shape() -> RailPods {
        RailPods {
            pods: 2,
            hosts_per_pod: 4,
            rails: 8,
            spines: 3,
            gpus_per_host: None,
            nic_rate_bps: 400,
            uplink_rate_bps: 800,
            parts: Parts::default(),
        }
    }

    #[test]
    fn the_cards_of_one_number_meet_at_the_rail_of_that_number() {
        let network = shape().build().unwrap();
        assert_eq!(degrees(&network, "spine"), [16; 3]);
        assert_eq!(degrees(&network, "rail"), [4 + 3; 16]);
        assert_eq!(degrees(&network, "h"), [8; 8]);
        assert_eq!(components(&network), 1);
        for host in network.hosts() {
            assert_eq!(network.host(host).unwrap().gpus, 8);
            let pod = &network.name(host)[1..2];
            for (number, (link, rail)) in network.adjacent(host).iter().enumerate() {
                assert_eq!(network.name(*rail), format!("rail{pod}-{number}"));
                assert_eq!(network.link(*link).rate_bps, 400);
            }
        }
    }

    #[test]
    fn one_pod_needs_no_spine_and_two_do() {
        let one = RailPods {
            pods: 1,
            spines: 0,
            gpus_per_host: Some(4),
            ..shape()
        };
        let network = one.build().unwrap();
        assert_eq!(network.switches().count(), 8);
        assert_eq!(components(&network), 1);
        let host = network.hosts().next().unwrap();
        assert_eq!(network.host(host).unwrap().gpus, 4);
        let two = RailPods { pods: 2, ..one };
        let refused = two.build().unwrap_err().to_string();
        assert_eq!(
            refused,
            "2 pods need `spines`, 1 or more, to join them; found 0"
        );
    }
}
