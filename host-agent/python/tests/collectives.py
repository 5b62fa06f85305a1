"""Three ranks: every collective except all_reduce, by the switch if it supports it, otherwise by Gloo. Exits with 0 if all is
right.

Which of both it is follows from whether there is a job, and whether it has a deadline.
"""

import os

import torch
import torch.distributed as dist

import weir
import weir.torch

dist.init_process_group("weir")
rank, size = dist.get_rank(), dist.get_world_size()
has_job = bool(weir.torch.counters())
by_switch = has_job and "WEIR_DEADLINE" not in os.environ
SUM, AVG, MAX = dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX
TYPES = (
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128),
)


def counted(what="operations"):
    return weir.torch.counters().get(what, 0)


class Goes:
    """The block makes this number of operations at the switch, if the job has one."""

    def __init__(self, operations):
        self._operations = operations

    def __enter__(self):
        self._before = counted()

    def __exit__(self, failed, *_):
        if failed is None:
            expected = self._operations if by_switch else 0
            assert counted() - self._before == expected, (counted() - self._before, expected)


def bits(tensor):
    """The tensor's bytes."""
    return bytes(tensor.detach().resolve_conj().resolve_neg().contiguous().flatten().view(torch.uint8).numpy())


def any_values(dtype, length, seed):
    """Random bytes, including those of NaN."""
    torch.manual_seed(seed)
    if dtype == torch.bool:
        return torch.randint(0, 2, (length,)).bool()
    width = torch.empty(0, dtype=dtype).element_size()
    return torch.randint(0, 256, (length * width,), dtype=torch.uint8).view(dtype)


def broadcasts():
    # Before torch 2, Gloo lacks some types.
    types = TYPES if by_switch else (torch.uint8, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64)
    for number, dtype in enumerate(types):
        for length in (0, 1, 3, 5, 1000, 40_001):
            root = (number + length) % size
            tensor = any_values(dtype, length, 100 * rank + number)
            expected = bits(any_values(dtype, length, 100 * root + number)) if length else b""
            with Goes(length > 0):
                dist.broadcast(tensor, root)
            assert length == 0 or bits(tensor) == expected, (dtype, length)
    # With any strides.
    whole = torch.zeros(40, 30)
    whole[:, ::2] = rank
    if by_switch:
        dist.broadcast(whole[:, ::2], 1)
        assert (whole[:, ::2] == 1).all() and (whole[:, 1::2] == 0).all(), whole
        conjugate = torch.full((5,), complex(0, rank)).conj()
        to_all = dist.BroadcastOptions()
        to_all.rootRank = 2
        # Torch 2 refuses it itself.
        dist.group.WORLD.broadcast([conjugate], to_all).wait()
        assert (conjugate == complex(0, -2)).all(), conjugate
        try:
            dist.broadcast(torch.ones(1).expand(5), 0)
        except ValueError as error:
            assert "clone it" in str(error), error
        else:
            raise AssertionError("bytes were put into one place")
    learned = torch.full((5,), float(rank), requires_grad=True)
    dist.broadcast(learned.data, 2)
    assert (learned == 2).all() and learned.requires_grad
    scalar = torch.tensor(float(rank))
    work = dist.broadcast(scalar, 1, async_op=True)
    work.wait()
    assert scalar == 1
    told = [{"of": rank}, "x" * (10 + rank)]
    dist.broadcast_object_list(told, 2)
    assert told == [{"of": 2}, "x" * 12], told


def what_a_broadcast_costs():
    """Every link carries the tensor once in each direction: the root sends values, the others zeros."""
    values = torch.full((1_000_000,), float(rank))
    before = counted("bytes")
    dist.broadcast(values, 0)
    sent = counted("bytes") - before
    assert (values == 0).all()
    # Headers, and a few probes.
    assert not by_switch or 1.02 <= sent / 4e6 <= 1.2, sent


