//! `nics`: two nodes of eight ranks that share 8, 4, 2 and 1 NICs of 50 Mbit/s: an all-gather, compared with the limit of the
//! NICs.
//!
//! A node is a network namespace with this many interfaces. One thread executes its ranks, which reach each other through memory.
//! Each remote shard enters a node once, at the rank and NIC that `sharing::bind` chooses, and fans out inside.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use collectives::algorithms::{Flat, Levels};
use collectives::cost::bounds::Nics;
use collectives::machine::{Inside, Machine};
use collectives::sharing::{FanOut, Traffic, bind};
use collectives::{Algorithm, Collective, Hierarchy, Options, Schedule, build};
use rdma::group::{FolderStore, Group, GroupOptions, LocalRank};
use rdma::{Provider, Way};

use crate::bed::{Bridge, Node};

const NODES: usize = 2;
const RANKS: usize = 8;
const COUNTS: [usize; 4] = [8, 4, 2, 1];
const RATE: &str = "50mbit";
const RATE_BPS: u64 = 50_000_000;
/// Bytes through a NIC in each direction: a round takes at least 2.7 s, for any number of NICs.
const NIC_BYTES: usize = 16 << 20;
const ELEMENT: usize = 4;
/// Elements per put.
const TILE: usize = 1 << 14;
const ROUNDS: usize = 5;
/// The queue on the path holds 63 packets of 4,154 bytes.
const WINDOW: u32 = 60;

/// Bytes of a rank's shard: with fewer NICs, each NIC carries the shards of more ranks.
fn shard(nics: usize) -> usize {
    NIC_BYTES * nics / RANKS
}

/// Prints for each number of NICs the ratio of the bound to the time: median, minimum, maximum.
pub fn measure() -> Result<()> {
    for nics in COUNTS.into_iter().filter(|nics| {
        std::env::args()
            .nth(2)
            .is_none_or(|of| of == nics.to_string())
    }) {
        let mut shares = shares(nics)?;
        shares.sort_by(f64::total_cmp);
        let (least, most) = (shares[0], shares[ROUNDS - 1]);
        ensure!(least > 0.0, "no time");
        println!("{nics} NICs: {} {least} {most}", shares[ROUNDS / 2]);
    }
    Ok(())
}

fn shares(nics: usize) -> Result<Vec<f64>> {
    let folder = tempfile::tempdir()?;
    let bridge = Bridge::lay();
    let nodes = [0, 1].map(|number| Node {
        number,
        nics,
        rate: RATE,
    });
    let mut threads = Vec::new();
    for node in nodes {
        let folder = folder.path().to_owned();
        threads.push(bridge.node(node, move || carry_out(node, &folder))?);
    }
    let mut slowest = vec![0.0_f64; ROUNDS];
    for thread in threads {
        let took = thread.join().map_err(|_| anyhow!("a node"))??;
        for (slowest, took) in slowest.iter_mut().zip(took) {
            *slowest = slowest.max(took);
        }
    }
    for node in nodes {
        bridge.leave(node);
    }
    bridge.take();
    let bound = Nics {
        nodes: NODES,
        ranks: RANKS,
        nics,
        rate_bps: RATE_BPS,
    };
    let bound_s = bound.all_gather_s(shard(nics) as u64);
    Ok(slowest.into_iter().map(|took| bound_s / took).collect())
}

/// The ranks of a node that communicate with the other node, and their NICs, by the best binding of queue pairs: [rank of the
/// node, NIC].
fn rails(nics: usize) -> Result<Vec<[usize; 2]>> {
    let machine = Machine {
        nic_bps: RATE_BPS,
        inside: Inside::Memory {
            copy_bps: 10_000_000_000,
        },
        ..Machine::nvlink(nics)
    };
    let traffic = Traffic::AllGather {
        bytes: shard(nics) as u64,
    };
    let bound = bind(&machine, NODES, traffic, FanOut::Star, nics)?;
    let mut rails = Vec::new();
    for (nic, by_rank) in bound.queue_pairs.iter().enumerate() {
        let ranks = by_rank.iter().enumerate();
        rails.extend(
            ranks
                .filter(|(_, count)| **count > 0)
                .map(|(rank, _)| [rank, nic]),
        );
    }
    ensure!(rails.len() == nics, "a queue pair for each NIC: {rails:?}");
    Ok(rails)
}

