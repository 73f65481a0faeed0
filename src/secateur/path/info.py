"""Describe how a path was computed and evaluated, in typed fields instead of columns or a dict."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

_KEYS = {"fills_budget": "aimed"}
"""Fields whose key in files and JSON differs from their name."""
_NOT_IN_JSON = ("runs",)


@dataclass(frozen=True, kw_only=True)
class PathInfo:
    """Describe a path.

    Attributes
    ----------
    loss, cost : str
        Names of the loss and the cost.
    made_on_rows : int
        Number of rows the path was computed on.
    sampled_from : int, optional
        Number of rows from which these were drawn, if not all of them fit into memory.
    judges : "ensemble" or "trees"
        Whether the column `risk` is the loss of the whole ensemble or the mean of the single trees' losses.
    runs : tuple of str
        Columns that tell apart the runs of a solver that merges several into one path.
    unpruned_cost : float, optional
    cheapest : float, optional
        The lowest cost among the points that have a split.
    exact : bool, optional
        Whether the solver's certificate is for the original problem: no price or weight was rounded.
    risk_loss : str, optional
        The loss of the column `risk`, once the path is evaluated.
    unpruned_loss : float, optional
    loss_scale : float, optional
        What a limit on the increase of the loss is a fraction of; None for the unpruned loss. A model that is compared
        with its own predictions has no unpruned loss; the variance of these predictions takes its place.
    evaluated_on : str, optional
        The validation rows in words.
    evaluated_rows : int, optional
    scoring : str, optional
        Name of the metric of the column `score`.
    unpruned_score : float, optional
    tolerance : float, optional
        By how much a predicted number must differ to count as changed; None for 0.
    clones : int, optional
        The number of refitted clones that were evaluated instead of the model.
    fills_budget : bool
        Whether the points were computed for a node budget, which they are to exhaust.
    interrupted : bool
        Whether Ctrl-C ended the computation, so that points are missing.
    saved_as : str, optional
        Suffix of the files whose size the column `bytes` measures.
    model_file, model_sha256 : str, optional
        The file the model was read from, and its digest.
    """

    loss: str
    cost: str
    made_on_rows: int
    sampled_from: int | None = None
    judges: Literal["ensemble", "trees"] = "trees"
    runs: tuple[str, ...] = ()
    unpruned_cost: float | None = None
    cheapest: float | None = None
    exact: bool | None = None
    risk_loss: str | None = None
    unpruned_loss: float | None = None
    loss_scale: float | None = None
    evaluated_on: str | None = None
    evaluated_rows: int | None = None
    scoring: str | None = None
    unpruned_score: float | None = None
    tolerance: float | None = None
    clones: int | None = None
    fills_budget: bool = False
    interrupted: bool = False
    saved_as: str | None = None
    model_file: str | None = None
    model_sha256: str | None = None

    @property
    def is_ensemble_risk(self) -> bool:
        """Whether the column `risk` is the loss of the whole ensemble."""
        return self.judges == "ensemble"

    @property
    def same_loss(self) -> bool:
        """Whether the columns `risk` and `loss` measure the same loss."""
        return self.risk_loss is None or self.risk_loss == self.loss

    @property
    def why_not_guaranteed(self) -> str:
        """Why limits that were compared with the measured columns are not guaranteed for a chosen model, in words."""
        where, n_rows = self.evaluated_on, self.evaluated_rows or self.made_on_rows
        if self.clones:
            count = "a clone" if self.clones == 1 else f"{self.clones} clones"
            return (
                f"Nothing is guaranteed: {count} of the model, trained without the rows that evaluate them, were "
                "pruned in the same way. Their losses estimate what this pruning does to a model trained on such rows; "
                "the returned model itself was evaluated on no new rows."
            )
        if where is None or where == "the rows passed":
            return (
                f"Nothing is guaranteed: the loss is that of the {self.made_on_rows:,} rows the pruning was fitted on, "
                "and lower than on new rows."
            )
        if where.endswith("held out from the pruning"):
            return (
                f"Nothing is guaranteed: the {n_rows:,} held-out rows evaluated prunings that were made without them; "
                "the returned one was then made again with all rows."
            )
        return (
            f"The limits are kept on {n_rows:,} rows, not guaranteed for new ones: the best of many points looks "
            "better on these rows than it is. Pass confidence=0.95 for a guarantee."
        )

    def to_json(self) -> dict[str, Any]:
        """Return the fields that are set as plain JSON values."""
        known = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in _NOT_IN_JSON}
        # Only flags that are set are stored; `exact` is stored either way.
        known = {name: value for name, value in known.items() if value is not None}
        flags = ("fills_budget", "interrupted")
        return {_KEYS.get(name, name): value for name, value in known.items() if name not in flags or value}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], runs: tuple[str, ...] = ()) -> "PathInfo":
        """Return the information of a stored path; keys that are not known are left out.

        Raises
        ------
        ValueError
            If a field is missing or has the wrong type.
        """
        given: dict[str, Any] = {}
        for name, declared in get_type_hints(cls).items():
            key = _KEYS.get(name, name)
            if stored.get(key) is not None and name not in _NOT_IN_JSON:
                _check(key, stored[key], declared)
                given[name] = stored[key]
        for name in ("loss", "cost", "made_on_rows"):
            if name not in given:
                raise ValueError(f"the field {name} of facts is missing")
        return cls(**given, runs=runs)


def _check(key: str, value: Any, declared: Any) -> None:
    """Raise ValueError unless a stored value has the type declared for the field."""
    if get_origin(declared) is Literal:
        matches = value in get_args(declared)
    else:
        kinds = set(get_args(declared) or (declared,))
        kinds |= {int} if float in kinds else set()
        # A bool is an int to Python, but not in JSON.
        matches = type(value) in kinds
    if not matches:
        raise ValueError(f"the field {key} of facts is {value!r:.60}, which is not of type {declared}")
