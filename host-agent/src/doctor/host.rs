//! Judges by facts about a host whether it can be a rank, for `weir doctor`.

use std::net::Ipv4Addr;
use std::str::FromStr;

use super::facts::{Facts, Interface, Route};
use super::finding::Finding;
use crate::frames::{Endpoint, Io, Mac};

/// Size in bytes of a receive buffer that holds the frames that arrive while a rank pauses; crate `frames` requests this size.
const RECEIVE_BUFFER: u64 = 16 << 20;
/// Length of the IPv4, UDP and aggregation headers in bytes.
const HEADERS: u32 = 20 + 8 + wire::HEADER_LEN as u32;

/// The role in which the host is to be used as a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Name of the interface towards the switch.
    pub interface: String,
    /// Requested I/O backend.
    pub io: Io,
    /// Number of values per frame.
    pub values: u32,
    /// The other ranks of the job.
    pub peers: Vec<Peer>,
    /// Numbers of processes that are known to be ranks.
    pub ranks: Vec<u32>,
    /// The daemon through which ranks send, if any: path of its socket, and its addresses or error.
    pub agent: Option<(String, Result<Endpoint, String>)>,
}

/// Another rank of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// IPv4 address of the rank.
    pub ip: Ipv4Addr,
    /// Ethernet address of the rank; `None` if unknown.
    pub mac: Option<Mac>,
}

impl FromStr for Peer {
    type Err = String;
    fn from_str(text: &str) -> Result<Peer, String> {
        if let Ok(ip) = text.parse() {
            return Ok(Peer { ip, mac: None });
        }
        let told = || {
            format!(
                "`{text}` is neither IPv4 nor MAC/IPv4: 10.0.0.2 is, and 02:00:00:00:00:02/10.0.0.2"
            )
        };
        let Endpoint { mac, ip } = text.parse().map_err(|_| told())?;
        let mac = Some(mac);
        Ok(Peer { ip, mac })
    }
}

/// All findings about the host, in the order of output.
pub fn judge(facts: &Facts, wanted: &Wanted) -> Vec<Finding> {
    let mut found = match &wanted.agent {
        None => capabilities(facts),
        Some((path, Ok(at))) => vec![Finding::fine(
            "host",
            format!("the daemon at {path} sends as {at}"),
        )],
        Some((path, Err(why))) => {
            let hint = format!(
                "weir-agent serve --socket {path} --iface {}",
                wanted.interface
            );
            vec![Finding::wrong("host", format!("WEIR_AGENT={path}: {why}")).hint(hint)]
        }
    };
    let about = format!("interface {}", wanted.interface);
    match &facts.interface {
        None => {
            let names = facts.names.join(", ");
            let text = format!("no interface has this name; available: {names}");
            let hint =
                "name the interface that leads to the switch: --interface, or WEIR_INTERFACE";
            found.push(Finding::wrong(&about, text).hint(hint));
        }
        Some(interface) => {
            found.extend(state(&about, interface, wanted));
            if wanted.agent.is_none() {
                found.extend(opened(&about, facts, wanted));
            }
            for peer in &wanted.peers {
                found.extend(reached(&about, facts, interface, peer));
            }
        }
    }
    found.extend(port(facts, wanted));
    found
}

fn capabilities(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    if !facts.net_raw {
        found.push(
            Finding::wrong("host", "CAP_NET_RAW is missing: a rank sends raw frames, which this user may not").hint(
                "run it as root, or through `weir-agent serve` (WEIR_AGENT), or give the program the capability, the \
                 interpreter itself if it is Python: setcap cap_net_raw+ep PROGRAM",
            ),
        );
    } else {
        found.push(Finding::fine("host", "CAP_NET_RAW is available"));
    }
    let limit = facts.receive_limit.unwrap_or(u64::MAX);
    if !facts.net_admin && limit < RECEIVE_BUFFER {
        let text = format!(
            "CAP_NET_ADMIN is missing, so a receive buffer has at most {limit} bytes: frames may be lost in a burst"
        );
        let hint = format!("sysctl net.core.rmem_max={RECEIVE_BUFFER}");
        found.push(Finding::note("host", text).hint(hint));
    }
    found
}