def reduces():
    for dtype in (torch.float32, torch.float16, torch.int32, torch.int8, *([torch.bfloat16] if by_switch else [])):
        for op, factor in ((SUM, size * (size + 1) / 2), (AVG, (size + 1) / 2)):
            for root in range(size):
                base = torch.arange(600) % 7
                tensor = ((rank + 1) * base).to(dtype)
                before = bits(tensor)
                with Goes(1):
                    work = dist.reduce(tensor, root, op=op, async_op=True)
                    work.wait()
                if rank != root:
                    assert bits(tensor) == before, (dtype, op)
                    continue
                # Means of integers are truncated by Gloo as by the switch.
                off = (tensor.double() - factor * base).abs().max().item()
                bound = work.error_bound if by_switch else 0.0
                assert off <= bound, (dtype, op, off, bound)
    with Goes(0):
        tensor = torch.full((5,), rank, dtype=torch.int64)
        dist.reduce(tensor, 1, op=MAX)
        assert (tensor == (size - 1 if rank == 1 else rank)).all(), tensor
        tensor = torch.full((5,), float(rank), dtype=torch.float64)
        dist.reduce(tensor, 2, op=AVG)
        assert (tensor == ((size - 1) / 2 if rank == 2 else rank)).all(), tensor
    # Each rank has different strides.
    with Goes(2):
        matrix = torch.arange(12.0).view(3, 4)
        matrix = matrix.t().contiguous().t() if rank == 0 else matrix
        dist.reduce(matrix, 0)
        dist.reduce(matrix, 1)
    # Rank 0 has the expected sum.
    factor = (size, 2 * size - 1, 1)[rank]
    assert torch.allclose(matrix, factor * torch.arange(12.0).view(3, 4)), matrix


def not_finite():
    if not by_switch:
        return
    broken = torch.ones(700)
    broken[-1] = float("nan") if rank == 2 else 1.0
    before = bits(broken)
    if os.environ.get("WEIR_NON_FINITE") == "gloo":
        dist.reduce(broken, 0, op=AVG)
        assert rank == 0 or bits(broken) == before
        assert rank != 0 or broken[:-1].eq(1).all() and broken[-1].isnan(), broken
        return
    try:
        dist.reduce(broken, 0)
    except weir.NonFinite as error:
        assert "not finite" in str(error), error
    else:
        raise AssertionError("a value that is not finite was summed")
    assert bits(broken) == before
    part = torch.zeros(2)
    try:
        dist.reduce_scatter(part, [torch.full((2,), float("inf") if rank == 1 else 1.0) for _ in range(size)])
    except weir.NonFinite as error:
        assert "not finite" in str(error), error
    else:
        raise AssertionError("infinity was summed, and a part of it taken")


def refused(what, *arguments):
    try:
        what(*arguments)
    except ValueError as error:
        assert "weir: " in str(error), error
    else:
        raise AssertionError("it was taken")


def gathers():
    for dtype in (torch.float32, torch.int64):
        own = torch.arange(6).view(2, 3).to(dtype) + 10 * rank
        expected = torch.stack([torch.arange(6).view(2, 3).to(dtype) + 10 * of for of in range(size)])
        row = torch.zeros(2 * size, 3, dtype=dtype)
        dist.all_gather_into_tensor(row, own)
        assert torch.equal(row, expected.view(2 * size, 3)), row
        # Both are not contiguous.
        column = torch.zeros(3, 2 * size, dtype=dtype).t()
        dist.all_gather_into_tensor(column, own.t().contiguous().t())
        assert torch.equal(column, row), column
        parts = [torch.zeros(2, 3, dtype=dtype) for _ in range(size)]
        dist.all_gather(parts, own)
        assert torch.equal(torch.stack(parts), expected), parts
        parts = [torch.zeros(2, 3, dtype=dtype) for _ in range(size)] if rank == 1 else None
        dist.gather(own, parts, dst=1)
        assert rank != 1 or torch.equal(torch.stack(parts), expected), parts
        part = torch.zeros(2, 3, dtype=dtype)
        dist.scatter(part, list(expected.unbind()) if rank == 2 else None, src=2)
        assert torch.equal(part, own), part
    refused(dist.all_gather_into_tensor, torch.zeros(7), torch.zeros(2))
    refused(dist.all_gather_into_tensor, torch.zeros(2 * size), torch.zeros(2).int())


