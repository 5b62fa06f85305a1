//! Prints the tables of docs/rdma.md, "Collectives": the chosen algorithms, and the utilization of shared NICs.

use collectives::cost::Model;
use collectives::cost::choose::choose;
use collectives::machine::{Machine, PCIE5_X16_BPS};
use collectives::sharing::{FanOut, Traffic, bind};
use collectives::{Collective, ReduceOp};

const ELEMENT: usize = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut star = Model::star(8, 100_000_000_000, 5_000)?;
    star.post_ns = 200;
    let mut nodes = Machine::nvlink(2).cluster(4)?;
    nodes.post_ns = 200;
    for (name, model) in [
        ("8 ranks at one switch, 100 Gb/s", star),
        ("4 nodes of 8 GPUs, 2 NICs of 400 Gb/s each", nodes),
    ] {
        println!("{name}, 5 µs, 0.2 µs a message");
        chosen(&model)?;
    }
    shared()
}

fn chosen(model: &Model) -> Result<(), Box<dyn std::error::Error>> {
    let ranks = model.ranks();
    for bytes in [1 << 10, 1 << 20, 1 << 28] {
        let (len, root) = (bytes / ELEMENT, 0);
        for collective in [
            Collective::AllReduce { ranks, len },
            Collective::reduce_scatter(ranks, len),
            Collective::all_gather(ranks, len / ranks),
            Collective::all_to_all(ranks, len / ranks),
            Collective::Broadcast { ranks, root, len },
            Collective::Reduce { ranks, root, len },
        ] {
            let choice = choose(&collective, ELEMENT, ReduceOp::Sum, model)?;
            let best = choice.best();
            println!(
                "  {bytes:>9} B {:<14} {:<42} {:?}, {:>2} tiles {:>12.1} µs",
                collective.name(),
                best.algorithm.to_string(),
                best.numbering,
                best.tiles,
                best.prediction.time_s * 1e6
            );
        }
    }
    Ok(())
}

fn shared() -> Result<(), Box<dyn std::error::Error>> {
    const COUNTS: [usize; 4] = [8, 4, 2, 1];
    let bytes = 64 << 20;
    let same_rate = |nics: usize| Machine {
        nic_bps: 3_200_000_000_000 / nics as u64,
        ..Machine::nvlink(nics)
    };
    let faster_slots = |nics: usize| Machine {
        nic_slot_bps: 2 * PCIE5_X16_BPS,
        gpu_slot_bps: 2 * PCIE5_X16_BPS,
        uplink_bps: 2 * PCIE5_X16_BPS,
        ..same_rate(nics)
    };
    let machines: [(&str, &dyn Fn(usize) -> Machine); 4] = [
        ("NVLink, NICs of 400 Gb/s", &Machine::nvlink),
        ("NVLink, 3.2 Tb/s in all", &same_rate),
        ("the same, slots twice as fast", &faster_slots),
        ("PCIe, NICs of 200 Gb/s", &Machine::pcie),
    ];
    for traffic in [Traffic::AllGather { bytes }, Traffic::AllToAll { bytes }] {
        for (name, machine) in machines {
            for nodes in [2, 4, 16] {
                print!("{traffic:?}, {name}, {nodes} nodes:");
                for nics in COUNTS {
                    let bound = bind(&machine(nics), nodes, traffic, FanOut::Balanced, 64)?;
                    print!("  {nics}: {:.3} {:?}", bound.utilisation, bound.fullest);
                }
                println!();
            }
        }
    }
    Ok(())
}
