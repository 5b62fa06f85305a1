//! Jobs whose ranks differ in what they send and take: bundles of frames (segmentation offload), or single frames only.

use super::job::{Bed, host, set_up};
use crate::support::*;
use aggregation::job::{ChunkId, Job, JobConfig, JobId, WorkerId};
use aggregation::rank::{Setup, Sums, Values};
use aggregation::rto::Retransmission;
use host_agent::collective::{Config, Member, open_job};
use host_agent::frames::{Io, open_interface};
use softswitch::ports::{self, Frames};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use test_support::namespace::{in_namespace, ip, veth};

const RANKS: u16 = 3;
const WINDOW: u32 = 256;
const PATIENCE: Duration = Duration::from_secs(60);
/// Length of the longest frame, with an MTU of 1,500 bytes.
const LONGEST: usize = 14 + 1500;
/// Headers up to UDP.
const HEADERS: usize = 42;

/// Length of two probes in one bundle, without headers.
const QUESTION: usize = 2 * wire::HEADER_LEN;

/// A job of ranks 0 to 2 at ports 1 to 3, whose interfaces are `interfaces`.
fn members(bed: &Bed, interfaces: [(&str, Io); 3]) -> Vec<Member> {
    set_up(bed);
    let admit = format!("admit sums --ports 1,2,3 --window {WINDOW} --no-lease --json");
    let number = bed.done(&admit).json()["number"].as_u64().unwrap();
    let setup = |rank, first_chunk| {
        let config = JobConfig {
            job: JobId(number as u16),
            workers: RANKS,
            window: WINDOW,
            values_per_packet: 256,
            values_per_round: 0,
            first_chunk,
        };
        let job = Job::new(config).unwrap();
        Setup::under_one_switch(job, WorkerId(rank), Retransmission::of_ranks())
    };
    let open = |(interface, io)| {
        let opened = open_interface(interface, io).unwrap();
        assert_eq!(opened.notice, None);
        opened.frames
    };
    let mut links = interfaces.map(open).into_iter();
    let mut first = links.next().unwrap();
    let first_chunk = open_job(&setup(0, ChunkId(0)), host(1), &mut first).unwrap();
    let links = (0..RANKS).zip([first].into_iter().chain(links));
    let member = |(rank, frames)| {
        let config = Config {
            setup: setup(rank, first_chunk),
            me: host(u32::from(rank) + 1),
            peers: Vec::new(),
        };
        Member::start(config, frames).unwrap()
    };
    links.map(member).collect()
}

