"""Operations that go on: what torch waits for, and the thread that waits for them."""

import os
import queue
import threading
from datetime import timedelta

import torch

from ._rows import are_copied, put_back

_C10D = torch._C._distributed_c10d

# So many works that are done and nobody waited for are kept.
KEPT = 256


class Kept:
    """Works that somebody may still wait for.

    C++, as DDP's reducer is, holds on to the C++ half of a work alone. When its Python half is gone, `wait` is C++'s own,
    which waits for ever. So works stay here until they were waited for or have given their future away, which is whole
    without them; of those that nobody asks for, the last few hundred.
    """

    def __init__(self):
        self._works = {}
        self._lock = threading.Lock()

    def add(self, work):
        with self._lock:
            self._works[id(work)] = work
            for old in list(self._works.values())[: max(0, len(self._works) - KEPT)]:
                if old.is_completed():
                    del self._works[id(old)]

    def drop(self, work):
        with self._lock:
            self._works.pop(id(work), None)

    def __len__(self):
        return len(self._works)


def _raised(future):
    """What a future holds; what failed is raised. In a callback that reaches those who wait in C++, too, as DDP does: what
    `set_exception` leaves there is no exception to them."""
    value = future.value()
    if isinstance(value, Exception):
        raise value
    return value


class Work(_C10D.Work):
    """An operation. `wait` raises what failed, which a work made of a future does not do before torch 2."""

    def __init__(self, kept):
        super().__init__()
        self._kept = kept
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._result = None
        self._error = None
        # What the sums are off by at most; None before they are there, and if a switch did not make them.
        self.error_bound = None
        # How many ranks have given the part of the sums that has the fewest; None likewise.
        self.contributors = None
        # The one that is set, and the one that raises.
        self._futures = None
        kept.add(self)

    def finish(self, result=None, error_bound=None, contributors=None, error=None):
        """Said once: the result, or what failed."""
        with self._lock:
            self._result, self._error = result, error
            self.error_bound, self.contributors = error_bound, contributors
            self._done.set()
            futures = self._futures
        if futures is not None:
            _TELLERS.run(futures[0].set_result, result if error is None else error)

    def wait(self, timeout=timedelta(0)):
        # Nothing, or less, is no limit to torch.
        seconds = timeout.total_seconds() if timeout is not None else 0
        if not self._done.wait(seconds if seconds > 0 else None):
            raise TimeoutError(f"not done within {seconds} s")
        self._kept.drop(self)
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self):
        self.wait()

    def is_completed(self):
        return self._done.is_set()

    def is_success(self):
        return self._done.is_set() and self._error is None

    def exception(self):
        return self._error

    def result(self):
        return self._result

    def get_future(self):
        with self._lock:
            if self._futures is None:
                told = torch.futures.Future()
                self._futures = (told, told.then(_raised))
                is_late = self._done.is_set()
            else:
                is_late = False
        if is_late:
            self._futures[0].set_result(self._result if self._error is None else self._error)
        self._kept.drop(self)
        return self._futures[1]


class PutBack(_C10D.Work):
    """A receive of Gloo's into copies, which come to their places when it is waited for. No thread waits meanwhile: other
    operations of this rank may have to end before the sender sends."""

    @staticmethod
    def of(begun, tensors, rows):
        """The work; Gloo's own if there are no copies."""
        return PutBack(begun, tensors, rows) if are_copied(tensors, rows) else begun

    def __init__(self, begun, tensors, rows):
        super().__init__()
        self._begun, self._tensors, self._rows = begun, tensors, rows

    def wait(self, *timeout):
        self._begun.wait(*timeout)
        put_back(self._tensors, self._rows)
        return True

    def synchronize(self):
        self.wait()

    def is_completed(self):
        return self._begun.is_completed()

    def is_success(self):
        return self._begun.is_success()

    def exception(self):
        return self._begun.exception()

    def result(self):
        return self._tensors

    def source_rank(self):
        return self._begun._source_rank()

    _source_rank = source_rank


class Tellers:
    """Threads that run what may wait for others of its kind.

    Whoever completes a future runs its callbacks, and a callback may begin an operation and wait for its future, as
    PowerSGD's hook does. So a future is completed by a thread that nothing waits for: one that is idle, or a new one. One of
    them stays when it is done.
    """

    def __init__(self):
        self._tasks = queue.SimpleQueue()
        self._idle = 0
        self._lock = threading.Lock()

    def forget(self):
        """A process that was forked has none of these threads."""
        self.__init__()

    def run(self, act, *args):
        with self._lock:
            is_taken = self._idle > 0
            self._idle -= is_taken
        if is_taken:
            self._tasks.put((act, args))
        else:
            threading.Thread(target=self._run, args=(act, args), name="weir tells", daemon=True).start()

    def _run(self, act, args):
        while True:
            # What fails in a callback is in the future that the callback makes.
            act(*args)
            # What is done is held by no name while this waits.
            del act, args
            with self._lock:
                if self._idle > 0:
                    return
                self._idle += 1
            act, args = self._tasks.get()


_TELLERS = Tellers()
os.register_at_fork(after_in_child=_TELLERS.forget)


class Waiter:
    """A thread that ends works, in the order in which they are given to it: that of the operations. It ends when nobody can give
    it any more."""

    def __init__(self):
        self._waiting = queue.SimpleQueue()
        self._is_started = False
        self._lock = threading.Lock()

    def __del__(self):
        self._waiting.put(None)

    def add(self, task, work):
        """The task gives the work's result, what that is off by at most, and of how many ranks it is at least."""
        with self._lock:
            if not self._is_started:
                # It holds the queue alone.
                thread = threading.Thread(target=_wait, args=(self._waiting,), name="weir sums", daemon=True)
                thread.start()
                self._is_started = True
            self._waiting.put((task, work))


def _wait(waiting):
    # In a call of its own: what is done is held by no name while the loop waits.
    while _end_next(waiting):
        pass


def _end_next(waiting):
    given = waiting.get()
    if given is not None:
        _end(*given)
    return given is not None


def _end(task, work):
    try:
        result, error_bound, contributors = task()
    except Exception as error:  # noqa: BLE001: whoever waits is told
        work.finish(error=error)
    else:
        work.finish(result, error_bound, contributors)
