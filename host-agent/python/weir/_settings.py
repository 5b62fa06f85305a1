"""What the environment says to a rank."""

import os
import time

# What becomes of a sum whose values are not finite.
FAIL, GLOO = "fail", "gloo"
# What ranks do while the switch is silent.
HOSTS = "hosts"
# What a rank says to the others that has a setting that is none.
_WRONG = "wrong"
# Rank 0, which holds torch's store, waits so long for those that have not read what differs.
_LEAVING_S = 10


def job():
    """The job of this host; None if there is none."""
    names = ("WEIR_JOB", "WEIR_RANK", "WEIR_RANKS", "WEIR_WINDOW")
    values = [os.environ.get(name) for name in names]
    # Those that are newer than the others have a value for who does not say them.
    place, count = os.environ.get("WEIR_PLACE"), os.environ.get("WEIR_VALUES", "256")
    if all(value is None for value in values):
        return None
    try:
        of_job = dict(zip(("job", "rank", "ranks", "window"), map(int, values)))
        of_job["place"] = tuple(map(int, place.split("/"))) if place else None
        of_job["values"] = int(count)
        return of_job
    except (TypeError, ValueError):
        told = ", ".join(f"{name}={value}" for name, value in zip((*names, "WEIR_VALUES"), (*values, count)))
        raise RuntimeError(f"weir: the environment names no job: {told}") from None


def numbers(store, rank, size):
    """The seed by which this rank rounds, None if it rounds to the nearest; and what becomes of a sum whose values are not
    finite, of which all ranks have to say the same. If one of them is wrong, or differs, all ranks raise."""
    try:
        seed, non_finite = _seed(), _non_finite()
    except RuntimeError:
        _agree(store, rank, size, _WRONG)
        raise
    _agree(store, rank, size, non_finite)
    return seed, non_finite


def gone_after():
    """After how many seconds without an answer a rank is gone."""
    told = os.environ.get("WEIR_GONE_AFTER", "5")
    try:
        seconds = float(told)
    except ValueError:
        seconds = 0.0
    if not 0.01 <= seconds <= 3600:
        raise RuntimeError(f"weir: WEIR_GONE_AFTER={told}: it is a number of seconds, 0.01 to 3600")
    return seconds


def falls_back():
    """Whether ranks sum themselves while the switch is silent."""
    told = os.environ.get("WEIR_FALLBACK", HOSTS)
    if told not in (HOSTS, FAIL):
        raise RuntimeError(f"weir: WEIR_FALLBACK={told}: it is {HOSTS} or {FAIL}")
    return told == HOSTS


def lateness(ranks):
    """When a sum is made of fewer than all ranks, and what becomes of the rest; None if all are waited for."""
    told = os.environ.get("WEIR_DEADLINE")
    if told is None:
        for name in ("WEIR_QUORUM", "WEIR_LATE"):
            if name in os.environ:
                raise RuntimeError(f"weir: {name} without WEIR_DEADLINE: all ranks are waited for; 0 is for the fastest")
        return None
    try:
        deadline = float(told)
    except ValueError:
        deadline = -1.0
    if not 0 <= deadline <= 60:
        raise RuntimeError(f"weir: WEIR_DEADLINE={told}: it is a number of seconds, 0 to 60")
    # More than half, but of two ranks one.
    told = os.environ.get("WEIR_QUORUM", str(min(ranks // 2 + 1, ranks - 1)))
    if not (told.isdecimal() and 1 <= int(told) < ranks):
        raise RuntimeError(f"weir: WEIR_QUORUM={told}: it is at least 1, and less than the {ranks} ranks are")
    late = os.environ.get("WEIR_LATE", "drop")
    if late not in ("drop", "next"):
        raise RuntimeError(f"weir: WEIR_LATE={late}: it is drop or next")
    return {"deadline": deadline, "quorum": int(told), "late": late}


def _seed():
    told = os.environ.get("WEIR_ROUNDING", "nearest")
    if told == "nearest":
        return None
    name, _, seed = told.partition(":")
    try:
        seed = int(seed or "0")
    except ValueError:
        seed = -1
    if name != "stochastic" or not 0 <= seed < 1 << 64:
        raise RuntimeError(f"weir: WEIR_ROUNDING={told}: it is nearest, stochastic, or stochastic:SEED, 0 to 2**64 - 1")
    return seed


def _non_finite():
    told = os.environ.get("WEIR_NON_FINITE", FAIL)
    if told not in (FAIL, GLOO):
        raise RuntimeError(f"weir: WEIR_NON_FINITE={told}: it is {FAIL} or {GLOO}")
    return told


def _agree(store, rank, size, own):
    """Raises at all ranks if they do not say the same. A rank that went another way would wait for the others for ever."""
    values, base = (FAIL, GLOO, _WRONG), 1 << 12
    # Every rank adds one to its value's digit, and the last of them tells all.
    counts = store.add("weir/non-finite", base ** values.index(own))
    if sum(_digits(counts, base)) == size:
        store.set("weir/non-finite/all", str(counts))
    counts = dict(zip(values, _digits(int(store.get("weir/non-finite/all")), base)))
    left = store.add("weir/non-finite/left", 1)
    if counts.get(own) == size:
        return
    deadline = time.monotonic() + _LEAVING_S
    while rank == 0 and left < size and time.monotonic() < deadline:
        time.sleep(0.01)
        left = store.add("weir/non-finite/left", 0)
    if own != _WRONG:
        told = ", ".join(f"{value} at {count}" for value, count in counts.items() if count)
        raise RuntimeError(f"weir: WEIR_NON_FINITE differs between the {size} ranks: {told}")


def _digits(number, base):
    digits = []
    while number:
        number, digit = divmod(number, base)
        digits.append(digit)
    return digits
