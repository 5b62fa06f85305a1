"""A parameter server over the ranks of torch.distributed, with the backend ``weir`` or ``gloo``.

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

A server has the optimizer and its state; several servers divide the parameters among them. Workers start with the servers'
parameters. Every rank of the default group is a server or a worker, and all have the same plan.

``plan.py`` has the roles and the mode; ``rules.py`` the effect of a push in each mode, without I/O; ``server.py`` and
``worker.py`` the two roles; ``collective.py`` mode ``sync``; ``messages.py`` the messages of the other modes; ``layout.py`` the
encoding of tensors in a message; ``agreement.py`` the comparison of all ranks at the start.
"""

from .agreement import Differs
from .messages import Lost
from .plan import Plan
from .server import Server
from .worker import Worker

__all__ = ["Differs", "Lost", "Plan", "Server", "Worker"]
