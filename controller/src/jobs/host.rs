//! Parses a host and its port, as `weir job setup` takes them: `1=02:00:00:00:00:01`.

use std::str::FromStr;

use scenario::model::topology::Mac;

/// A host and the port that it is behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host {
    /// Number of the switch's port that leads to the host.
    pub port: u32,
    /// MAC address of the host's interface.
    pub mac: Mac,
}

impl FromStr for Host {
    type Err = String;

    fn from_str(text: &str) -> Result<Host, String> {
        let (port, mac) = text
            .split_once('=')
            .ok_or("expected PORT=MAC, such as 1=02:00:00:00:00:01")?;
        let port = port
            .parse()
            .map_err(|_| format!("`{port}` is not a port number"))?;
        let mac = mac.parse().map_err(|_| {
            format!("`{mac}` is not an Ethernet address, such as 02:00:00:00:00:01")
        })?;
        match no_interface(mac) {
            None => Ok(Host { port, mac }),
            Some(what) => Err(format!(
                "`{mac}` is {what}: write the address of the host's interface, as `ip link` prints it, such as 02:00:00:00:00:01"
            )),
        }
    }
}

/// Why this MAC address cannot belong to a host's interface, such as `a multicast address`; `None` if it can.
fn no_interface(mac: Mac) -> Option<&'static str> {
    let is_of_jobs = |of: fn(u16) -> Mac| mac.0[..5] == of(0).0[..5];
    match mac.0 {
        [0xff, 0xff, 0xff, 0xff, 0xff, 0xff] => Some("the broadcast address"),
        [first, ..] if first & 1 == 1 => Some("a multicast address"),
        [0, 0, 0, 0, 0, 0] => Some("not the address of a host"),
        _ if is_of_jobs(Mac::of_sum) || is_of_jobs(Mac::of_question) => {
            Some("an address of weir's jobs")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_the_address_of_an_interface() {
        for (mac, what) in [
            ("01:00:5e:00:00:01", "a multicast address"),
            ("33:33:00:00:00:01", "a multicast address"),
            ("03:00:00:00:00:01", "a multicast address"),
            ("ff:ff:ff:ff:ff:ff", "the broadcast address"),
            ("00:00:00:00:00:00", "not the address of a host"),
            ("02:00:5e:57:45:07", "an address of weir's jobs"),
            ("06:00:5e:57:45:ff", "an address of weir's jobs"),
        ] {
            let refused = format!("1={mac}").parse::<Host>().unwrap_err();
            let told = format!("`{mac}` is {what}: write the address of the host's interface");
            assert!(refused.starts_with(&told), "{refused}");
        }
        for mac in [
            "02:00:00:00:00:01",
            "00:1b:21:00:00:00",
            "fe:ff:ff:ff:ff:ff",
            "02:00:5e:57:44:07",
        ] {
            assert_eq!(
                format!("3={mac}").parse::<Host>().unwrap().mac.to_string(),
                mac
            );
        }
    }
}