/// The ranks sum values of several lengths; the sums are right, and equal at all ranks.
fn sum(members: &[Member]) {
    const LENGTHS: [usize; 4] = [1, 700, 100_000, 500_000];
    let integer = |rank: usize, at: usize| (at as i32 % 100_003) * (rank as i32 + 1);
    let float = |rank: usize, at: usize| (at as f32 - 300.0) * (rank + 1) as f32;
    let pending: Vec<Vec<_>> = (0..members.len())
        .map(|rank| {
            let all = LENGTHS.iter().flat_map(|length| {
                let integers = (0..*length).map(|at| integer(rank, at)).collect();
                let floats = (0..*length).map(|at| float(rank, at)).collect();
                [Values::Integers(integers), Values::Floats(floats)]
            });
            all.map(|values| members[rank].all_reduce(values).unwrap())
                .collect()
        })
        .collect();
    let sums: Vec<Vec<Sums>> = pending
        .into_iter()
        .map(|own| own.into_iter().map(|sums| sums.wait(PATIENCE).unwrap()))
        .map(Iterator::collect)
        .collect();
    for own in &sums {
        assert_eq!(own, &sums[0], "equal at all ranks");
    }
    for (sums, length) in sums[0].iter().zip(LENGTHS.iter().flat_map(|l| [l, l])) {
        match &sums.values {
            Values::Integers(values) => {
                assert!(
                    (0..*length)
                        .map(|at| 6 * integer(0, at))
                        .eq(values.iter().copied())
                );
            }
            Values::Floats(values) => {
                assert_eq!(values.len(), *length);
                for (at, value) in values.iter().enumerate() {
                    let exact = 6.0 * f64::from(float(0, at));
                    let error = (f64::from(*value) - exact).abs();
                    assert!(
                        error <= sums.error_bound + 1e-6 * exact.abs(),
                        "{at}: {value}"
                    );
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Work in a thread, which is repeated until the value is stopped.
struct Repeated<T>(Arc<AtomicBool>, JoinHandle<T>);

impl<T: Send + 'static> Repeated<T> {
    /// `work` returns whether it has found anything to do.
    fn start(mut state: T, mut work: impl FnMut(&mut T) -> bool + Send + 'static) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&ends);
        let thread = std::thread::spawn(move || {
            while work(&mut state) || !over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_micros(500));
            }
            state
        });
        Self(ends, thread)
    }

    fn stop(self) -> T {
        self.0.store(true, Ordering::Relaxed);
        self.1.join().unwrap()
    }
}

/// A plain packet socket, without virtio headers: it receives a bundle as one packet.
fn plain(interface: &str) -> Box<dyn Frames> {
    let options = ports::Options {
        io: Io::Pnet,
        ..ports::Options::default()
    };
    ports::open(interface, options).unwrap().frames
}

/// Counts the packets that plain sockets at these interfaces receive: all of them, and those above the MTU.
fn watch(interfaces: [&'static str; 6]) -> Repeated<[[usize; 2]; 6]> {
    let mut sockets = interfaces.map(plain);
    Repeated::start([[0; 2]; 6], move |counts| {
        let before = counts.map(|[all, _]| all);
        for (socket, [all, long]) in sockets.iter_mut().zip(counts.iter_mut()) {
            let mut take = |frame: &[u8]| {
                *all += 1;
                *long += usize::from(frame.len() > LONGEST);
            };
            let received = socket.receive(1000, &mut take).unwrap();
            *all += received.errors;
            *long += received.errors;
            // With a buffer of Debian's default size, some packets are only counted.
            *all += socket.overflow().expect("a count") as usize;
        }
        before != counts.map(|[all, _]| all)
    })
}

#[test]
fn only_those_ranks_that_take_bundles_are_sent_some() {
    let _turn = beside();
    if !in_namespace("only_those_ranks_that_take_bundles_are_sent_some") {
        return;
    }
    let bed = Bed::up();
    for end in ["h1", "s1", "h2", "s2", "h3", "s3"] {
        ip(&format!("link set {end} mtu 1500"));
    }
    let watched = watch(["h1", "s1", "h2", "s2", "h3", "s3"]);
    let interfaces = [("h1", Io::Pnet), ("h2", Io::Rings), ("h3", Io::Auto)];
    let members = members(&bed, interfaces);
    sum(&members);
    for member in &members {
        let (counters, foreign) = member.counters();
        assert_eq!((counters.malformed, foreign), (0, 0));
    }
    drop(members);
    let counts = watched.stop();
    let chunks = 2 * 601_000 / 256;
    for (at, [all, long]) in counts.into_iter().enumerate() {
        // The last two are the ends of the link that carries bundles.
        match at {
            0..4 => assert!(all >= chunks && long == 0, "{counts:?}"),
            _ => assert!(all < chunks && long > 20, "{counts:?}"),
        }
    }
}

/// Between a rank and its switch, a host forwards packets as a plain socket shows them, up to the MTU.
#[test]
fn a_rank_behind_a_switch_without_bundles_sends_none() {
    let _turn = beside();
    if !in_namespace("a_rank_behind_a_switch_without_bundles_sends_none") {
        return;
    }
    let bed = Bed::up();
    veth("rank", "relay");
    let mut ends = ["relay", "h1"].map(plain);
    /// Lengths of the packets that the relay has forwarded from the rank, and the number of packets that were too long.
    #[derive(Default)]
    struct Seen {
        questions: usize,
        others: Vec<usize>,
        long: usize,
    }
    let relay = Repeated::start(Seen::default(), move |seen| {
        let mut is_busy = false;
        for (from, to) in [(0, 1), (1, 0)] {
            let mut frames = Vec::new();
            let received = ends[from].receive(256, &mut |frame: &[u8]| frames.push(frame.to_vec()));
            is_busy |= !frames.is_empty();
            seen.long += received.unwrap().errors;
            for frame in frames {
                if frame.len() > LONGEST {
                    seen.long += 1;
                    continue;
                }
                ends[to].send(&frame).unwrap();
                match frame.len() - HEADERS {
                    wire::HEADER_LEN | wire::FULL_LEN => {}
                    // The switch takes it for one probe, and answers that.
                    QUESTION => seen.questions += usize::from(from == 0),
                    len => seen.others.push(len),
                }
            }
            ends[to].flush().unwrap();
        }
        is_busy
    });
    let interfaces = [("rank", Io::Auto), ("h2", Io::Auto), ("h3", Io::Rings)];
    let members = members(&bed, interfaces);
    // Longer than a rank asks.
    for _ in 0..3 {
        sum(&members);
        std::thread::sleep(Duration::from_millis(150));
    }
    let (counters, foreign) = members[0].counters();
    assert_eq!((counters.malformed, foreign), (0, 0));
    drop(members);
    let seen = relay.stop();
    assert_eq!((seen.long, &seen.others[..]), (0, &[][..]));
    assert!((1..=3).contains(&seen.questions), "{}", seen.questions);
}
