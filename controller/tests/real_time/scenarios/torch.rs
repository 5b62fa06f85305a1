//! The torch backend `weir`: three ranks whose sums an embedded switch makes. Each case is a file of `host-agent/python/tests`,
//! with settings before its name; the cases of a test are one run, of one job. `cases.py` there carries them out.

use std::path::Path;

use super::foreign::torch;
use crate::support::leftovers::Watched;
use crate::support::*;

/// A job of three hosts that a switch sums.
const JOB: &str = "jobs: {sums: {ranks: [a, b, c]}}\n";

/// A scenario in which each of three hosts carries out all cases as a rank of one job.
fn scenario(python: &str, cases: &[&str], by: By) -> String {
    let package = repository("host-agent/python");
    let package = package.to_str().unwrap();
    let hosts = ["a", "b", "c"];
    // Commands that are no root's have no capability.
    let (is_root, agent) = match by {
        By::Itself => ("root: true", ""),
        By::Daemon => ("root: false", ", WEIR_AGENT: \"{dir.agent@}/weir.sock\""),
    };
    let daemons = hosts.iter().enumerate().map(|(rank, host)| {
        format!(
            "    - name: agent{rank}\n      host: {host}\n      root: true\n      run: [{}, agent, serve, --socket, \"{{dir}}/weir.sock\", \
             --mode, \"666\", --iface, eth0]\n      ready: {{log: '\"ready\"'}}\n",
            env!("CARGO_BIN_EXE_weir")
        )
    });
    let daemons: String = daemons.filter(|_| by == By::Daemon).collect();
    let commands: String = hosts
        .iter()
        .enumerate()
        .map(|(rank, host)| {
            let agent = agent.replace('@', &rank.to_string());
            let cases: String = cases.iter().map(|case| format!(", \"{case}\"")).collect();
            let cases = cases.replace("RANK_OF_HOST", &rank.to_string());
            format!(
                "    - name: rank{rank}\n      host: {host}\n      {is_root}\n      run: [{python}, {package}/tests/cases.py{cases}]\n      \
                 env: {{PYTHONPATH: {package}, PYTHONDONTWRITEBYTECODE: 1, MASTER_ADDR: \"{{host.a.ip}}\", \
                 RANK: {rank}, WORLD_SIZE: 3, GLOO_SOCKET_IFNAME: eth0, OMP_NUM_THREADS: 1{agent}}}\n"
            )
        })
        .collect();
    let limit_s = 60 + 60 * cases.len();
    format!(
        "weir: 1\nname: torch\nseed: 1\ntopology: {{star: {{hosts: [a, b, c], switch: sw}}}}\n\
         workload:\n  commands:\n{daemons}{commands}limits: {{time: {limit_s}s}}\n"
    )
}

/// How ranks send frames.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// As root.
    Itself,
    /// By `weir agent serve`, without any capability.
    Daemon,
}

/// In all cases, all ranks find what they look for. `job` is the scenario's section on the switch's job.
fn all_are_right(test: &str, job: &str, by: By, cases: &[&str]) {
    if !has_namespaces(test) {
        return;
    }
    let Some(python) = torch() else {
        skip(test, "torch");
        return;
    };
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let python = python.join("python3");
    let text = scenario(python.to_str().unwrap(), cases, by) + job;
    std::fs::write(folder.path().join("s.yaml"), text).unwrap();
    let finished = Watched::weir(folder.path(), &["run", "s.yaml", "--out", "out"]).run();
    let expected = "right\n".repeat(cases.len());
    are_right(
        &finished,
        folder.path(),
        &["rank0", "rank1", "rank2"],
        &expected,
    );
}

/// The run has passed, and each of these commands has printed what is expected.
fn are_right(finished: &Finished, folder: &Path, commands: &[&str], expected: &str) {
    let read = |name: String| std::fs::read_to_string(folder.join("out").join(name));
    let told = commands.iter().map(|name| read(format!("{name}.stderr")));
    let told: Vec<String> = told.map(Result::unwrap_or_default).collect();
    assert_eq!(finished.code, Some(PASSED), "{finished:?} {told:#?}");
    for name in commands {
        assert_eq!(read(format!("{name}.stdout")).unwrap(), expected, "{name}");
    }
}

