"""Three ranks whose hook waits in a callback for an operation that it starts there: PowerSGD, compared with Gloo. Exits with 0
if all is right."""

import os
import threading
import time
import warnings

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

import weir.torch


def trained(group):
    """The parameters after some steps, of which PowerSGD compresses all but the first two."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(60, 40), torch.nn.Tanh(), torch.nn.Linear(40, 30))
    model = DistributedDataParallel(model, process_group=group)
    state = PowerSGDState(process_group=group, matrix_approximation_rank=2, start_powerSGD_iter=2)
    model.register_comm_hook(state, powerSGD_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    torch.manual_seed(10 + dist.get_rank())
    for _ in range(8):
        optimizer.zero_grad()
        model(torch.randn(16, 60)).square().mean().backward()
        optimizer.step()
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def one_is_left(name):
    """Waits until all threads of this name but one have ended."""
    deadline = time.monotonic() + 30
    while (names := [thread.name for thread in threading.enumerate()]).count(name) > 1:
        assert time.monotonic() < deadline, names
        time.sleep(0.01)


dist.init_process_group("weir")
by_switch, by_gloo = trained(dist.group.WORLD), trained(dist.new_group(backend="gloo"))
assert torch.allclose(by_switch, by_gloo, atol=1e-4), (by_switch - by_gloo).abs().max()
own = [torch.empty_like(by_switch) for _ in range(3)]
dist.all_gather(own, by_switch)
assert all(bool((other == by_switch).all()) for other in own)

# Nested to any depth.
tensor = torch.ones(1000)


def sums(depth):
    work = dist.all_reduce(torch.ones(1000), async_op=True)
    then = work.get_future().then(lambda done: done.value()[0] + (sums(depth - 1) if depth else 0))
    return then.wait()


assert bool((sums(20) == 63).all())
# The threads that were needed for it have ended.
one_is_left("weir tells")

# A second group of all ranks uses Gloo, with a warning.
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    second = dist.new_group(backend="weir")
assert any("this group goes host to host" in str(one.message) for one in told), told
before = weir.torch.counters()["operations"]
dist.all_reduce(tensor, group=second)
assert bool((tensor == 3).all()) and weir.torch.counters()["operations"] == before, weir.torch.counters()
dist.destroy_process_group()

# The switch serves the first group of all ranks, whatever the backend of the default group; after its deletion, the next one.
os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + 1)
dist.init_process_group("gloo")
for turn in range(2):
    group = dist.new_group(backend="weir")
    tensor = torch.ones(1000)
    dist.all_reduce(tensor, group=group)
    assert bool((tensor == 3).all()) and weir.torch.counters()["frames"] > 0, (turn, weir.torch.counters())
    dist.destroy_process_group(group)
    del group
one_is_left("weir sums")
print("right", flush=True)
