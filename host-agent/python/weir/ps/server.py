"""A server: it owns parameters and their optimizer, receives gradients, and sends parameters."""

import threading
import time
from collections import Counter

import torch.distributed as dist

from .. import NonFinite
from . import messages, rules
from .agreement import agree
from .collective import Together
from .layout import Layout
from .messages import Kind, Lost

# A server that fails because of one worker waits for this time for the requests of the others, and replies with the reason.
_TELLING_S = 60.0


class Server:
    """A server rank. ``optimizer`` is a torch optimizer of all parameters; it updates those of this server. ``on_step`` is
    called after each step with the number of steps, for a learning rate schedule or a snapshot.

    The constructor returns when all ranks have started.
    """

    def __init__(self, parameters, optimizer, plan, on_step=None):
        self._parameters = list(parameters)
        stepped = {id(of) for group in optimizer.param_groups for of in group["params"]}
        is_whole = all(id(of) in stepped for of in self._parameters)
        agree(plan, "server", self._parameters, None if is_whole else "its optimizer has other parameters")
        self._plan, self._optimizer, self._on_step = plan, optimizer, on_step
        self._rank = dist.get_rank()
        shards = plan.shards([of.numel() * of.element_size() for of in self._parameters])
        self._shard = shards[self._rank]
        self._own = [self._parameters[at] for at in self._shard]
        self._step = 0
        self._counts = Counter()
        self._staleness = Counter()
        if plan.mode == "sync":
            self._together = Together(self._parameters, plan, shards)
        else:
            self._together, self._among = None, messages.group()
            self._layout = Layout(self._own)
        workers = plan.workers(dist.get_world_size())
        # Protects the following fields: there is one thread per worker.
        self._changed = threading.Condition()
        self._rule = rules.for_plan(plan, workers)
        self._sums = [of.detach().clone().zero_() for of in self._own]
        # For each parameter, whether a push of the next step has a gradient.
        self._present = [False] * len(self._own)
        self._kept = 0
        # Time since when each worker computes; None while the server handles its message.
        self._idle_since = {}
        self._attended = set(workers)
        self._lost, self._failure = {}, None

    def run(self):
        """Serves until all workers have left; returns the counters. Raises ``Lost`` if a worker is lost and the plan has
        ``fail``, or if all workers are lost."""
        if self._together is not None:
            self._run_together()
        else:
            self._run_apart()
        return self.counters()

    def counters(self):
        """Counts of received ``pushes``, ``steps``, ``late`` pushes, ``dropped`` ones among these, ``held`` replies, workers
        that have ``left`` and that are ``lost``, bytes ``received`` and ``sent`` host to host. ``staleness``: number of pushes
        by the age of their parameters in steps. ``ahead``: maximum number of pushes by which a worker was ahead of the slowest
        at its reply."""
        with self._changed:
            names = ("pushes", "late", "dropped", "held", "left", "lost", "received", "sent", "ahead")
            counted = {name: self._counts[name] for name in names}
            return counted | {"steps": self._step, "staleness": dict(sorted(self._staleness.items()))}

    # Mode sync.

    def _run_together(self):
        while True:
            kind, present = self._together.agree(Kind.SERVE)
            if kind.pushes and not self._sum(present):
                continue
            if kind.pulls:
                self._together.broadcast()
            if kind == Kind.LEAVE:
                self._counts["left"] = len(self._attended)
                return

    def _sum(self, present):
        """Makes a step of all workers' pushes; returns ``False`` if a value is not finite, which is an error at all ranks."""
        workers = len(self._attended)
        with self._changed:
            self._counts["pushes"] += workers
        try:
            means = self._together.reduce(None, present)
        except NonFinite:
            with self._changed:
                self._counts["dropped"] += workers
            return False
        with self._changed:
            self._staleness[0] += workers
            self._apply([means.get(at) for at in self._shard])
        return True

    # The other modes.

    def _run_apart(self):
        for worker in sorted(self._attended):
            self._idle_since[worker] = time.monotonic()
            # A daemon thread: it may be blocked in a receive when the server ends.
            threading.Thread(target=self._attend, args=(worker,), name=f"weir.ps worker {worker}", daemon=True).start()
        with self._changed:
            while self._attended and self._failure is None:
                self._changed.wait(None if self._plan.lost_after is None else self._plan.lost_after / 4)
                self._look_for_silent()
            # Replies to the other workers' requests have the reason.
            self._changed.wait_for(lambda: not self._attended, _TELLING_S)
            if self._failure is None and not self._counts["left"]:
                self._failure = Lost(f"weir.ps: all workers are lost: {self._told_lost()}")
            if self._failure is not None:
                raise self._failure

    def _look_for_silent(self):
        now, lost_after = time.monotonic(), self._plan.lost_after
        for worker, since in list(self._idle_since.items()):
            if lost_after is not None and since is not None and now - since > lost_after:
                self._lose(worker, f"has sent nothing for {lost_after:g} s")

    def _attend(self, worker):
        """Serves one worker until it has left, or is lost."""
        buffer = self._layout.buffer()
        try:
            while self._answer(worker, buffer):
                pass
        except messages.Closed as error:
            with self._changed:
                self._lose(worker, f"is unreachable: {error}")
        except Exception as error:  # noqa: BLE001: `run` raises it, and replies report it
            with self._changed:
                self._fail(error)
        with self._changed:
            self._attended.discard(worker)
            self._idle_since.pop(worker, None)
            self._changed.notify_all()

    def _answer(self, worker, buffer):
        """Receives a message of a worker, and replies; returns ``False`` after the last one."""
        kind, seen, body = messages.receive(worker, buffer, self._among)
        with self._changed:
            self._counts["received"] += messages.HEADER_BYTES + body.numel()
            if worker in self._idle_since:
                self._idle_since[worker] = None
            refusal, is_last = self._refusal(worker), kind in (Kind.LEAVE, Kind.FAILED)
            if refusal is None:
                try:
                    self._do(worker, kind, seen, body)
                except Exception as error:  # noqa: BLE001: of the optimizer or `on_step`; replies report it
                    self._fail(error)
                refusal = None if is_last else self._refusal(worker)
            pulls = refusal is None and kind.pulls
            answer = self._layout.pack(self._own, buffer) if pulls else refusal
            step = self._step
        messages.send(worker, Kind.ANSWER if refusal is None else Kind.REFUSAL, step, answer, self._among)
        with self._changed:
            self._counts["sent"] += messages.HEADER_BYTES + (buffer.numel() if pulls else len((refusal or "").encode()))
            if worker in self._idle_since:
                self._idle_since[worker] = time.monotonic()
        return refusal is None and not is_last

    def _refusal(self, worker):
        """Reason why the server refuses this worker's requests; None if it does not."""
        if worker in self._lost:
            return f"weir.ps: server rank {self._rank} has declared this worker lost: rank {worker} {self._lost[worker]}"
        if self._failure is None or isinstance(self._failure, Lost):
            return self._failure and str(self._failure)
        return f"weir.ps: server rank {self._rank} has failed: {self._failure}"

    def _do(self, worker, kind, seen, body):
        if kind.pushes:
            if body.numel() != self._layout.bytes:
                raise ValueError(f"weir.ps: rank {worker} pushed {body.numel()} bytes, not {self._layout.bytes}")
            self._take(worker, seen, self._layout.views(body), self._layout.present(body))
            answers = lambda: self._refusal(worker) is not None or self._rule.answers(worker)  # noqa: E731
            self._counts["held"] += not answers()
            self._changed.wait_for(answers)
            self._counts["ahead"] = max(self._counts["ahead"], self._rule.ahead(worker) or 0)
        elif kind == Kind.LEAVE:
            self._counts["left"] += 1
            self._leave(worker)
        elif kind == Kind.FAILED:
            self._lose(worker, f"has failed: {messages.told(body)}")

    def _take(self, worker, seen, gradients, present):
        taken = self._rule.take(worker, seen, self._step)
        self._counts["pushes"] += 1
        self._counts["late"] += taken != rules.Taken.KEPT
        self._counts["dropped"] += taken == rules.Taken.DROPPED
        self._staleness[self._step - seen] += 1
        if taken == rules.Taken.DROPPED:
            return
        for own, gradient in zip(self._sums, gradients):
            own += gradient
        self._present = [before or now for before, now in zip(self._present, present)]
        self._kept += 1
        self._step_if_due()

    def _step_if_due(self):
        if self._kept == 0 or not self._rule.is_due(self._kept):
            return
        for own in self._sums:
            own /= self._kept
        self._apply([own if present else None for own, present in zip(self._sums, self._present)])
        for own in self._sums:
            own.zero_()
        self._present = [False] * len(self._own)
        self._kept = 0
        self._rule.stepped()
        self._changed.notify_all()

    def _apply(self, gradients):
        """Makes a step. The optimizer does not change a parameter without a gradient, nor its state."""
        for parameter in self._parameters:
            parameter.grad = None
        for parameter, gradient in zip(self._own, gradients):
            parameter.grad = None if gradient is None else gradient.clone()
        self._optimizer.step()
        self._step += 1
        if self._on_step is not None:
            self._on_step(self._step)

    def _leave(self, worker):
        """Removes a worker: no other one waits for it from now on."""
        self._rule.leave(worker)
        self._idle_since.pop(worker, None)
        self._step_if_due()
        self._changed.notify_all()

    def _lose(self, worker, how):
        if worker in self._lost or worker not in self._rule.present:
            return
        self._lost[worker] = how
        self._counts["lost"] += 1
        self._leave(worker)
        # Its thread may be blocked in a receive, and end later.
        self._attended.discard(worker)
        if self._plan.on_lost == "fail":
            self._fail(Lost(f"weir.ps: server rank {self._rank}: {self._told_lost()}"))

    def _told_lost(self):
        return "; ".join(f"worker rank {worker} {how}" for worker, how in sorted(self._lost.items()))

    def _fail(self, error):
        """Records an error; only the first one is reported."""
        if self._failure is None:
            self._failure = error
        self._changed.notify_all()
