//! Example networks and jobs from the papers, so small that each planner's result can be computed by hand.

use crate::gradient::{Job, Server};
use crate::network::{Arc, Host, Network, NetworkError, NodeId, Switch};
use crate::routing::Costs;

const GBIT: u64 = 1_000_000_000;

/// Size of each of the three gradient fragments in [`goat`]'s example, in bytes. Each switch there has memory for one.
pub const GOAT_FRAGMENT_BYTES: u64 = 1_000;

/// GRID's example, figure 1 (ToN 2023): eight workers at three switches, the server behind the third. The server's link carries
/// 9 Gbit/s, all others 3; each switch sums up to 9 Gbit/s. A worker's rate is 1 Gbit/s with Geryon, 2.4375 with ATP (the paper
/// rounds a step and prints 2.43), 3 with GRID.
///
/// # Errors
///
/// None: its numbers are valid.
pub fn grid() -> Result<(Network, Job), NetworkError> {
    let sums = Switch {
        programmable: true,
        throughput_bps: Some(9 * GBIT),
        ..Switch::default()
    };
    let mut network = Network::new();
    let [s1, s2, s3] = switches(&mut network, ["S1", "S2", "S3"], &sums)?;
    for (a, b) in [(s1, s2), (s1, s3), (s2, s3)] {
        network.connect(a, b, 3 * GBIT)?;
    }
    let at = [s1, s1, s1, s1, s2, s2, s3, s3];
    let workers = workers(&mut network, &at, 3 * GBIT)?;
    let server = host(&mut network, "PS", &[s3], 9 * GBIT)?;
    Ok((network, job(workers, vec![Server::on(server)])))
}

/// GOAT's example (IWQoS 2023): four workers, two at S1 and two at S2; S3 is before the server; each switch has memory for one
/// of three fragments. The three switches form a triangle, as in the same authors' figure for GRID; with `is_chain`, S1 has no
/// link to S3. If workers send at different times, ATP brings the server 7 fragments, over 17 links; GOAT 3, over 13.
///
/// # Errors
///
/// None: its numbers are valid.
pub fn goat(is_chain: bool) -> Result<(Network, Job), NetworkError> {
    let holds_one = Switch {
        programmable: true,
        memory_bytes: Some(GOAT_FRAGMENT_BYTES),
        ..Switch::default()
    };
    let mut network = Network::new();
    let [s1, s2, s3] = switches(&mut network, ["S1", "S2", "S3"], &holds_one)?;
    network.connect(s1, s2, GBIT)?;
    network.connect(s2, s3, GBIT)?;
    if !is_chain {
        network.connect(s1, s3, GBIT)?;
    }
    let workers = workers(&mut network, &[s1, s1, s2, s2], GBIT)?;
    let server = host(&mut network, "PS", &[s3], GBIT)?;
    Ok((network, job(workers, vec![Server::on(server)])))
}

/// Costs of a byte on each link of [`goat`]'s example: 1, or 0 for links from workers, whose load is equal in every plan.
#[must_use]
pub fn links_behind_workers(network: &Network) -> Costs {
    Costs::from_fn(network, |arc: Arc| {
        u64::from(network.host(network.ends(arc).0).is_none())
    })
}

/// InArt's example (WWW 2024): two servers, which receive up to 4 Gbit/s each; six workers, three at each of two switches,
/// which sum up to 6 Gbit/s; links of 6 Gbit/s. Rates are 4/3 with LBMM, 2 with ATP and an equal split, 2.5 with InArt. The
/// paper's figure was not available: here the switches are linked with each other and both servers. The first two rates are
/// then as printed, and 2.5 is the optimum for shares of 3 to 2.
///
/// # Errors
///
/// None: its numbers are valid.
pub fn inart() -> Result<(Network, Job), NetworkError> {
    let sums = Switch {
        programmable: true,
        throughput_bps: Some(6 * GBIT),
        ..Switch::default()
    };
    let mut network = Network::new();
    let [v1, v2] = switches(&mut network, ["V1", "V2"], &sums)?;
    network.connect(v1, v2, 6 * GBIT)?;
    let workers = workers(&mut network, &[v1, v1, v1, v2, v2, v2], 6 * GBIT)?;
    let mut servers = Vec::new();
    for name in ["PS1", "PS2"] {
        servers.push(Server {
            host: host(&mut network, name, &[v1, v2], 6 * GBIT)?,
            ingress_bps: Some(4 * GBIT),
            load_bps: 0,
        });
    }
    Ok((network, job(workers, servers)))
}

fn switches<const N: usize>(
    network: &mut Network,
    names: [&str; N],
    each: &Switch,
) -> Result<[NodeId; N], NetworkError> {
    let mut made = [NodeId(0); N];
    for (made, name) in made.iter_mut().zip(names) {
        *made = network.add_switch(name, each.clone())?;
    }
    Ok(made)
}

/// Adds workers `W1`, `W2` and so on: one at each switch that `at` lists.
fn workers(
    network: &mut Network,
    at: &[NodeId],
    rate_bps: u64,
) -> Result<Vec<NodeId>, NetworkError> {
    let mut made = Vec::new();
    for (switch, number) in at.iter().zip(1..) {
        made.push(host(network, &format!("W{number}"), &[*switch], rate_bps)?);
    }
    Ok(made)
}

fn host(
    network: &mut Network,
    name: &str,
    switches: &[NodeId],
    rate_bps: u64,
) -> Result<NodeId, NetworkError> {
    let host = network.add_host(name, Host::default())?;
    for switch in switches {
        network.connect(host, *switch, rate_bps)?;
    }
    Ok(host)
}

fn job(workers: Vec<NodeId>, servers: Vec<Server>) -> Job {
    Job {
        name: "training".to_owned(),
        workers,
        servers,
    }
}
