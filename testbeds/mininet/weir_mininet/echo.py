"""Datagrams there and back, counted: `python3 -m weir_mininet.echo serve|send ADDRESS [COUNT]`."""

import select
import socket
import sys

PORT = 7
# Round trips take milliseconds; a datagram that is lost costs this much.
PATIENCE_S = 0.3


def serve(address):
    """Sends back whatever comes, until the standard input ends."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, PORT))
        print("ready", flush=True)
        while True:
            readable, _, _ = select.select([server, sys.stdin], [], [])
            if sys.stdin in readable:
                return
            data, source = server.recvfrom(2048)
            server.sendto(data, source)


def send(address, count):
    """Sends numbered datagrams one by one; how many came back."""
    answered = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(PATIENCE_S)
        client.connect((address, PORT))
        for number in range(count):
            data = number.to_bytes(4, "big") * 16
            client.send(data)
            try:
                while client.recv(2048) != data:
                    pass  # An answer that came too late for its own turn.
                answered += 1
            except TimeoutError:
                pass
    return answered


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        print(send(sys.argv[2], int(sys.argv[3])))
