"""How the ranks of a job find each other, by torch's store: where each is, and from which chunk number on the switch's
cells are free."""

import os

import torch.distributed as dist

from . import Member, _settings, address, open_job

_FAILED = "failed: "


def join(store, job, interface, seed):
    """The member that this rank is of its job, once all ranks are members."""
    store = dist.PrefixStore(f"weir/job/{job['job']}", store)
    rank, ranks = job["rank"], job["ranks"]
    member = None
    try:
        own = address(interface)
        gone_after = _settings.gone_after()
        if rank == 0:
            first = open_job(interface, job["job"], rank, ranks, job["window"], job["place"])
            own = f"{own} {first}"
    except Exception as error:
        # The others are not to wait for what never comes.
        store.set(f"at/{rank}", f"{_FAILED}{error}")
        raise
    store.set(f"at/{rank}", own)
    found = [_of(store, other) for other in range(ranks)]
    first = int(found[0].split()[1])
    peers = [where.split()[0] for where in found]
    member = Member(
        interface, job["job"], rank, ranks, job["window"], job["place"], first, peers, gone_after, stochastic=seed,
        io=os.environ.get("WEIR_IO", "auto"),
    )
    # From here on a rank that nobody answers for is gone.
    store.set(f"member/{rank}", "yes")
    store.wait([f"member/{other}" for other in range(ranks)])
    return member


def _of(store, rank):
    told = store.get(f"at/{rank}").decode()
    if told.startswith(_FAILED):
        raise RuntimeError(f"weir: rank {rank} {told}")
    return told