fn schedule(rails: &[[usize; 2]], shard: usize) -> Result<Schedule> {
    let mut order: Vec<usize> = rails.iter().map(|[rank, _]| *rank).collect();
    order.extend((0..RANKS).filter(|rank| !rails.iter().any(|[rail, _]| rail == rank)));
    let node = |node: usize| order.iter().map(|rank| node * RANKS + rank).collect();
    let options = Options {
        element_bytes: ELEMENT,
        tile: Some(TILE),
        hierarchy: Some(Hierarchy::with_rails(
            (0..NODES).map(node).collect(),
            rails.len(),
        )?),
        ..Options::default()
    };
    let levels = Levels {
        inside: Flat::Direct,
        across: Flat::Direct,
    };
    let gather = Collective::all_gather(NODES * RANKS, shard / ELEMENT);
    Ok(build(&gather, Algorithm::Hierarchical(levels), &options)?)
}

/// Durations of all rounds at this node.
fn carry_out(node: Node, folder: &std::path::Path) -> Result<Vec<f64>> {
    let rails = rails(node.nics)?;
    let shard = shard(node.nics);
    let schedule = schedule(&rails, shard)?;
    let mut providers: Vec<Box<dyn Provider>> = (0..node.nics)
        .map(|nic| {
            let seed = node.number * 100 + nic;
            rdma::open(Some(&node.nic(nic)), Way::Rings, seed as u64)
        })
        .collect::<Result<_, _>>()?;
    let places = (0..RANKS).map(|rank| {
        let rail = rails.iter().find(|[rail, _]| *rail == rank);
        LocalRank {
            rank: node.number * RANKS + rank,
            nic: rail.map_or(rank % node.nics, |[_, nic]| *nic),
        }
    });
    let places: Vec<LocalRank> = places.collect();
    let lens = |place: &LocalRank| schedule.programs[place.rank].lens.iter().sum::<usize>();
    let options = GroupOptions {
        rank: 0,
        ranks: NODES * RANKS,
        capacity: places.iter().map(lens).max().unwrap_or(0) * ELEMENT,
        queue_pairs: 1,
        window: WINDOW,
        mtu: None,
        patience: Duration::from_secs(30),
    };
    let nics = providers
        .iter_mut()
        .map(|nic| &mut **nic as &mut dyn Provider);
    let mut group = Group::meet_as(
        nics.collect(),
        &mut FolderStore::new(folder),
        &places,
        options,
    )?;
    for (at, place) in places.iter().enumerate() {
        group.put_of(at, 0, &vec![place.rank as u8 + 1; shard]);
    }
    let mut took = Vec::new();
    for _ in 0..ROUNDS {
        group.barrier()?;
        let start = Instant::now();
        group.run(&schedule, &|_, _| {})?;
        // The time ends when the last rank has its last byte.
        group.barrier()?;
        took.push(start.elapsed().as_secs_f64());
    }
    let mut gathered = vec![0; shard];
    for (at, place) in places.iter().enumerate() {
        for of in 0..NODES * RANKS {
            group.copy_out_of(at, (1 + of) * shard, &mut gathered);
            let wrong = gathered.iter().position(|byte| *byte != of as u8 + 1);
            ensure!(
                wrong.is_none(),
                "rank {} has a wrong byte of {of}",
                place.rank
            );
        }
    }
    group
        .linger(Duration::from_millis(300))
        .context("the end")?;
    Ok(took)
}
