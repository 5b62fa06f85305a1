"""Methods that torch 2 requires of a group and torch 1.13 does not: names, and features of its backend.

In torch 2 a group has one backend per kind of device. This group is its own and only backend.
"""

import torch


class Named:
    """Part of :class:`weir.torch.WeirGroup`."""

    # Features of torch's backends that weir does not have.
    supports_splitting = supports_coalescing = _supports_time_estimate = False
    _group_name = _group_desc = ""

    @property
    def _device_types(self):
        """The CPU: asynchronous checkpoints require it.

        During its construction a group has no devices: torch 2.15 attaches a recorder to a group with devices, and fails as
        this group has no backend object.
        """
        is_made = self in torch.distributed.distributed_c10d._world.pg_map
        return [torch.device("cpu")] if is_made else []

    def monitored_barrier(self, *_, **__):
        raise NotImplementedError("weir has no monitored_barrier: `barrier` ends with the group's timeout")

    def getGroupName(self):
        """Name by which C++ code finds the group, for functional collectives and DTensor."""
        return self._group_name

    def setGroupName(self, name):
        self._group_name = name

    def getGroupDesc(self):
        return self._group_desc

    def setGroupDesc(self, desc):
        self._group_desc = desc

    def _get_backend(self, device):
        return self
