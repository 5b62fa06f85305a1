"""Mode sync: what all ranks do together. With the backend ``weir`` a switch does most of it.

Before each step every rank tells what it is about to do, in one sum of whole numbers in which each has a place. So all ranks know
if they are not of one mind, and who is not. Behind these places each parameter has one: how many workers have a gradient of it.
"""

import os

import torch
import torch.distributed as dist

from .. import NonFinite
from .layout import Layout
from .messages import Kind, Lost


class Together:
    """The ranks of a plan, and what of the parameters each server has."""

    def __init__(self, parameters, plan, shards):
        self._rank, self._workers = dist.get_rank(), plan.workers(dist.get_world_size())
        self._parameters = parameters
        self._shards = shards
        self._layouts = {server: Layout([parameters[at] for at in shard]) for server, shard in shards.items()}
        # With a deadline, a switch may sum without some ranks, but it does not sum words of 64 bits.
        self._word = torch.int64 if "WEIR_DEADLINE" in os.environ else torch.int32

    def agree(self, kind, gradients=None):
        """What all workers do next, and by parameter whether any of them has a gradient of it. ``Lost`` at all ranks if they do
        not do the same, or one has failed."""
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
            raise Lost(f"weir.ps: in mode sync workers do the same at the same time: {all_told}")
        return told[self._workers[0]], (words[size:] > 0).tolist()

    def reduce(self, gradients, present):
        """The mean of the workers' gradients, by parameter, of this rank's own shard if it is a server. Servers give None. A
        worker without a gradient that others have gives zeros; a gradient that is ``present`` nowhere has no mean."""
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
                # All ranks are told so, and what comes behind it is summed: all are to have waited for it.
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
        """All ranks have the servers' parameters afterwards."""
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
    """Waits. What fails is a rank that is lost, as the backend tells it, or a value that is not finite."""
    try:
        work.wait()
    except NonFinite:
        raise
    except RuntimeError as error:
        raise Lost(f"weir.ps: a rank is lost: {error}") from error
