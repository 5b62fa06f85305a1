"""The plan of a parameter server, the same at all ranks."""

from dataclasses import dataclass

MODES = ("sync", "async", "stale", "fastest")


@dataclass(frozen=True)
class Plan:
    """The servers, and the rule by which pushes become steps of the optimizer.

    ``sync``: a step applies the mean of all workers' gradients; workers push and pull together. ``async``: each push is a step.
    ``stale``: likewise, but a worker that is more than ``staleness`` pushes ahead of the slowest waits. ``fastest``: a step
    applies the mean of the first ``fastest`` pushes; a gradient of an earlier step's parameters is dropped, or joins the
    current step (``late="next"``).
    """

    mode: str = "sync"
    #: Ranks that serve; all others are workers.
    servers: tuple = (0,)
    #: For ``stale``: maximum number of pushes by which a worker is ahead of the slowest.
    staleness: int = None
    #: For ``fastest``: number of pushes per step; the number of remaining workers if that is less.
    fastest: int = None
    #: For ``fastest``: handling of a late gradient, ``drop`` or ``next``.
    late: str = None
    #: Behavior of a server after the loss of a worker: it fails (``fail``), or continues without that worker (``continue``).
    on_lost: str = "fail"
    #: Seconds without a message after which a worker is lost; None: a worker is lost only when its process ends.
    lost_after: float = None

    def __post_init__(self):
        object.__setattr__(self, "servers", tuple(self.servers))
        if self.mode not in MODES:
            raise ValueError(f"weir.ps: mode {self.mode!r}: use one of {', '.join(MODES)}")
        if not self.servers or len(set(self.servers)) < len(self.servers) or min(self.servers) < 0:
            raise ValueError(f"weir.ps: servers {list(self.servers)}: name at least one rank, each once")
        self._is_of("staleness", "stale", self.staleness is not None and self.staleness >= 0, "0 or more")
        self._is_of("fastest", "fastest", self.fastest is not None and self.fastest >= 1, "1 or more")
        if self.mode == "fastest" and self.late is None:
            object.__setattr__(self, "late", "drop")
        self._is_of("late", "fastest", self.late in ("drop", "next"), "'drop' or 'next'")
        if self.on_lost not in ("fail", "continue"):
            raise ValueError(f"weir.ps: on_lost={self.on_lost!r}: use 'fail' or 'continue'")
        if self.mode == "sync" and (self.on_lost != "fail" or self.lost_after is not None):
            raise ValueError(
                "weir.ps: in mode sync each step needs all ranks: set on_lost to 'fail', and use the process group's timeout "
                "instead of lost_after"
            )
        if self.lost_after is not None and not self.lost_after > 0:
            raise ValueError(f"weir.ps: lost_after={self.lost_after!r}: use a positive number of seconds")

    def _is_of(self, name, mode, is_right, expected):
        value = getattr(self, name)
        if self.mode == mode and not is_right:
            raise ValueError(f"weir.ps: {name}={value!r}: mode {mode} needs {expected}")
        if self.mode != mode and value is not None:
            raise ValueError(f"weir.ps: {name}={value!r} is for mode {mode}, but the mode is {self.mode}")

    def workers(self, size):
        """The workers among ``size`` ranks."""
        return [rank for rank in range(size) if rank not in self.servers]

    def shards(self, sizes):
        """The parameters of each server, by their sizes in bytes: the largest first, each to the server with the least."""
        shards = {server: [] for server in self.servers}
        loads = dict.fromkeys(self.servers, 0)
        for index in sorted(range(len(sizes)), key=lambda index: -sizes[index]):
            # The first server of those with the least.
            server = min(self.servers, key=loads.__getitem__)
            shards[server].append(index)
            loads[server] += sizes[index]
        return {server: sorted(shard) for server, shard in shards.items()}
