//! Whole trainings over cables in memory: workers and a server in threads of this process, and between them a switch that
//! sums or only forwards, loses frames, and generates garbage.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::thread;

use aggregation::job::{ChunkId, JobConfig, JobId, WorkerId};
use aggregation::server::Part;
use cluster::{Forwarder, Node, PartSwitches, SlotSwitch, SwitchModel};
use host_agent::agent::{
    JobArgs, Line, LinkArgs, Orders, PartOf, PlaceInPart, RetransmissionArgs, RoundReport,
    ServerArgs, ServerMode, ServerReport, WorkerArgs, WorkerReport, run_server, run_worker,
};
use host_agent::frames::{Cable, Endpoint, Mac, WhenFull};
use host_agent::train::{Recipe, reference_run};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, socketpair};

/// Length of the Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 42;

#[derive(Clone, Copy)]
struct Setting {
    workers: u16,
    mode: ServerMode,
    rounds: u64,
    /// One of this many frames is lost.
    lose_every: Option<u64>,
    /// One of this many frames is accompanied by garbage.
    garbage_every: Option<u64>,
    /// This worker's cable is unplugged after this many frames.
    unplug: Option<(u8, u64)>,
    /// All cables are unplugged before the last closing frame is answered.
    unplug_at_the_end: bool,
}

const QUIET: Setting = Setting {
    workers: 3,
    mode: ServerMode::Switch,
    rounds: 3,
    lose_every: None,
    garbage_every: None,
    unplug: None,
    unplug_at_the_end: false,
};

/// Each worker sends 196 chunks of values per round, and one scale-only chunk for each of the 16 slots of its window.
const CHUNKS_A_ROUND: u32 = 196 + 16;
const FIRST_CHUNK: u32 = u32::MAX - 100;

struct Ended {
    server: anyhow::Result<(ServerReport, Vec<RoundReport>)>,
    workers: Vec<anyhow::Result<WorkerReport>>,
}

fn endpoint(last: u16) -> Endpoint {
    let last = last as u8;
    Endpoint {
        mac: Mac([2, 0, 0, 0, 0, last]),
        ip: Ipv4Addr::new(10, 0, 0, last),
    }
}

const SERVER: u16 = 100;

/// In mode `parts`, a switch sums these two workers, and no switch sums the third.
fn pair() -> Part {
    Part {
        number: JobId(4),
        workers: vec![WorkerId(2), WorkerId(0)],
    }
}

fn recipe(rounds: u64) -> Recipe {
    Recipe {
        seed: 5,
        rounds,
        batch: 8,
        learning_rate: 0.1,
        momentum: 0.9,
    }
}

