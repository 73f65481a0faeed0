import pytest
from hypothesis import HealthCheck, settings

# Kernels compile on first use, so the first example of a test may take seconds.
settings.register_profile("secateur", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("secateur")


def pytest_collection_modifyitems(items):
    """Keep all tests that ask Spark in one process: a session takes long to start."""
    for item in items:
        if "spark_" in item.name or "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))
