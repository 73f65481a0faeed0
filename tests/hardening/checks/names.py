"""Features, classes and files may have any name: no name becomes markup, code, or a terminal command.

Models with such names are pruned, plotted, reported, saved and inspected on the command line, and every output is
checked; pickles with other suffixes are never loaded without trust.
"""

import io
import json
import os
import pickle
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier
from tests.hardening.checks import Figures
from tests.hardening.hostile import NAMES, file_name
from tests.hardening.mutating.shapes import RAN, Touch, npy, zip_of
from typer.testing import CliRunner

import secateur as sc
from secateur.cli import app
from secateur.cli.progress import progress_bar
from secateur.files.formats import FORMATS
from secateur.files.models import load_model, save_model
from secateur.reporting import describe
from secateur.reporting.page import write_page

LONG = 2
"""Above 1 all names are tried, else every fourth."""
_NOT_SHOWN = {chr(k) for k in range(0x110000) if not chr(k).isprintable()} - set("\n\u200c\u200d\xa0")
_NOTES = [
    "Each name is used for all features (followed by a number), for a class, and for the files: model, data, prices, "
    "path, report. *outputs*: texts and files that were checked. A terminal must receive only printable characters "
    "and line ends, HTML must have the same elements as with plain names, and JSON, ONNX and saved paths must contain "
    "the names themselves.",
    "A browser opens the same reports in tests/reporting/test_browser.py: no script runs.",
]


def run(scale: int) -> Figures:
    """Check every output that shows a name, for all names or for a few."""
    rows, bad = [], []
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = _Shown("plain", "name", Path(name))
        elements = {what: _elements(text) for what, text in plain.pages()}
        for kind, hostile in list(NAMES.items())[:: 4 if scale == 1 else 1]:
            found = list(_looked_at(_Shown(kind, hostile, Path(name)), elements))
            rows.append({"names": kind, "outputs": len(found), "bad": sum(wrong is not None for _, wrong in found)})
            bad += [f"{kind}: {what}: {wrong}" for what, wrong in found if wrong is not None]
        ended = list(_pickles(Path(name)))
    rows.append({"names": "pickles under other names", "outputs": len(ended), "bad": sum(map(bool, ended))})
    return Figures(rows, bad + [wrong for wrong in ended if wrong], _NOTES)


@dataclass
class _Shown:
    """A model, its rows and its path; features and classes contain one name."""

    kind: str
    name: str
    folder: Path

    def __post_init__(self) -> None:
        rng = np.random.default_rng(0)
        self.features = [f"{self.name}{k}" for k in range(3)]
        self.X = pd.DataFrame(rng.normal(size=(120, 3)), columns=self.features)
        score = self.X.to_numpy() @ [1.0, -1.0, 0.5]
        self.y = np.where(score > 0, self.name, "other")
        self.model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(self.X, self.y)
        self.path = sc.prune_path(self.model, self.X, self.y).evaluate(self.X, self.y)
        self.home = self.folder / self.kind.replace(" ", "-")
        self.home.mkdir(exist_ok=True)

    def file(self, suffix: str) -> Path:
        return self.home / f"{file_name(self.name)}{suffix}"

    def pages(self) -> Iterator[tuple[str, str]]:
        """Yield every HTML output."""
        yield "report", write_page(describe(self.path, self.X, self.y, baselines={self.name: self.path}))
        yield "notebook, path", self.path._repr_html_()
        yield "notebook, point", self.path[-1]._repr_html_()


