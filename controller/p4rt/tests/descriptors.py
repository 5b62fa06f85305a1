"""Compares a FileDescriptorSet on stdin with the descriptors of the installed `p4runtime` package.

What must agree is what goes over the wire and into generated names: packages, messages, fields (number, type, label,
oneof, map), enumerations, services. Comments, field order and language options need not.
"""

import importlib
import sys

from google.protobuf import descriptor_pb2

MODULES = [
    "google.rpc.code_pb2",
    "google.rpc.status_pb2",
    "p4.config.v1.p4types_pb2",
    "p4.config.v1.p4info_pb2",
    "p4.v1.p4data_pb2",
    "p4.v1.p4runtime_pb2",
]


def enum_facts(path, enum):
    yield path, "enum"
    for value in enum.value:
        yield f"{path}.{value.name}", value.number


def message_facts(path, message):
    yield path, ("message", message.options.map_entry)
    for field in message.field:
        oneof = message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else None
        yield f"{path}.{field.name}", (field.number, field.type, field.type_name, field.label, oneof)
    for nested in message.nested_type:
        yield from message_facts(f"{path}.{nested.name}", nested)
    for enum in message.enum_type:
        yield from enum_facts(f"{path}.{enum.name}", enum)


def facts(file):
    package = file.package
    for message in file.message_type:
        yield from message_facts(f"{package}.{message.name}", message)
    for enum in file.enum_type:
        yield from enum_facts(f"{package}.{enum.name}", enum)
    for service in file.service:
        for method in service.method:
            yield f"{package}.{service.name}.{method.name}", (
                method.input_type,
                method.output_type,
                method.client_streaming,
                method.server_streaming,
            )


def main():
    ours = descriptor_pb2.FileDescriptorSet.FromString(sys.stdin.buffer.read())
    ours = {file.name: dict(facts(file)) for file in ours.file}
    differences = 0
    for module in MODULES:
        file = descriptor_pb2.FileDescriptorProto()
        importlib.import_module(module).DESCRIPTOR.CopyToProto(file)
        theirs, mine = dict(facts(file)), ours.get(file.name, {})
        for name in sorted(theirs.keys() | mine.keys()):
            if theirs.get(name) != mine.get(name):
                differences += 1
                print(f"{file.name}: {name}: theirs {theirs.get(name)}, ours {mine.get(name)}")
    if differences:
        sys.exit(f"{differences} differences")
    print(f"{len(MODULES)} files agree")


main()
