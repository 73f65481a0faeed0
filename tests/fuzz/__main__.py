"""Fuzz one reader for some seconds: python -m tests.fuzz FORMAT --seconds N."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.fuzz.corpus import corpus


def main() -> None:
    """Start libFuzzer on one target, with valid files as its corpus; it ends the process."""
    try:
        import atheris
    except ImportError:
        sys.exit("Fuzzing needs atheris, which is not installed. Run: pip install atheris")
    with atheris.instrument_imports(include=["secateur"]):
        from tests.fuzz.targets import TARGETS
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("format", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--found", type=Path, default=Path("fuzz-found"), help="folder for inputs that fail")
    arguments = parser.parse_args()
    arguments.found.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for number, content in enumerate(corpus(arguments.format)):
            Path(folder, str(number)).write_bytes(content)
        options = [f"-max_total_time={arguments.seconds}", f"-artifact_prefix={arguments.found}/", "-rss_limit_mb=2048"]
        atheris.Setup([sys.argv[0], *options, folder], TARGETS[arguments.format])
        atheris.Fuzz()


if __name__ == "__main__":
    main()
