"""A parameter server over the ranks of torch.distributed, with whatever backend: ``weir``, or ``gloo``.

    import torch.distributed as dist
    import weir.torch
    from weir.ps import Plan, Server, Worker

    dist.init_process_group("weir")
    plan = Plan(mode="stale", staleness=2, servers=[0])
    if dist.get_rank() in plan.servers:
        Server(model.parameters(), torch.optim.SGD(model.parameters(), lr=0.1), plan).run()
    else:
        with Worker(model.parameters(), plan) as worker:
            for inputs, labels in batches:
                model.zero_grad()
                loss(model(inputs), labels).backward()
                worker.push_pull()

A server has the optimizer and what it remembers; several share the parameters. Workers begin with the servers' parameters. All
ranks of the default group take part, each as one of both, with the same plan.

``plan.py`` says who does what, ``rules.py`` what a push means in each mode, without any I/O; ``server.py`` and ``worker.py``
are the two ends; ``collective.py`` is what both do in mode ``sync``, ``messages.py`` what they say in the others, ``layout.py``
how tensors stand in a message, and ``agreement.py`` what is compared before they begin.
"""

from .agreement import Differs
from .messages import Lost
from .plan import Plan
from .server import Server
from .worker import Worker

__all__ = ["Differs", "Lost", "Plan", "Server", "Worker"]
