"""Encoding of a list of tensors in a buffer of bytes."""

import torch

# Alignment of each tensor in bytes, enough for a view of any type.
_ALIGNED = 16


class Layout:
    """Positions of tensors with the types and shapes of these, in this order."""

    def __init__(self, tensors):
        self._parts, at = [], 0
        for tensor in tensors:
            end = at + tensor.numel() * tensor.element_size()
            self._parts.append((at, end, tensor.dtype, tensor.shape))
            at = -(-end // _ALIGNED) * _ALIGNED
        # Behind the tensors, one byte for each: whether it is present.
        self._present = at
        #: Length of the buffer.
        self.bytes = -(-(at + len(self._parts)) // _ALIGNED) * _ALIGNED

    def buffer(self):
        return torch.zeros(self.bytes, dtype=torch.uint8)

    def present(self, buffer):
        """For each tensor, whether it is present: a gradient may be missing."""
        return [bool(of) for of in buffer[self._present : self._present + len(self._parts)]]

    def views(self, buffer):
        """The tensors, in the buffer's memory."""
        return [buffer[at:end].view(dtype).view(shape) for at, end, dtype, shape in self._parts]

    def pack(self, tensors, buffer):
        """Copies the tensors into the buffer; None becomes zeros, and is marked as missing."""
        with torch.no_grad():
            for at, (view, tensor) in enumerate(zip(self.views(buffer), tensors), self._present):
                buffer[at] = tensor is not None
                if tensor is None:
                    view.zero_()
                else:
                    view.copy_(tensor.detach().to_dense() if tensor.is_sparse else tensor.detach())
        return buffer
