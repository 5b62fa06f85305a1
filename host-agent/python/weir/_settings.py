"""Settings of a rank, from environment variables."""

import os
import socket

# Variables that describe a job, each with its minimum and maximum.
_OF_JOB = {"WEIR_JOB": (1, 65535), "WEIR_RANK": (0, 1023), "WEIR_RANKS": (1, 1024), "WEIR_WINDOW": (1, 32768)}
# Numbers of values per frame for which there are switch programs.
_VALUES = (32, 64, 256, 2048)
# Handling of a sum whose values are not finite.
FAIL, GLOO = "fail", "gloo"
# Behavior while the switch is silent: the ranks sum themselves.
HOSTS = "hosts"


def described(is_default, size, is_joined):
    """The settings that must be equal at all ranks of a group, as text. `is_default`: the group is the process's default group,
    which belongs to the job. `is_joined`: another group has joined the job already."""
    own = job()
    if own is None:
        return "no WEIR_JOB"
    if is_default and own["ranks"] != size:
        raise RuntimeError(f"weir: the job has {own['ranks']} ranks (WEIR_RANKS), but torch's group {size} (WORLD_SIZE)")
    # Ranks may round differently, but an invalid setting is an error at all of them.
    seed()
    way = ", host to host" if is_joined else ""
    return f"a job of {own['ranks']} ranks{way}, WEIR_NON_FINITE={non_finite()}"


def job():
    """The job of this host; None if no variable describes one."""
    if not any(name in os.environ for name in _OF_JOB):
        return None
    missing = [name for name in _OF_JOB if name not in os.environ]
    if missing:
        raise RuntimeError(f"weir: the description of the job is incomplete: set {', '.join(missing)}")
    of_job = {name.removeprefix("WEIR_").lower(): _number(name, *limits) for name, limits in _OF_JOB.items()}
    if of_job["rank"] >= of_job["ranks"]:
        raise RuntimeError(f"weir: WEIR_RANK={of_job['rank']}: ranks count from 0, with WEIR_RANKS={of_job['ranks']}")
    if of_job["window"] & (of_job["window"] - 1):
        raise RuntimeError(f"weir: WEIR_WINDOW={of_job['window']}: use a power of two, 1 to 32768")
    of_job["place"] = _place()
    # Older launchers do not set this variable: their frames have 256 values.
    of_job["values"] = 256
    if "WEIR_VALUES" in os.environ:
        of_job["values"] = _number("WEIR_VALUES", 1, 2048)
        if of_job["values"] not in _VALUES:
            raise RuntimeError(f"weir: WEIR_VALUES={of_job['values']}: use 32, 64, 256 or 2048")
    return of_job


def interface():
    """Name of the interface that leads to the switch."""
    return os.environ.get("WEIR_INTERFACE", "eth0")


def transport():
    """Transport of frames between this rank and its switch."""
    told = os.environ.get("WEIR_TRANSPORT") or "udp"
    if told not in ("udp", "rdma"):
        raise RuntimeError(f"weir: WEIR_TRANSPORT={told}: use udp or rdma")
    return told


def set_interface():
    """Makes Gloo use the job's interface, unless the user has chosen one. By default Gloo resolves the host's name, which on
    Debian gives an address that no other host can reach."""
    if job() is not None and interface() in (name for _, name in socket.if_nameindex()):
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface())


def _number(name, least, most):
    told = os.environ[name]
    # int() also accepts signs, blanks and underscores.
    if not (told.isascii() and told.isdecimal() and len(told) <= 10 and least <= int(told) <= most):
        raise RuntimeError(f"weir: {name}={told}: use a whole number, {least} to {most}")
    return int(told)


def _place():
    """This rank's position in a tree of switches; None if one switch sums all ranks."""
    told = os.environ.get("WEIR_PLACE")
    if not told:
        return None
    parts = told.split("/")
    numbers = [int(part) for part in parts if part.isascii() and part.isdecimal() and len(part) <= 10]
    if len(parts) != 3 or len(numbers) != 3:
        raise RuntimeError(f"weir: WEIR_PLACE={told}: use CHILD/SIBLINGS/TOP, such as 0/2/2")
    child, siblings, top = numbers
    if not (1 <= siblings <= 64 and 1 <= top <= 64 and child < siblings):
        raise RuntimeError(f"weir: WEIR_PLACE={told}: SIBLINGS and TOP must be 1 to 64, and CHILD less than SIBLINGS")
    return child, siblings, top


def gone_after():
    """Seconds without a reply after which a rank is declared dead."""
    told = os.environ.get("WEIR_GONE_AFTER", "5")
    try:
        seconds = float(told)
    except ValueError:
        seconds = 0.0
    if not 0.01 <= seconds <= 3600:
        raise RuntimeError(f"weir: WEIR_GONE_AFTER={told}: use a number of seconds, 0.01 to 3600")
    return seconds


def falls_back():
    """Whether ranks sum themselves while the switch is silent."""
    told = os.environ.get("WEIR_FALLBACK", HOSTS)
    if told not in (HOSTS, FAIL):
        raise RuntimeError(f"weir: WEIR_FALLBACK={told}: use {HOSTS} or {FAIL}")
    return told == HOSTS


def lateness(ranks):
    """Deadline and quorum of partial sums, and the handling of late values; None if every sum includes all ranks."""
    told = os.environ.get("WEIR_DEADLINE")
    if told is None:
        for name in ("WEIR_QUORUM", "WEIR_LATE"):
            if name in os.environ:
                raise RuntimeError(f"weir: {name} needs WEIR_DEADLINE: 0 sums the fastest ranks")
        return None
    try:
        deadline = float(told)
    except ValueError:
        deadline = -1.0
    if not 0 <= deadline <= 60:
        raise RuntimeError(f"weir: WEIR_DEADLINE={told}: use a number of seconds, 0 to 60")
    # The default is more than half of the ranks; with two ranks it is one.
    told = os.environ.get("WEIR_QUORUM", str(min(ranks // 2 + 1, ranks - 1)))
    if not (told.isdecimal() and 1 <= int(told) < ranks):
        raise RuntimeError(f"weir: WEIR_QUORUM={told}: a partial sum needs at least 1 rank, and fewer than all {ranks}")
    late = os.environ.get("WEIR_LATE", "drop")
    if late not in ("drop", "next"):
        raise RuntimeError(f"weir: WEIR_LATE={late}: use drop or next")
    return {"deadline": deadline, "quorum": int(told), "late": late}


def seed():
    """Seed of this rank's stochastic rounding; None if it rounds to the nearest."""
    told = os.environ.get("WEIR_ROUNDING", "nearest")
    if told == "nearest":
        return None
    name, _, seed = told.partition(":")
    try:
        number = int(seed or "0")
    except ValueError:
        number = -1
    if name != "stochastic" or not 0 <= number < 1 << 64:
        raise RuntimeError(f"weir: WEIR_ROUNDING={told}: use nearest, stochastic, or stochastic:SEED, 0 to 2**64 - 1")
    return number


def non_finite():
    """Handling of a sum whose values are not finite: FAIL or GLOO."""
    told = os.environ.get("WEIR_NON_FINITE", FAIL)
    if told not in (FAIL, GLOO):
        raise RuntimeError(f"weir: WEIR_NON_FINITE={told}: use {FAIL} or {GLOO}")
    return told
