"""Every platform and Python that memlog is for can install its dependencies, and needs no compiler."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.places import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def manylinux(machine):
    """What a Linux with glibc 2.28 (2018) or newer takes."""
    return (f"manylinux2014_{machine}", *(f"manylinux_2_{minor}_{machine}" for minor in range(17, 29)))


def marks(sys_platform, system, machine, os_name="posix"):
    return {
        "sys_platform": sys_platform,
        "platform_system": system,
        "platform_machine": machine,
        "os_name": os_name,
    }


PLATFORMS = {
    "Linux x86-64": (manylinux("x86_64"), marks("linux", "Linux", "x86_64")),
    "Linux aarch64": (manylinux("aarch64"), marks("linux", "Linux", "aarch64")),
    "macOS arm64": (("macosx_14_0_arm64",), marks("darwin", "Darwin", "arm64")),
    "Windows x86-64": (("win_amd64",), marks("win32", "Windows", "AMD64", "nt")),
}


def applying(requirements: Iterable[str], target, extras=("",)) -> list[Requirement]:
    """Those of `requirements` that hold on the platform and Python `target`, without their markers.

    pip would ask about the machine that it runs on.
    """
    platform, python = target
    here = PLATFORMS[platform][1] | {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }
    parsed = [Requirement(text) for text in requirements]
    kept = [
        each
        for each in parsed
        if each.marker is None or any(each.marker.evaluate(here | {"extra": extra}) for extra in extras)
    ]
    for each in kept:
        each.marker = None
    return kept


def pip(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def resolved(requirements: list[Requirement], target) -> dict[str, dict]:
    """What pip would install on `target`: its report on each distribution, by name."""
    platform, python = target
    chosen = [option for tag in PLATFORMS[platform][0] for option in ("--platform", tag)]
    done = pip(
        *("install", "--dry-run", "--quiet", "--ignore-installed", "--only-binary", ":all:", "--report", "-"),
        *("--target", "nowhere", "--implementation", "cp", "--python-version", python, *chosen),
        *(str(each) for each in requirements),
    )
    assert done.returncode == 0, f"{platform}, Python {python}:\n{done.stderr}"
    installs = json.loads(done.stdout)["install"]
    return {canonicalize_name(each["metadata"]["name"]): each for each in installs}


def wheels(target) -> dict[str, str]:
    """The wheels of all that memlog needs on `target`, by name.

    What pip left out, since a dependency asks for it on that platform and not on this one, is resolved with
    the rest in another round.
    """
    wanted = applying(PROJECT["dependencies"], target)
    while True:
        found = resolved(wanted, target)
        missing = [
            needed
            for each in found.values()
            for needed in applying(
                each["metadata"].get("requires_dist", ()), target, ("", *each.get("requested_extras", ()))
            )
            if canonicalize_name(needed.name) not in found
        ]
        if not missing:
            return {name: each["download_info"]["url"] for name, each in found.items()}
        wanted += missing


@pytest.fixture(scope="module")
def all_wheels():
    """For each platform and Python the wheels, or what pip said."""
    if pip("index", "versions", "click", "--retries", "1").returncode != 0:
        assert not os.environ.get("CI"), "no package index is reachable"
        pytest.skip("no package index is reachable")
    targets = [(platform, python) for platform in PLATFORMS for python in PYTHONS]
    with ThreadPoolExecutor(4) as pool:
        return {target: pool.submit(wheels, target) for target in targets}


@pytest.mark.index
def test_all_dependencies_have_wheels(all_wheels):
    for target, resolving in all_wheels.items():
        found = resolving.result()
        assert [url for url in found.values() if not url.endswith(".whl")] == [], target
        asked = {canonicalize_name(each.name) for each in applying(PROJECT["dependencies"], target)}
        assert asked <= set(found), target
        assert len({"pysqlite3", "sqlean-py"} & set(found)) == 1, (target, "one SQLite loads extensions")


def test_the_pythons_are_those_that_pyproject_names():
    named = {text.rpartition(" ")[2] for text in PROJECT["classifiers"] if "Python :: 3." in text}
    assert named == set(PYTHONS)
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
