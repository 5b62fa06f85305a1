"""Comparison of all ranks at the start: each difference is an error at all ranks, with the number of the rank."""

from dataclasses import asdict

import torch.distributed as dist


class Differs(ValueError):
    """Plans, roles or parameters of the ranks do not match. All ranks raise the same error."""


def agree(plan, role, parameters, wrong=None):
    """Raises at every rank if plans, parameters or roles do not match, or if some rank passes its error as ``wrong``."""
    shapes = [(tuple(of.shape), str(of.dtype)) for of in parameters]
    floats = all(of.is_floating_point() and of.device.type == "cpu" for of in parameters)
    told = [None] * dist.get_world_size()
    dist.all_gather_object(told, (role, asdict(plan), shapes, floats, wrong))
    differences = list(_differences(told))
    if differences:
        raise Differs("weir.ps: " + "; ".join(differences))


def _differences(told):
    """All differences, the same at every rank."""
    of = 0 if told[0][1]["servers"][0] >= len(told) else told[0][1]["servers"][0]
    _, plan, shapes, floats, _ = told[of]
    servers, size = plan["servers"], len(told)
    if not floats or not shapes:
        yield f"rank {of}: at least one parameter is needed, and all must be floats on the CPU"
    for rank, (role, other, others, _, wrong) in enumerate(told):
        if wrong is not None:
            yield f"rank {rank}: {wrong}"
        if other != plan:
            names = [name for name in plan if other[name] != plan[name]]
            differ = ", ".join(f"{name}={other[name]!r}, not {plan[name]!r}" for name in names)
            yield f"rank {rank} has another plan than rank {of}: {differ}"
        elif role != ("server" if rank in servers else "worker"):
            yield f"rank {rank} is a {role}, but the servers are {list(servers)}"
        if others != shapes:
            yield f"rank {rank} has other parameters than rank {of}: {_first_other(others, shapes)}"
    if max(servers) >= size:
        yield f"server {max(servers)} does not exist: there are {size} ranks"
    elif len(servers) >= size:
        yield "there is no worker: all ranks are servers"
    elif (plan["fastest"] or 0) > size - len(servers):
        yield f"fastest={plan['fastest']} exceeds the {size - len(servers)} workers"
    if len(servers) > len(shapes):
        yield f"{len(servers)} servers, but only {len(shapes)} parameters to divide"


def _first_other(others, shapes):
    for index, (other, shape) in enumerate(zip(others, shapes)):
        if other != shape:
            return f"number {index} is {list(other[0])} of {other[1]}, not {list(shape[0])} of {shape[1]}"
    return f"{len(others)}, not {len(shapes)}"
