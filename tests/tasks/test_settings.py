import pytest

from models.errors import ConfigError
from tasks.settings import read_settings


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
