"""Collectives composed of others: of all_reduce, which the switch may execute, and of Gloo's operations.

Before torch 2, Gloo lacks the single-tensor forms, reduce_scatter, and all_to_all of lists.
"""

import torch
import torch.distributed as dist

from ._rows import Refused, in_row, in_rows, refuse_shared

_C10D = torch._C._distributed_c10d


class Composed:
    """Part of :class:`weir.torch.WeirGroup`."""

    def reduce_scatter(self, outputs, inputs, opts=None):
        """An all_reduce of which each rank keeps its part: the switch multicasts all sums, which takes no longer than one part."""
        if len(outputs) != 1 or len(inputs) != 1:
            raise Refused(f"weir: reduce_scatter takes one output and one list, not {len(outputs)} and {len(inputs)}")
        for output, parts in zip(outputs, inputs):
            if len(parts) != self.size() or {of.dtype for of in parts} != {output.dtype}:
                raise Refused(f"weir: reduce_scatter takes {self.size()} input tensors of the output's type")
            if parts[self.rank()].shape != output.shape:
                told = f"{list(output.shape)}, but part {self.rank()} has {list(parts[self.rank()].shape)}"
                raise Refused(f"weir: the output of reduce_scatter has the shape {told}")
        return self._scattered(outputs, inputs, opts, compares=True)

    def _reduce_scatter_base(self, output, given, opts=None):
        _is_shared_by(self.size(), given, output, "input", "output")
        refuse_shared([given])
        return self._scattered([output], [list(given.detach().reshape(self.size(), *output.shape).unbind())], opts)

    def _scattered(self, outputs, inputs, opts, compares=False):
        """Sums each list of inputs, and keeps this rank's part of the sums. Parts may have different sizes, which all ranks
        must have in common. `compares`: check that they do."""
        of_sum = dist.AllreduceOptions()
        if opts is not None:
            of_sum.reduceOp, of_sum.timeout = opts.reduceOp, opts.timeout
        refuse_shared(outputs)
        for parts in inputs:
            refuse_shared(parts)
        wholes = [torch.cat([of.detach().reshape(-1) for of in parts]) for parts in inputs]
        compared = [self._compare_parts(parts, of_sum) for parts in inputs if compares]
        begun = [self.allreduce([whole], of_sum) for whole in wholes]

        def finish():
            for work in compared:
                work.wait()
            for work, output, whole, parts in zip(begun, outputs, wholes, inputs):
                work.wait()
                own = whole.split([of.numel() for of in parts])[self.rank()]
                output.detach().copy_(own.view(output.shape))
            bounds = [getattr(work, "error_bound", None) for work in begun]
            ranks = [getattr(work, "contributors", None) for work in begun]
            return outputs, _known(max, bounds), _known(min, ranks)

        return self._work(finish)

    def _allgather_base(self, output, given, opts=None):
        _is_shared_by(self.size(), output, given, "output", "input")
        own, row = in_rows([given.detach(), output.detach()])
        parts = list(row.view(self.size(), *own.shape).unbind())
        begun = self._gloo.allgather([parts], [own])

        def finish():
            begun.wait()
            if row.data_ptr() != output.data_ptr():
                output.detach().copy_(row)
            return [output], None, None

        return self._work(finish)

    def alltoall(self, outputs, inputs, opts=None):
        dtypes = {of.dtype for of in (*outputs, *inputs)}
        if len(outputs) != self.size() or len(inputs) != self.size() or len(dtypes) != 1:
            raise Refused(f"weir: all_to_all takes {self.size()} input and {self.size()} output tensors of one type")
        refuse_shared([*outputs, *inputs])
        given = torch.cat([of.detach().reshape(-1) for of in inputs])
        taken = torch.empty(sum(of.numel() for of in outputs), dtype=given.dtype)
        sizes = [[of.numel() for of in those] for those in (outputs, inputs)]
        begun = self.alltoall_base(taken, given, *sizes, opts)

        def finish():
            begun.wait()
            for output, part in zip(outputs, taken.split(sizes[0])):
                output.detach().copy_(part.view(output.shape))
            return outputs, None, None

        return self._work(finish)

    def gather_single(self, output, given, opts=None):
        """Only the root has an output; that of other ranks is empty."""
        opts = opts or _C10D.GatherOptions()
        self._check_root([given], opts)
        is_root = self.rank() == opts.rootRank
        if is_root:
            _is_shared_by(self.size(), output, given, "output", "input")
            refuse_shared([output])
        own = in_row(given.detach())
        row = torch.empty(self.size() if is_root else 0, *own.shape, dtype=own.dtype)
        begun = self.gather([list(row.unbind())] if is_root else [], [own], opts)

        def finish():
            begun.wait()
            if is_root:
                output.detach().copy_(row.view(output.shape))
            return [output], None, None

        return self._work(finish)

    def allgather_into_tensor_coalesced(self, outputs, inputs, opts=None):
        return self._all_of([self._allgather_base(*pair, opts) for pair in zip(outputs, inputs)], outputs)

    def reduce_scatter_tensor_coalesced(self, outputs, inputs, opts=None):
        return self._all_of([self._reduce_scatter_base(*pair, opts) for pair in zip(outputs, inputs)], outputs)

    def _all_of(self, begun, outputs):
        def finish():
            for work in begun:
                work.wait()
            return outputs, _known(max, [work.error_bound for work in begun]), _known(min, [work.contributors for work in begun])

        return self._work(finish)

    # Names of the single-tensor forms in successive versions of torch 2.
    all_gather_into_tensor = all_gather_single = _allgather_base
    reduce_scatter_tensor = reduce_scatter_single = _reduce_scatter_base
    gather_into_tensor = gather_single
    all_gather_single_coalesced = allgather_into_tensor_coalesced
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced


def _is_shared_by(ranks, whole, part, whole_name, part_name):
    if whole.numel() != ranks * part.numel() or whole.dtype != part.dtype:
        raise Refused(
            f"weir: the {whole_name} has {whole.numel()} elements of {whole.dtype}, but the {part_name} of {ranks} ranks "
            f"{part.numel()} of {part.dtype}"
        )


def _known(choose, told):
    return None if None in told else choose(told, default=None)
