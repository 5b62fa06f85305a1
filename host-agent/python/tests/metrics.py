"""Three ranks that serve their metrics; the last is late, and the others report it in the meantime. Exits with 0 if all is
right."""

import os
import time
import urllib.request

import torch
import torch.distributed as dist

import weir.torch

WHERE = os.environ["WEIR_METRICS"]
PATIENCE_S = 30


def samples():
    """The metrics, as Prometheus reads them, by name and labels."""
    with urllib.request.urlopen(f"http://{WHERE}/metrics", timeout=5) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"), answer.headers
        lines = answer.read().decode().splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


dist.init_process_group("weir")
rank, size = dist.get_rank(), dist.get_world_size()
labels = f'job="1",rank="{rank}"'
assert weir.torch.metrics() == WHERE, weir.torch.metrics()
for _ in range(3):
    dist.all_reduce(torch.ones(1000))
before = weir.torch.counters()["frames"]
told = samples()
assert told[f"weir_operations_total{{{labels}}}"] == "3", told
assert told[f"weir_waiting_seconds{{{labels}}}"] == "0", told
assert told[f"weir_up{{{labels}}}"] == "1", told
way = f'weir_info{{{labels},role="rank",interface="eth0",io="{weir.torch.io()}"}}'
assert told[way] == "1", told
# A reply to another rank's question may be sent in between.
sent = int(told[f"weir_sent_frames_total{{{labels}}}"])
assert before <= sent <= weir.torch.counters()["frames"], (before, told)

store = dist.PrefixStore("metrics", dist.distributed_c10d._get_default_store())
if rank == size - 1:
    store.wait([f"seen/{other}" for other in range(size - 1)])
    dist.all_reduce(torch.ones(1000))
else:
    work = dist.all_reduce(torch.ones(1000), async_op=True)
    begun = time.monotonic()
    while f'weir_waits_for_worker{{{labels},worker="{size - 1}"}}' not in samples():
        assert time.monotonic() - begun < PATIENCE_S, samples()
        time.sleep(0.01)
    assert float(samples()[f"weir_waiting_seconds{{{labels}}}"]) > 0
    store.set(f"seen/{rank}", "yes")
    work.wait()
assert samples()[f"weir_operations_total{{{labels}}}"] == "4"
print("right", flush=True)
# Rank 0 hosts the store.
store.set(f"done/{rank}", "yes")
if rank == 0:
    store.wait([f"done/{other}" for other in range(size)])
    time.sleep(0.2)
os._exit(0)
