"""A toy service, for memo-authors.yaml: it takes notes in the protocol of protocols/memo.yaml, and says "ok" to each."""

import socket
import sys
import time

PORT = 7070


def serve(address):
    with socket.create_server((address, PORT), reuse_port=False) as listener:
        while True:
            connection, _ = listener.accept()
            with connection:
                note = b""
                # The head's line, and the title's.
                while note.count(b"\n") < 2:
                    part = connection.recv(4096)
                    if not part:
                        break
                    note += part
                connection.sendall(b"ok\n")


def note(author, priority, title):
    head = b"MEMO\x01" + bytes([len(author)]) + author.encode()
    return head + f"{priority}\n{title}\n".encode()


def send(address, number):
    author = ["ann", "bob"][number % 2]
    with socket.create_connection((address, PORT)) as connection:
        connected = time.monotonic()
        connection.sendall(note(author, number * 100, f"note {number}"))
        answer = connection.recv(16)
    print(f"{author} took {1000 * (time.monotonic() - connected):.3f} ms")
    sys.exit(answer != b"ok\n")


if sys.argv[1] == "serve":
    serve(sys.argv[2])
else:
    send(sys.argv[2], int(sys.argv[3]))
