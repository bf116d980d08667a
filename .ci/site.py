"""Hooks of mkdocs: the site takes in README.md and CHANGELOG.md, which stand beside docs/."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

_PAGES = {"README.md": "index.md", "CHANGELOG.md": "changelog.md"}


def on_files(files: Files, *, config: MkDocsConfig) -> None:
    """Add the pages from outside docs/, with links as they are inside."""
    for source, target in _PAGES.items():
        text = Path(source).read_text().replace("](docs/", "](").replace("](CHANGELOG.md)", "](changelog.md)")
        files.append(File.generated(config, target, content=text))


def on_page_markdown(markdown: str, **_: object) -> str:
    """Lead links to these pages to where the site has them."""
    return markdown.replace("](../README.md", "](index.md").replace("](../CHANGELOG.md", "](changelog.md")
