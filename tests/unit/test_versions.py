"""The table of releases, and the version that both sides have."""

from __future__ import annotations

import pytest

from kwire import messages, schema, versions
from kwire.errors import ProtocolError, UnsupportedVersionError
from kwire.schema.keys import ApiKey
from kwire.schema.model import Versions


def response(rows: dict[int, tuple[int, int]], error: int = 0) -> messages.ApiVersionsResponse:
    kind = messages.ApiVersionsResponse
    listed = [kind.ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in rows.items()]
    return kind(error_code=error, api_keys=listed)


# --- releases


def test_releases_go_from_the_first_to_the_newest() -> None:
    assert versions.releases()[:5] == ("0.8.0", "0.8.1", "0.8.2", "0.9.0", "0.10.0")
    assert versions.releases()[-5:] == ("4.0", "4.1", "4.2", "4.3", "4.4")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("0.10.1", "0.10.1"),
        ("0.10.1.1", "0.10.1"),
        ("3.9", "3.9"),
        ("3.9.2", "3.9"),
        ("4.0.0", "4.0.0"),
        ("4.0.1", "4.0"),
    ],
)
def test_a_patch_release_is_its_line(name: str, line: str) -> None:
    assert versions.release_name(name) == line


@pytest.mark.parametrize("name", ["", "5.0", "0.7", "3", "0.10", "3.9.2.1.1", "latest", "4.x", "v3.9"])
def test_an_unknown_release_is_an_error_that_names_the_known_ones(name: str) -> None:
    with pytest.raises(UnsupportedVersionError, match=r"is not known, 0\.8\.0 to 4\.4 are"):
        versions.accepted(name)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("4", "4.0"), ("3", "3.0"), ("0.10", "0.10.0"), ("v3.9", "3.9"), ("4.9", "4.4"), ("5.5", None), ("latest", None)],
)
def test_an_unknown_release_is_an_error_that_names_the_nearest(name: str, hint: str | None) -> None:
    with pytest.raises(UnsupportedVersionError) as error:
        versions.release_name(name)
    assert str(error.value).partition("; ")[2] == ("" if hint is None else f"did you mean {hint}?")


@pytest.mark.parametrize(
    ("release", "api", "low", "high"),
    [
        ("0.8.0", ApiKey.PRODUCE, 0, 0),
        ("0.8.2", ApiKey.OFFSET_COMMIT, 0, 1),
        ("0.9.0", ApiKey.CONTROLLED_SHUTDOWN, 0, 1),
        ("0.10.1", ApiKey.FETCH, 0, 3),
        ("0.10.1", ApiKey.METADATA, 0, 2),
        ("2.4", ApiKey.API_VERSIONS, 0, 3),
        ("3.9", ApiKey.FETCH, 0, 17),
        ("4.0.0", ApiKey.JOIN_GROUP, 2, 9),
        ("4.0", ApiKey.JOIN_GROUP, 0, 9),
        ("4.4", ApiKey.PRODUCE, 3, 13),
    ],
)
def test_what_a_release_accepts(release: str, api: int, low: int, high: int) -> None:
    assert versions.accepted(release)[api] == Versions(low, high)


def test_what_is_announced_is_not_always_accepted() -> None:
    assert versions.announced("4.4")[0] == Versions(0, 13)
    assert versions.announced("0.11.0")[7] == Versions(1, 1)
    assert versions.announced("3.9") == versions.accepted("3.9")


def test_who_listens_makes_a_difference() -> None:
    assert ApiKey.VOTE in versions.accepted("3.9", "controller")
    assert ApiKey.VOTE not in versions.accepted("3.9")
    assert ApiKey.LEADER_AND_ISR in versions.accepted("3.9")
    assert ApiKey.LEADER_AND_ISR not in versions.accepted("3.9", "broker")
    assert ApiKey.UNREGISTER_BROKER not in versions.accepted("3.2", "broker")
    assert not versions.accepted("4.0", "zookeeper")
    assert not versions.accepted("2.7", "broker")
    assert ApiKey.LEADER_AND_ISR not in versions.accepted("4.0")


def test_an_api_that_is_not_there_yet_is_not_there() -> None:
    assert ApiKey.API_VERSIONS not in versions.accepted("0.9.0")
    assert ApiKey.JOIN_GROUP not in versions.accepted("0.8.2")  # its core has a parser for it, and no handler


def test_every_version_of_the_table_has_a_schema() -> None:
    for release in versions.releases():
        for listener in ("zookeeper", "broker", "controller"):
            for key, served in versions.accepted(release, listener).items():  # type: ignore[arg-type]
                message = schema.request(key)
                assert message is not None
                assert served.low in message.versions
                assert served.high in message.versions, (release, key)


def test_kafka_4_of_the_schemas_is_the_newest_release_of_the_table() -> None:
    accepted = dict(versions.accepted("4.4")) | dict(versions.accepted("4.4", "controller"))
    for key in schema.api_keys():
        message = schema.request(key)
        assert message is not None
        assert accepted.get(key, Versions(1, 0)) == message.kafka4, message.name


def test_which_releases_accept_a_version() -> None:
    assert versions.accepting("Produce", 0) == versions.releases()[: versions.releases().index("4.0.0")]
    assert "4.0.0" not in versions.accepting("JoinGroup", 1)
    assert versions.accepting(ApiKey.JOIN_GROUP, 1)[-1] == "4.4"
    assert versions.accepting("Fetch", 99) == ()
    assert versions.accepting(4711, 0) == ()