fn train(setting: Setting) -> Ended {
    let patient = setting.unplug.is_none();
    let job = JobArgs {
        job: 3,
        workers: setting.workers,
        window: 16,
        first_chunk: FIRST_CHUNK,
        recipe: recipe(setting.rounds),
        retransmission: RetransmissionArgs {
            timeout_floor_ms: if setting.lose_every.is_some() {
                30
            } else {
                200
            },
            timeout_initial_ms: if patient { 1_000 } else { 100 },
            timeout_ceiling_ms: if patient { 2_000 } else { 100 },
            max_timeouts: if patient { 20 } else { 5 },
        },
    };
    let link = |last| LinkArgs {
        iface: None,
        link_fd: None,
        mac: endpoint(last).mac,
        ip: endpoint(last).ip,
        wait: false,
        metrics: None,
    };
    let (mut outer, mut inner) = (Vec::new(), Vec::new());
    for _ in 0..=setting.workers {
        let (a, b) = socketpair(
            AddressFamily::Unix,
            SockType::SeqPacket,
            None,
            SockFlag::SOCK_CLOEXEC,
        )
        .unwrap();
        outer.push(Cable::new(a, "cable", WhenFull::Wait));
        inner.push(b);
    }
    let switch: Box<dyn SwitchModel + Send> = match setting.mode {
        ServerMode::Switch => Box::new(SlotSwitch::new(job.job().unwrap())),
        ServerMode::Direct => Box::new(Forwarder::new(job.job().unwrap())),
        ServerMode::Parts => {
            let of = JobConfig {
                job: JobId(job.job),
                workers: job.workers,
                window: job.window,
                values_per_packet: wire::VALUES_PER_PACKET as u16,
                values_per_round: 0,
                first_chunk: ChunkId(job.first_chunk),
            };
            Box::new(PartSwitches::new(of, &[pair()]).unwrap())
        }
    };
    thread::scope(|scope| {
        let switch = scope.spawn(move || {
            Switch {
                setting,
                switch,
                cables: inner,
                seen: 0,
            }
            .run()
        });
        let mut outer = outer.into_iter();
        let mut server_end = outer.next().unwrap();
        let server_args = ServerArgs {
            mode: setting.mode,
            peers: (0..setting.workers).map(endpoint).collect(),
            parts: match setting.mode {
                ServerMode::Parts => vec![PartOf(pair())],
                _ => Vec::new(),
            },
            job: job.clone(),
            link: link(SERVER),
        };
        let server = scope.spawn(move || {
            let mut rounds = Vec::new();
            let report = run_server(&server_args, &mut server_end, Orders::none(), |line| {
                if let Line::Round(round) = line {
                    rounds.push(round);
                }
                Ok(())
            })?;
            Ok((report, rounds))
        });
        let workers: Vec<_> = outer
            .zip(0..)
            .map(|(mut end, rank)| {
                let child = pair().workers.iter().position(|worker| worker.0 == rank);
                let child = child.filter(|_| setting.mode == ServerMode::Parts);
                let number = pair().number;
                let args = WorkerArgs {
                    rank,
                    server_mac: endpoint(SERVER).mac,
                    server_ip: endpoint(SERVER).ip,
                    part: child.map(|child| PlaceInPart {
                        number,
                        child: WorkerId(child as u16),
                    }),
                    via: child.map(|_| Mac([2, 1, 0x5e, 0x57, 0x45, number.0 as u8])),
                    job: job.clone(),
                    link: link(rank),
                };
                scope.spawn(move || run_worker(&args, &mut end, Orders::none()))
            })
            .collect();
        let ended = Ended {
            workers: workers
                .into_iter()
                .map(|worker| worker.join().unwrap())
                .collect(),
            server: server.join().unwrap(),
        };
        switch.join().unwrap();
        ended
    })
}

/// The switch; cable 0 leads to the server, cable 1 + n to worker n.
struct Switch {
    setting: Setting,
    switch: Box<dyn SwitchModel + Send>,
    cables: Vec<OwnedFd>,
    seen: u64,
}

impl Switch {
    /// Runs until every cable is unplugged.
    fn run(mut self) {
        let mut buffer = vec![0; 2048];
        let mut open = vec![true; self.cables.len()];
        while open.contains(&true) {
            let mut sources: Vec<PollFd> = self
                .cables
                .iter()
                .map(|cable| PollFd::new(cable.as_fd(), PollFlags::POLLIN))
                .collect();
            poll(&mut sources, PollTimeout::from(50_u8)).unwrap();
            for (port, open) in open.iter_mut().enumerate() {
                for _ in 0..16 {
                    match recv(
                        self.cables[port].as_raw_fd(),
                        &mut buffer,
                        MsgFlags::MSG_DONTWAIT,
                    ) {
                        Ok(length @ 1..) => self.forward(port, &buffer[..length]),
                        Err(Errno::EAGAIN) => break,
                        Ok(_) | Err(_) => {
                            *open = false;
                            break;
                        }
                    }
                }
            }
        }
    }

    fn forward(&mut self, port: usize, frame: &[u8]) {
        self.seen += 1;
        let every = |n: Option<u64>| n.is_some_and(|n| self.seen.is_multiple_of(n));
        if every(self.setting.garbage_every) {
            self.make_garbage(frame);
        }
        if every(self.setting.lose_every) {
            return;
        }
        if let Some((rank, after)) = self.setting.unplug
            && self.seen == after
        {
            let cable = self.cables[1 + usize::from(rank)].as_raw_fd();
            nix::sys::socket::shutdown(cable, nix::sys::socket::Shutdown::Both).unwrap();
        }
        if self.setting.unplug_at_the_end && self.is_last(frame) {
            for cable in &self.cables {
                let both = nix::sys::socket::Shutdown::Both;
                nix::sys::socket::shutdown(cable.as_raw_fd(), both).unwrap();
            }
            return;
        }
        let from = if port == 0 {
            Node::Server
        } else {
            Node::Worker(WorkerId(port as u16 - 1))
        };
        let mut out = Vec::new();
        self.switch.handle(0, from, &frame[HEADERS..], &mut out);
        for (to, payload) in out {
            let port = match to {
                Node::Server => 0,
                Node::Worker(rank) => 1 + usize::from(rank.0),
            };
            let mut sent = [&frame[..HEADERS], &payload].concat();
            // The sum of a part goes to the group address of the part's number.
            if to == Node::Server && sent[..2] == [2, 1] {
                sent[0] = 1;
            }
            self.send(port, &sent);
        }
    }

