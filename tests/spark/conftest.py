import pytest
from tests.cases.spark import session


@pytest.fixture(scope="session")
def spark():
    return session()
