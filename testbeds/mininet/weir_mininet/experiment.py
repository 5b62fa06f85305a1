"""A scenario's network in Mininet, and `weir control`, which carries the scenario out on its switches."""

import argparse
import json
import os
import subprocess
import sys

from . import private

# Of this package.
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def arguments(description, scenario):
    """The options that every topology takes. With --private, starts the program again inside."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--scenario", default=scenario, help="scenario file (default: %(default)s)")
    parser.add_argument("--switch", choices=["embedded", "simple_switch_grpc", "psa_switch"], default="embedded")
    parser.add_argument("--weir", default=os.environ.get("WEIR", "weir"), help="the weir program")
    parser.add_argument("--bmv2-dir", action="append", default=[], help="folder of BMv2's and p4c's programs")
    parser.add_argument("--private", action="store_true", help="enter private namespaces first")
    parser.add_argument("--cli", action="store_true", help="Mininet's command line once the run is over")
    parsed = parser.parse_args()
    if parsed.private and not private.is_private():
        private.enter([arg for arg in sys.argv if arg != "--private"])
    private.require()
    return parsed


class Experiment:
    """Use as a context: the network is up inside, and gone after it."""

    def __init__(self, options):
        try:
            import mininet.clean
            import mininet.net
        except ModuleNotFoundError:
            sys.exit(
                f"Mininet is not installed for {sys.executable}. Debian's (apt-get install mininet) belongs to "
                "/usr/bin/python3."
            )
        private.tame(mininet.clean, mininet.net)
        from .switches import KINDS, find

        self.options = options
        self.weir = options.weir if os.path.sep in options.weir else find(options.weir)
        if self.weir is None:
            sys.exit("weir is not on the PATH: name it with --weir or WEIR")
        self.kind = KINDS[options.switch]
        described = subprocess.run(
            [self.weir, "plan", "--topology", options.scenario], stdout=subprocess.PIPE, check=True
        )
        self.topology = json.loads(described.stdout)
        self.net = None
        self.control = None

    def __enter__(self):
        import mininet.net

        net = mininet.net.Mininet(controller=None, autoSetMacs=False, build=False)
        for host in self.topology["hosts"]:
            net.addHost(host["name"], ip=f"{host['ip']}/16", mac=host["mac"])
        for number, switch in enumerate(self.topology["switches"], 1):
            program = self.weir if self.kind.KIND == "embedded" else None
            net.addSwitch(
                switch, cls=self.kind, device_id=number, dpid=f"{number:016x}", program=program,
                folders=self.options.bmv2_dir,
            )
        for link in self.topology["links"]:
            (first, second) = link["ends"]
            net.addLink(net[first["node"]], net[second["node"]], port1=first["port"], port2=second["port"])
        self.net = net
        try:
            net.build()
            for node in net.hosts + net.switches:
                self._quiet(node)
            net.staticArp()
            net.start()
            self._start_control()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    @staticmethod
    def _quiet(node):
        """Frames are what is sent: see `quiet`."""
        interfaces = [name for name in node.intfNames() if name != "lo"]
        command = [sys.executable, "-B", "-m", "weir_mininet.quiet"] + interfaces
        done = node.popen(command, cwd=FOLDER, text=True)
        _, said = done.communicate(timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f"{node.name}: {said.strip()}")

    def _start_control(self):
        command = [self.weir, "control", self.options.scenario, "--target", self.kind.KIND]
        for folder in self.options.bmv2_dir:
            command += ["--bmv2-dir", folder]
        for switch in self.net.switches:
            command += ["--switch", f"{switch.name}={switch.address}"]
        self.control = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        line = self.control.stdout.readline()
        if line.strip() != "ready":
            raise RuntimeError(f"weir control is not ready: {line!r}")

    def go(self):
        """The timeline begins."""
        self.control.stdin.write("go\n")
        self.control.stdin.flush()
        if self.control.stdout.readline().strip() != "going":
            raise RuntimeError("weir control does not begin")

    def replace(self, scenario):
        """Puts another scenario in the place of this one while packets pass; what became of switches and faults."""
        self.control.stdin.write(f"scenario {scenario}\n")
        self.control.stdin.flush()
        line = self.control.stdout.readline().strip()
        if not line.startswith("replaced "):
            raise RuntimeError(f"{scenario} takes no place: {line or 'weir control ended'}")
        if self.control.stdout.readline().strip() != "going":
            raise RuntimeError("weir control does not begin")
        return json.loads(line.removeprefix("replaced "))

    def end(self):
        """Disarms every fault; what fired, by the name of the fault."""
        output, _ = self.control.communicate(timeout=60)
        if self.control.returncode != 0:
            raise RuntimeError(f"weir control ended with {self.control.returncode}")
        return {fault["id"]: fault["fired"] for fault in json.loads(output)["faults"]}

    def __exit__(self, *_):
        if self.control is not None and self.control.poll() is None:
            # Its end of the pipe closed means: disarm and leave.
            self.control.stdin.close()
            try:
                self.control.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.control.kill()
                self.control.wait()
        if self.net is not None:
            if self.options.cli and sys.exc_info()[0] is None:
                from mininet.cli import CLI

                CLI(self.net)
            self.net.stop()
            self.net = None
