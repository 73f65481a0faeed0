"""Running the program itself: in a pipe, or on a terminal."""

import os
import pty
import re
import subprocess
import sys

PROGRAM = [sys.executable, "-c", "from secateur.cli import main; main()"]
_ENVIRONMENT = (
    "NO_COLOR",
    "FORCE_COLOR",
    "TERM",
    "COLUMNS",
    "GITHUB_ACTIONS",
    "PY_COLORS",
    "COLORTERM",
    "TTY_COMPATIBLE",
)


def environment(**changes):
    """Return the environment without anything that says what a terminal can do, but for the changes."""
    kept = {name: value for name, value in os.environ.items() if name not in _ENVIRONMENT}
    return {**kept, "TERM": "xterm-256color", **changes}


def in_a_pipe(*args, **changes):
    """Run the program without a terminal and return what it did."""
    return subprocess.run(
        [*PROGRAM, *map(str, args)], capture_output=True, text=True, env=environment(**changes), timeout=120
    )


def on_a_terminal(*args, until=None, sends=None, **changes):
    """Run the program on a terminal and return its exit code and all it wrote there, stdout and stderr.

    It is sent the signal `sends` once, as soon as it has written something that matches `until`.
    """
    ours, its = pty.openpty()
    program = subprocess.Popen(
        [*PROGRAM, *map(str, args)], stdin=its, stdout=its, stderr=its, env=environment(**changes)
    )
    os.close(its)
    written = b""
    while chunk := _read(ours):
        written += chunk
        if sends is not None and re.search(until, written.decode(errors="replace")):
            program.send_signal(sends)
            sends = None
    os.close(ours)
    return program.wait(timeout=120), written.decode()


def _read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux tells that nobody writes any more
        return b""
