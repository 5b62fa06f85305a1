//! Four ranks on the embedded switch gather what each has: two by verbs, in a machine with rxe each, two in user space, in a
//! namespace each. They meet over TCP, at rank 0.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::time::{Duration, Instant};

use collectives::{Collective, Options, build, offered};
use machines::{Machine, MachineOptions, neighbour, switch_program};
use rdma::group::{Group, GroupOptions, TcpStore};
use rdma::{Way, open};
use test_support::namespace::{beyond, in_namespace, ip};
use testbeds::net::Netlink;

use crate::support::{Running, weir};

const RANKS: usize = 4;
/// The last ones are in machines.
const OUTSIDE: usize = 2;
const ELEMENT: usize = 4;
/// Elements of a rank; they differ, and one has a part of a packet.
const SHARDS: [usize; RANKS] = [250_000, 131_072, 1, 200_001];
const PATIENCE: Duration = Duration::from_secs(60);

/// Set where this program is a rank in a machine.
const RANK: &str = "WEIR_TEST_RANK";

fn address(rank: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, rank as u8 + 1)
}

fn mac(rank: usize) -> [u8; 6] {
    let [a, b, c, d] = address(rank).octets();
    [2, 0x76, a, b, c, d]
}

fn shard(rank: usize) -> Vec<u8> {
    let of = |element: usize| (element as u32).wrapping_mul(0x9E37_79B9) ^ rank as u32;
    (0..SHARDS[rank])
        .flat_map(|element| of(element).to_le_bytes())
        .collect()
}

/// A rank's part: all algorithms, one after the other.
fn gather(rank: usize, interface: &str, way: Way) {
    let mut provider = open(Some(interface), way, rank as u64 + 1).unwrap();
    println!("rank {rank}: {}", provider.describe());
    let at = SocketAddr::from((address(0), 4000));
    let mut store = TcpStore::open(at, rank, RANKS, PATIENCE).unwrap();
    let options = GroupOptions {
        rank,
        ranks: RANKS,
        capacity: 2 * ELEMENT * SHARDS.iter().sum::<usize>(),
        window: 32,
        mtu: None,
        patience: PATIENCE,
    };
    let mut group = Group::meet_in(&mut *provider, &mut store, options).unwrap();
    let collective = Collective::AllGather {
        shards: SHARDS.to_vec(),
    };
    let (own, all) = (shard(rank), (0..RANKS).flat_map(shard).collect::<Vec<u8>>());
    let options = Options {
        element_bytes: ELEMENT,
        tile: Some(16_384),
        ..Options::default()
    };
    let algorithms = offered(&collective, false);
    assert!(algorithms.len() >= 3, "{algorithms:?}");
    for algorithm in algorithms {
        let schedule = build(&collective, algorithm, &options).unwrap();
        group.put(0, &own);
        group.put(own.len(), &vec![0; all.len()]);
        group.barrier().unwrap();
        let start = Instant::now();
        group.run(&schedule, &|_, _| {}).unwrap();
        let took = start.elapsed();
        let mut gathered = vec![0; all.len()];
        group.copy_out(own.len(), &mut gathered);
        assert!(gathered == all, "{algorithm} at rank {rank}");
        println!("rank {rank}: {algorithm} in {took:?}");
        // Nobody writes over what another still compares.
        group.barrier().unwrap();
    }
    group.linger(Duration::from_millis(300)).unwrap();
}

#[test]
fn an_all_gather_mixes_devices_and_user_space() {
    let test = "ranks::an_all_gather_mixes_devices_and_user_space";
    if let Ok(rank) = std::env::var(RANK) {
        gather(rank.parse().unwrap(), "rxe0", Way::Verbs);
        return;
    }
    if !in_namespace(test) {
        return;
    }
    let Some(image) = machines::for_test(test) else {
        return;
    };
    // The switch is spoken to over it.
    ip("link set lo up");
    let this = std::env::current_exe().unwrap();
    let image = image.with_programs(&[("usr/bin/ranks", &this)]).unwrap();
    let options = [2, 3].map(|rank| MachineOptions {
        mac: mac(rank),
        // This program is in it, beside the system.
        memory_mib: 512,
        ..MachineOptions::new(
            &format!("rank{rank}"),
            &format!("port{rank}"),
            address(rank),
        )
    });
    let machines = Machine::boot_all(&image, &options).unwrap_or_else(|error| panic!("{error}"));
    for (machine, rank) in machines.iter().zip(OUTSIDE..) {
        for other in (0..RANKS).filter(|other| *other != rank) {
            machine.introduce(address(other), mac(other)).unwrap();
        }
    }
    let outside: Vec<_> = (0..OUTSIDE).map(user_space).collect();
    let folder = tempfile::tempdir().unwrap();
    let macs: Vec<[u8; 6]> = (0..RANKS).map(mac).collect();
    std::fs::write(folder.path().join("lan.p4"), switch_program(&macs)).unwrap();
    let mut line = vec!["switch".to_owned(), "lan.p4".to_owned()];
    line.extend(["--grpc-server-addr", "127.0.0.1:0"].map(str::to_owned));
    for rank in 0..RANKS {
        line.extend(["-i".to_owned(), format!("{}@port{rank}", rank + 1)]);
    }
    let line: Vec<&str> = line.iter().map(String::as_str).collect();
    let mut switch = weir(folder.path(), &line);
    let _switch = Running(switch.stdout(Stdio::null()).spawn().unwrap());
    let inside: Vec<_> = machines
        .iter()
        .zip(OUTSIDE..)
        .map(|(machine, rank)| {
            let line = format!("{RANK}={rank} ranks --exact {test} --nocapture");
            machine.spawn(&line).unwrap()
        })
        .collect();
    for rank in inside {
        let said = rank
            .succeed(3 * PATIENCE)
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(said.contains("1 passed"), "{said}");
        print!("{said}");
    }
    for rank in outside {
        rank.join().unwrap();
    }
}

/// A rank in a namespace of its own, whose cable ends in a port of the switch.
fn user_space(rank: usize) -> std::thread::JoinHandle<()> {
    let (port, nic) = (format!("port{rank}"), format!("nic{rank}"));
    ip(&format!(
        "link add {port} mtu 4200 type veth peer name {nic} mtu 4200"
    ));
    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{port}/disable_ipv6"), "1");
    ip(&format!("link set {port} up"));
    let interface = nic.clone();
    beyond(&interface, move || {
        let own = mac(rank).map(|byte| format!("{byte:02x}")).join(":");
        ip(&format!("link set {nic} address {own} up"));
        ip(&format!("address add {}/24 dev {nic}", address(rank)));
        for other in (0..RANKS).filter(|other| *other != rank) {
            ip(&neighbour(address(other), mac(other), &nic));
        }
        // Frames come as from a cable: no checksum is left for hardware.
        Netlink::open().unwrap().set_sending(&nic, None).unwrap();
        gather(rank, &nic, Way::Rings);
    })
}
