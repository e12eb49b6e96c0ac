"""What the worker does besides polling: every night, and when somebody asks for it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tasks.orchestrator import Orchestrator
from tasks.settings import Settings


@dataclass(frozen=True, slots=True)
class Duty:
    """A flow of ours that is no source's, and its one deployment.

    Attributes
    ----------
    flow, name
        Of the deployment, as Prefect shows them: ``flow/name``.
    entrypoint
        The flow, as the worker finds it.
    description
        What its page says; ``{when}`` stands for when it runs.
    parameter_schema
        What people are asked for when they start it by hand.
    """

    flow: str
    name: str
    entrypoint: str
    description: str
    parameter_schema: dict[str, Any] = field(default_factory=dict)

    @property
    def deployment(self) -> str:
        """Name that finds it."""
        return f"{self.flow}/{self.name}"


MEND_SCHEMA: dict[str, Any] = {
    "title": "Parameters",
    "type": "object",
    "required": ["source"],
    "properties": {
        "source": {"title": "source", "type": "string", "position": 0},
        "action": {
            "title": "action",
            "enum": ["check", "accept", "reextract"],
            "type": "string",
            "default": "check",
            "position": 1,
        },
        "since": {
            "title": "since",
            "description": "For reextract: a moment (ISO, UTC); empty for the first suspect page.",
            "anyOf": [{"type": "string"}, {"type": "null"}],
            "default": None,
            "position": 2,
        },
        "adopt": {
            "title": "adopt",
            "description": "For reextract: take the best other way to the text.",
            "type": "boolean",
            "default": False,
            "position": 3,
        },
    },
}

REFIT = Duty(
    "refit",
    "nightly",
    "flows.refit.refit_all",
    "Fits every source's forecast anew to its last half year, {when}. *Run › Quick run*"
    " does it now. Its last report: artifact `refit`.",
)
REPORT = Duty(
    "report",
    "nightly",
    "flows.report.report_day",
    "Writes the report of the day before, {when}: what mattered, who was first, what was"
    " not covered. *Run › Quick run* does it now. All reports: artifact `report`.",
)
REFERENCES = Duty(
    "refit-references",
    "nightly",
    "flows.refit_references.refit_references",
    "Builds what correct pages of each source look like anew, {when}, from pages that were"
    " found clean. Its last report: artifact `refit-references`.",
)
MEND = Duty(
    "mend",
    "now",
    "flows.mend.mend_source",
    "For a source that changed, {when}: *check* its last pages now, *accept* it as it is, or"
    " *reextract* its articles from their stored pages.",
    MEND_SCHEMA,
)


async def deploy_duties(orchestrator: Orchestrator, settings: Settings) -> list[UUID]:
    """Create or update the deployments of all duties; return their ids."""
    times = (
        (REFIT, settings.refit.at),
        (REPORT, settings.report.at),
        (REFERENCES, settings.drift.refit_at),
        (MEND, ""),
    )
    return [await deploy_duty(orchestrator, duty, at) for duty, at in times]


async def deploy_duty(orchestrator: Orchestrator, duty: Duty, at: str) -> UUID:
    """Create or update the deployment of a duty; return its id.

    Parameters
    ----------
    at
        When it runs, ``HH:MM`` in UTC; empty for never by itself.
    """
    when = f"every night at {at} UTC" if at else "when somebody starts it"
    description = duty.description.format(when=when)
    shown = "\n".join([duty.entrypoint, description, at, repr(duty.parameter_schema)])
    return await orchestrator.deploy_nightly(
        duty.flow,
        duty.name,
        entrypoint=duty.entrypoint,
        at=at,
        description=description,
        version=hashlib.sha256(shown.encode()).hexdigest()[:12],
        parameter_schema=duty.parameter_schema,
    )
