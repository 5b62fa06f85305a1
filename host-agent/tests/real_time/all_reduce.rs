//! `weir-agent all-reduce`, over both transports, at interfaces in the test's own user and network namespace.

use std::process::{Command, Output, Stdio};

use crate::support::roce::Switch;
use crate::support::{JOB, endpoint};
use aggregation::job::{ChunkId, Job, JobConfig, JobId};
use cluster::ranks::RankSlotSwitch;
use frames::Options;
use host_agent::frames::{Io, UDP_PORT};
use serde_json::Value;
use test_support::namespace::{in_namespace, ip, veth};

const RANKS: u16 = 3;
const WINDOW: u32 = 64;

fn job() -> Job {
    let config = JobConfig {
        job: JobId(JOB),
        workers: RANKS,
        window: WINDOW,
        values_per_packet: 256,
        values_per_round: 0,
        first_chunk: ChunkId(0),
    };
    Job::new(config).unwrap()
}

/// Creates the links: rank 0 is at `l0`, whose peer is `r0`, and so on.
fn lay() {
    for rank in 0..RANKS {
        veth(&format!("l{rank}"), &format!("r{rank}"));
        let at = endpoint(rank);
        ip(&format!("link set l{rank} address {}", at.mac));
        ip(&format!("address add {}/24 dev l{rank}", at.ip));
    }
}

fn switch(loses: Option<u64>) -> Switch {
    let open = |rank: u16, port| {
        let opened = frames::open(&format!("r{rank}"), Options::udp(Io::Rings, port));
        opened.unwrap().frames
    };
    let ports = (0..RANKS).map(|rank| [open(rank, roce::packet::UDP_PORT), open(rank, UDP_PORT)]);
    Switch::start(job(), RankSlotSwitch::new(job()), ports.collect(), loses)
}

fn rank(rank: u16, arguments: &str) -> std::process::Child {
    let line = format!(
        "all-reduce --job {JOB} --rank {rank} --ranks {RANKS} --window {WINDOW} -d l{rank} {arguments}"
    );
    Command::new(env!("CARGO_BIN_EXE_weir-agent"))
        .args(line.split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Standard output and error of all ranks.
fn ranks(arguments: &str) -> Vec<(Value, String)> {
    let running: Vec<_> = (0..RANKS).map(|own| rank(own, arguments)).collect();
    let ended = running.into_iter().map(|child| child.wait_with_output());
    ended
        .map(|output| {
            let Output {
                status,
                stdout,
                stderr,
            } = output.unwrap();
            let told = String::from_utf8(stderr).unwrap();
            assert!(status.success(), "{told}");
            (serde_json::from_slice(&stdout).unwrap(), told)
        })
        .collect()
}

#[test]
fn both_transports_give_the_same_sums() {
    if !in_namespace("both_transports_give_the_same_sums") {
        return;
    }
    lay();
    let mut digests = Vec::new();
    for (transport, way, loses, dtype) in [
        ("udp", "rings", None, "float32"),
        ("rdma", "rings", None, "float32"),
        ("rdma", "pnet", None, "float32"),
        ("rdma", "rings", Some(50), "float32"),
        ("rdma", "rings", Some(50), "int32"),
    ] {
        let switch = switch(loses);
        let arguments = format!(
            "--transport {transport} --way {way} -n 100000 --iters 2 --dtype {dtype} --json"
        );
        for (report, told) in ranks(&arguments) {
            assert_eq!(report["wrong"], 0, "{report}");
            assert_eq!(report["transport"], transport);
            let expected = match transport {
                "udp" => format!("job 3: UDP over {way} of l"),
                _ => format!("job 3: RDMA by roce over {way} of l"),
            };
            assert!(told.contains(&expected), "{told}");
            assert!(
                told.contains(&format!("({transport}: set by --transport)")),
                "{told}"
            );
            assert_eq!(told.lines().count(), 1, "{told}");
            if dtype == "float32" {
                digests.push(report["sums_sha256"].clone());
            }
        }
        let counters = switch.counters();
        let by_rdma = transport == "rdma";
        assert_eq!(counters.updates > 2 * 391, by_rdma, "{counters:?}");
        assert_eq!(
            counters.sums > 0 && counters.by_udp == 0,
            by_rdma,
            "{counters:?}"
        );
        assert_eq!(counters.dropped, 0);
    }
    assert_eq!(digests.len(), 4 * usize::from(RANKS));
    assert!(
        digests.iter().all(|digest| *digest == digests[0]),
        "{digests:?}"
    );
}

#[test]
fn invalid_jobs_fail_with_one_line() {
    if !in_namespace("invalid_jobs_fail_with_one_line") {
        return;
    }
    lay();
    let refused = |arguments: &str, variables: &[(&str, &str)]| {
        let line = format!("all-reduce --job {JOB} --ranks 2 --window 64 -n 10 -d l0 {arguments}");
        let output = Command::new(env!("CARGO_BIN_EXE_weir-agent"))
            .args(line.split_whitespace())
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    for (arguments, variables, expected) in [
        ("", &[][..], "neither --rank nor WEIR_RANK is given"),
        ("--rank 2", &[], "rank 2 of 2 ranks: ranks count from 0"),
        (
            "--rank 0",
            &[("WEIR_TRANSPORT", "tcp")],
            "WEIR_TRANSPORT: `tcp` is neither udp nor rdma",
        ),
        (
            "--rank 0 --transport rdma",
            &[("WEIR_VALUES", "2048")],
            "the switch cannot sum this job over RDMA: 2048 values per frame: RDMA carries 256",
        ),
        (
            "--rank 0 --way udp",
            &[],
            "`udp` is not one of auto, bundles, rings, calls, pnet",
        ),
        (
            "--rank 1",
            &[("WEIR_TRANSPORT", "rdma")],
            "the switch did not answer the registration of queue pair",
        ),
    ] {
        let told = refused(arguments, variables);
        assert!(told.contains(expected), "{arguments}: {told}");
    }
    ip("link set l0 mtu 1000");
    let told = refused("--rank 0 --transport rdma", &[]);
    assert!(
        told.contains("path MTU 1024 exceeds that of the interface"),
        "{told}"
    );
}
