"""The site of docs/ builds without a broken link, has every page, and fetches nothing from the network."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.deep
pytest.importorskip("mkdocs", reason="make docs installs it")

ROOT = Path(__file__).parent.parent

_RESOURCE = re.compile(
    r"<(?:script|link|img|iframe|source|object)\b[^>]*?\b(?:src|href|data)=[\"']?([^\"' >]+)"
)
_IN_STYLE = re.compile(r"(?:url\(|@import )[\"']?([^\"')]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build(ROOT / "mkdocs.yml", folder)
    return folder


def build(config: Path, folder: Path) -> None:
    """Raises CalledProcessError where a link is broken or a page is in no list: `--strict`."""
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", config, "-d", folder],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        check=True,
        capture_output=True,
    )


def test_the_site_has_every_page_and_a_search_index(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    folders = {page.with_name("index.html") if page.stem == "README" else page for page in pages}
    assert {*folders, Path("index.html"), Path("changelog.html")} <= {
        path.relative_to(site) for path in site.rglob("*.html")
    }
    assert "append-only" in (site / "search/search_index.json").read_text()


def test_no_page_fetches_anything_from_the_network(site: Path) -> None:
    fetched = [
        (path.name, target)
        for path in site.rglob("*")
        if path.suffix in {".html", ".css"}
        for target in (_RESOURCE if path.suffix == ".html" else _IN_STYLE).findall(path.read_text())
    ]
    assert len(fetched) > 100
    assert [each for each in fetched if re.match(r"(?:\w+:)?//", each[1])] == []
    # The theme's script fetches the library that draws these from a server of others.
    assert [path for path in site.rglob("*.html") if 'class="mermaid"' in path.read_text()] == []
