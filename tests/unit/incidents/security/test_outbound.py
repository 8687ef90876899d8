"""Addresses that Dossier may send to, when a person typed them."""

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st
from urllib3.connection import HTTPConnection
from urllib3.exceptions import ConnectTimeoutError

from incidents.security import outbound
from incidents.security.outbound import AddressRefusedError, check, target


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
        "169.254.169.254", "100.64.0.1", "100.100.100.200", "192.0.0.192", "168.63.129.16", "198.18.0.1",
        "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "192.0.2.1",
        "::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "2002:7f00:1::", "2002:a00:1::1",
        "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:1", "2001:0:4136:e378:8000:63bf:f5ff:fffe",
    ],
)  # fmt: skip
def test_what_is_not_public_is_refused(address: str) -> None:
    with pytest.raises(AddressRefusedError, match="DOSSIER_OUTBOUND_ALLOWED_NETWORKS"):
        check(ip_address(address))


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.215.14", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
)
def test_what_is_public_is_allowed(address: str) -> None:
    check(ip_address(address))


def test_a_network_of_the_house_is_allowed_by_its_name() -> None:
    check(ip_address("10.20.3.4"), [ip_network("10.20.0.0/16")])


def test_allowing_one_network_does_not_allow_its_neighbour() -> None:
    with pytest.raises(AddressRefusedError):
        check(ip_address("10.21.0.1"), [ip_network("10.20.0.0/16")])


def test_a_mapped_address_is_judged_as_what_it_maps() -> None:
    check(ip_address("::ffff:10.20.0.1"), [ip_network("10.20.0.0/16")])


def test_allowing_ipv6_does_not_allow_ipv4_inside_it() -> None:
    with pytest.raises(AddressRefusedError, match=r"that is 10\.0\.0\.1"):
        check(ip_address("::ffff:10.0.0.1"), [ip_network("::/0")])


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://example.com/", "must begin with http"),
        ("example.com", "must begin with http"),
        ("file:///etc/passwd", "must begin with http"),
        ("gopher://example.com:70/", "must begin with http"),
        ("http://", "has no host"),
        ("http:///path", "has no host"),
        ("https://alice:secret@example.com/", "credentials"),
        ("https://example.com@10.0.0.1/", "credentials"),
        ("https://example.com:22/", "port 22"),
        ("https://example.com:6379/", "port 6379"),
        ("https://example.com:0/", "port 0"),
        ("https://example.com:99999/", "not a URL"),
        ("https://example.com:x/", "not a URL"),
        ("https://[::1/", "not a URL"),
        ("https://example.com/a b", "control character"),
        ("https://example.com/\r\nHost: evil", "control character"),
        ("https://example.com/\x00", "control character"),
        ("https://exa\tmple.com/", "control character"),
        ("https://example.com\\@10.0.0.1/", "control character"),
        ("https://example.com/über", "outside ASCII"),
        ("https://" + "a" * 70 + ".com/", "not a host name"),
        ("https://example.com/" + "a" * 3_000, "at most 2000"),
    ],
)
def test_what_is_no_plain_web_address_is_refused_with_the_reason(url: str, why: str) -> None:
    with pytest.raises(AddressRefusedError, match=why):
        target(url)


def test_a_url_comes_apart_into_what_a_request_needs() -> None:
    goal = target("https://Hooks.Example.com:8443/a/b?c=d#e")
    assert (goal.scheme, goal.host, goal.port, goal.path) == ("https", "hooks.example.com", 8443, "/a/b?c=d")
    assert goal.authority == "hooks.example.com:8443"


def test_the_host_header_leaves_the_usual_port_out_and_brackets_ipv6() -> None:
    assert target("https://example.com").authority == "example.com"
    assert target("http://[2606:4700::1111]:8080/").authority == "[2606:4700::1111]:8080"


def test_a_name_in_other_letters_becomes_what_the_dns_knows() -> None:
    assert target("https://bücher.example/").host == "xn--bcher-kva.example"


@given(st.text(max_size=80))
def test_any_text_is_a_target_or_refused(text: str) -> None:
    try:
        goal = target("http://" + text)
    except AddressRefusedError:
        return
    assert goal.host
    assert goal.path.startswith("/")


@given(st.integers(0, 2**32 - 1))
def test_every_ipv4_address_that_is_not_global_is_refused_also_when_mapped(number: int) -> None:
    address = ip_address(number)
    if address.is_global:
        return
    for shown in (address, ip_address(f"::ffff:{address}")):
        with pytest.raises(AddressRefusedError):
            check(shown)


def test_a_connection_that_timed_out_is_reported_without_an_address_in_memory() -> None:
    connection = HTTPConnection("pager.example.com")
    error = ConnectTimeoutError(connection, "Connection to pager.example.com timed out.")
    assert outbound._reason(error) == "Connection to pager.example.com timed out."
