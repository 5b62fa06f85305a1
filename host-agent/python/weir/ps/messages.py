"""Messages between workers and servers, host to host: a header of numbers, with the length of the body.

They use a Gloo group of their own, whatever the backend is: there, the death of a peer is seen at once, as its connection
closes.
"""

from contextlib import contextmanager
from datetime import timedelta
from enum import IntEnum

import torch
import torch.distributed as dist

# A worker's step may take any time, and a closed connection shows that a peer has died, so the group's timeout is practically
# unlimited.
_PATIENCE = timedelta(days=365)

class Lost(RuntimeError):
    """A rank is lost, so the training cannot continue. The message has the rank and the reason."""


class Closed(RuntimeError):
    """The connection to a rank was closed."""


#: Length of the header in bytes.
HEADER_BYTES = 24


class Kind(IntEnum):
    """Kind of a message."""

    #: In mode sync: action of a server, which follows the workers.
    SERVE = 0
    PUSH = 1
    PULL = 2
    PUSH_PULL = 3
    #: The worker has finished.
    LEAVE = 4
    #: The worker's program has failed; the body is the error.
    FAILED = 5
    #: Reply of a server, with parameters if they were requested.
    ANSWER = 6
    #: Refusal of a server; the body is the reason.
    REFUSAL = 7

    @property
    def pushes(self):
        return self in (Kind.PUSH, Kind.PUSH_PULL)

    @property
    def pulls(self):
        return self in (Kind.PULL, Kind.PUSH_PULL)


def group():
    """Creates the group for messages. All ranks must call this, in the same order as for their other groups."""
    return dist.new_group(backend="gloo", timeout=_PATIENCE)


def send(to, kind, step, body, among):
    """Sends a message. ``step`` is the number of steps of the parameters that the message refers to."""
    body = text(body) if isinstance(body, str) else body
    bytes_ = 0 if body is None else body.numel()
    with _connected():
        dist.send(torch.tensor([int(kind), step, bytes_]), to, group=among)
        if bytes_:
            dist.send(body, to, group=among)


def receive(source, buffer, among):
    """Receives a message; returns its kind, step and body. The body is in ``buffer`` if its length matches."""
    header = torch.zeros(3, dtype=torch.int64)
    with _connected():
        dist.recv(header, source, group=among)
        kind, step, bytes_ = header.tolist()
        body = buffer if bytes_ == buffer.numel() else torch.zeros(bytes_, dtype=torch.uint8)
        if bytes_:
            dist.recv(body, source, group=among)
    return Kind(kind), step, body


@contextmanager
def _connected():
    try:
        yield
    except RuntimeError as error:
        # Gloo's message starts with a position in its source code.
        raise Closed(str(error).splitlines()[0].rpartition("] ")[2]) from error


def text(told):
    return torch.tensor(list(told.encode()), dtype=torch.uint8)


def told(body):
    return bytes(body.tolist()).decode(errors="replace")
