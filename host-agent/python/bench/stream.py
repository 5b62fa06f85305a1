"""A rank of `cargo xtask bench allreduce --row stream`: one sum of a tensor that is much larger than the memory its rank may
use for it.

Prints a line of JSON as `allreduce.py` does, and in its last one how many bytes the process had at most beyond those that it
had with the tensor, before the sum.
"""

import argparse
import hashlib
import json
import os
import resource
import time

import torch
import torch.distributed as dist

import weir.torch  # noqa: F401: registers the backend

# Number of values that are checked at a time, so that the check needs little memory.
BLOCK = 1 << 20
# Values are small multiples of this, so that sums are exact in binary32.
GRAIN, DIFFERENT = 2.0**-18, 1009


def status_bytes(name):
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith(name))
    return int(line.split()[1]) * 1024


def main():
    arguments = argparse.ArgumentParser()
    for name in ("values", "rank", "ranks", "rounds", "calls"):
        arguments.add_argument(f"--{name}", type=int, required=True)
    for name in ("backends", "at"):
        arguments.add_argument(f"--{name}", required=True)
    told = arguments.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("weir", init_method=f"tcp://{told.at}", rank=told.rank, world_size=told.ranks)

    def wanted(begin, times):
        values = torch.arange(begin, min(begin + BLOCK, told.values))
        return values.remainder_(DIFFERENT).sub_(DIFFERENT // 2).mul_(times).to(torch.float32).mul_(GRAIN)

    tensor = torch.empty(told.values)
    blocks = range(0, told.values, BLOCK)
    for begin in blocks:
        tensor[begin : begin + BLOCK] = wanted(begin, told.rank + 1)
    dist.barrier()
    # Resets the peak of the memory use.
    with open("/proc/self/clear_refs", "w") as forget:
        forget.write("5")
    before = status_bytes("VmRSS")
    used, begun = resource.getrusage(resource.RUSAGE_SELF), time.monotonic_ns()
    dist.all_reduce(tensor)
    ended = time.monotonic_ns()
    beyond = status_bytes("VmHWM") - before
    now = resource.getrusage(resource.RUSAGE_SELF)
    times = told.ranks * (told.ranks + 1) // 2
    off, digest = 0.0, hashlib.sha256()
    for begin in blocks:
        sums = tensor[begin : begin + BLOCK]
        off = max(off, (sums - wanted(begin, times)).abs_().max().item())
        digest.update(sums.numpy())
    said = {
        "backend": "weir",
        "round": 0,
        "begun_ns": begun,
        "ended_ns": ended,
        "took_ns": [ended - begun],
        "user_s": now.ru_utime - used.ru_utime,
        "system_s": now.ru_stime - used.ru_stime,
        "off": off / (DIFFERENT // 2 * times * GRAIN),
        "digest": digest.hexdigest(),
    }
    print(json.dumps(said))
    print(json.dumps({"counters": {"beyond_bytes": beyond}}), flush=True)
    # Rank 0 hosts the store, and must leave last.
    dist.barrier()
    if told.rank == 0:
        time.sleep(0.5)


if __name__ == "__main__":
    main()
    # Exit without waiting for torch's threads.
    os._exit(0)
