"""Ranks of a job exchange their addresses and the job's first free chunk number through torch's store."""

import contextlib
import os
import warnings

import torch.distributed as dist

from . import DROPS, LAYOUT, VERSION, Rank, Silent, _settings
from ._roll import left_by_all

_FAILED = "failed: "
_SILENT = "silent"
# Maximum number of ranks that can sum without a switch.
_MOST_HOSTS = 64


def join(store, job, interface, seed, torch_rank, timeout):
    """Joins the job, and returns this rank's member after a first sum of all ranks. A failure of one rank raises at all ranks."""
    store = dist.PrefixStore("weir/job", store)
    number, ranks = job["rank"], job["ranks"]
    same = f"weir {VERSION} (layout {LAYOUT}), job {job['job']}, window {job['window']}, {job['values']} values"

    def agreed():
        if number != torch_rank:
            raise RuntimeError(f"weir: this host is rank {number} of its job, but rank {torch_rank} of torch's group")
        return None, same

    def found():
        gone_after, lateness = _settings.gone_after(), _settings.lateness(ranks) or {}
        # A rank that sums for others does not know which chunks were closed.
        falls_back = _settings.falls_back() and not lateness
        agent = os.environ.get("WEIR_AGENT") or None
        # Ranks of one job may use different transports.
        how = dict(lateness, transport=_settings.transport())
        rank = Rank(interface, job["job"], number, ranks, job["window"], job["place"], job["values"], agent, **how)
        # Ranks may handle late values differently.
        waits = f"{lateness['deadline']:g}s/{lateness['quorum']}" if lateness else "all"
        where = f"{rank.address} {waits}"
        first = f" {_opened(rank, falls_back and ranks <= _MOST_HOSTS)}" if number == 0 else ""
        return (rank, gone_after, falls_back), where + first

    def joined():
        waits = {where.split()[1] for where in told}
        if len(waits) > 1:
            # All ranks read the same texts.
            differ = ", ".join(f"{where.split()[1]} at rank {at}" for at, where in enumerate(told))
            raise RuntimeError(f"weir: WEIR_DEADLINE/WEIR_QUORUM differ between the {ranks} ranks: {differ}")
        first = told[0].split()[2]
        silent = first == _SILENT
        if silent:
            warnings.warn(f"weir: no switch answers rank 0, so the ranks sum themselves; {DROPS}", stacklevel=2)
        peers = [where.split()[0] for where in told]
        for at, peer in enumerate(peers):
            if peer in peers[:at]:
                raise RuntimeError(f"weir: ranks {peers.index(peer)} and {at} share the address {peer}: each needs its own host")
        io = os.environ.get("WEIR_IO", "auto")
        first = 0 if silent else int(first)
        metrics = os.environ.get("WEIR_METRICS") or None
        held.append(rank.join(first, peers, gone_after, seed, io, falls_back, silent, metrics))
        return held[0], "yes"

    def summed():
        # If the switch's settings differ from the ranks', this sum fails, and not a later one in the middle of training.
        member.compare("uint8", "another reduction", 0).wait(0, 0, timeout.total_seconds())
        return None, "yes"

    # A traceback would keep the member alive: it must leave the job nevertheless.
    held = []
    with left_by_all(store, torch_rank, lambda: ranks):
        _, told = _together(store, "job", torch_rank, ranks, agreed)
        if len(set(told)) > 1:
            differ = "; ".join(f"rank {at}: {said}" for at, said in enumerate(told))
            raise RuntimeError(f"weir: the ranks belong to different jobs: {differ}")
        (rank, gone_after, falls_back), told = _together(store, "at", number, ranks, found)
        # From here on, a rank whose host reports a closed port is declared dead.
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
    """The job's first chunk number; _SILENT if no switch answers and the ranks can sum themselves."""
    try:
        return rank.open()
    except Silent:
        if not falls_back:
            raise
        return _SILENT


def _together(store, step, number, ranks, act):
    """Executes a step: returns this rank's own result, and the texts that all ranks have published about theirs."""
    try:
        own, told = act()
    except Exception as error:
        # The other ranks must not wait for a text that never comes.
        store.set(f"{step}/{number}", f"{_FAILED}{error}")
        raise
    store.set(f"{step}/{number}", told)
    return own, [_of(store, step, other) for other in range(ranks)]


def _all_failures(store, step, number, ranks, error):
    """The errors of this rank and of the others, one of which may be the cause."""
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
        raise RuntimeError(f"weir: rank {rank} left while the ranks joined, or did not come: {error}") from None
    if told.startswith(_FAILED):
        raise RuntimeError(f"weir: rank {rank} {told}")
    return told
