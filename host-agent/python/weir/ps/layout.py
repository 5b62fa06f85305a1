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
        #: How many bytes they take.
        self.bytes = at

    def buffer(self):
        return torch.zeros(self.bytes, dtype=torch.uint8)

    def views(self, buffer):
        """The tensors, in the buffer's memory."""
        return [buffer[at:end].view(dtype).view(shape) for at, end, dtype, shape in self._parts]

    def pack(self, tensors, buffer):
        """Copies tensors of these shapes; None is zeros."""
        with torch.no_grad():
            for view, tensor in zip(self.views(buffer), tensors):
                if tensor is None:
                    view.zero_()
                else:
                    view.copy_(tensor.detach().to_dense() if tensor.is_sparse else tensor.detach())
        return buffer
