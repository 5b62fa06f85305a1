"""Connections of known ports, for ecmp-black-hole.yaml: how many of them come about, and live."""

import concurrent.futures
import socket
import sys
import threading

PORT = 7000
FIRST = 40000
CONNECTIONS = 16
MESSAGES = 3
# Seconds.
PATIENCE = 4


def echo(connection):
    with connection:
        while data := connection.recv(4096):
            connection.sendall(data)


def serve(address):
    with socket.create_server((address, PORT), backlog=CONNECTIONS) as listener:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=echo, args=[connection], daemon=True).start()


def outcome(own, address):
    try:
        connection = socket.create_connection((address, PORT), PATIENCE, own)
    except TimeoutError:
        return "lost"
    with connection:
        try:
            for _ in range(MESSAGES):
                connection.sendall(b"ping")
                if connection.recv(16) != b"ping":
                    return "torn"
        except TimeoutError:
            return "torn"
    return "alive"


def ask(own, address):
    with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
        ports = range(FIRST, FIRST + CONNECTIONS)
        all_of_them = list(pool.map(lambda port: outcome((own, port), address), ports))
    print(", ".join(f"{all_of_them.count(word)} {word}" for word in ["alive", "lost", "torn"]))


if sys.argv[1] == "serve":
    serve(sys.argv[2])
else:
    ask(sys.argv[2], sys.argv[3])
