"""Select solvers of the table by the rows they need."""

from secateur.solvers import SOLVERS, Solver


def solvers_of_node_sums(*settings: Solver) -> list[Solver]:
    """Return every solver that needs only sums at the nodes, in one pass; `settings` replace default instances."""
    replaced = {solver.name: solver for solver in settings}
    solvers = [replaced.get(name) or kind() for name, kind in SOLVERS.items()]
    return [solver for solver in solvers if not solver.needs_rows and not solver.many_passes]
