"""The namespace that Mininet may run in, and nothing outside it."""

import os
import shutil
import socket
import sys

UNSHARE = [
    "unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child",
]


def strangers():
    """What is visible here that is not ours: interfaces but the loopback, processes but this one and its ancestors in
    the namespace."""
    found = [name for _, name in socket.if_nameindex() if name != "lo"]
    ours = {os.getpid(), os.getppid(), 1}
    found += ["process " + pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) not in ours]
    return found


def is_private():
    # The first process of a PID namespace is ours: unshare starts the interpreter as number 1.
    return os.getpid() == 1 and not strangers()


def require():
    """Ends the program unless it is alone in its namespaces."""
    if is_private():
        return
    command = " ".join(UNSHARE + [os.path.basename(sys.executable)] + sys.argv)
    sys.exit(
        "refused: Mininet changes settings and kills processes of everything that it can see, so this runs only in\n"
        "private namespaces. Start it so:\n\n    " + command + "\n\nor give --private, and it does that itself."
    )


def enter(arguments):
    """Starts the program again in private namespaces; does not return."""
    if shutil.which("unshare") is None:
        sys.exit("refused: unshare (util-linux) is missing, so there can be no private namespaces")
    os.execvp(UNSHARE[0], UNSHARE + [sys.executable] + arguments)


def tame(mininet_clean, mininet_net):
    """Takes from Mininet what reaches beyond a namespace: `mn -c`, and the limits that it raises."""
    mininet_clean.cleanup = lambda: None
    mininet_net.fixLimits = lambda: None
