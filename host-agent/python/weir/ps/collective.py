"""Mode sync: collectives of all ranks. With the backend ``weir`` the switch executes most of them.

Before each step all ranks sum one vector of integers. Each rank has one element for its next action, so all ranks see whether
the actions differ, and at which rank. Each parameter has one element behind these: the number of workers that have a gradient
of it.
"""

import os

import torch
import torch.distributed as dist

from .. import NonFinite
from .layout import Layout
from .messages import Kind, Lost


class Together:
    """The collectives of a plan's ranks, with the parameters of each server."""

    def __init__(self, parameters, plan, shards):
        self._rank, self._workers = dist.get_rank(), plan.workers(dist.get_world_size())
        self._parameters = parameters
        self._shards = shards
        self._layouts = {server: Layout([parameters[at] for at in shard]) for server, shard in shards.items()}
        # With a deadline, the switch may omit ranks. It does not sum 64-bit integers, so Gloo sums them, of all ranks.
        self._word = torch.int64 if "WEIR_DEADLINE" in os.environ else torch.int32

    def agree(self, kind, gradients=None):
        """Returns the next action of all workers, and for each parameter whether any worker has a gradient. Raises ``Lost`` at
        all ranks if the actions differ, or if a worker has failed."""
        size = dist.get_world_size()
        words = torch.zeros(size + len(self._parameters), dtype=self._word)
        words[self._rank] = int(kind)
        if gradients is not None:
            words[size:] = torch.tensor([gradient is not None for gradient in gradients])
        _done(dist.all_reduce(words, async_op=True))
        told = {rank: Kind(int(words[rank])) for rank in self._workers}
        failed = [str(rank) for rank, kind in told.items() if kind == Kind.FAILED]
        if failed:
            raise Lost(f"weir.ps: worker rank {', '.join(failed)} has failed")
        if len(set(told.values())) > 1:
            all_told = ", ".join(f"{kind.name} by rank {rank}" for rank, kind in told.items())
            raise Lost(f"weir.ps: in mode sync all workers must do the same: {all_told}")
        return told[self._workers[0]], (words[size:] > 0).tolist()

    def reduce(self, gradients, present):
        """Returns the mean of the workers' gradients for each parameter of this rank's shard; nothing at workers. Servers pass
        None. A worker without a gradient that others have contributes zeros; a parameter that is not ``present`` is skipped."""
        begun = []
        for server, shard in self._shards.items():
            shard = [at for at in shard if present[at]]
            for dtype in sorted({self._parameters[at].dtype for at in shard}, key=str):
                of = [at for at in shard if self._parameters[at].dtype == dtype]
                flat = torch.cat([self._given(gradients, at).reshape(-1) for at in of])
                begun.append((server, of, flat, dist.reduce(flat, server, async_op=True)))
        failed, means = None, {}
        for server, of, flat, work in begun:
            try:
                _done(work)
            except NonFinite as error:
                # All ranks get this error, and the later sums complete: wait for them before raising it.
                failed = failed or error
                continue
            if server == self._rank:
                flat /= len(self._workers)
                parts = flat.split([self._parameters[at].numel() for at in of])
                means.update((at, part.view(self._parameters[at].shape)) for at, part in zip(of, parts))
        if failed is not None:
            raise failed
        return means

    def _given(self, gradients, at):
        gradient = None if gradients is None else gradients[at]
        if gradient is None:
            return torch.zeros_like(self._parameters[at].detach())
        gradient = gradient.detach()
        return (gradient.to_dense() if gradient.is_sparse else gradient).to(self._parameters[at].dtype)

    def broadcast(self):
        """Copies the servers' parameters to all ranks."""
        begun = []
        for server, shard in self._shards.items():
            own = [self._parameters[at] for at in shard]
            layout = self._layouts[server]
            buffer = layout.buffer()
            if server == self._rank:
                layout.pack(own, buffer)
            begun.append((own, layout, buffer, dist.broadcast(buffer, server, async_op=True)))
        with torch.no_grad():
            for own, layout, buffer, work in begun:
                _done(work)
                for parameter, view in zip(own, layout.views(buffer)):
                    parameter.copy_(view)


def _done(work):
    """Waits for a work. Raises ``NonFinite``, or ``Lost`` with the backend's error about the lost rank."""
    try:
        work.wait()
    except NonFinite:
        raise
    except RuntimeError as error:
        raise Lost(f"weir.ps: a rank is lost: {error}") from error
