"""What notes say of a software project is no fact about a person, in any spelling and language."""

import pytest

from memlog.service.memory.core_markdown import is_about_project, is_fact_of_project

OF_A_PROJECT = [
    *(
        "## User authentication",
        "- Language: Go",
        "Framework: Django",
        "**Database**: MySQL",
        "Build tool: make",
    ),
    *("The project uses PostgreSQL.", "This repository is written in Rust", "Tests are run with pytest."),
    *("Проект использует PostgreSQL", "Проект на Go.", "Язык: Go", "Язык программирования: Python, Go"),
    *("项目使用 PostgreSQL", "本项目基于React。", "语言：Go", "数据库：MySQL"),
    *(
        "Projekti käyttää Djangoa",
        "Projekti on kirjoitettu Go-kielellä.",
        "Kieli: Rust",
        "Tietokanta: SQLite",
    ),
    "Das Projekt verwendet Go",
]
OF_A_PERSON = [
    *("Anna prefers Python over Ruby", "Anna's favourite language is Go.", "Language: Go (the board game)"),
    *("Language: English, Finnish", "Kieli: suomi", "Язык: русский", "语言：中文", "Current project: memlog"),
    *("The project manager is Anna", "The app costs 5 euros", "The package has arrived", "项目由安娜负责"),
    "Проект на следующий год готов",
    *("Build: athletic", "Stack: 3 pancakes", "Repo: none", "Architecture: studied it at Aalto"),
    *("The app is built by her sister's company", "The project uses Anna's savings", "# of children: 3"),
    *("The server runs on Fridays in Anna's choir", "Our website was built by Anna's brother"),
    *("Проект работает на голом энтузиазме", "Код написан Андреем за ночь", "Архитектура: любит модерн"),
    *("项目使用了她的照片", "程序用不了", "Projekti käyttää Annan autotallia", "Kehys: tammea"),
    *("Das Projekt nutzt ihre Garage", "The project uses Go-karts"),
]
KEYS = {
    ("framework", "Django"): True,
    ("CI/CD", "GitHub"): True,
    ("stack", "Django 5, PostgreSQL and React"): True,
    ("deployment", "deployed to Mali in 2019"): False,
    ("framework", "Montessori"): False,
    ("database", "database administrator"): False,
    ("packageManager", "npm"): True,
    ("project_language", "Go"): True,
    ("База данных", "SQLite"): True,
    ("ohjelmointikieli", "Go"): True,
    ("LANGUAGE", "Rust and TypeScript 5"): True,
    ("language", "Swedish and Go"): False,
    ("favourite_language", "Go"): False,
    ("city", "Go"): False,
}


@pytest.mark.parametrize("text", OF_A_PROJECT)
def test_a_note_about_a_project_is_known(text: str) -> None:
    assert is_about_project(text)


@pytest.mark.parametrize("text", OF_A_PERSON)
def test_what_a_person_says_of_themselves_is_none(text: str) -> None:
    assert not is_about_project(text)


@pytest.mark.parametrize(("key", "value"), KEYS)
def test_a_key_of_a_project_is_known_in_any_spelling(key: str, value: str) -> None:
    assert is_fact_of_project(key, value) is KEYS[key, value]
