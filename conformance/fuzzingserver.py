"""Autobahn|Testsuite's mode fuzzingserver, on a free loopback port: says which one, and runs until it is ended.

Python 2.7, as the suite. `wstest --mode fuzzingserver` listens on every address, at a port chosen beforehand.
"""

# First of all: chooses the reactor, which the imports below would do otherwise.
import autobahntestsuite.choosereactor

import json
import socket
import sys

from autobahntestsuite.fuzzing import FuzzingServerFactory
from twisted.internet import reactor


def main(spec_path):
    # The suite prints as it goes, and only one line of ours is read.
    output, sys.stdout = sys.stdout, sys.stderr
    with open(spec_path) as file:
        spec = json.load(file)
    listener = socket.socket()
    listener.setblocking(False)
    listener.bind(("127.0.0.1", 0))
    listener.listen(50)
    origin = "ws://127.0.0.1:%d" % listener.getsockname()[1]
    reactor.adoptStreamPort(listener.fileno(), socket.AF_INET, FuzzingServerFactory(dict(spec, url=origin)))
    output.write("listening on %s\n" % origin)
    output.flush()
    reactor.run()


if __name__ == "__main__":
    main(sys.argv[1])
