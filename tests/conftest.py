import os
import signal
import threading

import pytest
from hypothesis import HealthCheck, settings

# Two processes test at once, and threads that wait for work they hardly get spend more time than the work itself.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Tests press Ctrl-C, which a shell that runs them in the background has ignored.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Kernels compile on first use, so the first example of a test may take seconds.
settings.register_profile("secateur", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("secateur")

BY_MODEL = ("tests/contracts/test_libraries.py", "tests/contracts/test_solvers.py")
"""Files with so many tests that those of each model they try are a group of their own."""
CHECKS = "tests/hardening/test_checks.py"
"""Every check of reliability is a group of its own: they share nothing, and some take long."""


def pytest_configure(config):
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False  # groups run in the order below


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks at the same hook
def pytest_collection_modifyitems(items):
    """Keep tests in one process that share what takes long to make: a Spark session, or what a file keeps.

    Spark goes first, as its tests take longest, and the small groups last, so that all processes end together.
    """
    found = list(dict.fromkeys(map(_group, items)))
    place = {group: number for number, group in enumerate(sorted(found, key=_turn))}
    items.sort(key=lambda item: place[_group(item)])
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))


def _group(item):
    file = item.nodeid.partition("::")[0]
    if "spark" in getattr(item, "fixturenames", ()) or ("spark_" in item.name and file != BY_MODEL[1]):
        return "spark"
    if file in BY_MODEL and hasattr(item, "callspec"):
        return f"contracts: {item.callspec.params.get('name', '')}"
    return item.nodeid if file == CHECKS else file


def _turn(group):
    return 0 if group == "spark" else 2 if group.startswith("contracts") else 1
