"""A rank of `cargo xtask bench allreduce --row ddp`: the training of examples/fashion.py with each of the named backends, in
turn.

A run is BACKEND:STRIDE. Rank r trains with part r · STRIDE mod ranks of the data, so another stride is the same training,
summed in another order: what differs is rounding. `alone` exchanges nothing. Prints a line of JSON for each run. Before the
first step all ranks' gradients are gathered, so that it is known how far the first mean is from the exact one.
"""

import hashlib
import json
import os
import time

import fashion
import numpy
import offloads
import torch
import torch.distributed as dist
import weir.torch
from torch.nn.parallel import DistributedDataParallel


def flat(tensors):
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def gradient(model):
    return flat(parameter.grad for parameter in model.parameters())


def exact_first(told, data, part):
    """The exact mean of the ranks' gradients of the first step."""
    model = fashion.network(told.hidden, told.seed)
    indexes = fashion.batches(len(data[0]), told.batch, part, told.ranks, told.seed)
    # With the rate 0 the weights do not change.
    next(fashion.train(model, data, indexes, 1, 0.0))
    own = gradient(model)
    all_ranks = [torch.empty_like(own) for _ in range(told.ranks)]
    dist.all_gather(all_ranks, own)
    return sum(one.double() for one in all_ranks) / told.ranks


def run(told, data, name, group):
    backend, _, stride = name.partition(":")
    # Gradients are gathered and weights broadcast by Gloo.
    offloads.set_for("gloo")
    part = told.rank * int(stride) % told.ranks
    exact = exact_first(told, data, part)
    plain = fashion.network(told.hidden, told.seed)
    model = plain if backend == "alone" else DistributedDataParallel(plain, process_group=group)
    offloads.set_for(backend)
    indexes = fashion.batches(len(data[0]), told.batch, part, told.ranks, told.seed)
    said = {"run": name, "part": part, "losses": [], "step_s": [], "values": len(exact)}
    dist.barrier()
    for loss, took in fashion.train(model, data, indexes, told.steps, told.lr):
        said["losses"].append(loss)
        said["step_s"].append(took)
        if len(said["losses"]) == 1 and backend != "alone":
            # DDP divides by 8 before the sum, which is exact, so the sum is the mean.
            said["first_off"] = (gradient(plain).double() - exact).abs().max().item()
            said["first_bound"] = weir.torch.error_bound() if backend == "weir" else None
    weights = flat(plain.parameters()).numpy()
    said["digest"] = hashlib.sha256(weights.tobytes()).hexdigest()
    if told.rank == 0:
        said["weights"] = f"{name.replace(':', '-')}.f32"
        weights.astype(numpy.dtype("<f4")).tofile(said["weights"])
    return said


def main():
    arguments = fashion.arguments()
    arguments.add_argument("--runs", required=True)
    arguments.add_argument("--rank", type=int, required=True)
    arguments.add_argument("--ranks", type=int, required=True)
    arguments.add_argument("--at", required=True)
    told = arguments.parse_args()
    torch.set_num_threads(1)
    data = fashion.load(told.data, "train")
    dist.init_process_group("gloo", init_method=f"tcp://{told.at}", rank=told.rank, world_size=told.ranks)
    groups = {"gloo": dist.group.WORLD, "weir": dist.new_group(backend="weir"), "alone": None}
    # After the measurement, since writing to a full pipe blocks.
    for said in [run(told, data, name, groups[name.partition(":")[0]]) for name in told.runs.split(",")]:
        print(json.dumps(said))
    print(json.dumps({"counters": weir.torch.counters()}), flush=True)
    # Rank 0 hosts the store, and must leave last.
    dist.barrier()
    if told.rank == 0:
        time.sleep(0.5)


if __name__ == "__main__":
    main()
    # Exit without waiting for torch's threads.
    os._exit(0)
