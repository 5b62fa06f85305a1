"""Switch classes. All take the same options, and end with the process that started them."""

import ctypes
import os
import select
import shutil
import signal
import socket
import subprocess
import time

from mininet.node import Switch

START_TIMEOUT_S = 20
PR_SET_PDEATHSIG = 1


def find(program, folders=()):
    """Where a program is: in the folders, in their `bin`, on the PATH."""
    for folder in folders:
        for place in (folder, os.path.join(folder, "bin")):
            path = os.path.join(place, program)
            if os.access(path, os.X_OK) and os.path.isfile(path):
                return path
    return shutil.which(program)


def _die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class ProcessSwitch(Switch):
    """A switch that is a process attached to its interfaces.

    program   the executable; looked up in `folders`, then on the PATH
    device_id for P4Runtime; from 1, and the ports that it listens on follow from it
    log       a file for what it prints
    """

    PROGRAM = None
    KIND = None
    FIRST_PORT = None

    def __init__(self, name, program=None, folders=(), device_id=1, log=None, **kwargs):
        super().__init__(name, **kwargs)
        self.device_id = device_id
        self.program = program or find(self.PROGRAM, folders)
        self.log = log
        self.process = None
        if self.program is None:
            raise FileNotFoundError(f"{self.PROGRAM} is neither in {list(folders)} nor on the PATH")

    @property
    def address(self):
        """Where a controller finds it."""
        return f"127.0.0.1:{self.FIRST_PORT + self.device_id}"

    def interfaces(self):
        """`-i PORT@INTERFACE` for each port."""
        found = []
        for port, interface in sorted(self.intfs.items()):
            if interface.name != "lo":
                found += ["-i", f"{port}@{interface.name}"]
        return found

    def command(self):
        raise NotImplementedError

    def start(self, controllers):
        """Starts it and waits until it listens. Mininet's controllers speak OpenFlow, so they are none of its business."""
        if self.log:
            with open(self.log, "ab") as output:
                self.process = self._spawn(output)
        else:
            self.process = self._spawn(subprocess.DEVNULL)
        host, port = self.address.split(":")
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name}: {self.program} ended with {self.process.returncode}: {self._last_words()}")
            with socket.socket() as probe:
                if probe.connect_ex((host, int(port))) == 0:
                    return
            if time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"{self.name}: {self.program} does not listen at {self.address}")
            time.sleep(0.02)

    def _spawn(self, output):
        return subprocess.Popen(
            self.command(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )

    def _last_words(self):
        readable, _, _ = select.select([self.process.stderr], [], [], 1)
        return self.process.stderr.read().decode(errors="replace").strip() if readable else ""

    def stop(self, deleteIntfs=True):
        """Ends the process, and what it started."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        if self.process is not None:
            self.process.stderr.close()
            self.process = None
        super().stop(deleteIntfs)


class WeirSwitch(ProcessSwitch):
    """The embedded switch: `weir switch`, waiting for a program by P4Runtime."""

    PROGRAM = "weir"
    KIND = "embedded"
    FIRST_PORT = 9559

    def command(self):
        arguments = ["switch", "--no-p4", "--device-id", str(self.device_id), "--grpc-server-addr", self.address]
        return [self.program] + arguments + self.interfaces()


class Bmv2Switch(ProcessSwitch):
    """BMv2 with v1model: `simple_switch_grpc`, waiting for a program by P4Runtime."""

    PROGRAM = "simple_switch_grpc"
    KIND = "simple_switch_grpc"
    FIRST_PORT = 9559

    def command(self):
        arguments = ["--device-id", str(self.device_id)] + self.interfaces()
        return [self.program] + arguments + ["--no-p4", "--", "--grpc-server-addr", self.address]


class PsaSwitch(ProcessSwitch):
    """BMv2 with PSA: `psa_switch`, waiting for a program by Thrift."""

    PROGRAM = "psa_switch"
    KIND = "psa_switch"
    FIRST_PORT = 9090

    def command(self):
        arguments = ["--device-id", str(self.device_id), "--thrift-port", str(self.FIRST_PORT + self.device_id)]
        return [self.program] + arguments + self.interfaces() + ["--no-p4", "--", "--enable-swap"]


KINDS = {switch.KIND: switch for switch in (WeirSwitch, Bmv2Switch, PsaSwitch)}
