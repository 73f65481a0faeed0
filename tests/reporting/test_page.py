"""The page: one file with the dict inside, nothing to load, and names that stay names."""

import json
from html.parser import HTMLParser

import pytest
from sklearn.tree import DecisionTreeClassifier

import secateur as sc
from secateur._util.text import printable
from secateur.reporting import describe
from secateur.reporting.page import write_page


class Seen(HTMLParser):
    """What a browser would see: elements, and the text of each script."""

    def __init__(self):
        super().__init__()
        self.elements, self.scripts, self.inside = [], [], False

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1] += data


def seen(page):
    parser = Seen()
    parser.feed(page)
    return parser


def test_the_dict_is_in_the_page(single, tmp_path):
    file = sc.report(single.path, tmp_path / "report.html")
    facts, _ = seen(file.read_text()).scripts
    assert json.loads(facts) == describe(single.path)


def test_no_resource_is_loaded(single):
    page = write_page(describe(single.path))
    for tag, attributes in seen(page).elements:
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            target = attributes.get(name)
            assert target is None or target.startswith(("#", "data:")), (tag, target)
    assert "@import" not in page
    assert "url(" not in page


def test_the_page_without_data_is_small(single):
    facts = describe(single.path)
    assert len(write_page(facts).encode()) - len(json.dumps(facts)) < 100_000


@pytest.mark.parametrize(
    "name",
    [
        "</script><script>alert(1)</script>",
        "<!--<script>",
        "{{script}}{{policy}}",
        "<img src=x onerror=alert(1)>",
        "]]>\u2028'\"&amp;",
    ],
)
def test_names_cannot_become_markup(single, name):
    X, y = single.prune
    X = X.rename(columns={X.columns[k]: f"{name}{k}" for k in range(4)})
    y = y.astype("U60")
    y[y == "setosa"] = name
    path = sc.prune_path(DecisionTreeClassifier(random_state=0).fit(X, y), X, y).evaluate(X, y)
    parser = seen(write_page(describe(path)))
    plain = seen(write_page(describe(single.path)))
    assert [tag for tag, _ in parser.elements] == [tag for tag, _ in plain.elements]
    description = json.loads(parser.scripts[0])
    assert printable(name) in description["classes"]
    assert all(feature.startswith(printable(name)) for feature in description["features"]["names"])


def test_the_file_is_not_overwritten_without_force(single, tmp_path):
    file = tmp_path / "report.html"
    file.write_text("mine")
    with pytest.raises(FileExistsError, match="would be overwritten"):
        sc.report(single.path, file)
    assert file.read_text() == "mine"
    assert sc.report(single.path, file, force=True) == file
    assert file.read_text().startswith("<!doctype html>")


def test_another_suffix_is_refused(single, tmp_path):
    with pytest.raises(ValueError, match=r"Use report\.html"):
        sc.report(single.path, tmp_path / "report.pdf")
