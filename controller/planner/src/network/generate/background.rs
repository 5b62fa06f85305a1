//! Draws capacities and existing loads of switches and links by seed, as in the papers.

use std::ops::RangeInclusive;

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;

use super::random::{below, shuffle, unit};
use crate::network::{LinkId, Network, NetworkError, NodeId};

/// Range of switch throughputs in GRID's evaluation (ToN 2023): 100 Gbit/s to 3.2 Tbit/s.
pub const PAPERS_THROUGHPUT_BPS: RangeInclusive<u64> = 100_000_000_000..=3_200_000_000_000;

/// Which switches of a network can sum gradients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Programmable {
    /// All switches can sum.
    All,
    /// Switches with a host attached can sum: the tops of racks (GRID).
    TopsOfRacks,
    /// This share of all switches, rounded to a whole number, can sum; drawn by seed (GRID: 0.2).
    Share(f64),
}

/// Sets for each switch whether it can sum gradients.
///
/// # Errors
///
/// [`NetworkError::Shape`] if the share is not between 0 and 1; `NoCapacity` if a switch would sum
/// without throughput or memory. The network is then unchanged.
pub fn make_programmable(
    network: &mut Network,
    which: Programmable,
    seed: u64,
) -> Result<(), NetworkError> {
    let mut chosen: Vec<NodeId> = network.switches().collect();
    match which {
        Programmable::All => {}
        Programmable::TopsOfRacks => chosen.retain(|switch| {
            let mut peers = network.adjacent(*switch).iter();
            peers.any(|(_, peer)| network.host(*peer).is_some())
        }),
        Programmable::Share(share) => {
            check_share(share, share)?;
            let count = (chosen.len() as f64 * share).round() as usize;
            let mut random = ChaCha12Rng::seed_from_u64(seed);
            shuffle(&mut random, &mut chosen, count);
            chosen.truncate(count);
        }
    }
    for id in &chosen {
        let has = |what| Err(NetworkError::NoCapacity(network.name(*id).to_owned(), what));
        match network.switch(*id) {
            Some(switch) if switch.throughput_bps == Some(0) => return has("throughput"),
            Some(switch) if switch.memory_bytes == Some(0) => return has("memory"),
            _ => {}
        }
    }
    let all: Vec<NodeId> = network.switches().collect();
    for (ids, is_programmable) in [(all, false), (chosen, true)] {
        for id in ids {
            if let Some(switch) = network.switch_mut(id) {
                switch.programmable = is_programmable;
            }
        }
    }
    Ok(())
}

/// Draws the summing throughput of each switch, in bit/s, uniformly from the range.
///
/// # Errors
///
/// [`NetworkError::Shape`] if the range is empty or contains 0.
pub fn draw_throughputs(
    network: &mut Network,
    range_bps: RangeInclusive<u64>,
    seed: u64,
) -> Result<(), NetworkError> {
    let (least, most) = range_bps.into_inner();
    if least == 0 || most < least || most == u64::MAX {
        let message = format!("no throughput lies between {least} and {most} bit/s");
        return Err(NetworkError::Shape(message));
    }
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    for id in network.ids() {
        if let Some(switch) = network.switch_mut(id) {
            switch.throughput_bps = Some(least + below(&mut random, most - least + 1));
        }
    }
    Ok(())
}

/// Loads each direction of each link with a share of its rate, drawn uniformly from the range (InArt's b).
///
/// # Errors
///
/// [`NetworkError::Shape`] if the range is empty or exceeds 0 to 1.
pub fn draw_link_loads(
    network: &mut Network,
    shares: RangeInclusive<f64>,
    seed: u64,
) -> Result<(), NetworkError> {
    let mut draw = shares_of(shares, seed)?;
    for number in 0..network.links().len() as u32 {
        let link = network.link_mut(LinkId(number));
        let rate_bps = link.rate_bps;
        link.load_bps = [(); 2].map(|()| draw(rate_bps));
    }
    Ok(())
}

/// Loads each switch with a share of its summing throughput, if known, drawn uniformly from the range (InArt's c).
///
/// # Errors
///
/// [`NetworkError::Shape`] if the range is empty or exceeds 0 to 1.
pub fn draw_switch_loads(
    network: &mut Network,
    shares: RangeInclusive<f64>,
    seed: u64,
) -> Result<(), NetworkError> {
    let mut draw = shares_of(shares, seed)?;
    for id in network.ids() {
        if let Some(switch) = network.switch_mut(id)
            && let Some(throughput_bps) = switch.throughput_bps
        {
            switch.load_bps = draw(throughput_bps);
        }
    }
    Ok(())
}

fn check_share(least: f64, most: f64) -> Result<(), NetworkError> {
    if 0.0 <= least && least <= most && most <= 1.0 {
        return Ok(());
    }
    let message = if least == most {
        format!("a share lies between 0 and 1; {least} was asked for")
    } else {
        format!("shares lie between 0 and 1, the lower first; {least} to {most} was asked for")
    };
    Err(NetworkError::Shape(message))
}