    /// Whether a frame belongs to the job's last chunk, which closes it.
    fn is_last(&self, frame: &[u8]) -> bool {
        let packet = wire::Packet::new_checked(&frame[HEADERS..]).unwrap();
        let number = packet.chunk().wrapping_sub(FIRST_CHUNK);
        number == self.setting.rounds as u32 * CHUNKS_A_ROUND + 15
    }

    /// Sends every node frames that are truncated, that have a wrong length field, or that are noise.
    fn make_garbage(&self, frame: &[u8]) {
        let mut lying = frame.to_vec();
        let at = 12 + (self.seen as usize * 7) % (frame.len() - 12).min(60);
        lying[at] = lying[at].wrapping_add(self.seen as u8 | 1);
        // Values and scales must remain: a valid frame with a wrong value is not detectable.
        let lies_about_headers = at < 42 || (60..62).contains(&at);
        let cut = &frame[..self.seen as usize % frame.len()];
        for port in 0..self.cables.len() {
            if !cut.is_empty() {
                self.send(port, cut);
            }
            if lies_about_headers {
                self.send(port, &lying);
            }
            self.send(port, &[self.seen as u8; 300]);
        }
    }

    fn send(&self, port: usize, frame: &[u8]) {
        // A full or unplugged cable loses the frame.
        let _ = send(
            self.cables[port].as_raw_fd(),
            frame,
            MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL,
        );
    }
}

/// Asserts that every node has the reference run's weights.
fn assert_reference(setting: Setting, ended: &Ended) {
    let expected = reference_run(&recipe(setting.rounds), setting.workers).unwrap();
    let (server, rounds) = ended.server.as_ref().unwrap();
    assert_eq!(server.weights_sha256, expected.weights_sha256);
    assert_eq!(server.accuracy, expected.accuracy);
    assert_eq!(
        rounds.iter().map(|round| round.round).collect::<Vec<_>>(),
        (0..setting.rounds).collect::<Vec<_>>()
    );
    for worker in &ended.workers {
        assert_eq!(
            worker.as_ref().unwrap().weights_sha256,
            expected.weights_sha256
        );
    }
}

#[test]
fn a_switch_that_sums_gives_the_reference_runs_weights() {
    let ended = train(QUIET);
    assert_reference(QUIET, &ended);
    let (server, _) = ended.server.unwrap();
    // 196 chunks of values and 16 scale-only ones per round, and 16 to close; one answer to all for each.
    let chunks = 3 * (196 + 16) + 16;
    assert_eq!(server.completed, chunks);
    let worker = ended.workers[0].as_ref().unwrap();
    if server.sent.retransmitted_frames == 0 {
        assert_eq!(server.sent.frames, chunks);
        assert_eq!(server.sent.bytes, 3 * 196 * 1090 + (3 * 16 + 16) * 66);
        assert_eq!(worker.sent.bytes, server.sent.bytes);
    }
}

#[test]
fn a_server_that_sums_gives_the_reference_runs_weights() {
    let setting = Setting {
        mode: ServerMode::Direct,
        ..QUIET
    };
    let ended = train(setting);
    assert_reference(setting, &ended);
    let (server, _) = ended.server.unwrap();
    if server.sent.retransmitted_frames == 0 {
        assert_eq!(server.sent.frames, 3 * (3 * (196 + 16) + 16));
    }
}

