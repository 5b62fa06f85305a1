"""Three ranks that wait for their sums in all ways: at once, late, in other threads, by futures, not at all. Exits with 0 if all is
right."""

import signal
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist

import weir.torch

dist.init_process_group("weir")
rank, size = dist.get_rank(), dist.get_world_size()


def begin(value=1, numel=100):
    tensor = torch.full((numel,), value, dtype=torch.int32)
    return tensor, dist.all_reduce(tensor, async_op=True)


def is_summed(tensor, value=1):
    return bool((tensor == size * value).all())


def has_thread():
    return any(thread.name == "weir sums" for thread in threading.enumerate())


# Callers that wait complete their operations themselves, also earlier ones.
for turn in range(20):
    tensor = torch.full((100,), turn, dtype=torch.int32)
    dist.all_reduce(tensor)
    assert is_summed(tensor, turn)
(first, _), (second, last) = begin(2), begin(3)
last.wait()
assert is_summed(first, 2) and is_summed(second, 3)
# The first broadcast of a group exchanges nothing by Gloo either.
taken = torch.full((5,), rank, dtype=torch.int32)
dist.broadcast(taken, 1)
assert bool((taken == 1).all())
assert not has_thread(), threading.enumerate()

# Threads that wait in another order, each for an operation of its own.
begun = [begin(turn) for turn in range(8)]
right = []


def waits(turn, tensor, work):
    work.wait()
    right.append(is_summed(tensor, turn))


threads = [threading.Thread(target=waits, args=(turn, *begun[turn])) for turn in (3, 7, 0, 5, 1, 6, 2, 4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert right == [True] * 8, right

# Whoever looks without waiting sees the end.
tensor, work = begin()
deadline = time.monotonic() + 30
while not work.is_completed():
    assert time.monotonic() < deadline
    time.sleep(0.001)
assert work.is_success() and is_summed(tensor)
tensor, work = begin()
assert is_summed(work.get_future().wait()[0])
tensor, work = begin()
assert work.wait(timedelta(seconds=30)) and is_summed(tensor)
assert has_thread()

# An operation for which nobody waits does not hold up others, whether they go by the switch or by Gloo.
forgotten, _ = begin(4)
odd = torch.ones(3, dtype=torch.float64)
dist.all_reduce(odd)
assert bool((odd == size).all()) and is_summed(forgotten, 4)
begin(5)
dist.barrier()

# A signal ends the wait for a rank that is late, and no operation.
if rank == 0:
    time.sleep(3)
begun = [begin(6), begin(7)]
if rank == 1:

    class Enough(Exception):
        pass

    def enough(*_):
        raise Enough

    signal.signal(signal.SIGALRM, enough)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    started = time.monotonic()
    try:
        begun[1][1].wait()
    except Enough:
        assert time.monotonic() - started < 2, "late"
    else:
        raise AssertionError("not interrupted")
for value, (tensor, work) in zip((6, 7), begun):
    work.wait()
    assert is_summed(tensor, value)
tensor = torch.ones(100)
dist.all_reduce(tensor)
assert is_summed(tensor)
dist.barrier()
print("right", flush=True)
