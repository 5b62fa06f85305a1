"""Data-parallel training with Horovod: each worker has its own half of the examples, and all average their gradients.

Started once a worker, with Horovod's variables (HOROVOD_RANK and so on) in the environment. What it prints at the end is one
JSON object: the loss, how far the workers' parameters are apart, and what a step took.
"""

import argparse
import json
import time

import horovod.torch as hvd
import torch


def examples(rank: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A worker's own: points, and whether they lie inside a sphere."""
    random = torch.Generator().manual_seed(1000 + rank)
    points = torch.randn(count, 8, generator=random)
    inside = (points.square().sum(dim=1) < 7.34).float().unsqueeze(1)
    return points, inside


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--width", type=int, default=64, help="of the hidden layer")
    arguments = parser.parse_args()

    hvd.init()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(8, arguments.width), torch.nn.ReLU(), torch.nn.Linear(arguments.width, 1)
    )
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.5), named_parameters=model.named_parameters()
    )
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    points, inside = examples(hvd.rank(), 256)
    loss_of = torch.nn.BCEWithLogitsLoss()

    seconds = []
    for _ in range(arguments.steps):
        begun = time.monotonic()
        optimizer.zero_grad()
        loss = loss_of(model(points), inside)
        loss.backward()
        optimizer.step()
        seconds.append(time.monotonic() - begun)

    # Every worker has applied the same averages: their parameters are the same, to the bit.
    own = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    all_of_them = hvd.allgather(own.unsqueeze(0))
    apart = (all_of_them - own).abs().max().item()
    seconds.sort()
    print(
        json.dumps(
            {
                "rank": hvd.rank(),
                "workers": hvd.size(),
                "loss": loss.item(),
                "apart": apart,
                "step_median": seconds[len(seconds) // 2],
                "step_longest": seconds[-1],
            }
        )
    )
    hvd.shutdown()


if __name__ == "__main__":
    main()
