import os
import signal
import threading

import pytest
from hypothesis import HealthCheck, settings

from secateur.costs import COSTS

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


def pytest_collection_modifyitems(items):
    """Run tests by group: Spark first, as its tests take longest, and small groups last, so that all processes end
    together.
    """
    found = list(dict.fromkeys(_group(item.nodeid) for item in items))
    place = {group: number for number, group in enumerate(sorted(found, key=_turn))}
    items.sort(key=lambda item: place[_group(item.nodeid)])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Keep tests in one process that share what takes long to make: a Spark session, or what a file keeps.

    By their names, as marks of groups do not reach xdist 3.8 with pytest 9.2.
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return _group(nodeid)

    return ByGroup(config, log)


def _group(nodeid):
    file, _, name = nodeid.partition("::")
    if file.startswith(("tests/spark/", "tests/io/test_spark.py")) or ("spark_" in name and file != BY_MODEL[1]):
        return "spark"
    if file in BY_MODEL and "[" in name:
        parts = name.partition("[")[2].rstrip("]").split("-")
        return f"contracts: {next(part for part in parts if not part.isdigit() and part not in COSTS)}"
    return nodeid if file == CHECKS else file


def _turn(group):
    return 0 if group == "spark" else 2 if group.startswith("contracts") else 1
