"""Three ranks, whose tensors are split into pieces of a thousand values, at most three of them in flight. Exits with 0 if all
is right.

With the name of another test it runs that one so, and so many values may be under way as a second argument says.
"""

import runpy
import sys
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

import weir._order
import weir.torch

PIECE, UNDER_WAY = 1000, 3000
weir._order.PIECE, weir._order.UNDER_WAY = PIECE, UNDER_WAY

if len(sys.argv) > 1:
    weir._order.UNDER_WAY = int(sys.argv[2]) if len(sys.argv) > 2 else UNDER_WAY
    runpy.run_path(str(Path(__file__).with_name(sys.argv[1])), run_name="__main__")
    sys.exit()

dist.init_process_group("weir")
rank, size = dist.get_rank(), dist.get_world_size()
order = dist.group.WORLD._order
most, unwanted = 0, 0
give = weir._order.Piece.give


def watched(piece):
    global most, unwanted
    unwanted += piece.is_over
    give(piece)
    most = max(most, order._under_way + piece.values)


weir._order.Piece.give = watched


def counted(name):
    return weir.torch.counters()[name]


# One operation per piece, in the order of submission, whichever work is waited for first.
before, given = counted("operations"), []
for turn in range(8):
    given.append(torch.arange(10_500 + turn, dtype=torch.int32) * (rank + 1))
    given.append(torch.full((3,), turn, dtype=torch.int32))
works = [dist.all_reduce(tensor, async_op=True) for tensor in given]
for work in reversed(works):
    work.wait()
for turn in range(8):
    assert (given[2 * turn] == torch.arange(10_500 + turn) * 6).all(), turn
    assert (given[2 * turn + 1] == size * turn).all(), turn
assert counted("operations") - before == 8 * (11 + 1), counted("operations")
assert 0 < most <= UNDER_WAY, most
assert order._under_way == 0 and order._given == 0 and not order._held

# Bytes whose last word is incomplete, to a tensor that is not contiguous.
for shape in ((9_999,), (101, 77)):
    own = torch.arange(shape[0] * (shape[1:] or (1,))[0]).remainder(251).to(torch.uint8).reshape(shape)
    taken = own.clone() if rank == 1 else torch.zeros(shape, dtype=torch.uint8)
    taken = taken.t().contiguous().t() if len(shape) > 1 else taken
    dist.broadcast(taken, 1)
    assert (taken == own).all()

# A value that is not finite fails the sum of its tensor at all ranks; the next sum is right.
values = torch.ones(50_000)
values[2_500] = float("nan") if rank == 1 else 1.0
try:
    dist.all_reduce(values)
except RuntimeError as error:
    assert "finite" in str(error), error
else:
    raise AssertionError("NaN was summed")
assert (values[:2_000] == size).all() and values[2_500].isnan() == (rank == 1)
assert (values[3_000:] == 1).all()
# They were submitted in their turn, although no caller waits for them.
assert unwanted == 0 and 0 < most <= UNDER_WAY, (unwanted, most)
values = torch.ones(20_000)
dist.all_reduce(values)
assert (values == size).all()

# The small limit of a daemon with few open files.
order._most, tensors = 2, [torch.full((4_500,), turn, dtype=torch.int32) for turn in range(4)]
for work in [dist.all_reduce(tensor, async_op=True) for tensor in tensors]:
    assert order._given <= 2
    work.wait()
assert all((tensor == size * turn).all() for turn, tensor in enumerate(tensors))

# The terms of the first piece have the length of the whole tensor.
tensor = torch.ones(5_000 + (rank == 2))
try:
    dist.all_reduce(tensor)
except RuntimeError as error:
    assert "float32 x 5000, sum" in str(error) and "float32 x 5001, sum" in str(error), error
else:
    raise AssertionError("lengths that differ were summed")
assert (tensor == 1).all() and order._under_way == 0 and not order._held
dist.barrier()

# After a timeout, the rest of the tensor is not submitted, and nothing after it.
order = weir._order.Order(100)
asked = []


def silent(*_):
    raise TimeoutError("no sum")


class Silent:
    wait, is_over = silent, True


with order.operation() as operation:
    parts = [operation.add(PIECE, lambda: asked.append(1) or Silent()) for _ in range(10)]
try:
    parts[0].wait(0, 0, timedelta(seconds=1))
except TimeoutError as error:
    operation.end(error)
assert len(asked) == 4 and order._given == order._under_way == 0 and not order._held, (asked, order._given)
for again in (lambda: parts[9].check(), lambda: order.add(0, Silent)):
    try:
        again()
    except RuntimeError as error:
        assert "ended in the middle" in str(error), error
    else:
        raise AssertionError("given after a gap")
print("right", flush=True)
