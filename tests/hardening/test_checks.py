"""Every check of reliability, at its smallest scale; `make harden` runs them at full scale.

Damaged files and killed writers are in every run of the tests; the rest runs nightly.
"""

import pytest
from tests.hardening.checks import checks
from tests.hardening.page import PAGE, read_results, write_page

CHECKS = checks()
DAILY = ("killed_writers", "mutated_inputs")
"""Up to seven seconds each: processes of thirteen kinds of output are started and killed, and files damaged."""


@pytest.mark.parametrize(
    "name", [name if name in DAILY else pytest.param(name, marks=pytest.mark.nightly) for name in CHECKS]
)
def test_a_check_finds_no_failures(name):
    found = CHECKS[name].run(1)
    assert found.bad == []
    assert found.rows


def test_the_page_shows_the_committed_figures():
    assert PAGE.read_text() == write_page(read_results(), CHECKS)
    assert set(read_results()) <= set(CHECKS)
