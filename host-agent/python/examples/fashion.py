"""DistributedDataParallel on Fashion-MNIST, 60,000 pictures of clothes, with a backend of your choice.

    torchrun --nproc-per-node 8 fashion.py --backend gloo
    torchrun --nnodes 8 --node-rank N … fashion.py --backend weir

The pictures are Debian's package `dataset-fashion-mnist` (MIT), or the four files of that name in a folder of yours
(`--data`). Each rank prints a line of JSON a step: its loss, and how long the step took. In the end each tries its part of the
pictures that were not trained with, and rank 0 prints the accuracy over all. The same seed gives the same batches and the same
first weights, so runs by two backends can be compared step by step.
"""

import argparse
import gzip
import json
import os
import sys
import time

import numpy
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

DEBIAN = "/usr/share/datasets/fashion-mnist"
PIXELS, CLASSES = 28 * 28, 10


def arguments():
    told = argparse.ArgumentParser(description="Train on Fashion-MNIST with DDP.")
    told.add_argument("--backend", default="weir", help="of torch.distributed (weir)")
    told.add_argument("--data", default=DEBIAN, help=f"the folder with the four files ({DEBIAN})")
    told.add_argument("--steps", type=int, default=200)
    told.add_argument("--batch", type=int, default=32, help="pictures a rank and a step (32)")
    told.add_argument("--hidden", type=int, default=512, help="width of the layer between: 795 floats of gradient each (512)")
    told.add_argument("--lr", type=float, default=0.1)
    told.add_argument("--seed", type=int, default=1)
    return told


def load(folder, name):
    """A part of the data set, `train` or `t10k`: pictures as rows of values from 0 to 1, and their labels."""
    images, labels = (idx(os.path.join(folder, f"{name}-{of}-ubyte")) for of in ("images-idx3", "labels-idx1"))
    if len(images) != len(labels):
        raise SystemExit(f"{folder}: {len(images)} pictures and {len(labels)} labels of {name}")
    pictures = torch.from_numpy(images.reshape(len(images), PIXELS).astype(numpy.float32) / 255)
    return pictures, torch.from_numpy(labels.astype(numpy.int64))


def idx(path):
    """Reads an array of bytes in MNIST's file format: 0, 0, the type 8, the number of dimensions, the dimensions, the values."""
    found = next((name for name in (f"{path}.gz", path) if os.path.exists(name)), None)
    if found is None:
        raise SystemExit(f"{path}.gz is missing. On Debian: apt-get install dataset-fashion-mnist. Elsewhere: --data FOLDER")
    with gzip.open(found) if found.endswith(".gz") else open(found, "rb") as file:
        read = file.read()
    dimensions = read[3] if read[:3] == b"\0\0\x08" else 0
    begin = 4 + 4 * dimensions
    shape = numpy.frombuffer(read[4:begin], dtype=">u4").astype(int)
    if dimensions == 0 or len(shape) != dimensions or len(read) != begin + shape.prod():
        raise SystemExit(f"{found} is no idx file of bytes")
    return numpy.frombuffer(read, dtype=numpy.uint8, offset=begin).reshape(shape)


def network(hidden, seed):
    torch.manual_seed(seed)
    layers = torch.nn.Linear(PIXELS, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, CLASSES)
    return torch.nn.Sequential(*layers)


def batches(count, batch, part, parts, seed):
    """Yields endlessly the indices of the pictures of one part in each step; they depend on the part only."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(count, generator=generator)
        for begin in range(0, count - batch * parts + 1, batch * parts):
            yield order[begin + batch * part : begin + batch * (part + 1)]


def train(model, data, indexes, steps, lr):
    """Makes steps of SGD; yields for each its loss before the update, and its duration in seconds."""
    pictures, labels = data
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for _, mine in zip(range(steps), indexes):
        begun = time.monotonic()
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(pictures[mine]), labels[mine])
        loss.backward()
        optimizer.step()
        yield loss.item(), time.monotonic() - begun


def main():
    told = arguments().parse_args()
    torch.set_num_threads(1)
    # Before the first collective.
    data, held_out = load(told.data, "train"), load(told.data, "t10k")
    if told.backend == "weir":
        import weir.torch  # noqa: F401: registers the backend
    dist.init_process_group(told.backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    if told.batch < 1 or told.batch * size > len(data[0]):
        sys.exit(f"{size} ranks with {told.batch} pictures each: there are {len(data[0])}")
    model = network(told.hidden, told.seed)
    mine = batches(len(data[0]), told.batch, rank, size, told.seed)
    begun = time.monotonic()
    for step, (loss, took) in enumerate(train(DistributedDataParallel(model), data, mine, told.steps, told.lr)):
        print(json.dumps({"rank": rank, "step": step, "loss": loss, "step_s": took}), flush=True)
    took = time.monotonic() - begun
    with torch.no_grad():
        guessed = model(held_out[0][rank::size]).argmax(dim=1)
    right = torch.tensor(float((guessed == held_out[1][rank::size]).sum()))
    dist.all_reduce(right)
    if rank == 0:
        accuracy = right.item() / len(held_out[0])
        print(json.dumps({"accuracy": accuracy, "steps_per_second": told.steps / took}), flush=True)
    # Rank 0 hosts the store, and must leave last.
    dist.barrier()


if __name__ == "__main__":
    main()
