"""Drives a switch with p4runtime-shell: p4runtime_shell.py ADDRESS DEVICE_ID P4INFO DEVICE_CONFIG."""

import sys

import p4runtime_sh.shell as sh
from google.rpc import code_pb2
from p4.v1 import p4runtime_pb2
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
    entry = sh.TableEntry("MyIngress.forward")(action="MyIngress.send")
    entry.match["dst"] = "00:00:00:00:00:02"
    entry.action["port"] = "1"
    entry.insert()
    check("a second insert", code_of(entry.insert), ["ALREADY_EXISTS"])
    entry.action["port"] = "2"
    entry.modify()
    found = list(sh.TableEntry("MyIngress.forward").read())
    check("entries", len(found), 1)
    check("port", found[0].action["port"].value, b"\x02")

    ternary = sh.TableEntry("MyIngress.acl")(action="MyIngress.drop")
    ternary.match["src"] = "0x0a &&& 0xff"
    check("no priority", code_of(ternary.insert), ["INVALID_ARGUMENT"])
    ternary.priority = 10
    ternary.insert()
    ternary.delete()
    check("a second delete", code_of(ternary.delete), ["NOT_FOUND"])

    fixed = sh.TableEntry("MyIngress.fixed")(action="MyIngress.drop")
    fixed.match["dst"] = "1"
    check("a constant table", code_of(fixed.insert), ["PERMISSION_DENIED"])

    default = sh.TableEntry("MyIngress.forward")(action="MyIngress.send", is_default=True)
    default.action["port"] = "3"
    default.modify()
    default = sh.TableEntry("MyIngress.forward")(is_default=True)
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

    counter = sh.CounterEntry("MyIngress.fired")
    counter.index = 2
    counter.packet_count = 9
    counter.modify()
    check("counter", [c.packet_count for c in sh.CounterEntry("MyIngress.fired").read()], [0, 0, 9, 0])

    meter = sh.MeterEntry("MyIngress.rate")
    meter.index = 1
    meter.cir, meter.cburst, meter.pir, meter.pburst = 1, 2, 3, 4
    meter.modify()
    check("meters", [m.pburst for m in sh.MeterEntry("MyIngress.rate").read()], [0, 4, 0, 0])
    meter.index = 9
    check("beyond the meter", code_of(meter.modify), ["OUT_OF_RANGE"])

    watched = sh.TableEntry("MyIngress.watched")(action="MyIngress.count_and_send")
    watched.match["src"] = "00:00:00:00:00:09"
    watched.action["port"] = "2"
    watched.counter_data.packet_count = 5
    watched.counter_data.byte_count = 50
    watched.meter_config.cir = 1
    watched.meter_config.cburst = 1
    watched.meter_config.pir = 2
    watched.meter_config.pburst = 2
    watched.metadata = b"mine"
    watched.insert()
    query = sh.TableEntry("MyIngress.watched")
    query.counter_data
    query.meter_config
    read = list(query.read())
    check("a direct counter", [e.counter_data.packet_count for e in read], [5])
    check("a direct meter", [e.meter_config.pir for e in read], [2])
    check("metadata", [e.metadata for e in read], [b"mine"])
    hits = sh.DirectCounterEntry("MyIngress.hits")
    hits.table_entry.match["src"] = "00:00:00:00:00:09"
    hits.packet_count = 7
    hits.modify()
    check("its value", [c.packet_count for c in sh.DirectCounterEntry("MyIngress.hits").read()], [7])

    shot = sh.TableEntry("MyIngress.balanced")
    shot.match["type"] = "0x0800"
    actions = sh.Oneshot("MyIngress.balanced")
    for port in ("1", "2"):
        action = sh.Action("MyIngress.send")
        action["port"] = port
        actions.add(action, weight=2)
    shot.oneshot = actions
    shot.insert()
    read = [e.oneshot for e in sh.TableEntry("MyIngress.balanced").read()]
    check("a one-shot", [[a.weight for a in o.actions] for o in read], [[2, 2]])
    shot.delete()
    for member, port in ((1, "1"), (2, "2")):
        entry = sh.ActionProfileMember("MyIngress.balance")(action="MyIngress.send", member_id=member)
        entry.action["port"] = port
        entry.insert()
    group = sh.ActionProfileGroup("MyIngress.balance")(group_id=3)
    group.add(1).add(2, weight=3)
    group.insert()
    check("a member in use", code_of(entry.delete), ["FAILED_PRECONDITION"])
    check("groups", [len(g.members) for g in sh.ActionProfileGroup("MyIngress.balance").read()], [2])

    # The shell has no words for registers and value sets, its client has.
    registers = {r.preamble.name: r.preamble.id for r in sh.context.p4info.registers}
    update = p4runtime_pb2.Update(type=p4runtime_pb2.Update.MODIFY)
    cell = update.entity.register_entry
    cell.register_id = registers["MyIngress.cells"]
    cell.index.index = 2
    for value in (b"\x01\x00", b"\x07"):
        cell.data.struct.members.add().bitstring = value
    sh.client.write_update(update)
    query = p4runtime_pb2.Entity()
    query.register_entry.register_id = registers["MyIngress.cells"]
    found = [e for response in sh.client.read_one(query) for e in response.entities]
    check("a register", [e.register_entry for e in found if e.register_entry.index.index == 2], [cell])
    check("its cells", len(found), 4)

    # What leaves at port 2 comes back at port 1.
    packets, lists = sh.PacketIn(), sh.DigestList()
    to_cpu = sh.TableEntry("MyIngress.forward")(action="MyIngress.send")
    to_cpu.match["dst"] = "00:00:00:00:00:07"
    to_cpu.action["port"] = "510"
    to_cpu.insert()
    digest = sh.DigestEntry("learn_t")
    digest.max_list_size = 1
    digest.insert()
    check("a digest twice", code_of(digest.insert), ["ALREADY_EXISTS"])
    frame = bytes.fromhex("000000000007" + "d10000000001" + "0000") + bytes(46)
    sh.PacketOut(frame, egress_port="2").send()
    packet = packets.packet_in_queue.get(timeout=20).packet
    check("a packet", packet.payload, frame)
    check("its metadata", [m.value for m in packet.metadata], [b"\x01", b"\x00"])
    learned = lists.digest_list_queue.get(timeout=20).digest
    check("a digest", [m.bitstring for m in learned.data[0].struct.members], [frame[6:12], b"\x01"])

finally:
    sh.teardown()
print("all checks passed")
