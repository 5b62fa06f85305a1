//! The HTTP server of a status, at an address and at a Unix socket; and the table of docs/doctor.md.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use aggregation::job::{ChunkId, Job, JobConfig, JobId};
use host_agent::agent::{
    JobArgs, LinkArgs, Orders, RetransmissionArgs, ServerArgs, ServerMode, WorkerArgs, run_server,
    run_worker,
};
use host_agent::frames::{Cable, Endpoint, Mac, WhenFull};
use host_agent::metrics::{ALL, Address, Exporter, MetricKind, Role, Status, Waits, fetch, page};
use host_agent::train::Recipe;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

const PATIENCE: Duration = Duration::from_secs(10);

fn status() -> Status {
    let job = Job::new(JobConfig {
        job: JobId(3),
        workers: 6,
        window: 64,
        values_per_packet: 256,
        values_per_round: 0,
        first_chunk: ChunkId(0),
    });
    let mut status = Status::new(Role::Rank, &job.unwrap(), Some(1));
    status.interface = Some("eth\"0".to_owned());
    status.waits = Some(Waits {
        chunk: 81,
        slot: 17,
        since_ms: 40.5,
        misses: vec![4, 5],
    });
    status.counters.insert("weir_probes_total".to_owned(), 12);
    status
}

/// The HTTP server's answer to these bytes.
fn ask(address: &Address, request: &[u8]) -> String {
    let Address::Tcp(to) = address else {
        panic!("{address}");
    };
    let mut stream = TcpStream::connect(to).unwrap();
    stream.write_all(request).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_status_is_shown_to_prometheus_and_as_json() {
    let any = "127.0.0.1:0".parse().unwrap();
    let exporter = Exporter::start(&any, status).unwrap();
    let address = exporter.address().clone();
    let get = |path: &str| {
        ask(
            &address,
            format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes(),
        )
    };
    let told = get("/metrics");
    let (head, body) = told.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    assert!(
        head.contains(&format!("Content-Length: {}", body.len())),
        "{head}"
    );
    assert_eq!(body, page(&status()));
    let lines: Vec<&str> = body.lines().collect();
    for line in [
        "# TYPE weir_probes_total counter",
        "weir_probes_total{job=\"3\",rank=\"1\"} 12",
        "weir_waiting_seconds{job=\"3\",rank=\"1\"} 0.0405",
        "weir_waiting_slot{job=\"3\",rank=\"1\"} 17",
        "weir_waits_for_worker{job=\"3\",rank=\"1\",worker=\"4\"} 1",
        "weir_waits_for_worker{job=\"3\",rank=\"1\",worker=\"5\"} 1",
        "weir_info{job=\"3\",rank=\"1\",role=\"rank\",interface=\"eth\\\"0\",io=\"\"} 1",
        "weir_up{job=\"3\",rank=\"1\"} 1",
    ] {
        assert!(lines.contains(&line), "{line} is not in {body}");
    }
    // A counter that the member does not have is not shown as 0.
    assert!(!body.contains("weir_rounds_total"), "{body}");
    assert_eq!(fetch(&address, PATIENCE).unwrap(), status());
    for (request, answer) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
        (b"GET /metrics HTTP/1.1\r\n", "400"),
        (b"", "400"),
    ] {
        let told = ask(&address, request);
        assert!(told.starts_with(&format!("HTTP/1.1 {answer} ")), "{told}");
    }
    // The address is in use until the exporter is dropped.
    assert!(Exporter::start(&address, status).is_err());
    drop(exporter);
    assert!(fetch(&address, PATIENCE).is_err());
}

#[test]
fn a_unix_socket_is_taken_over_from_the_dead_alone() {
    let folder = std::env::temp_dir().join(format!("weir-metrics-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("rank.sock");
    let address: Address = format!("unix:{}", path.display()).parse().unwrap();
    // A socket whose owner has left.
    drop(UnixListener::bind(&path).unwrap());
    let exporter = Exporter::start(&address, status).unwrap();
    assert_eq!(fetch(&address, PATIENCE).unwrap(), status());
    assert!(Exporter::start(&address, status).is_err(), "it is taken");
    assert_eq!(fetch(&address, PATIENCE).unwrap(), status());
    drop(exporter);
    assert!(!path.exists());
    std::fs::write(&path, "a file").unwrap();
    assert!(
        Exporter::start(&address, status).is_err(),
        "it is no socket"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a file");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_server_without_a_status_is_an_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address: Address = listener.local_addr().unwrap().to_string().parse().unwrap();
    for answer in [
        "",
        "SSH-2.0-x\r\n",
        "HTTP/1.1 404 Not Found\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n{}",
    ] {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 1024]);
                stream.write_all(answer.as_bytes()).unwrap();
            });
            let told = fetch(&address, PATIENCE).unwrap_err().to_string();
            assert!(told.contains("is not a rank of weir"), "{answer:?}: {told}");
        });
    }
    for wrong in ["", "eth0", "127.0.0.1", "unix:", "127.0.0.1:99999"] {
        assert!(wrong.parse::<Address>().is_err(), "{wrong}");
    }
}

