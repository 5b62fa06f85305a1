"""A rank whose sums pass a queue that marks. Exits with 0 if the sums are right and a window of its job has answered to marks."""

import os
import urllib.request

import torch
import torch.distributed as dist

import weir.torch

WHERE = os.environ["WEIR_METRICS"]
VALUES = 200_000


def sample(name):
    """What Prometheus would read of this process's only rank."""
    with urllib.request.urlopen(f"http://{WHERE}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    (line,) = [line for line in lines if line.startswith(name + "{")]
    return int(line.rsplit(" ", 1)[1])


dist.init_process_group("weir")
rank, size = dist.get_rank(), dist.get_world_size()
for turn in range(4):
    values = torch.arange(VALUES, dtype=torch.int32) * (rank + 1) + turn
    dist.all_reduce(values)
    right = torch.arange(VALUES, dtype=torch.int32) * sum(range(1, size + 1)) + turn * size
    assert torch.equal(values, right), turn
assert weir.torch.counters()["operations"] == 4, weir.torch.counters()
marks, least = sample("weir_congestion_marks_total"), sample("weir_least_congestion_window_chunks")
assert marks > 0, (marks, least)
# A window begins with 32, and other signs than marks leave as many. The others wait for the rank whose window is the smallest.
smallest = torch.tensor([least], dtype=torch.int64)
dist.all_reduce(smallest, op=dist.ReduceOp.MIN)
assert smallest < 32, (marks, least, smallest)
dist.barrier()
print("right", flush=True)
