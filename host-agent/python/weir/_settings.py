"""What the environment says to a rank."""

import os
import socket

# What the environment says of a job, and the least and most that each may be.
_OF_JOB = {"WEIR_JOB": (1, 65535), "WEIR_RANK": (0, 1023), "WEIR_RANKS": (1, 1024), "WEIR_WINDOW": (1, 32768)}
# Values of a frame, as switches' programs have them.
_VALUES = (32, 64, 256, 2048)
# What becomes of a sum whose values are not finite.
FAIL, GLOO = "fail", "gloo"
# What ranks do while the switch is silent.
HOSTS = "hosts"


def said_of(is_default, size, is_joined):
    """What all ranks of a group have to say alike of the job. A default group is the job's; `is_joined`: another one is."""
    own = job()
    if own is None:
        return "no WEIR_JOB"
    if is_default and own["ranks"] != size:
        raise RuntimeError(f"weir: the job has {own['ranks']} ranks (WEIR_RANKS), and torch's group {size} (WORLD_SIZE)")
    # How it rounds is each rank's own, but not whether it can.
    seed()
    way = ", host to host" if is_joined else ""
    return f"a job of {own['ranks']} ranks{way}, WEIR_NON_FINITE={non_finite()}"


def job():
    """The job of this host; None if there is none."""
    if not any(name in os.environ for name in _OF_JOB):
        return None
    missing = [name for name in _OF_JOB if name not in os.environ]
    if missing:
        raise RuntimeError(f"weir: the environment names no job: {', '.join(missing)} missing")
    of_job = {name.removeprefix("WEIR_").lower(): _number(name, *limits) for name, limits in _OF_JOB.items()}
    if of_job["rank"] >= of_job["ranks"]:
        raise RuntimeError(f"weir: WEIR_RANK={of_job['rank']}: ranks count from 0, and WEIR_RANKS={of_job['ranks']}")
    if of_job["window"] & (of_job["window"] - 1):
        raise RuntimeError(f"weir: WEIR_WINDOW={of_job['window']}: it is a power of two, 1 to 32768")
    of_job["place"] = _place()
    # Newer than the others: who does not say it means what there was before.
    of_job["values"] = 256
    if "WEIR_VALUES" in os.environ:
        of_job["values"] = _number("WEIR_VALUES", 1, 2048)
        if of_job["values"] not in _VALUES:
            raise RuntimeError(f"weir: WEIR_VALUES={of_job['values']}: switches sum frames of 32, 64, 256 or 2048")
    return of_job


def interface():
    """The interface that leads to the switch."""
    return os.environ.get("WEIR_INTERFACE", "eth0")


def transport():
    """What frames are between this rank and its switch."""
    told = os.environ.get("WEIR_TRANSPORT") or "udp"
    if told not in ("udp", "rdma"):
        raise RuntimeError(f"weir: WEIR_TRANSPORT={told}: it is udp or rdma")
    return told


def set_interface():
    """Has Gloo use the job's interface, too, if nothing else is said: it would take the one of the host's name, which on Debian is
    an address that no other host reaches."""
    if job() is not None and interface() in (name for _, name in socket.if_nameindex()):
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface())


def _number(name, least, most):
    told = os.environ[name]
    # int() takes signs, blanks and underscores, too.
    if not (told.isascii() and told.isdecimal() and len(told) <= 10 and least <= int(told) <= most):
        raise RuntimeError(f"weir: {name}={told}: it is a whole number, {least} to {most}")
    return int(told)


def _place():
    """Where this rank stands among switches; None where one sums all."""
    told = os.environ.get("WEIR_PLACE")
    if not told:
        return None
    parts = told.split("/")
    numbers = [int(part) for part in parts if part.isascii() and part.isdecimal() and len(part) <= 10]
    if len(parts) != 3 or len(numbers) != 3:
        raise RuntimeError(f"weir: WEIR_PLACE={told}: it is CHILD/SIBLINGS/TOP, such as 0/2/2")
    child, siblings, top = numbers
    if not (1 <= siblings <= 64 and 1 <= top <= 64 and child < siblings):
        raise RuntimeError(f"weir: WEIR_PLACE={told}: SIBLINGS and TOP are 1 to 64, and CHILD is less than SIBLINGS")
    return child, siblings, top


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


def seed():
    """By which this rank rounds; None if it rounds to the nearest."""
    told = os.environ.get("WEIR_ROUNDING", "nearest")
    if told == "nearest":
        return None
    name, _, seed = told.partition(":")
    try:
        number = int(seed or "0")
    except ValueError:
        number = -1
    if name != "stochastic" or not 0 <= number < 1 << 64:
        raise RuntimeError(f"weir: WEIR_ROUNDING={told}: it is nearest, stochastic, or stochastic:SEED, 0 to 2**64 - 1")
    return number


def non_finite():
    """What becomes of a sum whose values are not finite."""
    told = os.environ.get("WEIR_NON_FINITE", FAIL)
    if told not in (FAIL, GLOO):
        raise RuntimeError(f"weir: WEIR_NON_FINITE={told}: it is {FAIL} or {GLOO}")
    return told
