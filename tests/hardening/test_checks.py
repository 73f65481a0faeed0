"""Every check of reliability, at its smallest scale; `make harden` runs them at full scale."""

import pytest
from tests.hardening.checks import checks
from tests.hardening.page import PAGE, read_results, write_page

CHECKS = checks()


@pytest.mark.parametrize("name", CHECKS)
def test_nothing_ends_badly(name):
    found = CHECKS[name].run(1)
    assert found.bad == []
    assert found.rows


def test_the_page_shows_the_committed_figures():
    assert PAGE.read_text() == write_page(read_results(), CHECKS)
    assert set(read_results()) <= set(CHECKS)
