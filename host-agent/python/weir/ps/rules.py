"""What a push means, and when it is answered: one class a mode. No I/O, no clock; workers are numbers.

A step is made of the gradients that were kept since the last one: their mean is applied.
"""

from enum import Enum


class Taken(Enum):
    """What becomes of a push."""

    #: It is part of the next step.
    KEPT = 1
    #: It is, although it is of an earlier step's parameters.
    LATE = 2
    #: It is of an earlier step's parameters, and part of none.
    DROPPED = 3


class Async:
    """Each push is a step, and is answered at once."""

    def __init__(self, workers):
        #: Who is there.
        self.present = set(workers)

    def take(self, worker, seen, step):
        """A push of parameters that were those after ``seen`` steps; there were ``step``."""
        return Taken.KEPT

    def is_due(self, kept):
        """Whether a step is to be made of so many gradients."""
        return kept > 0

    def stepped(self):
        """A step was made."""

    def answers(self, worker):
        """Whether a worker's push may be answered."""
        return True

    def leave(self, worker):
        """It pushes no more."""
        self.present.discard(worker)

    def ahead(self, worker):
        """By how many pushes a worker is ahead of the slowest; None where nobody counts."""
        return None


class Stale(Async):
    """Each push is a step; who is too far ahead of the slowest is answered when that one has caught up, or left."""

    def __init__(self, workers, staleness):
        super().__init__(workers)
        self._staleness = staleness
        self._pushes = dict.fromkeys(workers, 0)

    def take(self, worker, seen, step):
        self._pushes[worker] += 1
        return Taken.KEPT

    def answers(self, worker):
        return self.ahead(worker) <= self._staleness

    def ahead(self, worker):
        slowest = min((self._pushes[other] for other in self.present), default=0)
        return max(0, self._pushes[worker] - slowest)


class Fastest(Async):
    """A step is made of the first so many pushes, and they are answered then. What is late is answered at once."""

    def __init__(self, workers, fastest, late):
        super().__init__(workers)
        self._fastest = fastest
        self._late = late
        #: Whose pushes of this step are there.
        self._given = set()

    def take(self, worker, seen, step):
        if seen == step:
            self._given.add(worker)
            return Taken.KEPT
        return Taken.LATE if self._late == "next" else Taken.DROPPED

    def is_due(self, kept):
        # Those who are left may be fewer; what was late alone makes no step.
        return len(self._given) >= max(1, min(self._fastest, len(self.present)))

    def stepped(self):
        self._given.clear()

    def answers(self, worker):
        return worker not in self._given


def of(plan, workers):
    """The rule of a plan's mode."""
    if plan.mode == "stale":
        return Stale(workers, plan.staleness)
    if plan.mode == "fastest":
        return Fastest(workers, plan.fastest, plan.late)
    return Async(workers)