def _looked_at(shown: _Shown, elements: dict[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Yield each output, and what is wrong with it."""
    for what, text in shown.pages():
        yield what, None if _elements(text) == elements[what] else "other elements than with plain names"
    looks: tuple[Callable[[_Shown], Iterator[tuple[str, str | None]]], ...] = (_pictures, _files, _commands, _mistakes)
    for look in looks:
        try:
            yield from look(shown)
        except Exception as error:  # a name that causes an error
            yield look.__name__.strip("_"), f"{type(error).__name__}: {error}"


def _elements(text: str) -> list[tuple[str, list[str]]]:
    """Return the elements of a page with the names of their attributes, as a browser would see them."""
    seen = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            seen.append((tag, [name for name, _ in attrs]))

    Reader().feed(text)
    return seen


def _pictures(shown: _Shown) -> Iterator[tuple[str, str | None]]:
    """Draw all plots; the legend must show the name, and no text may be parsed as a formula."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.text import Text

    pictures: dict[str, dict[str, Any]] = {
        "tradeoff": {"baselines": {shown.name: shown.path}, "label": shown.name},
        "tree": {"point": 0},
        "features": {"point": 0},
    }
    for kind, options in pictures.items():
        axes = shown.path.plot(kind, **options)
        axes.figure.canvas.draw()
        texts = [text for text in axes.findobj(Text) if text.get_text().strip()]
        named = [text for text in texts if not text.get_text().startswith("$\\mathdefault")]  # not tick labels
        wrong = [text for text in named if text.get_parse_math() and "$" in text.get_text()]
        wrong += [text for text in named if set(text.get_text()) & _NOT_SHOWN]
        missing = kind == "tradeoff" and len(axes.get_legend().get_texts()) < 3
        pyplot.close(axes.figure)
        yield f"picture, {kind}", f"{wrong[0].get_text()[:40]!r}" if wrong else "no legend" if missing else None


def _files(shown: _Shown) -> Iterator[tuple[str, str | None]]:
    """Write all files that contain names; the names read back must be equal."""
    import onnx

    for suffix in (".skops", ".secateur", ".onnx"):
        save_model(shown.model, shown.file(suffix), force=True)
    same = list(load_model(shown.file(".skops")).feature_names_in_) == shown.features
    yield ".skops", None if same else "other names"
    yield ".secateur", None if list(load_model(shown.file(".secateur")).feature_names) == shown.features else "others"
    graph = onnx.load(str(shown.file(".onnx")) if shown.kind == "plain" else _copied(shown.file(".onnx")))
    metadata = {entry.key: entry.value for entry in graph.metadata_props}
    labels = {text.decode() for part in graph.graph.initializer for text in part.string_data}
    yield ".onnx, features", None if json.loads(metadata["feature_names"]) == shown.features else "other names"
    yield ".onnx, classes", None if labels == {shown.name, "other"} else "other labels"
    path = sc.Path.load(shown.path.save(shown.file(".npz"), force=True), shown.model)
    yield "path", None if list(path.forest.feature_names) == shown.features else "other names"
    again = pd.read_csv(_csv(shown.path.to_pandas(), shown.home))
    yield "to_pandas", None if list(again.columns) == list(shown.path.table) else "other columns"


def _copied(file: Path) -> str:
    """Return the name of a copy; onnx cannot open a file whose name is not valid text."""
    copy = file.with_name("copy.onnx")
    copy.write_bytes(file.read_bytes())
    return str(copy)


def _csv(frame: pd.DataFrame, folder: Path) -> Path:
    frame.to_csv(folder / "table.csv", index=False)
    return folder / "table.csv"


def _commands(shown: _Shown) -> Iterator[tuple[str, str | None]]:
    """Run every command on files with such names; the output must be printable text."""
    data, model, path = shown.file(".csv"), shown.file(".skops"), shown.file(".path.npz")
    prices = shown.file(".prices.csv")
    shown.X.assign(target=shown.y).to_csv(data, index=False)
    pd.DataFrame({"feature": shown.features, "cost": [1.0, 2.0, 3.0]}).to_csv(prices, index=False)
    out, page = shown.file(".small.skops"), shown.file(".html")
    lines: dict[str, list[Any]] = {
        "inspect": ["inspect", model, data, "--target", "target", "--costs", prices],
        "prune": ["prune", model, data, "--target", "target", "--max-nodes", 5, "--out", out, "--report", page],
        "path": ["path", model, data, "--target", "target", "--validation", data, "--out", path],
        "select": ["select", path, "--out", out],
        "report": ["report", path, "--out", page, "--data", data, "--target", "target", "--baseline", path],
        "serve-cost": ["serve-cost", model, data, "--target", "target", "--costs", prices],
    }
    for verb, words in lines.items():
        for more in ([], ["--json"]):
            force = ["--force"] if "--out" in words else []
            yield f"{verb} {' '.join(more)}".strip(), _wrong_output([*words, *force, *more], json_wanted=bool(more))


def _mistakes(shown: _Shown) -> Iterator[tuple[str, str | None]]:
    """Cause errors whose messages contain names."""
    data, model = shown.file(".csv"), shown.file(".skops")
    out = ["--out", shown.home / "out.skops"]
    mistakes: dict[str, list[Any]] = {
        "no target": ["prune", model, data, *out],
        "another target": ["prune", model, data, "--target", shown.name.replace("\x00", ""), *out],
        "no such file": ["inspect", shown.home / f"no {file_name(shown.name)}.skops"],
        "no such suffix": ["inspect", shown.home / f"x.{file_name(shown.name)}"],
        "other features": ["inspect", model, shown.home / "table.csv"],
        "no such solver": ["prune", model, data, "--solver", shown.name.replace("\x00", ""), *out],
        "with --debug": ["prune", model, data, *out, "--debug"],
        "no such command": [shown.name.replace("\x00", "")],
        "no such option": ["inspect", "--" + shown.name.replace("\x00", "")],
    }
    for what, words in mistakes.items():
        yield f"message, {what}", _wrong_output(words, fails=True)
    yield "progress", _drawn(f"reading {data.name}")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _drawn(step: str) -> str | None:
    """Return what is wrong with the progress bar of a step."""
    plain = patch.dict(os.environ, NO_COLOR="1", TERM="xterm")
    with plain, redirect_stderr(_Terminal()) as terminal, progress_bar(step):
        pass
    text = re.sub(r"\x1b\[(\?25[lh]|[12][AK])|[\r\n]", "", terminal.getvalue())
    return None if "reading" in text and text.isprintable() else repr(text[:60])


def _wrong_output(words: list[Any], *, json_wanted: bool = False, fails: bool = False) -> str | None:
    """Return what is wrong with what a command prints."""
    result = CliRunner().invoke(app, [str(word) for word in words], prog_name="secateur", env={"COLUMNS": "200"})
    if (result.exit_code not in (1, 2)) if fails else result.exit_code:
        return f"exit code {result.exit_code}: {result.output[-200:]!r}"
    leaked = sorted(set(result.output) & _NOT_SHOWN)
    if leaked:
        return f"the terminal gets {leaked}"
    if json_wanted:
        json.loads(result.stdout)
    return None


def _pickles(folder: Path) -> Iterator[str | None]:
    """Yield the outcomes of opening pickles without trust, under every suffix of a model, path or table."""
    mark = folder / RAN
    attack = pickle.dumps(Touch(mark))
    packed = zip_of([_entry("header.npy", npy(np.array([Touch(mark)], object)))])
    for suffix in (*FORMATS, ".npz", ".csv", ".csv.gz", ".parquet", ""):
        for k, content in enumerate((attack, packed)):
            file = folder / f"pickle{k}{suffix}"
            file.write_bytes(content)
            readers: tuple[Callable[[Path], Any], ...] = (load_model, sc.Path.load, sc.costs.price_file.read_prices)
            for reader in readers:
                yield _opened(lambda reader=reader, file=file: reader(file), mark, f"{reader.__qualname__} {file.name}")
            for verb in ("inspect", "select"):
                line = [verb, str(file), *(["--out", str(folder / "x.skops")] if verb == "select" else [])]
                yield _opened(lambda line=line: CliRunner().invoke(app, line).exit_code, mark, f"{verb} {file.name}")


def _entry(name: str, content: bytes) -> dict[str, Any]:
    from tests.hardening.mutating.shapes import _packed

    return _packed(name, content)


def _opened(act: Callable[[], Any], mark: Path, what: str) -> str | None:
    try:
        code = act()
    except (ValueError, FileNotFoundError):
        code = 1
    except Exception as error:
        return f"{what}: {type(error).__name__}: {error}"
    if mark.exists():
        mark.unlink()
        return f"{what}: its code ran"
    return None if code in (1, 2) else f"{what}: it was read"
