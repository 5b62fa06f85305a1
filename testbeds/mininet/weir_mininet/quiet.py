"""Interfaces on which frames are what is sent: `python3 -m weir_mininet.quiet INTERFACE …`, in their namespace.

Whole checksums, no segments to be cut by a card, no IPv6 chatter. By ioctl, because a host may have no ethtool, and a switch
that is handed frames without checksums (libpcap's, as BMv2) sends on what every receiver drops.
"""

import array
import errno
import fcntl
import socket
import struct
import sys

# linux/sockios.h
SIOCETHTOOL = 0x8946
# linux/ethtool.h: ETHTOOL_STSO, _SGSO, _SGRO, _SSG, _STXCSUM, _SRXCSUM. Segmentation first: it depends on the others.
COMMANDS = (0x1F, 0x24, 0x2C, 0x19, 0x17, 0x15)


def offloads_off(interface):
    """Switches off what the interface has of them."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for command in COMMANDS:
            value = array.array("B", struct.pack("II", command, 0))
            request = struct.pack("16sP", interface.encode(), value.buffer_info()[0])
            try:
                fcntl.ioctl(any_socket, SIOCETHTOOL, request)
            except OSError as error:
                # There is no such offload.
                if error.errno != errno.EOPNOTSUPP:
                    raise


def ipv6_off(interface):
    """Keeps the kernel from sending on its own."""
    try:
        with open(f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6", "w", encoding="ascii") as file:
            file.write("1")
    except FileNotFoundError:
        pass  # A kernel without IPv6.


if __name__ == "__main__":
    for name in sys.argv[1:]:
        offloads_off(name)
        ipv6_off(name)
