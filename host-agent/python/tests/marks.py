"""A rank whose sums pass a marking queue. Exits with 0 if the sums are right and marks have reduced a window of its job."""

import os
import urllib.request

import torch
import torch.distributed as dist

import weir.torch

WHERE = os.environ["WEIR_METRICS"]
VALUES = 200_000


def sample(name):
    """Metrics of this process's only rank, as Prometheus reads them."""
    with urllib.request.urlopen(f"http://{WHERE}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    (line,) = [line for line in lines if line.startswith(name + "{")]
    return int(line.rsplit(" ", 1)[1])


dist.init_process_group("weir")
rank, size = dist.get_rank(), dist.get_world_size()
marks, least, turn = 0, 32, 0
# A window starts at 32, and only marks reduce it below. On a busy machine, ranks may fail to fill the queue, and try again.
while marks == 0 or least >= 32:
    assert turn < 100, (marks, least)
    values = torch.arange(VALUES, dtype=torch.int32) * (rank + 1) + turn
    dist.all_reduce(values)
    right = torch.arange(VALUES, dtype=torch.int32) * sum(range(1, size + 1)) + turn * size
    assert torch.equal(values, right), turn
    turn += 1
    assert weir.torch.counters()["operations"] == turn, weir.torch.counters()
    # The minimum over the job, by Gloo: ranks wait for the one with the smallest window.
    told = torch.tensor([sample("weir_congestion_marks_total"), sample("weir_least_congestion_window_chunks")])
    dist.all_reduce(told, op=dist.ReduceOp.MIN)
    marks, least = told.tolist()
dist.barrier()
print("right", flush=True)
