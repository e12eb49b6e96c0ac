"""What the declarations in deployments/ name is there."""

import configparser
import importlib
import re
from pathlib import Path

import yaml

from tasks.settings import PrefectSettings, Settings

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "deployments"


def read_yaml(name):
    return yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))


def constraint(package):
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    return re.search(rf"^{package}==(\S+)", text, re.MULTILINE)[1]


def test_prefect_yaml_pulls_nothing_and_names_the_pinned_version():
    declared = read_yaml("prefect.yaml")
    assert declared["pull"] == []
    assert declared["prefect-version"] == constraint("prefect")


def test_entrypoints_are_dotted_and_name_flows():
    for deployment in read_yaml("prefect.yaml")["deployments"]:
        module, _, name = deployment["entrypoint"].rpartition(".")
        flow = getattr(importlib.import_module(module), name)
        assert flow.name == "collect"
        assert set(deployment["parameters"]) <= set(flow.parameters.properties)


def test_prefect_yaml_says_what_newsbeat_deploy_does():
    from flows.deploy import ENTRYPOINT
    from tasks.orchestrator import TAG

    (deployment,) = read_yaml("prefect.yaml")["deployments"]
    assert deployment["entrypoint"] == ENTRYPOINT
    assert deployment["tags"] == [TAG]
    assert deployment["work_pool"]["name"] == PrefectSettings().work_pool
    assert deployment["schedules"] == []


def test_the_service_runs_a_command_that_exists_and_stops_it_softly():
    from flows.cli import main

    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str
    unit.read(FOLDER / "newsbeat.service", encoding="utf-8")
    program, command = unit["Service"]["ExecStart"].split()
    assert Path(program).name == "newsbeat"
    assert command in main.commands
    assert unit["Service"]["KillMode"] == "mixed"


def test_compose_sets_variables_that_exist():
    services = read_yaml("compose.yaml")["services"]
    fields = Settings.__dataclass_fields__
    for variable in services["newsbeat"]["environment"]:
        section, _, key = variable.removeprefix("NEWSBEAT_").lower().partition("_")
        assert hasattr(fields[section].default_factory(), key), variable


def test_compose_waits_for_services_that_exist_and_say_when_they_are_ready():
    services = read_yaml("compose.yaml")["services"]
    for service in services.values():
        for name in service.get("depends_on", {}):
            assert "healthcheck" in services[name]


def test_every_secret_of_the_compose_file_is_in_the_example():
    text = (FOLDER / "compose.yaml").read_text(encoding="utf-8")
    example = (FOLDER / "example.env").read_text(encoding="utf-8")
    assert set(re.findall(r"\$\{(\w+)", text)) == set(
        re.findall(r"^(\w+)=$", example, re.MULTILINE)
    )


def test_the_image_holds_what_an_installation_needs():
    kept = re.findall(
        r"^!(\S+)", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert all((ROOT / name).exists() for name in kept)
    assert {"flows", "tasks", "models", "data", "pyproject.toml", "constraints.txt"} <= set(kept)


def test_constraints_are_exact_and_name_no_place():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9._\[\]-]+==[\w.!+]+( ; .+)?", pin) for pin in pins)
    assert {"pip", "hatchling", "prefect", "duckdb", "ruff"} <= {p.partition("==")[0] for p in pins}
