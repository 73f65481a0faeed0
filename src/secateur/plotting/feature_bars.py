"""Plot the number of splits on each feature before and after pruning as a bar chart."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from secateur._util.text import shortened
from secateur.costs import FeatureCost
from secateur.data.rows import LocalRows
from secateur.forest import Forest
from secateur.plotting._palette import GREY, LINES, new_axes
from secateur.plotting.split_labels import feature_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from secateur.path.pruned import Pruned

_MAX_BARS, _MAX_NAME_LENGTH = 25, 40


def draw_features(pruned: "Pruned", ax: "Axes | None" = None, *, prices: Any = None) -> "Axes":
    """Plot the number of splits on each feature: grey bars before pruning, coloured bars after it.

    With `prices`, each bar is annotated with the price of its feature, or the price saved.
    """
    unpruned, forest = pruned.original.forest, pruned.forest
    before, after = _splits(unpruned), _splits(forest)
    price = None if prices is None else feature_prices(unpruned, prices)
    used = np.flatnonzero(before | after)
    order = used[np.lexsort((used, -before[used], -after[used]))][:_MAX_BARS]
    y = np.arange(len(order))
    ax = ax or new_axes(7.0, 1.1 + 0.27 * max(len(order), 4))
    ax.barh(y, before[order], color=GREY, alpha=0.35, label="before", gid="before")
    ax.barh(y, after[order], color=LINES[0], label="after pruning", gid="after")
    ax.set_yticks(y, [shortened(feature_name(unpruned, int(k)), _MAX_NAME_LENGTH) for k in order], parse_math=False)
    ax.invert_yaxis()
    n_omitted = len(used) - len(order)
    ax.set_xlabel("splits" + (f" ({n_omitted} more features not shown)" if n_omitted else ""))
    title = f"{np.count_nonzero(after)} of {np.count_nonzero(before)} features still used"
    if price is not None:
        title += f", price {price[after > 0].sum():.4g} of {price[before > 0].sum():.4g}"
        for bar, k in zip(y, order, strict=True):
            _write_price(ax, float(bar), float(before[k]), float(price[k]), still_used=bool(after[k]))
        ax.margins(x=0.12)
    ax.set_title(title, fontsize="medium")
    ax.legend(frameon=False, fontsize="small", loc="lower right")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def feature_prices(forest: Forest, prices: Any) -> NDArray[np.float64]:
    """Return the price of each feature bought alone, including the price shared by its group, (n_features,)."""
    cost = prices if isinstance(prices, FeatureCost) else FeatureCost(prices)
    if cost.row_prices is not None:
        return np.asarray(cost.row_prices, np.float64).mean(axis=0)
    no_rows = LocalRows(np.empty((forest.n_trees, 0), np.uint8), np.empty((0, 1)), np.empty(0))
    price_table = cost.price_table(forest, no_rows)
    return np.append(price_table.prices[0], 0.0)[price_table.resources].sum(axis=1)


def _splits(forest: Forest) -> NDArray[np.int64]:
    """Return the number of splits on each feature, (n_features,)."""
    return np.bincount(forest.feature[forest.is_split], minlength=forest.n_features)


def _write_price(ax: "Axes", y: float, x: float, price: float, *, still_used: bool) -> None:
    """Write the price of a feature after its bar, in grey if the feature is no longer used."""
    style = {"color": LINES[0], "gid": "price"} if still_used else {"color": GREY, "gid": "price saved"}
    ax.annotate(
        f"{price:g}" if still_used else f"saves {price:g}",
        (x, y),
        (4, 0),
        textcoords="offset points",
        va="center",
        fontsize="small",
        **style,  # type: ignore[arg-type]
    )
