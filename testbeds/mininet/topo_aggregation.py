#!/usr/bin/env python3
"""In-network aggregation in Mininet: workers and a parameter server train, the switch sums their updates.

    /usr/bin/python3 topo_aggregation.py --private [--switch embedded|simple_switch_grpc|psa_switch]

Prints one JSON object: the bytes on the server's link, and the weights. Exit status 1 if the weights differ, or if
nothing was summed on the way.
"""

import json
import os
import subprocess
import sys

from weir_mininet.experiment import Experiment, arguments

HERE = os.path.dirname(os.path.abspath(__file__))


def agents(experiment, job):
    """The command lines of the server and the workers, with their hosts."""
    by_name = {host["name"]: host for host in experiment.topology["hosts"]}
    server, workers = by_name[job["server"]], [by_name[name] for name in job["workers"]]
    common = ["--job", str(job["job"]), "--workers", str(len(workers)), "--window", str(job["window"])]
    common += ["--seed", str(experiment.topology["seed"]), "--rounds", str(job["iterations"]), "--wait"]

    def command(role, host, own):
        interface = experiment.net[host["name"]].defaultIntf().name
        place = ["--mac", host["mac"], "--ip", host["ip"], "--iface", interface]
        return host["name"], [experiment.weir, "agent", role] + own + common + place

    peers = []
    for worker in workers:
        peers += ["--peer", f"{worker['mac']}/{worker['ip']}"]
    yield command("server", server, ["--mode", "switch"] + peers)
    for rank, worker in enumerate(workers):
        to_server = ["--server-mac", server["mac"], "--server-ip", server["ip"]]
        yield command("worker", worker, ["--rank", str(rank)] + to_server)


def silence(host):
    """The agents make their own packets; the kernel would answer them with errors."""
    interface = host.defaultIntf().name
    host.cmd(f"ip addr flush dev {interface}")


def received_bytes(host):
    interface = host.defaultIntf().name
    return int(host.cmd(f"cat /sys/class/net/{interface}/statistics/rx_bytes").split()[-1])


def main():
    options = arguments(__doc__.splitlines()[0], os.path.join(HERE, "aggregation.yaml"))
    with Experiment(options) as experiment:
        job = experiment.topology["training"]
        experiment.go()
        for host in experiment.net.hosts:
            silence(host)
        running = []
        try:
            for name, command in agents(experiment, job):
                running.append(
                    experiment.net[name].popen(
                        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
                    )
                )
            for process in running:
                # Each says that it is ready.
                if not process.stdout.readline():
                    raise RuntimeError(process.stderr.read())
            server = experiment.net[job["server"]]
            before = received_bytes(server)
            for process in running:
                process.stdin.write("go\n")
                process.stdin.flush()
            outputs = [process.communicate(timeout=300) for process in running]
            to_server = received_bytes(server) - before
        finally:
            for process in running:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        experiment.end()
    reports = []
    for process, (output, errors) in zip(running, outputs):
        if process.returncode != 0:
            raise RuntimeError(errors)
        reports.append(json.loads(output.splitlines()[-1]))
    weights = {json.dumps(find(report, "weights_sha256")) for report in reports}
    # Each worker sends so many frames of 1,086 bytes; without the switch, all of them would reach the server.
    unsummed = job["iterations"] * job["chunks"] * len(job["workers"]) * 1086
    result = {
        "switch": options.switch,
        "bytes to the server": to_server,
        "bytes without the switch": unsummed,
        "same weights": len(weights) == 1,
    }
    result["ok"] = len(weights) == 1 and 0 < to_server < unsummed / len(job["workers"]) * 1.5
    print(json.dumps(result, indent=2))
    return 0 if result["ok"] else 1


def find(value, key):
    """A field of a report, wherever it is."""
    if isinstance(value, dict):
        if key in value:
            return value[key]
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            found = find(part, key)
            if found is not None:
                return found
    return None


if __name__ == "__main__":
    sys.exit(main())
