"""The table of mutants: every one still applies, every folder has some, and the committed results are all caught."""

from collections import Counter

from tests.mutants.apply import ROOT, places_for, read_table
from tests.mutants.page import PAGE, read_results, write_page

MUTANTS = read_table()


def test_every_mutant_applies_to_the_sources_as_they_are():
    for mutant in MUTANTS:
        assert (ROOT / mutant.file).read_text().count(mutant.before) == 1, mutant.name
        assert mutant.before != mutant.after, mutant.name
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 40


def test_every_folder_has_two_mutants_and_tests_that_are_run_on_them():
    package = ROOT / "src" / "secateur"
    folders = {part_of(file.parent.relative_to(package).parts) for file in package.rglob("*.py")} - {"libraries"}
    counts = Counter(part_of(mutant.folder.split("/")) for mutant in MUTANTS)
    assert [folder for folder in folders if counts[folder] < 2] == []
    assert all(places_for(mutant, ROOT) for mutant in MUTANTS)


def part_of(folders):
    """Return the first folder, or the first two for those of libraries."""
    return "/".join(folders[: 2 if folders and folders[0] == "libraries" else 1]) or "secateur"


def test_the_page_shows_results_in_which_none_survives():
    assert PAGE.read_text() == write_page(MUTANTS, read_results())
    assert [mutant.name for mutant in MUTANTS if not read_results()[mutant.name]["now"]] == []
