"""Three ranks: FSDP2's `fully_shard`, compared with Gloo. Exits with 0 if all is right.

No gradient is farther from Gloo's than the bound that weir tells, and what Gloo's own sums are off by.
"""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

import weir.torch

STEPS, RATE = 40, 0.5
# Relative error of one rounding of float32.
ROUNDING = 2.0**-24

dist.init_process_group("weir")
rank, size = dist.get_rank(), dist.get_world_size()
by_gloo = DeviceMesh.from_group(dist.new_group(backend="gloo"), "cpu")
by_weir = DeviceMesh.from_group(dist.group.WORLD, "cpu")

torch.manual_seed(1)
INPUTS = torch.randn(300, 32)
LABELS = (INPUTS @ torch.randn(32, 10)).argmax(dim=1)
mine, ours = INPUTS[rank::size], LABELS[rank::size]


def sharded(mesh):
    """Divides the network among the ranks."""
    torch.manual_seed(2)
    model = torch.nn.Sequential(
        torch.nn.Linear(32, 301), torch.nn.ReLU(), torch.nn.Linear(301, 70), torch.nn.ReLU(), torch.nn.Linear(70, 10)
    )
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def step(model):
    """The loss, and this rank's part of the gradients."""
    model.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(mine), ours)
    loss.backward()
    return loss.item(), [parameter.grad.to_local().clone() for parameter in model.parameters()]


def parts(model):
    return [parameter.to_local() for parameter in model.parameters()]


def farthest(some, others):
    return max((one - other).abs().max().item() for one, other in zip(some, others) if one.numel() > 0)


def operations():
    return weir.torch.counters().get("operations", 0)


def gradients(ours_, theirs):
    """With equal weights, both sums are within their error bounds."""
    before = operations()
    (loss, own), (expected_loss, expected) = step(ours_), step(theirs)
    assert loss == expected_loss, (loss, expected_loss)
    # A reduce_scatter for each of the four parts: the root module has no parameter of its own.
    assert not weir.torch.counters() or operations() - before >= 3, operations() - before
    # Gloo adds one value after another, and divides.
    largest = max(part.abs().max().item() for part in expected if part.numel() > 0)
    every = torch.tensor([largest])
    dist.all_reduce(every, op=dist.ReduceOp.MAX)
    bound = weir.torch.error_bound() + 2 * size * size * ROUNDING * every.item()
    off = farthest(own, expected)
    assert off <= bound, (off, bound)
    return bound


def training():
    ours_, theirs = sharded(by_weir), sharded(by_gloo)
    bound = gradients(ours_, theirs)
    optimizers = [torch.optim.SGD(model.parameters(), lr=RATE) for model in (ours_, theirs)]
    losses = []
    for _ in range(STEPS):
        losses.append(tuple(step(model)[0] for model in (ours_, theirs)))
        for optimizer in optimizers:
            optimizer.step()
    # Each step moves a weight by the learning rate times the gradient's error; different weights increase the difference.
    apart, allowed = farthest(parts(ours_), parts(theirs)), 10 * STEPS * RATE * bound
    assert apart <= allowed, (apart, allowed)
    assert all(abs(one - other) <= 1e-5 for one, other in losses), losses
    assert losses[-1][0] < 0.7 * losses[0][0], losses


def mixed():
    """Parameters in bfloat16, whose gradients are summed as float32."""
    from torch.distributed.fsdp import MixedPrecisionPolicy

    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    torch.manual_seed(3)
    model = fully_shard(torch.nn.Linear(32, 10), mesh=by_weir, mp_policy=policy)
    before = operations()
    loss, own = step(model)
    assert not weir.torch.counters() or operations() > before
    assert loss == loss and all(part.dtype == torch.float32 for part in own), own


training()
mixed()
print("right", flush=True)
# Rank 0 hosts the store, and must leave last.
dist.barrier()
