"""Ranks of one job, started twice, the first time left in the middle. Exits with 0 if all is right."""

import os
import subprocess
import sys

import torch
import torch.distributed as dist


def use(turn):
    import weir.torch  # noqa: F401: registers the backend

    dist.init_process_group("weir")
    rank, size = dist.get_rank(), dist.get_world_size()
    for length in (1, 700, 90_000):
        tensor = torch.full((length,), rank + 1, dtype=torch.int32)
        dist.all_reduce(tensor)
        assert (tensor == size * (size + 1) // 2).all()
    if turn == 0 and rank > 0:
        # Rank 0 never comes: what these send stays in the switch's cells.
        dist.all_reduce(torch.ones(5000), async_op=True)
    # By Gloo: rank 0, which holds the store, leaves last.
    dist.barrier()
    os._exit(0)


if len(sys.argv) > 1:
    use(int(sys.argv[1]))
for turn in range(2):
    port = str(int(os.environ["MASTER_PORT"]) + turn)
    subprocess.run([sys.executable, __file__, str(turn)], check=True, env={**os.environ, "MASTER_PORT": port})
print("right", flush=True)
