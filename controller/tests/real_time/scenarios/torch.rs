//! The torch backend `weir`: three ranks whose sums an embedded switch makes, in the ways of `host-agent/python/tests`.

use std::path::Path;

use super::foreign::torch;
use crate::support::leftovers::Watched;
use crate::support::*;

/// A job of three hosts that a switch sums.
const JOB: &str = "jobs: {sums: {ranks: [a, b, c]}}\n";

/// A scenario in which each of three hosts runs a file of `host-agent/python/tests` as a rank of one job.
fn scenario(python: &str, file: &str, environment: &str, by: By) -> String {
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
            format!(
                "    - name: rank{rank}\n      host: {host}\n      {is_root}\n      run: [{python}, {package}/tests/{file}]\n      \
                 env: {{PYTHONPATH: {package}, PYTHONDONTWRITEBYTECODE: 1, MASTER_ADDR: \"{{host.a.ip}}\", MASTER_PORT: 29500, \
                 RANK: {rank}, WORLD_SIZE: 3, GLOO_SOCKET_IFNAME: eth0, OMP_NUM_THREADS: 1{}{agent}}}\n",
                environment.replace("RANK_OF_HOST", &rank.to_string())
            )
        })
        .collect();
    format!(
        "weir: 1\nname: torch\nseed: 1\ntopology: {{star: {{hosts: [a, b, c], switch: sw}}}}\n\
         workload:\n  commands:\n{daemons}{commands}limits: {{time: 120s}}\n"
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

/// All ranks find what they look for.
fn all_are_right(test: &str, file: &str, environment: &str) {
    all_are_right_by(By::Itself, test, file, environment);
}

fn all_are_right_by(by: By, test: &str, file: &str, environment: &str) {
    all_are_right_in(JOB, by, test, file, environment);
}

fn all_are_right_in(job: &str, by: By, test: &str, file: &str, environment: &str) {
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
    let text = scenario(python.to_str().unwrap(), file, environment, by) + job;
    std::fs::write(folder.path().join("s.yaml"), text).unwrap();
    let finished = Watched::weir(folder.path(), &["run", "s.yaml", "--out", "out"]).run();
    are_right(&finished, folder.path(), &["rank0", "rank1", "rank2"]);
}

/// The run has passed, and each of these commands has found what it looks for.
fn are_right(finished: &Finished, folder: &Path, commands: &[&str]) {
    let read = |name: String| std::fs::read_to_string(folder.join("out").join(name));
    let told = commands.iter().map(|name| read(format!("{name}.stderr")));
    let told: Vec<String> = told.map(Result::unwrap_or_default).collect();
    assert_eq!(finished.code, Some(PASSED), "{finished:?} {told:#?}");
    for name in commands {
        assert_eq!(read(format!("{name}.stdout")).unwrap(), "right\n", "{name}");
    }
}

#[test]
fn sums_of_all_types_and_failures_in_all_ways_to_wait() {
    all_are_right("torch sums", "all_reduce.py", "");
}

/// What is not finite goes by Gloo; the rest is rounded by chance.
#[test]
fn what_is_not_finite_goes_host_to_host() {
    let settings = ", WEIR_NON_FINITE: gloo, WEIR_ROUNDING: \"stochastic:7\"";
    all_are_right("torch sums by Gloo", "all_reduce.py", settings);
}

#[test]
fn settings_that_differ_are_told_to_all_ranks() {
    all_are_right("torch settings", "settings.py", "");
}

/// A large tensor goes in pieces: sums, failures and what is late are the same.
#[test]
fn tensors_go_in_pieces() {
    all_are_right("torch pieces", "pieces.py", "");
    all_are_right_by(By::Daemon, "torch pieces by a daemon", "pieces.py", "");
    let settings = ", WEIR_NON_FINITE: gloo, WEIR_ROUNDING: \"stochastic:7\"";
    all_are_right("torch sums in pieces", "pieces.py, all_reduce.py", settings);
    let until = JOB.replace("]}}", "], deadline: 50ms, quorum: 2, late: next}}");
    // Late with all of a tensor, so all of it is under way at once.
    let late = "pieces.py, late.py, '1000000'";
    all_are_right_in(&until, By::Itself, "torch late in pieces", late, "");
}

/// Frames to the switch and back are RDMA WRITEs: sums, failures, and who leaves and comes again are the same.
#[test]
fn sums_come_by_rdma() {
    let by_rdma = JOB.replace("]}}", "], transport: rdma}}");
    for (test, file) in [
        ("torch by RDMA", "all_reduce.py"),
        ("torch pieces by RDMA", "pieces.py"),
        ("torch bad input by RDMA", "bad_input.py"),
        ("torch gone by RDMA", "gone.py"),
        ("torch again by RDMA", "again.py"),
        ("torch forks by RDMA", "fork.py"),
    ] {
        all_are_right_in(&by_rdma, By::Itself, test, file, "");
    }
    let test = "torch by RDMA by a daemon";
    all_are_right_in(&by_rdma, By::Daemon, test, "all_reduce.py", "");
}

/// No switch sums: the ranks do.
#[test]
fn without_a_switch_that_sums_the_ranks_sum() {
    let job = ", WEIR_JOB: 7, WEIR_RANK: RANK_OF_HOST, WEIR_RANKS: 3, WEIR_WINDOW: 64";
    all_are_right_in("", By::Itself, "torch by hosts", "all_reduce.py", job);
}

/// Type, length, sum or average: whoever gives something else is named to all.
#[test]
fn ranks_that_give_different_things_are_told_so() {
    all_are_right("torch differ", "differ.py", "");
    all_are_right_by(By::Daemon, "torch differ by a daemon", "differ.py", "");
}

/// Who is missing or there twice, ranks of no job or another, a switch that was told otherwise, a second use of the job, and
/// what some give to the switch and others to Gloo: all are told, and the next sums are right.
#[test]
fn what_does_not_fit_together_is_told_to_all_ranks() {
    all_are_right("torch bad input", "bad_input.py", "");
}

/// Who dies is named to those who wait for it.
#[test]
fn a_rank_that_dies_is_named() {
    all_are_right("torch gone", "gone.py", "");
}

/// The same hosts are ranks of the same job once more: the switch holds what the first left in its cells.
#[test]
fn a_job_is_begun_once_more() {
    all_are_right("torch again", "again.py", "");
}

/// Callbacks of futures that wait for other futures, groups one after the other, and threads that end.
#[test]
fn a_hook_waits_for_what_it_begins() {
    all_are_right("torch nested", "nested.py", "");
    all_are_right_by(By::Daemon, "torch nested by a daemon", "nested.py", "");
}

/// Children of a rank hold neither its job nor its port, and end as others do.
#[test]
fn a_rank_that_forks_is_one_rank() {
    all_are_right("torch forks", "fork.py", "");
    all_are_right_by(By::Daemon, "torch forks by a daemon", "fork.py", "");
}

/// Who is late is not waited for, and has the same sums as the others, whoever sends for it.
#[test]
fn a_late_rank_is_left_out() {
    let until = ", deadline: 50ms, quorum: 2, late: next";
    let job = JOB.replace("]}}", &format!("]{until}}}}}"));
    all_are_right_in(&job, By::Itself, "torch late", "late.py", "");
    all_are_right_in(&job, By::Daemon, "torch late by a daemon", "late.py", "");
}

/// A thread that gives waits for room, and others go on.
#[test]
fn a_rank_that_gives_very_much_answers() {
    all_are_right("torch many", "many.py", "");
    all_are_right_by(By::Daemon, "torch many by a daemon", "many.py", "");
}

/// Who leaves in the middle of a sum has left, and may come again.
#[test]
fn a_rank_that_closes_may_come_again() {
    all_are_right("torch close", "close.py", "");
    all_are_right_by(By::Daemon, "torch close by a daemon", "close.py", "");
}

/// What a rank counts and waits for is there for Prometheus.
#[test]
fn ranks_show_metrics() {
    let settings = ", WEIR_METRICS: \"127.0.0.1:9477\"";
    all_are_right("torch metrics", "metrics.py", settings);
}

/// The same sums and failures, of processes that may not send frames.
#[test]
fn a_daemon_sends_for_those_who_may_not() {
    let settings = ", WEIR_METRICS: \"127.0.0.1:9477\"";
    all_are_right_by(By::Daemon, "torch by a daemon", "all_reduce.py", "");
    all_are_right_by(
        By::Daemon,
        "torch metrics by a daemon",
        "metrics.py",
        settings,
    );
}

/// Reduces, broadcasts and all other collectives: by the switch, where what is not finite fails or goes by Gloo; by a daemon; with
/// a deadline, until which nobody's values may be missing; and without a job.
#[test]
fn collectives_of_all_kinds() {
    let file = "collectives.py";
    all_are_right("torch collectives", file, "");
    let settings = ", WEIR_NON_FINITE: gloo";
    all_are_right("torch collectives and Gloo", file, settings);
    all_are_right_by(By::Daemon, "torch collectives by a daemon", file, "");
    let until = JOB.replace("]}}", "], deadline: 30s, quorum: 2}}");
    all_are_right_in(&until, By::Itself, "torch collectives late", file, "");
    all_are_right_in("", By::Itself, "torch collectives by Gloo", file, "");
}

/// Modes, servers, workers that differ, and what is counted; by the switch and without one.
#[test]
fn a_parameter_server() {
    all_are_right("torch parameter server", "ps.py", "");
    let gloo = ", BACKEND: gloo";
    all_are_right_in("", By::Itself, "a parameter server by Gloo", "ps.py", gloo);
}

/// Which one it was is told, or the others go on.
#[test]
fn a_worker_that_dies_is_named_or_done_without() {
    let file = "ps_gone.py";
    all_are_right("a worker dies", file, ", PS_MODE: stale");
    let on = ", PS_MODE: stale, PS_ON_LOST: continue";
    all_are_right("a worker is done without", file, on);
    all_are_right("a worker dies in step", file, ", PS_MODE: sync");
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

/// Names that torch 2 has: each works, by the switch where it can sum, or is refused.
#[test]
fn what_torch_2_calls_otherwise() {
    if is_torch_2("torch 2") {
        all_are_right("torch 2", "torch2.py", "");
        all_are_right_in("", By::Itself, "torch 2 by Gloo", "torch2.py", "");
    }
}

/// Gradients of parameters of which each rank holds a part are as near to Gloo's as the bound says.
#[test]
fn gradients_of_fully_shard() {
    if is_torch_2("FSDP2") {
        all_are_right("FSDP2", "sharded.py", "");
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
    are_right(&finished, folder.path(), &commands);
}
