"""Send messages to people: mail, chats, webhooks, by apprise."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from models.errors import ChannelError, ConfigError
from models.harmless import one_line
from models.triage.ladder import Channel

logger = logging.getLogger("newsbeat.alerts")

LOG_SCHEME = "log:"
PREFECT_SCHEME = "prefect:"
"""Not sent from here: the flows hand it to Prefect's server as an event."""

PLAIN_CHARS = 16_000
"""Room of a message that no service limits."""

REASON_CHARS = 300


class Channels:
    """The channels of the settings, ready to send.

    Parameters
    ----------
    channels
        By name.

    Raises
    ------
    ConfigError
        If an address is none that apprise knows. The address is not shown: it may hold a
        password.
    """

    def __init__(self, channels: Mapping[str, Channel]) -> None:
        self.channels = dict(channels)
        self._services = {
            name: _service(channel)
            for name, channel in channels.items()
            if not channel.url.startswith((LOG_SCHEME, PREFECT_SCHEME))
        }

    def room(self, name: str) -> int:
        """Return how many characters a channel takes in one part, its title put aside."""
        service = self._services.get(name)
        if service is None:
            return PLAIN_CHARS
        # A service without titles puts them into the text.
        title = 0 if service.title_maxlen else 250
        # Escaping may make a text longer; what is left over is cut by nobody.
        return int(min(service.body_maxlen * 0.8 - title, PLAIN_CHARS))

    def send(self, name: str, title: str, text: str) -> None:
        """Send one part of a message; blocks until the other side has it, some seconds at most.

        Raises
        ------
        ChannelError
            If it did not get through.
        """
        service = self._services.get(name)
        if service is None:
            logger.warning("%s: %s", name, one_line(title))
            return
        with _what_is_said() as said:
            try:
                done = service.notify(title=title, body=text, body_format="text")
            except Exception as error:
                raise ChannelError(name, _short(repr(error))) from error
        if not done:
            raise ChannelError(name, _short("; ".join(said) or "the service refused it"))


def _service(channel: Channel) -> Any:
    with warnings.catch_warnings():
        # Its modules are loaded here, and some lean on what Python is about to drop.
        warnings.simplefilter("ignore", DeprecationWarning)
        import apprise

        service = apprise.Apprise.instantiate(channel.url, suppress_exceptions=True)
    if service is None:
        raise ConfigError(
            "newsbeat.toml",
            f"channels.{channel.name}.url",
            "…",
            "it must be an address that apprise knows, such as mailto://, slack://, tgram://,"
            " json://; or prefect:, or log:",
        )
    return service


def _short(text: str) -> str:
    return one_line(text)[:REASON_CHARS]


class _Listener(logging.Handler):
    """Keeps what apprise says in this thread: it tells its troubles nobody else."""

    def __init__(self, said: list[str]) -> None:
        super().__init__(logging.INFO)
        self._said = said
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a warning or error."""
        if record.thread == self._thread and record.levelno >= logging.WARNING:
            self._said.append(record.getMessage())


@contextmanager
def _what_is_said() -> Iterator[list[str]]:
    said: list[str] = []
    listener, source = _Listener(said), logging.getLogger("apprise")
    source.addHandler(listener)
    try:
        yield said
    finally:
        source.removeHandler(listener)
