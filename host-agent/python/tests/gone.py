"""Three ranks, of which the last is killed: the others soon get an error with its number. Exits with 0 if all is right."""

import os
import time

import torch
import torch.distributed as dist

import weir.torch  # noqa: F401: registers the backend

# For unreachable hosts; the host of the killed rank reports a closed port.
os.environ["WEIR_GONE_AFTER"] = "60"
dist.init_process_group("weir")
rank, size = dist.get_rank(), dist.get_world_size()
for _ in range(3):
    dist.all_reduce(torch.ones(1000))
if rank == size - 1:
    print("right", flush=True)
    os._exit(0)
begun = time.monotonic()
try:
    dist.all_reduce(torch.ones(1000))
except RuntimeError as error:
    took = time.monotonic() - begun
    assert f"rank {size - 1} is unreachable" in str(error), error
    assert took < 50, took
else:
    raise AssertionError("a sum without one rank")
# The next operation fails at once.
try:
    dist.all_reduce(torch.ones(1000))
except RuntimeError:
    print("right", flush=True)
# The other rank may still wait for its error, and must not find this one gone before the third.
time.sleep(3 if rank == 0 else 2)
os._exit(0)
