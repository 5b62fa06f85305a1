"""Contiguous copies of tensors: Gloo and the native half read and write memory from the first element on, without strides."""

import torch


class Refused(ValueError, RuntimeError):
    """A call has invalid arguments. Gloo raises ValueError or RuntimeError, depending on torch's version."""


def is_strided(tensor):
    """Whether the tensor is a strided one in this host's memory."""
    return tensor.device.type == "cpu" and tensor.layout == torch.strided and not tensor.is_quantized


def refuse_shared(tensors):
    """Raises if two elements of a tensor share their memory, so that a result could not be stored."""
    for tensor in tensors:
        if is_strided(tensor) and not tensor.is_contiguous() and _shares_memory(tensor.shape, tensor.stride()):
            told = f"of {list(tensor.shape)} with strides {list(tensor.stride())}"
            raise Refused(f"weir: a tensor {told}: some of its elements share their memory; clone it")


def _shares_memory(shape, strides):
    spread = sorted((stride, size) for stride, size in zip(strides, shape) if size > 1)
    if 0 in shape or not spread:
        return False
    reach = 0
    for stride, size in spread:
        if stride <= reach:
            break
        reach += stride * (size - 1)
    else:
        return False
    if spread[0][0] == 0:
        return True
    # The ranges of the dimensions overlap: compare the addresses of all elements.
    places = torch.zeros(1, dtype=torch.int64)
    for stride, size in spread:
        places = (places[:, None] + stride * torch.arange(size)).flatten()
    return len(places.unique()) < len(places)


def in_row(tensor):
    """The tensor itself if it is contiguous; otherwise a contiguous copy."""
    if not is_strided(tensor):
        return tensor
    refuse_shared([tensor])
    if tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg():
        return tensor
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def in_rows(given):
    """Like in_row, for tensors and nested lists of tensors. Other values are returned unchanged."""
    if torch.is_tensor(given):
        return in_row(given)
    return [in_rows(one) for one in given] if isinstance(given, (list, tuple)) else given


def put_back(given, rows):
    """Copies the rows from `in_rows` back to the tensors that they were made from."""
    if torch.is_tensor(given):
        if rows is not given:
            given.detach().copy_(rows)
    elif isinstance(given, (list, tuple)):
        for pair in zip(given, rows):
            put_back(*pair)


def are_copied(given, rows):
    """Whether any of the rows is a copy."""
    if isinstance(given, (list, tuple)):
        return any(are_copied(*pair) for pair in zip(given, rows))
    return rows is not given
