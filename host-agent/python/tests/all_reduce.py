"""Three ranks: sums of the switch, operations of Gloo, and errors. Exits with 0 if all is right.

WEIR_NON_FINITE and WEIR_ROUNDING are looked at: what is right depends on them.
"""

import gc
import itertools
import os
import warnings

import torch
import torch.distributed as dist

import weir
import weir._work
import weir.torch

dist.init_process_group("weir")
rank, size = dist.get_rank(), dist.get_world_size()
group = dist.group.WORLD
by_gloo = os.environ.get("WEIR_NON_FINITE") == "gloo"
SUM, AVG, MAX = dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX
FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def summed():
    return weir.torch.counters()["operations"]


def check(dtype, length, by_switch=True, op=SUM, tolerance=0.0):
    """Rank r has 1, 2, 3 … times r + 1. The error of a sum must not exceed its bound."""
    before = summed()
    base = torch.arange(1, length + 1, dtype=torch.float64) % 100
    tensor = (base * (rank + 1)).to(dtype)
    work = dist.all_reduce(tensor, op=op, async_op=True)
    work.wait()
    assert not by_switch or work.is_completed() and work.is_success()
    factor = {SUM: size * (size + 1) / 2, AVG: (size + 1) / 2, MAX: size}[op]
    bound = (work.error_bound or 0.0) if by_switch else 0.0
    if length > 0:
        off = (tensor.to(torch.float64) - base * factor).abs().max().item()
        assert off <= bound + tolerance, (dtype, length, op, off, bound)
    # The exponent of a block may exceed the smallest possible one by a few bits.
    assert bound <= {torch.float32: 1e-4, torch.float16: 1.0, torch.bfloat16: 4.0}.get(dtype, 1.0), (dtype, bound)
    assert (summed() > before) == (by_switch and length > 0), (dtype, by_switch)
    assert bound <= weir.torch.error_bound() or not by_switch


