"""How the ranks of a job find each other, by torch's store: where each is, and from which chunk number on the switch's
cells are free."""

import contextlib
import os
import warnings

import torch.distributed as dist

from . import DROPS, LAYOUT, VERSION, Rank, Silent, _settings
from ._roll import left_by_all

_FAILED = "failed: "
_SILENT = "silent"
# So many ranks sum themselves at most.
_MOST_HOSTS = 64


def join(store, job, interface, seed, torch_rank, timeout):
    """The member that this rank is of its job, once all ranks have summed something. What fails at one raises at all."""
    store = dist.PrefixStore("weir/job", store)
    number, ranks = job["rank"], job["ranks"]
    same = f"weir {VERSION} (layout {LAYOUT}), job {job['job']}, window {job['window']}, {job['values']} values"

    def agreed():
        if number != torch_rank:
            raise RuntimeError(f"weir: this host is rank {number} of its job, and rank {torch_rank} for torch")
        return None, same

    def found():
        gone_after, lateness = _settings.gone_after(), _settings.lateness(ranks) or {}
        # What was closed a rank that sums for others does not know.
        falls_back = _settings.falls_back() and not lateness
        agent = os.environ.get("WEIR_AGENT") or None
        # Each rank's own: of one job some may be by RDMA.
        how = dict(lateness, transport=_settings.transport())
        rank = Rank(interface, job["job"], number, ranks, job["window"], job["place"], job["values"], agent, **how)
        # What is done with what is late is each rank's own.
        waits = f"{lateness['deadline']:g}s/{lateness['quorum']}" if lateness else "all"
        where = f"{rank.address} {waits}"
        first = f" {_opened(rank, falls_back and ranks <= _MOST_HOSTS)}" if number == 0 else ""
        return (rank, gone_after, falls_back), where + first

    def joined():
        waits = {where.split()[1] for where in told}
        if len(waits) > 1:
            # All ranks see the same.
            differ = ", ".join(f"{where.split()[1]} at rank {at}" for at, where in enumerate(told))
            raise RuntimeError(f"weir: WEIR_DEADLINE/WEIR_QUORUM differ between the {ranks} ranks: {differ}")
        first = told[0].split()[2]
        silent = first == _SILENT
        if silent:
            warnings.warn(f"weir: no switch answers rank 0: the ranks sum themselves; {DROPS}", stacklevel=2)
        peers = [where.split()[0] for where in told]
        for at, peer in enumerate(peers):
            if peer in peers[:at]:
                raise RuntimeError(f"weir: ranks {peers.index(peer)} and {at} are both at {peer}: each is a host of its own")
        io = os.environ.get("WEIR_IO", "auto")
        first = 0 if silent else int(first)
        metrics = os.environ.get("WEIR_METRICS") or None
        held.append(rank.join(first, peers, gone_after, seed, io, falls_back, silent, metrics))
        return held[0], "yes"

    def summed():
        # What the switch was told otherwise shows here, and not in the middle of training.
        member.compare("uint8", "another reduction", 0).wait(0, 0, timeout.total_seconds())
        return None, "yes"

    # Whoever keeps the error keeps this, too: a member that nobody has leaves the job all the same.
    held = []
    with left_by_all(store, torch_rank, lambda: ranks):
        _, told = _together(store, "job", torch_rank, ranks, agreed)
        if len(set(told)) > 1:
            differ = "; ".join(f"rank {at}: {said}" for at, said in enumerate(told))
            raise RuntimeError(f"weir: the ranks are of different jobs: {differ}")
        (rank, gone_after, falls_back), told = _together(store, "at", number, ranks, found)
        # From here on a rank whose host says that nobody listens there is gone.
        try:
            member, _ = _together(store, "member", number, ranks, joined)
            try:
                _together(store, "sum", number, ranks, summed)
            except Exception as error:
                raise RuntimeError(_all_failures(store, "sum", number, ranks, error)) from None
        except BaseException:
            for own in held:
                own.close()
            raise
        return member


def _opened(rank, falls_back):
    """The job's first chunk; or that no switch answers, where ranks can sum themselves."""
    try:
        return rank.open()
    except Silent:
        if not falls_back:
            raise
        return _SILENT


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


def _all_failures(store, step, number, ranks, error):
    """What failed at this rank, and at the others: the cause of it may be theirs."""
    told = [f"weir: {error}".replace("weir: weir: ", "weir: ")]
    for rank in range(ranks):
        with contextlib.suppress(RuntimeError):
            said = store.get(f"{step}/{rank}").decode().removeprefix(_FAILED)
            if said != "yes" and said not in told[0]:
                told.append(f"rank {rank}: {said}")
    return "; ".join(told)


def _of(store, step, rank):
    try:
        told = store.get(f"{step}/{rank}").decode()
    except RuntimeError as error:
        raise RuntimeError(f"weir: rank {rank} has left while the ranks joined, or does not come: {error}") from None
    if told.startswith(_FAILED):
        raise RuntimeError(f"weir: rank {rank} {told}")
    return told
