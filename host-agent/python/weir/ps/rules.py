"""The effect of a push, and the time of its reply: one class per mode. No I/O, no clock; workers are numbers.

A step applies the mean of the gradients that were kept since the previous step.
"""

from enum import Enum


class Taken(Enum):
    """Effect of a push."""

    #: It joins the next step.
    KEPT = 1
    #: It joins the next step, although it belongs to an earlier step's parameters.
    LATE = 2
    #: It belongs to an earlier step's parameters, and joins no step.
    DROPPED = 3


class Async:
    """Each push is a step, and gets its reply at once."""

    def __init__(self, workers):
        #: The workers that have not left.
        self.present = set(workers)

    def take(self, worker, seen, step):
        """Records a push. Its gradients belong to the parameters after ``seen`` steps; now there are ``step`` steps."""
        return Taken.KEPT

    def is_due(self, kept):
        """Whether ``kept`` gradients make a step."""
        return kept > 0

    def stepped(self):
        """Records a step."""

    def answers(self, worker):
        """Whether a worker's push may get its reply."""
        return True

    def leave(self, worker):
        """Records that a worker has left."""
        self.present.discard(worker)

    def ahead(self, worker):
        """Number of pushes by which a worker is ahead of the slowest; None in modes that do not count them."""
        return None


class Stale(Async):
    """Each push is a step; a worker that is too far ahead of the slowest gets its reply when that one has caught up, or left."""

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
    """The first ``fastest`` pushes make a step, and get their replies then. A late push gets its reply at once."""

    def __init__(self, workers, fastest, late):
        super().__init__(workers)
        self._fastest = fastest
        self._late = late
        #: Workers whose pushes of this step have arrived.
        self._given = set()

    def take(self, worker, seen, step):
        if seen == step:
            self._given.add(worker)
            return Taken.KEPT
        return Taken.LATE if self._late == "next" else Taken.DROPPED

    def is_due(self, kept):
        # Fewer workers may remain. Late pushes alone make no step.
        return len(self._given) >= max(1, min(self._fastest, len(self.present)))

    def stepped(self):
        self._given.clear()

    def answers(self, worker):
        return worker not in self._given


def for_plan(plan, workers):
    """The rule of a plan's mode."""
    if plan.mode == "stale":
        return Stale(workers, plan.staleness)
    if plan.mode == "fastest":
        return Fastest(workers, plan.fastest, plan.late)
    return Async(workers)