def scattered_sums():
    for dtype in (torch.float32, torch.int32, torch.float64):
        of_switch = dtype != torch.float64
        for op, factor in ((SUM, size * (size + 1) / 2), (AVG, (size + 1) / 2)):
            whole = torch.arange(400 * size).view(2 * size, 200).to(dtype) % 50 * (rank + 1)
            given = bits(whole)
            expected = factor * (torch.arange(400 * size).double() % 50).view(size, 2, 200)[rank]
            part = torch.zeros(2, 200, dtype=dtype)
            before = counted()
            dist.reduce_scatter_tensor(part, whole, op=op)
            assert torch.allclose(part.double(), expected, rtol=1e-6), (dtype, op)
            assert bits(whole) == given
            part.zero_()
            dist.reduce_scatter(part, list(whole.view(size, 2, 200).unbind()), op=op)
            assert torch.allclose(part.double(), expected, rtol=1e-6), (dtype, op)
            # These operations are all_reduces, which wait until the deadline.
            assert counted() - before == (2 if has_job and of_switch else 0)
    largest = torch.zeros(2)
    dist.reduce_scatter_tensor(largest, torch.full((2 * size,), float(rank)), op=MAX)
    assert (largest == size - 1).all(), largest
    refused(dist.reduce_scatter_tensor, torch.zeros(2), torch.zeros(7))
    # The parts have different sizes, including 0, and any strides.
    for dtype in (torch.float32, torch.int64):
        for rows in ([2, 3, 4], [0, 5, 1], [300, 1, 0]):
            given = [torch.full((2, length), (rank + 1) * (to + 1)).to(dtype).t() for to, length in enumerate(rows)]
            whole = torch.full((rows[rank], 4), -1).to(dtype)
            dist.reduce_scatter(whole[:, ::2], given)
            expected = (rank + 1) * size * (size + 1) / 2
            assert (whole[:, ::2] == expected).all() and (whole[:, 1::2] == -1).all(), (dtype, rows, whole)
    parts = [torch.zeros(2) for _ in range(size)]
    refused(dist.reduce_scatter, torch.zeros(2), parts[1:])
    refused(dist.reduce_scatter, torch.zeros(3), parts)
    refused(dist.reduce_scatter, torch.zeros(1).expand(2), parts)


def all_to_all():
    taken = torch.zeros(2 * size)
    dist.all_to_all_single(taken, torch.full((2 * size,), float(rank)))
    assert torch.equal(taken, torch.arange(size).float().repeat_interleave(2)), taken
    # Each rank sends r + 1 values to rank r.
    given = torch.full((size * (size + 1) // 2,), float(rank))
    taken = torch.zeros(size * (rank + 1))
    dist.all_to_all_single(taken, given, [rank + 1] * size, list(range(1, size + 1)))
    assert torch.equal(taken, torch.arange(size).float().repeat_interleave(rank + 1)), taken
    given = [torch.full((to + 1, 2), 10 * rank + to) for to in range(size)]
    taken = [torch.zeros(2, rank + 1, dtype=torch.int64).t() for _ in range(size)]
    dist.all_to_all(taken, given)
    for of, part in enumerate(taken):
        assert (part == 10 * of + rank).all(), taken
    refused(dist.all_to_all, taken[:-1], given[:-1])


def point_to_point():
    if rank == 0:
        dist.send(torch.arange(5), 1, tag=3)
        told = torch.zeros(1)
        assert dist.recv(told) == 2 and told == 7
    elif rank == 1:
        told = torch.zeros(5, dtype=torch.int64)
        dist.recv(told, 0, tag=3)
        assert torch.equal(told, torch.arange(5))
    else:
        dist.send(torch.full((1,), 7.0), 0)


broadcasts()
what_a_broadcast_costs()
reduces()
not_finite()
gathers()
scattered_sums()
all_to_all()
point_to_point()
print("right", flush=True)
# Rank 0 hosts the store, and must leave last.
dist.barrier()
