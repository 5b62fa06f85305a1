"""The torch.distributed backend ``weir``.

    import torch.distributed as dist
    import weir.torch

    dist.init_process_group("weir")

Sums (and averages) of float32, float16, bfloat16 and int32 go through the switch. What a switch cannot do goes
from host to host by Gloo, which torch brings along: other operations, other types, groups of fewer ranks.

The switch has to know the job: ``weir run`` tells it, and tells the ranks by WEIR_JOB, WEIR_RANK, WEIR_RANKS and
WEIR_WINDOW. WEIR_INTERFACE names the interface, ``eth0`` without. WEIR_IO says how frames come and go: ``rings``, shared
with the kernel, ``pnet``, or ``auto``, the first of these that the system allows.
"""

import os
import queue
import threading
import warnings
from datetime import timedelta

import torch
import torch.distributed as dist

from . import Member

_SUMMED = (torch.float32, torch.float16, torch.bfloat16, torch.int32)
_C10D = torch._C._distributed_c10d


def _job():
    """The job of this host, as the environment has it; None if there is none."""
    names = ("WEIR_JOB", "WEIR_RANK", "WEIR_RANKS", "WEIR_WINDOW")
    values = [os.environ.get(name) for name in names]
    if all(value is None for value in values):
        return None
    try:
        return dict(zip(("job", "rank", "ranks", "window"), map(int, values)))
    except (TypeError, ValueError):
        told = ", ".join(f"{name}={value}" for name, value in zip(names, values))
        raise RuntimeError(f"weir: the environment names no job: {told}") from None


def _raised(future):
    """What a future holds; what failed is raised. In a callback that reaches those who wait in C++, too, as DDP does:
    what `set_exception` leaves there is no exception to them."""
    value = future.value()
    if isinstance(value, Exception):
        raise value
    return value


class _Waiter:
    """A thread that waits for sums, in the order in which they come: that of the operations."""

    def __init__(self):
        self._waiting = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="weir sums", daemon=True)
        self._thread.start()

    def add(self, task, future):
        self._waiting.put((task, future))

    def _run(self):
        while True:
            task, future = self._waiting.get()
            try:
                future.set_result(task())
            except Exception as error:  # noqa: BLE001: whoever waits is told
                future.set_result(error)


class WeirGroup(dist.ProcessGroup):
    """A process group whose sums go through a switch."""

    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)
        self._timeout = timeout
        self._gloo = dist.ProcessGroupGloo(dist.PrefixStore("weir/gloo", store), rank, size, timeout)
        self._member = None
        self._waiter = None
        job = _job()
        # A group of fewer ranks than the job has is none that the switch knows.
        if job is not None and job["ranks"] == size and not _joined:
            if job["rank"] != rank:
                raise RuntimeError(f"weir: this host is rank {job['rank']} of its job, and rank {rank} for torch")
            interface = os.environ.get("WEIR_INTERFACE", "eth0")
            io = os.environ.get("WEIR_IO", "auto")
            self._member = Member(interface, job["job"], rank, size, job["window"], io=io)
            if self._member.refused is not None:
                warnings.warn(f"weir: no rings ({self._member.refused}): frames are copied one by one", stacklevel=2)
            self._waiter = _Waiter()
            _joined.append(self._member)

    def getBackendName(self):
        return "weir"

    def allreduce(self, tensors, opts=None):
        opts = opts or dist.AllreduceOptions()
        return self._by_switch(tensors, opts) or self._gloo.allreduce(tensors, opts)

    def allreduce_coalesced(self, tensors, opts=None):
        opts = opts or dist.AllreduceCoalescedOptions()
        return self._by_switch(tensors, opts) or self._gloo.allreduce_coalesced(tensors, opts)

    def _by_switch(self, tensors, opts):
        """The work, if the switch can do it."""
        op = opts.reduceOp
        averages = hasattr(dist.ReduceOp, "AVG") and op == dist.ReduceOp.AVG
        summed = all(
            tensor.device.type == "cpu" and tensor.dtype in _SUMMED and not tensor.is_sparse for tensor in tensors
        )
        is_sum = op == dist.ReduceOp.SUM or averages
        if self._member is None or not summed or not is_sum:
            return None
        return self._sum(tensors, averages)

    def _sum(self, tensors, averages):
        begun = []
        for tensor in tensors:
            if tensor.numel() == 0:
                continue
            integers = tensor.dtype == torch.int32
            flat = tensor.detach().contiguous().view(-1)
            flat = flat if integers else flat.to(torch.float32)
            begun.append((tensor, self._member.all_reduce(flat.data_ptr(), flat.numel(), integers)))
        seconds = self._timeout.total_seconds()
        size = self.size()

        def finish():
            for tensor, sums in begun:
                integers = tensor.dtype == torch.int32
                if tensor.dtype in (torch.float32, torch.int32) and tensor.is_contiguous():
                    # As it comes, to where it belongs.
                    sums.wait(tensor.data_ptr(), tensor.numel(), seconds)
                    if averages:
                        with torch.no_grad():
                            tensor.div_(size, rounding_mode="floor" if integers else None)
                    continue
                result = torch.empty(tensor.numel(), dtype=torch.int32 if integers else torch.float32)
                sums.wait(result.data_ptr(), result.numel(), seconds)
                if averages:
                    result = result // size if integers else result / size
                with torch.no_grad():
                    tensor.copy_(result.view(tensor.shape))
            return tensors

        future = torch.futures.Future()
        self._waiter.add(finish, future)
        return _C10D._create_work_from_future(future.then(_raised))

    # What a switch cannot do.

    def broadcast(self, tensors, opts=None):
        return self._gloo.broadcast(tensors, opts or dist.BroadcastOptions())

    def allgather(self, outputs, inputs, opts=None):
        return self._gloo.allgather(outputs, inputs, opts or _C10D.AllgatherOptions())

    def reduce(self, tensors, opts=None):
        return self._gloo.reduce(tensors, opts or _C10D.ReduceOptions())

    def gather(self, outputs, inputs, opts=None):
        return self._gloo.gather(outputs, inputs, opts or _C10D.GatherOptions())

    def scatter(self, outputs, inputs, opts=None):
        return self._gloo.scatter(outputs, inputs, opts or _C10D.ScatterOptions())

    def send(self, tensors, to, tag=0):
        return self._gloo.send(tensors, to, tag)

    def recv(self, tensors, source, tag=0):
        return self._gloo.recv(tensors, source, tag)

    def recv_anysource(self, tensors, tag=0):
        return self._gloo.recv_anysource(tensors, tag)

    def barrier(self, opts=None):
        return self._gloo.barrier(opts or dist.BarrierOptions())


# A process is one rank of one job, whatever groups it makes.
_joined = []


def io():
    """By which way frames come and go: ``rings`` or ``pnet``; None if this process is no rank of a job."""
    return _joined[0].io if _joined else None


def counters():
    """What this process has counted as a rank of its job; empty if it is none."""
    return dict(_joined[0].counters()) if _joined else {}


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
