"""Make the pictures of docs/report.md: a report in a desktop and a phone browser, in light and dark mode.

Run by hand, with Chromium installed: python docs/site/screens.py [FOLDER]
"""

import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import secateur as sc

HOME = Path(__file__).parents[1] / "report"
SIZES = {"desktop": (1000, 2080), "phone": (390, 1500)}


def write_report(folder: Path) -> Path:
    """Write a report of a forest with feature costs and return its file."""
    data = load_breast_cancer(as_frame=True)
    X, y = data.data, data.target_names[data.target]
    model = RandomForestClassifier(60, random_state=0).fit(X[::3], y[::3])
    cost = sc.costs.FeatureCost([5.0 if name.startswith("worst") else 1.0 for name in X])
    path = sc.prune_path(model, X[1::3], y[1::3], cost=cost).evaluate(X[2::3], y[2::3])
    alone = sc.prune_path(model, X[1::3], y[1::3], cost=cost, solver="min_cut").evaluate(X[2::3], y[2::3])
    return sc.report(path, folder / "report.html", X[2::3], y[2::3], cost=cost, baselines={"MinCut alone": alone})


def take(browser: Browser, report: Path, file: Path, size: tuple[int, int], scheme: str) -> None:
    """Write a screenshot of a report with few colours."""
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    page = context.new_page()
    page.goto(report.as_uri())
    page.screenshot(path=file)
    context.close()
    Image.open(file).convert("RGB").quantize(192, dither=Image.Dither.NONE).save(file, optimize=True)


def main(folder: Path) -> None:
    """Write all pictures."""
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        report = write_report(Path(scratch))
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, size in SIZES.items():
            for scheme in ("light", "dark"):
                take(browser, report, folder / f"{name}_{scheme}.png", size, scheme)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HOME)
