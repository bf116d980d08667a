"""Files about a project set nothing of the user, whatever imports them; what they say of the user arrives."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

RULE = "---\n\n"
OF_PROJECTS = {
    "a part of a program": ("MEMORY.md", "# Memory\n\n## User authentication\n\n- Provider: OAuth\n"),
    "its interface": ("MEMORY.md", "## User interface\n- Theme: dark\n## Users table\n- Key: uuid\n"),
    "in Russian": ("MEMORY.md", "## Пользовательский интерфейс\n- Тема: dark\n"),
    "in Chinese": ("MEMORY.md", "## 用户认证\n- 方式: OAuth\n"),
    "in Finnish": ("MEMORY.md", "## Käyttäjän todennus\n- Tapa: OAuth\n"),
    "a type": ("CLAUDE.md", "# my-app\n## Data model\n### User\n- Id: uuid\n- Email: string\n"),
    "its stack": ("CLAUDE.md", "# CLAUDE.md\n\n## Stack\n- Language: Go\n- Database: SQLite\n"),
    "its conventions": (
        "AGENTS.md",
        "# Guide\n- Build: make\n## Build\nCommand: make test\n## Naming\n- Style: snake\n",
    ),
    "about it": ("CLAUDE.md", "## About this project\n- Name: memlog\n## About the API\n- Version: two\n"),
    "its language": ("USER.md", "# USER.md\n- Language: Go 1.22\n"),
    "its part in USER.md": (
        "USER.md",
        "## User authentication\n- Provider: OAuth\n### Details\n- Tokens: short\n",
    ),
    "its stack in USER.md": ("USER.md", "## Tech stack\n- Framework: Django\n\nDatabase: SQLite\n"),
    "front matter": ("USER.md", '---\nname: Template\nlocation: ""\ntags:\n- user\n---\n# USER.md\n'),
    "front matter with CRLF": ("USER.md", "---\r\nTitle: Notes\r\n# by hand\r\nname: Bot\r\n---\r\n\r\n"),
    "front matter of notes": ("MEMORY.md", "---\nname: Template\n---\n"),
}
OF_THE_USER = {
    "a section": ("MEMORY.md", "# Memory\n\n## User\n\n- City: Turku\n"),
    "a profile": ("MEMORY.md", "## User profile\n- City: Turku\n"),
    "below a project's title": (
        "CLAUDE.md",
        "# my-api\n\n## Stack\n- Language: Go\n\n## About me\n- City: Turku\n",
    ),
    "of an agent": (
        "AGENTS.md",
        "# Repository guidelines\n## Build\n- Tool: make\n## About the user\n- **City:** Turku\n",
    ),
    "Russian": ("MEMORY.md", "## О пользователе\n- City: Turku\n"),
    "Chinese": ("MEMORY.md", "## 用户信息\n- City: Turku\n"),
    "Finnish": ("MEMORY.md", "## Käyttäjän tiedot\n- City: Turku\n"),
    "a rule at the top": ("USER.md", f"{RULE}# User\n\n- City: Turku\n\n---\n\nNotes\n"),
    "prose between rules": ("USER.md", "---\n## User\n- City: Turku\n---\n"),
    "a rule that nothing ends": ("USER.md", f"{RULE}# User\n- City: Turku\n"),
    "behind front matter": ("USER.md", "---\nname: Template\n---\n## About me\n- City: Turku\n"),
    "my own": (
        "MEMORY.md",
        "## Personal information\n- City: Turku\n## User authentication\n- Provider: OAuth\n",
    ),
}
USER_ALONE = {
    "a spoken language": ("- Language: Finnish\n", {"language": "Finnish"}),
    "a part of life": (
        "## Work\n- Employer: Yle\n## Hobbies\n- chess\n",
        {"employer": "Yle", "hobbies": "chess"},
    ),
    "my stack": ("## My preferred stack\n- Editor: vim\n", {"editor": "vim"}),
    "projects": ("# User\n## Current projects\n- memlog: docs\n", {"current_projects": "memlog: docs"}),
}


def written(folder: Path, name: str, text: str) -> Path:
    folder.mkdir()
    (folder / name).write_bytes(text.encode())
    return folder / name


def taken_over(memlog: Run, tmp_path: Path, name: str, text: str) -> list[dict[str, str]]:
    """The user's core memory by each way in."""
    found = []
    for way in ("core", "notes", "workspace"):
        file = written(tmp_path / way, name, text)
        store = ("--store", str(tmp_path / f"{way}-store"))
        assert memlog(*store, "init").code == 0
        if way == "core":
            done = memlog(*store, "core", "import", str(file))
        elif way == "notes":
            done = memlog(*store, "import", "memory-folder", str(file.parent))
        else:
            done = memlog(*store, "workspace", "add", str(file.parent))
        assert done.code in (0, 65), done.err
        found.append(memlog(*store, "core", "get", "--json").json["user"])
    return found


@pytest.mark.parametrize("case", OF_PROJECTS)
def test_what_is_said_of_a_project_is_not_said_of_the_user(memlog: Run, tmp_path: Path, case: str) -> None:
    assert taken_over(memlog, tmp_path, *OF_PROJECTS[case]) == [{}, {}, {}]


@pytest.mark.parametrize("case", OF_THE_USER)
def test_what_is_said_of_the_user_arrives(memlog: Run, tmp_path: Path, case: str) -> None:
    name, text = OF_THE_USER[case]
    city = {"city": "Turku"}
    assert taken_over(memlog, tmp_path, name, text) == [city, city, city if name == "USER.md" else {}]


@pytest.mark.parametrize("case", USER_ALONE)
def test_a_file_about_the_user_needs_no_heading(memlog: Run, tmp_path: Path, case: str) -> None:
    text, right = USER_ALONE[case]
    core, _, workspace = taken_over(memlog, tmp_path, "USER.md", text)
    assert core == workspace == right


def test_a_rule_at_the_top_hides_no_notes(memlog: Run, tmp_path: Path) -> None:
    text = f"{RULE}We order sencha from Uji.\n\n---\n\nThe tea house is closed.\n"
    file = written(tmp_path / "notes", "MEMORY.md", text)
    store = ("--store", str(tmp_path / "store"))
    memlog(*store, "import", "memory-folder", str(file.parent))
    found = {each["content"] for each in memlog(*store, "memory", "list", "--json").json["memories"]}
    assert found == {"We order sencha from Uji.", "The tea house is closed."}
