"""The server at which Horovod's workers find each other, which `horovodrun` starts before it starts the workers over ssh.

Here the workers are started otherwise, so it stands alone, as it does when Ray or Spark start them.
"""

import argparse

from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--hosts", required=True, help="a:1,b:1")
    arguments = parser.parse_args()

    assignments = get_host_assignments(parse_hosts(arguments.hosts), len(arguments.hosts.split(",")))
    server = RendezvousHTTPServer(("", arguments.port), RendezvousHandler, 0)
    server.init(assignments)
    print("ready", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
