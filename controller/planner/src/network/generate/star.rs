//! Generates networks of hosts around one switch.

use super::{Parts, at_least, fits};
use crate::network::{Network, NetworkError};

/// Star network: hosts `h0`, `h1` and so on, each with one link to the switch `sw`.
#[derive(Debug, Clone, PartialEq)]
pub struct Star {
    /// Number of hosts; at least one.
    pub hosts: u32,
    /// Rate of each link, in bit/s.
    pub rate_bps: u64,
    /// Properties of hosts, the switch and links.
    pub parts: Parts,
}

impl Star {
    /// Builds the star network.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Shape`] without hosts; `TooMany`, `NoRate` and `NoCapacity` as in [`Network`].
    pub fn build(&self) -> Result<Network, NetworkError> {
        at_least(1, self.hosts, "a star", "hosts")?;
        fits(u128::from(self.hosts) + 1, u128::from(self.hosts))?;
        let mut network = Network::new();
        let switch = self.parts.switch(&mut network, "sw")?;
        for number in 0..self.hosts {
            let host = self.parts.host(&mut network, &format!("h{number}"))?;
            self.parts
                .link(&mut network, [host, switch], self.rate_bps)?;
        }
        Ok(network)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::generate::tests::degrees;

    #[test]
    fn each_host_hangs_on_the_switch() {
        let star = Star {
            hosts: 5,
            rate_bps: 7,
            parts: Parts::default(),
        };
        let network = star.build().unwrap();
        assert_eq!(degrees(&network, "sw"), [5]);
        assert_eq!(degrees(&network, "h"), [1; 5]);
        assert!(network.links().iter().all(|link| link.rate_bps == 7));
        let none = Star { hosts: 0, ..star };
        assert_eq!(
            none.build().unwrap_err().to_string(),
            "hosts of a star: at least 1, not 0"
        );
    }
}
