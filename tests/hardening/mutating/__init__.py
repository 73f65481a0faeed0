"""Damage every kind of file secateur reads, and check the outcome of reading it.

`damage` changes bytes regardless of the format; `shapes` changes JSON, arrays and zips with knowledge of
the format; `models`, `paths` and `tables` have a file of each kind, the changes of its content, and an
independent reader to compare with. `python -m tests.hardening.mutating` tries some in a process that may crash.
"""
