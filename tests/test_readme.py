"""Every command in the README runs, and every output is the one it shows."""

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.S)


def test_the_example_prints_what_the_readme_shows():
    (code,), (output,) = blocks("python"), blocks("text")
    assert len([line for line in code.splitlines() if line and not line.startswith(("import", "from"))]) <= 10
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue() == output


def test_the_make_commands_are_in_the_makefile():
    makefile = (Path(__file__).parents[1] / "Makefile").read_text()
    for command in re.findall(r"^make (\w+)", README, flags=re.M):
        assert re.search(rf"^{command}:", makefile, flags=re.M), command


def test_the_shell_commands_run_in_order(tmp_path, monkeypatch):
    pytest.importorskip("skops")
    import skops.io
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import RandomForestRegressor
    from typer.testing import CliRunner

    from secateur.cli import app

    monkeypatch.chdir(tmp_path)
    X, y = load_diabetes(return_X_y=True)
    skops.io.dump(RandomForestRegressor(20, random_state=0).fit(X[::2], y[::2]), "model.skops")
    rows = [",".join([*(f"x{i}" for i in range(X.shape[1])), "y"])]
    rows += [",".join(map(str, [*x, target])) for x, target in zip(X[1::2], y[1::2], strict=True)]
    Path("rows.csv").write_text("\n".join(rows))
    commands = re.findall(r"^secateur (.*)$", README, flags=re.M)
    assert len(commands) >= 4
    for command in commands:
        out = re.search(r"--out (\S+)", command)
        if out:
            Path(out.group(1)).unlink(missing_ok=True)
        result = CliRunner().invoke(app, shlex.split(command))
        assert result.exit_code == 0, result.output
        if out:
            assert Path(out.group(1)).exists()
