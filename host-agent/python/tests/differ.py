"""Three ranks, of which one submits a different operation: all get an error with its terms. Exits with 0 if all is right."""

import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist

# Timeout of a rank that is not notified.
SILENCE_S = 60
SUM, AVG = dist.ReduceOp.SUM, dist.ReduceOp.AVG
# Operations of two ranks, and of the last one: type, length and reduction; for a reduce_scatter the lengths of its parts.
CASES = (
    ((torch.float32, 1000, SUM), (torch.float32, 1001, SUM)),
    ((torch.float32, 1000, SUM), (torch.int32, 1000, SUM)),
    ((torch.float32, 1000, SUM), (torch.float32, 1000, AVG)),
    ((torch.float32, 1000, SUM), (torch.float32, 500_000, SUM)),
    ((torch.float16, 500_000, AVG), (torch.bfloat16, 500_000, AVG)),
    ((torch.float32, (2, 2, 2), SUM), (torch.float32, (1, 3, 2), SUM)),
    ((torch.int32, (1, 3, 2), SUM), (torch.int32, (1, 2, 3), SUM)),
)


def said(dtype, length, op, part):
    name = str(dtype).removeprefix("torch.")
    did = "sum" if op == SUM else "average"
    return f"{name} x {length}, {did}" if part is None else f"{name} x {length[part]}, {did} to rank {part}"


def use(case):
    import weir.torch  # noqa: F401: registers the backend

    os.environ["WEIR_GONE_AFTER"] = str(SILENCE_S)
    dist.init_process_group("weir", timeout=timedelta(seconds=SILENCE_S))
    rank, size = dist.get_rank(), dist.get_world_size()
    for _ in range(12):
        dist.all_reduce(torch.ones(1000))
    usual, other = CASES[case]
    own, others = (other, usual) if rank == size - 1 else (usual, other)
    dtype, length, op = own
    # The first different part of a reduce_scatter.
    part = None if isinstance(length, int) else next(at for at in range(size) if usual[1][at] != other[1][at])
    tensor = torch.ones(length if part is None else length[rank], dtype=dtype)
    begun = time.monotonic()
    # The next operation fails with the same reason.
    for _ in range(2):
        try:
            if part is None:
                dist.all_reduce(tensor, op=op)
            else:
                dist.reduce_scatter(tensor, [torch.ones(of, dtype=dtype) for of in length], op=op)
        except RuntimeError as error:
            told = f"operation {13 + (part or 0)}: the ranks submitted different operations: this rank {said(*own, part)}; rank "
            assert str(error).startswith(told) and str(error).endswith(said(*others, part)), error
        else:
            raise AssertionError("what differs was summed")
        # The tensor is unchanged.
        assert (tensor == 1).all()
    took = time.monotonic() - begun
    assert took < SILENCE_S - 10, took
    # A barrier of Gloo: rank 0 hosts the store, and must leave last.
    dist.barrier()
    os._exit(0)


for turn in range(len(CASES)):
    process = os.fork()
    if process == 0:
        os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + turn)
        use(turn)
    assert os.waitpid(process, 0)[1] == 0, CASES[turn]
print("right", flush=True)
