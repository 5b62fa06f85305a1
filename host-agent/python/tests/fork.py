"""Three ranks that fork, as data loaders do: the children keep no resources of a rank. Exits with 0 if all is right."""

import os
import signal
import time

import torch
import torch.distributed as dist

import weir._work
import weir.torch


def child(act):
    """Forks a process that executes this; returns its id."""
    made = os.fork()
    if made == 0:
        act()
    return made


def are_right():
    tensor = torch.ones(100_000)
    dist.all_reduce(tensor)
    assert bool((tensor == 3).all()), tensor


def ends(process):
    assert os.waitpid(process, 0)[1] == 0


os.environ["WEIR_GONE_AFTER"] = "60"
dist.init_process_group("weir")
are_right()


def is_no_rank():
    assert weir.torch.counters() == {}
    told = torch.futures.Future()
    heard = told.then(lambda done: done.value())
    weir._work._TELLERS.run(told.set_result, 7)
    os._exit(0 if heard.wait() == 7 else 1)


ends(child(is_no_rank))
are_right()
# The job starts again while a child is alive.
lives = child(lambda: time.sleep(100))
dist.destroy_process_group()
os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + 1)
dist.init_process_group("weir")
are_right()
os.kill(lives, signal.SIGKILL)
os.waitpid(lives, 0)

# A rank is killed, and its child stays alive: the others notice it without waiting for the timeout.
dist.barrier()
if dist.get_rank() == 2:
    child(lambda: time.sleep(100))
    print("right", flush=True)
    os._exit(0)
begun = time.monotonic()
try:
    are_right()
except RuntimeError as error:
    assert "rank 2 is unreachable" in str(error), error
else:
    raise AssertionError("a rank that has gone has given values")
assert time.monotonic() - begun < 50
print("right", flush=True)
# Rank 0 hosts torch's store.
time.sleep(2 if dist.get_rank() == 0 else 0)
os._exit(0)