fn state(about: &str, interface: &Interface, wanted: &Wanted) -> Vec<Finding> {
    let name = &interface.name;
    let mut found = Vec::new();
    if !interface.is_up {
        let hint = format!("ip link set {name} up");
        found.push(Finding::wrong(about, "it is down").hint(hint));
    } else if !interface.has_carrier {
        let hint = "check the cable, and whether the switch's port is up";
        found.push(Finding::wrong(about, "it is up, but has no carrier").hint(hint));
    } else {
        found.push(Finding::fine(about, "it is up"));
    }
    if interface.mac.is_none() {
        let text = "it has no Ethernet address, so a rank cannot use it";
        found.push(Finding::wrong(about, text));
    }
    match &interface.addresses[..] {
        [] => {
            let hint = format!("ip address add ADDRESS/24 dev {name}");
            found.push(Finding::wrong(about, "it has no IPv4 address").hint(hint));
        }
        [only] => found.push(Finding::fine(about, format!("its address is {only}"))),
        [first, ..] => {
            let text = format!("it has several IPv4 addresses; a rank uses the first, {first}");
            found.push(Finding::note(about, text));
        }
    }
    let needed = HEADERS + 4 * wanted.values;
    match interface.mtu {
        Some(mtu) if mtu < needed => {
            let text = format!(
                "its MTU is {mtu}, but a frame with {} values has {needed} bytes",
                wanted.values
            );
            let hint = format!(
                "ip link set {name} mtu {}, and the same at the switch's port",
                needed.max(1500)
            );
            found.push(Finding::wrong(about, text).hint(hint));
        }
        Some(mtu) => {
            let text = format!("its MTU is {mtu}: a frame has {needed} bytes");
            found.push(Finding::fine(about, text));
        }
        None => found.push(Finding::note(about, "its MTU is unknown")),
    }
    found
}

fn opened(about: &str, facts: &Facts, wanted: &Wanted) -> Vec<Finding> {
    let by = |way: Io| format!("frames can be sent and received with {way}");
    let not = |way: Io, why: &str| format!("frames cannot be sent and received with {way}: {why}");
    let (way, tried) = match wanted.io {
        Io::Auto | Io::Bundles | Io::Rings => (Io::Rings, &facts.rings),
        Io::Calls => (Io::Calls, &facts.calls),
        Io::Pnet => (Io::Pnet, &facts.pnet),
    };
    let falls_back = matches!(wanted.io, Io::Auto | Io::Bundles);
    match (tried, &facts.calls) {
        (Some(Ok(())), _) => vec![Finding::fine(about, by(way))],
        (Some(Err(why)), Some(Ok(()))) if falls_back => {
            let text = format!("{}; system calls copy them", not(way, why));
            vec![Finding::note(about, text)]
        }
        (Some(Err(why)), Some(Err(other))) if falls_back => {
            let calls = Io::Calls;
            let text = match why == other {
                true => format!("frames cannot be sent and received with {way} or {calls}: {why}"),
                false => format!("{}, nor with {calls}: {other}", not(way, why)),
            };
            vec![Finding::wrong(about, text)]
        }
        (Some(Err(why)), _) => vec![Finding::wrong(about, not(way, why))],
        (None, _) => Vec::new(),
    }
}

/// The route that applies to an address; `None` if there is none.
fn route(routes: &[Route], to: Ipv4Addr) -> Option<&Route> {
    let leads = |route: &&Route| to & route.mask == route.network & route.mask;
    let weight = |route: &&Route| (u32::from(route.mask), std::cmp::Reverse(route.metric));
    routes.iter().filter(leads).max_by_key(weight)
}

