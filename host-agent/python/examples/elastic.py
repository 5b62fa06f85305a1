"""DistributedDataParallel that continues after the death of a rank, with snapshots: run it with `torchrun --max-restarts`.

    torchrun --nnodes 3 --node-rank 0 --nproc-per-node 1 --max-restarts 3 \\
        --master-addr a --master-port 29500 elastic.py FOLDER [STEPS]

FOLDER is this host's own. When a rank dies, weir tells the others, which end; torchrun starts all of them again, and they begin
from the newest snapshot that one of them has. With the same sums the weights are the same to the bit as if nobody had died:
that wants sums that are longer than the window, and buckets that DDP does not arrange anew.
"""

import hashlib
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import weir.torch  # noqa: F401: registers the backend

EVERY = 10

folder = Path(sys.argv[1])
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 30
snapshot = folder / "snapshot.pt"


def save(step, model, optimizer):
    """Writes a snapshot atomically, since a rank may die here, too."""
    written = snapshot.with_suffix(".new")
    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, written)
    os.replace(written, snapshot)


def resume(model, optimizer):
    """The step to continue with: that of the newest snapshot of any rank, which that rank broadcasts."""
    own = torch.load(snapshot) if snapshot.exists() else {"step": 0}
    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, own["step"])
    newest = max(found)
    if newest > 0:
        told = [own]
        dist.broadcast_object_list(told, src=found.index(newest))
        model.load_state_dict(told[0]["model"])
        optimizer.load_state_dict(told[0]["optimizer"])
    return newest


folder.mkdir(parents=True, exist_ok=True)
dist.init_process_group("weir")
rank, size = dist.get_rank(), dist.get_world_size()

torch.manual_seed(1)
inputs = torch.randn(1024, 64)
labels = (inputs @ torch.randn(64, 10)).argmax(dim=1)
mine, ours = inputs[rank::size], labels[rank::size]
model = torch.nn.Sequential(torch.nn.Linear(64, 1000), torch.nn.ReLU(), torch.nn.Linear(1000, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
begin = resume(model, optimizer)
print(f"begins with step {begin}", flush=True)
# The buckets are not rearranged: after a restart, different values would share exponents.
ddp = DistributedDataParallel(model, find_unused_parameters=True)

for step in range(begin, steps):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(ddp(mine), ours)
    loss.backward()
    optimizer.step()
    if (step + 1) % EVERY == 0:
        save(step + 1, model, optimizer)

bits = b"".join(parameter.detach().numpy().tobytes() for parameter in model.parameters())
print(f"loss {loss.item():.6f}", flush=True)
# A number that JSON represents exactly.
print(f"weights {int.from_bytes(hashlib.sha256(bits).digest()[:6], 'big')}", flush=True)
# Without torchrun's store, rank 0 hosts one, and must leave last.
dist.barrier()
