//! All-reduces over the P4 text of each architecture: ranks in virtual time, links that lose, copy and reorder, and sums that
//! are the same at all ranks and as the reference slots have them.

use aggregation::Destination;
use aggregation::job::{ChunkId, Job, JobConfig, JobId, WorkerId};
use aggregation::rank::Values;
use cluster::drawn::pick;
use cluster::ranks::{self, AllReduceConfig, Racks, RankEnd, RankSwitch};
use cluster::{Faults, Node};
use host_agent::frames::{Endpoint, asking, build, open, sum};

use super::p4_switch::{
    ARCHS, Admission, FIRST_WORKER_PORT, Outcome, P4Switch, Part, UP_PORT, VALUES, compile,
    endpoint, node_at, port,
};

/// What draws the runs.
const SALT: u64 = 0xA11;

/// Whom a rank's driver addresses a frame to.
fn addressee(job: Job, from: WorkerId, to: Destination) -> Endpoint {
    let own = endpoint(Node::Worker(from));
    match to {
        Destination::All => sum(job.id().0),
        Destination::Worker(rank) if rank == from => asking(job.id().0, own),
        Destination::Worker(rank) => endpoint(Node::Worker(rank)),
        Destination::Server => endpoint(Node::Server),
    }
}

impl RankSwitch for P4Switch {
    fn handle(
        &mut self,
        now_ns: u64,
        from: WorkerId,
        to: Destination,
        payload: &[u8],
        out: &mut Vec<(WorkerId, Vec<u8>)>,
    ) {
        let to = addressee(self.job(), from, to);
        let from = Node::Worker(from);
        let mut frame = Vec::new();
        build(&mut frame, endpoint(from), to, payload);
        for (at, bytes) in self.send(now_ns, port(from), &frame) {
            let Node::Worker(rank) = node_at(at) else {
                panic!("there is no server: {bytes:02x?}");
            };
            let payload = open(&bytes, endpoint(Node::Worker(rank)));
            let payload = payload.unwrap_or_else(|| panic!("{rank}: {bytes:02x?}"));
            out.push((rank, payload.to_vec()));
        }
    }
}

pub fn config(seed: u64) -> AllReduceConfig {
    let pick = |what: u64, options: u64| pick(seed, SALT, what, options);
    let share = |what: u64| pick(what, 20) as f64 / 100.0;
    let job = JobConfig {
        job: JobId(pick(1, 1 << 16) as u16),
        workers: 1 + pick(2, 8) as u16,
        window: 1 << pick(3, 4),
        values_per_packet: VALUES as u16,
        values_per_round: 0,
        // Numbers wrap in some.
        first_chunk: ChunkId((pick(4, 1 << 32) as u32).wrapping_sub(20)),
    };
    AllReduceConfig::new(
        seed,
        job,
        Faults {
            loss: share(5),
            duplicate: share(6),
            reorder: share(7),
            reorder_ns: 300_000,
        },
    )
}

/// Of each operation other lengths and sizes; every fourth of integers.
pub fn input(seed: u64, operation: usize, rank: WorkerId) -> Values {
    let salt = SALT + 1 + operation as u64;
    let length = 1 + pick(seed, salt, 1, 3 * VALUES as u64) as usize;
    let exponent = pick(seed, salt, 2, 80) as i32 - 40;
    let word = |index: usize| {
        pick(
            seed,
            salt,
            3 + (u64::from(rank.0) << 32) + index as u64,
            1 << 32,
        ) as u32
    };
    match operation % 4 {
        3 => Values::Integers((0..length).map(|index| word(index) as i32).collect()),
        _ => {
            let unit = 2_f32.powi(exponent);
            let value = |index: usize| (word(index) as f32 / 2_f32.powi(31) - 1.0) * unit;
            Values::Floats((0..length).map(value).collect())
        }
    }
}

#[test]
fn all_ranks_have_the_sums_of_the_reference() {
    const OPERATIONS: usize = 6;
    for arch in ARCHS {
        let mut p4 = P4Switch::load(compile(arch, &[]));
        let (mut probes, mut told) = (0, 0);
        for seed in 0..25 {
            let config = config(seed);
            let job = Job::new(config.job).expect("a job");
            p4.admit(job, Admission::LeftBehind);
            let inputs = |operation: usize, rank: WorkerId| input(seed, operation, rank);
            let report = ranks::run(&config, &mut p4, OPERATIONS, &inputs).expect("a job");
            let done = report.ends.iter().all(|end| *end == RankEnd::Done);
            assert!(done, "{arch:?}, seed {seed}: {:?}", report.ends);
            let mut slots = ranks::RankSlotSwitch::new(job);
            let calm = AllReduceConfig {
                faults: Faults::NONE,
                ..config.clone()
            };
            let expected = ranks::run(&calm, &mut slots, OPERATIONS, &inputs).expect("a job");
            for (rank, sums) in report.sums.iter().enumerate() {
                assert_eq!(
                    *sums, expected.sums[0],
                    "{arch:?}, seed {seed}, rank {rank}"
                );
            }
            p4.assert_neighbours_untouched();
            probes += report
                .counters
                .iter()
                .map(|counters| counters.probes)
                .sum::<u64>();
            told = p4.outcomes(Outcome::Probed);
        }
        assert!(
            probes > 500 && told > 300,
            "{arch:?}: {probes} probes, {told} answered"
        );
    }
}

