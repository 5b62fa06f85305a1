//! `weir-agent serve`, the real binary, in the test's own user and network namespace: processes without any capability are
//! ranks through it.
//!
//! A test restarts this program as the daemon's clients.

mod daemon;
mod waits;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::support::{JOB, Switch, endpoint};
use aggregation::job::{ChunkId, Job, JobConfig, JobId};
use aggregation::rank::{Reduction, Values, f16};
use cluster::ranks::RankSlotSwitch;
use daemon::{Folder, Running, daemon, serve};
use host_agent::collective::Failure;
use host_agent::collective::{CollectiveError, Transport};
use host_agent::frames::{Endpoint, Io, open_interface};
use host_agent::serve::{Client, RankOf};
use nix::sys::signal::Signal;
use test_support::has_program;
use test_support::namespace::{in_namespace, ip, veth};

const PATIENCE: Duration = Duration::from_secs(20);
/// Environment variable that makes this program a client: rank and socket.
const CLIENT: &str = "WEIR_TEST_CLIENT";

fn job() -> Job {
    let config = JobConfig {
        job: JobId(JOB),
        workers: 2,
        window: 64,
        values_per_packet: 256,
        values_per_round: 0,
        first_chunk: ChunkId(0),
    };
    Job::new(config).unwrap()
}

fn rank(number: u16) -> RankOf {
    RankOf {
        interface: Some(format!("rank{number}")),
        job: JOB,
        rank: number,
        ranks: 2,
        window: 64,
        values_per_packet: 256,
        place: (number, 2, 2),
        deadline: None,
        transport: Transport::Udp,
    }
}

fn switch() -> Switch {
    let mut ports = Vec::new();
    for number in 0..2 {
        veth(&format!("port{number}"), &format!("rank{number}"));
        let Endpoint { mac, ip: address } = endpoint(number);
        ip(&format!("link set rank{number} address {mac}"));
        ip(&format!("addr add {address}/24 dev rank{number}"));
        let opened = open_interface(&format!("port{number}"), Io::Pnet).unwrap();
        ports.push(opened.frames);
    }
    Switch::start(ports, RankSlotSwitch::new(job()), None)
}

/// Restarts this program as a rank without any capability.
fn client(socket: &Path, number: u16) -> Running {
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-all", "--inh-caps=-all"]);
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", "serve::a_client", "--nocapture"]);
    command.env(CLIENT, format!("{number} {}", socket.display()));
    Running::start(command)
}

/// A process without capabilities: sums on command, and prints the results.
#[test]
fn a_client() {
    let Ok(told) = std::env::var(CLIENT) else {
        return;
    };
    let (number, socket) = told.split_once(' ').unwrap();
    let number: u16 = number.parse().unwrap();
    let own = format!("rank{number}");
    let refused = open_interface(&own, Io::Auto).err().expect("it may not");
    assert_eq!(refused.raw_os_error(), Some(libc::EPERM), "{refused}");
    let client = Client::connect(Path::new(socket)).unwrap();
    assert_eq!(client.whereabouts(Some(&own)).unwrap(), endpoint(number));
    let peers = [endpoint(0), endpoint(1)];
    let (io, refused) = client
        .join(&rank(number), 0, &peers, Duration::from_secs(1), None)
        .unwrap();
    assert_eq!((io, refused), (Io::Rings, None));
    println!("JOINED");
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        if line == "wide" {
            // Sums beyond the range of their type.
            let values = Values::Float16s(vec![f16::MAX; 5]);
            let pending = client.all_reduce_as(&values, Reduction::default()).unwrap();
            let sums = pending.wait(PATIENCE).unwrap();
            assert_eq!(sums.values, Values::Float16s(vec![f16::INFINITY; 5]));
            println!("WIDE {}", sums.error_bound);
            continue;
        }
        if line == "many" {
            // Together they exceed the daemon's limit per process.
            let give = |value: u8| {
                let values = Values::Floats(vec![f32::from(value); 200_000]);
                client.all_reduce_as(&values, Reduction::default()).unwrap()
            };
            let pending: Vec<_> = (1..=4).map(give).collect();
            for (pending, value) in pending.into_iter().zip(1u8..) {
                let sums = pending.wait(PATIENCE).unwrap().values;
                assert_eq!(sums, Values::Floats(vec![2.0 * f32::from(value); 200_000]));
            }
            println!("MANY");
            continue;
        }
        let length: usize = line.parse().unwrap();
        let values = |index: usize| (index as f32 - 300.0) * f32::from(number + 1);
        let values = Values::Floats((0..length).map(values).collect());
        let pending = client.all_reduce_as(&values, Reduction::default()).unwrap();
        match pending.wait(PATIENCE) {
            Err(error) => println!("ERROR {error}"),
            Ok(sums) => {
                let Values::Floats(values) = sums.values else {
                    panic!("other values");
                };
                let off =
                    |(index, sum): (usize, &f32)| f64::from(*sum) - 3.0 * (index as f64 - 300.0);
                let off = values
                    .iter()
                    .enumerate()
                    .map(off)
                    .map(f64::abs)
                    .fold(0.0, f64::max);
                let own = f64::from(f32::EPSILON) * 3.0 * length as f64;
                assert!(
                    values.len() == length && off <= sums.error_bound + own,
                    "{off}"
                );
                println!("SUM {length}");
            }
        }
    }
}

