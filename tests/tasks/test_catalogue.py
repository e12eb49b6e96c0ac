import threading
from pathlib import Path

import pytest

from models.errors import ConfigError
from models.records import HttpRules, ListRules, PollRules, Source
from tasks.catalogue import ADDED_FILE, read_catalogue, write_source
from tasks.settings import read_settings

GOOD = '[[source]]\nsource = "good-one"\nurl = "https://good.example/rss.xml"\n'


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "data" / "sources"
    place.mkdir(parents=True)
    return place


def write(folder, text, name="a.toml"):
    (folder / name).write_text(text, encoding="utf-8")


def names(catalogue):
    return [source.source for source in catalogue.sources]


def test_a_source_is_read_with_every_key(folder):
    write(
        folder,
        """
        [[source]]
        source = "daily-herald"
        title = "The Daily Herald"
        url = "  https://herald.example/latest  "
        kind = "list"
        language = "en"
        timezone = "Europe/London"
        country = "GB"
        tags = ["world", "культура"]
        reach = "local"
        weight = 2

        [source.poll]
        min_interval_s = 120
        target_lag_s = 300

        [source.list]
        links = "main h2 > a"
        url_pattern = "/20\\\\d\\\\d/"

        [source.http]
        allow_private = true
        connect_to = "127.0.0.1:8080"
        """,
    )
    (source,) = read_catalogue(folder).sources
    assert source == Source(
        source="daily-herald",
        title="The Daily Herald",
        url="https://herald.example/latest",
        kind="list",
        language="en",
        timezone="Europe/London",
        country="GB",
        tags=("world", "культура"),
        reach="local",
        weight=2.0,
        poll=PollRules(min_interval_s=120.0, target_lag_s=300.0),
        list=ListRules(links="main h2 > a", url_pattern=r"/20\d\d/"),
        http=HttpRules(allow_private=True, connect_to="127.0.0.1:8080"),
        file=str(folder / "a.toml"),
    )


def test_a_file_may_hold_one_source_at_its_top_level(folder):
    write(
        folder,
        'source = "single"\nurl = "https://s.example/"\n[poll]\ninterval_s = 90\n',
    )
    (source,) = read_catalogue(folder).sources
    assert source.source == "single"
    assert source.title == "single"
    assert source.poll.interval_s == 90.0


def test_files_are_read_in_order_and_others_left_alone(folder):
    write(folder, GOOD.replace("good-one", "second"), "b.toml")
    write(folder, GOOD.replace("good-one", "first").replace("rss", "x"), "a.toml")
    write(folder, "not toml at all", "notes.txt")
    write(folder, "not toml at all", ".hidden.toml")
    catalogue = read_catalogue(folder)
    assert names(catalogue) == ["first", "second"]
    assert catalogue.problems == ()


