"""Parse and compose LightGBM's text format, so that only checked text reaches the native library.

The native library does not validate its files: a child index out of range or a wrong length crashes the process. So
a file is parsed into known, counted parts here, and LightGBM only loads text composed from these parts. `trees` decodes
what the parts mean: decision_type bits, children stored as ~leaf, categorical bitsets.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from secateur.errors import DamagedFileError, UnsupportedFileError, UnsupportedModelError

NUMBER_OF = {
    "split": (
        "split_feature",
        "split_gain",
        "threshold",
        "decision_type",
        "left_child",
        "right_child",
        "internal_value",
        "internal_weight",
        "internal_count",
    ),
    "leaf": ("leaf_value", "leaf_weight", "leaf_count"),
}
"""The lines of a tree with one number per split, and those with one per leaf."""

_HEADER = (
    "version",
    "num_class",
    "num_tree_per_iteration",
    "label_index",
    "max_feature_idx",
    "objective",
    "average_output",
    "feature_names",
    "monotone_constraints",
    "feature_infos",
    "tree_sizes",
)
_NEEDED = ("version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx", "feature_names")
_TREE = {"num_leaves", "num_cat", "cat_boundaries", "cat_threshold", "is_linear", "shrinkage"}.union(
    *NUMBER_OF.values()
)
_VERSIONS = ("v3", "v4")
_PARAMETER = re.compile(r"\[(\w+): (.*)\]")
_INTEGER = re.compile(r"-?[0-9]{1,9}")


@dataclass(frozen=True, eq=False)
class ModelText:
    """Hold the parts of a model file.

    Attributes
    ----------
    header : dict
        The lines before the trees, without `tree_sizes`.
    trees : sequence of dict
        The lines of each tree.
    parameters : dict
        The training parameters.
    pandas_categorical : str
        The categories of the training table's columns, as JSON; empty if the file has none.
    """

    header: dict[str, str]
    trees: Sequence[dict[str, str]]
    parameters: dict[str, str]
    pandas_categorical: str

    @property
    def per_iteration(self) -> int:
        """Number of trees per iteration; tree i contributes to output i modulo this number."""
        return int(self.header["num_tree_per_iteration"])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.header["max_feature_idx"]) + 1

    @property
    def feature_names(self) -> list[str]:
        """The column names."""
        return self.header["feature_names"].split(" ")


def damaged(found: str) -> DamagedFileError:
    """Return the error for text that LightGBM would not write."""
    return DamagedFileError(
        f"{found}. secateur needs a complete model as LightGBM's save_model writes it, but this one is damaged or was "
        "edited. Save the model again."
    )


def parse(text: str) -> ModelText:
    """Return the parts of a model, with all checks that need no number arrays.

    Raises
    ------
    DamagedFileError
        If the text is not a complete LightGBM model.
    UnsupportedFileError
        If the version of the format, or a line, is unknown.
    UnsupportedModelError
        If the model has no trees, or linear models in its leaves.
    """
    body, marker, rest = text.replace("\r\n", "\n").partition("\nend of trees\n")
    if not marker:
        raise damaged("The text has no line 'end of trees'")
    first, *blocks = body.split("\nTree=")
    header = _parse_header(first.split("\n"))
    sizes = header.pop("tree_sizes", None)
    if sizes is not None and len(sizes.split()) != len(blocks):
        raise damaged(f"tree_sizes announces {len(sizes.split())} trees, but there are {len(blocks)}")
    trees = [_parse_tree(number, block) for number, block in enumerate(blocks)]
    per_iteration = int(header["num_tree_per_iteration"])
    if not trees:
        raise UnsupportedModelError(
            "The model has no trees, so there is nothing to prune. Train it for at least one iteration."
        )
    if len(trees) % per_iteration:
        raise damaged(f"There are {len(trees)} trees, not a multiple of the {per_iteration} trees per iteration")
    return ModelText(header, trees, *_parse_rest(rest))


def compose(model: ModelText) -> str:
    """Return the text of a model."""
    blocks = [
        f"Tree={number}\n" + "".join([f"{key}={value}\n" for key, value in tree.items()]) + "\n\n"
        for number, tree in enumerate(model.trees)
    ]
    header = {**model.header, "tree_sizes": " ".join([str(len(block)) for block in blocks])}
    lines = ["tree", *[key if key == "average_output" else f"{key}={header[key]}" for key in _HEADER if key in header]]
    parts = ["\n".join(lines), "\n\n", *blocks, "end of trees\n"]
    if model.parameters:
        listed = "".join([f"[{name}: {value}]\n" for name, value in model.parameters.items()])
        parts.append(f"\nparameters:\n{listed}\nend of parameters\n")
    if model.pandas_categorical:
        parts.append(f"\npandas_categorical:{model.pandas_categorical}\n")
    return "".join(parts)


def _parse_header(lines: list[str]) -> dict[str, str]:
    if lines[0] != "tree":
        raise damaged(f"The first line is {lines[0][:40]!r}, not 'tree'")
    header = _as_dict(lines[1:], _HEADER, "the header")
    missing = [key for key in _NEEDED if key not in header]
    if missing:
        raise damaged(f"The header has no {', '.join(missing)}")
    if header["version"] not in _VERSIONS:
        raise UnsupportedFileError(
            f"The file has format version {header['version'][:40]!r}, but secateur reads {' and '.join(_VERSIONS)}. "
            "Load the model with LightGBM 3.3 to 4.x and save it again."
        )
    for key in ("num_class", "num_tree_per_iteration", "label_index", "max_feature_idx"):
        if not _INTEGER.fullmatch(header[key]):
            raise damaged(f"{key} is {header[key][:40]!r}, not an integer")
    if int(header["num_tree_per_iteration"]) < 1 or int(header["num_class"]) < 1:
        raise damaged("num_tree_per_iteration or num_class is less than 1")
    for key in ("feature_names", "feature_infos", "monotone_constraints"):
        if key in header and len(header[key].split(" ")) != int(header["max_feature_idx"]) + 1:
            raise damaged(f"{key} does not have one entry for each of {int(header['max_feature_idx']) + 1} features")
    # The number of features is that of the names by now, so that the line is not longer than the file.
    header.setdefault("feature_infos", " ".join(["none"] * (int(header["max_feature_idx"]) + 1)))
    if not re.fullmatch(r"(-1|0|1)( (-1|0|1))*", header.get("monotone_constraints", "0")):
        raise damaged("monotone_constraints contains an entry other than -1, 0 and 1")
    return header


def _parse_tree(number: int, block: str) -> dict[str, str]:
    name, *lines = block.split("\n")
    if name != str(number):
        raise damaged(f"Tree {number} has the number {name[:40]!r}: trees are missing or in another order")
    tree = _as_dict(lines, _TREE, f"tree {number}", linear=True)
    if tree.get("is_linear", "0") != "0":
        raise UnsupportedModelError(
            "The model was trained with linear_tree=True, so its leaves contain linear models. secateur needs constant "
            "leaf values. Train the model with linear_tree=False."
        )
    missing = [key for key in ("num_leaves", "num_cat", "leaf_value") if key not in tree]
    if missing:
        raise damaged(f"Tree {number} has no {', '.join(missing)}")
    for key in ("num_leaves", "num_cat"):
        if not _INTEGER.fullmatch(tree[key]) or int(tree[key]) < 0:
            raise damaged(f"{key} of tree {number} is {tree[key][:40]!r}, not a count")
    if int(tree["num_leaves"]) < 1:
        raise damaged(f"Tree {number} has no leaves")
    return tree


def _as_dict(lines: Iterable[str], known: Iterable[str], where: str, *, linear: bool = False) -> dict[str, str]:
    """Return lines `key=value` as a dict; raise an error for unknown or repeated keys."""
    found: dict[str, str] = {}
    unknown = None
    for line in filter(None, lines):
        key, equals, value = line.partition("=")
        if key in found or bool(equals) == (key == "average_output"):
            raise damaged(f"The line {line[:40]!r} in {where} is repeated or has no value")
        found[key] = value
        if key not in known:
            unknown = unknown or key
    if unknown and not (linear and found.get("is_linear", "0") != "0"):
        raise UnsupportedFileError(
            f"The line {unknown[:40]!r} in {where} is unknown. secateur reads files of LightGBM 3.3 to 4.7; this one "
            "is damaged or was written by a newer version. Save the model with one of these versions."
        )
    return found


def _parse_rest(text: str) -> tuple[dict[str, str], str]:
    """Return the parameters and the pandas categories that follow the trees."""
    parameters: dict[str, str] = {}
    categories, section = "", ""
    for line in filter(None, text.split("\n")):
        if line == "end of parameters" and section == "parameters:":
            section = ""
        elif section == "parameters:":
            match = _PARAMETER.fullmatch(line)
            if not match or match[1] in parameters:
                raise damaged(f"The line {line[:40]!r} among the parameters is not a parameter, or repeats one")
            parameters[match[1]] = match[2]
        elif line in ("parameters:", "feature_importances:", "feature importances:"):
            section = line
        elif line.startswith("pandas_categorical:") and not categories:
            categories, section = _check_categories(line.partition(":")[2]), ""
        elif not section:
            raise damaged(f"The line {line[:40]!r} after the trees is unknown")
    if section == "parameters:":
        raise damaged("The text ends before the end of the parameters")
    return parameters, categories


def _check_categories(text: str) -> str:
    try:
        lists = json.loads(text)
    except ValueError as error:
        raise damaged(f"pandas_categorical is not JSON ({error})") from error
    if lists is not None and not (isinstance(lists, list) and all(isinstance(entry, list) for entry in lists)):
        raise damaged("pandas_categorical is not a list of lists")
    return text
