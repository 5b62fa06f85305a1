//! `all_gather`, `all_to_all`: four ranks on a bridge with links of 200 Mbit/s, compared with the limit of the links.
//!
//! The bound is (N − 1)·m ÷ B: each rank's link receives the shards of all others. It excludes the headers, 1.4 % at MTU 4,096.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use rdma::Way;
use rdma::group::{Group, GroupOptions};
use test_support::namespace::remove;

use crate::bed::Bridge;
use crate::exchange::{Kind, RANKS, RATE, RATE_BPS, ROUNDS, SHARD};
use crate::rivals;

/// The queue on the path holds 63 packets of 4,154 bytes.
const WINDOW: u32 = 60;

/// Prints for each algorithm the ratio of the bound to the time: median, minimum, maximum.
pub fn measure(kind: Kind) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let bridge = Bridge::lay();
    let ranks: Vec<_> = (0..RANKS)
        .map(|rank| {
            let folder = folder.path().to_owned();
            bridge.host(rank, RATE, move || {
                let nic = format!("nic{rank}");
                let mut provider = rdma::open(Some(&nic), Way::Rings, rank as u64)?;
                let options = GroupOptions {
                    rank,
                    ranks: RANKS,
                    capacity: 10 * SHARD,
                    queue_pairs: 1,
                    window: WINDOW,
                    mtu: None,
                    patience: Duration::from_secs(30),
                };
                let mut group = Group::meet(&mut *provider, &folder, options)?;
                for (at, byte) in kind.input(rank).into_iter().enumerate() {
                    group.put(at * SHARD, &vec![byte; SHARD]);
                }
                let output = kind.input(rank).len() * SHARD;
                let mut took = Vec::new();
                for (name, schedule) in kind.schedules()? {
                    group.put(output, &vec![0; RANKS * SHARD]);
                    let mut of_one = Vec::new();
                    for _ in 0..ROUNDS {
                        group.barrier()?;
                        let start = Instant::now();
                        group.run(&schedule, &|_, _| {})?;
                        // The time ends when the last rank has its last byte.
                        group.barrier()?;
                        of_one.push(start.elapsed().as_secs_f64());
                    }
                    let mut shard = vec![0; SHARD];
                    for (from, expected) in kind.output(rank).into_iter().enumerate() {
                        group.copy_out(output + from * SHARD, &mut shard);
                        let is_right = shard.iter().all(|byte| *byte == expected);
                        ensure!(is_right, "{name}: rank {rank} has wrong bytes of {from}");
                    }
                    took.push(of_one);
                }
                group.linger(Duration::from_millis(300))?;
                Ok(took)
            })
        })
        .collect::<Result<_>>()?;
    let mut of_all = Vec::new();
    for rank in ranks {
        of_all.push(rank.join().map_err(|_| anyhow!("a rank"))??);
    }
    let bound_s = ((RANKS - 1) * SHARD) as f64 * 8.0 / RATE_BPS;
    for (at, (name, _)) in kind.schedules()?.into_iter().enumerate() {
        let slowest = |round: usize| {
            let ranks = of_all.iter().map(|rank| rank[at][round]);
            ranks.fold(0.0, f64::max)
        };
        print_shares(&name, (0..ROUNDS).map(|round| bound_s / slowest(round)))?;
    }
    for rank in 0..RANKS {
        remove(&format!("port{rank}"));
    }
    match rivals::measure(kind, &bridge) {
        Ok((name, times)) => print_shares(name, times.iter().map(|time| bound_s / time))?,
        Err(error) => eprintln!("no comparison with another program: {error:#}"),
    }
    Ok(())
}

fn print_shares(name: &str, shares: impl Iterator<Item = f64>) -> Result<()> {
    let mut shares: Vec<f64> = shares.collect();
    shares.sort_by(f64::total_cmp);
    ensure!(shares[0] > 0.0, "no time");
    let (least, most) = (shares[0], shares[ROUNDS - 1]);
    println!("{name}: {} {least} {most}", shares[ROUNDS / 2]);
    Ok(())
}
