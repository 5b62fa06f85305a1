"""A small network trained by DistributedDataParallel: with `weir` or `gloo`, as BACKEND says.

Each rank sees a part of the same data; DDP sums the gradients. Prints the losses, and in the end one
line of JSON: how far the ranks' weights are apart, which is nothing, and how many sums there were.
"""

import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

backend = os.environ.get("BACKEND", "weir")
if backend == "weir":
    import weir.torch  # noqa: F401: registers the backend

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 50
dist.init_process_group(backend)
rank, size = dist.get_rank(), dist.get_world_size()

torch.manual_seed(1)
inputs = torch.randn(1024, 64)
labels = (inputs @ torch.randn(64, 10)).argmax(dim=1)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
ddp = DistributedDataParallel(model)
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
mine, ours = inputs[rank::size], labels[rank::size]

begun = time.monotonic()
for step in range(steps):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(ddp(mine), ours)
    loss.backward()
    optimizer.step()
    if rank == 0 and step % 10 == 0:
        print(f"step {step} loss {loss.item():.6f}", flush=True)
took = time.monotonic() - begun

# How far the ranks' weights are from each other.
apart = 0.0
for parameter in model.parameters():
    least, most = parameter.detach().clone(), parameter.detach().clone()
    dist.all_reduce(least, op=dist.ReduceOp.MIN)
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    apart = max(apart, (most - least).max().item())
counters = weir.torch.counters() if backend == "weir" else {}
result = {"loss": loss.item(), "apart": apart, "summed": counters.get("operations", 0), "steps_per_second": steps / took}
# Without a switch that answers, ranks sum themselves; and it may be there again.
result |= {"by_hosts": counters.get("chunks_by_hosts", 0), "returns": counters.get("returns", 0)}
print(json.dumps(result), flush=True)
# Rank 0 holds the store: it leaves last.
dist.barrier()
