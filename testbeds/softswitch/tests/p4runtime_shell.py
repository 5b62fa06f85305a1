"""Drives a switch with p4runtime-shell: p4runtime_shell.py ADDRESS DEVICE_ID P4INFO DEVICE_CONFIG."""

import sys

import p4runtime_sh.shell as sh
from google.rpc import code_pb2
from p4runtime_sh.p4runtime import P4RuntimeWriteException

address, device_id, p4info, device_config = sys.argv[1:]


def code_of(action):
    """The codes of a write's error trailer."""
    try:
        action()
    except P4RuntimeWriteException as error:
        return [code_pb2.Code.Name(detail.canonical_code) for _, detail in error.errors]
    return ["OK"]


def check(what, got, expected):
    if got != expected:
        sys.exit(f"{what}: got {got!r}, expected {expected!r}")


sh.setup(
    device_id=int(device_id),
    grpc_addr=address,
    election_id=(0, 1),
    config=sh.FwdPipeConfig(p4info, device_config),
)
try:
    entry = sh.TableEntry("Ingress.forward")(action="Ingress.send")
    entry.match["dst"] = "00:00:00:00:00:02"
    entry.action["port"] = "1"
    entry.insert()
    check("a second insert", code_of(entry.insert), ["ALREADY_EXISTS"])
    entry.action["port"] = "2"
    entry.modify()
    found = list(sh.TableEntry("Ingress.forward").read())
    check("entries", len(found), 1)
    check("port", found[0].action["port"].value, b"\x02")

    ternary = sh.TableEntry("Ingress.acl")(action="Ingress.drop")
    ternary.match["src"] = "0x0a &&& 0xff"
    check("no priority", code_of(ternary.insert), ["INVALID_ARGUMENT"])
    ternary.priority = 10
    ternary.insert()
    ternary.delete()
    check("a second delete", code_of(ternary.delete), ["NOT_FOUND"])

    fixed = sh.TableEntry("Ingress.fixed")(action="Ingress.drop")
    fixed.match["dst"] = "1"
    check("a constant table", code_of(fixed.insert), ["PERMISSION_DENIED"])

    default = sh.TableEntry("Ingress.forward")(action="Ingress.send", is_default=True)
    default.action["port"] = "3"
    default.modify()
    default = sh.TableEntry("Ingress.forward")(is_default=True)
    check("default", [e.action["port"].value for e in default.read()], [b"\x03"])

    group = sh.MulticastGroupEntry(1)
    group.add(1, 1).add(2, 1)
    group.insert()
    check("a second group", code_of(group.insert), ["ALREADY_EXISTS"])
    check("replicas", len(list(sh.MulticastGroupEntry(1).read())[0].replicas), 2)

    session = sh.CloneSessionEntry(5)
    session.add(2, 0)
    session.insert()
    check("sessions", len(list(sh.CloneSessionEntry().read())), 1)

    counter = sh.CounterEntry("Ingress.fired")
    counter.index = 2
    counter.packet_count = 9
    counter.modify()
    check("counter", [c.packet_count for c in sh.CounterEntry("Ingress.fired").read()], [0, 0, 9, 0])

finally:
    sh.teardown()
print("all checks passed")