def test_apis_are_found_by_name() -> None:
    assert versions.api_key("Fetch") == versions.api_key("FETCH") == versions.api_key(1) == 1
    with pytest.raises(UnsupportedVersionError, match="no API 'Fetsch': did you mean 'Fetch'"):
        versions.api_key("Fetsch")


# --- client and broker


def test_the_newest_version_that_both_have_is_chosen() -> None:
    newest = schema.request(1)
    assert newest is not None
    assert versions.choose(response({1: (0, 99), 3: (2, 5)})) == {1: newest.versions.high, 3: 5}


def test_without_a_common_version_an_api_is_left_out_unless_it_is_wanted() -> None:
    rows = response({1: (90, 99), 3: (2, 5), 999: (0, 1)})
    assert versions.choose(rows) == {3: 5}
    with pytest.raises(UnsupportedVersionError, match=r"Fetch: the broker has versions 90-99, 0-18 are wanted"):
        versions.choose(rows, ["Fetch"])
    with pytest.raises(UnsupportedVersionError, match="Produce: the broker does not have it"):
        versions.choose(rows, [0])
    with pytest.raises(UnsupportedVersionError, match="API key 999: no version can be used"):
        versions.choose(rows, [999])


def test_wanted_versions() -> None:
    rows = response({1: (0, 17), 3: (0, 12)})
    assert versions.choose(rows, ["Fetch"]) == {1: 17}
    assert versions.choose(rows, {"Fetch": 4, "METADATA": (1, 9)}) == {1: 4, 3: 9}
    assert versions.choose(rows, {1: Versions(0, 11)}) == {1: 11}
    with pytest.raises(UnsupportedVersionError, match="the broker has versions 0-12, 13 are wanted"):
        versions.choose(rows, {3: (13, 99)})


def test_a_pin_takes_nothing_newer_than_that_release_has() -> None:
    chosen = versions.choose(versions.announced("3.9"), pin="0.10.1")
    assert chosen == {key: ours.high for key, ours in versions.accepted("0.10.1").items()}
    assert versions.choose(versions.announced("0.9.0"), pin="4.0")[ApiKey.PRODUCE] == 1
    assert versions.choose(versions.announced("4.0"), {"Fetch": 11}, pin="3.9") == {1: 11}


def test_a_pin_to_a_release_that_a_broker_no_longer_serves_is_an_error_that_says_so() -> None:
    with pytest.raises(
        UnsupportedVersionError, match=r"Produce: the broker has versions 3-13, 0-2 are wanted, pinned to 0\.10\.1"
    ):
        versions.choose(versions.announced("4.4"), ["Produce"], pin="0.10.1")
    assert ApiKey.PRODUCE not in versions.choose(versions.announced("4.4"), pin="0.10.1")


def test_an_api_that_the_pinned_release_does_not_have_cannot_be_used() -> None:
    with pytest.raises(UnsupportedVersionError, match=r"InitProducerId: no version can be used, pinned to 0\.10\.1"):
        versions.choose(versions.announced("3.9"), ["InitProducerId"], pin="0.10.1")


def test_what_kafka_4_announces_and_does_not_serve_is_not_chosen() -> None:
    assert versions.served(versions.announced("4.4"))[0] == Versions(3, 13)
    # A broker that still has Fetch v0 serves what it says.
    assert versions.served(versions.announced("3.9"))[0] == Versions(0, 11)
    assert versions.served(response({0: (0, 13)}))[0] == Versions(0, 13)


def test_an_api_that_is_listed_twice_has_what_both_lines_say() -> None:
    rows = response({1: (0, 17)})
    rows.api_keys = [*rows.api_keys, *response({1: (4, 20)}).api_keys]
    assert versions.choose(rows) == {1: 17}
    rows.api_keys = [*rows.api_keys, *response({1: (18, 18)}).api_keys]
    assert versions.choose(rows) == {}


def test_ranges_of_nonsense_are_no_versions() -> None:
    assert versions.choose(response({1: (5, 3), 3: (-32768, -1), -7: (0, 0)})) == {}


def test_an_answer_with_an_error_is_not_chosen_from() -> None:
    with pytest.raises(ProtocolError, match="holds error 35: see ask_again"):
        versions.choose(response({}, error=35))
    with pytest.raises(ProtocolError, match="holds error 42"):
        versions.choose(response({1: (0, 4)}, error=42))


# --- the fallback of ApiVersions


@pytest.mark.parametrize(
    ("rows", "asked", "again"),
    [
        ({}, 3, 0),  # 0.10.0 to 2.3: no lines with the error
        ({18: (0, 3)}, 5, 3),  # from 2.4 on
        ({18: (0, 3), 1: (0, 1)}, 4, 3),
        ({18: (0, 99)}, 5, 4),  # never what was refused
    ],
)
def test_which_version_to_ask_again_with(rows: dict[int, tuple[int, int]], asked: int, again: int) -> None:
    assert versions.ask_again(response(rows, error=35), asked) == again


def test_an_answer_is_not_asked_for_again() -> None:
    assert versions.ask_again(response({18: (0, 3)}), 3) is None
    assert versions.ask_again(response({}, error=42), 3) is None


def test_a_broker_that_refuses_every_version_is_an_error() -> None:
    with pytest.raises(ProtocolError, match="no older version"):
        versions.ask_again(response({}, error=35), 0)
    with pytest.raises(ProtocolError, match="no older version"):
        versions.ask_again(response({18: (7, 9)}, error=35), 5)