def right():
    for length in (0, 1, 255, 5000, 300_000):
        for op in (SUM, AVG):
            check(torch.float32, length, op=op)
            check(torch.int32, length, op=op)
    for op in (SUM, AVG):
        check(torch.float16, 1000, op=op)
        check(torch.bfloat16, 1000, op=op)
    # Sums of int8 wrap, as in torch; a mean is computed from the whole sum, and truncated toward zero.
    for op, expected in ((SUM, 100 * size - 256 * ((100 * size + 128) // 256)), (AVG, 100)):
        tensor = torch.full((700,), 100, dtype=torch.int8)
        dist.all_reduce(tensor, op=op)
        assert (tensor == expected).all(), (op, tensor, expected)
    tensor = torch.full((3,), -1 if rank == 0 else 0, dtype=torch.int32)
    dist.all_reduce(tensor, op=AVG)
    assert (tensor == 0).all(), tensor
    # Operations that a switch does not support.
    check(torch.float64, 1000, by_switch=False)
    check(torch.float64, 1000, by_switch=False, op=AVG)
    check(torch.int64, 1000, by_switch=False)
    check(torch.int64, 1000, by_switch=False, op=AVG)
    check(torch.float32, 1000, by_switch=False, op=MAX)
    part = dist.new_group([0])
    if rank == 0:
        alone = torch.ones(3)
        before = summed()
        dist.all_reduce(alone, group=part)
        assert alone.sum() == 3 and summed() == before


def shapes():
    """Tensors that are not contiguous."""
    whole = torch.zeros(40, 30)
    whole[:, ::2] = rank + 1
    dist.all_reduce(whole[:, ::2])
    assert torch.allclose(whole[:, ::2], torch.full((40, 15), size * (size + 1) / 2.0)), whole
    assert (whole[:, 1::2] == 0).all()
    # Each rank has different strides.
    matrix = torch.arange(12.0).view(3, 4)
    matrix = matrix.t().contiguous().t() if rank == 0 else matrix
    dist.all_reduce(matrix)
    assert torch.allclose(matrix, size * torch.arange(12.0).view(3, 4)), matrix
    try:
        dist.all_reduce(torch.ones(1).expand(5))
    except ValueError as error:
        assert "clone it" in str(error), error
    else:
        raise AssertionError("sums were put into one place")
    learned = torch.ones(5, requires_grad=True)
    dist.all_reduce(learned)
    assert learned.requires_grad and torch.allclose(learned.detach(), torch.full((5,), float(size)))
    scalar = torch.tensor(2.0)
    dist.all_reduce(scalar)
    assert torch.allclose(scalar, torch.tensor(2.0 * size)), scalar
    dist.all_reduce_coalesced(two := [torch.ones(3), torch.ones(2, 2)])
    assert all(torch.allclose(of, torch.full(of.shape, float(size))) for of in two), two


def scattered(shape, dtype=torch.float32, of=rank):
    """Values whose magnitudes differ by up to 2^60, and are similar at all ranks for each element."""
    torch.manual_seed(5)
    scale = 2.0 ** torch.randint(-30, 30 if dtype != torch.float16 else 8, shape)
    torch.manual_seed(6 + of)
    return (scale * (torch.rand(shape) - 0.5)).to(dtype)


def sizes_that_differ():
    """With up to 1,024 elements, each sum is exact up to the rounding of its type, whatever the other elements are."""
    rows = [torch.tensor([2.25 + of, 0.8, 1e8 + 7 * of, 5e6 * of, 1e-9]) for of in range(size)]
    for given in (lambda of: rows[of], lambda of: rows[of].repeat(200), lambda of: 1e-20 * rows[of]):
        for op, divisor in ((SUM, 1), (AVG, size)):
            tensor = given(rank).clone()
            work = dist.all_reduce(tensor, op=op, async_op=True)
            work.wait()
            exact = sum(given(of).double() for of in range(size)) / divisor
            assert torch.equal(tensor, exact.float()), (op, tensor, exact)
            assert (tensor.double() - exact).abs().max() <= work.error_bound <= 2e-7 * exact.abs().max(), work.error_bound
    for dtype, shape in itertools.product(FLOATS, ((1,), (33,), (7, 11), (1024,))):
        own = scattered(shape, dtype)
        exact = sum(scattered(shape, dtype, of).double() for of in range(size))
        dist.all_reduce(own)
        assert torch.equal(own, exact.float().to(dtype)), (dtype, shape)
    one = torch.zeros(2, 3)
    dist.reduce_scatter_tensor(one, torch.tensor([1e8, 1.0, 1e-8]).repeat(2 * size, 1) * (rank + 1))
    assert torch.equal(one, torch.tensor([1e8, 1.0, 1e-8]).repeat(2, 1) * size * (size + 1) / 2), one
    # Larger tensors share exponents: weir warns once, and only about coarse sums.
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for tensor in (torch.randn(5000), scattered((1024,)), torch.zeros(5000)):
            dist.all_reduce(tensor)
        assert not weir.torch._warned
        for tensor in (scattered((5000,)), scattered((6000,))):
            dist.all_reduce(tensor)
    said = [str(one.message) for one in said if "typical" in str(one.message)]
    assert len(said) == 1 and "up to 1024 elements, sums are exact" in said[0], said


def several_at_once():
    """Works that are waited for in another order, and works that are not waited for."""
    many = [torch.full((400,), float(number)) for number in range(20)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in many]
    for number, work in reversed(list(enumerate(works))):
        work.wait()
        assert torch.allclose(many[number], torch.tensor(float(number * size)), rtol=1e-6), number
    last = torch.ones(1)
    for _ in range(3 * weir._work.KEPT):
        dist.all_reduce(torch.ones(1), async_op=True)
    dist.all_reduce(last)
    dist.all_reduce(last)
    gc.collect()
    assert len(group._kept) <= weir._work.KEPT + 1, len(group._kept)


def broken(dtype=torch.float32, length=700):
    """Values, of which one is not finite at rank 1."""
    tensor = torch.ones(length, dtype=dtype)
    if rank == 1:
        tensor[-1] = float("nan")
    return tensor


def fails(what, *arguments):
    try:
        what(*arguments)
    except RuntimeError as error:
        assert "not finite" in str(error), error
    else:
        raise AssertionError("a value that is not finite was summed")


def not_finite():
    """A value that is not finite fails the sum at all ranks, or Gloo computes it; the next sum is right."""
    for dtype in FLOATS:
        for op in (SUM, AVG):
            tensor = broken(dtype)
            if by_gloo:
                work = dist.all_reduce(tensor, op=op, async_op=True)
                behind = torch.ones(5)
                dist.all_reduce(behind)
                work.wait()
                assert torch.allclose(behind, torch.full((5,), float(size))), behind
                expected = 1.0 if op == AVG else float(size)
                assert tensor[:-1].eq(expected).all() and tensor[-1].isnan(), tensor
                assert work.error_bound is None
                continue
            fails(dist.all_reduce, tensor, op)
            # The tensor is unchanged.
            assert tensor[:-1].eq(1).all() and tensor[-1].isnan() == (rank == 1), tensor
        check(dtype, 300, tolerance=0.0)
    if by_gloo:
        return
    work = dist.all_reduce(broken(), async_op=True)
    fails(work.wait)
    fails(work.wait)
    assert work.is_completed() and not work.is_success()
    assert isinstance(work.exception(), weir.NonFinite), work.exception()
    # Futures taken before and after completion.
    future = dist.all_reduce(broken(length=200_000), async_op=True).get_future()
    fails(future.wait)
    work = dist.all_reduce(broken(), async_op=True)
    fails(work.wait)
    fails(work.get_future().wait)
    check(torch.float32, 1000)


def network():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(20, 1000), torch.nn.ReLU(), torch.nn.Linear(1000, 300))


def gradients(model, scale=1.0):
    """Gradients of this rank's inputs."""
    torch.manual_seed(10 + rank)
    model.zero_grad()
    (scale * model(torch.randn(16, 20)).square().mean()).backward()
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


def data_parallel():
    """DDP, which waits in C++, without and with the hook, and with unused parameters."""
    alone = network()
    mean = gradients(alone).double()
    dist.all_reduce(mean, op=AVG)
    for hooked in (False, True):
        for unused in (False, True):
            ddp = torch.nn.parallel.DistributedDataParallel(
                network(), bucket_cap_mb=0.01, find_unused_parameters=unused
            )
            if hooked:
                ddp.register_comm_hook(None, weir.torch.hook)
            for _ in range(3):
                before = summed()
                off = (gradients(ddp) - mean).abs().max().item()
                assert off <= 1e-6, off
                assert summed() > before
            # The first bucket of torch has a megabyte, whatever the setting.
            assert summed() - before >= 2, (before, summed())
            if by_gloo:
                continue
            fails(gradients, ddp, float("inf") if rank == 2 else 1.0)
            # Buckets whose sums are not needed any more are summed before this tensor.
            dist.all_reduce(torch.ones(1))


right()
shapes()
sizes_that_differ()
several_at_once()
not_finite()
data_parallel()
right()
print("right", flush=True)
# A barrier of Gloo: rank 0 hosts the store, and must leave last.
dist.barrier()
