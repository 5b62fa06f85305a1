//! `weir doctor`, the real binary, in user and network namespaces of the tests' own: each thing that is wrong is made so on
//! purpose, and has its sentence.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::*;
use aggregation::job::{ChunkId, Job, JobConfig, JobId, WorkerId};
use aggregation::rank::{Setup, Values};
use aggregation::rto::Retransmission;
use controller::experiment::fleet::Fleet;
use controller::experiment::fleet::aggregation::aggregation_entries;
use controller::experiment::{Planned, Switches};
use controller::target::{Item, Kind, UpdateType};
use host_agent::collective::{Config, Member, Pending};
use host_agent::frames::{Endpoint, Io, Mac, open_interface};
use host_agent::metrics::Exporter;
use p4lang::runtime::MulticastGroup;
use scenario::plan::names::aggregate;
use test_support::namespace::{in_namespace, ip, veth};

/// What `weir doctor` says.
fn doctor(arguments: &[&str]) -> Finished {
    let folder = tempfile::tempdir().unwrap();
    let mut command = weir(folder.path(), &["doctor"]);
    command.args(arguments);
    for name in ["WEIR_INTERFACE", "WEIR_IO", "WEIR_AGENT"] {
        command.env_remove(name);
    }
    Finished::of(command.output().unwrap())
}

/// Its sentences of a level, as JSON has them.
fn said(finished: &Finished, level: &str) -> Vec<String> {
    let report = finished.json();
    let findings = report["findings"].as_array().unwrap();
    let some = findings.iter().filter(|finding| finding["level"] == level);
    some.map(|finding| {
        let text = |key: &str| finding[key].as_str().unwrap().to_owned();
        format!("{}: {}", text("about"), text("text"))
    })
    .collect()
}

/// The host, with `arguments` for `ip` before it is looked at, says this and nothing else that is wrong.
#[track_caller]
fn host_is_wrong(arguments: &[&str], expected: &str) {
    let mut all = vec!["--json", "--interface", "eth0"];
    all.extend(arguments);
    let finished = doctor(&all);
    let wrong = said(finished.expect_code(FAILED), "wrong");
    assert_eq!(wrong.len(), 1, "{expected:?}: {wrong:#?}");
    assert!(
        wrong[0].contains(expected),
        "{expected:?} is not in {wrong:?}"
    );
}

#[test]
fn what_keeps_a_host_from_being_a_rank() {
    let _turn = beside();
    if !in_namespace("what_keeps_a_host_from_being_a_rank") {
        return;
    }
    ip("link set lo up");
    veth("eth0", "far");
    ip("addr add 10.0.0.1/24 dev eth0");
    let healthy = doctor(&["--interface", "eth0"]);
    healthy.expect_code(PASSED);
    for expected in [
        "fine   host: CAP_NET_RAW is available\n",
        "fine   interface eth0: its address is 10.0.0.1\n",
        "fine   interface eth0: its MTU is 9216: a frame has 1076 bytes\n",
        "fine   UDP port 22341: no process uses it\n",
    ] {
        assert!(
            healthy.stdout.contains(expected),
            "{expected:?}: {healthy:?}"
        );
    }
    // Without anything it is this host's eth0.
    assert_eq!(doctor(&[]).stdout, healthy.stdout);

    let missing = doctor(&["--json", "--interface", "eth7"]);
    let wrong = said(missing.expect_code(FAILED), "wrong");
    assert_eq!(
        wrong,
        ["interface eth7: no interface has this name; available: lo, far, eth0"]
    );

    ip("link set eth0 mtu 1000");
    host_is_wrong(
        &[],
        "its MTU is 1000, but a frame with 256 values has 1076 bytes",
    );
    doctor(&["--interface", "eth0", "--values", "64"]).expect_code(PASSED);
    ip("link set eth0 mtu 1500");

    ip("link set far down");
    host_is_wrong(&[], "it is up, but has no carrier");
    ip("link set far up");

    // The one who is addressed is told at another Ethernet address, or by nobody.
    ip("neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev eth0");
    let told = "02:00:00:00:00:07/10.0.0.2";
    host_is_wrong(
        &["--peer", told],
        "10.0.0.2 is at 02:00:00:00:00:02, but the ranks expect 02:00:00:00:00:07",
    );
    doctor(&[
        "--interface",
        "eth0",
        "--peer",
        "02:00:00:00:00:02/10.0.0.2",
    ])
    .expect_code(PASSED);

    // Wrong routes: none, through somebody, by another interface.
    host_is_wrong(&["--peer", "10.9.0.2"], "there is no route to 10.9.0.2");
    ip("route add 10.9.0.0/24 via 10.0.0.254");
    host_is_wrong(
        &["--peer", "10.9.0.2"],
        "the route to 10.9.0.2 goes through 10.0.0.254",
    );
    veth("eth1", "far1");
    ip("addr add 10.0.0.9/25 dev eth1");
    host_is_wrong(&["--peer", "10.0.0.2"], "the route to 10.0.0.2 uses eth1");
    ip("link del eth1");

    // Somebody else has the port.
    let other = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, wire::UDP_PORT)).unwrap();
    let expected = format!("UDP port 22341: process {}, ", std::process::id());
    host_is_wrong(&[], &expected);
    drop(other);
    // A rank has it as well, and that is right.
    let rank = open_interface("eth0", Io::Auto).unwrap();
    let finished = doctor(&["--json", "--interface", "eth0"]);
    let fine = said(finished.expect_code(PASSED), "fine");
    let at_work = format!(
        "UDP port 22341: a rank uses it: process {}, ",
        std::process::id()
    );
    assert!(
        fine.iter().any(|text| text.starts_with(&at_work)),
        "{fine:?}"
    );
    drop(rank);

    ip("addr del 10.0.0.1/24 dev eth0");
    host_is_wrong(&[], "it has no IPv4 address");
    ip("addr add 10.0.0.1/24 dev eth0");
    ip("link set eth0 down");
    host_is_wrong(&[], "interface eth0: it is down");
}