fn reached(about: &str, facts: &Facts, interface: &Interface, peer: &Peer) -> Vec<Finding> {
    let Peer { ip, mac } = *peer;
    let name = &interface.name;
    if interface.addresses.contains(&ip) {
        return vec![Finding::note(about, format!("{ip} is its own address"))];
    }
    let mut found = Vec::new();
    let within = "ranks reach each other by Ethernet addresses, within one network";
    match route(&facts.routes, ip) {
        None => {
            let text = format!("there is no route to {ip}: {within}");
            let hint = format!("ip route add {ip} dev {name}");
            found.push(Finding::wrong(about, text).hint(hint));
        }
        Some(route) if route.interface != *name => {
            let text = format!("the route to {ip} uses {}", route.interface);
            let hint = format!(
                "if {} leads to the switch, name it (--interface, WEIR_INTERFACE); otherwise: ip route add {ip} dev {name}",
                route.interface
            );
            found.push(Finding::wrong(about, text).hint(hint));
        }
        Some(Route {
            gateway: Some(gateway),
            ..
        }) => {
            let text = format!("the route to {ip} goes through {gateway}: {within}");
            found.push(Finding::wrong(about, text));
        }
        Some(_) => found.push(Finding::fine(about, format!("the route to {ip} uses it"))),
    }
    let known = facts.neighbours.iter();
    let known = known.filter(|known| known.ip == ip && known.interface == *name);
    for neighbour in known {
        match (neighbour.mac, mac) {
            (None, _) => {
                let text = format!("{ip} does not answer ARP: its Ethernet address is unknown");
                let hint = "check that the host is up, and reachable through the switch";
                found.push(Finding::wrong(about, text).hint(hint));
            }
            (Some(is), Some(told)) if is != told => {
                let text = format!("{ip} is at {is}, but the ranks expect {told}");
                let hint = "check whether two hosts have this address, or whether the host has another interface";
                found.push(Finding::wrong(about, text).hint(hint));
            }
            (Some(is), _) => found.push(Finding::fine(about, format!("{ip} is at {is}"))),
        }
    }
    found
}

