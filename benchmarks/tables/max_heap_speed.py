"""Time max-heap pruning: the projection against quadratic programs, and a path for growing numbers of rows."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.tree import DecisionTreeRegressor

from benchmarks.discovery import Table, data_sets
from benchmarks.load import load
from benchmarks.measure import Job, growth, seconds, take_turns
from benchmarks.results import Result, Row, Target
from secateur import kernels
from secateur.costs import NodeCost
from secateur.data.rows import read_sample
from secateur.libraries import adapt
from secateur.losses import default_loss
from secateur.problem import Problem
from secateur.solvers import MaxHeap
from secateur.solvers.node_weights._weights import Block, blocks

Floats = NDArray[np.float64]
_NODES = (1_001, 10_001, 100_001, 1_000_001)
_PROGRAM_NODES = 20_000
_CALLS = 10
_SUBSAMPLES = 100
_NOTES = [
    "First grid: kernels.project_max_heap on random binary trees in preorder, u = |normal| - 0.5, against the same "
    "problem as a sparse quadratic program: minimise |w - u|² with w[child] <= w[parent] and w >= 0 at the leaves. "
    f"Each is called {_CALLS} times in a row, as a descent would; seconds are those of one call. piqp and clarabel are "
    "interior-point solvers, with tolerances 1e-14 and 1e-9 (with smaller ones they do not converge); their set-up "
    "is timed, building the matrices is not. ratio_x: the time of x / the time of secateur. difference_x: the largest "
    "difference between the solutions. growth: the exponent b of seconds = c * nodes^b from 10^4 nodes on.",
    "Second grid: MaxHeap() with its 40 penalties on one regression tree, trained on 10000 rows of fried; larger "
    "numbers of rows are copies of these, so the problem stays the same. All times are after routing. descent: the "
    "40 descents by kernels.fit_max_heap, given the sums of the rows at the leaves. sums: computing those sums. "
    "path: the whole solver.path(problem): sums, descents, and the table of the path, computed from the same sums. "
    "ratio_x: time / time for the fewest rows; the descents do exactly the same work, so their ratio shows the "
    "measurement noise.",
    f"subsamples: solver.path(problem) with {_SUBSAMPLES} half-samples of 40 penalties each and 6 shapes refitted at "
    "40 penalties; measured once.",
]


@dataclass(frozen=True, eq=False)
class Program:
    """The projection as a quadratic program: minimise |w − u|² with order · w ≤ 0, and w ≥ 0 at the leaves."""

    u: Floats
    order: Any
    leaf: NDArray[np.bool_]


def run(quick: bool) -> Result:
    repeats = 1 if quick else 51
    skipped = [f"{name}: not installed. Run: pip install {name}" for name in _RIVALS if not find_spec(name)]
    rows = [measure_projection(n_nodes, repeats) for n_nodes in (_NODES[:1] if quick else _NODES)]
    large = [row for row in rows if row["nodes"] >= 10_000]
    exponent = growth([row["nodes"] for row in large], [row["seconds_secateur"] for row in large])
    paths = measure_paths(*((200, (1, 2), 20, 2) if quick else (10_000, (1, 10, 100), 1_250, _SUBSAMPLES)), repeats)
    ratios = {name: large[0].get(f"ratio_{name}") if large else None for name in _RIVALS}
    promised = [
        *(
            Target(f"time of {name} / time of the projection, 10^4 nodes", ratios[name], at_least=100)
            for name in ratios
        ),
        Target("time of the descent, most rows / fewest rows", paths[-1]["ratio_descent"], at_most=1.1),
        Target("time of the whole path after routing, most rows / fewest rows", paths[-1]["ratio_path"], at_most=1.1),
    ]
    return Result([*rows, {"nodes": "growth", "seconds_secateur": exponent}], repeats, _NOTES, promised, paths, skipped)


def measure_projection(n_nodes: int, repeats: int) -> Row:
    """Return the times for one random tree, with quadratic programs unless it is large."""
    rng = np.random.default_rng(0)
    parent, u = random_tree(n_nodes, rng), np.abs(rng.standard_normal(n_nodes)) - 0.5
    ways: dict[str, Callable[[], Floats]] = {"secateur": partial(kernels.project_max_heap, u, parent, np.ones(n_nodes))}
    if n_nodes <= _PROGRAM_NODES:
        program = as_program(u, parent)
        ways |= {name: partial(solve, program) for name, solve in _RIVALS.items() if find_spec(name)}
    wanted = ways["secateur"]()  # compiles
    times = take_turns({name: Job(partial(call, way)) for name, way in ways.items()}, repeats)
    rivals = [name for name in ways if name != "secateur"]
    return {
        "nodes": n_nodes,
        **{f"seconds_{name}": time / _CALLS for name, time in times.items()},
        **{f"ratio_{name}": times[name] / times["secateur"] for name in rivals},
        **{f"difference_{name}": float(np.abs(ways[name]() - wanted).max()) for name in rivals},
    }


def call(way: Callable[[], Floats]) -> None:
    for _ in range(_CALLS):
        way()


def random_tree(n_nodes: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Return the parents of a binary tree in preorder; the size of a left subtree is uniformly random."""
    parent = np.empty(n_nodes, np.int32)
    waiting = [(0, n_nodes, -1)]
    while waiting:
        v, size, above = waiting.pop()
        parent[v] = above
        if size > 1:
            left = 1 + 2 * int(rng.integers((size - 1) // 2))
            waiting += [(v + 1 + left, size - 1 - left, v), (v + 1, left, v)]
    return parent


def as_program(u: Floats, parent: NDArray[np.int32]) -> Program:
    n = len(u)
    child = np.arange(1, n)
    order = sparse.eye(n, format="csr")[1:] - sparse.csr_matrix((np.ones(n - 1), (child - 1, parent[1:])), (n - 1, n))
    return Program(u, sparse.csc_matrix(order), ~np.isin(np.arange(n), parent))


def solve_by_piqp(program: Program) -> Floats:
    import piqp

    solver = piqp.SparseSolver()
    for name in ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel"):
        setattr(solver.settings, name, 1e-14)
    n = len(program.u)
    lower = np.where(program.leaf, 0.0, -np.inf)
    solver.setup(P=sparse.eye(n, format="csc"), c=-program.u, G=program.order, h_u=np.zeros(n - 1), x_l=lower)
    solver.solve()
    return np.array(solver.result.x)


def solve_by_clarabel(program: Program) -> Floats:
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    square = sparse.eye(len(program.u), format="csc")
    below = sparse.csc_matrix(sparse.vstack([program.order, -square[program.leaf]]))
    cones = [clarabel.NonnegativeConeT(below.shape[0])]
    solver = clarabel.DefaultSolver(square, -program.u, below, np.zeros(below.shape[0]), cones, settings)
    return np.array(solver.solve().x)


_RIVALS = {"piqp": solve_by_piqp, "clarabel": solve_by_clarabel}


def measure_paths(n_rows: int, copies: tuple[int, ...], n_leaves: int, subsamples: int, repeats: int) -> list[Row]:
    """Return the times of the steps of a path for one and for several copies of the rows."""
    data = load(data_sets()["fried"]).sample(n_rows, seed=0)
    adapter = adapt(DecisionTreeRegressor(max_leaf_nodes=n_leaves, random_state=0).fit(data.X, data.y))
    forest, sample = adapter.forest, read_sample(adapter, data.X, data.y)
    once = Problem(forest, sample, default_loss(forest), NodeCost())
    penalties = np.sort(MaxHeap().path(once).table["penalty"][1:])[::-1]
    problems = {count: replace(once, row_source=sample.take(np.tile(np.arange(n_rows), count))) for count in copies}
    steps = {
        "descent": {count: partial(descend, make_block(problem), penalties) for count, problem in problems.items()},
        "sums": {count: partial(make_block, problem) for count, problem in problems.items()},
        "path": {count: partial(make_path, problem, MaxHeap()) for count, problem in problems.items()},
    }
    rows: list[Row] = [{"rows": n_rows * count, "nodes": forest.n_nodes} for count in copies]
    for step, works in steps.items():  # one step at a time, so that compared runs are close in time
        times = take_turns({str(count): Job(work) for count, work in works.items()}, repeats)
        for row, time in zip(rows, times.values(), strict=True):
            row[f"seconds_{step}"] = time
            if step != "sums":
                row[f"ratio_{step}"] = time / times[str(copies[0])]
    rows[0]["seconds_subsamples"] = seconds(partial(make_path, once, MaxHeap(subsamples=subsamples)))
    return rows


def make_block(problem: Problem) -> Block:
    """Add the rows up at the leaves."""
    return blocks(replace(problem), joint=False)[0]  # a new problem each time: a problem remembers its sums


def descend(block: Block, penalties: Floats) -> None:
    """Fit the weights at each penalty with warm starts, as MaxHeap does."""
    settings = MaxHeap()
    options = (settings.tolerance, settings.growth, settings.memory, settings.max_iterations)
    w = np.zeros(len(block.parent))
    for penalty in penalties:
        rows = (block.parent, block.leaves, block.weight, block.targets[0])
        w = kernels.fit_max_heap(*rows, penalty, block.prior, w, *options)[0]


def make_path(problem: Problem, solver: MaxHeap) -> None:
    solver.path(replace(problem))


TABLE = Table("max_heap_speed", "Speed of max-heap pruning: the projection, and paths for growing numbers of rows", run)
