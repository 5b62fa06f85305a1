"""A worker: it pushes gradients and pulls parameters."""

from contextlib import contextmanager, suppress

import torch

from . import messages
from .agreement import agree
from .collective import Together
from .layout import Layout
from .messages import Kind, Lost


class Worker:
    """A rank that computes gradients. As a context manager it leaves at the end, and reports an error of its block to the
    servers.

    The constructor returns when all ranks have started; the parameters then have the servers' values.
    """

    def __init__(self, parameters, plan):
        self._parameters = list(parameters)
        agree(plan, "worker", self._parameters)
        self._shards = plan.shards([of.numel() * of.element_size() for of in self._parameters])
        self._has_left = False
        #: For each server, the number of steps of the parameters that this worker has.
        self.steps = dict.fromkeys(plan.servers, 0)
        #: Bytes sent and received host to host.
        self.bytes_sent = self.bytes_received = 0
        if plan.mode == "sync":
            self._together = Together(self._parameters, plan, self._shards)
        else:
            self._together, self._among = None, messages.group()
            self._layouts = {server: Layout(self._of(server)) for server in self._shards}
            self._buffers = {server: layout.buffer() for server, layout in self._layouts.items()}
        self.pull()

    def push(self, gradients=None):
        """Pushes gradients, one per parameter; by default those from backward. Returns when the mode lets the worker continue.
        A gradient that is None counts as zeros in the mean of a step. A parameter with None in all pushes is not changed."""
        self._say(Kind.PUSH, gradients)

    def pull(self):
        """Copies the servers' parameters to this worker."""
        self._say(Kind.PULL)

    def push_pull(self, gradients=None):
        """Pushes and pulls: the parameters are those of the servers at their replies to the push."""
        self._say(Kind.PUSH_PULL, gradients)

    def leave(self):
        """Leaves the training. In mode sync all workers must call this together."""
        if not self._has_left:
            self._say(Kind.LEAVE)
            self._has_left = True

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        if error is None:
            self.leave()
        elif not self._has_left and not isinstance(error, Lost):
            self._has_left = True
            # The error of the block has precedence.
            with suppress(Lost):
                self._tell(Kind.FAILED, f"{kind.__name__}: {error}")

    def _of(self, server):
        return [self._parameters[at] for at in self._shards[server]]

    def _say(self, kind, gradients=None):
        if self._has_left:
            raise RuntimeError("weir.ps: this worker has left")
        gradients = self._checked(gradients) if kind.pushes else None
        if self._together is not None:
            self._do_together(kind, gradients)
        else:
            self._tell(kind, gradients)

    def _checked(self, gradients):
        given = [of.grad for of in self._parameters] if gradients is None else list(gradients)
        if len(given) != len(self._parameters):
            raise ValueError(f"weir.ps: {len(given)} gradients for {len(self._parameters)} parameters")
        for at, (gradient, parameter) in enumerate(zip(given, self._parameters)):
            if gradient is not None and gradient.shape != parameter.shape:
                told = f"{list(gradient.shape)}, but the parameter {list(parameter.shape)}"
                raise ValueError(f"weir.ps: gradient number {at} has the shape {told}")
        return given

    def _do_together(self, kind, gradients):
        _, present = self._together.agree(kind, gradients)
        if kind.pushes:
            self._together.reduce(gradients, present)
            self.steps = {server: step + 1 for server, step in self.steps.items()}
        if kind.pulls:
            self._together.broadcast()

    def _tell(self, kind, what):
        """Sends a message to every server, then receives every server's reply."""
        if self._together is not None:
            self._together.agree(kind)
            return
        for server in self._shards:
            body = what if isinstance(what, str) else None
            if kind.pushes:
                own = [what[at] for at in self._shards[server]]
                body = self._layouts[server].pack(own, self._buffers[server])
            with _of_server(server):
                messages.send(server, kind, self.steps[server], body, self._among)
            self.bytes_sent += messages.HEADER_BYTES + (body.numel() if torch.is_tensor(body) else 0)
        # Receive all replies, even after a refusal, so that the next reply belongs to the next request.
        refused = [told for told in map(self._hear, self._shards) if told is not None]
        if refused:
            raise Lost(refused[0])

    def _hear(self, server):
        """Receives a reply; returns the reason of a refusal, otherwise None."""
        with _of_server(server):
            kind, step, body = messages.receive(server, self._buffers[server], self._among)
        self.bytes_received += messages.HEADER_BYTES + body.numel()
        if kind == Kind.REFUSAL:
            return messages.told(body)
        if body is self._buffers[server]:
            self.steps[server] = step
            with torch.no_grad():
                for parameter, view in zip(self._of(server), self._layouts[server].views(body)):
                    parameter.copy_(view)
        return None


@contextmanager
def _of_server(server):
    try:
        yield
    except messages.Closed as error:
        raise Lost(f"weir.ps: server rank {server} is lost: {error}") from error
