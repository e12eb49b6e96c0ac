import dataclasses

import pytest

from models.errors import ConfigError
from models.triage.ladder import Channel
from tasks.settings import _LEAST_MOST, _PATTERNS, _SECTIONS, _check_value, read_settings


def write(folder, text):
    (folder / "newsbeat.toml").write_text(text, encoding="utf-8")


def test_without_a_file_the_defaults_hold(tmp_path):
    settings = read_settings(tmp_path, {})
    assert settings.fetch.max_hops == 8
    assert settings.home == tmp_path.resolve()
    assert settings.database == tmp_path.resolve() / "data/warehouse/newsbeat.duckdb"
    assert settings.clock.speed == 1.0


def test_the_file_is_stronger_than_the_defaults_and_the_environment_than_the_file(tmp_path):
    write(tmp_path, "[fetch]\nmax_hops = 3\nhost_gap_s = 4\n")
    settings = read_settings(tmp_path, {"NEWSBEAT_FETCH_MAX_HOPS": "5"})
    assert settings.fetch.max_hops == 5
    assert settings.fetch.host_gap_s == 4.0
    assert isinstance(settings.fetch.host_gap_s, float)


def test_a_sections_other_keys_keep_their_defaults(tmp_path):
    write(tmp_path, '[agent]\ncontact = "desk@news.example"\n')
    settings = read_settings(tmp_path, {})
    assert settings.agent.name == "newsbeat"
    assert settings.agent_string == "newsbeat/0.1 (+desk@news.example)"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[fetch]\nmax_hopps = 3\n", ["newsbeat.toml", "fetch.max_hopps", "max_hops"]),
        ("[fetsh]\nmax_hops = 3\n", ["newsbeat.toml", "fetsh", "[fetch]"]),
        ("max_hops = 3\n", ["newsbeat.toml", "max_hops", "[fetch]"]),
        ('[fetch]\nmax_hops = "many"\n', ["fetch.max_hops", "'many'", "whole number"]),
        ("[fetch]\nmax_hops = 2.5\n", ["fetch.max_hops", "2.5", "whole number"]),
        ("[fetch]\nmax_hops = true\n", ["fetch.max_hops", "True", "whole number"]),
        ("[agent]\nname = 7\n", ["agent.name", "7", "text"]),
        ("[fetch\n", ["newsbeat.toml", "TOML", "line 1"]),
    ],
    ids=["key", "section", "no section", "text", "fraction", "truth", "number", "syntax"],
)
def test_a_mistake_in_the_file_is_named_with_what_would_be_right(tmp_path, text, words):
    write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        read_settings(tmp_path, {})
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("NEWSBEAT_FETCH_MAX_HOPS", "many"),
        ("NEWSBEAT_FETCH_MAX_HOPPS", "3"),
        ("NEWSBEAT_NOWHERE_KEY", "3"),
        ("NEWSBEAT_CLOCK", "fast"),
        ("NEWSBEAT_CLOCK", "0:0:0"),
    ],
)
def test_a_mistake_in_the_environment_is_named(tmp_path, variable, value):
    with pytest.raises(ConfigError) as caught:
        read_settings(tmp_path, {variable: value})
    assert value in str(caught.value)
    assert variable in str(caught.value)


def test_variables_of_others_are_left_alone(tmp_path):
    assert read_settings(tmp_path, {"PATH": "/bin", "NEWSBEATEN": "x", "NEWSBEAT_HOME": "y"})


def test_a_home_that_does_not_exist_is_an_error_that_says_so(tmp_path):
    with pytest.raises(ConfigError, match="no such folder"):
        read_settings(tmp_path / "nowhere", {})


def test_the_clock_comes_from_the_environment(tmp_path):
    settings = read_settings(tmp_path, {"NEWSBEAT_CLOCK": "60.0:1000.0:5000.0"})
    assert settings.clock.speed == 60.0
    assert settings.clock.at_wall(1001.0).timestamp() == 5060.0


def test_the_clock_of_a_replay_stands_in_its_file(tmp_path):
    write(tmp_path, 'clock = "60.0:1000.0:5000.0"\n')
    assert read_settings(tmp_path, {}).clock.at_wall(1001.0).timestamp() == 5060.0
    stronger = read_settings(tmp_path, {"NEWSBEAT_CLOCK": "2.0:0.0:0.0"})
    assert stronger.clock.speed == 2.0


def test_a_clock_that_cannot_be_read_names_its_file(tmp_path):
    write(tmp_path, "clock = 60\n")
    with pytest.raises(ConfigError, match=r"newsbeat\.toml: clock = 60 .* speed:wall:at"):
        read_settings(tmp_path, {})


