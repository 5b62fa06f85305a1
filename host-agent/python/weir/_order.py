"""What a rank gives the switch, in its order: a large tensor in pieces, of which few are under way.

The native half copies what it is given. By pieces those copies take no more memory than UNDER_WAY values do, however large a
tensor is, and it is summed while the rest of it is still to be given.
"""

import collections
import threading

# Values of a piece: the same at all ranks, which have to give the same in the same order.
PIECE = 1 << 23
# So many values may have no sums yet before others wait.
UNDER_WAY = 4 * PIECE


def pieces(values):
    """Where each piece of so many values begins and ends."""
    return [(at, min(at + PIECE, values)) for at in range(0, values, PIECE)]


class Piece:
    """Values that are given once it is their turn."""

    def __init__(self, order, values, give):
        self.values = values
        self._order = order
        self._give = give
        self._sums = None
        self._error = None
        self._is_over = False

    @property
    def is_over(self):
        """Nobody wants its sums any more, or it has none."""
        return self._is_over

    @property
    def was_given(self):
        return self._give is None and self._error is None

    def give(self):
        """Gives it, once, and returns what failed."""
        give, self._give = self._give, None
        try:
            sums = give()
        except Exception as error:  # noqa: BLE001: whoever waits is told
            self.fail(error)
        else:
            self._sums = None if self._is_over else sums
        return self._error

    def fail(self, error):
        """It is not given, and who waits is told why."""
        self._give, self._error, self._is_over = None, error, True

    def wait(self, address, length, timeout):
        """What the native half gives, whose sums then stand there. All pieces before it must be over."""
        try:
            self.check()
            return self._sums.wait(address, length, timeout.total_seconds())
        finally:
            self._order.end(self)

    def check(self):
        """Raises what failed when it was given."""
        if self._error is not None:
            raise self._error

    def end(self):
        """Whether it was given and had not ended before."""
        was_under_way = self._give is None and not self._is_over
        self._is_over, self._sums = True, None
        return was_under_way


class Order:
    """Pieces in the order in which they were asked for. One that nobody wants any more is given all the same: other ranks give
    theirs. Once one was not given, none is: it would be summed with others' of another place.

    So many of them, `most`, are under way that the native half takes each at once. Were it to wait, the thread that ends what is
    under way would wait for it.
    """

    def __init__(self, most):
        # Held by who begins an operation until it is also in its place for who ends them.
        self.lock = threading.RLock()
        self._held = collections.deque()
        self._most = most
        # Pieces that were given and are not over, and their values.
        self._given = 0
        self._under_way = 0
        # Why nothing is given any more.
        self._broken = None

    def operation(self):
        return Operation(self)

    def add(self, values, give):
        """A piece, which is given now if it may be. It raises what fails then."""
        piece = Piece(self, values, give)
        with self.lock:
            if self._broken is not None:
                raise self._broken
            self._held.append(piece)
            self._give()
        piece.check()
        return piece

    def break_off(self, error):
        """Some of an operation's pieces were given, and the others will not be."""
        self._broken = error
        while self._held:
            self._held.popleft().fail(error)

    def end(self, piece):
        """What waits may be given instead."""
        with self.lock:
            if piece.end():
                self._given -= 1
                self._under_way -= piece.values
            self._give()

    def _give(self):
        # The lock is held: what is taken first is given first.
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
    """The pieces of one operation. When it has ended none is waited for any more.

    While it is begun no other is: operations of several threads are ended in the order in which their pieces were given.
    """

    def __init__(self, order):
        self._order = order
        self._pieces = []
        # All its pieces were asked for.
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
        """Waits for what is left, and takes nothing of it."""
        for piece in self._pieces:
            try:
                if not piece.is_over:
                    # Nothing is written to address 0, but refused when the sums are there.
                    piece.wait(0, 0, timeout)
            except TimeoutError:
                return
            except Exception:  # noqa: BLE001: what failed before is told
                continue

    def end(self, error=None):
        """`error` is why it has ended."""
        with self._order.lock:
            given = [piece.was_given for piece in self._pieces]
            # Given all at once, what is left would be copied all at once.
            if any(given) and not (self._is_whole and all(given)):
                is_silence = error is None or isinstance(error, TimeoutError)
                self._order.break_off(_given_up() if is_silence else error)
            for piece in self._pieces:
                self._order.end(piece)


def _given_up():
    told = "weir: an operation was given up in the middle of a tensor, so ranks are out of step: make the group anew"
    return RuntimeError(told)
