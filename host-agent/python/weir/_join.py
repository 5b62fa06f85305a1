"""How the ranks of a job find each other, by torch's store: where each is, and from which chunk number on the switch's
cells are free."""

import os

import torch.distributed as dist

from . import Rank, _settings

_FAILED = "failed: "


def join(store, job, interface, seed):
    """The member that this rank is of its job, once all ranks are members. What fails at one raises at all."""
    store = dist.PrefixStore(f"weir/job/{job['job']}", store)
    number, ranks = job["rank"], job["ranks"]

    def found():
        gone_after = _settings.gone_after()
        agent = os.environ.get("WEIR_AGENT") or None
        rank = Rank(interface, job["job"], number, ranks, job["window"], job["place"], agent)
        where = f"{rank.address} {rank.open()}" if number == 0 else rank.address
        return (rank, gone_after), where

    def joined():
        first = int(told[0].split()[1])
        peers = [where.split()[0] for where in told]
        io = os.environ.get("WEIR_IO", "auto")
        metrics = os.environ.get("WEIR_METRICS") or None
        return rank.join(first, peers, gone_after, stochastic=seed, io=io, metrics=metrics), "yes"

    (rank, gone_after), told = _together(store, "at", number, ranks, found)
    # From here on a rank whose host says that nobody listens there is gone.
    member, _ = _together(store, "member", number, ranks, joined)
    return member


def _together(store, step, number, ranks, act):
    """What this rank has of a step, and what each rank tells of it."""
    try:
        own, told = act()
    except Exception as error:
        # The others are not to wait for what never comes.
        store.set(f"{step}/{number}", f"{_FAILED}{error}")
        raise
    store.set(f"{step}/{number}", told)
    return own, [_of(store, step, other) for other in range(ranks)]


def _of(store, step, rank):
    told = store.get(f"{step}/{rank}").decode()
    if told.startswith(_FAILED):
        raise RuntimeError(f"weir: rank {rank} {told}")
    return told
