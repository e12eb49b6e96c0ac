"""All talk with Prefect's server: deployments, runs, pauses, artifacts.

Times that go out and come in are wall times; callers convert from the product's clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, Self
from uuid import UUID, uuid4

import httpx
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.actions import (
    ArtifactCreate,
    DeploymentScheduleCreate,
    DeploymentUpdate,
    WorkPoolCreate,
)
from prefect.client.schemas.objects import TERMINAL_STATES, FlowRun, State, StateType
from prefect.client.schemas.schedules import CronSchedule
from prefect.context import AsyncClientContext, SyncClientContext
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from prefect.states import Cancelled, Crashed, Scheduled

from models.errors import ServerError
from models.harmless import one_line, printable

RETIRED = "left the catalogue"
"""Version of a deployment that we paused ourselves; a pause by people has another."""

TAG = "newsbeat"
"""Every deployment and run of ours carries it."""

FLOW_NAME = "collect"
SERVER_TROUBLE = (httpx.HTTPError, OSError)
"""What a call raises when the server is away or unwell."""

PAGE = 200
"""Most rows the server gives at a time."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """A source's deployment as the server has it."""

    deployment_id: UUID
    source: str
    tags: frozenset[str]
    description: str
    version: str | None
    is_paused: bool
    work_pool: str | None = None

    @property
    def is_retired(self) -> bool:
        """Whether it is paused because its source left the catalogue."""
        return self.version == RETIRED


