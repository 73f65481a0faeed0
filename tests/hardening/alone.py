"""Run a part of a check in a separate process, which may fork, be killed, or have its own mounts.

`python -m tests.hardening.alone MODULE FUNCTION ARGUMENTS` calls a function and prints what it returns, both as JSON.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_MARK = "returned: "


def alone(module: str, function: str, *args: Any, limit: float, before: tuple[str, ...] = (), **variables: str) -> Any:
    """Return the result of a function in a new process; `before` is a command prefix, `variables` its environment.

    Raises
    ------
    TimeoutError
        If it takes more than `limit` seconds; all processes it has started are ended.
    RuntimeError
        If it fails.
    """
    words = [*before, sys.executable, "-m", __name__, module, function, json.dumps(args)]
    places = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    variables = {**os.environ, "PYTHONPATH": places, **variables}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, cwd=ROOT, env=variables, text=True, start_new_session=True, **pipes) as process:
        try:
            output, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired as error:
            os.killpg(process.pid, signal.SIGKILL)
            raise TimeoutError(f"{module}.{function} has not ended after {limit:g} s") from error
    if process.returncode or _MARK not in output:
        raise RuntimeError(f"{module}.{function} ended with {process.returncode}: {errors[-3000:]}")
    return json.loads(output.rpartition(_MARK)[2])


@cache
def own_mounts() -> tuple[str, ...]:
    """Return the command prefix for a process with private mounts; empty where that is not permitted."""
    words = ("unshare", "--map-root-user", "--mount")
    if shutil.which("unshare") is None:
        return ()
    tried = subprocess.run([*words, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True)
    return words if tried.returncode == 0 else ()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell ignores it
    _, named_module, named_function, given = sys.argv
    result = getattr(import_module(named_module), named_function)(*json.loads(given))
    sys.stdout.write(f"\n{_MARK}{json.dumps(result)}\n")
