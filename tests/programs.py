"""Starts the programs that conformance/run and the tests of other languages test."""

import collections
import contextlib
import hashlib
import pathlib
import signal
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The time in seconds for a program to end.
STOP_TIMEOUT = 10


# An end by SIGTERM stops what was started, as one by Ctrl-C does.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


class CannotRun(Exception):
    """Something is missing, or did not run to its end; says nothing about what is tested."""


def python_with(requirements, work, name="python3", options=()):
    """A Python that has these packages, in an environment of this name below `work`; installed unless they are there already."""
    environment = work / name
    interpreter = environment / "bin" / "python"
    stamp = work / f"{name}.stamp"
    installed = hashlib.sha256(requirements.read_bytes()).hexdigest() + f" {sys.version}\n"
    if not (interpreter.exists() and stamp.exists() and stamp.read_text() == installed):
        stamp.unlink(missing_ok=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True)
        options = ["--quiet", "--disable-pip-version-check", "--no-compile", *options]
        subprocess.run([interpreter, "-m", "pip", "install", *options, "-r", requirements], check=True)
        stamp.write_text(installed)
    return interpreter


# A server: the URL at which it says that it listens, and its process.
Server = collections.namedtuple("Server", "url pid")


@contextlib.contextmanager
def started(command, **streams):
    """Starts a program, and stops it at the end."""
    try:
        program = subprocess.Popen(command, cwd=ROOT, text=True, **streams)
    except OSError as error:
        raise CannotRun(f"{command[0]} cannot be started: {error.strerror}") from error
    try:
        yield program
    finally:
        program.terminate()
        try:
            program.wait(timeout=STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()


@contextlib.contextmanager
def listening(command, log_path, start_timeout):
    """Starts a server, which has to say within `start_timeout` seconds where it listens."""
    with open(log_path, "a") as log, started(command, stdout=subprocess.PIPE, stderr=log) as server:
        # Ends the server, and with it the reading, if it never says where it listens.
        watchdog = threading.Timer(start_timeout, server.kill)
        watchdog.start()
        try:
            said = next((line for line in server.stdout if line.startswith("listening on ")), None)
        finally:
            watchdog.cancel()
        shown = " ".join(map(str, command))
        if said is None:
            raise CannotRun(f"a server ended without listening: {shown}; see {log_path}")
        yield Server(said.split()[2], server.pid)
        # A client may have asked it to stop.
        if server.poll():
            raise CannotRun(f"a server ended with status {server.returncode} during the run: {shown}; see {log_path}")
