"""Functions that the checks of faults run in separate processes."""
