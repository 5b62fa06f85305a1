"""A rank of `cargo xtask bench allreduce`: the same all-reduces with each of the named backends, in turn.

Prints a line of JSON for each round: when it began and ended by the machine's clock, how long each call took, what
processor time this process had, and what came out. Nothing but the calls themselves is in these times.
"""

import argparse
import hashlib
import json
import os
import resource
import time

import offloads
import torch
import torch.distributed as dist

# Values are multiples of this, so that sums of up to 32 ranks are exact in binary32.
GRAIN = 2.0**-18


def processor_s():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime, used.ru_stime


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--backends", required=True)
    arguments.add_argument("--values", type=int, required=True)
    arguments.add_argument("--rounds", type=int, required=True)
    arguments.add_argument("--calls", type=int, required=True)
    arguments.add_argument("--rank", type=int, required=True)
    arguments.add_argument("--ranks", type=int, required=True)
    arguments.add_argument("--at", required=True)
    told = arguments.parse_args()
    torch.set_num_threads(1)
    backends = told.backends.split(",")
    if "weir" in backends:
        import weir.torch
    names = [offloads.transport(backend) for backend in backends]
    dist.init_process_group(names[0], init_method=f"tcp://{told.at}", rank=told.rank, world_size=told.ranks)
    groups = [dist.group.WORLD] + [dist.new_group(backend=other) for other in names[1:]]

    # Rank r has r + 1 times the same values, so the expected sums are known.
    generator = torch.Generator().manual_seed(1)
    base = torch.randint(-(2**18), 2**18 + 1, (told.values,), generator=generator, dtype=torch.int32)
    base = base.to(torch.float32).mul_(GRAIN)
    tensor = torch.empty_like(base)

    def fill():
        torch.mul(base, told.rank + 1, out=tensor)

    def off():
        """Maximum error of the sums, relative to the largest one."""
        times = told.ranks * (told.ranks + 1) // 2
        return (tensor - base * times).abs_().max().item() / times

    def round_of(backend, group, number, calls):
        took, worst = [], 0.0
        offloads.set_for(backend)
        fill()
        dist.barrier(group=group)
        user, system = processor_s()
        begun = time.monotonic_ns()
        for call in range(calls):
            if call > 0:
                fill()
            before = time.perf_counter_ns()
            dist.all_reduce(tensor, group=group)
            took.append(time.perf_counter_ns() - before)
            if calls > 1:
                worst = max(worst, off())
        ended = time.monotonic_ns()
        used = processor_s()
        digest = hashlib.sha256(tensor.numpy().tobytes()).hexdigest()
        said = {
            "backend": backend,
            "round": number,
            "begun_ns": begun,
            "ended_ns": ended,
            "took_ns": took,
            "user_s": used[0] - user,
            "system_s": used[1] - system,
            "off": max(worst, off()),
            "digest": digest,
        }
        return json.dumps(said)

    lines = []
    for number in range(told.rounds):
        for backend, group in zip(backends, groups):
            lines.append(round_of(backend, group, number, told.calls))
    counters = weir.torch.counters() if "weir" in backends else {}
    # After the measurement, since writing to a full pipe blocks.
    for line in lines:
        print(line)
    print(json.dumps({"counters": counters}), flush=True)
    # Rank 0 hosts the store, and must leave last.
    dist.barrier(group=groups[-1])
    if told.rank == 0:
        time.sleep(0.5)


if __name__ == "__main__":
    main()
    # Exit without waiting for torch's threads.
    os._exit(0)
