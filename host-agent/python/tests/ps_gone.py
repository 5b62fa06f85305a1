"""Three ranks, of which the last, a worker, is killed. Exits with 0 if all is right.

PS_MODE and PS_ON_LOST are the plan's: the server ends with that one's name, or goes on without it and holds nobody for it.
"""

import os
import threading
import time

import torch
import torch.distributed as dist

import weir.torch
from weir.ps import Lost, Plan, Server, Worker

dist.init_process_group(os.environ.get("BACKEND", "weir"))
rank = dist.get_rank()
store = dist.PrefixStore("tests", dist.distributed_c10d._get_default_store())
mode, on_lost = os.environ["PS_MODE"], os.environ.get("PS_ON_LOST", "fail")
plan = Plan(mode=mode, staleness=0 if mode == "stale" else None, on_lost=on_lost)
of = [torch.zeros(1000, requires_grad=True)]
# Sums of the switch report the number of the rank; Gloo does not.
named = "rank 2 is unreachable" if mode != "sync" or weir.torch.counters() else "a rank is lost"


def lost(what):
    begun = time.monotonic()
    try:
        what()
    except Lost as error:
        assert named in str(error), error
        assert time.monotonic() - begun < 20
    else:
        raise AssertionError("nobody was lost")


def serve():
    server = Server(of, torch.optim.SGD(of, lr=1.0), plan)

    def watch():
        # Rank 1 is ahead of rank 2, and waits for it.
        while mode == "stale" and server.counters()["held"] < 1:
            time.sleep(0.002)
        store.set("die", "now")

    threading.Thread(target=watch, daemon=True).start()
    return server.run()


def work():
    with Worker(of, plan) as worker:
        for _ in range(3):
            worker.push_pull([torch.ones(1000)])
    assert (of[0] == -3).all(), of


if rank == 2:
    worker = Worker(of, plan)
    store.wait(["die"])
    print("right", flush=True)
    os._exit(0)
if on_lost == "fail":
    lost(serve if rank == 0 else work)
elif rank == 0:
    counted = serve()
    assert (counted["lost"], counted["left"], counted["steps"]) == (1, 1, 3), counted
    assert (of[0] == -3).all(), of
else:
    work()
print("right", flush=True)
# Rank 0 hosts the store, and must leave last.
time.sleep(1 if rank == 0 else 0)
os._exit(0)
