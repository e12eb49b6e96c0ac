"""Every error keeps its fields between processes, and tells them."""

import pickle

import pytest

from models import errors
from models.errors import NewsbeatError

EXAMPLES = [
    errors.NewsbeatError("plain words"),
    errors.ConfigError("newsbeat.toml", "fetch.max_bytes", "many", "it must be a whole number"),
    errors.ConfigError("newsbeat.toml", "", None, "not readable as TOML"),
    errors.FetchError("https://news.example/", "broken pipe", 502, "https://cdn.example/"),
    errors.TransientFetchError("https://news.example/", "too many requests", 429, None, 30.0),
    errors.HeldFetchError("https://news.example/", "left alone", None, None, 30.0),
    errors.PermanentFetchError("https://news.example/", "gone", 410),
    errors.RefusedFetchError("https://news.example/", "robots.txt says no"),
    errors.ParseError("https://news.example/rss", "a web page, no feed"),
    errors.UnlistedError("https://t.me/s/harbour", "a group: it shows nothing on the web"),
    errors.WarehouseError("w.duckdb", "in use by process 7", "Stop it first."),
    errors.UnstorableError("w.duckdb", "NULL in a column", "Please report it."),
    errors.ChannelError("desk", "connection refused"),
    errors.ServerError("http://127.0.0.1:4200/api", "no answer", "Start it."),
    errors.QualityError("batch of 3 rows has no title"),
    errors.ModelError("no answer"),
    errors.InsufficientDataError(needed=30, got=4),
    errors.ContaminatedReference("texts repeat one another", 0.75),
    errors.ConvergenceError("did not settle in 100 steps"),
]
UNSPOKEN = {"status", "retry_after_s"}
"""Fields for the program; the reason says them in words."""


def every_error():
    waiting, found = [NewsbeatError], []
    while waiting:
        kind = waiting.pop()
        found.append(kind)
        waiting += kind.__subclasses__()
    return [kind for kind in found if kind.__module__ == errors.__name__]


def test_every_error_has_an_example_here():
    assert {type(example) for example in EXAMPLES} == set(every_error())


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_survives_pickling_with_all_its_fields(error):
    twin = pickle.loads(pickle.dumps(error))
    assert type(twin) is type(error)
    assert vars(twin) == vars(error)
    assert twin.args == error.args
    assert str(twin) == str(error)


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_the_text_of_an_error_holds_its_fields(error):
    told = {key: value for key, value in vars(error).items() if key not in UNSPOKEN}
    if isinstance(error, errors.ConfigError) and not error.key:
        told = {"file": error.file, "allowed": error.allowed}
    for value in told.values():
        assert value is None or str(value) in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errors.RefusedFetchError, errors.PermanentFetchError),
        (errors.TransientFetchError, errors.FetchError),
        (errors.InsufficientDataError, errors.ModelError),
    ],
)
def test_a_kind_of_error_is_caught_as_its_parent(error, kind):
    assert issubclass(error, kind)
    assert not issubclass(errors.TransientFetchError, errors.PermanentFetchError)


def test_a_redirect_is_named_only_where_it_led_elsewhere():
    there = errors.FetchError("https://a.example/", "gone", 410, "https://a.example/")
    assert str(there) == "https://a.example/: gone"
    assert "at https://b.example/" in str(
        errors.FetchError("https://a.example/", "x", 1, "https://b.example/")
    )
