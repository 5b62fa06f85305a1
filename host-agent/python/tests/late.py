"""Three ranks, of which the last is late, with a deadline of 50 ms and a quorum of 2. Exits with 0 if all is right."""

import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import weir.torch

RANK = int(os.environ["RANK"])
IS_LATE = RANK == 2

if RANK == 1:
    os.environ["WEIR_QUORUM"] = "1"
os.environ["MASTER_PORT"] = "29601"
try:
    dist.init_process_group("weir")
except RuntimeError as error:
    differs = "WEIR_DEADLINE/WEIR_QUORUM differ between the 3 ranks: 0.05s/2 at rank 0, 0.05s/1 at rank 1, 0.05s/2 at rank 2"
    assert differs in str(error), error
else:
    raise AssertionError("quorums that differ were taken")
os.environ.update(WEIR_QUORUM="2", MASTER_PORT="29602")
dist.init_process_group("weir")

# In step: the sum includes all ranks, except those that a busy machine delays.
tensor = torch.ones(1000)
work = dist.all_reduce(tensor, async_op=True)
work.wait()
assert bool((tensor >= work.contributors).all()) and bool((tensor <= 3).all()), (work.contributors, tensor)

# Out of step: the late rank gets the others' sum, and its own values are dropped.
dist.barrier()
if IS_LATE:
    time.sleep(1)
tensor = torch.full((100_000,), 1.0 + RANK)
work = dist.all_reduce(tensor, async_op=True)
work.wait()
assert work.contributors == 2 and torch.allclose(tensor, torch.full_like(tensor, 3.0)), (work.contributors, tensor)
counters = weir.torch.counters()
assert counters["partial"] > 0 and (counters["late"] > 0 or not IS_LATE), counters
assert counters["dropped"] == counters["late"], counters

# DDP: late gradients join those of the same parameters in the next step.
torch.manual_seed(1)


def replicated():
    model = DistributedDataParallel(torch.nn.Linear(300, 20))
    model.register_comm_hook(None, weir.torch.hook)
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


# Weights have small gradients, and biases large ones. Each model has one bucket, of equal length, which DDP rearranges after
# the first step.
trained = [(*replicated(), 0.001 * (RANK + 1)), (*replicated(), 0.0)]
for step in range(6):
    dist.barrier()
    if IS_LATE and step in (0, 2, 4):
        time.sleep(0.5)
    for model, optimizer, value in trained:
        optimizer.zero_grad()
        model(torch.full((4, 300), value)).sum().backward()
        largest = model.module.weight.grad.abs().max().item()
        assert largest < 0.5, (step, value, largest)
        optimizer.step()
counters = weir.torch.counters()
assert counters["carried"] > 0 or not IS_LATE, counters
# All ranks have the same sums.
own = torch.cat([parameter.detach().flatten() for model, _, _ in trained for parameter in model.parameters()])
all_of_them = [torch.empty_like(own) for _ in range(3)]
dist.all_gather(all_of_them, own)
assert all(bool((other == own).all()) for other in all_of_them)
print("right", flush=True)
