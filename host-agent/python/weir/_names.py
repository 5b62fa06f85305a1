"""What torch 2 asks of a group, and 1.13 does not: its name, and what its backend can besides.

Torch 2 makes a group of backends, one for each kind of device. This group is its own and only one.
"""


class Named:
    """Part of :class:`weir.torch.WeirGroup`."""

    # A group is not split off another, operations do not become one, and how long they take is not told in advance.
    supports_splitting = supports_coalescing = _supports_time_estimate = False
    _group_name = _group_desc = ""

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
