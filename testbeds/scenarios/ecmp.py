"""Connections of known ports, for ecmp-slow-spine.yaml: how many of them are slow, and whether one is both."""

import socket
import sys
import threading
import time

PORT = 7000
FIRST = 40000
CONNECTIONS = 32
MESSAGES = 5
SLOW = 0.02


def echo(connection):
    with connection:
        while data := connection.recv(4096):
            connection.sendall(data)


def serve(address):
    with socket.create_server((address, PORT), backlog=CONNECTIONS) as listener:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=echo, args=[connection], daemon=True).start()


def ask(own, address):
    slow = fast = mixed = 0
    for number in range(CONNECTIONS):
        source = (own, FIRST + number)
        with socket.create_connection((address, PORT), source_address=source) as connection:
            times = []
            for _ in range(MESSAGES):
                sent = time.monotonic()
                connection.sendall(b"ping")
                if connection.recv(16) != b"ping":
                    sys.exit("the answer is another one")
                times.append(time.monotonic() - sent >= SLOW)
        slow += all(times)
        fast += not any(times)
        mixed += any(times) and not all(times)
    print(f"{slow} slow, {fast} fast, {mixed} mixed")


if sys.argv[1] == "serve":
    serve(sys.argv[2])
else:
    ask(sys.argv[2], sys.argv[3])
