//! The cost model and the choice of algorithm, compared with examples computed by hand.

use collectives::algorithms::{Flat, Levels};
use collectives::cost::bounds::Nics;
use collectives::cost::choose::{Numbering, choose};
use collectives::cost::simulate::{CostError, Prediction, simulate};
use collectives::cost::{Model, ModelError};
use collectives::machine::Machine;
use collectives::{Algorithm, Collective, Hierarchy, Options, ReduceOp, build, offered};
use proptest::prelude::*;

/// 1 GB/s, so that a byte takes a nanosecond.
const RATE: u64 = 8_000_000_000;
const ALPHA_NS: u64 = 1_000;
const ALPHA: f64 = 1e-6;
/// Seconds per byte; elements have four bytes.
const BYTE: f64 = 1e-9;
const BYTES: usize = 4;

fn star(ranks: usize) -> Model {
    Model::star(ranks, RATE, ALPHA_NS).unwrap()
}

fn predicted(
    collective: &Collective,
    algorithm: Algorithm,
    options: &Options,
    model: &Model,
) -> Prediction {
    let schedule = build(collective, algorithm, options).unwrap();
    simulate(&schedule, model).unwrap()
}

fn time_s(collective: &Collective, algorithm: Algorithm, model: &Model) -> f64 {
    predicted(collective, algorithm, &Options::default(), model).time_s
}

#[track_caller]
fn assert_near(time_s: f64, expected_s: f64) {
    let off = (time_s - expected_s).abs() / expected_s;
    assert!(off < 1e-6, "{time_s} s, expected {expected_s} s");
}

#[test]
fn flat_algorithms_take_the_textbook_times() {
    for n in [2_usize, 4, 8, 16] {
        let (model, part) = (star(n), 100_000);
        let (m, log2) = ((part * BYTES) as f64 * BYTE, f64::from(n.ilog2()));
        let others = (n - 1) as f64;
        let len = n * part;
        let (ranks, root) = (n, n - 1);
        let gather = Collective::all_gather(n, part);
        assert_near(
            time_s(&gather, Algorithm::Ring, &model),
            others * (ALPHA + m),
        );
        assert_near(
            time_s(&gather, Algorithm::Direct, &model),
            ALPHA + others * m,
        );
        let doubling = time_s(&gather, Algorithm::RecursiveDoubling, &model);
        assert_near(doubling, log2 * ALPHA + others * m);
        let scatter = Collective::reduce_scatter(n, len);
        assert_near(
            time_s(&scatter, Algorithm::Ring, &model),
            others * (ALPHA + m),
        );
        let halving = time_s(&scatter, Algorithm::Halving, &model);
        assert_near(halving, log2 * ALPHA + others * m);
        let reduce = Collective::AllReduce { ranks, len };
        let ring = time_s(&reduce, Algorithm::Ring, &model);
        assert_near(ring, 2.0 * others * (ALPHA + m));
        let both = time_s(&reduce, Algorithm::HalvingDoubling, &model);
        assert_near(both, 2.0 * (log2 * ALPHA + others * m));
        let exchange = Collective::all_to_all(n, part);
        let pairwise = time_s(&exchange, Algorithm::Pairwise, &model);
        assert_near(pairwise, others * (ALPHA + m));
        let whole = len as f64 * BYTES as f64 * BYTE;
        let broadcast = Collective::Broadcast { ranks, root, len };
        let tree = time_s(&broadcast, Algorithm::Tree, &model);
        assert_near(tree, log2 * (ALPHA + whole));
        let up = Collective::Reduce { ranks, root, len };
        assert_near(time_s(&up, Algorithm::Tree, &model), log2 * (ALPHA + whole));
        assert_near(
            time_s(&up, Algorithm::Chain, &model),
            others * (ALPHA + whole),
        );
        let barrier = Collective::Barrier { ranks };
        assert_near(
            time_s(&barrier, Algorithm::Dissemination, &model),
            log2 * ALPHA,
        );
    }
}

#[test]
fn a_chain_of_tiles_is_a_pipeline() {
    // n − 1 hops of α, the whole vector once, and one more tile for each hop but the first.
    let (ranks, len, tiles) = (5, 64_000, 16);
    let chain = Collective::Broadcast {
        ranks,
        root: 2,
        len,
    };
    let options = Options {
        tile: Some(len / tiles),
        ..Options::default()
    };
    let time_s = predicted(&chain, Algorithm::Chain, &options, &star(ranks)).time_s;
    let whole = (len * BYTES) as f64 * BYTE;
    assert_near(time_s, 4.0 * ALPHA + whole + 3.0 * whole / tiles as f64);
}

