"""One Prefect deployment per source, made from the catalogue."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable
from typing import Any

from models.errors import ServerError
from models.harmless import escape_markdown
from models.polling.fixed import spell_duration
from models.records import Source
from tasks.orchestrator import TAG, Orchestrator, artifact_path

logger = logging.getLogger("newsbeat.deploy")

ENTRYPOINT = "flows.collect.collect_source"

PARAMETER_SCHEMA: dict[str, Any] = {
    "title": "Parameters",
    "type": "object",
    "required": ["source"],
    "properties": {
        "source": {"title": "source", "type": "string", "position": 0},
        "cycle": {
            "title": "cycle",
            "description": "Leave empty to poll now by hand.",
            "anyOf": [{"type": "integer"}, {"type": "null"}],
            "default": None,
            "position": 1,
        },
    },
}


async def deploy_sources(
    orchestrator: Orchestrator,
    sources: Iterable[Source],
    on_done: Callable[[Source, bool], None] = lambda _source, _changed: None,
) -> int:
    """Create or update a deployment for each source; return how many changed.

    Running it again changes nothing. Pauses people set are left as they are; a pause of
    ours, for a source that had left the catalogue and is back in it, is ended.

    Parameters
    ----------
    orchestrator
        The connected server.
    sources
        The catalogue, or part of it.
    on_done
        Called after each source, with whether it changed: progress for people.
    """
    flow_id = await orchestrator.ensure_flow()
    existing = await orchestrator.read_deployments()
    changed = 0
    for source in sources:
        version = deployment_version(source)
        before = existing.get(source.source)
        is_new = (
            before is None
            or before.version != version
            # Its pool was deleted, or the settings name another.
            or before.work_pool != orchestrator.work_pool
        )
        if is_new:
            try:
                await orchestrator.deploy(
                    flow_id,
                    source.source,
                    entrypoint=ENTRYPOINT,
                    tags=deployment_tags(source),
                    description=describe_source(source),
                    version=version,
                    parameter_schema=PARAMETER_SCHEMA,
                )
            except ServerError as error:
                # One entry that the server chokes on must not keep the others from it.
                logger.warning("%s", error)
                continue
            changed += 1
        if before is not None and before.is_retired:
            await orchestrator.set_paused(source.source, False)
        on_done(source, is_new)
    return changed


async def pause_missing(orchestrator: Orchestrator, sources: Iterable[Source]) -> list[str]:
    """Pause the deployments of sources that left the catalogue; return their names.

    They are kept: deleting one would delete its history.
    """
    wanted = {source.source for source in sources}
    gone = [
        deployment.source
        for deployment in (await orchestrator.read_deployments()).values()
        if deployment.source not in wanted and not deployment.is_paused
    ]
    for source in gone:
        await orchestrator.retire(source)
    return gone


def deployment_tags(source: Source) -> list[str]:
    """Return the tags under which people find a source in the UI."""
    tags = [f"source:{source.source}", f"kind:{source.kind}"]
    if source.language:
        tags.append(f"language:{source.language}")
    return [*tags, *source.tags]


def describe_source(source: Source) -> str:
    """Return the Markdown shown on a deployment's page."""
    lines = [
        f"**{escape_markdown(source.title)}**",
        "",
        f"- address: <{source.url}>",
        f"- kind: {source.kind}, language: {source.language or 'unknown'}, zone: {source.timezone}",
        f"- policy: {source.poll.policy}, about every {spell_duration(source.poll.interval_s)}",
        "",
        f"[Its page]({artifact_path(source.source)}): last polls and articles, lag, next poll.",
        "",
        "Pause it here and it is not polled; *Run › Quick run* polls it now.",
    ]
    return "\n".join(lines)


def deployment_version(source: Source) -> str:
    """Return a short digest of all that a deployment shows of its source."""
    shown = "\n".join([ENTRYPOINT, describe_source(source), *deployment_tags(source), TAG])
    return hashlib.sha256(shown.encode()).hexdigest()[:12]
