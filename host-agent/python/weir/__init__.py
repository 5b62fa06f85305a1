"""weir: values summed in the network.

``weir.torch`` registers the torch.distributed backend ``weir``; this module exports the native half, which it uses.
"""

from ._native import DROPS, EXACT_VALUES, LAYOUT, VERSION, Member, NonFinite, Rank, Silent, Sums

__all__ = ["DROPS", "EXACT_VALUES", "LAYOUT", "VERSION", "Member", "NonFinite", "Rank", "Silent", "Sums"]