/// `weir doctor` of one who may neither send frames nor change the network.
fn without_capabilities() -> Command {
    let mut command = Command::new("setpriv");
    command.args([
        "--bounding-set=-net_raw,-net_admin",
        "--inh-caps=-net_raw,-net_admin",
    ]);
    command.arg(env!("CARGO_BIN_EXE_weir"));
    command.args(["doctor", "--interface", "eth0"]);
    for name in ["WEIR_INTERFACE", "WEIR_IO", "WEIR_AGENT"] {
        command.env_remove(name);
    }
    command
}

#[test]
fn a_capability_that_is_missing() {
    let _turn = beside();
    let test = "a_capability_that_is_missing";
    if !in_namespace(test) || !has_program(test, "setpriv") {
        return;
    }
    veth("eth0", "far");
    ip("addr add 10.0.0.1/24 dev eth0");
    // A daemon that may is a way out, if it is there.
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("weir.sock");
    let mut daemon = Command::new(env!("CARGO_BIN_EXE_weir"));
    daemon.args([
        "agent",
        "serve",
        "--iface",
        "eth0",
        "--socket",
        socket.to_str().unwrap(),
    ]);
    let mut daemon = Running(daemon.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(daemon.0.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("ready"));
    let mut command = without_capabilities();
    let by_it = Finished::of(command.env("WEIR_AGENT", &socket).output().unwrap());
    let address = " sends as ";
    assert!(
        by_it.expect_code(PASSED).stdout.contains(address),
        "{by_it:?}"
    );
    drop(daemon);
    let mut command = without_capabilities();
    let gone = Finished::of(command.env("WEIR_AGENT", &socket).output().unwrap());
    let told = "no daemon at ";
    assert!(gone.expect_code(FAILED).stdout.contains(told), "{gone:?}");
    let finished = Finished::of(without_capabilities().output().unwrap());
    finished.expect_code(FAILED);
    for expected in [
        "wrong  host: CAP_NET_RAW is missing: a rank sends raw frames, which this user may not\n",
        "setcap cap_net_raw+ep",
        "wrong  interface eth0: frames cannot be sent and received with rings or calls: ",
        "note   host: CAP_NET_ADMIN is missing, so a receive buffer has ",
    ] {
        assert!(
            finished.stdout.contains(expected),
            "{expected:?}: {finished:?}"
        );
    }
}

#[test]
fn what_is_asked_wrongly_cannot_be_answered() {
    let _turn = beside();
    for (arguments, expected) in [
        (&["--switch", "sw"][..], "expected NAME=IP:PORT"),
        (
            &["--switch", "sw=127.0.0.1:9559/x"],
            "`x` is not a device id",
        ),
        (&["--rank", "rank0"], "`rank0` is not an address"),
        (&["--peer", "rank0"], "`rank0` is neither IPv4 nor MAC/IPv4"),
        (&["--for", "0s"], "0s is too short"),
        (
            &["--io", "fast"],
            "`fast` is not one of auto, bundles, rings, calls, pnet",
        ),
        (&["--values", "0"], "0 is not in 1..=16384"),
        (
            &["--switch", "sw=127.0.0.1:1", "--switch", "sw=127.0.0.1:2"],
            "--switch sw is given twice",
        ),
    ] {
        let finished = doctor(arguments);
        finished.expect_code(ERROR);
        assert!(
            finished.stderr.contains(expected),
            "{expected:?}: {finished:?}"
        );
    }
}

const SCENARIO: &str = "weir: 1
name: doctor
seed: 1
topology: {star: {hosts: [a, b, c], switch: sw}}
jobs: {sums: {ranks: [a, b, c], window: 16}}
";

/// An embedded switch that sums for three ranks of this process, which are at its ports by veth pairs.
struct Bed {
    planned: Planned,
    fleet: Fleet,
    address: String,
    _switch: Running,
}

impl Bed {
    fn new() -> Bed {
        ip("link set lo up");
        let scenario = scenario::load("doctor.yaml", SCENARIO).unwrap();
        let planned = Planned::new(scenario, Kind::Embedded).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args([
            "switch",
            "--no-p4",
            "--device-id",
            "1",
            "--grpc-server-addr",
            "127.0.0.1:0",
        ]);
        for (number, host) in planned.scenario.topology.hosts.iter().enumerate() {
            veth(&format!("port{number}"), &format!("rank{number}"));
            let port = planned
                .scenario
                .topology
                .next_hop("sw", &host.name)
                .unwrap();
            command.args(["-i", &format!("{}@port{number}", port.number)]);
        }
        let mut switch = Running(command.stdout(Stdio::piped()).spawn().unwrap());
        let mut lines = BufReader::new(switch.0.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let (_, address) = first.split_once("P4Runtime at ").expect("an address");
        let address = address.split(',').next().unwrap().trim().to_owned();
        let addresses = BTreeMap::from([("sw".to_owned(), address.clone())]);
        let fleet = Fleet::attach(&planned, &addresses, &Switches::default(), None).unwrap();
        Bed {
            planned,
            fleet,
            address,
            _switch: switch,
        }
    }

    fn switch(&self) -> String {
        format!("sw={}", self.address)
    }

    fn endpoint(&self, rank: usize) -> Endpoint {
        let host = &self.planned.scenario.topology.hosts[rank];
        Endpoint {
            mac: Mac(host.mac.0),
            ip: host.ip,
        }
    }

    /// A rank on its interface, and where it shows itself.
    fn rank(&self, rank: u16) -> (Member, Exporter) {
        let job = Job::new(JobConfig {
            job: JobId(1),
            workers: 3,
            window: 16,
            values_per_packet: 256,
            values_per_round: 0,
            first_chunk: ChunkId(0),
        });
        let retransmission = Retransmission {
            floor_ns: 20_000_000,
            initial_ns: 50_000_000,
            max_timeouts: 1_000,
            ..Retransmission::default()
        };
        let config = Config {
            setup: Setup::under_one_switch(job.unwrap(), WorkerId(rank), retransmission),
            me: self.endpoint(rank.into()),
            peers: Vec::new(),
        };
        let opened = open_interface(&format!("rank{rank}"), Io::Auto).unwrap();
        let member = Member::start(config, opened.frames).unwrap();
        let observer = member.observer();
        let any = "127.0.0.1:0".parse().unwrap();
        let exporter = Exporter::start(&any, move || observer.status()).unwrap();
        (member, exporter)
    }
}

fn sum(member: &Member, length: usize) -> Pending {
    member
        .all_reduce(Values::Floats(vec![1.0; length]))
        .unwrap()
}

#[test]
fn what_hangs_is_told_with_slot_worker_time_and_port() {
    let _turn = beside();
    if !in_namespace("what_hangs_is_told_with_slot_worker_time_and_port") {
        return;
    }
    let mut bed = Bed::new();
    let switch = bed.switch();
    let ranks = [0, 1, 2].map(|number| bed.rank(number));
    let addresses = [0, 1, 2].map(|number: usize| ranks[number].1.address().to_string());
    let with_all = |more: &[&str]| {
        let mut all = vec!["--json", "--switch", &switch, "--for", "400ms"];
        addresses
            .iter()
            .for_each(|address| all.extend(["--rank", address]));
        all.extend(more);
        doctor(&all)
    };
    let first: Vec<Pending> = ranks.iter().map(|(member, _)| sum(member, 700)).collect();
    for pending in first {
        pending.wait(Duration::from_secs(30)).unwrap();
    }
    // Nothing hangs between two operations.
    let idle = with_all(&[]);
    idle.expect_code(PASSED);
    let fine = said(&idle, "fine");
    assert!(
        fine.contains(&"rank 2 of job 1: it runs, and has no operation in progress".to_owned()),
        "{fine:?}"
    );
    assert!(
        fine.iter()
            .any(|text| text.contains("job 1: 3 members, 16 slots from 0")),
        "{fine:?}"
    );

    // Rank 2 does not come.
    let waiting = [sum(&ranks[0].0, 700), sum(&ranks[1].0, 700)];
    let hangs = with_all(&[]);
    let wrong = said(hangs.expect_code(FAILED), "wrong");
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    let port = bed
        .planned
        .scenario
        .topology
        .next_hop("sw", "c")
        .unwrap()
        .number;
    let begins = "switch sw: slot ";
    assert!(wrong[0].starts_with(begins), "{wrong:?}");
    for expected in [
        " of job 1 has waited for worker 2 for ",
        &format!(" ms, last seen on port {port} with chunk #"),
        "from which no frame arrived within 400 ms",
        "and 2 more slots the same",
        &format!(
            "Rank 2 runs (process {}), but has contributed nothing",
            std::process::id()
        ),
    ] {
        assert!(
            wrong[0].contains(expected),
            "{expected:?} is not in {wrong:?}"
        );
    }
    // By the ranks alone, and by the switch alone.
    let finished = doctor(&["--json", "--rank", &addresses[0], "--for", "300ms"]);
    let by_rank = said(finished.expect_code(FAILED), "wrong");
    assert!(
        by_rank[0].starts_with("rank 0 of job 1: slot "),
        "{by_rank:?}"
    );
    assert!(
        by_rank[0].contains(" has waited for worker 2 for "),
        "{by_rank:?}"
    );
    assert!(by_rank[0].ends_with("as the switch reports"), "{by_rank:?}");
    let finished = doctor(&["--json", "--switch", &switch, "--for", "300ms"]);
    let by_switch = said(finished.expect_code(FAILED), "wrong");
    assert!(
        by_switch[0].contains("has waited for worker 2 for more than 300 ms"),
        "{by_switch:?}"
    );
    // It comes.
    let late = sum(&ranks[2].0, 700);
    for pending in waiting.into_iter().chain([late]) {
        pending.wait(Duration::from_secs(30)).unwrap();
    }
    with_all(&[]).expect_code(PASSED);

    // What the switch says does not come to rank 1: its port is in no group, as if somebody had forgotten it.
    let port = bed
        .planned
        .scenario
        .topology
        .next_hop("sw", "b")
        .unwrap()
        .number;
    let switch_plan = bed.planned.plan.switches.first().unwrap();
    let group = switch_plan
        .groups
        .iter()
        .find(|group| group.id == scenario::plan::names::group::of_job(1));
    let mut replicas = group.expect("the job's group").replicas.clone();
    replicas.retain(|replica| replica.port != port);
    let less = MulticastGroup {
        id: scenario::plan::names::group::of_job(1),
        replicas,
    };
    let target = bed.fleet.target("sw").unwrap();
    target
        .write(&[(UpdateType::Modify, Item::MulticastGroup(less))])
        .unwrap();
    // And rank 0's entry for questions is gone.
    let Planned { scenario, plan } = &bed.planned;
    let job = &scenario.jobs[0];
    let planned = plan.switches.iter().find(|switch| switch.name == "sw");
    let entries = aggregation_entries(scenario, planned.unwrap(), job, job.on("sw").unwrap());
    let question = entries.into_iter().find(|entry| {
        entry.table == aggregate::MEMBERS
            && entry.key.iter().any(|key| {
                key.field == aggregate::KEY_PROBE && key.value == p4lang::runtime::Match::exact(1)
            })
    });
    let question = question.expect("an entry for questions");
    target
        .write(&[(UpdateType::Delete, Item::TableEntry(question))])
        .unwrap();
    let finished = doctor(&["--json", "--switch", &switch, "--for", "50ms"]);
    let wrong = said(finished.expect_code(FAILED), "wrong");
    let number = scenario::plan::names::group::of_job(1);
    let first = bed
        .planned
        .scenario
        .topology
        .next_hop("sw", "a")
        .unwrap()
        .number;
    for expected in [
        format!(
            "switch sw: job 1: worker 0 may send updates from port {first}, but no requests: it cannot request a lost sum again"
        ),
        format!(
            "switch sw: job 1: port {port} is not in multicast group {number}: the result does not reach worker 1"
        ),
    ] {
        assert!(
            wrong.contains(&expected),
            "{expected:?} is not in {wrong:#?}"
        );
    }
}

#[test]
fn who_does_not_answer_is_named() {
    let _turn = beside();
    if !in_namespace("who_does_not_answer_is_named") {
        return;
    }
    ip("link set lo up");
    let finished = doctor(&["--switch", "sw=127.0.0.1:9", "--rank", "127.0.0.1:9"]);
    finished.expect_code(FAILED);
    assert!(
        finished
            .stdout
            .contains("wrong  switch sw: no switch answers at 127.0.0.1:9"),
        "{finished:?}"
    );
    let at = "wrong  rank at 127.0.0.1:9: no reply from 127.0.0.1:9: Connection refused";
    assert!(finished.stdout.contains(at), "{finished:?}");
}
