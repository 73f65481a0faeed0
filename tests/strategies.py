"""Random forests, masks and rows for hypothesis, and slow but obvious versions of what the kernels do."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from secateur.forest import Categories, Forest, check_forest
from secateur.forest.subforest import Decision

LINK_OUTPUTS = {
    "identity": [((), 1), ((), 3)],
    "probability": [((2,), 2), ((3,), 3), ((2, 3), 5)],
    "logit": [((2,), 1)],
    "softmax": [((3,), 3)],
}


def examples(n):
    """Return hypothesis settings with `n` examples in the full profile, and in proportion in the small one."""
    return settings(max_examples=max(1, n * settings.default.max_examples // 100))


def random_tree(rng, n_splits):
    """Return `right` of a random tree in preorder, counted from its root."""
    if n_splits == 0:
        return [-1]
    n_left = int(rng.integers(n_splits))
    left, right = random_tree(rng, n_left), random_tree(rng, n_splits - 1 - n_left)
    shifted_left = [r + 1 if r != -1 else -1 for r in left]
    start = 1 + len(left)
    return [start, *shifted_left, *[r + start if r != -1 else -1 for r in right]]


def random_forest(rng, n_trees=2, max_splits=6, link="identity", n_classes=(), n_outputs=1, categorical=False, **facts):
    """Return a random Forest; thresholds are small integers so that rows can hit them exactly."""
    trees = [np.array(random_tree(rng, int(rng.integers(max_splits + 1)))) for _ in range(n_trees)]
    start = np.concatenate([[0], np.cumsum([len(t) for t in trees])]).astype(np.int64)
    right = np.concatenate([np.where(t == -1, -1, t + s) for t, s in zip(trees, start[:-1], strict=True)])
    n, n_features = len(right), int(rng.integers(1, 5))
    split = right != -1
    one_output = link == "softmax"
    value = rng.normal(size=(n, 1 if one_output else n_outputs))
    if link == "probability":
        for a, b in zip(np.cumsum([0, *n_classes[:-1]]), np.cumsum(n_classes), strict=True):
            value[:, a:b] = rng.dirichlet(np.ones(b - a), size=n)
    weight = np.where(split, 0, rng.integers(0, 5, n)).astype(float)
    for v in range(n - 1, -1, -1):
        if split[v]:
            weight[v] = weight[v + 1] + weight[right[v]]
    facts.setdefault("aggregation", "mean" if link == "probability" else "sum")
    if facts["aggregation"] == "mean":
        facts.setdefault("divisor", float(n_trees))
    forest = Forest(
        tree_start=start,
        right=right.astype(np.int32),
        feature=np.where(split, rng.integers(0, n_features, n), -1).astype(np.int32),
        threshold=rng.choice([-np.inf, -2.0, -1.0, 0.0, 1.0, 2.0, np.inf], n),
        default_left=rng.random(n) < 0.5,
        value=value,
        weight=weight,
        tree_weight=np.ones(n_trees) if facts["aggregation"] == "mean" else rng.uniform(0.1, 1, n_trees),
        tree_output=(np.arange(n_trees) % n_outputs if one_output else np.full(n_trees, -1)).astype(np.int32),
        base=np.zeros(n_outputs) if facts["aggregation"] == "mean" else rng.normal(size=n_outputs),
        link=link,
        n_features=n_features,
        n_classes=n_classes,
        categories=random_categories(rng, split) if categorical else Categories(),
        **facts,
    )
    check_forest(forest)
    return forest


def random_categories(rng, split):
    chosen = np.flatnonzero(split & (rng.random(len(split)) < 0.5))
    if not len(chosen):
        return Categories()
    row = np.full(len(split), -1, np.int32)
    row[chosen] = np.arange(len(chosen))
    codes = [np.flatnonzero(rng.random(5) < 0.6) for _ in chosen]
    return Categories(
        row=row,
        start=np.concatenate([[0], np.cumsum([len(c) for c in codes])]).astype(np.int64),
        code=np.concatenate(codes).astype(np.int32),
        left=rng.random(sum(len(c) for c in codes)) < 0.5,
        other_left=rng.random(len(chosen)) < 0.5,
    )


def random_keep(rng, forest, p_cut=0.3):
    """Return a random valid mask; for a mean at least one tree stays."""
    keep = np.ones(forest.n_nodes, bool)
    for v in range(forest.n_nodes):
        if forest.is_split[v] and rng.random() < p_cut:
            keep[v + 1 : forest.end[v]] = False
    if forest.symmetric:  # only whole levels can go
        deepest = rng.integers(0, forest.max_depth + 1, forest.n_trees)
        keep = forest.depth <= np.repeat(deepest, np.diff(forest.tree_start))
    standing = rng.random(forest.n_trees) > p_cut / 2
    if forest.aggregation != "sum":
        standing[int(rng.integers(forest.n_trees))] = True
    for tree in np.flatnonzero(~standing):
        keep[forest.tree_start[tree] : forest.tree_start[tree + 1]] = False
    return keep


def raised_keep(rng, forest, p_raise=0.3):
    """Return a random valid mask in which some nodes take their parents' place."""
    keep = random_keep(rng, forest)
    if forest.symmetric:
        return keep
    for v in np.flatnonzero(keep & forest.is_split):
        if keep[v] and keep[v + 1] and rng.random() < p_raise:  # both sides are there: one of them goes, and v itself
            keep[v] = False
            gone = (v + 1, forest.right[v]) if rng.random() < 0.5 else (forest.right[v], forest.end[v])
            keep[gone[0] : gone[1]] = False
    return keep


