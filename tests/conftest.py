"""Options, markers and the distribution of tests over processes; CONTRIBUTING.md says which command runs what."""

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
usual = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "derandomize": True}
settings.register_profile("small", max_examples=20, **usual)
settings.register_profile("full", **usual)

END_TO_END = (
    "tests/cli/",
    "tests/hardening/",
    "tests/libraries/test_fork_safety.py",
    "tests/kernels/test_cache.py",
    "tests/reporting/",
    "tests/test_benchmarks.py",
    "tests/util/test_blas.py",
    "tests/libraries/test_boosters.py",
    "tests/test_docs.py",
    "tests/test_estimators.py",
    "tests/test_examples.py",
    "tests/test_readme.py",
)
"""Tests of whole programs, pages and processes, which `make quick` leaves out."""
CONTRACTS = "tests/contracts/"
"""Tests of all models that share nothing but the models, which are quickly fitted: each is a group of its own."""


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="run nightly tests, all models in contracts, more examples")


def pytest_configure(config):
    settings.load_profile("full" if config.getoption("full") else "small")
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False  # groups run in the order below


def pytest_generate_tests(metafunc):
    """Give `name` one model of each kind to tests marked so, or all models with --full."""
    marked = metafunc.definition.get_closest_marker("each_kind")
    if marked:
        from tests.cases.kinds import one_of_each_kind

        names = list(marked.args[0])
        metafunc.parametrize("name", names if metafunc.config.getoption("full") else one_of_each_kind(names))


def pytest_collection_modifyitems(config, items):
    """Mark tests by their place, leave out nightly ones without --full, and start with the longest group: Spark."""
    for item in items:
        if _uses_spark(item.nodeid):
            item.add_marker("spark")
        if item.nodeid.startswith(END_TO_END):
            item.add_marker("end_to_end")
    if not config.getoption("full"):
        left_out = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    items.sort(key=lambda item: not _uses_spark(item.nodeid))


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
    if _uses_spark(nodeid):
        return "spark"
    return nodeid if nodeid.startswith(CONTRACTS) else nodeid.partition("::")[0]


def _uses_spark(nodeid):
    """Return whether a test starts or shares the Spark session; solvers see Spark models without one."""
    file, _, name = nodeid.partition("::")
    if file.startswith(("tests/spark/", "tests/libraries/test_spark.py")):
        return True
    return "spark_" in name and file != f"{CONTRACTS}test_solvers.py"