/// A server that sums itself, and one of its two workers: both show their unfinished chunk, and the server shows the missing
/// worker.
#[test]
fn agents_report_their_unfinished_chunks() {
    let folder = std::env::temp_dir().join(format!("weir-agents-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let at = |name: &str| -> Address {
        let path = folder.join(name);
        format!("unix:{}", path.display()).parse().unwrap()
    };
    let (server_at, worker_at) = (at("server.sock"), at("worker.sock"));
    let endpoint = |last: u8| Endpoint {
        mac: Mac([2, 0, 0, 0, 0, last]),
        ip: [10, 0, 0, last].into(),
    };
    let link = |last: u8, metrics: &Address| LinkArgs {
        iface: None,
        link_fd: None,
        mac: endpoint(last).mac,
        ip: endpoint(last).ip,
        wait: false,
        metrics: Some(metrics.clone()),
    };
    let job = JobArgs {
        job: 3,
        workers: 2,
        window: 16,
        first_chunk: 0,
        recipe: Recipe {
            seed: 5,
            rounds: 1,
            batch: 8,
            learning_rate: 0.1,
            momentum: 0.9,
        },
        retransmission: RetransmissionArgs {
            timeout_floor_ms: 20,
            timeout_initial_ms: 50,
            timeout_ceiling_ms: 100,
            max_timeouts: 10_000,
        },
    };
    let kind = SockType::SeqPacket;
    let (one, other) = socketpair(AddressFamily::Unix, kind, None, SockFlag::SOCK_CLOEXEC).unwrap();
    let plug = one.try_clone().unwrap();
    std::thread::scope(|scope| {
        let (of_server, of_worker) = (link(9, &server_at), link(1, &worker_at));
        let servers = job.clone();
        let server = scope.spawn(move || {
            let args = ServerArgs {
                mode: ServerMode::Direct,
                peers: vec![endpoint(1), endpoint(2)],
                parts: Vec::new(),
                job: servers,
                link: of_server,
            };
            run_server(
                &args,
                &mut Cable::new(other, "cable", WhenFull::Wait),
                Orders::none(),
                |_| Ok(()),
            )
            .map(drop)
        });
        let worker = scope.spawn(move || {
            let args = WorkerArgs {
                rank: 0,
                server_mac: endpoint(9).mac,
                server_ip: endpoint(9).ip,
                part: None,
                via: None,
                job,
                link: of_worker,
            };
            run_worker(
                &args,
                &mut Cable::new(one, "cable", WhenFull::Wait),
                Orders::none(),
            )
            .map(drop)
        });
        let begun = std::time::Instant::now();
        let until = |address: &Address, holds: &dyn Fn(&Status) -> bool| loop {
            match fetch(address, PATIENCE) {
                Ok(status) if holds(&status) => break status,
                told => assert!(begun.elapsed() < PATIENCE, "{told:?}"),
            }
        };
        let waits = |status: &Status| {
            status
                .waits
                .as_ref()
                .is_some_and(|waits| waits.misses == [1])
        };
        let told = until(&server_at, &waits);
        assert_eq!(
            (told.role, told.rank, told.job, told.ranks),
            (Role::Server, None, 3, 2)
        );
        assert_eq!(told.counters["weir_rounds_total"], 0);
        assert!(
            page(&told).contains("weir_waits_for_worker{job=\"3\",rank=\"server\",worker=\"1\"} 1")
        );
        let again = |status: &Status| {
            status
                .counters
                .get("weir_timeouts_total")
                .is_some_and(|times| *times > 0)
        };
        let told = until(&worker_at, &again);
        assert_eq!((told.role, told.rank), (Role::Worker, Some(0)));
        let waits = told.waits.unwrap();
        assert!(
            waits.chunk == 0 && waits.slot == 0 && waits.since_ms >= 20.0,
            "{waits:?}"
        );
        assert!(told.counters["weir_resent_frames_total"] > 0);
        nix::sys::socket::shutdown(plug.as_raw_fd(), nix::sys::socket::Shutdown::Both).unwrap();
        assert!(worker.join().unwrap().is_err() && server.join().unwrap().is_err());
    });
    assert_eq!(
        std::fs::read_dir(&folder).unwrap().count(),
        0,
        "their sockets are gone"
    );
    std::fs::remove_dir(&folder).unwrap();
}

#[test]
fn the_document_has_every_metric() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/doctor.md");
    let text = std::fs::read_to_string(path).unwrap();
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("| `weir_"))
        .collect();
    let expected: Vec<String> = ALL
        .iter()
        .map(|metric| {
            let kind = match metric.kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
            };
            format!("| `{}` | {kind} | {} |", metric.name, metric.help)
        })
        .collect();
    assert_eq!(rows, expected);
}
