"""The Python library `websockets`, as the client or the server of tests/interop/run."""

import json
import os
import queue
import signal
import sys

from websockets.exceptions import ConnectionClosed
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory
from websockets.sync.client import connect
from websockets.sync.server import serve

# How long any one answer may take, in seconds.
TIMEOUT = 120
TOO_MANY_BYTES = (16 << 20) + 1
OPTIONS = {"max_size": None, "open_timeout": TIMEOUT, "close_timeout": TIMEOUT, "ping_interval": None}
COMPRESSIONS = {
    "none": {"compression": None},
    "message": {"extensions": [ClientPerMessageDeflateFactory(True, True)], "compression": None},
    "context": {"compression": "deflate"},
}


def noise():
    x, noise = 1, bytearray()
    for _ in range(65521):
        x = (x * 1664525 + 1013904223) & 0xFFFFFFFF
        noise.append(x >> 24)
    return bytes(noise)


NOISE = noise()


def payload(kind, size):
    if kind == "text":
        return "aß€🌊".encode() * (size // 10) + b"x" * (size % 10)
    return (NOISE * (size // len(NOISE) + 1))[:size]


def send_fragments(connection, payload, is_text):
    def fragments():
        yield payload[:1]
        for fragment in payload[1:1], payload[1:127], payload[127:]:
            assert connection.ping().wait(TIMEOUT), "no pong between fragments"
            yield fragment

    connection.send(fragments(), text=is_text)


def send_bad(connection, bad):
    try:
        if bad == "utf8":
            connection.send(b"a\xffb", text=True)
        if bad == "big":
            connection.send(bytes(TOO_MANY_BYTES))
    except ConnectionClosed:
        pass  # Before it has taken all of it, as it may.


def compression(extensions):
    return "none" if not extensions else "message" if "no_context_takeover" in extensions else "context"


def check(url, case):
    with connect(url + case["path"], proxy=None, **COMPRESSIONS[case["compression"]], **OPTIONS) as connection:
        extensions = connection.response.headers.get("Sec-WebSocket-Extensions")
        assert compression(extensions) == case["compression"], f"agreed on {extensions}"
        for kind, size in case["messages"]:
            message, is_text = payload(kind, size), kind == "text"
            if case["fragmented"]:
                send_fragments(connection, message, is_text)
            else:
                connection.send(message, text=is_text)
            reply = connection.recv(TIMEOUT)
            assert reply == (message.decode() if is_text else message), f"{kind} of {size} bytes came back changed"
        close = case["close"]
        if close["by"] == "client":
            connection.close(close["code"], close["reason"])
        else:
            if case["command"] is not None:
                connection.send(case["command"])
            if case["bad"] == "stop":
                os.kill(case["pid"], signal.SIGTERM)
            else:
                send_bad(connection, case["bad"])
            try:
                raise AssertionError(f"{connection.recv(TIMEOUT)!r:.100} instead of a close frame")
            except ConnectionClosed:
                pass
    received = connection.protocol.close_rcvd
    assert received, f"no close frame: {connection.protocol.close_exc}"
    assert received.code == (close["code"] or 1005), f"close code {received.code}"
    assert close.get("reason") in (None, received.reason) or close["by"] == "client", f"reason {received.reason}"
    if "verdict" in case:
        with connect(url + "/verdict", proxy=None, **OPTIONS) as connection:
            verdict = json.loads(connection.recv(TIMEOUT))
        assert case["verdict"].items() <= verdict.items(), f"the server received {verdict}"


def client(url):
    failed = False
    for case in json.load(sys.stdin):
        try:
            check(url, case)
            print(f"ok      {case['name']}", flush=True)
        except Exception as error:  # pylint: disable=broad-except
            failed = True
            print(f"FAILED  {case['name']}: {type(error).__name__}: {error}", flush=True)
    sys.exit(failed)


def server():
    last = queue.SimpleQueue()

    def answer(connection, message):
        path, is_text = connection.request.path, isinstance(message, str)
        if path == "/fragments":
            send_fragments(connection, message.encode() if is_text else message, is_text)
        elif path == "/close":
            code, _, reason = message.partition(" ")
            connection.close(int(code) if code else None, reason)
        elif path == "/bad":
            send_bad(connection, message)
        else:
            connection.send(message)

    def accept(connection):
        nonlocal last
        if connection.request.path == "/verdict":
            connection.send(last.get(timeout=TIMEOUT))
            return
        ended = last = queue.SimpleQueue()
        try:
            while True:
                answer(connection, connection.recv())
        except ConnectionClosed:
            received = connection.protocol.close_rcvd
        extensions = connection.response.headers.get("Sec-WebSocket-Extensions")
        code, reason = (received.code, received.reason) if received else (1006, "")
        ended.put(json.dumps({"code": code, "reason": reason, "compression": compression(extensions)}))

    with serve(accept, "127.0.0.1", 0, **OPTIONS) as listener:
        print(f"listening on ws://127.0.0.1:{listener.socket.getsockname()[1]}", flush=True)
        listener.serve_forever()


if __name__ == "__main__":
    client(sys.argv[2]) if sys.argv[1] == "client" else server()
