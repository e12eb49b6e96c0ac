from __future__ import annotations

import socket
from collections.abc import Iterable
from typing import Any

import httpcore
import pytest

from models.errors import ConfigError, RefusedFetchError, TransientFetchError
from tasks.guard import (
    GuardedBackend,
    Resolver,
    connected,
    is_loopback_host,
    is_own_network,
    refuse_address,
    split_host_port,
)

PUBLIC = "93.184.216.34"


class Network(httpcore.AsyncMockBackend):
    """Connects nowhere, and notes where to; addresses in `dead` do not answer."""

    def __init__(self, dead: Iterable[str] = ()) -> None:
        super().__init__([])
        self.made: list[tuple[str, int]] = []
        self.dead = set(dead)

    async def connect_tcp(
        self, host: str, port: int, *args: Any, **kwargs: Any
    ) -> httpcore.AsyncNetworkStream:
        self.made.append((host, port))
        if host in self.dead:
            raise httpcore.ConnectError("dead")
        return await super().connect_tcp(host, port)


class Names:
    """A resolver that gives the next of its answers at each call."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        return self.answers.pop(0)


@pytest.mark.parametrize(
    ("address", "word"),
    [
        ("127.0.0.1", "loopback"),
        ("127.8.8.8", "loopback"),
        ("::1", "loopback"),
        ("0.0.0.0", "unspecified"),
        ("::", "unspecified"),
        ("0.1.2.3", "private"),
        ("10.0.0.1", "private"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("fc00::1", "private"),
        ("fd12:3456::1", "private"),
        ("fec0::1", "private"),
        ("169.254.169.254", "link-local"),
        ("fe80::1", "link-local"),
        ("fe80::1%eth0", "link-local"),
        ("100.64.0.1", "carrier-grade NAT"),
        ("100.127.255.255", "carrier-grade NAT"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.255", "multicast"),
        ("ff02::1", "multicast"),
        ("192.0.2.1", "private"),
        ("198.18.0.1", "private"),
        ("203.0.113.9", "private"),
        ("240.0.0.1", "private"),
        ("255.255.255.255", "private"),
        ("2001:db8::1", "private"),
        ("4000::1", "reserved"),
        ("::7f00:1", "reserved"),
        ("::ffff:127.0.0.1", "IPv4-mapped"),
        ("::ffff:10.0.0.1", "IPv4-mapped"),
        ("::ffff:93.184.216.34", "IPv4-mapped"),
        ("::ffff:0:7f00:1", "IPv4-translated"),
        ("2002:7f00:1::", "6to4"),
        ("2002:5db8:d822::1", "6to4"),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "Teredo"),
        ("64:ff9b::7f00:1", "leads to 127.0.0.1"),
        ("64:ff9b::a9fe:a9fe", "leads to 169.254.169.254"),
        ("64:ff9b:1::a00:1", "local NAT64"),
    ],
)
def test_an_address_off_the_public_net_is_refused(address: str, word: str) -> None:
    assert word in (refuse_address(address) or "")


@pytest.mark.parametrize(
    "address", [PUBLIC, "172.15.0.1", "172.32.0.1", "100.63.0.1", "100.128.0.1", "2606:4700::1"]
)
def test_a_public_address_is_not_refused(address: str) -> None:
    assert refuse_address(address) is None


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.0.0.1", "fd00::1", "100.64.0.1"])
def test_an_address_of_ones_own_network_can_be_allowed(address: str) -> None:
    assert refuse_address(address)
    assert refuse_address(address, allow_private=True) is None


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "fe80::1", "224.0.0.1", "ff02::1", "0.0.0.0", "::", "::ffff:10.0.0.1",
     "2002:7f00:1::", "64:ff9b::a9fe:a9fe", "2001:0:4136:e378:8000:63bf:3fff:fdd2"],
)  # fmt: skip
def test_what_is_nobodys_network_is_never_allowed(address: str) -> None:
    assert refuse_address(address, allow_private=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "192.168.0.9", "10.0.0.1."])
def test_a_host_of_ones_own_network_is_known_by_its_spelling(host: str) -> None:
    assert is_own_network(host)


@pytest.mark.parametrize(
    "host", ["", "a.example", PUBLIC, "169.254.169.254", "intranet", "0.0.0.0"]
)
def test_any_other_host_is_not(host: str) -> None:
    assert not is_own_network(host)


def test_an_ipv4_address_behind_nat64_is_judged_itself() -> None:
    assert refuse_address("64:ff9b::5db8:d822") is None


async def test_the_connection_is_made_to_the_address_that_was_judged() -> None:
    network, names = Network(), Names([PUBLIC], ["127.0.0.1"])
    backend = GuardedBackend(names, network=network)
    await backend.connect_tcp("rebinding.example", 80)
    assert (names.asked, network.made) == (["rebinding.example"], [(PUBLIC, 80)])
    with pytest.raises(RefusedFetchError, match="loopback"):
        await backend.connect_tcp("rebinding.example", 80)
    assert network.made == [(PUBLIC, 80)]


async def test_private_addresses_among_public_ones_are_never_tried() -> None:
    network = Network(dead=[PUBLIC])
    backend = GuardedBackend(Names(["10.0.0.1", PUBLIC, "::1"]), network=network)
    with pytest.raises(httpcore.ConnectError):
        await backend.connect_tcp("mixed.example", 443)
    assert network.made == [(PUBLIC, 443)]


async def test_the_next_address_is_tried_when_one_does_not_answer() -> None:
    network = Network(dead=["2606:4700::1"])
    made: list[str] = []
    connected.set(made)
    backend = GuardedBackend(Names(["2606:4700::1", PUBLIC]), network=network)
    await backend.connect_tcp("two.example", 80)
    assert network.made == [("2606:4700::1", 80), (PUBLIC, 80)]
    assert made == [PUBLIC]


async def test_a_literal_address_is_judged_without_a_look_up() -> None:
    backend = GuardedBackend(Names(), network=Network())
    with pytest.raises(RefusedFetchError, match="link-local"):
        await backend.connect_tcp("169.254.169.254", 80)


async def test_another_spelling_of_loopback_is_judged_by_what_it_resolves_to() -> None:
    resolver = Resolver()
    backend = GuardedBackend(resolver, network=Network())
    with pytest.raises(RefusedFetchError, match="loopback"):
        await backend.connect_tcp("0x7f.1", 80)
    resolver.close()


async def test_the_place_connected_to_instead_is_judged_too() -> None:
    network = Network()
    backend = GuardedBackend(Names(), connect_to=("127.0.0.1", 8080), network=network)
    with pytest.raises(RefusedFetchError, match="loopback"):
        await backend.connect_tcp("public.example", 443)
    allowed = GuardedBackend(
        Names(), allow_private=True, connect_to=("127.0.0.1", 8080), network=network
    )
    await allowed.connect_tcp("public.example", 443)
    assert network.made == [("127.0.0.1", 8080)]


@pytest.mark.parametrize(
    "failure", [socket.gaierror(-2, "Name or service not known"), UnicodeError("label too long")]
)
async def test_a_name_that_does_not_resolve_is_transient(failure: Exception) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        raise failure

    with pytest.raises(TransientFetchError, match=r"gone\.example does not resolve"):
        await GuardedBackend(resolve, network=Network()).connect_tcp("gone.example", 80)


async def test_a_name_without_addresses_cannot_be_connected_to() -> None:
    with pytest.raises(httpcore.ConnectError, match="no address"):
        await GuardedBackend(Names([]), network=Network()).connect_tcp("empty.example", 80)


async def test_a_local_socket_is_refused() -> None:
    with pytest.raises(RefusedFetchError):
        await GuardedBackend(Names()).connect_unix_socket("/run/some.sock")


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost", "LOCALHOST.", "a.localhost"])
def test_names_of_this_machine_are_known(host: str) -> None:
    assert is_loopback_host(host)


@pytest.mark.parametrize("host", ["localhost.example", "10.0.0.1", "example.org"])
def test_other_names_are_not_this_machine(host: str) -> None:
    assert not is_loopback_host(host)


@pytest.mark.parametrize("text", ["", "host", "host:", ":80", "host:http", "host:0", "host:65536"])
def test_a_connect_to_without_host_or_port_is_a_config_error(text: str) -> None:
    with pytest.raises(ConfigError, match="host:port"):
        split_host_port(text)
