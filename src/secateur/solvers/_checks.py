"""Check numeric hyper-parameters of solvers."""

from secateur.errors import InvalidInputError
from secateur.solvers.base import Solver


def check_at_least(solver: Solver, **minimum: float) -> None:
    """Raise InvalidInputError if a hyper-parameter is below its minimum or NaN; None is valid."""
    for name, least in minimum.items():
        value = getattr(solver, name)
        if value is not None and not value >= least:
            raise InvalidInputError(
                f"{name}={value!r}, but it must be at least {least}. Set {name} to {least} or more."
            )