/// Sums of all types and in all ways to wait; a value that is not finite fails, or goes from host to host, where the rest is
/// rounded by chance. A large tensor goes in pieces.
#[test]
fn sums_are_right_and_failures_have_reasons() {
    let cases = [
        "all_reduce.py",
        "waiting.py",
        "WEIR_NON_FINITE=gloo WEIR_ROUNDING=stochastic:7 all_reduce.py",
        "pieces.py",
        "WEIR_NON_FINITE=gloo WEIR_ROUNDING=stochastic:7 pieces.py all_reduce.py",
        "WEIR_METRICS=127.0.0.1:9477 metrics.py",
    ];
    all_are_right("torch sums", JOB, By::Itself, &cases);
}

/// Settings that differ, a rank that is missing, is there twice, is of another job, or dies: all ranks are told, and the next
/// sums are right.
#[test]
fn what_does_not_fit_together_is_told_to_all_ranks() {
    let cases = ["settings.py", "gone.py", "bad_input.py"];
    all_are_right("torch bad input", JOB, By::Itself, &cases);
}

/// A job whose ranks start twice, wait in callbacks, begin groups one after another, give much at once, leave, and fork.
#[test]
fn jobs_begin_and_end_in_all_ways() {
    let cases = ["again.py", "nested.py", "many.py", "close.py", "fork.py"];
    all_are_right("torch jobs", JOB, By::Itself, &cases);
}

/// The same of processes that may not send frames, as far as a daemon's code is another: CONTRIBUTING.md lists these cases.
#[test]
fn a_daemon_sends_for_those_who_may_not() {
    let cases = [
        "all_reduce.py",
        "WEIR_METRICS=127.0.0.1:9477 metrics.py",
        "differ.py",
        "collectives.py",
    ];
    all_are_right("torch by a daemon", JOB, By::Daemon, &cases);
    let cases = ["many.py", "close.py", "fork.py"];
    all_are_right("torch jobs by a daemon", JOB, By::Daemon, &cases);
}

/// Frames to the switch and back are RDMA WRITEs: sums, failures, and who leaves and comes again are the same.
#[test]
fn sums_come_by_rdma() {
    let job = JOB.replace("]}}", "], transport: rdma}}");
    let cases = [
        "all_reduce.py",
        "pieces.py",
        "gone.py",
        "again.py",
        "fork.py",
    ];
    all_are_right("torch by RDMA", &job, By::Itself, &cases);
}

#[test]
fn what_does_not_fit_together_is_told_by_rdma() {
    let job = JOB.replace("]}}", "], transport: rdma}}");
    all_are_right(
        "torch bad input by RDMA",
        &job,
        By::Itself,
        &["bad_input.py"],
    );
    all_are_right(
        "torch by RDMA by a daemon",
        &job,
        By::Daemon,
        &["all_reduce.py"],
    );
}

/// No switch sums: the ranks do, or Gloo does.
#[test]
fn without_a_switch_that_sums_the_hosts_sum() {
    let cases = [
        "WEIR_JOB=7 WEIR_RANK=RANK_OF_HOST WEIR_RANKS=3 WEIR_WINDOW=64 all_reduce.py",
        "collectives.py",
        "like_gloo.py",
        "BACKEND=gloo ps.py",
    ];
    all_are_right("torch by hosts", "", By::Itself, &cases);
}

/// Who is late is not waited for, and has the same sums as the others, whoever sends for it.
#[test]
fn a_late_rank_is_left_out() {
    let job = JOB.replace("]}}", "], deadline: 50ms, quorum: 2, late: next}}");
    // Late with all of a tensor, so all of it is under way at once.
    all_are_right(
        "torch late",
        &job,
        By::Itself,
        &["pieces.py late.py 1000000"],
    );
    all_are_right("torch late by a daemon", &job, By::Daemon, &["late.py"]);
}

/// Reduces, broadcasts and all other collectives, where what is not finite goes by Gloo, and with a deadline, until which nobody's
/// values may be missing. Calls of all kinds, right and wrong ones, have the outcome that Gloo's have.
#[test]
fn collectives_of_all_kinds() {
    let cases = ["WEIR_NON_FINITE=gloo collectives.py", "like_gloo.py"];
    all_are_right("torch collectives and Gloo", JOB, By::Itself, &cases);
    let job = JOB.replace("]}}", "], deadline: 30s, quorum: 2}}");
    all_are_right(
        "torch collectives late",
        &job,
        By::Itself,
        &["collectives.py"],
    );
}

/// Modes, servers, workers that differ, and what is counted; a worker that dies is named, or the others go on.
#[test]
fn a_parameter_server() {
    let cases = [
        "ps.py",
        "PS_MODE=stale ps_gone.py",
        "PS_MODE=stale PS_ON_LOST=continue ps_gone.py",
        "PS_MODE=sync ps_gone.py",
    ];
    all_are_right("torch parameter server", JOB, By::Itself, &cases);
}

