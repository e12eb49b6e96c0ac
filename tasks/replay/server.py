"""Serving a recorded web on loopback: from a thread (tests), a process (the demo), or here."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection

import uvicorn

from models.errors import ConfigError
from tasks.clock import Clock
from tasks.replay.app import RecordedWebApp
from tasks.replay.history import RecordedWeb

_START_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class ServedWeb:
    """A recorded web being served from a thread of this process."""

    app: RecordedWebApp
    port: int


@contextlib.contextmanager
def serve_in_thread(web: RecordedWeb, clock: Clock, port: int = 0) -> Iterator[ServedWeb]:
    """Serve `web` on loopback from a thread, for as long as the context lasts.

    Parameters
    ----------
    port
        0 takes a free one.

    Raises
    ------
    ConfigError
        If the port is taken.
    """
    listener = _listen(port)
    app = RecordedWebApp(web, clock)
    server = _server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield ServedWeb(app, listener.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(timeout=10.0)
        listener.close()


@contextlib.contextmanager
def serve_in_process(web: RecordedWeb, clock: Clock, port: int = 0) -> Iterator[int]:
    """Serve `web` on loopback from a process of its own; gives the port.

    The process ends with the context, and by itself when this process is gone.

    Raises
    ------
    ConfigError
        If the port is taken.
    """
    listener = _listen(port)
    chosen = int(listener.getsockname()[1])
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve_received, args=(listener, theirs), daemon=True)
    process.start()
    listener.close()
    try:
        theirs.close()
        # Sent and not given: a process that dies at its start would never take it, and we wait.
        with contextlib.suppress(BrokenPipeError):
            ours.send((web, clock))
        _wait_until_ready(ours, chosen)
        yield chosen
    finally:
        process.terminate()
        process.join(timeout=10.0)
        ours.close()


def serve(web: RecordedWeb, clock: Clock, port: int) -> None:
    """Serve `web` on loopback until interrupted.

    Raises
    ------
    ConfigError
        If the port is taken.
    """
    with _listen(port) as listener:
        _server(RecordedWebApp(web, clock)).run(sockets=[listener])


def _serve_received(listener: socket.socket, parent: Connection) -> None:
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    web, clock = parent.recv()
    parent.send("ready")
    _server(RecordedWebApp(web, clock)).run(sockets=[listener])


def _leave_with_parent() -> None:
    """End this process when the one that started it is gone, however it went."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(0)


def _wait_until_ready(ours: Connection, port: int) -> None:
    with contextlib.suppress(EOFError, ConnectionError):
        if ours.poll(_START_TIMEOUT_S) and ours.recv() == "ready":
            return
    raise ConfigError(
        "recorded web", "port", port, "its server process did not start; see the messages above"
    )


def _listen(port: int) -> socket.socket:
    """Return a loopback socket at `port` that already accepts connections."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        allowed = f"the port cannot be had ({error.strerror}); stop what uses it or name another"
        raise ConfigError("recorded web", "port", port, allowed) from error
    listener.listen(1024)
    return listener


def _server(app: RecordedWebApp) -> uvicorn.Server:
    return uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
            log_level="critical",
            access_log=False,
            lifespan="off",
            ws="none",
            date_header=True,
            timeout_graceful_shutdown=1,
        )
    )
