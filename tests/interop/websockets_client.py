"""Reads one topic over every transport with Python's own HTTP client and with `websockets`, all at once.

Every reader must see the same events at the same positions, and the events must be those of an instrument that
sends four a second. Run by tests/interop/run.
"""

import argparse
import collections
import concurrent.futures
import json
import statistics
import sys
import urllib.parse
import urllib.request

from websockets.sync.client import connect

EVENTS = 12
# How long any one answer may take, in seconds.
TIMEOUT = 120
# Median time between events, in milliseconds: 250 at four a second, with room for a busy machine.
SPACING_MIN, SPACING_MAX = 150, 350

# `position` and `time` are None where the transport does not tell them.
Event = collections.namedtuple("Event", "position time data")

# Straight to the server: no proxy that the environment may name.
http = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def get(url, **fields):
    fields = {name.replace("_", "-"): value for name, value in fields.items()}
    return http.open(urllib.request.Request(url, headers=fields), timeout=TIMEOUT)


def pages(topic, query, **fields):
    """The events of one page after another, as one who polls sees them."""
    events, after = [], "earliest"
    while len(events) < EVENTS:
        with get(f"{topic}?{urllib.parse.urlencode({'after': after, **query})}", **fields) as response:
            page = json.load(response)
            headers = response.headers
        assert "gap" not in page, page["gap"]
        assert page["first"] == 1, f"first is {page['first']} on a new topic"
        events += [Event(f"{page['epoch']}-{e['offset']}", e["time"], e["data"]) for e in page["events"]]
        after = page["next"]
        assert after == (events[-1].position if events else f"{page['epoch']}-0"), f"next is {after}"
        assert f"after={after}>" in headers["Link"], f"Link is {headers['Link']}"
        if fields:
            assert headers["Preference-Applied"] == fields["Prefer"], "Preference-Applied is missing or wrong"
        else:
            assert page["events"], "a poll for events that others have seen found none"
    return events


def poll(topic):
    return pages(topic, {"limit": 5})


def long_poll(topic):
    return pages(topic, {}, Prefer="wait=5")


def sse(topic):
    events, position, time, data, kind = [], None, None, "", ""
    with get(f"{topic}?after=earliest", Accept="text/event-stream") as response:
        content_type = response.headers.get_content_type()
        assert content_type == "text/event-stream", content_type
        while len(events) < EVENTS:
            line = response.readline()
            assert line.endswith(b"\n"), "the stream ended"
            name, _, value = line.decode().rstrip("\r\n").partition(":")
            value = value.removeprefix(" ")
            if line.strip():
                position = value if name == "id" else position
                time = float(value) if name == "time" else time
                data = data + value if name == "data" else data
                kind = value if name == "event" else kind
                continue
            assert not kind, f"event: {kind}, {data}"
            if data:
                events.append(Event(position, time, json.loads(data)))
            time, data = None, ""
    return events


def websocket(topic, subprotocols, count):
    """The first messages, and then a closing handshake."""
    url = topic.replace("http", "ws", 1) + "?after=earliest"
    # With more than `max_queue` messages that nobody has taken it reads nothing more, not even the answer to its close frame,
    # and a server that has run for some seconds has sent more.
    with connect(url, subprotocols=subprotocols, proxy=None, open_timeout=TIMEOUT, max_queue=None) as connection:
        chosen = subprotocols[0] if subprotocols else None
        assert connection.subprotocol == chosen, f"the subprotocol is {connection.subprotocol}"
        texts = [connection.recv(timeout=TIMEOUT) for _ in range(count)]
    answer = connection.protocol.close_rcvd
    assert answer is not None and answer.code == 1000, f"the close frame was answered with {answer}"
    assert all(isinstance(text, str) for text in texts), "a binary message"
    messages = [json.loads(text) for text in texts]
    assert not any("gap" in message for message in messages), messages
    return messages


def websocket_events(topic):
    opening, *rest = websocket(topic, ["anemone.events"], EVENTS + 1)
    assert list(opening) == ["position"], f"the first message is {opening}"
    assert opening["position"].endswith("-0"), opening
    return [Event(message["position"], message["time"], message["data"]) for message in rest]


def websocket_plain(topic):
    return [Event(None, None, data) for data in websocket(topic, None, EVENTS)]


def check_same(readings):
    """What one reader is told, and what another is told of the same event."""
    first, *others = readings
    for index, event in enumerate(readings[first][:EVENTS]):
        epoch, _, offset = event.position.rpartition("-")
        assert epoch and int(offset) == index + 1, f"event {index + 1} is at {event.position}"
        for other in others:
            same = readings[other][index]
            for name, mine, its in zip(Event._fields, event, same):
                assert its is None or mine is None or mine == its, (
                    f"{name} of event {index + 1}: {first} has {mine}, {other} has {its}"
                )


def check_spacing(readings):
    times = [event.data["t0"] for event in readings["poll"]]
    spacing = statistics.median(later - earlier for earlier, later in zip(times, times[1:]))
    assert SPACING_MIN <= spacing <= SPACING_MAX, f"median {spacing:.1f} ms between events"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--url", required=True, metavar="http://HOST:PORT")
    parser.add_argument("--topic", default="wind")
    args = parser.parse_args()
    topic = f"{args.url.rstrip('/')}/topics/{args.topic}"

    passed, failed, readings = 0, 0, {}

    def tell(name, test):
        nonlocal passed, failed
        try:
            result = test()
        except Exception as error:  # pylint: disable=broad-except
            failed += 1
            print(f"FAILED  {name}: {type(error).__name__}: {error}", flush=True)
            return
        passed += 1
        print(f"ok      {name}", flush=True)
        if result is not None:
            readings[name] = result

    live = {
        "long poll": long_poll,
        "SSE": sse,
        "WebSocket, anemone.events": websocket_events,
        "WebSocket, plain": websocket_plain,
    }
    with concurrent.futures.ThreadPoolExecutor(len(live)) as threads:
        for name, reading in {name: threads.submit(read, topic) for name, read in live.items()}.items():
            tell(name, reading.result)
    # Last, so that what it asks for is there and it need not ask again and again.
    tell("poll", lambda: poll(topic))

    def complete():
        assert len(readings) == len(live) + 1, "not all transports could be read"
        return {"poll": readings["poll"], **readings}

    tell("all see the same events at the same positions", lambda: check_same(complete()))
    tell("about four events a second, by their own t0", lambda: check_spacing(readings))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
