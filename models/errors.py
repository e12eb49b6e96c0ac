"""Every error newsbeat raises on purpose.

::

    NewsbeatError                  every error raised on purpose
    ├─ ConfigError                 a setting or a source file is wrong
    ├─ FetchError(url, reason)
    │  ├─ TransientFetchError      later may work: timeout, name resolution, 429, 5xx
    │  └─ PermanentFetchError      later will not: 404, 410, certificate
    │     └─ RefusedFetchError     we do not ask: robots.txt, private address, bad scheme
    ├─ ParseError(url, reason)     the answer came, but is no feed or no article
    │  └─ UnlistedError            what is posted there is shown to nobody without an account
    ├─ WarehouseError              schema too new, writer lease held, disk full
    │  └─ UnstorableError          a value that the database does not take
    ├─ ChannelError(channel, …)    a message did not get through to people
    ├─ ServerError                 Prefect's server or its database is out of reach
    ├─ QualityError                a batch was refused, or could not be judged
    └─ ModelError
       ├─ InsufficientDataError(needed, got)
       ├─ ContaminatedReference(reason, share)
       └─ ConvergenceError

Errors carry fields and build their text in ``__str__``; the fields go through
``super().__init__``, so that an error survives pickling between processes.
"""

from __future__ import annotations


class NewsbeatError(Exception):
    """Base of every error raised on purpose."""


class ConfigError(NewsbeatError):
    """A setting or a source file is wrong.

    Parameters
    ----------
    file
        File (or environment variable) that holds the value.
    key
        Dotted key inside it, ``""`` when the file as a whole is meant.
    value
        The offending value, as read.
    allowed
        What would be right, in words.
    """

    def __init__(self, file: str, key: str, value: object, allowed: str) -> None:
        super().__init__(file, key, value, allowed)
        self.file = file
        self.key = key
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:
        if not self.key:
            return f"{self.file}: {self.allowed}"
        return f"{self.file}: {self.key} = {self.value!r} is not allowed; {self.allowed}"


class FetchError(NewsbeatError):
    """A page could not be fetched.

    Parameters
    ----------
    url
        Address that was asked for.
    reason
        Why it failed, in a few words people understand.
    status
        HTTP status, where an answer came.
    final_url
        Address of the hop that failed, where it is not `url`.
    """

    def __init__(
        self, url: str, reason: str, status: int | None = None, final_url: str | None = None
    ) -> None:
        super().__init__(url, reason, status, final_url)
        self.url = url
        self.reason = reason
        self.status = status
        self.final_url = final_url

    def __str__(self) -> str:
        where = self.url
        if self.final_url and self.final_url != self.url:
            where = f"{self.url} (at {self.final_url})"
        return f"{where}: {self.reason}"


class TransientFetchError(FetchError):
    """A fetch that may work later: timeout, name resolution, 429, 5xx.

    ``retry_after_s`` holds what the server asked for, in seconds, if it did.
    """

    def __init__(
        self,
        url: str,
        reason: str,
        status: int | None = None,
        final_url: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(url, reason, status, final_url)
        self.args = (url, reason, status, final_url, retry_after_s)
        self.retry_after_s = retry_after_s


class HeldFetchError(TransientFetchError):
    """A fetch that was not made, as its host is being left alone: nothing failed."""


class PermanentFetchError(FetchError):
    """A fetch that will not work later either: 404, 410, certificate."""


class RefusedFetchError(PermanentFetchError):
    """A fetch we do not make: robots.txt, a private address, a scheme that is not http(s)."""


class ParseError(NewsbeatError):
    """The answer came, but is not what was expected.

    Parameters
    ----------
    url
        Where it came from.
    reason
        What it is instead, in a few words.
    """

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(url, reason)
        self.url = url
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.url}: {self.reason}"


class UnlistedError(ParseError):
    """What a source posts is shown to nobody without an account: asking again will not help."""


class WarehouseError(NewsbeatError):
    """The warehouse cannot be used: lease held, newer than the program, disk full.

    Parameters
    ----------
    path
        The database file.
    reason
        What is wrong.
    way_out
        What to do about it.
    """

    def __init__(self, path: str, reason: str, way_out: str) -> None:
        super().__init__(path, reason, way_out)
        self.path = path
        self.reason = reason
        self.way_out = way_out

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}. {self.way_out}"


class UnstorableError(WarehouseError):
    """A record that the database does not take, as one of its values is none of its kind."""


class ChannelError(NewsbeatError):
    """A message did not get through; it is tried again.

    Parameters
    ----------
    channel
        Name of the channel in the settings; its address may hold a password.
    reason
        What the other side, or the way there, said.
    """

    def __init__(self, channel: str, reason: str) -> None:
        super().__init__(channel, reason)
        self.channel = channel
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.channel}: {self.reason}"


class ServerError(NewsbeatError):
    """Prefect's server, or the database behind it, is out of reach.

    Parameters
    ----------
    address
        Address that was tried.
    reason
        What happened.
    way_out
        What to do about it.
    """

    def __init__(self, address: str, reason: str, way_out: str) -> None:
        super().__init__(address, reason, way_out)
        self.address = address
        self.reason = reason
        self.way_out = way_out

    def __str__(self) -> str:
        return f"{self.address}: {self.reason}. {self.way_out}"


class QualityError(NewsbeatError):
    """A batch was refused, or could not be judged."""


class ModelError(NewsbeatError):
    """A model cannot give an answer."""


class InsufficientDataError(ModelError):
    """Too few observations.

    Parameters
    ----------
    needed, got
        Number of observations needed, and at hand.
    """

    def __init__(self, needed: int, got: int) -> None:
        super().__init__(needed, got)
        self.needed = needed
        self.got = got

    def __str__(self) -> str:
        return f"{self.got} observations, {self.needed} needed"


class ContaminatedReference(ModelError):  # noqa: N818 - named by what it says of the pages
    """Pages that were to be a reference look wrong already.

    Parameters
    ----------
    reason
        What is wrong, in a few words.
    share
        Share of the pages it holds for, 0 to 1.
    """

    def __init__(self, reason: str, share: float) -> None:
        super().__init__(reason, share)
        self.reason = reason
        self.share = share

    def __str__(self) -> str:
        return f"these pages cannot be a reference: {self.reason} (share {self.share})"


class ConvergenceError(ModelError):
    """A fit did not settle."""