@pytest.mark.parametrize(
    ("line", "key", "words"),
    [
        ('source = "Bad Name"', "source", "lower-case"),
        ('source = "a"', "source", "2 to 63"),
        ("source = 7", "source", "text"),
        ('url = "ftp://news.example/"', "url", "https://"),
        ('url = "news.example/rss"', "url", "whole address"),
        ('url = "https://"', "url", "whole address"),
        ('url = "https:///rss"', "url", "whole address"),
        ('kind = "rss"', "kind", "feed, sitemap, list"),
        ('language = "English"', "language", "such as ru"),
        ('timezone = "Europe/Mosow"', "timezone", "Europe/Moscow"),
        ('timezone = "MSK+3"', "timezone", "IANA"),
        ('country = "Russia"', "country", "two capitals"),
        ('tags = "world"', "tags", "list"),
        ('tags = ["two words"]', "tags", "without spaces"),
        ('tags = ["a", "a"]', "tags", "once"),
        ('reach = "global"', "reach", "wide, local, trade"),
        ("weight = 0", "weight", "above 0"),
        ("weight = nan", "weight", "above 0"),
        ("weight = inf", "weight", "above 0"),
        ('weight = "2"', "weight", "quotation marks"),
        ('titel = "x"', "titel", "did you mean title?"),
        ('zzz = "x"', "zzz", "keys are source, title"),
        ('file = "x"', "file", "title"),
        ('poll = "often"', "poll", "[source.poll]"),
        ('poll.policy = "fastest"', "poll.policy", "fixed"),
        pytest.param(
            'poll.estimator = "sarima-52"',
            "poll.estimator",
            "holt-winters",
            marks=pytest.mark.report("Nixtla/statsforecast#480"),
        ),
        ("max_entries = 0", "max_entries", "100,000"),
        ('identity = "slug"', "identity", "title-date"),
        ("poll.interval_s = -5", "poll.interval_s", "above 0"),
        ("poll.interval_s = 5", "poll.interval_s", "from min_interval_s, 60,"),
        ("poll.min_interval_s = 90000", "poll.min_interval_s", "at most max_interval_s"),
        ("poll.intervals = 5", "poll.intervals", "did you mean interval_s?"),
        ('list.links = "div..x"', "list.links", "CSS"),
        ('list.url_pattern = "(["', "list.url_pattern", "regular expression"),
        ('extract.text = ":::"', "extract.text", "CSS"),
        ('http.allow_private = "yes"', "http.allow_private", "quotation marks"),
        ('http.connect_to = "localhost"', "http.connect_to", "host:port"),
        ("http.min_gap_s = -1", "http.min_gap_s", "0 or more"),
        ("poll.max_interval_s = 1e300", "poll.max_interval_s", "at most a year"),
        (r'url = "https://wrong.example/\u0000"', "url", "whole address"),
        (r'url = "https://wrong.example/\u001b[31m"', "url", "whole address"),
        ('url = "https://wrong.example/>a<b"', "url", "whole address"),
        (r'title = "red \u001b[31m"', "title", "one line"),
        (r'title = "nul \u0000"', "title", "one line"),
    ],
)
def test_a_wrong_value_is_named_with_file_line_and_what_is_allowed(folder, line, key, words):
    given = line.partition(" =")[0]
    others = {
        "source": 'source = "wrong-one"',
        "url": 'url = "https://wrong.example/rss.xml"',
    }
    body = "\n".join([text for name, text in others.items() if name != given])
    write(folder, f"{GOOD}\n# a remark\n[[source]]\n{body}\n{line}\n")
    catalogue = read_catalogue(folder)
    (problem,) = catalogue.problems
    at = (folder / "a.toml").read_text(encoding="utf-8").split("\n").index(line) + 1
    assert problem.file == f"{folder / 'a.toml'}:{at}"
    assert problem.key == key
    assert words in problem.allowed
    assert names(catalogue) == ["good-one"]


def test_a_key_in_a_table_of_a_source_is_found_on_its_line(folder):
    write(folder, f"{GOOD}\n[source.poll]\n\ninterval_s = 0 # too often\n")
    (problem,) = read_catalogue(folder).problems
    assert problem.file.endswith("a.toml:7")


def test_every_mistake_of_an_entry_is_told_at_once(folder):
    write(folder, '[[source]]\nsource = "Bad"\nurl = "x"\nkind = "y"\n')
    assert [problem.key for problem in read_catalogue(folder).problems] == ["source", "url", "kind"]


@pytest.mark.parametrize("key", ["source", "url"])
def test_a_missing_key_that_is_needed_is_named(folder, key):
    write(folder, "\n".join(line for line in GOOD.split("\n") if not line.startswith(key)))
    (problem,) = read_catalogue(folder).problems
    assert problem.key == key


def test_broken_toml_in_one_entry_leaves_the_others_of_its_file(folder):
    broken = '[[source]]\nsource = "broken\nurl = 3\n'
    after = GOOD.replace("good-one", "after").replace("rss", "x")
    write(folder, f"{GOOD}\n{broken}\n{after}")
    catalogue = read_catalogue(folder)
    assert names(catalogue) == ["good-one", "after"]
    (problem,) = catalogue.problems
    assert problem.file.endswith("a.toml:6")
    assert "TOML" in str(problem)


