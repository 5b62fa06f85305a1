"""Three ranks: weir executes or refuses a call as Gloo does, with equal values or the same kind of error. Exits with 0 if all
is right.

Gloo takes no strides: its values are those of tensors in a row. What shares memory with itself weir refuses, whatever Gloo
does.
"""

import itertools

import torch
import torch.distributed as dist

import weir.torch  # noqa: F401: registers the backend

_C10D = torch._C._distributed_c10d
UNTOUCHED = 77

dist.init_process_group("weir")
rank, size = dist.get_rank(), dist.get_world_size()
WEIR, GLOO = dist.group.WORLD, dist.new_group(backend="gloo")


def options(kind, **values):
    made = kind()
    for name, value in values.items():
        setattr(made, name, value)
    return made


# Layouts of a tensor of 6 x 2: the shape of the storage, and the view of it.
LAYOUTS = {
    "row": (lambda dtype: torch.full((6, 2), UNTOUCHED, dtype=dtype), lambda base: base),
    "column": (lambda dtype: torch.full((6, 2, 3), UNTOUCHED, dtype=dtype), lambda base: base[:, :, 0]),
    "transposed": (lambda dtype: torch.full((2, 6), UNTOUCHED, dtype=dtype), lambda base: base.t()),
    "gaps": (lambda dtype: torch.full((12, 5), UNTOUCHED, dtype=dtype), lambda base: base[::2, 1::2]),
    "woven": (lambda dtype: torch.full((14,), UNTOUCHED, dtype=dtype), lambda base: base.as_strided((6, 2), (2, 3))),
}
SHARED = {
    "expanded": lambda dtype: torch.ones(1, 2, dtype=dtype).expand(6, 2),
    "one for all": lambda dtype: torch.ones((), dtype=dtype).expand(6, 2),
    "as_strided": lambda dtype: torch.ones(7, dtype=dtype).as_strided((6, 2), (1, 1)),
    "windows": lambda dtype: torch.ones(14, dtype=dtype).unfold(0, 4, 2)[:, ::2],
}


class Place:
    """Creates tensors of one type and layout."""

    def __init__(self, layout, dtype):
        self._layout, self._dtype, self._bases = layout, dtype, []

    def __call__(self, seed):
        if self._layout in SHARED:
            return SHARED[self._layout](self._dtype)
        make, view = LAYOUTS[self._layout]
        base = make(self._dtype)
        tensor = view(base)
        tensor.copy_((torch.arange(12).view(6, 2) * 7 + 3 * seed) % 19 - 4)
        self._bases.append((base, tensor))
        return tensor

    def are_untouched(self):
        """Checks that the memory around the tensors is unchanged."""
        for base, tensor in self._bases:
            tensor.fill_(UNTOUCHED)
            assert (base == UNTOUCHED).all(), (self._layout, base)


def all_reduce(group, place, op=dist.ReduceOp.SUM):
    tensor = place(rank)
    group.allreduce([tensor], options(dist.AllreduceOptions, reduceOp=op)).wait()
    return [tensor]


def largest(group, place):
    return all_reduce(group, place, dist.ReduceOp.MAX)


def reduce(group, place):
    tensor = place(rank)
    group.reduce([tensor], options(_C10D.ReduceOptions, rootRank=1)).wait()
    # Gloo leaves undefined values at other ranks.
    return [tensor] if rank == 1 else []


def broadcast(group, place):
    tensor = place(rank)
    group.broadcast([tensor], options(dist.BroadcastOptions, rootRank=2)).wait()
    return [tensor]


def all_gather(group, place):
    parts = [place(9) for _ in range(size)]
    group.allgather([parts], [place(rank)]).wait()
    return parts


def gather(group, place):
    parts = [place(9) for _ in range(size)] if rank == 1 else []
    group.gather([parts] if parts else [], [place(rank)], options(_C10D.GatherOptions, rootRank=1)).wait()
    return parts


def scatter(group, place):
    part = place(9)
    given = [[place(10 + to) for to in range(size)]] if rank == 0 else []
    group.scatter([part], given, options(_C10D.ScatterOptions, rootRank=0)).wait()
    return [part]


def all_to_all_single(group, place):
    taken = place(9)
    group.alltoall_base(taken, place(rank), [], []).wait()
    return [taken]


def uneven(group, place):
    taken = place(9)
    given_rows = [(to - rank) % size + 1 for to in range(size)]
    taken_rows = [(rank - of) % size + 1 for of in range(size)]
    group.alltoall_base(taken, place(rank), taken_rows, given_rows).wait()
    return [taken]


def ring(group, place):
    taken, to, source = place(9), (rank + 1) % size, (rank - 1) % size
    # The receive is pending, and later operations complete.
    received = group.recv([taken], source, 5)
    group.barrier().wait()
    sent = group.send([place(rank)], to, 5)
    received.wait()
    sent.wait()
    return [taken]


OPERATIONS = (all_reduce, largest, reduce, broadcast, all_gather, gather, scatter, all_to_all_single, uneven, ring)
TYPES = (torch.float64, torch.int64, torch.float32, torch.int32, torch.uint8, torch.float16)
T = torch.ones


