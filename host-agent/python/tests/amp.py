"""Three ranks train with DistributedDataParallel in bfloat16 and with scaled losses: a rank whose scaled gradients overflow.

A gradient scaler waits for the infinity in the sum: with `WEIR_NON_FINITE=gloo` it comes to all ranks, and all skip the step
and halve the scale. Without, the sum fails as `weir.NonFinite`. Exits with 0 if all is right.
"""

import os

import torch
import torch.distributed as dist
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel

import weir.torch

dist.init_process_group("weir")
rank, size = dist.get_rank(), dist.get_world_size()
passes = os.environ.get("WEIR_NON_FINITE") == "gloo"


class Scaler:
    """The relevant part of `GradScaler`: that of torch 1.13 needs a GPU."""

    def __init__(self, init_scale):
        self._scale = init_scale

    def scale(self, loss):
        return loss * self._scale

    def step(self, optimizer):
        gradients = [parameter.grad for group in optimizer.param_groups for parameter in group["params"]]
        for gradient in gradients:
            gradient /= self._scale
        self._overflows = any(not gradient.isfinite().all() for gradient in gradients)
        if not self._overflows:
            optimizer.step()

    def update(self):
        self._scale *= 0.5 if self._overflows else 1.0

    def get_scale(self):
        return self._scale


def scaler(scale):
    try:
        from torch.amp import GradScaler
    except ImportError:
        return Scaler(scale)
    return GradScaler("cpu", init_scale=scale, backoff_factor=0.5)


def parameters_of(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def same_everywhere(values):
    least, most = values.clone(), values.clone()
    dist.all_reduce(least, op=dist.ReduceOp.MIN)
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    assert torch.equal(least, most), (least - most).abs().max()


torch.manual_seed(1)
model = DistributedDataParallel(torch.nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
inputs, targets = torch.randn(32, 16), torch.randn(32, 4)

# Autocast: products in bfloat16, gradients and their sums in float32.
losses = []
for _ in range(5):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs = model(inputs)
    assert outputs.dtype == torch.bfloat16
    loss = mse_loss(outputs.float(), targets)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0], losses
same_everywhere(parameters_of(model))

# A scale at which the gradients of rank 1 alone overflow float32.
scaling = scaler(2.0**100)
before = parameters_of(model)
optimizer.zero_grad()
loss = mse_loss(model(inputs), targets) * (1e20 if rank == 1 else 1.0)
if passes:
    scaling.scale(loss).backward()
    scaling.step(optimizer)
    scaling.update()
    assert torch.equal(parameters_of(model), before), "the step was made"
    assert scaling.get_scale() == 2.0**99, scaling.get_scale()
    # All ranks make the next step.
    optimizer.zero_grad()
    scaling.scale(mse_loss(model(inputs), targets)).backward()
    scaling.step(optimizer)
    scaling.update()
    assert not torch.equal(parameters_of(model), before)
    same_everywhere(parameters_of(model))
else:
    try:
        scaling.scale(loss).backward()
    except RuntimeError as error:
        assert "has a value that is not finite" in str(error), error
    else:
        raise AssertionError("an infinity was summed")
print("right")
dist.barrier()