@pytest.mark.parametrize(
    "content",
    [GOOD.encode("utf-16"), b"\xff\xfe\x00", 'title = "Вести"'.encode("cp1251")],
    ids=["utf-16", "bytes", "cp1251"],
)
def test_a_file_that_is_not_utf8_is_named_and_the_others_load(folder, content):
    write(folder, GOOD, "a.toml")
    (folder / "b.toml").write_bytes(content)
    catalogue = read_catalogue(folder)
    assert names(catalogue) == ["good-one"]
    assert "UTF-8" in str(catalogue.problems[0])


def test_a_file_written_on_windows_is_read(folder):
    (folder / "a.toml").write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert names(read_catalogue(folder)) == ["good-one"]


def test_a_name_that_is_taken_is_refused_and_says_by_whom(folder):
    write(folder, GOOD, "a.toml")
    write(folder, GOOD.replace("good.example", "other.example"), "b.toml")
    catalogue = read_catalogue(folder)
    assert [source.url for source in catalogue.sources] == ["https://good.example/rss.xml"]
    (problem,) = catalogue.problems
    assert "b.toml:1" in problem.file
    assert "a.toml:1" in problem.allowed


def test_an_address_listed_twice_is_a_warning_and_both_load(folder):
    write(folder, GOOD)
    write(
        folder,
        GOOD.replace("good-one", "two").replace("https://good", "http://GOOD"),
        "b.toml",
    )
    catalogue = read_catalogue(folder)
    assert names(catalogue) == ["good-one", "two"]
    assert catalogue.problems == ()
    (warning,) = catalogue.warnings
    assert "good-one" in warning.allowed


def test_a_table_below_many_sources_that_belongs_to_none_is_refused(folder):
    write(folder, f"{GOOD}\n[poll]\ninterval_s = 60\n")
    catalogue = read_catalogue(folder)
    assert catalogue.sources == ()
    assert "[source.poll]" in str(catalogue.problems[0])


def test_a_floor_or_ceiling_alone_moves_the_interval_into_bounds(folder):
    write(folder, f"{GOOD}\n[source.poll]\nmin_interval_s = 1800\n")
    (source,) = read_catalogue(folder).sources
    assert source.poll.interval_s == 1800.0


def test_where_the_home_has_no_catalogue_the_packaged_one_is_read(tmp_path):
    catalogue = read_catalogue(read_settings(tmp_path, {}))
    assert catalogue.is_packaged
    assert len(catalogue.sources) >= 60
    assert read_catalogue().sources == catalogue.sources


def test_the_homes_own_catalogue_stands_alone_even_when_empty(folder, tmp_path):
    catalogue = read_catalogue(read_settings(tmp_path, {}))
    assert not catalogue.is_packaged
    assert catalogue.sources == ()


FULL = Source(
    source="new-one",
    title='The "New" One \\ новое',
    url="https://new.example/?a=1&b=2",
    kind="list",
    language="ru",
    timezone="Europe/Moscow",
    country="RU",
    tags=("world",),
    reach="trade",
    weight=1.5,
    poll=PollRules(interval_s=90.0, target_lag_s=30.0),
    list=ListRules(links="a > b", url_pattern=r"\d+/\"x\""),
    http=HttpRules(min_gap_s=0.5),
)


@pytest.mark.parametrize(
    "source", [FULL, Source("plain", "plain", "https://plain.example/")], ids=["full", "plain"]
)
def test_a_written_source_is_read_back_the_same(folder, source):
    path = write_source(folder, source)
    assert path == folder / ADDED_FILE
    (read,) = read_catalogue(folder).sources
    assert read == Source(
        **{**{f: getattr(source, f) for f in Source.__slots__}, "file": str(path)}
    )