def call(name, *given, kind=None, **values):
    opts = [] if kind is None else [options(kind, **values)]
    return name, lambda group: getattr(group, name)(*given, *opts).wait()


# The same invalid arguments at all ranks.
WRONG = (
    *(call("broadcast", [T(4)], kind=dist.BroadcastOptions, rootRank=root) for root in (size, size + 2, -1, -70_000, 70_000)),
    *(call("broadcast", [T(4).double()], kind=dist.BroadcastOptions, rootRank=root) for root in (size, -1)),
    call("broadcast", [], kind=dist.BroadcastOptions),
    call("broadcast", [T(4)], kind=dist.BroadcastOptions, rootTensor=1),
    *(call("reduce", [T(4)], kind=_C10D.ReduceOptions, rootRank=root) for root in (size, size + 2, -1)),
    *(call("reduce", [T(4).long()], kind=_C10D.ReduceOptions, rootRank=root) for root in (size, -1)),
    call("reduce", [], kind=_C10D.ReduceOptions),
    *(call("gather", [], [T(4)], kind=_C10D.GatherOptions, rootRank=root) for root in (size, -1)),
    *(call("scatter", [T(4)], [], kind=_C10D.ScatterOptions, rootRank=root) for root in (size, -1)),
    call("allreduce", [], kind=dist.AllreduceOptions),
    call("allreduce", [T(4)], kind=dist.AllreduceOptions, reduceOp=dist.ReduceOp.BAND),
    call("allgather", [[T(4)] * (size - 1)], [T(4)], kind=_C10D.AllgatherOptions),
    call("allgather", [[T(4) for _ in range(size)]], [T(3)], kind=_C10D.AllgatherOptions),
    call("allgather", [[T(4) for _ in range(size)]], [T(4).long()], kind=_C10D.AllgatherOptions),
    call("allgather", [], [T(4)], kind=_C10D.AllgatherOptions),
    call("alltoall_base", T(4), T(4), [], []),
    call("alltoall_base", T(6), T(6), [3, 3], [2, 2, 2]),
    call("alltoall_base", T(6), T(6), [2, 2, 2], [2, 2, 3]),
)


def outcome(act, *given):
    """Result of a call: values, or its error."""
    try:
        return "done", act(*given)
    except Exception as error:  # noqa: BLE001: that is what is compared
        return "refused", error


def lives():
    tensor = torch.full((300,), rank + 1.0)
    dist.all_reduce(tensor)
    assert (tensor == size * (size + 1) / 2).all(), tensor
    tensor = torch.full((3,), float(rank), dtype=torch.float64)
    dist.broadcast(tensor, 1)
    assert (tensor == 1).all(), tensor


calls = 0
for number, (operation, layout) in enumerate(itertools.product(OPERATIONS, LAYOUTS)):
    dtype = TYPES[number % len(TYPES)]
    place = Place(layout, dtype)
    kind, own = outcome(operation, WEIR, place)
    gloo_kind, expected = outcome(operation, GLOO, Place("row", dtype))
    told = (operation.__name__, layout, dtype, own, expected)
    assert kind == gloo_kind == "done", told
    assert len(own) == len(expected) and all(map(torch.equal, own, expected)), told
    place.are_untouched()
    calls += 1
for number, (operation, layout) in enumerate(itertools.product(OPERATIONS, SHARED)):
    _, error = outcome(operation, WEIR, Place(layout, TYPES[number % len(TYPES)]))
    assert isinstance(error, ValueError) and "clone it" in str(error), (operation.__name__, layout, error)
    calls += 1
lives()
for name, act in WRONG:
    own, expected = outcome(act, WEIR), outcome(act, GLOO)
    # For an empty list torch 2 raises `NotImplementedError`, which is a `RuntimeError`.
    kinds = [kind for kind in (RuntimeError, ValueError, TypeError) if isinstance(expected[1], kind)]
    assert own[0] == expected[0] == "refused" and isinstance(own[1], tuple(kinds)), (name, own, expected)
    calls += 1
    lives()
# Before torch 2, Gloo accepts these, for several devices of a rank.
MANY = (
    call("allreduce", [T(4), T(4)], kind=dist.AllreduceOptions),
    call("reduce", [T(4), T(4)], kind=_C10D.ReduceOptions, rootRank=1),
    *(call("broadcast", [T(4), T(4)], kind=dist.BroadcastOptions, rootRank=2, rootTensor=of_list) for of_list in (0, 1)),
    call("reduce_scatter", [T(2), T(2)], [[T(2)] * size] * 2, kind=_C10D.ReduceScatterOptions),
)
for name, act in MANY:
    kind, error = outcome(act, WEIR)
    assert kind == "refused" and isinstance(error, ValueError), (name, error)
    assert "takes one" in str(error), (name, error)
    calls += 1
lives()
assert calls >= 60, calls
print("right", flush=True)
# Rank 0 hosts the store, and must leave last.
dist.barrier()