fn shares_of(
    shares: RangeInclusive<f64>,
    seed: u64,
) -> Result<impl FnMut(u64) -> u64, NetworkError> {
    let (least, most) = shares.into_inner();
    check_share(least, most)?;
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    Ok(move |whole: u64| {
        let share = least + (most - least) * unit(&mut random);
        ((whole as f64 * share) as u64).min(whole)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::generate::{FatTree, Parts};

    fn network() -> Network {
        let shape = FatTree {
            k: 8,
            hosts_per_edge: Some(6),
            rate_bps: 1_000_000_000,
            parts: Parts::default(),
        };
        shape.build().unwrap()
    }

    fn programmable(network: &Network) -> Vec<&str> {
        let chosen = network
            .switches()
            .filter(|id| network.switch(*id).unwrap().programmable);
        chosen.map(|id| network.name(id)).collect()
    }

    #[test]
    fn tops_of_racks_are_the_edge_switches() {
        let mut network = network();
        make_programmable(&mut network, Programmable::TopsOfRacks, 0).unwrap();
        let chosen = programmable(&network);
        assert_eq!(chosen.len(), 32);
        assert!(chosen.iter().all(|name| name.starts_with("edge")));
    }

    #[test]
    fn a_share_is_drawn_and_another_seed_draws_another() {
        let drawn = |seed| {
            let mut network = network();
            make_programmable(&mut network, Programmable::Share(0.2), seed).unwrap();
            let names = programmable(&network).into_iter().map(str::to_owned);
            names.collect::<Vec<_>>()
        };
        // 20 % of 80.
        assert_eq!(drawn(1).len(), 16);
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
        let mut network = network();
        make_programmable(&mut network, Programmable::All, 0).unwrap();
        assert_eq!(programmable(&network).len(), 80);
        let refused = make_programmable(&mut network, Programmable::Share(1.2), 0);
        assert!(refused.unwrap_err().to_string().contains("1.2"));
    }

    #[test]
    fn a_switch_without_capacity_is_not_made_programmable() {
        let mut network = network();
        let edge = network.node("edge1-0").unwrap();
        network.switch_mut(edge).unwrap().memory_bytes = Some(0);
        let refused = make_programmable(&mut network, Programmable::TopsOfRacks, 0);
        let no = NetworkError::NoCapacity("edge1-0".to_owned(), "memory");
        assert_eq!(refused, Err(no));
        assert_eq!(programmable(&network).len(), 0);
    }

    #[test]
    fn throughputs_fill_their_range() {
        let mut network = network();
        draw_throughputs(&mut network, PAPERS_THROUGHPUT_BPS, 7).unwrap();
        let drawn: Vec<_> = network
            .switches()
            .map(|id| network.switch(id).unwrap().throughput_bps.unwrap())
            .collect();
        let inside = |bps: &u64| PAPERS_THROUGHPUT_BPS.contains(bps);
        assert!(drawn.iter().all(inside));
        // 80 draws over a width of 3.1 Tbit/s: the mean's standard deviation is 0.1 Tbit/s.
        let mean = drawn.iter().sum::<u64>() / 80;
        let near = 1_350_000_000_000..1_950_000_000_000;
        assert!(near.contains(&mean), "{mean}");
        for bad in [0..=5, RangeInclusive::new(6, 5)] {
            assert!(draw_throughputs(&mut network, bad, 7).is_err());
        }
    }

    #[test]
    fn loads_are_shares_of_what_there_is() {
        let mut network = network();
        draw_switch_loads(&mut network, 0.5..=1.0, 3).unwrap();
        let unsaid = network
            .switches()
            .all(|id| network.switch(id).unwrap().load_bps == 0);
        assert!(unsaid);
        draw_throughputs(&mut network, 1_000..=1_000, 3).unwrap();
        draw_switch_loads(&mut network, 0.5..=1.0, 3).unwrap();
        draw_link_loads(&mut network, 0.1..=0.4, 3).unwrap();
        let loaded = network
            .switches()
            .all(|id| (500..=1_000).contains(&network.switch(id).unwrap().load_bps));
        assert!(loaded);
        let loads: Vec<_> = network.links().iter().flat_map(|l| l.load_bps).collect();
        let inside = |bps: &u64| (100_000_000..=400_000_000).contains(bps);
        assert!(loads.iter().all(inside));
        assert!(loads.windows(2).any(|pair| pair[0] != pair[1]));
        for bad in [-0.1..=0.5, 0.5..=0.1, 0.5..=1.5, f64::NAN..=1.0] {
            assert!(draw_link_loads(&mut network, bad, 3).is_err());
        }
    }
}