/// Whether this torch has what torch 2 has; the test is skipped by name if not.
fn is_torch_2(test: &str) -> bool {
    let Some(folder) = torch() else {
        skip(test, "torch");
        return false;
    };
    let asked = std::process::Command::new(folder.join("python3"))
        .args(["-c", "from torch.distributed.fsdp import fully_shard"])
        .output();
    let has = asked.is_ok_and(|output| output.status.success());
    if !has {
        skip(test, "torch 2.6 or later");
    }
    has
}

/// Names that torch 2 has: each works, by the switch where it can sum, or is refused. Gradients of parameters of which each rank
/// holds a part are as near to Gloo's as the bound says.
#[test]
fn what_torch_2_has() {
    if is_torch_2("torch 2") {
        all_are_right("torch 2", JOB, By::Itself, &["torch2.py", "sharded.py"]);
        all_are_right("torch 2 by Gloo", "", By::Itself, &["torch2.py"]);
    }
}

/// Losses that are scaled, and products in bfloat16: both ways of what is not finite.
#[test]
fn mixed_precision() {
    let cases = ["amp.py", "WEIR_NON_FINITE=gloo amp.py"];
    all_are_right("torch mixed precision", JOB, By::Itself, &cases);
}

/// What people have above torch, if it is installed beside it.
#[test]
fn frameworks_above_torch() {
    let Some(folder) = torch() else {
        skip("torch frameworks", "torch");
        return;
    };
    let is_there = |framework: &&str| {
        let has = std::process::Command::new(folder.join("python3"))
            .args(["-c", &format!("import {framework}")])
            .output()
            .is_ok_and(|output| output.status.success());
        if !has {
            skip("torch frameworks", framework);
        }
        has
    };
    let frameworks = ["accelerate", "transformers", "lightning"];
    let cases: Vec<String> = (frameworks.iter().filter(|framework| is_there(framework)))
        .map(|framework| format!("frameworks.py {framework}"))
        .collect();
    let cases: Vec<&str> = cases.iter().map(String::as_str).collect();
    if !cases.is_empty() {
        all_are_right("torch frameworks", JOB, By::Itself, &cases);
    }
}

/// Two jobs whose ranks stand on both sides of a slow link, whose queues mark: the windows of all ranks answer, and the sums are
/// right.
#[test]
fn windows_answer_to_queues_that_mark() {
    let test = "torch marks";
    if !has_namespaces(test) {
        return;
    }
    let Some(python) = torch() else {
        skip(test, "torch");
        return;
    };
    let _turn = beside();
    let python = python.join("python3");
    let (python, package) = (python.display(), repository("host-agent/python"));
    let package = package.display();
    let hosts = [("a", "a", 0), ("b", "b", 0), ("c", "a", 1), ("d", "b", 1)];
    let commands: String = hosts
        .iter()
        .map(|(host, first, rank)| {
            format!(
                "    - name: rank-{host}\n      host: {host}\n      root: true\n      run: [{python}, {package}/tests/marks.py]\n      \
                 env: {{PYTHONPATH: {package}, PYTHONDONTWRITEBYTECODE: 1, MASTER_ADDR: \"{{host.{first}.ip}}\", \
                 MASTER_PORT: 29500, RANK: {rank}, WORLD_SIZE: 2, GLOO_SOCKET_IFNAME: eth0, OMP_NUM_THREADS: 1, \
                 WEIR_METRICS: \"127.0.0.1:9477\"}}\n"
            )
        })
        .collect();
    let text = format!(
        "weir: 1\nname: marks\nseed: 1\ntopology:\n  switches: [near, far]\n  hosts: [a, b, c, d]\n  \
         links: [[a, near], [b, near], [c, far], [d, far], {{ends: [near, far], rate: 20Mbit/s, ecn: 20}}]\n\
         jobs: {{one: {{ranks: [a, c], on: near}}, other: {{ranks: [b, d], on: near}}}}\n\
         workload:\n  commands:\n{commands}limits: {{time: 120s}}\nexpect:\n  - switch.far.marked > 0\n"
    );
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.yaml"), text).unwrap();
    let finished = Watched::weir(folder.path(), &["run", "s.yaml", "--json", "--out", "out"]).run();
    let commands = ["rank-a", "rank-b", "rank-c", "rank-d"];
    are_right(&finished, folder.path(), &commands, "right\n");
}
