//! NICs that GPUs share: what is found against all ways to bind queue pairs, against the flow simulator, and at which number of
//! NICs it breaks.

use collectives::cost::bounds::Nics;
use collectives::cost::choose::choose;
use collectives::machine::{Inside, Machine};
use collectives::sharing::{Binding, EdgeKind, FanOut, Traffic, bind, evaluate};
use collectives::{Collective, ReduceOp};

const MIB: u64 = 1 << 20;
const GATHER: Traffic = Traffic::AllGather { bytes: 64 * MIB };
const EXCHANGE: Traffic = Traffic::AllToAll { bytes: 64 * MIB };
const COUNTS: [usize; 4] = [8, 4, 2, 1];

fn bound(machine: &Machine, nodes: usize, traffic: Traffic, fan_out: FanOut) -> Binding {
    bind(machine, nodes, traffic, fan_out, 64).unwrap()
}

/// All ways to give `left` queue pairs to cells.
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

#[test]
fn eight_nics_become_two_at_the_same_utilisation() {
    for traffic in [GATHER, EXCHANGE] {
        let used: Vec<f64> = COUNTS
            .map(|nics| bound(&Machine::nvlink(nics), 16, traffic, FanOut::Balanced).utilisation)
            .to_vec();
        assert!(
            used.iter().all(|each| (each - used[0]).abs() < 0.02),
            "{used:?}"
        );
        assert!(used[2] > 0.98, "{used:?}");
    }
}

#[test]
fn the_flow_simulator_agrees() {
    for machine in [Machine::nvlink as fn(usize) -> Machine, Machine::pcie] {
        for nics in COUNTS {
            let (nodes, part) = (3, 4 << 20);
            let machine = machine(nics);
            let model = machine.cluster(nodes).unwrap();
            let gather = Collective::all_gather(nodes * 8, part);
            let choice = choose(&gather, 4, ReduceOp::Sum, &model).unwrap();
            let traffic = Traffic::AllGather {
                bytes: 4 * part as u64,
            };
            let least = bound(&machine, nodes, traffic, FanOut::Balanced);
            let nics = Nics {
                nodes,
                ranks: 8,
                nics,
                rate_bps: machine.nic_bps,
            };
            let time_s = choice.best().prediction.time_s;
            println!(
                "{} NICs {:?}: bound {:.6} θ {:.6} ({:?}) simulated {:.6} by {} tiles {}",
                nics.nics,
                machine.inside,
                nics.all_gather_s(4 * part as u64),
                least.time_s,
                least.fullest,
                time_s,
                choice.best().algorithm,
                choice.best().tiles
            );
        }
    }
}
