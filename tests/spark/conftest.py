import os
import shutil

import pytest
from tests.cases.spark import session


@pytest.fixture(scope="session")
def spark():
    pytest.importorskip("pyspark", reason="Spark is not installed")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("Spark needs Java, which is neither on the PATH nor at JAVA_HOME")
    return session()
