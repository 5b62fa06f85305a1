//! Other programs on the same bridge for comparison: Gloo's all-gather by PyTorch, MPICH's all-to-all.
//!
//! Python scripts drive both: a rank prints the duration of each round, until all ranks had all data.

use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow, ensure};
use nix::unistd::gettid;

use crate::bed::Bridge;
use crate::exchange::{Kind, RANKS, RATE, ROUNDS, SHARD};

const PYTHON: &str = "/usr/bin/python3";

/// Arguments: rank, ranks, bytes per shard, rounds.
const GLOO: &str = r#"
import sys, time, torch, torch.distributed as dist
rank, ranks, shard, rounds = map(int, sys.argv[1:])
dist.init_process_group("gloo", init_method="tcp://10.9.0.1:29500", rank=rank, world_size=ranks)
own = torch.full((shard,), rank + 1, dtype=torch.uint8)
gathered = [torch.zeros(shard, dtype=torch.uint8) for _ in range(ranks)]
for _ in range(rounds):
    dist.barrier()
    start = time.monotonic()
    dist.all_gather(gathered, own)
    dist.barrier()
    print(time.monotonic() - start)
for at, of in enumerate(gathered):
    assert int(of.min()) == at + 1 == int(of.max())
"#;

/// Arguments: ranks, bytes per shard, rounds. The handles are those of MPICH's mpi.h.
const MPICH: &str = r#"
import ctypes, sys, time
ranks, shard, rounds = map(int, sys.argv[1:])
mpi = ctypes.CDLL("libmpich.so.12")
WORLD, BYTE = ctypes.c_int(0x44000000), ctypes.c_int(0x4c00010d)
assert mpi.MPI_Init(None, None) == 0
rank = ctypes.c_int()
mpi.MPI_Comm_rank(WORLD, ctypes.byref(rank))
rank = rank.value
to = b"".join(bytes([rank * ranks + peer + 1]) * shard for peer in range(ranks))
come = ctypes.create_string_buffer(ranks * shard)
for _ in range(rounds):
    mpi.MPI_Barrier(WORLD)
    start = time.monotonic()
    assert mpi.MPI_Alltoall(to, shard, BYTE, come, shard, BYTE, WORLD) == 0
    mpi.MPI_Barrier(WORLD)
    # In one piece: all ranks' lines go to one place.
    sys.stdout.write(f"{rank} {time.monotonic() - start}\n")
    sys.stdout.flush()
for peer in range(ranks):
    assert come.raw[peer * shard:(peer + 1) * shard] == bytes([peer * ranks + rank + 1]) * shard
mpi.MPI_Finalize()
"#;

/// Durations of all rounds of a rival, each that of the slowest rank. Fails if it is not installed, or does not run.
pub fn measure(kind: Kind, bridge: &Bridge) -> Result<(&'static str, Vec<f64>)> {
    match kind {
        Kind::AllGather => Ok(("Gloo", gloo(bridge)?)),
        Kind::AllToAll => Ok(("MPICH", mpich(bridge)?)),
    }
}

fn gloo(bridge: &Bridge) -> Result<Vec<f64>> {
    let start = |rank: usize| {
        bridge.host(rank, RATE, move || {
            let mut command = Command::new(PYTHON);
            command.args(["-c", GLOO]);
            command.args([rank, RANKS, SHARD, ROUNDS].map(|number| number.to_string()));
            command.env("GLOO_SOCKET_IFNAME", format!("nic{rank}"));
            text_of(command.stderr(Stdio::piped()).output()?)
        })
    };
    let ranks = (0..RANKS).map(start).collect::<Result<Vec<_>>>()?;
    let texts = ranks.into_iter().map(joined).collect::<Result<Vec<_>>>()?;
    slowest(texts.iter().map(String::as_str))
}

fn mpich(bridge: &Bridge) -> Result<Vec<f64>> {
    // The ranks are processes started by one program: each enters the namespace that a thread of ours keeps open.
    let hold = |rank: usize| {
        let (sender, thread) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let held = bridge.host(rank, RATE, move || {
            sender.send(gettid()).context("the starter has ended")?;
            // Keep the namespace until it is no longer needed.
            let _ = ends.recv();
            Ok(())
        })?;
        anyhow::Ok((thread.recv()?, end, held))
    };
    let held = (0..RANKS).map(hold).collect::<Result<Vec<_>>>()?;
    let mut command = Command::new("mpiexec.mpich");
    for (rank, (thread, _, _)) in held.iter().enumerate() {
        command.args((rank > 0).then_some(":")).args(["-n", "1"]);
        let namespace = format!("--net=/proc/{}/task/{thread}/ns/net", std::process::id());
        // The program looks for interfaces in /sys, which shows the namespace in which it was mounted.
        let own = "mount -t sysfs sysfs /sys && exec \"$@\"";
        command.args(["nsenter", &namespace, "unshare", "-m", "sh", "-c", own, "-"]);
        let device = format!("UCX_NET_DEVICES=nic{rank}");
        command.args(["env", &device, PYTHON, "-c", MPICH]);
        command.args([RANKS, SHARD, ROUNDS].map(|number| number.to_string()));
    }
    // All ranks are on one machine, and must communicate over the network only.
    command.env("MPIR_CVAR_NOLOCAL", "1").env("UCX_TLS", "tcp");
    let text = command.output().context("mpiexec.mpich").and_then(text_of);
    for (_, end, thread) in held {
        drop(end);
        joined(thread)?;
    }
    let text = text?;
    let of_rank = |rank: usize| {
        let own = text.lines().filter_map(move |line| {
            let (of, time) = line.split_once(' ')?;
            (of.parse() == Ok(rank)).then_some(time)
        });
        own.collect::<Vec<_>>().join("\n")
    };
    let texts: Vec<String> = (0..RANKS).map(of_rank).collect();
    slowest(texts.iter().map(String::as_str))
}

fn joined<T>(thread: JoinHandle<Result<T>>) -> Result<T> {
    thread.join().map_err(|_| anyhow!("a rank"))?
}

fn text_of(output: Output) -> Result<String> {
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{error}");
    Ok(String::from_utf8(output.stdout)?)
}

/// The slowest rank's duration of each round.
fn slowest<'t>(texts: impl Iterator<Item = &'t str>) -> Result<Vec<f64>> {
    let mut slowest = vec![0.0; ROUNDS];
    for text in texts {
        let times: Vec<f64> = text.lines().map(str::parse).collect::<Result<_, _>>()?;
        ensure!(times.len() == ROUNDS, "{} rounds", times.len());
        for (slowest, time) in slowest.iter_mut().zip(times) {
            *slowest = time.max(*slowest);
        }
    }
    Ok(slowest)
}
