"""weir: values summed in the network.

``weir.torch`` registers the torch.distributed backend ``weir``; this module is what it stands on.
"""

from ._native import EXACT_VALUES, LAYOUT, VERSION, Member, NonFinite, Rank, Silent, Sums

__all__ = ["EXACT_VALUES", "LAYOUT", "VERSION", "Member", "NonFinite", "Rank", "Silent", "Sums"]
