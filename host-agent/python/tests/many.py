"""Three ranks, of which the first submits more operations than a daemon accepts before any has sums. Exits with 0 if all is
right."""

import threading
import time

import torch
import torch.distributed as dist

import weir.torch

MANY = 5000

dist.init_process_group("weir")
rank, size = dist.get_rank(), dist.get_world_size()
store = dist.distributed_c10d._get_default_store()
tensors = [torch.full((1,), turn, dtype=torch.int32) for turn in range(MANY)]
works = []


def give():
    works.extend(dist.all_reduce(tensor, async_op=True) for tensor in tensors)


if rank == 0:
    thread = threading.Thread(target=give)
    thread.start()
    # It submits all, or waits: the other ranks have submitted none yet.
    before = -1
    while before < len(works):
        before = len(works)
        time.sleep(0.2)
    # Other threads continue, and the status of the rank is available.
    assert weir.torch.counters()["operations"] == 0
    store.set("go", "")
    thread.join()
else:
    store.wait(["go"])
    give()
for turn, (tensor, work) in enumerate(zip(tensors, works)):
    work.wait()
    assert tensor.item() == size * turn, turn
assert weir.torch.counters()["operations"] == MANY
dist.barrier()
print("right", flush=True)
