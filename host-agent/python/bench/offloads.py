"""The offloads of the interface by which a rank sends. A rank of weir has them on, since its bundles leave as one packet only
then. Gloo's TCP has them off, so that the kernel finishes each segment, or on under the name `gloo_offloads`.
"""

import array
import fcntl
import os
import socket
import struct

SIOCETHTOOL = 0x8946
# ETHTOOL_STXCSUM, ETHTOOL_SSG, ETHTOOL_SGSO, ETHTOOL_STSO: each depends on those before it.
COMMANDS = (0x17, 0x19, 0x24, 0x1F)


def set_for(backend):
    """Sets the offloads that this backend has."""
    interface = os.environ["GLOO_SOCKET_IFNAME"]
    if interface == "lo":
        return
    on = backend != "gloo"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in COMMANDS if on else reversed(COMMANDS):
            value = array.array("I", [command, int(on)])
            fcntl.ioctl(control, SIOCETHTOOL, struct.pack("16sP16x", interface.encode(), value.buffer_info()[0]))


def transport(backend):
    """The name by which torch.distributed knows this backend."""
    return "gloo" if backend == "gloo_offloads" else backend
