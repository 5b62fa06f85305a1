"""Three ranks with settings or calls that do not match: all of them get the error within the timeout, and the next group works.
Exits with 0 if all is right."""

import os
import subprocess
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

import weir.torch  # noqa: F401: registers the backend

RANK = int(os.environ["RANK"])
TIMEOUT_S = 20
# Timeout of a group with a missing rank.
MISSING_S = 2
# Timeout of a rank that is not notified.
SILENCE_S = 60


def join(timeout_s=TIMEOUT_S):
    dist.init_process_group("weir", timeout=timedelta(seconds=timeout_s))


def refused(*told, timeout_s=TIMEOUT_S):
    """Every rank gets one of these errors, soon."""
    begun = time.monotonic()
    try:
        join(timeout_s)
    except (RuntimeError, OSError) as error:
        assert any(one in str(error) for one in told), error
    else:
        raise AssertionError("they are a group")
    assert time.monotonic() - begun < timeout_s + 30


def sums_are_right():
    for length in (1, 700, 90_000):
        tensor = torch.full((length,), RANK + 1, dtype=torch.int32)
        dist.all_reduce(tensor)
        assert (tensor == 6).all()


def elsewhere():
    """A missing rank. It creates a group of its own, since torch also counts groups whose creation failed."""
    os.environ.update(MASTER_ADDR="127.0.0.1", WORLD_SIZE="1", RANK="0", WEIR_JOB="0")
    refused("WEIR_JOB=0: use a whole number, 1 to 65535")


def missing():
    if RANK == 2:
        return elsewhere()
    # The store of torch 2 waits for the ranks itself, and ends: its host gets their number, the others a connection error.
    of_store = ("2/3 clients joined", "Did the remote server shutdown") if hasattr(dist, "DistStoreError") else ()
    refused(f"rank 2 did not come within {MISSING_S} s; the group has 3 ranks", *of_store, timeout_s=MISSING_S)


def twice():
    os.environ["RANK"] = str(min(RANK, 1))
    refused("rank 1 came twice: two processes have the same RANK")


def of_another_size():
    if RANK == 2:
        return elsewhere()
    os.environ["WORLD_SIZE"] = "2"
    refused("the job has 3 ranks (WEIR_RANKS), but torch's group 2 (WORLD_SIZE)")


def of_no_job():
    if RANK == 1:
        for name in [name for name in os.environ if name.startswith("WEIR_")]:
            del os.environ[name]
    refused("the ranks differ: ranks 0, 2: a job of 3 ranks, WEIR_NON_FINITE=fail; rank 1: no WEIR_JOB")


def told_otherwise():
    """The switch has three ranks, and the job has two."""
    if RANK == 2:
        return elsewhere()
    os.environ.update(WORLD_SIZE="2", WEIR_RANKS="2", WEIR_PLACE=f"{RANK}/2/2")
    refused("the switch does not sum for the 2 ranks of this job")


def of_no_number():
    wrong = (
        ("WEIR_JOB", "70000", "use a whole number, 1 to 65535"),
        ("WEIR_RANK", "3", "ranks count from 0, with WEIR_RANKS=3"),
        ("WEIR_RANKS", "-1", "use a whole number, 1 to 1024"),
        ("WEIR_WINDOW", "100", "use a power of two, 1 to 32768"),
        ("WEIR_VALUES", "7", "use 32, 64, 256 or 2048"),
        ("WEIR_PLACE", "0/2", "use CHILD/SIBLINGS/TOP, such as 0/2/2"),
        ("WEIR_PLACE", "2/2/2", "SIBLINGS and TOP must be 1 to 64, and CHILD less than SIBLINGS"),
    )
    port = int(os.environ["MASTER_PORT"])
    for number, (name, value, told) in enumerate(wrong):
        before = os.environ.get(name)
        os.environ["MASTER_PORT"] = str(port + number)
        if RANK == 1:
            os.environ[name] = value
        refused(f"{'' if RANK == 1 else 'rank 1: '}{name}={value}: {told}")
        if before is not None:
            os.environ[name] = before
        else:
            os.environ.pop(name, None)


def second_use():
    """A second use of a running job is refused, and the sums of the first remain right."""
    join()
    own = {**os.environ, "MASTER_PORT": str(int(os.environ["MASTER_PORT"]) + 1)}
    second = subprocess.Popen([sys.executable, __file__, "second"], env=own)
    code, turns = None, 0
    while code is None:
        turns += 1
        code = second.poll()
        over = torch.tensor([0 if code is None else 1], dtype=torch.int32)
        sums_are_right()
        dist.all_reduce(over)
        if over.item() < 3:
            code = None
            # A process that imports torch 2 takes seconds: without a pause, the captures would fill with sums before it starts.
            time.sleep(0.2)
    assert code == 0 and turns > 1, (code, turns)
    dist.barrier()
    dist.destroy_process_group()


def second_use_refused():
    refused(f"job {os.environ['WEIR_JOB']} already has a rank on eth0 (process ")


def by_gloo():
    """Some ranks use the switch, and others Gloo, or neither; after each case the group is created again."""
    def reduced(dtype=torch.float32, length=100, op=dist.ReduceOp.SUM):
        name = str(dtype).removeprefix("torch.")
        deed = {dist.ReduceOp.SUM: "sum", dist.ReduceOp.MAX: "maximum"}[op]
        return lambda: dist.all_reduce(torch.ones(length, dtype=dtype), op=op), f"{name} x {length}, {deed}"

    def given(root):
        return lambda: dist.broadcast(torch.ones(100), root), f"float32 x 100, broadcast of rank {root}"

    to_first = lambda: dist.reduce(torch.ones(100), 0), "float32 x 100, sum to rank 0"  # noqa: E731
    cases = (
        (reduced(), reduced(dtype=torch.float64)),
        (reduced(dtype=torch.int64), reduced(op=dist.ReduceOp.MAX)),
        (reduced(), reduced(length=0)),
        (reduced(), to_first),
        (given(0), given(2)),
    )
    os.environ["WEIR_GONE_AFTER"] = str(SILENCE_S)
    port = int(os.environ["MASTER_PORT"])
    for number, (usual, other) in enumerate(cases):
        os.environ["MASTER_PORT"] = str(port + number)
        join(SILENCE_S)
        sums_are_right()
        (do, own), (_, others) = (other, usual) if RANK == 2 else (usual, other)
        begun = time.monotonic()
        try:
            do()
        except RuntimeError as error:
            said = str(error)
            assert f"the ranks submitted different operations: this rank {own}; rank " in said and said.endswith(others), said
        else:
            raise AssertionError("what differs was done")
        took = time.monotonic() - begun
        assert took < SILENCE_S - 10, took
        dist.destroy_process_group()


# The ranks start at different times and leave the first case together, so that only rank 2 is missing then.
CASES = (twice, missing, of_another_size, of_no_job, told_otherwise, of_no_number, second_use, by_gloo)

if len(sys.argv) > 1:
    second_use_refused()
    sys.exit()
environment, first_port = dict(os.environ), int(os.environ["MASTER_PORT"])
for turn, case in enumerate(CASES):
    os.environ.clear()
    os.environ.update(environment, MASTER_PORT=str(first_port + 10 * turn))
    case()
print("right", flush=True)
