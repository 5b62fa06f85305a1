//! `weir job` against `weir switch`, the real binary, on veth pairs in a namespace of the test's own.

use crate::support::*;
use host_agent::frames::{Endpoint, Mac, build, sum};
use serde_json::Value;
use softswitch::ports::{self, Frames};
use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use test_support::namespace::{in_namespace, ip, veth};
use wire::{Flags, Kind, Packet, Repr};

const HOSTS: u32 = 4;
const PATIENCE: Duration = Duration::from_secs(60);
const VALUES: usize = 256;

/// A switch without a program, with a host's interface for each port, and where it is reached.
pub(super) struct Bed {
    folder: tempfile::TempDir,
    address: String,
    _switch: Running,
}

impl Bed {
    pub(super) fn up() -> Bed {
        ip("link set lo up");
        let folder = tempfile::tempdir().unwrap();
        let mut args = vec!["switch", "--no-p4", "--grpc-server-addr", "127.0.0.1:0"];
        let interfaces: Vec<String> = (1..=HOSTS).map(|port| format!("{port}@s{port}")).collect();
        for (port, interface) in (1..=HOSTS).zip(&interfaces) {
            veth(&format!("s{port}"), &format!("h{port}"));
            args.extend(["-i", interface]);
        }
        let mut switch = weir(folder.path(), &args);
        switch.stdout(Stdio::piped());
        let mut switch = Running(switch.spawn().unwrap());
        let mut lines = BufReader::new(switch.0.stdout.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        let at = line.split_once("P4Runtime at ").unwrap().1;
        let address = at.split(',').next().unwrap().trim().to_owned();
        Bed {
            folder,
            address,
            _switch: switch,
        }
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn args<'a>(&'a self, line: &'a str) -> Vec<&'a str> {
        let mut args = vec!["job"];
        args.extend(line.split_whitespace());
        args.extend(["--switch", &self.address]);
        args
    }

    fn job(&self, line: &str) -> Finished {
        run(self.folder(), &self.args(line))
    }

    #[track_caller]
    pub(super) fn done(&self, line: &str) -> Finished {
        let finished = self.job(line);
        assert_eq!(finished.code, Some(PASSED), "{line}: {finished:?}");
        finished
    }

    /// The switch is named by its address alone, as it was started.
    fn doctor(&self) -> Finished {
        let switch = format!("sw={}", self.address);
        run(
            self.folder(),
            &["doctor", "--switch", &switch, "--for", "300ms"],
        )
    }

    #[track_caller]
    fn refused(&self, line: &str) -> String {
        let finished = self.job(line);
        assert_eq!(finished.code, Some(ERROR), "{line}: {finished:?}");
        finished.stderr.trim().to_owned()
    }

    fn list(&self) -> Value {
        self.done("list --json").json()
    }

    /// A job as it is listed.
    fn listed(&self, name: &str) -> Value {
        let list = self.list();
        let jobs = list["jobs"].as_array().unwrap();
        let of_name = jobs.iter().filter(|job| job["name"] == name);
        // Of two the one that runs.
        let best = of_name.max_by_key(|job| job["state"] == "running");
        best.cloned().unwrap_or_default()
    }

    #[track_caller]
    fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !holds() {
            assert!(begun.elapsed() < PATIENCE, "{what}: {}", self.list());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

pub(super) fn host(port: u32) -> Endpoint {
    Endpoint {
        mac: Mac([2, 0, 0, 0, 1, port as u8]),
        ip: Ipv4Addr::new(10, 0, 1, port as u8),
    }
}

/// What a rank of a job sends of its chunk 0.
fn update(from: u32, job: u16, rank: u16) -> Vec<u8> {
    let header = Repr {
        kind: Kind::Update,
        flags: Flags::NONE,
        job,
        chunk: 0,
        slot: 0,
        worker: rank,
        transmission: 0,
        contributors: 1 << rank,
        scale: 127,
        next_scale: 127,
        count: VALUES as u16,
    };
    let mut payload = vec![0; header.buffer_len()];
    let mut packet = Packet::new_unchecked(&mut payload[..]);
    header.emit(&mut packet);
    packet.write_i32((0..VALUES as i32).map(|value| value * i32::from(rank + 1)));
    let mut frame = Vec::new();
    build(&mut frame, host(from), sum(job), &payload);
    frame
}

fn open(port: u32) -> Box<dyn Frames> {
    ports::open(&format!("h{port}"), ports::Options::default())
        .unwrap()
        .frames
}

fn send(port: &mut dyn Frames, frame: &[u8]) {
    port.send(frame).unwrap();
    port.flush().unwrap();
}

/// The values of the first SUM that comes.
#[track_caller]
fn sum_at(port: &mut dyn Frames) -> Vec<i32> {
    let begun = Instant::now();
    loop {
        let mut frames = Vec::new();
        port.receive(64, &mut |frame: &[u8]| frames.push(frame.to_vec()))
            .unwrap();
        for frame in frames {
            if let Ok(packet) = Packet::new_checked(&frame[42..])
                && packet.kind() == Kind::Sum
            {
                return packet.values_i32().collect();
            }
        }
        assert!(begun.elapsed() < PATIENCE, "no sum comes");
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub(super) fn set_up(bed: &Bed) {
    let hosts: Vec<String> = (1..=HOSTS)
        .map(|port| format!("--host {port}={}", host(port).mac))
        .collect();
    let done = bed.done(&format!("setup {}", hosts.join(" ")));
    assert!(done.stdout.contains("loaded the program into"), "{done:?}");
}

#[test]
fn a_job_lives_and_ends_on_a_switch_that_runs() {
    let _turn = beside();
    let test = "a_job_lives_and_ends_on_a_switch_that_runs";
    if !in_namespace(test) {
        return;
    }
    let bed = Bed::up();
    let none = bed.refused("list");
    assert!(
        none.ends_with("has no program: `weir job setup` gives it one"),
        "{none}"
    );
    set_up(&bed);
    let idle = bed.doctor();
    assert_eq!(idle.code, Some(PASSED), "{idle:?}");
    assert!(idle.stdout.contains("no job is admitted"), "{idle:?}");
    let again = bed.done("setup");
    assert!(again.stdout.contains("keeps its program"), "{again:?}");

    // Ports that the switch does not have are refused, whoever names them, and nothing of it stays.
    for line in [
        "admit a --ports 1,9",
        "admit a --ports 9",
        "setup --host 9=02:00:00:00:00:09",
        "setup --host 1=02:00:00:00:01:01 --host 9=02:00:00:00:00:09",
    ] {
        let refused = bed.refused(line);
        assert!(
            refused.ends_with("has no port 9; its ports are 1 to 4"),
            "{line}: {refused}"
        );
    }
    assert_eq!(bed.list()["jobs"], Value::Array(Vec::new()));

    let admitted = bed.done("admit a --ports 1,2 --window 64 --lease 3600s --rate 1Gbit/s --json");
    let admitted = admitted.json();
    assert_eq!(
        (&admitted["number"], &admitted["base"]),
        (&1.into(), &0.into())
    );
    assert_eq!(admitted["environment"][1]["WEIR_PLACE"], "1/2/2");
    let env = bed.done("env a 1").stdout;
    assert_eq!(
        env,
        "export WEIR_JOB=1\nexport WEIR_RANK=1\nexport WEIR_RANKS=2\nexport WEIR_WINDOW=64\nexport WEIR_PLACE=1/2/2\n"
    );
    let beyond = bed.refused("env a 2");
    assert_eq!(
        beyond,
        "weir: job `a` has 2 ranks, numbered from 0; there is no rank 2"
    );

    // Whoever comes now reads who is there.
    let twice = bed.refused("admit a --ports 3");
    assert!(
        twice.starts_with("weir: job `a` (number 1, slots 0 to 63, 1Gbit/s, for "),
        "{twice}"
    );
    assert!(
        twice.ends_with("runs already: release it, or take another name"),
        "{twice}"
    );
    let same_port = bed.refused("admit b --ports 2,3");
    assert!(
        same_port.starts_with("weir: port 2 belongs to job `a` ("),
        "{same_port}"
    );
    let number = bed.refused("admit b --ports 3 --number 257");
    assert!(
        number.contains("has 1, which is the same modulo 256"),
        "{number}"
    );

    // The doctor finds nothing wrong with it, by the address alone.
    let healthy = bed.doctor();
    assert_eq!(healthy.code, Some(PASSED), "{healthy:?}");
    let consistent = "job 1: 2 members, 64 slots from 0, consistent";
    assert!(healthy.stdout.contains(consistent), "{healthy:?}");

    // It is summed, and nobody else speaks for it.
    let (mut one, mut two, mut three) = (open(1), open(2), open(3));
    send(&mut *one, &update(1, 1, 0));
    for _ in 0..5 {
        send(&mut *three, &update(2, 1, 1));
    }
    bed.until("strangers are counted", || {
        bed.list()["strangers"][0]["frames"] == 5
    });
    assert_eq!(bed.list()["strangers"][0]["port"], 3);
    assert_eq!(bed.listed("a")["frames"]["strangers"], 5);
    send(&mut *two, &update(2, 1, 1));
    let wanted: Vec<i32> = (0..VALUES as i32).map(|value| 3 * value).collect();
    assert_eq!(sum_at(&mut *one), wanted);
    assert_eq!(sum_at(&mut *two), wanted);
    let text = bed.done("list").stdout;
    assert!(
        text.contains("port 3 sent 5 frames for jobs of other ports: dropped"),
        "{text}"
    );
    let doctor = bed.doctor();
    assert_eq!(doctor.code, Some(PASSED), "{doctor:?}");
    let said =
        "5 of its frames arrived from ports other than ports 1, 2, none of them within 300 ms";
    assert!(doctor.stdout.contains(said), "{doctor:?}");

    // Released: its frames end at the switch, its slots are another's, its number rests.
    bed.done("release a");
    send(&mut *one, &update(1, 1, 0));
    bed.until("late frames are counted", || {
        bed.listed("a")["frames"]["strangers"] == 6
    });
    assert_eq!(bed.listed("a")["state"], "ended");
    let rests = bed.refused("admit c --ports 1,2 --number 1");
    assert!(
        rests.contains("number 1 was that of job `a`, which has ended"),
        "{rests}"
    );
    let next = bed
        .done("admit c --ports 1,2 --window 64 --no-lease --json")
        .json();
    assert_eq!((&next["number"], &next["base"]), (&2.into(), &0.into()));
    assert_eq!(
        bed.refused("renew a").split(" ran out ").next(),
        Some("weir: the lease of job `a`")
    );
    // The cells of the former are as if nobody had had them.
    send(&mut *two, &update(2, 2, 1));
    send(&mut *one, &update(1, 2, 0));
    assert_eq!(sum_at(&mut *two), wanted);
    assert_eq!(
        bed.refused("release nobody"),
        "weir: no job `nobody` runs here"
    );
}

#[test]
fn leases_run_out_are_kept_and_two_controllers_agree() {
    let _turn = beside();
    let test = "leases_run_out_are_kept_and_two_controllers_agree";
    if !in_namespace(test) {
        return;
    }
    let bed = Bed::up();
    set_up(&bed);
    bed.done("setup --tenant lab=64,jobs=1 --tenant home=128");

    bed.done("admit short --ports 1,2 --tenant lab --window 64 --lease 3600s");
    let busy = bed.refused("admit other --ports 3 --tenant lab --window 64");
    assert!(
        busy.starts_with("weir: tenant `lab` may have 1 jobs at once, and has `short` ("),
        "{busy}"
    );
    // The lease ends on the switch's clock, with nobody there to end it.
    bed.done("renew short --lease 1s");
    let mut one = open(1);
    bed.until("its frames lapse", || {
        send(&mut *one, &update(1, 1, 0));
        bed.listed("short")["frames"]["lapsed"].as_u64() > Some(0)
    });
    let doctor = bed.doctor();
    assert_eq!(doctor.code, Some(FAILED), "{doctor:?}");
    let said = "job 1 (`short`): its lease ran out, or it was released, ";
    assert!(doctor.stdout.contains(said), "{doctor:?}");
    let other = bed.done("admit other --ports 1,3 --tenant lab --window 64 --lease 3600s --json");
    assert_eq!(other.json()["base"], 0);
    let moved = bed.refused("setup --tenant home=128 --tenant lab=64");
    assert!(
        moved.starts_with("weir: job `other` runs in slots 0 to 63, which would be another"),
        "{moved}"
    );

    // Kept beyond its lease, and released with its keeper.
    bed.done("admit kept --ports 2 --window 64 --lease 3600s");
    let mut keeper = weir(bed.folder(), &bed.args("keep kept --lease 6s"));
    keeper.stdout(Stdio::piped());
    let mut keeper = Running(keeper.spawn().unwrap());
    let mut said = BufReader::new(keeper.0.stdout.take().unwrap()).lines();
    assert_eq!(said.next().unwrap().unwrap(), "keeping job kept");
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(8) {
        assert_eq!(bed.listed("kept")["state"], "running");
        std::thread::sleep(Duration::from_millis(200));
    }
    let ended = Command::new("kill")
        .args(["-TERM", &keeper.0.id().to_string()])
        .status();
    assert!(ended.unwrap().success());
    assert_eq!(keeper.0.wait().unwrap().code(), Some(PASSED));
    assert_eq!(bed.listed("kept")["state"], "ended");

    // Of many at once one has the name, and the others are told who.
    let racers: Vec<Child> = (0..4)
        .map(|_| {
            let mut racer = weir(bed.folder(), &bed.args("admit race --ports 4 --window 64"));
            racer.stdout(Stdio::piped()).stderr(Stdio::piped());
            racer.spawn().unwrap()
        })
        .collect();
    let ends: Vec<Finished> = racers
        .into_iter()
        .map(|racer| Finished::of(racer.wait_with_output().unwrap()))
        .collect();
    let won = ends.iter().filter(|end| end.code == Some(PASSED)).count();
    assert_eq!(won, 1, "{ends:?}");
    let lost = ends
        .iter()
        .filter(|end| end.stderr.contains("job `race` (number "))
        .count();
    assert_eq!(lost, 3, "{ends:?}");
}
