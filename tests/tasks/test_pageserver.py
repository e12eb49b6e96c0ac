"""Who may look at the status page, and what a browser is told of it."""

import base64
import socket

import httpx
import pytest

from models.errors import ConfigError
from tasks.pageserver import Answer, PageServer
from tasks.settings import PageSettings

TOKEN = "correct-horse-battery-staple"


def answers(path, query):
    if path == "/broken":
        raise RuntimeError("a mistake of ours")
    if path == "/table":
        return Answer(b"a,b", "text/csv", policy="default-src 'none'", file_name="table.csv")
    return Answer(f"<p>{path} {sorted(query.items())}</p>" + "." * 3000)


@pytest.fixture(scope="module")
def page():
    with PageServer(PageSettings(port=0), answers) as server:
        yield server


@pytest.fixture(scope="module")
def guarded():
    with PageServer(PageSettings(host="0.0.0.0", port=0, token=TOKEN), answers) as server:
        yield server


def get(server, path="", **headers):
    return httpx.get(server.url + path, headers=headers, trust_env=False)


def test_a_page_is_served_with_its_query(page):
    answer = get(page, "a/b?x=1&y=2")
    assert answer.status_code == 200
    assert answer.text.startswith("<p>/a/b [('x', '1'), ('y', '2')]</p>")


def test_a_page_may_load_nothing_from_elsewhere_and_run_nothing_of_its_own(page):
    policy = get(page).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert get(page).headers["x-content-type-options"] == "nosniff"
    assert get(page).headers["referrer-policy"] == "no-referrer"


def test_what_has_not_changed_is_not_sent_again(page):
    first = get(page, "a")
    again = get(page, "a", **{"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert get(page, "b", **{"If-None-Match": first.headers["etag"]}).status_code == 200


def test_a_page_is_sent_compressed(page):
    assert get(page).headers["content-encoding"] == "gzip"


def test_head_is_answered_and_what_changes_things_is_not(page):
    assert httpx.head(page.url, trust_env=False).status_code == 200
    assert httpx.post(page.url, trust_env=False).status_code == 405
    assert httpx.put(page.url, trust_env=False).status_code == 405


def test_a_file_is_saved_under_its_name_and_may_load_nothing(page):
    answer = get(page, "table")
    assert answer.headers["content-disposition"] == 'attachment; filename="table.csv"'
    assert answer.headers["content-security-policy"] == "default-src 'none'"


@pytest.mark.parametrize("path", ["../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "a%00b", "%ff"])
def test_odd_addresses_are_only_words(page, path):
    assert get(page, path).status_code == 200


def test_a_mistake_of_ours_tells_strangers_nothing(page):
    answer = get(page, "broken")
    assert answer.status_code == 500
    assert "mistake" not in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:99", "[::1]:4300"])
def test_names_of_this_machine_are_answered(page, host):
    assert get(page, Host=host).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:4300", "10.0.0.1"])
def test_another_name_that_leads_here_is_refused(page, host):
    assert get(page, Host=host).status_code == 421


def test_without_a_token_only_this_machine_is_served():
    for host in ("0.0.0.0", "::", "192.0.2.7", "news.example"):
        with pytest.raises(ConfigError, match=r"page\.token"):
            PageServer(PageSettings(host=host), answers)


def test_with_a_token_only_those_who_know_it_are_answered(guarded):
    refused = get(guarded)
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Basic")
    assert refused.text == "the token is the password; any name will do"
    assert get(guarded, Authorization="Bearer wrong").status_code == 401
    assert get(guarded, Authorization="Basic ???").status_code == 401
    assert get(guarded, Authorization="Basic").status_code == 401


@pytest.mark.parametrize("kind", ["Bearer", "bearer", "Basic"])
def test_the_token_lets_in_as_bearer_or_password(guarded, kind):
    words = TOKEN if kind != "Basic" else base64.b64encode(f"me:{TOKEN}".encode()).decode()
    answer = get(guarded, Authorization=f"{kind} {words}", Host="news.example")
    assert answer.status_code == 200


def test_a_taken_port_sends_it_to_another():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with PageServer(PageSettings(port=port), answers) as server:
            assert server.is_elsewhere
            assert get(server).status_code == 200


def test_an_address_of_no_interface_is_refused():
    with pytest.raises(ConfigError, match="nothing can listen there"):
        PageServer(PageSettings(host="192.0.2.7", token=TOKEN), answers).start()