def random_rows(rng, n_rows, n_features, special=True):
    """Return rows with values that equal thresholds, NaN and ±inf."""
    X = rng.normal(scale=2, size=(n_rows, n_features))
    if special:
        odd = rng.choice([np.nan, np.inf, -np.inf, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0], size=X.shape)
        X = np.where(rng.random(X.shape) < 0.6, odd, X)
    return X


@st.composite
def forests(draw, links=tuple(LINK_OUTPUTS), max_trees=3, max_splits=6):
    """Draw a Forest of any of the links."""
    link = draw(st.sampled_from(links))
    n_classes, n_outputs = draw(st.sampled_from(LINK_OUTPUTS[link]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random_forest(
        rng,
        n_trees=draw(st.integers(1, max_trees)),
        max_splits=draw(st.integers(0, max_splits)),
        link=link,
        n_classes=n_classes,
        n_outputs=n_outputs,
        categorical=draw(st.booleans()),
        comparison=draw(st.sampled_from(["<=", "<"])),
        input_dtype=draw(st.sampled_from(["float32", "float64"])),
    )


generators = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def damaged(rng, data):
    """Return bytes with a few bits turned, sometimes cut off before."""
    data = bytearray(data)
    if rng.random() < 0.3:
        del data[int(rng.integers(len(data))) :]
    for _ in range(int(rng.integers(1, 6))):
        if data:
            data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    return bytes(data)


def step(forest, v, x):
    """Return the child of split v to which row x goes, read off the definition."""
    cats = forest.categories
    value = np.dtype(forest.input_dtype).type(x[forest.feature[v]])
    if np.isnan(value):
        left = forest.default_left[v]
    elif len(cats.row) and cats.row[v] != -1:
        row = cats.row[v]
        listed = slice(cats.start[row], cats.start[row + 1])
        side = dict(zip(cats.code[listed].tolist(), cats.left[listed].tolist(), strict=True))
        left = side.get(float(np.trunc(value)), cats.other_left[row])
    else:
        left = value < forest.threshold[v] if forest.comparison == "<" else value <= forest.threshold[v]
    return v + 1 if left else int(forest.right[v])


def walk(forest, tree, x):
    """Return the node of `tree` in which row x ends."""
    v = int(forest.tree_start[tree])
    while forest.right[v] != -1:
        v = step(forest, v, x)
    return v


def slow_scores(forest, X):
    """Return the sums of a forest, row by row."""
    out = []
    for x in X:
        total = forest.base.copy()
        for tree in range(forest.n_trees):
            value = forest.value[walk(forest, tree, x)]
            output = forest.tree_output[tree]
            if output >= 0:
                total[output] += forest.tree_weight[tree] * value[0]
            else:
                total += forest.tree_weight[tree] * value
        out.append(total / forest.divisor)
    return np.array(out).reshape(len(X), forest.n_outputs)


def random_target(rng, forest, n_rows):
    """Return an encoded target that fits the forest."""
    if forest.n_classes:
        return np.column_stack([rng.integers(0, k, n_rows) for k in forest.n_classes])
    return rng.normal(size=(n_rows, forest.n_outputs))


def everything(forest):
    return Decision(np.ones(forest.n_nodes, bool))


def all_prunings(forest, tree):
    """Yield the set of nodes of every pruning of one tree that keeps its root."""

    def prunings(v):
        yield {v}
        if forest.right[v] != -1:
            for a in prunings(v + 1):
                for b in prunings(int(forest.right[v])):
                    yield {v} | a | b

    yield from prunings(int(forest.tree_start[tree]))


def chain(depth, side="left", n_classes=2):
    """Return a tree that is one long way down by the only feature: row x leaves it at the whole part of its number."""
    n = 2 * depth + 1
    right = np.full(n, -1, np.int32)
    if side == "left":  # all splits, the last leaf, then the leaves on the other side from the bottom up
        right[:depth] = n - 1 - np.arange(depth)
    else:
        right[: n - 1 : 2] = np.arange(2, n, 2)
    split = right != -1
    threshold = np.zeros(n)
    threshold[split] = np.arange(depth)[::-1] if side == "left" else np.arange(depth)
    return _plain(np.array([0, n]), right, np.where(split, 0, -1), threshold, 1, n_classes)


def stumps(n_trees, n_features=5, n_classes=2):
    """Return trees of one split each."""
    right = np.full(3 * n_trees, -1, np.int32)
    right[::3] = np.arange(2, 3 * n_trees, 3)
    rng = np.random.default_rng(0)
    feature = np.where(right == -1, -1, rng.integers(0, n_features, len(right)))
    return _plain(np.arange(0, len(right) + 1, 3), right, feature, rng.normal(size=len(right)), n_features, n_classes)


def _plain(start, right, feature, threshold, n_features, n_classes):
    """Return a mean of trees with random values: shares of so many classes, or numbers for none."""
    rng = np.random.default_rng(1)
    value = rng.dirichlet(np.ones(n_classes), len(right)) if n_classes else rng.normal(size=(len(right), 1))
    n_trees = len(start) - 1
    forest = Forest(
        tree_start=start.astype(np.int64),
        right=right,
        feature=feature.astype(np.int32),
        threshold=threshold,
        default_left=np.zeros(len(right), bool),
        value=value,
        weight=np.ones(len(right)),
        tree_weight=np.ones(n_trees),
        tree_output=np.full(n_trees, -1, np.int32),
        base=np.zeros(value.shape[1]),
        link="probability" if n_classes else "identity",
        n_features=n_features,
        n_classes=(n_classes,) if n_classes else (),
        aggregation="mean",
        divisor=float(n_trees),
    )
    check_forest(forest)
    return forest
