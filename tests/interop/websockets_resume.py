"""Publishes by message, and reads with `websockets`, cut off again and again, until every event came once.

Run by tests/interop/run, with a server that lets programs of this machine publish to /topics/scratch-*.
"""

import argparse
import json
import random
import socket
import sys
import threading
import urllib.request

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

EVENTS = 300
# Most messages that are read before a connection is cut.
MESSAGES_MAX = 12
# How long any one answer may take, in seconds.
TIMEOUT = 120


# Straight to the server: no proxy that the environment may name.
http = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def opened(url, subprotocols=None):
    return connect(url, subprotocols=subprotocols, proxy=None, open_timeout=TIMEOUT)


def create(url):
    request = urllib.request.Request(url, data=b'{"n":1}', headers={"Content-Type": "application/json"})
    with http.open(request, timeout=TIMEOUT) as response:
        assert response.status == 201, response.status


def publish(url, first, last):
    """Each message is an event, and the only answer is that event."""
    with opened(f"{url}?after=latest") as connection:
        for number in range(first, last + 1):
            connection.send(json.dumps({"n": number}))
        answers = [json.loads(connection.recv(timeout=TIMEOUT)) for _ in range(first, last + 1)]
    assert answers == [{"n": number} for number in range(first, last + 1)], answers


def cut(connection):
    """As a network does: no close frame, and nothing more is read."""
    connection.socket.shutdown(socket.SHUT_RDWR)
    # Until its own thread has seen it.
    try:
        while True:
            connection.recv(timeout=TIMEOUT)
    except ConnectionClosed:
        pass


def with_positions(message, _):
    """The position after a message of `anemone.events`, and the event's data if it is one."""
    return message["position"], message.get("data")


def counted(message, position):
    """The same of a plain WebSocket's message, which is nothing but the data."""
    epoch, _, offset = position.rpartition("-")
    return f"{epoch}-{int(offset) + 1}", message


def follow(url, begin, subprotocols, understand):
    """The numbers of all events, over as many connections as it takes; and how many those were."""
    numbers, position, connections = [], begin, 0
    while len(numbers) < EVENTS:
        connections += 1
        with opened(f"{url}?after={position}", subprotocols) as connection:
            for _ in range(random.randint(0, MESSAGES_MAX)):
                if len(numbers) == EVENTS:
                    break
                message = json.loads(connection.recv(timeout=TIMEOUT))
                assert not {"gap", "skipped", "end"} & message.keys(), message
                position, data = understand(message, position)
                numbers += [] if data is None else [data["n"]]
            cut(connection)
    return numbers, connections


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--url", required=True, metavar="http://HOST:PORT")
    base = parser.parse_args().url.rstrip("/").replace("http", "ws", 1)
    failed = 0
    for name, subprotocols, understand in (
        ("with positions", ["anemone.events"], with_positions),
        ("that are counted", None, counted),
    ):
        url = f"{base}/topics/scratch-{'events' if subprotocols else 'plain'}"
        try:
            # Nothing is there to open before the first event.
            create(url.replace("ws", "http", 1))
            with opened(f"{url}?after=earliest", ["anemone.events"]) as connection:
                begin = json.loads(connection.recv(timeout=TIMEOUT))["position"]
            publishing = threading.Thread(target=publish, args=(url, 2, EVENTS))
            publishing.start()
            numbers, connections = follow(url, begin, subprotocols, understand)
            publishing.join()
            assert numbers == list(range(1, EVENTS + 1)), numbers
            print(f"ok      messages {name}, over {connections} connections", flush=True)
        except Exception as error:  # pylint: disable=broad-except
            failed += 1
            print(f"FAILED  messages {name}: {type(error).__name__}: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
