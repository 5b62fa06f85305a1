"""What a worker and a server say to each other, host to host: a row of numbers, and as many bytes as it says.

Over a group of Gloo's of their own, whatever the backend is: who dies is seen there at once, by the end of its connection.
"""

from contextlib import contextmanager
from datetime import timedelta
from enum import IntEnum

import torch
import torch.distributed as dist

# Nobody waits for less than a worker needs for a step, however long that is: who is gone is seen otherwise.
_PATIENCE = timedelta(days=365)

class Lost(RuntimeError):
    """A rank is lost, and with it the training: which one, and how that was seen."""


class Closed(RuntimeError):
    """The connection to a rank has ended."""


#: Bytes of a message without what follows.
HEADER_BYTES = 24


class Kind(IntEnum):
    """Of a message."""

    #: In mode sync: a server, which does what workers say.
    SERVE = 0
    PUSH = 1
    PULL = 2
    PUSH_PULL = 3
    #: The worker has done its work.
    LEAVE = 4
    #: The worker's program has failed; the bytes say how.
    FAILED = 5
    #: A server's answer, with parameters if they were asked for.
    ANSWER = 6
    #: It is none; the bytes say why.
    REFUSAL = 7

    @property
    def pushes(self):
        return self in (Kind.PUSH, Kind.PUSH_PULL)

    @property
    def pulls(self):
        return self in (Kind.PULL, Kind.PUSH_PULL)


def group():
    """The group for messages. All ranks make it, in the same order as their other groups."""
    return dist.new_group(backend="gloo", timeout=_PATIENCE)


def send(to, kind, step, body, among):
    """``step`` is the number of steps that the parameters have which the sender speaks of."""
    body = text(body) if isinstance(body, str) else body
    bytes_ = 0 if body is None else body.numel()
    with _connected():
        dist.send(torch.tensor([int(kind), step, bytes_]), to, group=among)
        if bytes_:
            dist.send(body, to, group=among)


def receive(source, buffer, among):
    """The kind, the step and the bytes, which are the buffer's if there are as many."""
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
        # Its place in Gloo's sources stands before what it says.
        raise Closed(str(error).splitlines()[0].rpartition("] ")[2]) from error


def text(told):
    return torch.tensor(list(told.encode()), dtype=torch.uint8)


def told(body):
    return bytes(body.tolist()).decode(errors="replace")
