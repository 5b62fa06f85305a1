"""Two ranks or more: what the switch sums, what goes by Gloo, and what a failure is. Exits with 0 if all is right."""

import torch
import torch.distributed as dist

import weir.torch

dist.init_process_group("weir")
rank, size = dist.get_rank(), dist.get_world_size()


def summed():
    return weir.torch.counters()["operations"]


def check(dtype, length, tolerance, by_switch=True, op=dist.ReduceOp.SUM):
    """Rank r has 1, 2, 3 … times r + 1."""
    before = summed()
    base = torch.arange(1, length + 1, dtype=torch.float64) % 100
    tensor = (base * (rank + 1)).to(dtype)
    dist.all_reduce(tensor, op=op)
    expected = base * (size * (size + 1) // 2)
    if op == dist.ReduceOp.MAX:
        expected = base * size
    off = ((tensor.to(torch.float64) - expected).abs() / expected.clamp(min=1)).max().item()
    assert off <= tolerance, (dtype, length, off)
    assert (summed() > before) == by_switch, (dtype, by_switch)


for length in (1, 255, 5000, 300_000):
    check(torch.float32, length, 1e-6)
    check(torch.int32, length, 0)
check(torch.float16, 1000, 1e-3)
check(torch.bfloat16, 1000, 1e-2)
# What a switch cannot do.
check(torch.float64, 1000, 0, by_switch=False)
check(torch.int64, 1000, 0, by_switch=False)
check(torch.float32, 1000, 0, by_switch=False, op=dist.ReduceOp.MAX)
part = dist.new_group([0])
if rank == 0:
    alone = torch.ones(3)
    before = summed()
    dist.all_reduce(alone, group=part)
    assert alone.sum() == 3 and summed() == before

# Several at once, waited for in another order.
many = [torch.full((400,), float(number)) for number in range(20)]
works = [dist.all_reduce(tensor, async_op=True) for tensor in many]
for number, work in reversed(list(enumerate(works))):
    work.wait()
    # The exponent of a block may be a few bits above the smallest that would do.
    assert torch.allclose(many[number], torch.tensor(float(number * size)), rtol=1e-6), number

dist.barrier()
# The last, since a rank that gave up takes no more.
try:
    dist.all_reduce(torch.tensor([1.0, float("nan")]))
except RuntimeError as error:
    assert "not finite" in str(error), error
else:
    raise AssertionError("a value that is not finite was summed")
print("right", flush=True)
# By Gloo: rank 0, which holds the store, leaves last.
dist.barrier()
