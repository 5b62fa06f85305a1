"""Three ranks: the first leaves in the middle of a sum, and creates the group again. Exits with 0 if all is right."""

import os

import torch
import torch.distributed as dist

import weir.torch

dist.init_process_group("weir")
rank, size = dist.get_rank(), dist.get_world_size()
dist.all_reduce(torch.ones(1000))
port = int(os.environ["MASTER_PORT"])
for turn in range(1, 4):
    if rank == 0:
        # The other ranks do not submit it.
        works = [dist.all_reduce(torch.ones(1000), async_op=True) for _ in range(3)]
        dist.destroy_process_group()
        weir.torch._leave_job()
        for work in works:
            try:
                work.wait()
            except RuntimeError as error:
                assert str(error) == "the rank was closed", error
            else:
                raise AssertionError("a sum of one rank of three")
        assert weir.torch.counters() == {}
    else:
        dist.destroy_process_group()
    os.environ["MASTER_PORT"] = str(port + turn)
    # The same ranks of the same job, on the same interface.
    dist.init_process_group("weir")
    tensor = torch.full((700,), rank + 1, dtype=torch.int32)
    dist.all_reduce(tensor)
    assert bool((tensor == size * (size + 1) // 2).all()), tensor
# A barrier of Gloo: rank 0 hosts the store, and must leave last.
dist.barrier()
print("right", flush=True)