def test_writing_makes_the_folder_and_keeps_what_people_wrote(tmp_path):
    folder = tmp_path / "new" / "sources"
    write_source(folder, FULL)
    path = folder / ADDED_FILE
    mine = "# my remark\n" + path.read_text(encoding="utf-8") + "weight = 1 # no! [[source]]\n"
    mine = mine.replace("weight = 1 #", "# weight = 1 #")
    path.write_text(mine, encoding="utf-8")
    write_source(folder, Source("another", "Another", "https://another.example/"))
    assert path.read_text(encoding="utf-8").startswith(mine.rstrip())
    assert names(read_catalogue(folder)) == ["new-one", "another"]


def test_a_name_that_is_taken_is_not_written(folder):
    write(folder, GOOD)
    with pytest.raises(ConfigError, match="there already"):
        write_source(folder, Source("good-one", "x", "https://x.example/"))
    assert not (folder / ADDED_FILE).exists()


@pytest.mark.parametrize(
    "before",
    ['[[source]]\nsource = "broken\n', 'source = "one"\nurl = "https://one.example/"\n'],
    ids=["broken", "single"],
)
def test_a_file_that_cannot_take_more_is_left_untouched(folder, before):
    write(folder, before, ADDED_FILE)
    with pytest.raises(ConfigError, match="nothing was added"):
        write_source(folder, FULL)
    assert (folder / ADDED_FILE).read_text(encoding="utf-8") == before


def test_a_source_that_is_not_valid_is_not_written(folder):
    with pytest.raises(ConfigError, match="url"):
        write_source(folder, Source("wrong", "Wrong", "no address"))
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_an_error_in_words(tmp_path):
    (tmp_path / "data").write_text("a file where the folder should be", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot be written"):
        write_source(tmp_path / "data" / "sources", FULL)


def test_many_writers_at_once_lose_nothing(folder):
    def add(number: int) -> None:
        write_source(folder, Source(f"s{number:02}", "S", f"https://s{number}.example/"))

    threads = [threading.Thread(target=add, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(names(read_catalogue(folder))) == [f"s{number:02}" for number in range(12)]
    assert [path.name for path in Path(folder).iterdir()] == [ADDED_FILE]


@pytest.mark.report("RSS-Bridge/rss-bridge#4520")
def test_white_space_around_an_address_is_trimmed(folder):
    write(folder, GOOD.replace("rss.xml", "rss.xml \\t ").replace('"good-one"', '" good-one "'))
    catalogue = read_catalogue(folder)
    assert catalogue.problems == ()
    assert (catalogue.sources[0].url, catalogue.sources[0].source) == (
        "https://good.example/rss.xml",
        "good-one",
    )


@pytest.mark.report("RSS-Bridge/rss-bridge#4520")
def test_white_space_inside_an_address_is_named(folder):
    write(folder, GOOD.replace("rss.xml", "my rss.xml"))
    (problem,) = read_catalogue(folder).problems
    assert problem.key == "url"
    assert "whole address" in problem.allowed


@pytest.mark.parametrize(
    ("kind", "url", "says"),
    [
        ("telegram", "https://t.me/+AbCdEf", "needs an invitation"),
        ("youtube", "https://www.youtube.com/@harbour", "`newsbeat add` finds an @NAME's"),
        ("reddit", "https://www.reddit.com/", "/r/NAME"),
    ],
)
def test_an_address_that_no_public_listing_follows_from_is_named(folder, kind, url, says):
    write(folder, f'[[source]]\nsource = "a-b"\nkind = "{kind}"\nurl = "{url}"\n')
    (problem,) = read_catalogue(folder).problems
    assert problem.key == "url"
    assert says in problem.allowed


@pytest.mark.report("mediacloud/backend#189")
def test_a_channel_and_its_public_listing_are_one_address(folder):
    write(
        folder,
        '[[source]]\nsource = "one"\nurl = "https://t.me/harbour"\n'
        '[[source]]\nsource = "two"\nkind = "telegram"\nurl = "https://t.me/s/harbour"\n',
    )
    (warning,) = read_catalogue(folder).warnings
    assert "asked twice" in warning.allowed
