"""What the shell offers when TAB is pressed."""

import subprocess
import sys

import pytest
from tests.cli.shell import PROGRAM, environment

from secateur.cli.completion import VALIDATIONS, names_in
from secateur.costs import COSTS
from secateur.losses import LOSSES
from secateur.solvers import SOLVERS


def offered(shell, line, **more):
    """Return the completions that a shell gets when TAB is pressed at the end of the line."""
    words = line.split(" ")
    variables = environment(
        **{
            "_SECATEUR_COMPLETE": f"complete_{shell}",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
            "_TYPER_COMPLETE_ARGS": line,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            **more,
        }
    )
    return subprocess.run(PROGRAM, capture_output=True, text=True, env=variables, timeout=60).stdout.strip()


@pytest.mark.parametrize(("folder", "table"), [("solvers", SOLVERS), ("losses", LOSSES), ("costs", COSTS)])
def test_names_are_those_of_the_tables(folder, table):
    assert sorted(names_in(folder)) == sorted(table)


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("secateur pr", ["prune"]),
        ("secateur prune m.skops rows.csv --solver min", ["min_cut", "minimum_error"]),
        ("secateur path m.skops rows.csv --loss log", ["log_loss"]),
        ("secateur path m.skops rows.csv --validation ", list(VALIDATIONS)),
        ("secateur path m.skops rows.csv --validation rows", []),  # the shell then offers files
        ("secateur select p.npz --max-co", ["--max-cost"]),
    ],
)
def test_bash_is_offered_names(line, names):
    assert offered("bash", line).splitlines() == names


def test_bash_is_offered_the_columns_of_the_rows(tmp_path):
    (tmp_path / "rows.csv").write_text("size,sort,age\n1,2,3\n")
    assert offered("bash", f"secateur prune m.skops {tmp_path / 'rows.csv'} --target s").splitlines() == [
        "size",
        "sort",
    ]
    assert offered("bash", f"secateur prune m.skops {tmp_path / 'gone.csv'} --target s") == ""


def test_zsh_and_fish_are_offered_names():
    line = "secateur prune m.skops rows.csv --cost "
    assert offered("zsh", line) == "_arguments '*: :((" + "\n".join(f'"{name}"' for name in names_in("costs")) + "))'"
    assert offered("zsh", "secateur prune m.skops rows.csv --validation rows") == "_files"
    assert offered("fish", line).splitlines() == list(names_in("costs"))


def test_a_real_bash_completes(tmp_path):
    program = tmp_path / "secateur"
    program.write_text(f"#!{sys.executable}\nfrom secateur.cli import main\nmain()\n")
    program.chmod(0o755)
    variables = environment(_SECATEUR_COMPLETE="source_bash")
    completion = subprocess.run([program], capture_output=True, text=True, env=variables)
    (tmp_path / "completion.sh").write_text(completion.stdout)
    script = """source completion.sh
    COMP_WORDS=(secateur prune m.skops rows.csv --solver max); COMP_CWORD=5
    _secateur_completion ./secateur; echo "${COMPREPLY[@]}"; complete -p secateur"""
    done = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, cwd=tmp_path, env=environment()
    )
    assert done.stdout.splitlines() == ["max_heap", "complete -o default -F _secateur_completion secateur"]


def test_completing_imports_nothing_heavy():
    program = (
        "import sys\nfrom secateur.cli import completion\n"
        "completion.solvers(''), completion.losses(''), completion.costs('')\n"
        "print([m for m in ('numpy', 'sklearn', 'numba', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"
