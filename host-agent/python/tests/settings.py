"""Three ranks with invalid or different settings: all of them get the error. Exits with 0 if all is right."""

import os

import torch.distributed as dist

import weir.torch  # noqa: F401: registers the backend
from weir import _join

RANK = int(os.environ["RANK"])


def refused(port, told, **settings):
    os.environ.update(settings, MASTER_PORT=str(port))
    try:
        dist.init_process_group("weir")
    except RuntimeError as error:
        assert told in str(error), error
    else:
        raise AssertionError(f"{settings} were taken")


said = "a job of 3 ranks, WEIR_NON_FINITE="
differs = f"the ranks differ: ranks 0, 2: {said}fail; rank 1: {said}gloo"
refused(29601, differs, WEIR_NON_FINITE="gloo" if RANK == 1 else "fail")
one = {"WEIR_NON_FINITE": "never" if RANK == 0 else "fail"}
refused(29602, ("" if RANK == 0 else "rank 0: ") + "WEIR_NON_FINITE=never: use", **one)
for number, rounding in enumerate(("up", "stochastic:-1", "stochastic:x", "nearest:1")):
    told = f"WEIR_ROUNDING={rounding}: use"
    refused(29603 + number, told, WEIR_NON_FINITE="fail", WEIR_ROUNDING=rounding)

# Deadline and quorum must be equal at all ranks.
os.environ["WEIR_ROUNDING"] = "nearest"
late = (
    ("WEIR_DEADLINE=soon: use", {"WEIR_DEADLINE": "soon"}),
    ("WEIR_QUORUM=3: a partial sum needs", {"WEIR_DEADLINE": "0.02", "WEIR_QUORUM": "3"}),
    ("WEIR_LATE=keep: use", {"WEIR_QUORUM": "2", "WEIR_LATE": "keep"}),
    # The scenario has set no deadline at the switch.
    ("the switch makes no partial sums", {"WEIR_LATE": "drop"}),
)
for number, (told, settings) in enumerate(late):
    refused(29607 + number, told, **settings)

# The jobs must be equal, too.
for name in ("WEIR_DEADLINE", "WEIR_QUORUM", "WEIR_LATE"):
    os.environ.pop(name, None)
jobs = (
    ("the ranks belong to different jobs: rank 0: ", {"WEIR_WINDOW": "128" if RANK == 1 else os.environ["WEIR_WINDOW"]}),
    ("the ranks belong to different jobs: rank 0: ", {"WEIR_JOB": str(int(os.environ["WEIR_JOB"]) + (RANK == 2))}),
    ("rank 1 of its job, but rank 0 of torch's group", {"WEIR_RANK": str([1, 0, 2][RANK])}),
)
for number, (told, settings) in enumerate(jobs):
    before = {name: os.environ[name] for name in settings}
    told = "this host is rank 0 of its job, but rank 1 of torch's group" if "WEIR_RANK" in settings and RANK == 1 else told
    refused(29620 + number, told, **settings)
    os.environ.update(before)
_join.VERSION = "0.0.0" if RANK == 2 else _join.VERSION
refused(29630, "rank 2: weir 0.0.0 (layout ")
print("right", flush=True)
