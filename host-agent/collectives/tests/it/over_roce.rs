//! Execution of schedules with real bytes in registered memory: puts are WRITEs with immediate over `roce`'s reliable
//! connections, with lost and reordered frames, in virtual time.

use std::collections::BTreeMap;

use collectives::{
    Action, Algorithm, Buffer, Collective, Hierarchy, Options, Progress, Schedule, Signal, Span,
    build, offered,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use roce::packet::{Address, MAX_FRAME_LEN, Mtu, Service};
use roce::{
    Access, Completion, Endpoint, EndpointConfig, InitAttributes, Key, Local, Memory, Psn,
    QpConfig, Qpn, ReceiveRequest, Remote, RtrAttributes, RtsAttributes, SendRequest, Status, Work,
    WorkKind,
};

const ELEMENT: usize = 4;
const QUEUE: usize = 1024;
/// One of this many frames is lost.
const LOSS: u64 = 20;

fn address(rank: usize) -> Address {
    let last = rank as u8 + 1;
    Address {
        mac: [2, 0, 0, 0, 0, last],
        ip: [10, 0, 0, last].into(),
    }
}

struct Rank<'s> {
    endpoint: Endpoint,
    memory: Memory<Vec<u8>>,
    key: Key,
    lens: [usize; 3],
    qpns: BTreeMap<usize, Qpn>,
    progress: Progress<'s>,
}

impl<'s> Rank<'s> {
    fn new(schedule: &'s Schedule, rank: usize) -> Self {
        let program = &schedule.programs[rank];
        let mut memory = Memory::new(1, rank as u64);
        let mut bytes = vec![0xEE; program.lens.iter().sum::<usize>() * ELEMENT + ELEMENT];
        for element in 0..program.lens[0] {
            let at = element * ELEMENT;
            bytes[at..at + ELEMENT].copy_from_slice(&value(rank, element).to_be_bytes());
        }
        let mut endpoint = Endpoint::new(EndpointConfig::new(address(rank), rank as u64));
        let others = (0..schedule.ranks()).filter(|other| *other != rank);
        let config = QpConfig {
            max_sends: QUEUE,
            max_receives: QUEUE,
            ..QpConfig::new(Service::Reliable)
        };
        Self {
            key: memory.register(bytes, 0, Access::ALL).unwrap(),
            memory,
            qpns: others
                .map(|other| (other, endpoint.create(config).unwrap()))
                .collect(),
            endpoint,
            lens: program.lens,
            progress: Progress::new(program),
        }
    }

    fn local(&self, span: Span) -> Local {
        Local {
            key: self.key,
            address: offset(self.lens, span),
            len: (span.len * ELEMENT) as u32,
        }
    }

    fn values(&self, span: Span) -> Vec<u32> {
        let mut bytes = vec![0; span.len * ELEMENT];
        let at = offset(self.lens, span);
        self.memory
            .read(self.key, at, Access::ALL, &mut bytes)
            .unwrap();
        let words = bytes.chunks_exact(ELEMENT);
        words
            .map(|word| u32::from_be_bytes(word.try_into().unwrap()))
            .collect()
    }

    fn write(&mut self, span: Span, values: &[u32]) {
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_be_bytes())
            .collect();
        let at = offset(self.lens, span);
        self.memory
            .write(self.key, at, Access::ALL, &bytes)
            .unwrap();
    }

    /// Begins all steps that can begin.
    fn work(&mut self, remotes: &[(Key, [usize; 3])]) {
        while let Some((step, action)) = self.progress.next_step() {
            match action {
                Action::Put {
                    to,
                    source,
                    target,
                    signal,
                } => {
                    let (rkey, lens) = remotes[to];
                    let work = Work::Write {
                        local: self.local(source),
                        remote: Remote {
                            address: offset(lens, target),
                            rkey: rkey.0,
                        },
                        immediate: Some(signal.0.to_be_bytes()),
                    };
                    let (signaled, solicited, wr_id) = (true, false, step as u64);
                    let request = SendRequest {
                        wr_id,
                        work,
                        signaled,
                        solicited,
                    };
                    let qpn = self.qpns[&to];
                    self.endpoint.post_send(qpn, request, &self.memory).unwrap();
                    continue;
                }
                Action::Copy { source, target } => {
                    let values = self.values(source);
                    self.write(target, &values);
                }
                Action::Reduce { source, target } => {
                    let both = self.values(source).into_iter().zip(self.values(target));
                    let sums: Vec<u32> = both.map(|(a, b)| a.wrapping_add(b)).collect();
                    self.write(target, &sums);
                }
                Action::Wait { .. } => unreachable!("its signal says when it is done"),
            }
            self.progress.done(step).unwrap();
        }
    }

    fn complete(&mut self, completion: Completion) {
        assert_eq!(completion.status, Status::Success);
        match completion.kind {
            WorkKind::Write => self.progress.done(completion.wr_id as usize).unwrap(),
            WorkKind::ReceiveWriteImmediate => {
                let mut peers = self.qpns.iter();
                let (from, _) = peers.find(|(_, qpn)| **qpn == completion.qpn).unwrap();
                let signal = Signal(u32::from_be_bytes(completion.immediate.unwrap()));
                self.progress.signalled(*from, signal).unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
}

fn offset(lens: [usize; 3], span: Span) -> u64 {
    let before: usize = lens[..span.buffer.index()].iter().sum();
    ((before + span.start) * ELEMENT) as u64
}

fn value(rank: usize, element: usize) -> u32 {
    (rank as u32 + 1).wrapping_mul(0x9E37_79B9) ^ (element as u32).wrapping_mul(0x85EB_CA6B)
}

fn connect<'s>(schedule: &'s Schedule) -> Vec<Rank<'s>> {
    let count = schedule.ranks();
    let mut ranks: Vec<Rank<'s>> = (0..count).map(|rank| Rank::new(schedule, rank)).collect();
    let qpns: Vec<BTreeMap<usize, Qpn>> = ranks.iter().map(|rank| rank.qpns.clone()).collect();
    let signals = schedule.signals();
    for (rank, side) in ranks.iter_mut().enumerate() {
        for (peer, qpn) in qpns[rank].clone() {
            let rtr = RtrAttributes {
                peer: address(peer),
                peer_qpn: qpns[peer][&rank],
                psn: Psn::new(7),
                mtu: Mtu::B256,
                max_reads: 1,
                rnr_timer: 12,
                dscp: 0,
            };
            let rts = RtsAttributes {
                timeout: 8,
                ..RtsAttributes::new(Psn::new(7))
            };
            side.endpoint
                .connect(qpn, InitAttributes::default(), rtr, rts)
                .unwrap();
            for wr_id in 0..signals.get(&(peer, rank)).copied().unwrap_or(0) {
                let local = Local {
                    key: side.key,
                    address: 0,
                    len: 0,
                };
                let request = ReceiveRequest {
                    wr_id: u64::from(wr_id),
                    local,
                };
                side.endpoint
                    .post_receive(qpn, request, &side.memory)
                    .unwrap();
            }
        }
    }
    ranks
}

