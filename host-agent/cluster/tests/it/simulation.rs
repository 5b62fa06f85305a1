//! The simulator compared with results calculated by hand.

use std::collections::BTreeMap;

use aggregation::job::{ChunkId, JobConfig, JobId, TreePosition, WorkerId};
use aggregation::rto::Retransmission;
use aggregation::server::Mode;
use cluster::Rate;
use cluster::simulation::{
    Address, Costs, Half, LinkSpec, Loss, NodeSpec, Outcome, PortId, RankAt, Role, Setup, Summing,
    SwitchSpec, Work, WorkerAt, run,
};

const JOB: JobId = JobId(1);
const SERVER: Address = Address(0x99);
const EVERYBODY: Address = Address(0x01_00_5E_57_45_01);
const SUM: Address = Address(0x02_00_5E_57_45_01);
const QUESTION: Address = Address(0x06_00_5E_57_45_01);
/// Length of a frame with 256 values, and of one without, from the Ethernet header on.
const FRAME: u64 = 14 + 20 + 8 + 24 + 1024;
const SHORT: u64 = 14 + 20 + 8 + 24;
const WINDOW: u32 = 64;
const CHUNKS: usize = 200;
const BITS_PER_S: u64 = 10_000_000;
const BURST: u64 = 2 * FRAME;

fn link(host: usize, switch: usize) -> LinkSpec {
    LinkSpec {
        ends: [host, switch],
        rate: Rate {
            bits_per_s: BITS_PER_S,
            queue_bytes: 4 << 20,
            mark_bytes: None,
        },
        burst_bytes: BURST,
        delay_ns: 100_000,
        loss: 0.0,
        mark_at: None,
    }
}

fn job(workers: u16) -> JobConfig {
    JobConfig {
        job: JOB,
        workers,
        window: WINDOW,
        values_per_packet: 256,
        values_per_round: 256 * CHUNKS,
        first_chunk: ChunkId(0),
    }
}

fn address(rank: u16) -> Address {
    Address(0x10 + u64::from(rank))
}

/// Hosts around the last node, whose port n leads to the n-th host.
fn star(hosts: Vec<Address>, switch: SwitchSpec, job: JobConfig, work: Work) -> Setup {
    let count = hosts.len();
    let own = (1..)
        .zip(&hosts)
        .map(|(port, host)| (*host, vec![PortId(port)]));
    let forwarding = switch.forwarding.into_iter().chain(own).collect();
    let hosts = hosts.into_iter().map(|address| NodeSpec::Host { address });
    let switch = NodeSpec::Switch(SwitchSpec {
        forwarding,
        ..switch
    });
    Setup {
        seed: 1,
        nodes: hosts.chain([switch]).collect(),
        links: (0..count).map(|host| link(host, count)).collect(),
        job,
        retransmission: Retransmission::default(),
        rounds: 3,
        work,
        costs: Costs::default(),
        limit_ns: 1_000_000_000_000,
    }
}

/// A server at host 0, and workers, whose updates the switch or the server sums.
fn training(workers: u16, mode: Mode) -> Setup {
    let ports: Vec<PortId> = (2..usize::from(workers) + 2).map(PortId).collect();
    let switch = SwitchSpec {
        forwarding: BTreeMap::from([(EVERYBODY, ports.clone())]),
        sums: match mode {
            Mode::Switch => vec![Summing {
                number: JOB,
                children: ports,
                up: None,
            }],
            Mode::Direct => Vec::new(),
        },
        losses: Vec::new(),
    };
    let hosts = std::iter::once(SERVER).chain((0..workers).map(address));
    let workers = (1..=workers).map(|rank| WorkerAt {
        host: rank.into(),
        to: SERVER,
        part: None,
    });
    let workers: Vec<WorkerAt> = workers.collect();
    let job = job(workers.len() as u16);
    let work = Work::Training {
        server: 0,
        workers,
        mode,
        parts: Vec::new(),
        everybody: EVERYBODY,
    };
    star(hosts.collect(), switch, job, work)
}

fn all_reduce(ranks: u16) -> Setup {
    let ports: Vec<PortId> = (1..=usize::from(ranks)).map(PortId).collect();
    let switch = SwitchSpec {
        forwarding: BTreeMap::from([(SUM, ports.clone())]),
        sums: vec![Summing {
            number: JOB,
            children: ports,
            up: None,
        }],
        losses: Vec::new(),
    };
    let at = |rank: u16| RankAt {
        host: rank.into(),
        place: TreePosition {
            child: WorkerId(rank),
            siblings: ranks as u8,
            top: ranks as u8,
        },
    };
    let work = Work::AllReduce {
        ranks: (0..ranks).map(at).collect(),
        sum: SUM,
        question: QUESTION,
    };
    let setup = star((0..ranks).map(address).collect(), switch, job(ranks), work);
    Setup {
        retransmission: Retransmission::of_ranks(),
        ..setup
    }
}

fn simulate(setup: &Setup) -> Outcome {
    let outcome = run(setup).unwrap();
    for member in &outcome.members {
        assert_eq!(member.end, cluster::simulation::End::Finished, "{member:?}");
    }
    outcome
}

fn seconds(bytes: u64) -> f64 {
    bytes as f64 * 8.0 / BITS_PER_S as f64
}

/// Time from the beginning of the first round of any worker to the end of the last, in seconds.
fn completed_s(outcome: &Outcome) -> f64 {
    outcome.completed_ns().unwrap() as f64 / 1e9
}

