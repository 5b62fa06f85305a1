"""What torch 2 asks of a group, and 1.13 does not: its name, and what its backend can besides.

Torch 2 makes a group of backends, one for each kind of device. This group is its own and only one.
"""

import torch


class Named:
    """Part of :class:`weir.torch.WeirGroup`."""

    # A group is not split off another, operations do not become one, and how long they take is not told in advance.
    supports_splitting = supports_coalescing = _supports_time_estimate = False
    _group_name = _group_desc = ""

    @property
    def _device_types(self):
        """Checkpoints that are saved in the background look for the CPU here.

        A group that is being made has none yet: torch 2.15 attaches a recorder to a group with devices, and finds no backend of
        its own in this one.
        """
        is_made = self in torch.distributed.distributed_c10d._world.pg_map
        return [torch.device("cpu")] if is_made else []

    def monitored_barrier(self, *_, **__):
        raise NotImplementedError("weir has no monitored_barrier: `barrier` ends with the group's timeout")

    def getGroupName(self):
        """By which C++ finds it, as functional collectives and DTensor do."""
        return self._group_name

    def setGroupName(self, name):
        self._group_name = name

    def getGroupDesc(self):
        return self._group_desc

    def setGroupDesc(self, desc):
        self._group_desc = desc

    def _get_backend(self, device):
        return self