/// Runs the ranks to the end, and returns the number of lost frames.
fn run(ranks: &mut [Rank<'_>], seed: u64) -> u64 {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let remotes: Vec<(Key, [usize; 3])> = ranks.iter().map(|rank| (rank.key, rank.lens)).collect();
    let (mut now_ns, mut lost) = (0, 0);
    let mut under_way: Vec<Vec<u8>> = Vec::new();
    let mut buffer = vec![0; MAX_FRAME_LEN];
    for _ in 0..200_000 {
        let mut is_quiet = under_way.is_empty();
        for rank in ranks.iter_mut() {
            rank.work(&remotes);
            while let Some(len) = rank
                .endpoint
                .poll_transmit(now_ns, &rank.memory, &mut buffer)
            {
                is_quiet = false;
                if random.next_u64() % LOSS == 0 {
                    lost += 1;
                } else {
                    under_way.push(buffer[..len].to_vec());
                }
            }
        }
        // Half of the frames arrive, possibly out of order.
        for _ in 0..under_way.len().div_ceil(2) {
            let frame = under_way.remove(random.next_u64() as usize % under_way.len().min(4));
            let to = usize::from(frame[33]) - 1;
            let to = &mut ranks[to];
            to.endpoint
                .handle_frame(now_ns, &mut to.memory, &frame)
                .unwrap();
        }
        now_ns += 1_000;
        let due_ns = ranks
            .iter()
            .filter_map(|rank| rank.endpoint.poll_timeout())
            .min();
        if is_quiet {
            now_ns = now_ns.max(due_ns.unwrap_or(0));
        }
        for rank in ranks.iter_mut() {
            rank.endpoint.handle_timeout(now_ns);
            while let Some(completion) = rank.endpoint.poll_completion() {
                rank.complete(completion);
            }
        }
        if ranks.iter().all(|rank| rank.progress.is_finished()) {
            return lost;
        }
    }
    let waiting = ranks
        .iter()
        .map(|rank| rank.progress.waiting_for().collect::<Vec<_>>());
    panic!("no end; ranks wait for {:?}", waiting.collect::<Vec<_>>());
}

#[test]
fn all_algorithms_carry_bytes_over_a_lossy_network() {
    let ranks = 6;
    let nodes = vec![vec![0, 1], vec![2, 3, 4, 5]];
    let counts = (0..ranks).map(|from| (0..ranks).map(|to| (from * 37 + to * 11) % 90).collect());
    let (len, root) = (1_003, 4);
    let collectives = [
        Collective::AllReduce { ranks, len },
        Collective::reduce_scatter(ranks, len),
        Collective::AllGather {
            shards: vec![100, 0, 233, 1, 64, 300],
        },
        Collective::AllToAll {
            counts: counts.collect(),
        },
        Collective::Broadcast { ranks, root, len },
        Collective::Reduce { ranks, root, len },
        Collective::Barrier { ranks },
    ];
    let mut lost = 0;
    for collective in &collectives {
        for algorithm in offered(collective, true) {
            for tile in [None, Some(100)] {
                let options = Options {
                    tile,
                    hierarchy: Some(Hierarchy::new(nodes.clone()).unwrap()),
                    ..Options::default()
                };
                let schedule = build(collective, algorithm, &options).unwrap();
                let mut ranks = connect(&schedule);
                lost += run(&mut ranks, len as u64);
                assert_results(collective, algorithm, &ranks);
            }
        }
    }
    assert!(lost > 500, "{lost} frames were lost");
}

fn assert_results(collective: &Collective, algorithm: Algorithm, ranks: &[Rank<'_>]) {
    for (rank, side) in ranks.iter().enumerate() {
        let output = Buffer::Output.span(0, side.lens[Buffer::Output.index()]);
        let sums = collective.expected(rank).into_iter().map(|contributions| {
            let values = contributions
                .iter()
                .map(|(from, element)| value(*from, *element));
            values.fold(0, u32::wrapping_add)
        });
        let expected: Vec<u32> = sums.collect();
        assert_eq!(
            side.values(output),
            expected,
            "{} by {algorithm}, rank {rank}",
            collective.name()
        );
    }
}