fn port(facts: &Facts, wanted: &Wanted) -> Vec<Finding> {
    let about = format!("UDP port {}", wire::UDP_PORT);
    if facts.holders.is_empty() {
        return vec![Finding::fine(&about, "no process uses it")];
    }
    let each = facts.holders.iter().map(|holder| {
        let who = match holder.process {
            Some(process) => format!("process {process}, {}", holder.name),
            None => format!("a process of {} user", "another"),
        };
        let is_rank = holder
            .process
            .is_some_and(|process| wanted.ranks.contains(&process));
        if is_rank || holder.hears_frames {
            return Finding::fine(&about, format!("a rank uses it: {who}"));
        }
        if holder.process.is_none() {
            let text = format!("{who} uses it, which may be a rank");
            return Finding::note(&about, text).hint("run the doctor as root to see the process");
        }
        let text = format!(
            "{who} uses it, but is not a rank: switches treat its frames as those of a job"
        );
        Finding::wrong(&about, text).hint("end the process, or let it use another port")
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::sockets::Holder;
    use super::*;

    fn wanted() -> Wanted {
        Wanted {
            interface: "eth0".to_owned(),
            io: Io::Auto,
            values: 256,
            peers: Vec::new(),
            ranks: Vec::new(),
            agent: None,
        }
    }

    fn healthy() -> Facts {
        Facts {
            net_raw: true,
            net_admin: true,
            receive_limit: Some(212_992),
            names: vec!["lo".to_owned(), "eth0".to_owned()],
            interface: Some(Interface {
                name: "eth0".to_owned(),
                is_up: true,
                has_carrier: true,
                mac: Some(Mac([2, 0, 0, 0, 0, 1])),
                addresses: vec![Ipv4Addr::new(10, 0, 0, 1)],
                mtu: Some(1500),
            }),
            rings: Some(Ok(())),
            calls: Some(Ok(())),
            pnet: Some(Ok(())),
            ..Facts::default()
        }
    }

    fn said(facts: &Facts, wanted: &Wanted) -> (Level, String) {
        let found = judge(facts, wanted);
        let worst = found.iter().map(|finding| finding.level).max().unwrap();
        let told = found.iter().filter(|finding| finding.level == worst);
        let told: Vec<String> = told.map(ToString::to_string).collect();
        (worst, told.join("\n"))
    }

    #[test]
    fn a_healthy_host_is_fine() {
        assert_eq!(said(&healthy(), &wanted()).0, Level::Fine);
    }

    /// Conditions that a test cannot create in a namespace.
    #[test]
    fn rings_and_buffers_that_are_refused() {
        let mut facts = healthy();
        facts.rings = Some(Err("not here".to_owned()));
        let (level, told) = said(&facts, &wanted());
        assert_eq!(level, Level::Note);
        assert!(
            told.contains("with rings: not here; system calls copy"),
            "{told}"
        );
        let rings = Wanted {
            io: Io::Rings,
            ..wanted()
        };
        assert_eq!(said(&facts, &rings).0, Level::Wrong);
        facts.calls = Some(Err("nor there".to_owned()));
        let (level, told) = said(&facts, &wanted());
        assert_eq!(level, Level::Wrong);
        assert!(
            told.contains("with rings: not here, nor with calls: nor there"),
            "{told}"
        );
        let poor = Facts {
            net_admin: false,
            ..healthy()
        };
        let (level, told) = said(&poor, &wanted());
        assert_eq!(level, Level::Note);
        assert!(told.contains("212992 bytes"), "{told}");
    }

    /// With a daemon, the process itself needs no capabilities.
    #[test]
    fn a_daemon_sends_instead() {
        let mut facts = healthy();
        facts.net_raw = false;
        facts.calls = Some(Err("not permitted".to_owned()));
        facts.rings = facts.calls.clone();
        assert_eq!(said(&facts, &wanted()).0, Level::Wrong);
        let by = |told: Result<Endpoint, String>| Wanted {
            agent: Some(("/run/weir.sock".to_owned(), told)),
            ..wanted()
        };
        let at = "02:00:00:00:00:01/10.0.0.1".parse().unwrap();
        assert_eq!(said(&facts, &by(Ok(at))).0, Level::Fine);
        let (level, told) = said(&facts, &by(Err("no daemon".to_owned())));
        assert_eq!(level, Level::Wrong);
        assert!(
            told.contains("WEIR_AGENT=/run/weir.sock: no daemon"),
            "{told}"
        );
    }

    #[test]
    fn the_most_precise_route_counts() {
        let route = |interface: &str, network: [u8; 4], mask: [u8; 4], metric| Route {
            interface: interface.to_owned(),
            network: network.into(),
            mask: mask.into(),
            gateway: None,
            metric,
        };
        let routes = [
            route("eth1", [0; 4], [0; 4], 0),
            route("eth2", [10, 0, 0, 0], [255, 255, 255, 0], 5),
            route("eth0", [10, 0, 0, 0], [255, 255, 255, 0], 1),
        ];
        let of = |ip: [u8; 4]| super::route(&routes, ip.into()).map(|found| &found.interface[..]);
        assert_eq!(of([10, 0, 0, 7]), Some("eth0"));
        assert_eq!(of([10, 0, 1, 7]), Some("eth1"));
        assert_eq!(super::route(&routes[1..], [9, 9, 9, 9].into()), None);
    }

    #[test]
    fn a_port_that_others_have() {
        let mut facts = healthy();
        let holder = |hears_frames, process| Holder {
            process,
            name: "nc".to_owned(),
            hears_frames,
        };
        facts.holders = vec![holder(false, Some(7))];
        assert_eq!(said(&facts, &wanted()).0, Level::Wrong);
        let known = Wanted {
            ranks: vec![7],
            ..wanted()
        };
        assert_eq!(said(&facts, &known).0, Level::Fine);
        facts.holders = vec![holder(true, Some(7))];
        assert_eq!(said(&facts, &wanted()).0, Level::Fine);
        facts.holders = vec![holder(false, None)];
        assert_eq!(said(&facts, &wanted()).0, Level::Note);
    }

    #[test]
    fn peers_are_named_by_their_addresses() {
        let ip = Ipv4Addr::new(10, 0, 0, 2);
        assert_eq!("10.0.0.2".parse(), Ok(Peer { ip, mac: None }));
        let mac = Some(Mac([2, 0, 0, 0, 0, 2]));
        assert_eq!("02:00:00:00:00:02/10.0.0.2".parse(), Ok(Peer { ip, mac }));
        assert!("eth0".parse::<Peer>().unwrap_err().contains("`eth0`"));
    }
}
