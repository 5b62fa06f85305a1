"""The torch.distributed backend ``weir``.

    import torch.distributed as dist
    import weir.torch

    dist.init_process_group("weir")

The switch executes all_reduce and reduce with sums and averages of float32, float16, bfloat16, int32 and int8, and broadcasts
of any type. Gloo, which is part of torch, executes everything else from host to host: other operations, other types, groups of
fewer ranks, and further groups of all ranks.

``weir run`` announces the job to the switch, and sets the following variables for the ranks. WEIR_JOB, WEIR_RANK, WEIR_RANKS,
WEIR_WINDOW, WEIR_VALUES and WEIR_PLACE describe the job. If the scenario has a deadline, WEIR_DEADLINE, WEIR_QUORUM and
WEIR_LATE set when a chunk is summed without all ranks, and whether late values join the next sum. WEIR_TRANSPORT is ``udp`` or
``rdma``: the frames to the switch are UDP datagrams or RDMA WRITEs.

The user may set eight more variables. WEIR_INTERFACE is the interface; the default is ``eth0``. WEIR_IO is the I/O backend:
``rings``, shared with the kernel, ``calls``, ``pnet``, or ``auto``: rings or else system calls, and bundles of frames if the
switch takes them; ``bundles`` is the same without asking the switch. WEIR_ROUNDING is the rounding of values before they are
summed: ``nearest``, or ``stochastic:SEED``. WEIR_NON_FINITE is the handling of a sum with NaN or infinity: it fails
(``fail``), or Gloo computes it (``gloo``). WEIR_GONE_AFTER is the number of seconds without a reply after which a rank is
declared dead. WEIR_FALLBACK is the behavior while the switch is silent, the same at all ranks: they sum themselves
(``hosts``), or fail (``fail``). WEIR_METRICS is the address at which the rank serves its metrics and its unfinished chunk.
WEIR_AGENT is the socket of a daemon that owns the interface, ``weir-agent serve``: with it a rank needs no capability, and the
daemon's I/O backend applies.
"""

import atexit
import contextlib
import ctypes
import gc
import os
import threading
import warnings
import weakref
from datetime import timedelta
from functools import partial
from typing import NamedTuple

import torch
import torch.distributed as dist

from . import DROPS, EXACT_VALUES, Member, NonFinite, _roll, _settings
from ._buckets import Buckets
from ._composed import Composed
from ._gloo import HostToHost
from ._join import join
from ._names import Named
from ._order import Order, pieces
from ._rows import Refused, in_row, in_rows, is_strided, put_back, refuse_shared
from ._work import Completer, Kept, Work

_SUMMED = {
    torch.float32: "float32",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.int32: "int32",
    torch.int8: "int8",
}
# Names of the reductions, by which ranks compare them.
_DEEDS = {
    "SUM": "sum",
    "AVG": "average",
    "PRODUCT": "product",
    "MIN": "minimum",
    "MAX": "maximum",
    "BAND": "bitwise and",
    "BOR": "bitwise or",
    "BXOR": "exclusive or",
}
_C10D = torch._C._distributed_c10d
# Torch has averages since 1.11.
_AVERAGE = getattr(dist.ReduceOp, "AVG", None)


