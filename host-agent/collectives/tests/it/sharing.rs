//! Shared NICs: the best binding found, compared with all bindings and with the flow simulator, and the number of NICs at
//! which it saturates.

use collectives::algorithms::{Flat, Levels};
use collectives::cost::ModelError;
use collectives::cost::bounds::Nics;
use collectives::cost::choose::choose;
use collectives::cost::simulate::simulate;
use collectives::machine::{Inside, Machine};
use collectives::sharing::{Binding, EdgeKind, FanOut, Traffic, bind, evaluate};
use collectives::{Algorithm, Collective, Options, ReduceOp, build};

const MIB: u64 = 1 << 20;
const GATHER: Traffic = Traffic::AllGather { bytes: 64 * MIB };
const EXCHANGE: Traffic = Traffic::AllToAll { bytes: 64 * MIB };
const COUNTS: [usize; 4] = [8, 4, 2, 1];

fn bound(machine: &Machine, nodes: usize, traffic: Traffic, fan_out: FanOut) -> Binding {
    bind(machine, nodes, traffic, fan_out, 64).unwrap()
}

/// All distributions of `left` queue pairs over the cells.
fn all_ways(cells: usize, left: usize, each: &mut impl FnMut(&[usize])) {
    fn fill(ways: &mut Vec<usize>, cells: usize, left: usize, each: &mut impl FnMut(&[usize])) {
        if cells == 1 {
            ways.push(left);
            each(ways);
            ways.pop();
            return;
        }
        for here in 0..=left {
            ways.push(here);
            fill(ways, cells - 1, left - here, each);
            ways.pop();
        }
    }
    fill(&mut Vec::new(), cells, left, each);
}

#[test]
fn no_way_to_bind_is_faster() {
    let slow_slots = |machine: Machine| Machine {
        gpu_slot_bps: machine.nic_bps / 3,
        ..machine
    };
    let narrow = |machine: Machine| Machine {
        inside: Inside::NvLink {
            port_bps: machine.nic_bps,
        },
        ..machine
    };
    let small = |machine: Machine| Machine {
        gpus: 4,
        switches: 2,
        ..machine
    };
    let mut ways = 0;
    for nics in [1, 2, 4] {
        for machine in [
            small(Machine::nvlink(nics)),
            small(Machine::pcie(nics)),
            slow_slots(small(Machine::nvlink(nics))),
            narrow(small(Machine::nvlink(nics))),
        ] {
            for queue_pairs in [1, 3, 4] {
                for traffic in [GATHER, EXCHANGE] {
                    for fan_out in [FanOut::Star, FanOut::Balanced] {
                        let found = bind(&machine, 3, traffic, fan_out, queue_pairs).unwrap();
                        all_ways(nics * 4, queue_pairs, &mut |way| {
                            let way = way.chunks(4).map(<[usize]>::to_vec).collect();
                            let other = evaluate(&machine, 3, traffic, fan_out, way);
                            ways += 1;
                            assert!(
                                found.time_s <= other.time_s * (1.0 + 1e-9),
                                "{machine:?} {traffic:?} {fan_out:?}\n{found:?}\n{other:?}"
                            );
                        });
                    }
                }
            }
        }
    }
    assert!(ways > 50_000, "{ways}");
}

/// Utilisation and the fullest kind of edge for 8, 4, 2, 1 NICs.
fn row(machine: impl Fn(usize) -> Machine, nodes: usize, traffic: Traffic) -> [(f64, EdgeKind); 4] {
    COUNTS.map(|nics| {
        let binding = bound(&machine(nics), nodes, traffic, FanOut::Balanced);
        (binding.utilisation, binding.fullest)
    })
}

#[track_caller]
fn assert_row(found: [(f64, EdgeKind); 4], expected: [(f64, EdgeKind); 4]) {
    for (found, expected) in found.iter().zip(&expected) {
        assert!(
            (found.0 - expected.0).abs() < 6e-4,
            "{found:?}, not {expected:?}"
        );
        assert_eq!(found.1, expected.1, "{found:?}, not {expected:?}");
    }
}

/// The published result: GPUs with 2 NICs instead of 8 use these equally well. It holds down to one NIC.
#[test]
fn eight_nics_become_two_at_the_same_utilisation() {
    use EdgeKind::Nic;
    let all = [(1.0, Nic), (1.0, Nic), (1.0, Nic), (1.0, Nic)];
    assert_row(row(Machine::nvlink, 16, GATHER), all);
    assert_row(row(Machine::nvlink, 16, EXCHANGE), all);
}

