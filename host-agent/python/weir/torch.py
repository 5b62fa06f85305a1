"""The torch.distributed backend ``weir``.

    import torch.distributed as dist
    import weir.torch

    dist.init_process_group("weir")

Sums and averages of float32, float16, bfloat16, int32 and int8 go through the switch, to all ranks or to one, and what one rank
gives all others, of any type. What a switch cannot do goes from host to host by Gloo, which torch brings along: other
operations, other types, groups of fewer ranks, and all groups of all ranks but the first.

The switch has to know the job: ``weir run`` tells it, and tells the ranks by WEIR_JOB, WEIR_RANK, WEIR_RANKS,
WEIR_WINDOW, WEIR_VALUES and WEIR_PLACE, and if a scenario says so, by WEIR_DEADLINE, WEIR_QUORUM and WEIR_LATE, when a sum is
made of fewer than all and what becomes of the rest, and by WEIR_TRANSPORT, whether frames to the switch are RDMA WRITEs
(``rdma``) instead of UDP datagrams (``udp``). Eight more variables are the user's. WEIR_INTERFACE names the interface,
``eth0`` without.
WEIR_IO says how frames come and go: ``rings``, shared with the kernel, ``pnet``, or ``auto``, the first of these that the
system allows. WEIR_ROUNDING says how values are rounded before they are summed: ``nearest``, or ``stochastic:SEED``.
WEIR_NON_FINITE says what becomes of a sum with NaN or infinity: it fails (``fail``), or is made by ``gloo``.
WEIR_GONE_AFTER is the number of seconds after which a rank that answers nobody is gone. WEIR_FALLBACK says what ranks do
while the switch is silent: they sum themselves (``hosts``), or fail (``fail``); it is the same at all of them. WEIR_METRICS
is the address at which the rank shows its metrics, and what it waits for. WEIR_AGENT is the socket of a daemon that owns the
interface, ``weir-agent serve``: with it a rank needs no capability, and WEIR_IO is the daemon's.
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
from ._work import Kept, Waiter, Work

_SUMMED = {
    torch.float32: "float32",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.int32: "int32",
    torch.int8: "int8",
}
# How ranks tell each other what they reduce by.
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
# Torch before 1.11 has no averages.
_AVERAGE = getattr(dist.ReduceOp, "AVG", None)


class WeirGroup(Named, Composed, HostToHost, dist.ProcessGroup):
    """A process group whose sums go through a switch."""

    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)
        self._timeout = timeout
        # A process has one default group, and makes it first: what is left of another is another use of the job.
        is_default = not dist.is_initialized()
        if is_default or _is_left():
            _leave_job()
        _roll.call(store, rank, size, timeout, lambda: _settings.said_of(is_default, size, bool(_joined)))
        _settings.set_interface()
        self._gloo = self._host_to_host("weir/gloo", store)
        self._member = None
        self._fallbacks = 0
        # For what the thread that waits begins, in its order: what was compared first, and what is not finite. Apart from the
        # other, which the user's threads use meanwhile.
        self._waiters = None
        self._non_finite = _settings.FAIL
        # A broadcast without its root would be wrong.
        self._waits_for_all = "WEIR_DEADLINE" not in os.environ
        self._order = None
        self._kept = Kept()
        self._waiter = Waiter()
        job = _settings.job()
        # A group of fewer ranks than the job has is none that the switch knows.
        if job is not None and job["ranks"] == size:
            if _joined:
                warnings.warn("weir: this group goes host to host: the switch sums for the first", stacklevel=2)
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
            warnings.warn(f"weir: no rings ({self._member.refused}): frames are copied one by one", stacklevel=2)
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
        """Tensors of other ranks than the root stay what they are."""
        opts = opts or _C10D.ReduceOptions()
        self._check_root(tensors, opts)
        self._check_one("reduce", tensors)
        is_root = self.rank() == opts.rootRank
        if self._waits_for_all:
            work = self._by_switch(tensors, opts, is_root, opts.rootRank)
            if work is not None:
                return work
        # Gloo writes to all of them, and in the order in which elements stand in memory.
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
        """Bytes of any type: the root's are summed with zeros, as integers."""
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

            return self._work(finish, given)

    def _begin_bytes(self, given, tensor, is_root, root):
        """The tensor, its bytes in a row, and for each piece where they stand."""
        own = tensor.detach()
        terms = (_name(tensor.dtype), tensor.numel(), root)
        if tensor.numel() == 0:
            return own, own, [(0, 0, self._compare(given, tensor, "broadcast", root))]
        flat = in_row(own)

        # It holds on to what stands there.
        def give(address, length, _flat=flat):
            if is_root:
                return self._member.broadcast(address, length, *terms)
            return self._member.receive(length, *terms)

        # By switch these are words of four bytes.
        size, begins = flat.numel() * flat.element_size(), flat.data_ptr()
        words = pieces(-(-size // 4))
        where = [(begins + 4 * start, min(4 * end, size) - 4 * start) for start, end in words]
        return own, flat, [(*at, given.add(-(-at[1] // 4), partial(give, *at))) for at in where]

    def _by_switch(self, tensors, opts, takes=True, root=None):
        """The work, if the switch can do it. A rank that does not take the sums keeps what it has."""
        self._check_any(tensors)
        refuse_shared(tensors)
        averages = _averages(opts)
        is_sum = averages or opts.reduceOp == dist.ReduceOp.SUM
        if self._member is None or not is_sum or not all(map(_is_summed, tensors)):
            return None
        with self._order.operation() as given:
            # Of nothing there is nothing to sum, but others may have something.
            empty = [self._compare(given, tensor, _deed(opts), root) for tensor in tensors if tensor.numel() == 0]
            begun = [self._begin(given, tensor, averages, takes, root) for tensor in tensors if tensor.numel() > 0]

            def finish():
                self._agree(empty)
                told = [told for one in begun for told in self._finish(*one, averages, takes)]
                if None in told or not takes:
                    return tensors, None, None
                bound = max((bound for bound, _ in told), default=0.0)
                return tensors, bound, min((ranks for _, ranks in told), default=self.size())

            return self._work(finish, given)

    def _begin(self, given, tensor, averages, takes, root):
        """The tensor, its values in a row, for each piece which of them it is, and the size of a typical one."""
        # In the order of its elements, wherever they stand: ranks may have them elsewhere.
        row = in_row(tensor)
        flat = row.detach().view(-1)
        dtype, key = _SUMMED[tensor.dtype], getattr(_bucket, "key", None)
        parts = []
        for number, (start, end) in enumerate(pieces(flat.numel())):
            # What is late of a piece joins the next sum of the same.
            own_key = None if key is None else key + (number << 32)
            terms = (dtype, averages, own_key, takes, root, flat.numel())
            give = partial(self._give, flat[start:end], *terms)
            parts.append((flat[start:end], given.add(end - start, give)))
        return tensor, row, parts, _typical(flat) if takes else None

    def _give(self, values, *terms):
        return self._member.all_reduce(values.data_ptr(), values.numel(), *terms)

    def _compare(self, given, tensor, deed, root=None):
        """What of a tensor all ranks have to say alike, where its values do not go by the switch."""
        return given.add(0, partial(self._member.compare, _name(tensor.dtype), deed, tensor.numel(), root))

    def _compare_parts(self, parts, opts):
        """A work that fails where ranks split their values otherwise. Ranks without a job do not compare."""
        if self._member is None:
            return self._work(lambda: (parts, None, None))
        with self._order.operation() as given:
            compared = [self._compare(given, part, _deed(opts), to) for to, part in enumerate(parts)]

            def finish():
                self._agree(compared)
                return parts, None, None

            return self._work(finish, given)

    def _agree(self, compared):
        for piece in compared:
            piece.wait(0, 0, self._timeout)

    def _finish(self, tensor, row, parts, typical, averages, takes):
        """Puts the sums into the tensor, and gives for each piece what they are off by at most and of how many ranks they are at
        least; None if they are Gloo's."""
        told = [self._take(values, piece, averages, takes) for values, piece in parts]
        if typical is not None and None not in told:
            _warn_if_coarse(typical, max(bound for bound, _ in told))
        if takes:
            put_back(tensor, row)
        self._tell_fallbacks()
        return told

    def _take(self, values, piece, averages, takes):
        """Puts the sums of a piece in the place of its values."""
        try:
            told = piece.wait(values.data_ptr(), values.numel(), self._timeout)
        except NonFinite:
            if self._non_finite != _settings.GLOO:
                raise
            # The values are what they were. All ranks were told the same, so all come here, in the same order.
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
            told = f"weir: the switch does not answer this rank: the ranks sum themselves until it does; {DROPS}"
            warnings.warn(told, stacklevel=2)

    def _by_gloo(self, name, tensors, opts, root=None):
        """The work, host to host. Averages are the sums', divided: Gloo has none. Ranks of a job say first what they give, since
        those that do not give the same would wait for each other, or end."""
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
            raise Refused("weir: an operation without tensors: it takes at least one")

    def _check_one(self, name, tensors):
        """torch before 2 has forms for several devices of a rank, which treat a list as tensors of as many ranks."""
        if len(tensors) > 1:
            raise Refused(f"weir: {name} of {len(tensors)} tensors at once: it takes one, so call it for each")

    def _check_root(self, tensors, opts):
        self._check_any(tensors)
        if not 0 <= opts.rootRank < self.size():
            raise Refused(f"weir: root {opts.rootRank}: the group has the ranks 0 to {self.size() - 1}")
        of_list = getattr(opts, "rootTensor", 0)
        if not 0 <= of_list < len(tensors):
            raise Refused(f"weir: root tensor {of_list}: the list has the tensors 0 to {len(tensors) - 1}")

    def _work(self, finish, given=None):
        """`given` is what of it goes by the switch."""

        def finish_all():
            try:
                return finish()
            except NonFinite:
                # Of one piece: the others are summed.
                if given is not None:
                    given.drain(self._timeout)
                raise
            except Exception as error:
                if given is not None:
                    given.end(error)
                raise
            finally:
                if given is not None:
                    given.end()

        work = Work(self._kept)
        self._waiter.add(finish_all, work)
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
    """What is done with the values, as ranks tell it each other."""
    known = ((name, getattr(dist.ReduceOp, name, None)) for name in _DEEDS)
    return next((_DEEDS[name] for name, op in known if op is not None and opts.reduceOp == op), "another reduction")


def _name(dtype):
    return str(dtype).removeprefix("torch.")


def _is_summed(tensor):
    """Whether a switch can sum it."""
    return tensor.dtype in _SUMMED and is_strided(tensor)


def hook(group, bucket):
    """A communication hook of DDP: a bucket's gradients are averaged while backward goes on with the next.

    ``ddp.register_comm_hook(None, weir.torch.hook)``; in place of None a process group. Without it DDP divides the
    gradients before they are summed, and rounds them once more; and what of a bucket comes too late for its sum does not join
    that of the next step.
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
    """Whether the group that has joined is no more."""
    if not _joined or _joined[0].group() is None:
        return bool(_joined)
    # Its end may wait for the collector, at some ranks.
    gc.collect()
    return _joined[0].group() is None


def _end():
    """At the end of the process. With a deadline, who is late may have to ask the others for sums: nobody leaves before all have
    come to their end."""
    for joined in _joined:
        group = joined.group()
        if group is not None and not group._waits_for_all:
            # One that has failed has left already.
            with contextlib.suppress(RuntimeError):
                group._gloo.barrier(dist.BarrierOptions()).wait()


def _in_child():
    """A process that was forked is no rank, and must not hold the job, the interface or the port beside its parent, which may
    leave them."""
    for joined in _joined:
        # It is never dropped here: it would wait for a thread that this process does not have, or end the parent's connection.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(joined.member))
        for descriptor in joined.descriptors:
            with contextlib.suppress(OSError):
                os.close(descriptor)
    _joined.clear()


class _Joined(NamedTuple):
    member: Member
    group: weakref.ref
    # Known already when somebody forks: then nothing can be asked.
    descriptors: list


# Which bucket of DDP's this thread gives away.
_bucket = threading.local()
_buckets = Buckets()
# A process is one rank of one job, whatever groups it makes: that rank, and its group.
_joined = []
# The largest that a sum of this process may be off by.
_bounds = [0.0]
# It was said that a bound is large.
_warned = []


def _typical(values):
    """The size of a typical value of a larger tensor of float32, of those that are not zero; None if nobody asks."""
    if _warned or values.dtype != torch.float32 or values.numel() <= EXACT_VALUES:
        return None
    some = values[:: -(-values.numel() // EXACT_VALUES)].abs()
    some = some[some > 0]
    return some.median().item() if len(some) > 0 else None


def _warn_if_coarse(typical, bound):
    """Warns, once, if sums may be off by more than a hundredth of a typical value: those share a scale with far larger ones."""
    if typical is not None and bound > 0.01 * typical and not _warned:
        _warned.append(bound)
        told = f"weir: a sum may be off by {bound:.2g}, and its typical element is {typical:.2g}: large values coarsen small ones"
        advice = f"beside them. Sum them as tensors of their own; up to {EXACT_VALUES} elements each is right"
        warnings.warn(f"{told} {advice}", stacklevel=2)


def io():
    """By which way frames come and go: ``rings`` or ``pnet``; None if this process is no rank of a job."""
    return _joined[0].member.io if _joined else None


def counters():
    """What this process has counted as a rank of its job; empty if it is none."""
    return dict(_joined[0].member.counters()) if _joined else {}


def metrics():
    """Where this process shows what it counts (WEIR_METRICS); None if it does not."""
    return _joined[0].member.metrics if _joined else None


def error_bound():
    """What no value that the switch has summed for this process is off by more than. A work of its own has its own:
    ``work.error_bound``, once it was waited for."""
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