#[test]
fn a_server_that_sums_parts_gives_the_reference_runs_weights() {
    let setting = Setting {
        mode: ServerMode::Parts,
        ..QUIET
    };
    let ended = train(setting);
    assert_reference(setting, &ended);
    let (server, _) = ended.server.unwrap();
    // A server that sums everything itself would send three times as many answers.
    if server.sent.retransmitted_frames == 0 {
        assert_eq!(server.sent.frames, 3 * (196 + 16) + 16);
    }
}

#[test]
fn losses_only_cost_time() {
    for mode in [ServerMode::Switch, ServerMode::Direct, ServerMode::Parts] {
        let setting = Setting {
            mode,
            lose_every: Some(61),
            ..QUIET
        };
        let ended = train(setting);
        assert_reference(setting, &ended);
        let again: u64 = ended
            .workers
            .iter()
            .map(|worker| worker.as_ref().unwrap().sent.retransmitted_frames)
            .sum();
        assert!(again >= 20, "{again}");
    }
}

#[test]
fn garbage_stops_no_agent() {
    let setting = Setting {
        garbage_every: Some(5),
        ..QUIET
    };
    let ended = train(setting);
    assert_reference(setting, &ended);
    let (server, _) = ended.server.unwrap();
    assert!(server.not_ours > 100);
    assert!(
        ended
            .workers
            .iter()
            .all(|worker| worker.as_ref().unwrap().not_ours > 100)
    );
}

/// A worker sends its last closing frame when it has all sums: a node that is still running then, on a slow machine, has
/// finished successfully.
#[test]
fn unplugging_cables_while_a_job_closes_is_harmless() {
    let setting = Setting {
        workers: 1,
        mode: ServerMode::Direct,
        unplug_at_the_end: true,
        ..QUIET
    };
    assert_reference(setting, &train(setting));
}

#[test]
fn after_a_workers_death_the_others_end_with_the_reason() {
    let setting = Setting {
        mode: ServerMode::Direct,
        unplug: Some((1, 900)),
        ..QUIET
    };
    let ended = train(setting);
    let errors: Vec<String> = ended
        .workers
        .iter()
        .map(|worker| format!("{:#}", worker.as_ref().unwrap_err()))
        .collect();
    assert!(errors[1].contains("unplugged"), "{errors:?}");
    for survivor in [&errors[0], &errors[2]] {
        assert!(
            survivor.contains("not answered within 5 timeouts"),
            "{survivor}"
        );
    }
    let error = format!("{:#}", ended.server.unwrap_err());
    assert!(error.contains("waits for worker 1"), "{error}");
}

#[test]
fn a_rank_or_a_number_of_peers_that_cannot_be_is_an_error() {
    let (a, _b) = socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    )
    .unwrap();
    let mut frames = Cable::new(a, "cable", WhenFull::Wait);
    let retransmission = RetransmissionArgs {
        timeout_floor_ms: 1,
        timeout_initial_ms: 1,
        timeout_ceiling_ms: 1,
        max_timeouts: 1,
    };
    let job = JobArgs {
        job: 1,
        workers: 2,
        window: 16,
        first_chunk: 0,
        recipe: recipe(1),
        retransmission,
    };
    let link = LinkArgs {
        iface: None,
        link_fd: None,
        mac: endpoint(1).mac,
        ip: endpoint(1).ip,
        wait: false,
        metrics: None,
    };
    let worker = WorkerArgs {
        rank: 2,
        server_mac: endpoint(9).mac,
        server_ip: endpoint(9).ip,
        part: None,
        via: None,
        job: job.clone(),
        link: link.clone(),
    };
    let error = run_worker(&worker, &mut frames, Orders::none())
        .unwrap_err()
        .to_string();
    assert!(error.contains("rank 2 of 2 workers"), "{error}");
    let server = ServerArgs {
        mode: ServerMode::Direct,
        peers: vec![endpoint(1)],
        parts: Vec::new(),
        job: job.clone(),
        link,
    };
    let error = run_server(&server, &mut frames, Orders::none(), |_| Ok(()))
        .unwrap_err()
        .to_string();
    assert!(error.contains("2 workers, but 1 addresses"), "{error}");
    let window = WorkerArgs {
        rank: 0,
        job: JobArgs { window: 15, ..job },
        ..worker
    };
    let error = run_worker(&window, &mut frames, Orders::none())
        .unwrap_err()
        .to_string();
    assert!(error.contains("power of two"), "{error}");
}