/// With few nodes, eight NICs deliver more than NVLink forwards: (N − 1)·g·m/(c·B) < ((N − 1)·(g − 1) + (g − 1))·m/V.
#[test]
fn eight_nics_of_few_nodes_wait_for_nvlink() {
    use EdgeKind::{Nic, NvLink};
    let rest = [(1.0, Nic), (1.0, Nic), (1.0, Nic)];
    let with = |first: (f64, EdgeKind)| [first, rest[0], rest[1], rest[2]];
    assert_row(
        row(Machine::nvlink, 2, GATHER),
        with((450.0 * 8.0 / 14.0 / 400.0, NvLink)),
    );
    assert_row(
        row(Machine::nvlink, 4, GATHER),
        with((450.0 * 24.0 / 28.0 / 400.0, NvLink)),
    );
}

/// A node has 3.2 Tb/s in fewer and faster NICs: of four, each delivers more than its slot carries; with slots twice as fast,
/// this happens with two.
#[test]
fn fewer_and_faster_nics_break_at_their_slots() {
    use EdgeKind::{Nic, NicSlot};
    let same = |nics: usize| Machine {
        nic_bps: 3_200_000_000_000 / nics as u64,
        ..Machine::nvlink(nics)
    };
    let slots = [
        (1.0, Nic),
        (0.6302, NicSlot),
        (0.3151, NicSlot),
        (0.1575, NicSlot),
    ];
    assert_row(row(same, 16, GATHER), slots);
    assert_row(row(same, 16, EXCHANGE), slots);
    let faster = |nics| {
        let slot = 2 * Machine::nvlink(nics).nic_slot_bps;
        Machine {
            nic_slot_bps: slot,
            gpu_slot_bps: slot,
            uplink_bps: slot,
            ..same(nics)
        }
    };
    let slots = [(1.0, Nic), (1.0, Nic), (0.6302, NicSlot), (0.3151, NicSlot)];
    assert_row(row(faster, 16, GATHER), slots);
}

/// Without NVLink each shard passes every GPU's slot, so that at most one NIC is filled.
#[test]
fn without_nvlink_slots_are_full() {
    use EdgeKind::{GpuSlot, Nic, Uplink};
    let gather = [
        (0.1489, GpuSlot),
        (0.2978, GpuSlot),
        (0.5955, GpuSlot),
        (1.0, Nic),
    ];
    assert_row(row(Machine::pcie, 16, GATHER), gather);
    let exchange = [(0.4067, Uplink), (0.8133, Uplink), (1.0, Nic), (1.0, Nic)];
    assert_row(row(Machine::pcie, 16, EXCHANGE), exchange);
}

/// A fabric of 600 Gb/s per node is the bottleneck as long as two or more NICs deliver at least 800.
#[test]
fn a_narrow_fabric_is_full_first() {
    use EdgeKind::{Fabric, Nic};
    let narrow = |nics| Machine {
        fabric_bps: Some(600_000_000_000),
        ..Machine::nvlink(nics)
    };
    let used = [
        (600.0 / 3200.0, Fabric),
        (600.0 / 1600.0, Fabric),
        (0.75, Fabric),
        (1.0, Nic),
    ];
    assert_row(row(narrow, 16, GATHER), used);
    assert_row(row(narrow, 16, EXCHANGE), used);
}

/// Queue pairs are indivisible: with fewer than NICs some NICs are idle, and three NICs share eight as 3, 3, 2.
#[test]
fn whole_queue_pairs_leave_gaps() {
    let used = |nics, queue_pairs| {
        let fan_out = FanOut::Balanced;
        bind(&Machine::nvlink(nics), 16, GATHER, fan_out, queue_pairs)
            .unwrap()
            .utilisation
    };
    for (nics, queue_pairs, expected) in [
        (8, 2, 0.25),
        (2, 2, 1.0),
        (3, 8, 8.0 / 9.0),
        (8, 15, 15.0 / 16.0),
    ] {
        let used = used(nics, queue_pairs);
        assert!(
            (used - expected).abs() < 1e-9,
            "{nics} NICs, {queue_pairs}: {used}"
        );
    }
}

/// The NVLink rate at which each number of NICs saturates: fewer NICs need less of it.
#[test]
fn narrower_nvlink_breaks_many_nics_first() {
    let breaks = |nics: usize| {
        let widths = (1..=450).rev().map(|gigabytes| gigabytes * 8_000_000_000);
        let is_short = |port_bps: &u64| {
            let machine = Machine {
                inside: Inside::NvLink {
                    port_bps: *port_bps,
                },
                ..Machine::nvlink(nics)
            };
            bound(&machine, 16, GATHER, FanOut::Balanced).utilisation < 0.98
        };
        widths
            .into_iter()
            .find(is_short)
            .map(|bps| bps / 8_000_000_000)
    };
    assert_eq!(
        COUNTS.map(breaks),
        [Some(365), Some(182), Some(91), Some(45)]
    );
}