class Orchestrator:
    """A connection to Prefect's server, shared by everything in the process.

    Use as an async context manager. Inside, flow runs share its client too.

    Parameters
    ----------
    work_pool
        Name of the work pool, of type ``newsbeat``.
    """

    def __init__(self, work_pool: str) -> None:
        self.work_pool = work_pool
        self.deployment_ids: dict[str, UUID] = {}
        self._stack = AsyncExitStack()
        self._client: PrefectClient | None = None

    async def __aenter__(self) -> Self:
        try:
            context = await self._stack.enter_async_context(AsyncClientContext())
            self._client = context.client
            await self._client.hello()
            # Each flow run wants a blocking client too, and would make its own: 20 ms.
            self._stack.enter_context(SyncClientContext())
        except (*SERVER_TROUBLE, RuntimeError, ValueError) as error:
            await self._stack.aclose()
            raise ServerError(
                _address(), f"Prefect's server does not answer ({error})", _WAY_OUT
            ) from error
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)
        self._client = None

    @property
    def client(self) -> PrefectClient:
        """Prefect's own client."""
        if self._client is None:
            raise ServerError("Prefect", "not connected", "Enter the orchestrator's context first")
        return self._client

    async def ensure_work_pool(self) -> None:
        """Create the work pool if it is missing.

        Its job template is empty: runs share the worker's process, there is nothing to set.
        The server would check one, and every run against it: 7 ms of its processor time.
        """
        try:
            await self.client.create_work_pool(
                WorkPoolCreate(name=self.work_pool, type="newsbeat", base_job_template={})
            )
        except ObjectAlreadyExists:
            return

    async def is_pool_paused(self) -> bool | None:
        """Return whether people paused the work pool; None where there is none any more."""
        try:
            return (await self.client.read_work_pool(self.work_pool)).is_paused
        except ObjectNotFound:
            return None

    async def read_entrypoint(self, deployment_id: UUID) -> str:
        """Return the entrypoint of a deployment, ``""`` where it has none."""
        return (await self.client.read_deployment(deployment_id)).entrypoint or ""

    async def ensure_flow(self, name: str = FLOW_NAME) -> UUID:
        """Return the id of the flow called `name`, registered if it is new."""
        return await self.client.create_flow_from_name(name)

    async def read_deployments(self) -> dict[str, Deployment]:
        """Return our deployments by source, and remember their ids."""
        found: dict[str, Deployment] = {}
        offset = 0
        while True:
            body = {
                "deployments": {"tags": {"all_": [TAG]}},
                "limit": PAGE,
                "offset": offset,
            }
            rows = (await self.client.request("POST", "/deployments/filter", json=body)).json()
            for row in rows:
                source = str(row["parameters"].get("source", row["name"]))
                found[source] = Deployment(
                    UUID(row["id"]),
                    source,
                    frozenset(row["tags"]),
                    row["description"] or "",
                    row["version"],
                    bool(row["paused"]),
                    row["work_pool_name"],
                )
            if len(rows) < PAGE:
                break
            offset += PAGE
        self.deployment_ids = {source: row.deployment_id for source, row in found.items()}
        return found

    async def read_paused(self) -> frozenset[str]:
        """Return the sources whose deployment people paused."""
        body = {
            "deployments": {"tags": {"all_": [TAG]}, "paused": {"eq_": True}},
            "limit": PAGE,
        }
        paused: set[str] = set()
        for offset in range(0, 1_000_000, PAGE):
            answer = await self.client.request(
                "POST", "/deployments/filter", json={**body, "offset": offset}
            )
            rows = answer.json()
            paused |= {str(row["parameters"].get("source", row["name"])) for row in rows}
            if len(rows) < PAGE:
                break
        return frozenset(paused)

    async def deploy(
        self,
        flow_id: UUID,
        source: str,
        *,
        entrypoint: str,
        tags: Sequence[str],
        description: str,
        version: str,
        parameter_schema: dict[str, Any],
    ) -> None:
        """Create or update the deployment of one source. Its pause is left as it is.

        Raises
        ------
        ServerError
            If the server answers, but does not take it.
        """
        try:
            deployment_id = await self.client.create_deployment(
                flow_id=flow_id,
                name=source,
                entrypoint=entrypoint,
                tags=[TAG, *tags],
                description=printable(description),
                version=version,
                parameters={"source": source},
                parameter_openapi_schema=parameter_schema,
                enforce_parameter_schema=False,
                work_pool_name=self.work_pool,
                pull_steps=[],
            )
        except (httpx.HTTPStatusError, ValueError) as error:
            raise ServerError(
                _address(),
                f"it does not take the deployment of {source}: {one_line(error)[:300]}",
                "Look at this entry of the catalogue; the others go on",
            ) from error
        self.deployment_ids[source] = deployment_id

    async def deploy_nightly(
        self,
        flow_name: str,
        name: str,
        *,
        entrypoint: str,
        at: str,
        description: str,
        version: str,
        parameter_schema: dict[str, Any] | None = None,
    ) -> UUID:
        """Create or update a deployment that Prefect runs every night; return its id.

        It does not carry our tag: it is no source's. One of the same version and pool is
        left as it is, and so are pauses that people set.

        Parameters
        ----------
        at
            ``HH:MM`` in UTC; empty leaves it without a schedule.
        parameter_schema
            What people are asked for when they start it by hand.
        """
        try:
            found = await self.client.read_deployment_by_name(f"{flow_name}/{name}")
            if found.version == version and found.work_pool_name == self.work_pool:
                return found.id
        except ObjectNotFound:
            pass
        schedules = []
        if at:
            hour, minute = at.split(":")
            cron = CronSchedule(cron=f"{int(minute)} {int(hour)} * * *", timezone="UTC")
            schedules = [DeploymentScheduleCreate(schedule=cron, active=True)]
        return await self.client.create_deployment(
            flow_id=await self.ensure_flow(flow_name),
            name=name,
            entrypoint=entrypoint,
            schedules=schedules,
            parameter_openapi_schema=parameter_schema or {},
            enforce_parameter_schema=False,
            description=description,
            version=version,
            work_pool_name=self.work_pool,
            pull_steps=[],
        )

    async def end_running(self, deployment_id: UUID, reason: str) -> None:
        """End the runs of a deployment that seem to run: those who ran them are gone."""
        body = {
            "flow_runs": {"state": {"type": {"any_": ["RUNNING", "PENDING", "CANCELLING"]}}},
            "deployments": {"id": {"any_": [str(deployment_id)]}},
            "limit": PAGE,
        }
        answer = await self.client.request("POST", "/flow_runs/filter", json=body)
        for row in answer.json():
            await self.end_run(row["id"], "crashed", reason)

    async def start_run(self, deployment: str, parameters: dict[str, Any] | None = None) -> UUID:
        """Start a run of a deployment now (``flow/name``), and return its id.

        Raises
        ------
        ServerError
            If there is no such deployment.
        """
        try:
            found = await self.client.read_deployment_by_name(deployment)
        except ObjectNotFound as error:
            raise ServerError(
                _address(),
                f"there is no deployment {deployment}",
                "Make it with `newsbeat deploy`",
            ) from error
        run = await self.client.create_flow_run_from_deployment(found.id, parameters=parameters)
        return run.id

    async def read_outcome(self, run_id: UUID) -> tuple[str, str] | None:
        """Return a run's state and its message once it has ended, None before."""
        run = await self.client.read_flow_run(run_id)
        if run.state is None or not run.state.is_final():
            return None
        return run.state.type.value.lower(), run.state.message or ""

    async def read_progress(self, run_id: UUID) -> float | None:
        """Return how far a run is by its progress artifact, 0 to 1; None where it has none."""
        body = {
            "artifacts": {"flow_run_id": {"any_": [str(run_id)]}, "type": {"any_": ["progress"]}},
            "limit": 1,
        }
        rows = (await self.client.request("POST", "/artifacts/filter", json=body)).json()
        return float(rows[0]["data"]) / 100.0 if rows else None

    async def retire(self, source: str) -> None:
        """Pause the deployment of a source that left the catalogue, and mark it as retired."""
        update = DeploymentUpdate(paused=True, version=RETIRED)
        await self.client.update_deployment(self.deployment_ids[source], update)

    async def set_paused(self, source: str, paused: bool) -> None:
        """Pause or resume a source's deployment."""
        deployment_id = self.deployment_ids[source]
        if paused:
            await self.client.pause_deployment(deployment_id)
        else:
            await self.client.resume_deployment(deployment_id)

    async def create_run(
        self, source: str, cycle: int, due_at: datetime, tags: Iterable[str] = ()
    ) -> FlowRun:
        """Create the run of a source's cycle, or return the one that has its key already.

        Raises
        ------
        KeyError
            If the source has no deployment.
        prefect.exceptions.ObjectNotFound
            If the server has forgotten its deployment.
        """
        deployment_id = self.deployment_ids[source]
        try:
            return await self.client.create_flow_run_from_deployment(
                deployment_id,
                state=Scheduled(scheduled_time=due_at),
                name=f"{source} #{cycle}",
                parameters={"source": source, "cycle": cycle},
                idempotency_key=f"{source}:{cycle}",
                tags=tags,
            )
        except httpx.HTTPStatusError as error:
            if error.response.status_code != 404:
                raise
            raise ObjectNotFound(error) from error

    async def read_due_runs(self, before: datetime) -> list[FlowRun]:
        """Return the pool's scheduled runs that are due before `before` (wall time).

        None where the pool is gone; :meth:`is_pool_paused` tells of that.
        """
        try:
            rows = await self.client.get_scheduled_flow_runs_for_work_pool(
                work_pool_name=self.work_pool, scheduled_before=before
            )
        except ObjectNotFound:
            return []
        return [row.flow_run for row in rows]

    async def read_open_runs(self) -> list[FlowRun]:
        """Return every run of ours that has not ended."""
        kinds = ["SCHEDULED", "PENDING", "RUNNING", "PAUSED", "CANCELLING"]
        runs: list[FlowRun] = []
        for offset in range(0, 10_000_000, PAGE):
            body = {
                "flow_runs": {"state": {"type": {"any_": kinds}}, "tags": {"all_": [TAG]}},
                "sort": "ID_DESC",
                "limit": PAGE,
                "offset": offset,
            }
            answer = await self.client.request("POST", "/flow_runs/filter", json=body)
            page = [FlowRun.model_validate(row) for row in answer.json()]
            runs += page
            if len(page) < PAGE:
                break
        return runs

    async def is_waiting(self, run_id: UUID) -> bool:
        """Return whether a run may still start: nobody cancelled, started or deleted it."""
        return await self._read_state_type(run_id) in (StateType.SCHEDULED, StateType.PENDING)

    async def _read_state_type(self, run_id: UUID) -> StateType | None:
        """Return the type of a run's state, None where the run is gone."""
        try:
            run = await self.client.read_flow_run(run_id)
        except ObjectNotFound:
            return None
        return run.state.type if run.state else None

    async def end_run(
        self, run_id: UUID | str, state: Literal["cancelled", "crashed"], reason: str
    ) -> None:
        """Put a run into a final state; one that has ended meanwhile, or is gone, is left alone."""
        run_id = UUID(str(run_id))
        if await self._read_state_type(run_id) in (None, *TERMINAL_STATES):
            return
        wanted: State[Any] = (
            Cancelled(message=one_line(reason))
            if state == "cancelled"
            else Crashed(message=one_line(reason))
        )
        try:
            await self.client.set_flow_run_state(run_id, wanted, force=True)
        except ObjectNotFound:
            return

    async def heartbeat(self, worker_name: str, interval_s: float) -> None:
        """Tell the server that this worker lives."""
        await self.client.send_worker_heartbeat(
            work_pool_name=self.work_pool,
            worker_name=worker_name,
            heartbeat_interval_seconds=interval_s,
        )

    async def emit_event(self, name: str, payload: Mapping[str, Any]) -> None:
        """Hand an event to the server: its automations may act on it.

        Raises
        ------
        httpx.HTTPError
            If the server is away.
        """
        event = {
            "id": str(uuid4()),
            "occurred": datetime.now(UTC).isoformat(),
            "event": name,
            "resource": {"prefect.resource.id": "newsbeat.notices", "prefect.resource.name": TAG},
            "related": [],
            "payload": dict(payload),
        }
        await self.client.request("POST", "/events", json=[event])

    def deployment_path(self, source: str) -> str:
        """Return where the server's pages show a source's deployment, ``""`` if it has none."""
        found = self.deployment_ids.get(source)
        return f"/deployments/deployment/{found}" if found else ""

    async def publish_markdown(
        self, key: str, text: str, description: str, flow_run_id: UUID | None
    ) -> UUID:
        """Create a Markdown artifact and return its id."""
        artifact = await self.client.create_artifact(
            ArtifactCreate(
                key=key,
                type="markdown",
                data=printable(text),
                description=printable(description),
                flow_run_id=flow_run_id,
            )
        )
        assert artifact.id is not None
        return artifact.id

    async def update_markdown(self, artifact_id: UUID, text: str, description: str) -> bool:
        """Replace the text of an artifact; False where the server has it no more."""
        try:
            # Not by the client's method: that also tells the server of it as an event.
            await self.client.request(
                "PATCH",
                "/artifacts/{id}",
                path_params={"id": artifact_id},
                json={"data": printable(text), "description": printable(description)},
            )
        except httpx.HTTPStatusError as error:
            if error.response.status_code != 404:
                raise
            return False
        return True


def artifact_key(source: str) -> str:
    """Return the key of the artifact that is a source's page."""
    return f"source-{source}"


def artifact_path(source: str) -> str:
    """Return where the server's pages show a source's page."""
    return f"/artifacts/key/{artifact_key(source)}"


def is_final(run: FlowRun) -> bool:
    """Return whether a run has ended."""
    return run.state is not None and run.state.is_final()


def was_cancelled(run: FlowRun) -> bool:
    """Return whether a run ended by being cancelled."""
    return run.state is not None and run.state.type == StateType.CANCELLED


_WAY_OUT = "Start one with `newsbeat up`, or set prefect.api_url in newsbeat.toml"


def _address() -> str:
    from prefect.settings import PREFECT_API_URL

    return PREFECT_API_URL.value() or "Prefect"
