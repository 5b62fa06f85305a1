"""Submission of operations to the native half, in order: large tensors in pieces, with few of them in flight.

The native half copies the values of an operation. With pieces, the copies take the memory of at most UNDER_WAY values, however
large a tensor is, and its first pieces are summed before its last ones are submitted.
"""

import collections
import threading

# Number of values of a piece. All ranks must use the same one, so that they submit the same operations in the same order.
PIECE = 1 << 23
# Maximum number of submitted values without sums.
UNDER_WAY = 4 * PIECE


def pieces(values):
    """Start and end of each piece of a tensor with this number of values."""
    return [(at, min(at + PIECE, values)) for at in range(0, values, PIECE)]


class Interrupted(BaseException):
    """A signal's handler has raised the exception that is this one's cause, while this thread waited for sums. It is no error of the
    operation, so code that handles such errors does not see it."""


class Piece:
    """Values that are submitted in their turn."""

    def __init__(self, order, values, give):
        self.values = values
        self._order = order
        self._give = give
        self._sums = None
        # The native half's result.
        self._told = None
        self._error = None
        self._is_over = False

    @property
    def is_over(self):
        """Whether its sums are not needed any more, or it has none."""
        return self._is_over

    @property
    def was_given(self):
        return self._give is None and self._error is None

    def give(self):
        """Submits the values, once; returns the error, if there is one."""
        give, self._give = self._give, None
        try:
            sums = give()
        except Exception as error:  # noqa: BLE001: the waiting caller raises it
            self.fail(error)
        else:
            self._sums = None if self._is_over else sums
        return self._error

    def fail(self, error):
        """Gives the piece up: a waiting caller raises the error."""
        self._give, self._error, self._is_over = None, error, True

    def wait(self, address, length, timeout):
        """Waits for the sums, which are written to the address; returns the native half's result, also when it is called again.
        All earlier pieces must be over. After :class:`Interrupted`, the wait can be called again."""
        if self._told is None:
            try:
                self.check()
                self._told = self._sums.wait(address, length, timeout.total_seconds())
            except Exception as error:
                if self._sums is not None and not self._sums.is_over:
                    raise Interrupted from error
                self._order.end(self)
                raise
            self._order.end(self)
        return self._told

    def check(self):
        """Raises the error of its submission."""
        if self._error is not None:
            raise self._error

    def end(self):
        """Ends the piece; returns whether it was in flight."""
        was_under_way = self._give is None and not self._is_over
        self._is_over, self._sums = True, None
        return was_under_way


class Order:
    """Submits pieces in the order in which they were added. A piece whose sums are not needed any more is submitted
    nevertheless, since other ranks submit theirs. After a piece that was not submitted, no other one is: it would be summed
    with the wrong pieces of other ranks.

    At most `most` pieces are in flight, so that the native half accepts each one at once. If it blocked, the thread that
    completes pieces in flight would wait for itself.
    """

    def __init__(self, most):
        # Held from the start of an operation until it is queued for the thread that completes operations.
        self.lock = threading.RLock()
        self._held = collections.deque()
        self._most = most
        # Number of pieces in flight, and of their values.
        self._given = 0
        self._under_way = 0
        # Reason why no further piece is submitted.
        self._broken = None

    @property
    def holds_any(self):
        """Whether pieces wait until others are over."""
        return bool(self._held)

    def operation(self):
        return Operation(self)

    def add(self, values, give):
        """Adds a piece, and submits it now if the limits allow it; raises the error of that submission."""
        piece = Piece(self, values, give)
        with self.lock:
            if self._broken is not None:
                raise self._broken
            self._held.append(piece)
            self._give()
        piece.check()
        return piece

    def break_off(self, error):
        """Stops submission: some pieces of an operation were submitted, and the others will not be."""
        self._broken = error
        while self._held:
            self._held.popleft().fail(error)

    def end(self, piece):
        """Ends a piece, and submits waiting ones in its place."""
        with self.lock:
            if piece.end():
                self._given -= 1
                self._under_way -= piece.values
            self._give()

    def _give(self):
        # The caller holds the lock, so pieces are submitted in order.
        while self._held and self._may_give(self._held[0]):
            piece = self._held.popleft()
            failed = piece.give()
            if failed is not None:
                self.break_off(failed)
            elif not piece.is_over:
                self._given += 1
                self._under_way += piece.values

    def _may_give(self, piece):
        is_room = self._given < self._most and self._under_way + piece.values <= UNDER_WAY
        return self._given == 0 or is_room


class Operation:
    """The pieces of one operation.

    As a context manager it excludes other operations while its pieces are added, so that operations of several threads are
    completed in the order in which their pieces were submitted.
    """

    def __init__(self, order):
        self._order = order
        self._pieces = []
        # Whether all of its pieces were added.
        self._is_whole = True

    def add(self, values, give):
        piece = self._order.add(values, give)
        self._pieces.append(piece)
        return piece

    def __enter__(self):
        self._order.lock.acquire()
        return self

    def __exit__(self, failed, *_):
        try:
            if failed is not None:
                self._is_whole = False
                self.end()
        finally:
            self._order.lock.release()

    def drain(self, timeout):
        """Waits for the remaining pieces, and discards their sums."""
        for piece in self._pieces:
            try:
                if not piece.is_over:
                    # The native half refuses address 0 when the sums are there, so it writes nothing.
                    piece.wait(0, 0, timeout)
            except TimeoutError:
                return
            except Exception:  # noqa: BLE001: the first error is raised by the caller
                continue

    def end(self, error=None):
        """Ends all pieces. `error` is the reason, if the operation failed."""
        with self._order.lock:
            given = [piece.was_given for piece in self._pieces]
            # The remaining pieces are not submitted: their copies would exceed the memory limit.
            if any(given) and not (self._is_whole and all(given)):
                is_silence = error is None or isinstance(error, TimeoutError)
                self._order.break_off(_given_up() if is_silence else error)
            for piece in self._pieces:
                self._order.end(piece)


def _given_up():
    told = "weir: an operation ended in the middle of a tensor, so the ranks are out of step: create the group again"
    return RuntimeError(told)