#[test]
fn processes_without_capabilities_are_ranks_by_a_daemon() {
    let test = "processes_without_capabilities_are_ranks_by_a_daemon";
    if !in_namespace(test) || !has_program(test, "setpriv") {
        return;
    }
    let _switch = switch();
    let folder = Folder::new("serve");
    let socket = folder.socket();
    let mut daemon = daemon(
        &socket,
        &["--mode", "600", "--clients", "3", "--memory", "1"],
    );
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    // The switch answers through the daemon.
    let other = Client::connect(&socket).unwrap();
    assert_eq!(other.open(&rank(0)).unwrap(), 0);

    let mut ranks = [client(&socket, 0), client(&socket, 1)];
    ranks.iter_mut().for_each(|rank| drop(rank.says("JOINED")));
    ranks.iter_mut().for_each(|rank| rank.tell("wide"));
    ranks
        .iter_mut()
        .for_each(|rank| assert_eq!(rank.says("WIDE"), "inf"));
    for length in ["1", "700", "200000"] {
        ranks.iter_mut().for_each(|rank| rank.tell(length));
        ranks
            .iter_mut()
            .for_each(|rank| assert_eq!(rank.says("SUM"), length));
    }

    ranks.iter_mut().for_each(|rank| rank.tell("many"));
    ranks.iter_mut().for_each(|rank| drop(rank.says("MANY")));

    // Invalid requests are refused with a reason, and affect no other client.
    let no = |outcome: Result<(), CollectiveError>, expected: &str| match outcome {
        Err(CollectiveError::Agent { text, .. }) => {
            assert!(text.contains(expected), "{expected:?} is not in {text:?}");
        }
        other => panic!("{expected}: {other:?}"),
    };
    let peers = [endpoint(0), endpoint(1)];
    let join = |rank: &RankOf, peers: &[Endpoint]| {
        other
            .join(rank, 0, peers, Duration::from_secs(1), None)
            .map(drop)
    };
    no(join(&rank(0), &peers), "job 3 already has a rank on rank0");
    no(
        join(&rank(0), &peers[..1]),
        "1 addresses for 2 ranks: give one address for each rank",
    );
    let elsewhere = RankOf {
        interface: Some("lo".to_owned()),
        ..rank(0)
    };
    no(
        join(&elsewhere, &peers),
        "lo is not served here: use rank0, rank1",
    );
    let wide = RankOf {
        window: 1 << 15,
        ..rank(0)
    };
    no(
        join(&wide, &peers),
        "a window of 32768 frames of 256 values takes",
    );
    let odd = RankOf {
        values_per_packet: 100,
        ..rank(0)
    };
    no(join(&odd, &peers), "100 values per frame");
    let nobody = RankOf { rank: 2, ..rank(0) };
    no(join(&nobody, &peers), "rank 2 of 2 ranks");
    let at_once = other.join(&rank(0), 0, &peers, Duration::ZERO, None);
    no(
        at_once.map(drop),
        "the timeout of a dead rank must be 10 ms to 1 h",
    );
    no(
        other.status().map(drop),
        "this process is not a rank: it must join a job first",
    );
    let values = Values::Int8s(vec![1; 10]);
    let pending = other.all_reduce_as(&values, Reduction::default()).unwrap();
    no(
        pending.wait(PATIENCE).map(drop),
        "this process is not a rank: it must join a job first",
    );
    // A rank of another job gets a place, but no more memory than the daemon allows.
    let own = RankOf { job: 9, ..rank(0) };
    join(&own, &peers).unwrap();
    no(
        join(&own, &peers),
        "this process is already a rank: a process is one rank of one job",
    );
    let much = Values::Floats(vec![0.0; 300_000]);
    let pending = other.all_reduce_as(&much, Reduction::default()).unwrap();
    no(
        pending.wait(PATIENCE).map(drop),
        "1200000 bytes: a process may use",
    );
    let few = other.all_reduce_as(&values, Reduction::default()).unwrap();
    let late = few.wait(Duration::from_millis(300)).unwrap_err();
    assert!(
        matches!(late, CollectiveError::Late { waits: Some(_), .. }),
        "{late:?}"
    );
    assert_eq!(other.status().unwrap().rank, Some(0));
    no(
        Client::connect(&socket).map(drop),
        "3 processes are connected, which is the limit",
    );
    drop((late, other));

    // One rank dies: the other one gets the error, and the daemon continues.
    ranks[1].signal(Signal::SIGKILL);
    ranks[0].tell("10");
    let told = ranks[0].says("ERROR");
    assert!(told.contains("rank 1 is unreachable"), "{told}");
    let begun = Instant::now();
    let again = loop {
        // The daemon notices the end of the connection after a while.
        match Client::connect(&socket) {
            Ok(client) => break client,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
        }
    };
    again
        .join(&rank(1), 0, &peers, Duration::from_secs(1), None)
        .unwrap();

    // After SIGTERM nothing is left, and connected clients are notified.
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.child.wait().unwrap().code(), Some(0));
    assert!(!socket.exists());
    let ended = again.status().unwrap_err();
    assert!(
        matches!(
            ended,
            CollectiveError::Agent {
                kind: Failure::Failed,
                ..
            }
        ),
        "{ended:?}"
    );
    let no_daemon = Client::connect(&socket).unwrap_err().to_string();
    assert!(no_daemon.contains("no daemon at"), "{no_daemon}");
    // Its interfaces are free: no other process holds the port.
    let holders = host_agent::doctor::facts("rank0").holders;
    // The switch of this test holds the port.
    let others = holders
        .iter()
        .find(|holder| holder.process != Some(std::process::id()));
    assert_eq!(others, None);
}

