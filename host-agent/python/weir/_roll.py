"""Roll call of a new group: each rank registers once in torch's store with its settings. All ranks learn the error of any rank,
and the error names missing ranks."""

import contextlib
import time

import torch.distributed as dist

# Prefix of a rank's error.
_WRONG = "wrong: "
# Rank 0 usually hosts torch's store: it waits for this time until all ranks have read the error.
_LEAVING_S = 10
# Maximum interval between polls of the store, and the time that the store itself may wait beyond the timeout.
_PAUSE_S, _STORE_S = 0.2, 2


def call(store, rank, size, timeout, what):
    """Returns when all ranks have come and `what` returned the same text at each of them. Otherwise raises at all ranks that
    have come, with the error of `what`, if it raised one."""
    store = dist.PrefixStore("weir/roll", store)
    if store.add(f"come/{rank}", 1) > 1:
        told = f"rank {rank} came twice: two processes have the same RANK"
        # If the group is complete without this process, it continues.
        _decide(store, told)
        raise RuntimeError(f"weir: {told}")
    wrong = None
    try:
        said = what()
    except RuntimeError as error:
        wrong, said = error, _WRONG + str(error).removeprefix("weir: ")
    store.set(f"said/{rank}", said)
    if store.add("come", 1) == size:
        _decide(store, _verdict([store.get(f"said/{other}").decode() for other in range(size)]))
    with left_by_all(store, rank, lambda: min(size, store.add("come", 0))):
        told = _decided(store, size, timeout)
        if wrong is not None:
            raise wrong
        if told:
            raise RuntimeError(f"weir: {told}")


def _decide(store, told):
    """Publishes the result; only the first one counts."""
    if store.add("deciding", 1) == 1:
        store.set("decided", told)


def _decided(store, size, timeout):
    # Polled, since a store's connection is out of step after its own wait has timed out.
    deadline, pause = time.monotonic() + timeout.total_seconds(), 0.005
    while store.add("deciding", 0) == 0:
        time.sleep(pause)
        pause = min(2 * pause, _PAUSE_S)
        late = time.monotonic() - deadline
        # Rank 0 may come late, after its store has waited for the others.
        if late > _STORE_S or late > 0 and store.add("come/0", 0) > 0:
            missing = _ranks(rank for rank in range(size) if store.add(f"come/{rank}", 0) == 0)
            _decide(store, f"{missing} did not come within {timeout.total_seconds():g} s; the group has {size} ranks")
    return store.get("decided").decode()


def _ranks(ranks):
    told = [str(rank) for rank in ranks]
    return f"rank{'s' if len(told) > 1 else ''} {', '.join(told)}"


def _verdict(said):
    wrong = [f"rank {rank}: {text.removeprefix(_WRONG)}" for rank, text in enumerate(said) if text.startswith(_WRONG)]
    if wrong:
        return "; ".join(wrong)
    if len(set(said)) == 1:
        return ""
    who = {text: _ranks(rank for rank, of_rank in enumerate(said) if of_rank == text) for text in said}
    return "the ranks differ: " + "; ".join(f"{ranks}: {text}" for text, ranks in who.items())


@contextlib.contextmanager
def left_by_all(store, rank, count):
    """If the block raises, rank 0 stays until `count()` ranks have read the error, since the store may end with rank 0."""
    try:
        yield
    except Exception:
        with contextlib.suppress(RuntimeError):
            left, deadline = store.add("left", 1), time.monotonic() + _LEAVING_S
            while rank == 0 and left < count() and time.monotonic() < deadline:
                time.sleep(0.01)
                left = store.add("left", 0)
        raise
