"""Mutants: small, realistic defects that the tests must catch.

`make mutants` applies each to a copy of the sources and reports the test that catches it. `mutants.toml` stores a
defect as a substitution: `before` occurs once in `file`, and `after` takes its place. `results.md` is the table.
"""
