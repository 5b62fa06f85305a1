"""What all ranks of a parameter server know alike."""

from dataclasses import dataclass

MODES = ("sync", "async", "stale", "fastest")


@dataclass(frozen=True)
class Plan:
    """Who serves, and when a step is made. It is the same at all ranks.

    ``sync``: of all workers' gradients, whose mean is applied; workers push and pull together. ``async``: of each push as it
    comes. ``stale``: the same, but a worker that is more than ``staleness`` pushes ahead of the slowest waits. ``fastest``: of
    the first ``fastest`` pushes, whose mean is applied; a gradient of an earlier step's parameters is dropped, or joins the
    step that is being made (``late="next"``).
    """

    mode: str = "sync"
    #: Ranks that serve; all others are workers.
    servers: tuple = (0,)
    #: Of ``stale``: by how many pushes a worker may be ahead of the slowest.
    staleness: int = None
    #: Of ``fastest``: how many pushes make a step. Fewer do, when fewer workers are left.
    fastest: int = None
    #: Of ``fastest``: what becomes of a gradient that is late, ``drop`` or ``next``.
    late: str = None
    #: What a server does when a worker is lost: it ends, with that one's name (``fail``), or goes on without it (``continue``).
    on_lost: str = "fail"
    #: Seconds after which a worker that says nothing is lost; None: a process that ends is, and nothing else.
    lost_after: float = None

    def __post_init__(self):
        object.__setattr__(self, "servers", tuple(self.servers))
        if self.mode not in MODES:
            raise ValueError(f"weir.ps: mode {self.mode!r}: it is one of {', '.join(MODES)}")
        if not self.servers or len(set(self.servers)) < len(self.servers) or min(self.servers) < 0:
            raise ValueError(f"weir.ps: servers {list(self.servers)}: they are ranks, at least one, each once")
        self._is_of("staleness", "stale", self.staleness is not None and self.staleness >= 0, "0 or more")
        self._is_of("fastest", "fastest", self.fastest is not None and self.fastest >= 1, "1 or more")
        if self.mode == "fastest" and self.late is None:
            object.__setattr__(self, "late", "drop")
        self._is_of("late", "fastest", self.late in ("drop", "next"), "'drop' or 'next'")
        if self.on_lost not in ("fail", "continue"):
            raise ValueError(f"weir.ps: on_lost={self.on_lost!r}: it is 'fail' or 'continue'")
        if self.mode == "sync" and (self.on_lost != "fail" or self.lost_after is not None):
            raise ValueError(
                "weir.ps: in mode sync all ranks take part in each step, and without one there is none: on_lost is 'fail', and "
                "how long a rank may be silent is the process group's to say, not lost_after's"
            )
        if self.lost_after is not None and not self.lost_after > 0:
            raise ValueError(f"weir.ps: lost_after={self.lost_after!r}: it is a number of seconds")

    def _is_of(self, name, mode, is_right, expected):
        value = getattr(self, name)
        if self.mode == mode and not is_right:
            raise ValueError(f"weir.ps: {name}={value!r}: mode {mode} wants {expected}")
        if self.mode != mode and value is not None:
            raise ValueError(f"weir.ps: {name}={value!r} is of mode {mode}, and this is mode {self.mode}")

    def workers(self, size):
        """The ranks that work, of so many."""
        return [rank for rank in range(size) if rank not in self.servers]

    def shards(self, sizes):
        """By server, which parameters it has, of so many bytes each: the largest first, to who has the least."""
        shards = {server: [] for server in self.servers}
        loads = dict.fromkeys(self.servers, 0)
        for index in sorted(range(len(sizes)), key=lambda index: -sizes[index]):
            # The first of those that have equally little.
            server = min(self.servers, key=loads.__getitem__)
            shards[server].append(index)
            loads[server] += sizes[index]
        return {server: sorted(shard) for server, shard in shards.items()}