/// Racks of two ranks, and a switch above: each with its own program. A frame between two of them is lost now and then.
struct P4Tree {
    top: P4Switch,
    racks: Vec<P4Switch>,
    between: u64,
    loses: u64,
}

const RACK: Racks = Racks { size: 2 };

impl P4Tree {
    fn new(job: Job, arch: parser_gen::Arch, loses: u64) -> Self {
        let program = compile(arch, &[]);
        let ranks = || (0..job.workers()).map(WorkerId);
        let mut top = P4Switch::load(program.clone());
        let count = RACK.count(&job);
        let port_of = |child: u16| FIRST_WORKER_PORT + u32::from(child);
        top.admit_part(
            job,
            Admission::LeftBehind,
            &Part {
                children: count,
                up: None,
                routes: ranks()
                    .map(|rank| (rank, port_of(rank.0 / RACK.size)))
                    .collect(),
            },
        );
        let racks = (0..count).map(|rack| {
            let mut switch = P4Switch::load(program.clone());
            let own = ranks().filter(|rank| rank.0 / RACK.size == rack);
            let routes: Vec<_> = ranks()
                .map(|rank| match rank.0 / RACK.size == rack {
                    true => (rank, port_of(rank.0 % RACK.size)),
                    false => (rank, UP_PORT),
                })
                .collect();
            let part = Part {
                children: own.count() as u16,
                up: Some(rack),
                routes,
            };
            switch.admit_part(job, Admission::LeftBehind, &part);
            switch
        });
        Self {
            racks: racks.collect(),
            top,
            between: 0,
            loses,
        }
    }

    fn is_lost(&mut self) -> bool {
        self.between += 1;
        self.loses > 0 && self.between.is_multiple_of(self.loses)
    }

    /// What comes out of a rack's ports goes to ranks, or up.
    fn leave(&mut self, rack: u16, at: u32, bytes: &[u8], out: &mut Vec<(WorkerId, Vec<u8>)>) {
        if at == UP_PORT {
            if self.is_lost() {
                return;
            }
            for (at, bytes) in self.top.send(0, FIRST_WORKER_PORT + u32::from(rack), bytes) {
                if self.is_lost() {
                    continue;
                }
                let rack = (at - FIRST_WORKER_PORT) as u16;
                for (at, bytes) in self.racks[usize::from(rack)].send(0, UP_PORT, &bytes) {
                    assert_ne!(at, UP_PORT, "nothing goes back");
                    self.leave(rack, at, &bytes, out);
                }
            }
            return;
        }
        let rank = WorkerId(rack * RACK.size + (at - FIRST_WORKER_PORT) as u16);
        let payload = open(bytes, endpoint(Node::Worker(rank)));
        let payload = payload.unwrap_or_else(|| panic!("{rank}: {bytes:02x?}"));
        out.push((rank, payload.to_vec()));
    }
}

impl RankSwitch for P4Tree {
    fn handle(
        &mut self,
        now_ns: u64,
        from: WorkerId,
        to: Destination,
        payload: &[u8],
        out: &mut Vec<(WorkerId, Vec<u8>)>,
    ) {
        let to = addressee(self.top.job(), from, to);
        let mut frame = Vec::new();
        build(&mut frame, endpoint(Node::Worker(from)), to, payload);
        let rack = from.0 / RACK.size;
        let port = FIRST_WORKER_PORT + u32::from(from.0 % RACK.size);
        for (at, bytes) in self.racks[usize::from(rack)].send(now_ns, port, &frame) {
            self.leave(rack, at, &bytes, out);
        }
    }
}

/// A rack's sum is an update at the switch above; what is lost between them is asked for like all else.
#[test]
fn a_tree_of_p4_switches_has_the_sums_of_the_reference() {
    const OPERATIONS: usize = 4;
    for arch in ARCHS {
        for seed in 0..8 {
            let mut config = config(seed);
            config.job.workers = 3 + seed as u16 % 4;
            config.racks = Some(RACK);
            let job = Job::new(config.job).expect("a job");
            let mut tree = P4Tree::new(job, arch, if seed == 0 { 0 } else { 20 - seed });
            let inputs = |operation: usize, rank: WorkerId| input(seed, operation, rank);
            let report = ranks::run(&config, &mut tree, OPERATIONS, &inputs).expect("a job");
            let done = report.ends.iter().all(|end| *end == RankEnd::Done);
            assert!(done, "{arch:?}, seed {seed}: {:?}", report.ends);
            let calm = AllReduceConfig {
                faults: Faults::NONE,
                ..config.clone()
            };
            let mut slots = ranks::RankSlotSwitch::tree(job, RACK);
            let expected = ranks::run(&calm, &mut slots, OPERATIONS, &inputs).expect("a job");
            for sums in &report.sums {
                assert_eq!(*sums, expected.sums[0], "{arch:?}, seed {seed}");
            }
        }
    }
}
