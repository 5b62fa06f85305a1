//! Ethernet addresses of hosts, jobs and parts of gradient plans.

use std::fmt;

use serde::Serialize;

/// An Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The broadcast address.
    pub const BROADCAST: Mac = Mac([0xFF; 6]);

    /// The default address of the host with this index, from 0: locally administered, with the letters `WE`.
    #[must_use]
    pub fn of_host(index: usize) -> Mac {
        let [high, low] = (index as u16).to_be_bytes();
        Mac([0x02, 0x57, 0x45, 0, high, low])
    }

    /// The multicast address of a job's results and sums for all workers: that of the IPv4 group 239.87.69.x (RFC 1112).
    #[must_use]
    pub fn of_job(job: u16) -> Mac {
        let [_, low] = job.to_be_bytes();
        Mac([0x01, 0x00, 0x5E, 0x57, 0x45, low])
    }

    /// The destination address of frames that switches sum for all workers of a job; the sums go to [`Mac::of_job`].
    #[must_use]
    pub fn of_sum(job: u16) -> Mac {
        Mac::beside_job(job, 0x02)
    }

    /// The destination address of workers' requests to the summing switches of a job; a switch answers the sender only.
    #[must_use]
    pub fn of_question(job: u16) -> Mac {
        Mac::beside_job(job, 0x06)
    }

    /// The destination address of frames on the way to the switch that sums them as part `number` of a gradient plan. `route`
    /// distinguishes frames of one part whose paths diverge at a switch.
    #[must_use]
    pub fn of_part(number: u16, route: u8) -> Mac {
        Mac::of_sum(number).by(route)
    }

    /// The destination address of a part's sums on the way to the server, and of the part's frames that no switch sums.
    #[must_use]
    pub fn of_part_summed(number: u16, route: u8) -> Mac {
        Mac::of_job(number).by(route)
    }

    fn by(self, route: u8) -> Mac {
        let [first, _, rest @ ..] = self.0;
        let [a, b, c, d] = rest;
        Mac([first, route, a, b, c, d])
    }

    fn beside_job(job: u16, first: u8) -> Mac {
        let [_, rest @ ..] = Mac::of_job(job).0;
        let [a, b, c, d, e] = rest;
        Mac([first, a, b, c, d, e])
    }

    /// The address as an integer, most significant byte first.
    #[must_use]
    pub fn value(self) -> u128 {
        self.0
            .iter()
            .fold(0, |value, byte| value << 8 | u128::from(*byte))
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Mac {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl std::str::FromStr for Mac {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut mac = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut mac {
            let part = parts.next().filter(|part| part.len() == 2).ok_or(())?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| ())?;
        }
        if parts.next().is_some() {
            Err(())
        } else {
            Ok(Mac(mac))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mac_text() {
        assert_eq!("02:57:45:00:00:01".parse(), Ok(Mac::of_host(1)));
        assert_eq!(Mac::of_host(1).to_string(), "02:57:45:00:00:01");
        assert_eq!("02:57:45:00:00".parse::<Mac>(), Err(()));
        assert_eq!(Mac::of_host(1).value(), 0x0257_4500_0001);
    }
}
