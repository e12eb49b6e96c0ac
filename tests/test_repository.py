"""What the packaging says agrees with what the code does."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("flows", "tasks", "models", "data")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


OF_EXTRAS = {"distributed"}
"""Comes with an extra: Dask's own package, which prefect-dask stands on."""


def canonical(requirement):
    name = re.match(r"[A-Za-z0-9._-]+", requirement)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def constraints():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return {canonical(line) for line in lines if line and not line.startswith("#")}


def declared():
    return {canonical(requirement) for requirement in PROJECT["project"]["dependencies"]}


def optional():
    """Return what only an extra asks for: imported where settings want it, and nowhere else."""
    extras = PROJECT["project"].get("optional-dependencies", {})
    return {canonical(requirement) for extra in extras.values() for requirement in extra}


def imported(path):
    """Return the top-level modules a file imports outside of ``if TYPE_CHECKING``."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def test_every_dependency_has_an_exact_version():
    development = {canonical(name) for name in PROJECT["dependency-groups"]["dev"]}
    build = {canonical(name) for name in PROJECT["build-system"]["requires"]}
    assert (declared() | development | build) - constraints() == set()


def test_every_library_that_is_imported_is_declared():
    sources = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    modules = set().union(*map(imported, sources)) - set(PACKAGES) - sys.stdlib_module_names
    known = packages_distributions()
    undeclared = {
        module
        for module in modules
        if not (declared() | optional() | OF_EXTRAS)
        & {canonical(name) for name in known.get(module, [module])}
    }
    assert undeclared == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_explain_themselves_and_import_nothing(package):
    for path in (ROOT / package).rglob("__init__.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), path
        assert not any(isinstance(node, ast.Import | ast.ImportFrom) for node in tree.body), path


def test_no_module_takes_the_name_of_one_of_pythons_own():
    modules = [path for package in PACKAGES[:3] for path in (ROOT / package).rglob("*.py")]
    taken = {path.stem for path in modules if path.stem in sys.stdlib_module_names}
    assert taken == set()
    assert not set(PACKAGES) & sys.stdlib_module_names


def test_tests_are_no_package():
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_nothing_that_is_kept_names_a_package_registry_or_a_place_of_one_machine():
    words = re.compile(r"pypi\.|pythonhosted|index-url|find-links|/root/|/home/\w+/", re.IGNORECASE)
    kept = [ROOT / "constraints.txt", ROOT / "Makefile", ROOT / "pyproject.toml"]
    kept += [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "deployments").iterdir()]
    kept += [path for path in (ROOT / ".ci").iterdir() if path.name != "constraints"]
    assert [path.name for path in kept if words.search(path.read_text(encoding="utf-8"))] == []
