"""Three ranks: functions of torch 2 that 1.13 lacks. Each works, or is refused with a reason. Exits with 0 if all is right.

The group is made as torch 2 may make it: its device is named, and bound.
"""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard

import weir.torch

dist.init_process_group("cpu:weir", device_id=torch.device("cpu:0"))
rank, size = dist.get_rank(), dist.get_world_size()
group = dist.group.WORLD
SUM, AVG = dist.ReduceOp.SUM, dist.ReduceOp.AVG
has_job = bool(weir.torch.counters())
# The sum of 1, 2 and 3.
of_all = size * (size + 1) / 2


class Goes:
    """The block makes this number of operations at the switch, if there is a job."""

    def __init__(self, operations):
        self._operations = operations if has_job else 0

    def __enter__(self):
        self._before = weir.torch.counters().get("operations", 0)

    def __exit__(self, failed, *_):
        if failed is None:
            made = weir.torch.counters().get("operations", 0) - self._before
            assert made == self._operations, (made, self._operations)


def own(*shape):
    return torch.full(shape, rank + 1.0)


def close(tensor, value):
    assert torch.allclose(tensor, torch.as_tensor(value).expand_as(tensor), rtol=1e-6), (tensor, value)


def raises(told, what, *arguments, **named):
    try:
        what(*arguments, **named)
    except (RuntimeError, ValueError, NotImplementedError) as error:
        assert told in str(error), error
    else:
        raise AssertionError(f"{what} was done")


def the_group():
    assert dist.get_backend_config() == "cpu:weir", dist.get_backend_config()
    assert group.group_name and torch._C._distributed_c10d._resolve_process_group(group.group_name) is group
    tensor = own(1000)
    with Goes(1):
        dist.all_reduce(tensor)
    close(tensor, of_all)
    # `dcp.async_save` requires it.
    assert torch.device("cpu") in group._device_types
    # This is torch's own message.
    raises("does not support splitting", dist.split_group, split_ranks=[[0, 1, 2]])
    raises("monitored_barrier", dist.monitored_barrier)


def one_tensor():
    for gather in (dist.all_gather_into_tensor, getattr(dist, "all_gather_single", dist.all_gather_into_tensor)):
        row = torch.zeros(size, 4)
        gather(row, own(4))
        close(row, torch.arange(1.0, size + 1)[:, None])
    for scatter in (dist.reduce_scatter_tensor, getattr(dist, "reduce_scatter_single", dist.reduce_scatter_tensor)):
        part = torch.zeros(4)
        with Goes(1):
            scatter(part, own(4 * size))
        close(part, of_all)
    taken = torch.zeros(size)
    dist.all_to_all_single(taken, own(size))
    close(taken, torch.arange(1.0, size + 1))
    gather = getattr(dist, "gather_single", None)
    if gather is not None:
        row = torch.zeros(2 * size) if rank == 1 else None
        gather(own(2), row, dst=1)
        assert rank != 1 or row.tolist() == [1, 1, 2, 2, 3, 3], row


def coalesced():
    many = [own(300), own(7)]
    with Goes(2), dist._coalescing_manager():
        for tensor in many:
            dist.all_reduce(tensor)
    for tensor in many:
        close(tensor, of_all)
    rows = [torch.zeros(size, 3), torch.zeros(size, 5)]
    with dist._coalescing_manager(async_ops=True) as works:
        for row in rows:
            dist.all_gather_into_tensor(row, own(row.shape[1]))
    works.wait()
    for row in rows:
        close(row, torch.arange(1.0, size + 1)[:, None])
    parts = [torch.zeros(3), torch.zeros(5)]
    with Goes(2), dist._coalescing_manager():
        for part in parts:
            dist.reduce_scatter_tensor(part, own(size * part.numel()), op=AVG)
    for part in parts:
        close(part, of_all / size)


def to_each_other():
    taken = torch.zeros(4)
    to, of = (rank + 1) % size, (rank - 1) % size
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, own(4), to), dist.P2POp(dist.irecv, taken, of)]):
        work.wait()
    close(taken, of + 1.0)
    told = [None] * size
    dist.all_gather_object(told, {"of": rank})
    assert told == [{"of": of} for of in range(size)], told


def functions():
    """Functions that compiled code and DTensor call in C++, by the group's name."""
    with Goes(1):
        close(functional.all_reduce(own(50), "sum", group), of_all)
    with Goes(1):
        close(functional.all_reduce(own(50), "avg", group), of_all / size)
    with Goes(2):
        for tensor in functional.all_reduce_coalesced([own(5), own(6)], "sum", group):
            close(tensor, of_all)
    row = functional.all_gather_tensor(own(1, 4), 0, group)
    close(row, torch.arange(1.0, size + 1)[:, None])
    for row in functional.all_gather_into_tensor_coalesced([own(1, 4), own(1, 2)], group):
        close(row, torch.arange(1.0, size + 1)[:, None])
    with Goes(1):
        close(functional.reduce_scatter_tensor(own(size, 4), "sum", 0, group), of_all)
    with Goes(2):
        given = [own(size, 4), own(size, 2)]
        for part in functional.reduce_scatter_tensor_coalesced(given, "sum", [0, 0], group):
            close(part, of_all)
    close(functional.all_to_all_single(own(size), None, None, group), torch.arange(1.0, size + 1))
    with Goes(1):
        close(functional.broadcast(own(9), 1, group), 2.0)


def meshes():
    mesh = init_device_mesh("cpu", (size,))
    with Goes(1):
        whole = DTensor.from_local(own(4, 4), mesh, [torch.distributed.tensor.Partial()]).redistribute(mesh, [Replicate()])
    close(whole.to_local(), of_all)
    parts = DTensor.from_local(own(2, 4), mesh, [Shard(0)])
    close(parts.full_tensor(), torch.arange(1.0, size + 1).repeat_interleave(2)[:, None])
    # Gloo serves a group of fewer ranks than the job has.
    pair = dist.new_group([0, 1])
    if rank < 2:
        tensor = own(3)
        with Goes(0):
            dist.all_reduce(tensor, group=pair)
        close(tensor, 3.0)


for part in (the_group, one_tensor, coalesced, to_each_other, functions, meshes):
    part()
print("right", flush=True)
# Rank 0 hosts the store, and must leave last.
dist.barrier()