#[test]
fn a_daemon_that_cannot_start_gives_the_reason() {
    if !in_namespace("a_daemon_that_cannot_start_gives_the_reason") {
        return;
    }
    veth("rank0", "rank1");
    let folder = Folder::new("no-serve");
    let socket = folder.socket();
    let fails = |mut command: Command, expected: &str| {
        let Output { status, stderr, .. } = command.output().unwrap();
        let told = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(2), "{told}");
        assert!(told.contains(expected), "{expected:?} is not in {told:?}");
    };
    fails(
        serve(&socket, &["--iface", "rank7"]),
        "cannot open the interface rank7: ",
    );
    fails(serve(&socket, &["--mode", "rw"]), "`rw` is not a mode");
    fails(
        serve(&socket, &["--owner", "nobody-of-that-name"]),
        "`nobody-of-that-name` is not an owner",
    );
    fails(
        serve(&folder.0.join("missing/weir.sock"), &[]),
        "cannot listen at ",
    );
    // A socket whose owner has left is taken over; a socket with a listener is not, and neither is a file.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let running = daemon(&socket, &[]);
    fails(serve(&socket, &[]), "Address already in use");
    assert!(Client::connect(&socket).is_ok());
    running.signal(Signal::SIGINT);
    drop(running);
    let file = folder.0.join("file");
    std::fs::write(&file, "kept").unwrap();
    fails(serve(&file, &[]), "Address already in use");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
}

/// A client that violates the protocol is disconnected, and no other.
#[test]
fn nonsense_ends_a_session_alone() {
    use nix::sys::socket::{
        AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, connect, recv, send,
        sendmsg, socket,
    };
    use std::io::IoSlice;
    use std::os::fd::AsRawFd;

    if !in_namespace("nonsense_ends_a_session_alone") {
        return;
    }
    veth("rank0", "rank1");
    let folder = Folder::new("nonsense");
    let path = folder.socket();
    let running = daemon(&path, &[]);
    let other = Client::connect(&path).unwrap();
    let open_files = || {
        let all = std::fs::read_dir(format!("/proc/{}/fd", running.child.id()));
        all.unwrap().count()
    };
    let before = open_files();
    for nonsense in [
        &b"?"[..],
        b"{\"sum\":{}}",
        b"{\"join\":{\"rank\":7}}",
        &[b'['; 90_000],
        &[b' '; 150_000],
    ] {
        let flags = SockFlag::SOCK_CLOEXEC;
        let rude = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None).unwrap();
        connect(rude.as_raw_fd(), &UnixAddr::new(&path).unwrap()).unwrap();
        send(rude.as_raw_fd(), nonsense, MsgFlags::MSG_NOSIGNAL).unwrap();
        assert_eq!(
            recv(rude.as_raw_fd(), &mut [0; 64], MsgFlags::empty()),
            Ok(0)
        );
    }
    // Unexpected descriptors are closed, however many arrive.
    let given = std::io::stdin();
    for count in [2, 3, 253] {
        let rude = socket(
            AddressFamily::Unix,
            SockType::SeqPacket,
            SockFlag::SOCK_CLOEXEC,
            None,
        );
        let rude = rude.unwrap();
        connect(rude.as_raw_fd(), &UnixAddr::new(&path).unwrap()).unwrap();
        let fds = vec![given.as_raw_fd(); count];
        let parts = [IoSlice::new(b"{\"where\":null}")];
        let control = [ControlMessage::ScmRights(&fds)];
        let flags = MsgFlags::MSG_NOSIGNAL;
        sendmsg::<()>(rude.as_raw_fd(), &parts, &control, flags, None).unwrap();
        let ended = recv(rude.as_raw_fd(), &mut [0; 64], MsgFlags::empty());
        assert_eq!(ended, Ok(0), "{count} descriptors");
    }
    assert_eq!(open_files(), before);
    let wrong = other.whereabouts(Some("lo")).unwrap_err().to_string();
    assert!(wrong.contains("lo is not served here"), "{wrong}");
    ip("addr add 10.0.0.1/24 dev rank0");
    assert_eq!(other.whereabouts(None).unwrap().ip.to_string(), "10.0.0.1");
}
