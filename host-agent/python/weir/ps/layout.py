"""How tensors stand one after the other in a buffer of bytes."""

import torch

# Views of any type begin at a multiple of it.
_ALIGNED = 16


class Layout:
    """Of tensors like these, in this order."""

    def __init__(self, tensors):
        self._parts, at = [], 0
        for tensor in tensors:
            end = at + tensor.numel() * tensor.element_size()
            self._parts.append((at, end, tensor.dtype, tensor.shape))
            at = -(-end // _ALIGNED) * _ALIGNED
        # A byte for each behind them all: whether it is there.
        self._present = at
        #: How many bytes they take.
        self.bytes = -(-(at + len(self._parts)) // _ALIGNED) * _ALIGNED

    def buffer(self):
        return torch.zeros(self.bytes, dtype=torch.uint8)

    def present(self, buffer):
        """For each tensor, whether it is there: a gradient may be missing."""
        return [bool(of) for of in buffer[self._present : self._present + len(self._parts)]]

    def views(self, buffer):
        """The tensors, in the buffer's memory."""
        return [buffer[at:end].view(dtype).view(shape) for at, end, dtype, shape in self._parts]

    def pack(self, tensors, buffer):
        """Copies tensors of these shapes; None is zeros, and not there."""
        with torch.no_grad():
            for at, (view, tensor) in enumerate(zip(self.views(buffer), tensors), self._present):
                buffer[at] = tensor is not None
                if tensor is None:
                    view.zero_()
                else:
                    view.copy_(tensor.detach().to_dense() if tensor.is_sparse else tensor.detach())
        return buffer