class WeirGroup(Named, Composed, HostToHost, dist.ProcessGroup):
    """A process group whose sums go through a switch."""

    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)
        self._timeout = timeout
        # The default group is created first, so a member that exists now belongs to an earlier use of the job.
        is_default = not dist.is_initialized()
        if is_default or _is_left():
            _leave_job()
        _roll.call(store, rank, size, timeout, lambda: _settings.described(is_default, size, bool(_joined)))
        _settings.set_interface()
        self._gloo = self._host_to_host("weir/gloo", store)
        self._member = None
        self._fallbacks = 0
        # For operations that the completing thread starts, after a comparison or for values that are not finite. It is separate
        # from `_gloo`, which the user's threads use at the same time.
        self._waiters = None
        self._non_finite = _settings.FAIL
        # With a deadline, a broadcast could complete without its root.
        self._waits_for_all = "WEIR_DEADLINE" not in os.environ
        self._order = None
        self._kept = Kept()
        self._completer = Completer()
        job = _settings.job()
        # The switch sums for all ranks of the job only.
        if job is not None and job["ranks"] == size:
            if _joined:
                warnings.warn("weir: this group goes host to host: the switch sums for the first group only", stacklevel=2)
            else:
                self._join(store, job)

    def _host_to_host(self, name, store):
        return dist.ProcessGroupGloo(dist.PrefixStore(name, store), self.rank(), self.size(), self._timeout)

    def _join(self, store, job):
        self._non_finite = _settings.non_finite()
        self._waiters = self._host_to_host("weir/waiters", store)
        interface = _settings.interface()
        self._member = join(store, job, interface, _settings.seed(), self.rank(), self._timeout)
        self._order = Order(self._member.operations)
        if self._member.refused is not None:
            warnings.warn(f"weir: {self._member.refused}", stacklevel=2)
        _joined.append(_Joined(self._member, weakref.ref(self), self._member.descriptors))

    def getBackendName(self):
        return "weir"

    def allreduce(self, tensors, opts=None):
        opts = opts or dist.AllreduceOptions()
        self._check_one("all_reduce", tensors)
        return self._by_switch(tensors, opts) or self._by_gloo("allreduce", tensors, opts)

    def allreduce_coalesced(self, tensors, opts=None):
        opts = opts or dist.AllreduceCoalescedOptions()
        return self._by_switch(tensors, opts) or self._by_gloo("allreduce_coalesced", tensors, opts)

    def reduce(self, tensors, opts=None):
        """The tensors of ranks other than the root keep their values."""
        opts = opts or _C10D.ReduceOptions()
        self._check_root(tensors, opts)
        self._check_one("reduce", tensors)
        is_root = self.rank() == opts.rootRank
        if self._waits_for_all:
            work = self._by_switch(tensors, opts, is_root, opts.rootRank)
            if work is not None:
                return work
        # Gloo writes to the tensors of all ranks, and ignores strides.
        rows = in_rows(tensors)
        own = [row.detach().clone() if row is tensor else row for tensor, row in zip(tensors, rows)]
        begun = self._by_gloo("reduce", own, opts, opts.rootRank)

        def finish():
            begun.wait()
            if is_root:
                for tensor, sums in zip(tensors, own):
                    tensor.detach().copy_(sums)
            return tensors, None, None

        return self._work(finish)

    def broadcast(self, tensors, opts=None):
        """Tensors of any type: the switch sums the root's bytes, as integers, with zeros of the other ranks."""
        opts = opts or dist.BroadcastOptions()
        self._check_root(tensors, opts)
        self._check_one("broadcast", tensors)
        refuse_shared(tensors)
        if self._member is None or not self._waits_for_all or not all(map(is_strided, tensors)):
            return self._by_gloo("broadcast", tensors, opts, opts.rootRank)
        is_root = self.rank() == opts.rootRank
        with self._order.operation() as given:
            begun = [self._begin_bytes(given, tensor, is_root, opts.rootRank) for tensor in tensors]

            def finish():
                for tensor, flat, parts in begun:
                    for address, length, piece in parts:
                        piece.wait(address, length, self._timeout)
                    self._tell_fallbacks()
                    if not is_root:
                        put_back(tensor, flat)
                return tensors, None, None

            return self._work(finish, given, is_local=True)

    def _begin_bytes(self, given, tensor, is_root, root):
        """Submits a broadcast; returns the tensor, its contiguous bytes, and the address, length and handle of each piece."""
        own = tensor.detach()
        terms = (_name(tensor.dtype), tensor.numel(), root)
        if tensor.numel() == 0:
            return own, own, [(0, 0, self._compare(given, tensor, "broadcast", root))]
        flat = in_row(own)

        # The default argument keeps the memory alive.
        def give(address, length, _flat=flat):
            if is_root:
                return self._member.broadcast(address, length, *terms)
            return self._member.receive(length, *terms)

        # The switch sums words of four bytes.
        size, begins = flat.numel() * flat.element_size(), flat.data_ptr()
        words = pieces(-(-size // 4))
        where = [(begins + 4 * start, min(4 * end, size) - 4 * start) for start, end in words]
        return own, flat, [(*at, given.add(-(-at[1] // 4), partial(give, *at))) for at in where]

    def _by_switch(self, tensors, opts, takes=True, root=None):
        """Starts a sum at the switch; None if the switch cannot do it. A rank with `takes` false keeps its values."""
        self._check_any(tensors)
        refuse_shared(tensors)
        averages = _averages(opts)
        is_sum = averages or opts.reduceOp == dist.ReduceOp.SUM
        if self._member is None or not is_sum or not all(map(_is_summed, tensors)):
            return None
        with self._order.operation() as given:
            # An empty tensor has no values to sum, but other ranks may have some: that is an error.
            empty = [self._compare(given, tensor, _deed(opts), root) for tensor in tensors if tensor.numel() == 0]
            begun = [self._begin(given, tensor, averages, takes, root) for tensor in tensors if tensor.numel() > 0]

            def finish():
                self._agree(empty)
                told = [told for one in begun for told in self._finish(*one, averages, takes)]
                if None in told or not takes:
                    return tensors, None, None
                bound = max((bound for bound, _ in told), default=0.0)
                return tensors, bound, min((ranks for _, ranks in told), default=self.size())

            return self._work(finish, given, is_local=True)

    def _begin(self, given, tensor, averages, takes, root):
        """Submits a sum; returns the tensor, its contiguous values, its pieces, and the magnitude of a typical value."""
        # In the order of the elements: ranks may have different strides.
        row = in_row(tensor)
        flat = row.detach().view(-1)
        dtype, key = _SUMMED[tensor.dtype], getattr(_bucket, "key", None)
        parts = []
        for number, (start, end) in enumerate(pieces(flat.numel())):
            # Late values of a piece join the next sum of the same piece.
            own_key = None if key is None else key + (number << 32)
            terms = (dtype, averages, own_key, takes, root, flat.numel())
            give = partial(self._give, flat[start:end], *terms)
            parts.append((flat[start:end], given.add(end - start, give)))
        return tensor, row, parts, _typical(flat) if takes else None

    def _give(self, values, *terms):
        return self._member.all_reduce(values.data_ptr(), values.numel(), *terms)

    def _compare(self, given, tensor, deed, root=None):
        """Compares the terms of an operation whose values do not pass the switch."""
        return given.add(0, partial(self._member.compare, _name(tensor.dtype), deed, tensor.numel(), root))

    def _compare_parts(self, parts, opts):
        """A work that fails if the ranks split their values differently. Without a job, nothing is compared."""
        if self._member is None:
            return self._work(lambda: (parts, None, None))
        with self._order.operation() as given:
            compared = [self._compare(given, part, _deed(opts), to) for to, part in enumerate(parts)]

            def finish():
                self._agree(compared)
                return parts, None, None

            return self._work(finish, given, is_local=True)

    def _agree(self, compared):
        for piece in compared:
            piece.wait(0, 0, self._timeout)

    def _finish(self, tensor, row, parts, typical, averages, takes):
        """Writes the sums into the tensor; returns for each piece the error bound and the minimum number of contributors, or
        None if Gloo made the sums."""
        told = [self._take(values, piece, averages, takes) for values, piece in parts]
        if typical is not None and None not in told:
            _warn_if_coarse(typical, max(bound for bound, _ in told))
        if takes:
            put_back(tensor, row)
        self._tell_fallbacks()
        return told

    def _take(self, values, piece, averages, takes):
        """Replaces the values of a piece by their sums."""
        try:
            told = piece.wait(values.data_ptr(), values.numel(), self._timeout)
        except NonFinite:
            if self._non_finite != _settings.GLOO:
                raise
            # The values are unchanged. All ranks get this error for the same pieces, so all of them come here in the same
            # order.
            sums = values.to(torch.float32, copy=True)
            self._waiters.allreduce([sums], dist.AllreduceOptions()).wait()
            if averages:
                sums /= self.size()
            if takes:
                values.copy_(sums)
            return None
        _bounds.append(max(told[0], _bounds.pop()))
        return told

    def _tell_fallbacks(self):
        if self._member.fallbacks > self._fallbacks:
            self._fallbacks = self._member.fallbacks
            told = f"weir: the switch does not answer this rank, so the ranks sum themselves until it does; {DROPS}"
            warnings.warn(told, stacklevel=2)

    def _by_gloo(self, name, tensors, opts, root=None):
        """Starts an operation from host to host. Gloo has no averages, so sums are divided here. Ranks of a job first compare
        the terms of the operation, since with different ones Gloo would hang, or end the process."""
        averages = name != "broadcast" and _averages(opts)
        if self._member is None and not averages:
            return self._from_host_to_host(name, tensors, opts)
        deed = "broadcast" if name == "broadcast" else _deed(opts)
        rows = in_rows(tensors)
        given = [row.detach() for row in rows] if averages else rows
        if averages:
            opts = _as_sum(opts)

        def end():
            for row in given if averages else ():
                is_whole = not (row.is_floating_point() or row.is_complex())
                row.div_(self.size(), rounding_mode="trunc" if is_whole else None)
            put_back(tensors, rows)
            return tensors, None, None

        if self._member is None:
            begun = getattr(self._gloo, name)(given, opts)
            return self._work(lambda: begun.wait() and end())
        with self._order.operation() as told:
            compared = [self._compare(told, tensor, deed, root) for tensor in tensors]

            def finish():
                self._agree(compared)
                getattr(self._waiters, name)(given, opts).wait()
                return end()

            return self._work(finish, told)

    def _check_any(self, tensors):
        if not tensors:
            raise Refused("weir: an operation needs at least one tensor")

    def _check_one(self, name, tensors):
        """Before torch 2, a list of tensors stands for several devices of a rank, which weir does not support."""
        if len(tensors) > 1:
            raise Refused(f"weir: {name} of {len(tensors)} tensors: it takes one, so call it for each")

    def _check_root(self, tensors, opts):
        self._check_any(tensors)
        if not 0 <= opts.rootRank < self.size():
            raise Refused(f"weir: root {opts.rootRank}: the group has the ranks 0 to {self.size() - 1}")
        of_list = getattr(opts, "rootTensor", 0)
        if not 0 <= of_list < len(tensors):
            raise Refused(f"weir: root tensor {of_list}: the list has the tensors 0 to {len(tensors) - 1}")

    def _work(self, finish, given=None, is_local=False):
        """Queues the completion of an operation; returns its work. `given`: its pieces at the switch, if it has any. `is_local`: no
        other rank needs the completion of this rank's operation, so that it may happen when somebody waits for it."""

        def finish_all():
            try:
                outcome = finish()
            except NonFinite:
                # This error concerns one piece: the other ones are summed.
                if given is not None:
                    given.drain(self._timeout)
                    given.end()
                raise
            except Exception as error:
                if given is not None:
                    given.end(error)
                    given.end()
                raise
            if given is not None:
                given.end()
            return outcome

        # Values that are not finite go by Gloo.
        is_local = is_local and self._non_finite != _settings.GLOO
        work = Work(self._kept, self._completer)
        self._completer.add(finish_all, work, is_local)
        # Other ranks wait for pieces that are not submitted before others of this rank are complete.
        if not is_local or self._order.holds_any:
            self._completer.urge()
        return work


def _averages(opts):
    return _AVERAGE is not None and opts.reduceOp == _AVERAGE


def _as_sum(opts):
    sum_of = type(opts)()
    for name in ("timeout", "rootRank", "rootTensor"):
        if hasattr(opts, name):
            setattr(sum_of, name, getattr(opts, name))
    sum_of.reduceOp = dist.ReduceOp.SUM
    return sum_of


def _deed(opts):
    """Name of the reduction, by which ranks compare it."""
    known = ((name, getattr(dist.ReduceOp, name, None)) for name in _DEEDS)
    return next((_DEEDS[name] for name, op in known if op is not None and opts.reduceOp == op), "another reduction")


def _name(dtype):
    return str(dtype).removeprefix("torch.")


def _is_summed(tensor):
    """Whether a switch can sum the tensor."""
    return tensor.dtype in _SUMMED and is_strided(tensor)


def hook(group, bucket):
    """Communication hook of DDP: averages the gradients of a bucket while backward continues with the next one.

    Use it as ``ddp.register_comm_hook(None, weir.torch.hook)``, with a process group instead of None if it is not the default
    one. Without this hook DDP divides the gradients before they are summed, which rounds them once more, and late values of a
    bucket do not join the sum of the next step.
    """
    _bucket.key = _buckets.number(bucket.parameters())
    try:
        work = dist.all_reduce(bucket.buffer(), op=_AVERAGE, group=group, async_op=True)
    finally:
        _bucket.key = None
    return work.get_future().then(lambda done: done.value()[0])


def _leave_job():
    while _joined:
        _joined.pop().member.close()


def _is_left():
    """Whether the group that has joined the job was deleted."""
    if not _joined or _joined[0].group() is None:
        return bool(_joined)
    # At some ranks it may be garbage that is not collected yet.
    gc.collect()
    return _joined[0].group() is None


def _end():
    """Runs at the end of the process. With a deadline, a late rank may need sums that other ranks have kept, so no rank leaves
    before all have finished."""
    for joined in _joined:
        group = joined.group()
        if group is not None and not group._waits_for_all:
            # A rank that has failed has left already.
            with contextlib.suppress(RuntimeError):
                group._gloo.barrier(dist.BarrierOptions()).wait()


def _in_child():
    """Runs in a forked child process, which is not a rank: it must not keep the job, the interface or the port, which its
    parent may release."""
    for joined in _joined:
        # The member is leaked: its destructor would wait for a thread that the child does not have, or close the parent's
        # connection.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(joined.member))
        for descriptor in joined.descriptors:
            with contextlib.suppress(OSError):
                os.close(descriptor)
    _joined.clear()


class _Joined(NamedTuple):
    member: Member
    group: weakref.ref
    # Determined in advance, since a forked child cannot request them.
    descriptors: list


# Number of the DDP bucket that this thread submits.
_bucket = threading.local()
_buckets = Buckets()
# This process's rank and its group; at most one entry, since a process is one rank of one job.
_joined = []
# Largest error bound of all sums of this process.
_bounds = [0.0]
# Not empty after the warning about a large error bound.
_warned = []


def _typical(values):
    """Median magnitude of a sample of the nonzero values of a large float32 tensor; None for other tensors, and after the
    warning."""
    if _warned or values.dtype != torch.float32 or values.numel() <= EXACT_VALUES:
        return None
    some = values[:: -(-values.numel() // EXACT_VALUES)].abs()
    some = some[some > 0]
    return some.median().item() if len(some) > 0 else None


def _warn_if_coarse(typical, bound):
    """Warns once if the error bound exceeds 1 % of a typical value: such values share an exponent with far larger ones."""
    if typical is not None and bound > 0.01 * typical and not _warned:
        _warned.append(bound)
        told = f"weir: a sum may be off by {bound:.2g}, and its typical element is {typical:.2g}: large values coarsen small ones"
        advice = f"in the same frame. Sum them as separate tensors; up to {EXACT_VALUES} elements, sums are exact"
        warnings.warn(f"{told} {advice}", stacklevel=2)


def io():
    """I/O backend in use, ``rings``, ``calls`` or ``pnet``; None if this process is not a rank of a job."""
    return _joined[0].member.io if _joined else None


def counters():
    """Counters of this process as a rank of its job; empty if it is not a rank."""
    return dict(_joined[0].member.counters()) if _joined else {}


def metrics():
    """Address at which this process serves its metrics (WEIR_METRICS); None if it does not."""
    return _joined[0].member.metrics if _joined else None


def error_bound():
    """Upper bound of the error of all values that the switch has summed for this process. ``work.error_bound`` is the bound of
    a single operation, after its wait."""
    return _bounds[0]


def _create(store, rank, size, timeout):
    if not isinstance(timeout, timedelta):
        timeout = timedelta(milliseconds=timeout)
    return WeirGroup(store, rank, size, timeout)


def _register():
    try:
        dist.Backend.register_backend("weir", _create, devices=["cpu"])
    except TypeError:
        # Before torch 2.0.
        dist.Backend.register_backend("weir", _create)


_register()
atexit.register(_end)
os.register_at_fork(after_in_child=_in_child)
