#!/usr/bin/env python3
"""A fault scenario in Mininet: datagrams of one host are lost by plan, those of another are not.

    /usr/bin/python3 topo_faults.py --private [--switch embedded|simple_switch_grpc|psa_switch]

Prints one JSON object: what the switch says it dropped, and what the hosts saw. Exit status 1 if they differ.
"""

import json
import os
import subprocess
import sys

from weir_mininet.experiment import Experiment, arguments

HERE = os.path.dirname(os.path.abspath(__file__))
DATAGRAMS = 40
ECHO = [sys.executable, "-m", "weir_mininet.echo"]


def answered(source, target):
    """Sends the datagrams; how many came back."""
    output = source.popen(ECHO + ["send", target.IP(), str(DATAGRAMS)], cwd=HERE, text=True).communicate(timeout=60)[0]
    return int(output)


def main():
    options = arguments(__doc__.splitlines()[0], os.path.join(HERE, "faults.yaml"))
    with Experiment(options) as experiment:
        net = experiment.net
        server = net["b"].popen(ECHO + ["serve", net["b"].IP()], cwd=HERE, stdin=subprocess.PIPE, text=True)
        try:
            if server.stdout.readline().strip() != "ready":
                raise RuntimeError(server.stderr.read())
            before = answered(net["a"], net["b"])
            experiment.go()
            under, protected = answered(net["a"], net["b"]), answered(net["c"], net["b"])
            fired = experiment.end()["requests-lost"]
            after = answered(net["a"], net["b"])
        finally:
            server.stdin.close()
            server.wait(timeout=10)
    result = {
        "switch": options.switch,
        "sent": DATAGRAMS,
        "answered": {"before": before, "under the fault": under, "protected": protected, "after": after},
        "fired": fired,
    }
    result["ok"] = (
        fired == DATAGRAMS // 4 and under == DATAGRAMS - fired and [before, protected, after] == [DATAGRAMS] * 3
    )
    print(json.dumps(result, indent=2))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
