"""Which versions of which APIs brokers of a release accept, and a client and a broker both have.

Every request names its API and a version of it; client and broker must have that version. A broker says which it has in
its answer to ApiVersions (KIP-35, since 0.10.0). The client takes the newest that both have::

    chosen = versions.choose(response)                     # {0: 12, 1: 17, ...}: API key -> version
    chosen = versions.choose(response, pin="0.10.1")       # nothing that is newer than Kafka 0.10.1
    chosen = versions.choose(versions.announced("0.9.0"))  # a broker without ApiVersions

``accepted(release)`` is what brokers of a release serve, from 0.8.0 to the newest. ``announced`` is what they say that
they serve. ``accepting`` are the releases that serve one version. The table is ``schemas/releases.txt``, made of the
classes of each release (``tests/kafka/releases.py``).

Rules kept here:

- What is announced is not always served. 4.x announces Produce v0-2 for the sake of an old librdkafka, and answers them
  with an error (KAFKA-18659). ``choose`` does not take what such a broker does not serve.
- A release is named by its line (``3.9``, ``0.10.1``) or by one of its patch releases (``3.9.2``, ``0.10.1.1``). Patch
  releases of one line accept the same. The exception is 4.0.0, which refused JoinGroup v0-1. A line means its last
  patch release.
- A broker that does not know the version of an ApiVersions request answers in v0 with error 35 (KIP-511). ``ask_again``
  says which version to ask with then. What is older than 0.10.0 closes the connection instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, Literal

from kwire import schema
from kwire.errors import ProtocolError, SchemaError, UnsupportedVersionError
from kwire.naming import meant, no_such
from kwire.schema.keys import ApiKey
from kwire.schema.loader import builtin_root
from kwire.schema.model import NO_VERSIONS, Versions

__all__ = [
    "Listener",
    "accepted",
    "accepting",
    "announced",
    "api_key",
    "ask_again",
    "choose",
    "release_name",
    "releases",
    "served",
]

Listener = Literal["zookeeper", "broker", "controller"]
"""Who listens: a broker that uses ZooKeeper (to 3.9), a KRaft broker (from 2.8), a KRaft controller."""

_UNSUPPORTED_VERSION: Final = 35
_FILE: Final = "releases.txt"
_RELEASE: Final = re.compile(r"\d+(\.\d+){1,3}")

Wanted = Iterable[int | str] | Mapping[int | str, "int | tuple[int, int] | Versions"]


# --- the table ------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _table() -> tuple[tuple[str, ...], dict[str, dict[int, dict[str, tuple[Versions, Versions]]]]]:
    """The releases, and of each listener by API key: the release since which -> accepted, announced."""
    text = builtin_root().joinpath(_FILE).read_bytes().decode()
    names: tuple[str, ...] = ()
    found: dict[str, dict[int, dict[str, tuple[Versions, Versions]]]] = {}
    key = -1
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        first, _, rest = line.strip().partition(" ")
        if first == "releases":
            names = tuple(rest.split())
        elif not line.startswith(" "):
            key = int(first)
        else:
            since = found.setdefault(first, {}).setdefault(key, {})
            for part in rest.split(","):
                name, _, ranges = part.strip().partition(" ")
                if name not in names:
                    raise SchemaError(f"no release {name}", f"schemas/{_FILE}", number)
                served, _, said = ranges.partition("/")
                since[name] = _range(served), _range(said or served)
    return names, found


def _range(text: str) -> Versions:
    if text == "-":
        return NO_VERSIONS
    low, _, high = text.partition("-")
    return Versions(int(low), int(high or low))


def releases() -> tuple[str, ...]:
    """The releases of the table, oldest first: each line (``0.10.1``, ``3.9``), and ``4.0.0``, unlike its own line."""
    return _table()[0]


def release_name(release: str) -> str:
    """The release of the table that ``release`` is: ``3.9`` for 3.9.2.

    Raises ``UnsupportedVersionError`` for an unknown one.
    """
    names = releases()
    if release in names:
        return release
    if _RELEASE.fullmatch(release):
        parts = release.split(".")
        line = ".".join(parts[: 3 if parts[0] == "0" else 2])
        if line in names and release != line:
            return line
    given = release.lstrip("v")
    # Of another major release none is meant.
    near = next((one for one in (given, f"{given}.0") if one in names), None) or meant(
        given, [one for one in names if one.partition(".")[0] == given.partition(".")[0]]
    )
    hint = "" if near is None else f"; did you mean {near}?"
    raise UnsupportedVersionError(f"release {release!r} is not known, {names[0]} to {names[-1]} are{hint}")


def accepted(release: str, listener: Listener | None = None) -> Mapping[int, Versions]:
    """API key -> the versions that brokers of ``release`` serve as installed.

    Versions that must be enabled first are not among them.

    ``listener``: None is what a broker accepts of whichever kind, with ZooKeeper or KRaft. Raises
    ``UnsupportedVersionError`` for an unknown release.
    """
    return _of(release_name(release), listener)[0]


def announced(release: str, listener: Listener | None = None) -> Mapping[int, Versions]:
    """API key -> the versions that brokers of ``release`` say that they serve.

    Of releases before 0.10.0, which cannot say so, what they accept. Otherwise as ``accepted``.
    """
    return _of(release_name(release), listener)[1]


@lru_cache(maxsize=256)
def _of(release: str, listener: Listener | None) -> tuple[Mapping[int, Versions], Mapping[int, Versions]]:
    names, table = _table()
    place = names.index(release)
    served: dict[int, Versions] = {}
    said: dict[int, Versions] = {}
    for one in (listener,) if listener else ("zookeeper", "broker"):
        # The table says nothing of ZooKeeper from the release on that has none.
        if one == "zookeeper" and place >= names.index("4.0.0"):
            continue
        for key, since in table.get(one, {}).items():
            now = [pair for name, pair in since.items() if names.index(name) <= place]
            if now and now[-1][0]:
                served[key], said[key] = now[-1]
    return MappingProxyType(dict(sorted(served.items()))), MappingProxyType(dict(sorted(said.items())))


def accepting(api: int | str, version: int, listener: Listener | None = None) -> tuple[str, ...]:
    """The releases whose brokers serve a version of an API, oldest first; empty when none does."""
    key = api_key(api)
    return tuple(one for one in releases() if version in accepted(one, listener).get(key, NO_VERSIONS))


def api_key(api: int | str) -> int:
    """The key of an API by its name, as ``kwire.schema.api_keys`` or ``ApiKey`` has it.

    A key stays what it is.

    Raises ``UnsupportedVersionError`` for a name that no API has.
    """
    if isinstance(api, int):
        return int(api)
    for key, name in schema.api_keys().items():
        if api == name:
            return key
    if api in ApiKey.__members__:
        return int(ApiKey[api])
    raise UnsupportedVersionError(no_such("API", api, schema.api_keys().values()))


# --- client and broker ----------------------------------------------------------------------------------------------


def choose(
    api_versions: Any, wanted: Wanted | None = None, *, pin: str | None = None, listener: Listener | None = None
) -> dict[int, int]:
    """API key -> the newest version that both sides have (protocol guide, "Retrieving Supported API versions").

    ``api_versions`` is what the broker said: an ``ApiVersionsResponse``, or a mapping of API key to ``Versions`` such
    as ``announced`` gives. ``wanted`` says which APIs, by key or name. As a mapping it also says in which versions: the
    newest one, the oldest and the newest, or ``Versions``. An API that is wanted but has no version that both sides
    have is an ``UnsupportedVersionError``. None: every API that kwire and the broker have in common.

    ``pin`` is a release: nothing newer is taken than a client of that release has (of those to which ``listener``
    listens).

    Raises ``ProtocolError`` for a response that holds an error: after error 35 see ``ask_again``.
    """
    theirs = served(api_versions)
    limits = None if pin is None else accepted(pin, listener)
    if wanted is None:
        keys = {key: _known(key) for key in theirs}
    elif isinstance(wanted, Mapping):
        keys = {api_key(api): _wanted(versions) & _known(api_key(api)) for api, versions in wanted.items()}
    else:
        keys = {api_key(api): _known(api_key(api)) for api in wanted}
    chosen = {}
    for key, ours in keys.items():
        if limits is not None:
            # What is older than the release's oldest is refused by the broker, not by the pin.
            ours = ours & Versions(0, limits.get(key, NO_VERSIONS).high) if key in limits else NO_VERSIONS
        common = ours & theirs.get(key, NO_VERSIONS)
        if common:
            chosen[key] = common.high
        elif wanted is not None:
            raise _nothing_in_common(key, ours, theirs.get(key, NO_VERSIONS), pin)
    return chosen


def _known(key: int) -> Versions:
    message = schema.request(key)
    return NO_VERSIONS if message is None else message.versions


def _wanted(versions: int | tuple[int, int] | Versions) -> Versions:
    if isinstance(versions, Versions):
        return versions
    return Versions(0, versions) if isinstance(versions, int) else Versions(*versions)


def _nothing_in_common(key: int, ours: Versions, theirs: Versions, pin: str | None) -> UnsupportedVersionError:
    name = schema.api_keys().get(key, f"API key {key}")
    pinned = "" if pin is None else f", pinned to {pin}"
    if not ours:
        text = f"{name}: no version can be used{pinned}"
    elif not theirs:
        text = f"{name}: the broker does not have it, versions {ours} are wanted{pinned}"
    else:
        text = f"{name}: the broker has versions {theirs}, {ours} are wanted{pinned}"
    return UnsupportedVersionError(text)


def served(api_versions: Any) -> dict[int, Versions]:
    """API key -> the versions that a broker serves, by what it said: an ``ApiVersionsResponse``, or a mapping.

    An API that is listed twice has the versions of both lines. Raises ``ProtocolError`` for a response with an error.
    """
    if isinstance(api_versions, Mapping):
        found = dict(api_versions)
    else:
        if api_versions.error_code:
            hint = ": see ask_again" if api_versions.error_code == _UNSUPPORTED_VERSION else ""
            raise ProtocolError(f"the answer to ApiVersions holds error {api_versions.error_code}{hint}")
        found = {}
        for one in api_versions.api_keys:
            versions = Versions(one.min_version, one.max_version)
            found[one.api_key] = versions & found.get(one.api_key, versions)
    produce, fetch = found.get(ApiKey.PRODUCE), found.get(ApiKey.FETCH)
    if produce and fetch and fetch.low >= _KAFKA_4_FETCH and produce.low < _KAFKA_4_PRODUCE:
        # Only 4.x has given up Fetch v0-3 and still lists Produce v0-2.
        found[ApiKey.PRODUCE] = produce & Versions(_KAFKA_4_PRODUCE, produce.high)
    return found


_KAFKA_4_FETCH: Final = 4
_KAFKA_4_PRODUCE: Final = 3


def ask_again(response: Any, asked: int) -> int | None:
    """The version in which to ask ApiVersions again; None when ``response`` answers the question.

    ``response`` is the ``ApiVersionsResponse`` to a request of version ``asked``. From 2.4 on, a broker that does not
    know that version lists the ones that it does. Before, it lists nothing, and 0 is what every broker knows (KIP-511).
    Raises ``ProtocolError`` when there is nothing older to ask.
    """
    if response.error_code != _UNSUPPORTED_VERSION:
        return None
    known = _known(ApiKey.API_VERSIONS) & Versions(0, asked - 1)
    listed = [one for one in response.api_keys if one.api_key == ApiKey.API_VERSIONS]
    common = known & (Versions(listed[0].min_version, listed[0].max_version) if listed else Versions(0, 0))
    if not common:
        raise ProtocolError(f"the broker refuses ApiVersions v{asked}, and has no older version that is known")
    return common.high
