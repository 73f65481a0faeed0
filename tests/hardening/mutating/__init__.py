"""Every kind of file secateur reads, damaged in every way we could think of, and what comes of reading it.

`damage` turns bytes without knowing what they mean; `shapes` changes JSON, arrays and zips as somebody would who knows
the format; `models`, `paths` and `tables` have a file of each kind, what can be done to its contents, and an
independent reader to compare with. `python -m tests.hardening.mutating` tries some in a process that may die.
"""