/// A round carries a window of short frames and all chunks over each link, in both directions at once. It additionally takes
/// a few round trips: the short frames must return before the first chunk is sent, and the last chunk before the round ends.
#[test]
fn a_sum_at_the_switch_takes_the_time_of_one_link() {
    let setup = training(4, Mode::Switch);
    let outcome = simulate(&setup);
    let round = CHUNKS as u64 * FRAME + u64::from(WINDOW) * SHORT;
    // A link's bucket refills while nothing is sent.
    let least_s = 3.0 * seconds(round - BURST);
    let took_s = completed_s(&outcome);
    assert!(
        (least_s..1.05 * least_s).contains(&took_s),
        "{took_s} s, of links alone {least_s} s"
    );
    let closing = u64::from(WINDOW) * SHORT;
    for [there, back] in &outcome.links {
        assert_eq!(there.bytes, 3 * round + closing);
        assert_eq!(back.bytes, there.bytes);
        assert_eq!((there.overflowed, there.lost, there.marked), (0, 0, 0));
    }
    assert_eq!(outcome.members[0].role, Role::Server);
    let again = outcome.members.iter();
    assert_eq!(
        again
            .map(|member| member.sent.retransmitted_frames)
            .sum::<u64>(),
        0
    );
}

/// Without a summing switch, the server's link carries all workers' values, and no chunk is answered before the last worker's
/// arrives, behind a window of each of the others.
#[test]
fn a_sum_at_the_server_takes_the_time_of_its_link() {
    let outcome = simulate(&training(2, Mode::Direct));
    let round = CHUNKS as u64 * FRAME + u64::from(WINDOW) * SHORT;
    let least_s = 3.0 * 2.0 * seconds(round - BURST);
    let took_s = completed_s(&outcome);
    assert!(
        (least_s..1.1 * least_s).contains(&took_s),
        "{took_s} s, of the server's link alone {least_s} s"
    );
    let closing = u64::from(WINDOW) * SHORT;
    assert_eq!(outcome.links[0][1].bytes, 2 * (3 * round + closing));
}

#[test]
fn an_all_reduce_takes_the_time_of_one_link() {
    let outcome = simulate(&all_reduce(4));
    // One more chunk, because of the digest.
    let operation = (CHUNKS as u64 + 1) * FRAME + u64::from(WINDOW) * SHORT;
    let least_s = 3.0 * seconds(operation - BURST);
    let took_s = completed_s(&outcome);
    assert!(
        (least_s..1.05 * least_s).contains(&took_s),
        "{took_s} s, of links alone {least_s} s"
    );
    for [there, back] in &outcome.links {
        // A rank that waits for others probes the switch, by frames without values; each is answered.
        assert_eq!(there.bytes, back.bytes);
        assert!(
            (3 * operation..3 * operation + 300 * SHORT).contains(&there.bytes),
            "{there:?}"
        );
    }
}

/// A token bucket releases its burst at once, and then limits to the rate: over all rounds the burst saves its time once, and
/// once more for each pause that refills it.
#[test]
fn a_burst_is_saved_once() {
    let plain = completed_s(&simulate(&training(2, Mode::Switch)));
    let mut setup = training(2, Mode::Switch);
    let burst = 100 * FRAME;
    for link in &mut setup.links {
        link.burst_bytes = burst;
    }
    let bursting = completed_s(&simulate(&setup));
    let saved = plain - bursting;
    let expected = seconds(burst - BURST);
    assert!(
        (saved - expected).abs() < 0.05 * expected,
        "{saved} s, {expected} s"
    );
    for link in &mut setup.links {
        link.burst_bytes = BURST;
    }
    let pause_ns = 10_000_000;
    setup.costs.compute_ns = pause_ns;
    let paused = completed_s(&simulate(&setup));
    let pauses = 3.0 * pause_ns as f64 / 1e9;
    assert!(
        (paused - plain - pauses).abs() < 0.1 * pauses,
        "{paused} s, {plain} s"
    );
}

/// A lost frame is retransmitted; if no later frame reveals the loss, a timeout does.
#[test]
fn losses_are_mended_and_cost_time() {
    let mut setup = training(4, Mode::Switch);
    let plain = simulate(&setup);
    let NodeSpec::Switch(switch) = setup.nodes.last_mut().unwrap() else {
        unreachable!();
    };
    switch.losses.push(Loss {
        kind: Some(wire::Kind::Update),
        from: None,
        to: None,
        share: 0.01,
        at: Half::Ingress,
    });
    let lossy = simulate(&setup);
    let again = |outcome: &Outcome| {
        let members = outcome.members.iter();
        members
            .map(|member| member.sent.retransmitted_frames)
            .sum::<u64>()
    };
    assert_eq!((plain.dropped, again(&plain)), (0, 0));
    assert!(
        lossy.dropped > 0 && again(&lossy) >= lossy.dropped,
        "{lossy:?}"
    );
    assert!(lossy.completed_ns() > plain.completed_ns());
    assert_eq!(simulate(&setup), lossy, "the same seed");
    setup.seed += 1;
    assert_ne!(simulate(&setup), lossy, "another seed");
}

/// Marking queues stay short.
#[test]
fn marks_keep_the_servers_queue_short() {
    let mut setup = training(8, Mode::Direct);
    let longest = |outcome: &Outcome| outcome.links[0][1].longest;
    let unmarked = simulate(&setup);
    for link in &mut setup.links {
        link.mark_at = Some(16);
    }
    let marked = simulate(&setup);
    assert!(marked.links[0][1].marked > 0);
    assert!(
        longest(&marked) < longest(&unmarked),
        "{} and {}",
        longest(&marked),
        longest(&unmarked)
    );
}