#[test]
fn invalid_machines_are_refused() {
    let refused = |machine: Machine| bind(&machine, 2, GATHER, FanOut::Star, 1).unwrap_err();
    assert_eq!(refused(Machine::nvlink(0)), ModelError::Without("NIC"));
    let no_rate = refused(Machine {
        uplink_bps: 0,
        ..Machine::nvlink(1)
    });
    assert_eq!(
        no_rate,
        ModelError::NoRate("uplink of PCIe switch".to_owned())
    );
    // More NICs than GPUs, and PCIe switches without GPUs.
    for (gpus, nics) in [(1, 4), (2, 8), (3, 2), (8, 3)] {
        let machine = Machine {
            gpus,
            ..Machine::nvlink(nics)
        };
        let binding = bind(&machine, 2, GATHER, FanOut::Balanced, 16).unwrap();
        assert_eq!(binding.queue_pairs.iter().flatten().sum::<usize>(), 16);
    }
}

/// A hierarchical all-gather in tiles, as flows over every edge: its time, and the share of the NICs' rate that it uses.
fn simulated(machine: &Machine, nodes: usize, part: usize, levels: Levels) -> (f64, f64) {
    let model = machine.cluster(nodes).unwrap();
    let gather = Collective::all_gather(nodes * machine.gpus, part);
    let options = Options {
        tile: Some(part / 16),
        hierarchy: model.hierarchy.clone(),
        ..Options::default()
    };
    let schedule = build(&gather, Algorithm::Hierarchical(levels), &options).unwrap();
    let time_s = simulate(&schedule, &model).unwrap().time_s;
    let nics = Nics {
        nodes,
        ranks: machine.gpus,
        nics: machine.nics,
        rate_bps: machine.nic_bps,
    };
    let bytes = 4 * part as u64;
    let traffic = Traffic::AllGather { bytes };
    let least_s = bound(machine, nodes, traffic, FanOut::Balanced).time_s;
    (nics.all_gather_s(bytes) / time_s, least_s / time_s)
}

const LEVELS: Levels = Levels {
    inside: Flat::Direct,
    across: Flat::Ring,
};

#[test]
fn the_flow_simulator_agrees() {
    let used = COUNTS.map(|nics| simulated(&Machine::nvlink(nics), 6, 16 << 20, LEVELS).0);
    println!("6 nodes, shards of 64 MiB, NICs {COUNTS:?}: {used:.4?}");
    assert!(used.iter().all(|each| *each > 0.98), "{used:?}");
    assert!(
        used.iter().all(|each| (each - used[0]).abs() < 0.02),
        "{used:?}"
    );
}

/// No schedule takes less than θ. With NVLink, θ is reached; without, our rings make the GPUs that receive from NICs forward
/// as much as the others, which trees need not.
#[test]
fn no_schedule_is_faster_than_the_fullest_edge() {
    let both = [Flat::Ring, Flat::Direct];
    let levels = both.map(|inside| both.map(|across| Levels { inside, across }));
    let best = |machine: &Machine| {
        let reached = levels.as_flattened().iter();
        let reached = reached.map(|levels| simulated(machine, 3, 1 << 22, *levels).1);
        let best = reached.fold(0.0, f64::max);
        assert!(best <= 1.0 + 1e-9, "{machine:?}: {best}");
        best
    };
    let nvlink = COUNTS.map(|nics| best(&Machine::nvlink(nics)));
    let pcie = COUNTS.map(|nics| best(&Machine::pcie(nics)));
    println!("the least time's share, NICs {COUNTS:?}: NVLink {nvlink:.3?}, PCIe {pcie:.3?}");
    assert!(nvlink.iter().all(|each| *each > 0.98), "{nvlink:?}");
    assert!(pcie.iter().all(|each| *each > 0.7), "{pcie:?}");
}

/// Two hosts of eight ranks each, NICs of 50 Mb/s, one memory: as in network namespaces.
#[test]
fn ranks_of_one_host_share_its_nics() {
    for nics in COUNTS {
        let machine = Machine {
            nic_bps: 50_000_000,
            inside: Inside::Memory {
                copy_bps: 20_000_000_000,
            },
            ..Machine::nvlink(nics)
        };
        let (used, _) = simulated(&machine, 2, 1 << 16, LEVELS);
        assert!(used > 0.95, "{nics} NICs: {used}");
    }
}

/// An all-to-all cannot omit any traffic: by rails or by uplinks, the NICs are the bottleneck.
#[test]
fn an_all_to_all_uses_shared_nics_as_well() {
    let used = COUNTS.map(|nics| {
        let (nodes, part) = (3, 1 << 20);
        let machine = Machine::nvlink(nics);
        let model = machine.cluster(nodes).unwrap();
        let exchange = Collective::all_to_all(nodes * 8, part);
        let choice = choose(&exchange, 4, ReduceOp::Sum, &model).unwrap();
        let rate_bps = machine.nic_bps;
        let nics = Nics {
            nodes,
            ranks: 8,
            nics,
            rate_bps,
        };
        nics.all_to_all_s(4 * part as u64) / choice.best().prediction.time_s
    });
    println!("3 nodes, 4 MiB a pair, NICs {COUNTS:?}: {used:.4?}");
    assert!(used.iter().all(|each| *each > 0.95), "{used:?}");
}
