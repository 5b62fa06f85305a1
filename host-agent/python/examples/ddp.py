"""DistributedDataParallel on handwritten digits, with the backend BACKEND: `weir` or `gloo`.

Each rank trains with its share of the same digits; DDP sums the gradients. Prints the loss of each epoch, and in the end one
line of JSON: how many of the digits held out are recognised, how far the ranks' weights are apart, which is nothing, and how
many sums there were.
"""

import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

backend = os.environ.get("BACKEND", "weir")
if backend == "weir":
    import weir.torch  # noqa: F401: registers the backend

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
dist.init_process_group(backend)
rank, size = dist.get_rank(), dist.get_world_size()

# One digit per line: 8 × 8 pixels of 0 to 16, and the digit. Every fifth is held out.
lines = (Path(__file__).resolve().parents[2] / "data/optdigits.csv").read_text().splitlines()
digits = torch.tensor([[int(number) for number in line.split(",")] for line in lines])
pixels, labels = digits[:, :64] / 16, digits[:, 64]
held_out = torch.arange(len(digits)) % 5 == 4
training = TensorDataset(pixels[~held_out], labels[~held_out])
sampler = DistributedSampler(training, seed=1)
batches = DataLoader(training, batch_size=32, sampler=sampler)

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
ddp = DistributedDataParallel(model)
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)

begun = time.monotonic()
for epoch in range(epochs):
    # Shuffled for each epoch, and divided among the ranks.
    sampler.set_epoch(epoch)
    total = torch.zeros(1)
    for inputs, targets in batches:
        optimizer.zero_grad()
        loss = cross_entropy(ddp(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss.detach()
    dist.all_reduce(total)
    mean = total.item() / size / len(batches)
    if rank == 0:
        print(f"epoch {epoch} loss {mean:.4f}", flush=True)
took = time.monotonic() - begun

with torch.no_grad():
    recognised = model(pixels[held_out]).argmax(dim=1) == labels[held_out]
# Maximum difference between the ranks' weights.
apart = 0.0
for parameter in model.parameters():
    least, most = parameter.detach().clone(), parameter.detach().clone()
    dist.all_reduce(least, op=dist.ReduceOp.MIN)
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    apart = max(apart, (most - least).max().item())
result = {"loss": mean, "accuracy": recognised.float().mean().item(), "apart": apart}
result["steps_per_second"] = epochs * len(batches) / took
counters = weir.torch.counters() if backend == "weir" else {}
result["summed"] = counters.get("operations", 0)
# While no switch answers, the ranks sum themselves.
result |= {"by_hosts": counters.get("chunks_by_hosts", 0), "returns": counters.get("returns", 0)}
print(json.dumps(result), flush=True)
# Rank 0 hosts the store, and must leave last.
dist.barrier()
