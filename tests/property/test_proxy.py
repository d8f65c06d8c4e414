"""Whatever clients and brokers say to the proxy of ``kwire.testing``: bytes go on or the connection ends, for a reason.

An exception that is no ``KwireError`` fails the test.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kwire.errors import KwireError
from kwire.testing import Frame, frames, mutations
from kwire.testing.broker import Rule
from kwire.testing.broker.apis import HANDLERS
from kwire.testing.broker.faults import DAMAGES, Faults
from kwire.testing.broker.recording import Connected, Recording
from kwire.testing.packets import End
from kwire.testing.proxy import Proxy
from kwire.testing.proxy.relay import Relay
from kwire.testing.proxy.server import Shared


class Still(Shared):
    """A proxy without sockets, whose clock stands still."""

    def clock(self) -> float:
        return 0.0

    def address(self, node: int, host: str, port: int) -> tuple[str, int]:
        return "proxy", 1


class Between:
    """A relay, and what has come out of it."""

    def __init__(self) -> None:
        self.shared = Still(Faults(), Recording(1 << 20), Proxy("kafka:9092"))
        self.to_client, self.to_broker, self.closed = bytearray(), bytearray(), False
        ends = Connected(1, End("127.0.0.1", 50_000), End("127.0.0.1", 9092))
        self.relay = Relay(self.shared, 1, ends, self.to_client.extend, self.to_broker.extend, self._close)

    def _close(self) -> None:
        self.closed = True


def sized(data: bytes) -> bytes:
    return len(data).to_bytes(4) + data


PAIRS = st.sampled_from(sorted(HANDLERS)).flatmap(
    lambda key: st.tuples(frames(kinds=("request",), api_key=key), frames(kinds=("response",), api_key=key))
)
FAULTS = st.sampled_from(
    [None, *DAMAGES, "error", "close", "drop", "throttle"],
)


@given(PAIRS, st.booleans(), st.binary(max_size=40), FAULTS)
def test_any_response_to_any_request(pair: tuple[Frame, Frame], damaged: bool, more: bytes, fault: str | None) -> None:
    request, response = pair
    between = Between()
    rule = Rule(None)
    if fault in DAMAGES:
        rule.damage(fault)
    elif fault == "error":
        rule.error("NOT_COORDINATOR")
    elif fault == "throttle":
        rule.throttle(1)
    elif fault is not None:
        getattr(rule, fault)()
    if fault is not None:
        between.shared.faults.rules.append(rule)
    between.relay.from_client(sized(request.data) + (more if damaged else b""))
    between.relay.from_broker(sized(response.data) + (more if damaged else b""))
    assert all(isinstance(one, KwireError) for one in between.shared.recording.errors)
    assert between.closed == between.relay.closed
    if not between.closed and not damaged and fault is None:
        assert bytes(between.to_broker) == sized(request.data)


@given(st.lists(st.binary(max_size=40), max_size=4), st.lists(st.binary(max_size=40), max_size=4))
def test_any_bytes(of_client: list[bytes], of_broker: list[bytes]) -> None:
    between = Between()
    for data in of_client:
        between.relay.from_client(data or b"\0")
    for data in of_broker:
        between.relay.from_broker(data or b"\0")
    assert all(isinstance(one, KwireError) for one in between.shared.recording.errors)


@given(st.data(), frames(kinds=("request",), api_key=3))
def test_a_damaged_request_goes_on_or_ends_the_connection(data: st.DataObject, request: Frame) -> None:
    between = Between()
    said = data.draw(mutations(sized(request.data)))
    between.relay.from_client(said or b"\0")
    assert bytes(between.to_broker) in (said, b"") or said.startswith(bytes(between.to_broker))