#[test]
fn two_flows_on_an_edge_have_half_its_rate() {
    // Two ranks send to two others through one edge: an all-to-all between the two sides, computed by hand.
    let mut model = Model::new(4);
    let middle = model.add_edge("middle", RATE, 0).unwrap();
    let memory = model.add_edge("memory", RATE / 2, 0).unwrap();
    for (from, to) in [(0, 2), (1, 3)] {
        model.set_route(from, to, vec![middle]).unwrap();
    }
    model.set_memory(0, memory).unwrap();
    let mut counts = vec![vec![0; 4]; 4];
    counts[0] = vec![500, 0, 1000, 0];
    counts[1][3] = 3000;
    let exchange = Collective::AllToAll { counts };
    let prediction = predicted(&exchange, Algorithm::Direct, &Options::default(), &model);
    // 4,000 bytes at half the rate while the other rank sends 4,000, too; then 8,000 more alone.
    let (first, second) = (8_000.0 * BYTE, 16_000.0 * BYTE);
    for (rank, expected) in [first, second, first, second].into_iter().enumerate() {
        assert_near(prediction.by_rank_s[rank], expected);
    }
    assert_eq!(prediction.loads[0].bytes, 16_000);
    assert_near(prediction.loads[0].utilisation, 1.0);
    // Meanwhile, rank 0 copies 2,000 bytes at half the rate.
    assert_eq!(prediction.loads[1].bytes, 2_000);
    assert_near(prediction.loads[1].utilisation, 0.25);
}

#[test]
fn a_message_costs_time_whatever_its_length() {
    let mut model = star(9);
    model.post_ns = 500;
    let gather = Collective::all_gather(9, 0);
    let exchange = Collective::all_to_all(9, 1);
    let empty = time_s(&gather, Algorithm::Direct, &model);
    assert_eq!(empty, 0.0, "nothing is sent");
    // The eighth put begins 3.5 µs after the first, and takes four bytes alone.
    let direct = time_s(&exchange, Algorithm::Direct, &model);
    assert_near(direct, 3.5e-6 + 4.0 * BYTE + ALPHA);
}

#[test]
fn no_route_is_named() {
    let schedule = build(
        &Collective::all_gather(2, 1),
        Algorithm::Ring,
        &Options::default(),
    );
    let schedule = schedule.unwrap();
    let (from, to) = (0, 1);
    assert_eq!(
        simulate(&schedule, &Model::new(2)),
        Err(CostError::NoRoute { from, to })
    );
    let ranks = CostError::Ranks {
        schedule: 2,
        model: 3,
    };
    assert_eq!(simulate(&schedule, &star(3)), Err(ranks));
    let no_rate = ModelError::NoRate("rank 0 out".to_owned());
    assert_eq!(Model::star(2, 0, 0).unwrap_err(), no_rate);
}

#[test]
fn no_schedule_beats_the_bounds() {
    // Two gigabits per second for each node, so that the NICs are the bottleneck.
    let machine = Machine {
        gpus: 4,
        switches: 2,
        nic_bps: 2_000_000_000,
        across_ns: 0,
        inside_ns: 0,
        ..Machine::nvlink(2)
    };
    let nodes = 3;
    let model = machine.cluster(nodes).unwrap();
    let (ranks, part) = (12, 12_000);
    let nics = Nics {
        nodes,
        ranks: 4,
        nics: 2,
        rate_bps: 2_000_000_000,
    };
    let bytes = (part * BYTES) as u64;
    let whole = bytes * ranks as u64;
    let len = part * ranks;
    let bounds = [
        (
            Collective::all_gather(ranks, part),
            nics.all_gather_s(bytes),
        ),
        (
            Collective::all_to_all(ranks, part),
            nics.all_to_all_s(bytes),
        ),
        (
            Collective::reduce_scatter(ranks, len),
            nics.reduce_scatter_s(whole),
        ),
        (
            Collective::AllReduce { ranks, len },
            nics.all_reduce_s(whole),
        ),
    ];
    for (collective, bound) in bounds {
        let choice = choose(&collective, BYTES, ReduceOp::Sum, &model).unwrap();
        for offer in &choice.offers {
            let time = offer.prediction.time_s;
            assert!(time >= bound * 0.999_999, "{collective:?} {offer:?}");
        }
        let best = choice.best();
        let reached = bound / best.prediction.time_s;
        assert!(
            reached > 0.95,
            "{} reaches {reached} by {}",
            collective.name(),
            best.algorithm
        );
    }
}