def test_settings_read_twice_are_the_same(tmp_path):
    write(tmp_path, "[worker]\nconcurrency = 3\n")
    assert read_settings(tmp_path, {}) == read_settings(tmp_path, {})


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("NEWSBEAT_WORKER_CONCURRENCY", "0"),
        ("NEWSBEAT_WORKER_QUERY_S", "0"),
        ("NEWSBEAT_WORKER_QUERY_S", "nan"),
        ("NEWSBEAT_WORKER_POLL_TIMEOUT_S", "inf"),
        ("NEWSBEAT_FETCH_HOST_GAP_S", "-1"),
        ("NEWSBEAT_FETCH_MAX_BYTES", "1"),
        ("NEWSBEAT_PREFECT_PORT", "99999"),
        ("NEWSBEAT_PREFECT_HISTORY_DAYS", "-3"),
        ("NEWSBEAT_PREFECT_DATABASE_URL", "postgresql://localhost/prefect"),
        ("NEWSBEAT_PREFECT_API_URL", "localhost:4200"),
        ("NEWSBEAT_PREFECT_HOST", "here; rm -rf /"),
        ("NEWSBEAT_WAREHOUSE_MEMORY_LIMIT", "lots"),
        ("NEWSBEAT_WAREHOUSE_FOLDER", ""),
        ("NEWSBEAT_WAREHOUSE_WARC_DAYS", "-5"),
        ("NEWSBEAT_AGENT_NAME", "news beat\r\nHost: elsewhere"),
        ("NEWSBEAT_AGENT_CONTACT", "me@example.org\r\nCookie: a"),
        ("NEWSBEAT_BUDGET_LAG_BY_TAG", "tier-1=-5"),
        ("NEWSBEAT_BUDGET_POLLS_PER_DAY", "1e999"),
        ("NEWSBEAT_CLOCK", "nan:0:0"),
        ("NEWSBEAT_CLOCK", "1:0:1e300"),
        ("NEWSBEAT_CLOCK", "inf:0:0"),
        ("NEWSBEAT_CLOCK", "1:2"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_by_name(tmp_path, variable, value):
    with pytest.raises(ConfigError) as caught:
        read_settings(tmp_path, {variable: value})
    assert variable in str(caught.value) or variable.lower().split("_")[1] in str(caught.value)
    assert "is not allowed; " in str(caught.value)


def test_every_default_is_allowed(tmp_path):
    settings = read_settings(tmp_path, {})
    for section, kind in _SECTIONS.items():
        for item in dataclasses.fields(kind):
            value = getattr(getattr(settings, section), item.name)
            assert _check_value(f"{section}.{item.name}", value) == ""


def test_every_bound_is_of_a_setting_that_exists():
    known = {
        f"{section}.{item.name}"
        for section, kind in _SECTIONS.items()
        for item in dataclasses.fields(kind)
    }
    known |= {f"channels.{item.name}" for item in dataclasses.fields(Channel)}
    assert {*_LEAST_MOST, *_PATTERNS} <= known


def test_channels_are_read_from_the_file_and_the_environment(tmp_path):
    text = (
        '[alerts]\ntimezone = "Europe/Moscow"\n[channels.desk]\nlevels = [1, 2]\ntags = ["port"]\n'
    )
    (tmp_path / "newsbeat.toml").write_text(text, encoding="utf-8")
    environ = {"NEWSBEAT_CHANNELS_DESK_URL": "json://h/x", "NEWSBEAT_CHANNELS_ALL_URL": "log:"}
    channels = read_settings(tmp_path, environ).channels
    assert channels["desk"] == Channel(
        "desk", "json://h/x", (1, 2), ("port",), timezone="Europe/Moscow"
    )
    assert channels["all"].levels == (1, 2, 3, 4)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("levels = [1]", "url"),
        ('url = "log:"\nlevels = [5]', "levels"),
        ('url = "log:"\nlevels = "1"', "levels"),
        ('url = "log:"\nquiet = "22-7"', "quiet"),
        ('url = "log:"\ntimezone = "Moscow"', "timezone"),
        ('url = "log:"\nlevel = [1]', "level"),
        ('url = "json://user:secret@h x"', "url"),
    ],
)
def test_a_wrong_channel_is_named_and_shows_no_password(tmp_path, line, key):
    (tmp_path / "newsbeat.toml").write_text(f"[channels.desk]\n{line}\n", encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        read_settings(tmp_path, {})
    assert raised.value.key == f"channels.desk.{key}"
    assert "secret" not in str(raised.value)


def test_a_file_that_windows_wrote_is_read(tmp_path):
    text = "[fetch]\r\nmax_hops = 3\r\n"
    (tmp_path / "newsbeat.toml").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert read_settings(tmp_path, {}).fetch.max_hops == 3


def test_a_folder_in_the_place_of_the_file_is_named(tmp_path):
    (tmp_path / "newsbeat.toml").mkdir()
    with pytest.raises(ConfigError, match=r"newsbeat\.toml: not readable"):
        read_settings(tmp_path, {})


def test_a_home_of_nobody_is_named():
    with pytest.raises(ConfigError, match="no such folder"):
        read_settings("~no-such-user-here/news", {})


def test_two_budgets_are_one_too_many(tmp_path):
    (tmp_path / "newsbeat.toml").write_text("[budget]\npolls_per_day = 100\nprice = 60\n")
    with pytest.raises(ConfigError, match=r"budget\.polls_per_day is set already; set one of"):
        read_settings(tmp_path, {})
