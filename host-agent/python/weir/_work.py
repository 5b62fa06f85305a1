"""Operations in progress: the works that torch waits for, and who completes them."""

import collections
import os
import queue
import threading
from datetime import timedelta

import torch

from ._order import Interrupted
from ._rows import are_copied, put_back

_C10D = torch._C._distributed_c10d

# Maximum number of completed works that are kept although no caller has waited for them.
KEPT = 256


class Kept:
    """Works that a caller may still wait for.

    C++ code such as DDP's reducer keeps only the C++ half of a work alive. Without its Python half, `wait` is the C++ method,
    which never returns. So works stay here until a caller has waited for them or has taken their future, which works without
    them; of the other completed works, the last `KEPT` stay.
    """

    def __init__(self):
        self._works = {}
        self._lock = threading.Lock()

    def add(self, work):
        with self._lock:
            self._works[id(work)] = work
            for old in list(self._works.values())[: max(0, len(self._works) - KEPT)]:
                if old.is_done():
                    del self._works[id(old)]

    def drop(self, work):
        with self._lock:
            self._works.pop(id(work), None)

    def __len__(self):
        return len(self._works)


def _raised(future):
    """Returns the value of a future, or raises it if it is an exception. As a callback, this also reaches C++ code that waits,
    such as DDP, which does not see an exception from `set_exception`."""
    value = future.value()
    if isinstance(value, Exception):
        raise value
    return value


class Work(_C10D.Work):
    """An operation. `wait` raises its error; before torch 2, a work made from a future does not."""

    def __init__(self, kept, completer):
        super().__init__()
        self._kept = kept
        self._completer = completer
        self._is_urged = False
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._result = None
        self._error = None
        # Error bound of the sums; None before completion, and if the switch did not make them.
        self.error_bound = None
        # Minimum number of contributors of any part of the sums; None in the same cases.
        self.contributors = None
        # The future that is set, and the one derived from it, which raises.
        self._futures = None
        kept.add(self)

    def finish(self, result=None, error_bound=None, contributors=None, error=None):
        """Completes the work, once, with a result or an error."""
        with self._lock:
            self._result, self._error = result, error
            self.error_bound, self.contributors = error_bound, contributors
            self._done.set()
            futures = self._futures
        if futures is not None:
            _TELLERS.run(futures[0].set_result, result if error is None else error)

    def wait(self, timeout=timedelta(0)):
        # For torch, a timeout of 0 or less means no limit.
        seconds = timeout.total_seconds() if timeout is not None else 0
        if seconds <= 0:
            self._completer.complete(self)
        elif not self._finished().wait(seconds):
            raise TimeoutError(f"not done within {seconds} s")
        self._kept.drop(self)
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self):
        self.wait()

    def is_done(self):
        """Whether it is completed; does not ask for its completion."""
        return self._done.is_set()

    def wait_until_done(self):
        """Waits until another thread has completed it."""
        self._done.wait()

    def _finished(self):
        """The event of its completion, after the completer's thread was told to complete it."""
        if not self._is_urged:
            self._is_urged = True
            self._completer.urge()
        return self._done

    def is_completed(self):
        return self._finished().is_set()

    def is_success(self):
        return self._finished().is_set() and self._error is None

    def exception(self):
        return self._error

    def result(self):
        return self._result

    def get_future(self):
        self._finished()
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
    """A receive of Gloo into copies, which `wait` copies back. No thread waits for it in the meantime: the sender may send only
    after other operations of this rank have completed."""

    @staticmethod
    def wrap(begun, tensors, rows):
        """Wraps Gloo's work if there are copies; otherwise returns it."""
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
    """Threads that complete futures.

    The thread that completes a future runs its callbacks, and a callback may start an operation and wait for that operation's
    future, as PowerSGD's hook does. So each future is completed by an idle thread, or by a new one. One of them stays idle.
    """

    def __init__(self):
        self._tasks = queue.SimpleQueue()
        self._idle = 0
        self._lock = threading.Lock()

    def forget(self):
        """Resets the state in a forked process, which has none of these threads."""
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
            # An error in a callback is stored in the future that the callback returns.
            act(*args)
            # While this thread waits, no variable keeps the completed task alive.
            del act, args
            with self._lock:
                if self._idle > 0:
                    return
                self._idle += 1
            act, args = self._tasks.get()


_TELLERS = Tellers()
os.register_at_fork(after_in_child=_TELLERS.forget)


class Completer:
    """Completes works in the order of their operations, one at a time.

    A caller that waits for a work completes it itself, with those before it, so no other thread has to wake. If a caller looks at a
    work without waiting, or if other ranks need its completion, a thread completes it. The thread ends when this object is deleted.

    The task of a local work waits for the switch alone. It can be interrupted by a signal, and run again from its start.
    """

    def __init__(self):
        # Works with their tasks, and whether they are local. The first may be complete already.
        self._waiting = collections.deque()
        # Held by the thread that completes the first of the waiting works.
        self._turn = threading.Lock()
        self._calls = queue.SimpleQueue()
        self._is_started = False
        self._lock = threading.Lock()

    def __del__(self):
        self._calls.put(False)

    def add(self, task, work, is_local):
        """Queues a work. The task returns its result, error bound, and minimum number of contributors. For a work that is not
        local, call :meth:`urge` next."""
        self._waiting.append((task, work, is_local))

    def complete(self, work):
        """Completes the waiting works up to this one. The thread completes those that are not local: they wait for Gloo, in which
        no signal ends a wait."""
        try:
            while not work.is_done():
                with self._turn:
                    if work.is_done():
                        return
                    _, first, is_local = self._waiting[0]
                    if is_local or first.is_done():
                        _end_first(self._waiting)
                        continue
                first.wait_until_done()
        except Interrupted as interrupted:
            # The thread continues.
            self.urge()
            raise interrupted.__cause__ from None
        except BaseException:
            self.urge()
            raise

    def urge(self):
        """Makes the thread complete all waiting works."""
        with self._lock:
            if not self._is_started:
                # The thread does not reference this object, so that it can be deleted.
                given = (self._calls, self._waiting, self._turn)
                threading.Thread(target=_end_all, args=given, name="weir sums", daemon=True).start()
                self._is_started = True
        self._calls.put(True)


def _end_all(calls, waiting, turn):
    while calls.get():
        while waiting:
            with turn:
                if waiting:
                    _end_first(waiting)


def _end_first(waiting):
    # A separate call: afterwards, no variable keeps the completed work alive.
    task, work, _ = waiting[0]
    if not work.is_done():
        try:
            result, error_bound, contributors = task()
        except Exception as error:  # noqa: BLE001: the waiting caller raises it
            work.finish(error=error)
        else:
            work.finish(result, error_bound, contributors)
    # Only now: after a signal, the work is still the first.
    waiting.popleft()