#[test]
fn facts_of_the_bounds() {
    let nics = Nics {
        nodes: 4,
        ranks: 8,
        nics: 2,
        rate_bps: RATE,
    };
    // (N − 1)·g·m/(c·B) and g²·(N − 1)·m/(c·B).
    assert_near(nics.all_gather_s(1_000), 3.0 * 8.0 * 1_000.0 / 2.0 * BYTE);
    assert_near(nics.all_to_all_s(1_000), 64.0 * 3.0 * 1_000.0 / 2.0 * BYTE);
}

#[test]
fn direct_pulls_cost_as_often_as_a_node_has_ranks() {
    let machine = Machine {
        inside_ns: 0,
        across_ns: 0,
        ..Machine::nvlink(1)
    };
    let model = machine.cluster(2).unwrap();
    let gather = Collective::all_gather(16, 1 << 20);
    let direct = time_s(&gather, Algorithm::Direct, &model);
    let bound = Nics {
        nodes: 2,
        ranks: 8,
        nics: 1,
        rate_bps: machine.nic_bps,
    };
    assert_near(direct, 8.0 * bound.all_gather_s(4 << 20));
}

/// One model of each kind.
fn models() -> Vec<(&'static str, Model)> {
    let mut posted = star(8);
    posted.post_ns = 300;
    let mut ring = Model::new(6);
    let edges: Vec<_> = (0..6)
        .map(|rank| {
            ring.add_edge(&format!("to the right of {rank}"), RATE, 500)
                .unwrap()
        })
        .collect();
    for from in 0..6 {
        for hops in 1..6 {
            let route = (0..hops).map(|hop| edges[(from + hop) % 6]).collect();
            ring.set_route(from, (from + hops) % 6, route).unwrap();
        }
    }
    let shared = Machine {
        gpus: 4,
        switches: 1,
        nic_bps: 50_000_000,
        inside: collectives::machine::Inside::Memory {
            copy_bps: 10 * RATE,
        },
        ..Machine::nvlink(1)
    };
    let oversubscribed = Machine {
        fabric_bps: Some(400_000_000_000),
        ..Machine::nvlink(8)
    };
    vec![
        ("star", star(8)),
        ("star with posts", posted),
        ("a ring in one direction", ring),
        ("NVLink, 2 NICs", Machine::nvlink(2).cluster(2).unwrap()),
        ("PCIe, 1 NIC", Machine::pcie(1).cluster(2).unwrap()),
        ("shared memory", shared.cluster(3).unwrap()),
        ("oversubscribed", oversubscribed.cluster(2).unwrap()),
    ]
}

#[test]
fn the_chosen_is_never_slower_than_another() {
    for (name, model) in models() {
        let ranks = model.ranks();
        for len in [1, 1_000, 1_000_000] {
            let (root, part) = (1, len / ranks + 1);
            let collectives = [
                Collective::AllReduce { ranks, len },
                Collective::all_gather(ranks, part),
                Collective::all_to_all(ranks, part),
                Collective::reduce_scatter(ranks, len),
                Collective::Broadcast { ranks, root, len },
                Collective::Reduce { ranks, root, len },
                Collective::Barrier { ranks },
            ];
            for collective in collectives {
                let choice = choose(&collective, BYTES, ReduceOp::Sum, &model).unwrap();
                let best = choice.best();
                let options = &best.options;
                let again = predicted(&collective, best.algorithm, options, &model);
                assert_eq!(
                    again, best.prediction,
                    "{name}: what is chosen is what was tried"
                );
                let hierarchy = model.hierarchy.clone();
                let options = Options {
                    hierarchy,
                    ..Options::default()
                };
                for algorithm in offered(&collective, options.hierarchy.is_some()) {
                    let other = predicted(&collective, algorithm, &options, &model).time_s;
                    assert!(
                        best.prediction.time_s <= other * (1.0 + 1e-8),
                        "{name}: {} of {len} by {} is slower than {algorithm}",
                        collective.name(),
                        best.algorithm
                    );
                }
            }
        }
    }
}

