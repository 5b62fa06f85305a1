"""What ranks compare before they begin, so that who differs is told at all of them, by name."""

from dataclasses import asdict

import torch.distributed as dist


class Differs(ValueError):
    """The ranks do not fit together. All of them raise the same."""


def agree(plan, role, parameters, wrong=None):
    """Raises at every rank if plans, parameters or roles do not fit together, or one of them says what is ``wrong`` with it."""
    shapes = [(tuple(of.shape), str(of.dtype)) for of in parameters]
    floats = all(of.is_floating_point() and of.device.type == "cpu" for of in parameters)
    told = [None] * dist.get_world_size()
    dist.all_gather_object(told, (role, asdict(plan), shapes, floats, wrong))
    differences = list(_differences(told))
    if differences:
        raise Differs("weir.ps: " + "; ".join(differences))


def _differences(told):
    """What does not fit, seen alike by all."""
    of = 0 if told[0][1]["servers"][0] >= len(told) else told[0][1]["servers"][0]
    _, plan, shapes, floats, _ = told[of]
    servers, size = plan["servers"], len(told)
    if not floats or not shapes:
        yield f"rank {of}: parameters are floats, on the CPU, and at least one"
    for rank, (role, other, others, _, wrong) in enumerate(told):
        if wrong is not None:
            yield f"rank {rank}: {wrong}"
        if other != plan:
            names = [name for name in plan if other[name] != plan[name]]
            differ = ", ".join(f"{name}={other[name]!r} and not {plan[name]!r}" for name in names)
            yield f"rank {rank} has another plan than rank {of}: {differ}"
        elif role != ("server" if rank in servers else "worker"):
            yield f"rank {rank} is a {role}, and the servers are {list(servers)}"
        if others != shapes:
            yield f"rank {rank} has other parameters than rank {of}: {_first_other(others, shapes)}"
    if max(servers) >= size:
        yield f"there are {size} ranks, and no server {max(servers)}"
    elif len(servers) >= size:
        yield "there are servers and no worker"
    elif (plan["fastest"] or 0) > size - len(servers):
        yield f"the fastest {plan['fastest']} of {size - len(servers)} workers"
    if len(servers) > len(shapes):
        yield f"{len(servers)} servers, and {len(shapes)} parameters to share"


def _first_other(others, shapes):
    for index, (other, shape) in enumerate(zip(others, shapes)):
        if other != shape:
            return f"number {index} is {list(other[0])} of {other[1]} and not {list(shape[0])} of {shape[1]}"
    return f"{len(others)} and not {len(shapes)}"
