"""Operations that Gloo executes from host to host, for tensors with any strides."""

import torch
import torch.distributed as dist

from ._rows import are_copied, in_rows, put_back
from ._work import PutBack

_C10D = torch._C._distributed_c10d


class HostToHost:
    """Part of :class:`weir.torch.WeirGroup`."""

    def _from_host_to_host(self, name, taken, *given):
        """Starts an operation of Gloo, which writes to the tensors in `taken`; returns its work."""
        rows, given = in_rows(taken), in_rows(given)
        begun = getattr(self._gloo, name)(rows, *given)
        if not are_copied(taken, rows):
            return begun

        def finish():
            begun.wait()
            put_back(taken, rows)
            return taken, None, None

        return self._work(finish)

    def allgather(self, outputs, inputs, opts=None):
        return self._from_host_to_host("allgather", outputs, inputs, opts or _C10D.AllgatherOptions())

    def gather(self, outputs, inputs, opts=None):
        return self._from_host_to_host("gather", outputs, inputs, opts or _C10D.GatherOptions())

    def scatter(self, outputs, inputs, opts=None):
        return self._from_host_to_host("scatter", outputs, inputs, opts or _C10D.ScatterOptions())

    def allgather_coalesced(self, outputs, inputs, opts=None):
        return self._from_host_to_host("allgather_coalesced", outputs, inputs, *_if_any(opts))

    def alltoall_base(self, output, given, output_sizes, input_sizes, opts=None):
        return self._from_host_to_host("alltoall_base", output, given, output_sizes, input_sizes, *_if_any(opts))

    def send(self, tensors, to, tag=0):
        return self._gloo.send(in_rows(tensors), to, tag)

    def recv(self, tensors, source, tag=0):
        rows = in_rows(tensors)
        return PutBack.wrap(self._gloo.recv(rows, source, tag), tensors, rows)

    def recv_anysource(self, tensors, tag=0):
        rows = in_rows(tensors)
        return PutBack.wrap(self._gloo.recv_anysource(rows, tag), tensors, rows)

    def barrier(self, opts=None):
        return self._gloo.barrier(opts or dist.BarrierOptions())


def _if_any(opts):
    """The options as arguments; without any, Gloo uses its defaults."""
    return () if opts is None else (opts,)