#[test]
fn the_choice_depends_on_sizes_and_edges() {
    let chosen = |model: &Model, collective: &Collective| {
        choose(collective, BYTES, ReduceOp::Sum, model)
            .unwrap()
            .best()
            .algorithm
    };
    let (ranks, root) = (8, 0);
    let broadcast = |len| Collective::Broadcast { ranks, root, len };
    let star = star(ranks);
    assert_eq!(
        chosen(&star, &broadcast(1)),
        Algorithm::Tree,
        "few bytes: few steps"
    );
    assert_eq!(
        chosen(&star, &broadcast(10_000_000)),
        Algorithm::Chain,
        "many: each byte once"
    );
    let ring = &models()[2].1;
    let gather = Collective::all_gather(6, 1_000_000);
    assert_eq!(
        chosen(ring, &gather),
        Algorithm::Ring,
        "no edge has a byte twice"
    );
    let nodes = Machine::nvlink(2).cluster(2).unwrap();
    let gather = Collective::all_gather(16, 1_000_000);
    assert!(
        matches!(chosen(&nodes, &gather), Algorithm::Hierarchical(_)),
        "each shard enters once"
    );
}

#[test]
fn round_robin_numbers_are_faster_where_supernodes_are_far() {
    // Halving over two supernodes of four ranks, whose uplinks have a tenth of the rate.
    let mut model = Model::new(8);
    let mut ports = Vec::new();
    for rank in 0..8 {
        let out = model.add_edge(&format!("{rank} out"), RATE, 0).unwrap();
        ports.push([out, model.add_edge(&format!("{rank} in"), RATE, 0).unwrap()]);
    }
    let mut uplink = |name: &str| model.add_edge(name, RATE / 10, 0).unwrap();
    let uplinks = [["0 up", "0 down"], ["1 up", "1 down"]].map(|names| names.map(&mut uplink));
    for from in 0..8 {
        for to in (0..8).filter(|to| *to != from) {
            let mut route = vec![ports[from][0]];
            if from / 4 != to / 4 {
                route.extend([uplinks[from / 4][0], uplinks[to / 4][1]]);
            }
            route.push(ports[to][1]);
            model.set_route(from, to, route).unwrap();
        }
    }
    model.hierarchy = Some(Hierarchy::blocks(2, 4).unwrap());
    let scatter = Collective::reduce_scatter(8, 80_000);
    let choice = choose(&scatter, BYTES, ReduceOp::Sum, &model).unwrap();
    let time = |numbering: Numbering| {
        let mut offers = choice.offers.iter();
        let offer = offers.find(|offer| {
            offer.algorithm == Algorithm::Halving
                && offer.numbering == numbering
                && offer.tiles == 1
        });
        offer.unwrap().prediction.time_s
    };
    // n = 320,000 bytes per rank: the traffic of four ranks, n(1 − 4/8) or n(1/4 − 1/8) each, over an uplink, plus the
    // traffic inside.
    let n = 320_000.0 * BYTE;
    assert_near(
        time(Numbering::Plain),
        4.0 * n * 0.5 * 10.0 + n * (0.25 + 0.125),
    );
    assert_near(
        time(Numbering::RoundRobin),
        4.0 * n * 0.125 * 10.0 + n * (0.5 + 0.25),
    );
}

#[test]
fn a_hierarchy_overlaps_its_levels_tile_by_tile() {
    let machine = Machine::pcie(1);
    let model = machine.cluster(2).unwrap();
    let gather = Collective::all_gather(16, 1 << 20);
    let levels = Levels {
        inside: Flat::Ring,
        across: Flat::Direct,
    };
    let time = |tile| {
        let hierarchy = model.hierarchy.clone();
        let options = Options {
            tile,
            hierarchy,
            ..Options::default()
        };
        predicted(&gather, Algorithm::Hierarchical(levels), &options, &model).time_s
    };
    let (whole, tiles) = (time(None), time(Some(1 << 15)));
    assert!(tiles < 0.8 * whole, "{tiles} s, whole messages {whole} s");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// The bytes on an edge are the bytes sent over it, in any order of events, and no edge exceeds its capacity.
    #[test]
    fn bytes_are_kept(shards in prop::collection::vec(0_usize..5000, 2..9), post_ns in 0_u64..1000) {
        let ranks = shards.len();
        let mut model = star(ranks);
        model.post_ns = post_ns;
        let collective = Collective::AllGather { shards };
        for algorithm in offered(&collective, false) {
            let schedule = build(&collective, algorithm, &Options::default()).unwrap();
            let prediction = simulate(&schedule, &model).unwrap();
            for (rank, sent) in schedule.sent_bytes().into_iter().enumerate() {
                let load = prediction.loads[2 * rank];
                prop_assert_eq!(load.bytes, sent);
                prop_assert!(load.utilisation <= 1.0 + 1e-9);
            }
        }
    }
}
