"""A small network trained with a parameter server, once in each mode of --mode: with the backend `weir` or `gloo`, as
BACKEND says. Rank 0 serves, the others work, each on its part of the same data.

Each rank prints one line of JSON in the end: by mode, what the server's network is worth, and what it has counted; or how far a
worker's last parameters are from the server's.
"""

import argparse
import json
import os
import time

import torch
import torch.distributed as dist

from weir.ps import Plan, Server, Worker

backend = os.environ.get("BACKEND", "weir")
if backend == "weir":
    import weir.torch  # noqa: F401: registers the backend

PLANS = {
    "sync": Plan(mode="sync"),
    "async": Plan(mode="async"),
    "stale": Plan(mode="stale", staleness=2),
    "fastest": Plan(mode="fastest", fastest=1, late="drop"),
}
parser = argparse.ArgumentParser()
parser.add_argument("--mode", nargs="+", choices=PLANS, default=list(PLANS))
parser.add_argument("--steps", type=int, default=50, help="pushes of each worker")
arguments = parser.parse_args()

dist.init_process_group(backend)
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)
inputs = torch.randn(1024, 64)
labels = (inputs @ torch.randn(64, 10)).argmax(dim=1)


def loss_of(model, some):
    return torch.nn.functional.cross_entropy(model(inputs[some]), labels[some])


def serve(model, plan):
    # If each push is a step, the rate is divided by the number of workers.
    rate = 0.2 / (size - 1) if plan.mode in ("async", "stale") else 0.2
    server = Server(model.parameters(), torch.optim.SGD(model.parameters(), lr=rate, momentum=0.5), plan)
    counted = server.run()
    counted["staleness_max"] = max(counted.pop("staleness"))
    with torch.no_grad():
        counted["loss"] = loss_of(model, slice(None)).item()
    return counted


def work(model, plan):
    # Each rank has a part of the data, and other initial parameters than the server.
    mine = slice(rank - 1, None, size - 1)
    with Worker(model.parameters(), plan) as worker:
        for _ in range(arguments.steps):
            model.zero_grad()
            loss_of(model, mine).backward()
            worker.push_pull()


def apart(model):
    """Maximum difference between this rank's parameters and the server's."""
    most = 0.0
    for parameter in model.parameters():
        other = parameter.detach().clone()
        dist.broadcast(other, 0)
        most = max(most, (parameter.detach() - other).abs().max().item())
    return most


result = {}
for mode in arguments.mode:
    torch.manual_seed(rank)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    begun = time.monotonic()
    result[mode] = serve(model, PLANS[mode]) if rank == 0 else work(model, PLANS[mode]) or {}
    result[mode]["seconds"] = round(time.monotonic() - begun, 3)
    result[mode]["apart"] = apart(model)
print(json.dumps(result), flush=True)
# Rank 0 hosts the store, and must leave last.
dist.barrier()
