"""Coverages that the server computes, point by point, and their comparison with other values."""

import base64
import json
import struct
import urllib.request

WITHIN_DB = 0.1


def compute(url, request):
    """The grid of losses that a run computes, by column and row."""
    body = json.dumps(request | {"quantities": ["loss_db"]}).encode()
    post = urllib.request.Request(url + "/propagation", body, {"Accept": "application/x-ndjson"})
    losses = {}
    with urllib.request.urlopen(post, timeout=600) as reply:
        lines = [json.loads(line) for line in reply if line.strip()]
    events = [line["data"] for line in lines if "data" in line]
    assert events[-1]["state"] == "done", events[-1]
    assert events[-1]["result"]["points"] > 0
    for event in events:
        if "tile" not in event.get("partial", {}):
            continue
        tile = event["partial"]["tile"]
        stride, level = tile["stride"], tile["level"]
        data = base64.b64decode(event["partial"]["loss_db"])
        values = iter(struct.unpack(f"<{len(data) // 2}h", data))
        for row in range(tile["row"], tile["row"] + tile["rows"], stride):
            for column in range(tile["column"], tile["column"] + tile["columns"], stride):
                if level == 0 or column % (2 * stride) or row % (2 * stride):
                    assert (column, row) not in losses
                    losses[column, row] = next(values) / 100
        assert next(values, None) is None
    return losses


def line(model, mhz, base_m, mobile_m, length_m, step_m, **more):
    """A request for points on a line from the transmitter to the east."""
    transmitter = {"x_m": 0, "y_m": 0, "height_m": base_m, "frequency_mhz": mhz, "power_dbm": 0}
    return {
        "area": {"width_m": length_m, "height_m": 1},
        "step_m": step_m,
        "model": model,
        "receiver": {"height_m": mobile_m},
        "transmitters": [transmitter],
    } | more


def check(what, found, expected):
    """Fails unless all values agree."""
    assert len(found) == len(expected) and found, what
    worst = max(abs(a - b) for a, b in zip(found, expected, strict=True))
    assert worst < WITHIN_DB, f"{what}: {worst:.3f} dB apart"
    print(f"passed: {what}: {len(found)} values, at most {worst:.3f} dB apart")


def compare(url, what, expected, requests):
    """Compares the points of several lines with `expected(request, km)`."""
    found, wanted = [], []
    for request in requests:
        for (column, _), loss in compute(url, request).items():
            km = column * request["step_m"] / 1000
            if km > 0 and (other := expected(request, km)) is not None:
                found.append(loss)
                wanted.append(other)
    check(what, found, wanted)


def heights(request):
    """The frequency and both heights of a line."""
    transmitter = request["transmitters"][0]
    return transmitter["frequency_mhz"], transmitter["height_m"], request["receiver"]["height_m"]
