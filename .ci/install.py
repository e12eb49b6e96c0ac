"""Install newsbeat into a virtual environment of its own: ``install.py .venv [--dev]``.

Called by the Makefile, with any Python 3.11 or newer; needs nothing but that. Versions
come from ``constraints.txt``, those of pip and of the build tools too.
"""

# ruff: noqa: INP001, S603
# A script beside the Makefile, not a package; what it runs is pip, with fixed words.

import argparse
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD_TOOLS = ("pip", "hatchling", "editables")


def main() -> int:
    """Make the environment, fill it, and return an exit code."""
    parser = argparse.ArgumentParser(description="Install newsbeat into a virtual environment.")
    parser.add_argument("folder", type=Path, help="folder of the environment, such as .venv")
    parser.add_argument("--dev", action="store_true", help="with what tests and checks need")
    wanted = parser.parse_args()
    if sys.version_info < (3, 11):  # noqa: UP036 - who asks may have any
        print(f"newsbeat needs Python 3.11 or newer, this is {sys.version.split()[0]}")
        return 1
    python = wanted.folder / "bin" / "python"
    if not works(python):
        print(f"making {wanted.folder} with Python {sys.version.split()[0]}", flush=True)
        venv.EnvBuilder(with_pip=True, clear=True).create(wanted.folder)
    elif not has_pip(python):
        subprocess.run([python, "-m", "ensurepip", "--upgrade"], check=True, capture_output=True)
    return pip_install(python, "the build tools", *BUILD_TOOLS) or pip_install(
        python,
        "newsbeat with its development tools" if wanted.dev else "newsbeat",
        *("--no-build-isolation", "--editable", "."),
        *(("--group", "dev") if wanted.dev else ()),
    )


def works(python: Path) -> bool:
    """Tell whether an environment is there, and its Python still runs and is new enough."""
    check = "import sys; sys.exit(sys.version_info < (3, 11))"
    return python.exists() and subprocess.run([python, "-c", check], check=False).returncode == 0


def has_pip(python: Path) -> bool:
    """Tell whether pip is in the environment; other tools make them without."""
    run = subprocess.run([python, "-c", "import pip"], check=False, capture_output=True)
    return run.returncode == 0


def pip_install(python: Path, what: str, *arguments: str) -> int:
    """Install with pip, show one moving line, and pip's own words only where it fails."""
    command = [python, "-m", "pip", "install", "--constraint", "constraints.txt", *arguments]
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as pip:
        said = follow(pip, what)
    if pip.returncode:
        print("".join(said[-25:]), file=sys.stderr)
        print(f"{what} could not be installed; the lines above say why", file=sys.stderr)
    return pip.returncode


def follow(pip: "subprocess.Popen[str]", what: str) -> list[str]:
    """Return what pip said, having shown how far it is."""
    is_terminal = sys.stdout.isatty()
    said: list[str] = []
    n_packages = 0
    print(f"installing {what}", end="" if is_terminal else "\n", flush=True)
    for line in pip.stdout or ():
        said.append(line)
        if line.startswith("Collecting"):
            n_packages += 1
            if is_terminal:
                print(f"\rinstalling {what}: {n_packages} packages", end="", flush=True)
            elif n_packages % 50 == 0:
                print(f"  {n_packages} packages so far", flush=True)
    print("" if is_terminal else f"  done, {n_packages} packages fetched", flush=True)
    return said


if __name__ == "__main__":
    sys.exit(main())
