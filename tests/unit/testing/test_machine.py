"""The state machine of ``kwire.testing``: good clients pass it, and each broken promise is found."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from machine_adapters import (
    ConfluentKafka,
    ForgetsCommits,
    KafkaPython,
    Plain,
    ReadsFromTheBatch,
    SaysNonsense,
    TakesErrorsForDone,
    WritesAgain,
)

from kwire.testing.broker import Broker
from kwire.testing.machine import FAULTS, Adapter, ClientMachine, Fault

FEW = settings(
    max_examples=3,
    stateful_step_count=6,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def run(adapter: type[Adapter], how: settings = FEW, **more: Any) -> None:
    machine = type("Machine", (ClientMachine,), {"adapter": adapter, **more})
    run_state_machine_as_test(machine, settings=how)


@pytest.mark.wide
def test_kafka_python_keeps_its_promises() -> None:
    run(KafkaPython, release="3.9")


@pytest.mark.wide
def test_confluent_kafka_keeps_its_promises() -> None:
    pytest.importorskip("confluent_kafka")
    run(ConfluentKafka, release="3.9")


def test_a_client_of_few_lines_keeps_its_promises() -> None:
    run(Plain, release="2.8")


@pytest.mark.wide(keep=2)
@pytest.mark.parametrize(
    ("adapter", "said"),
    [
        (TakesErrorsForDone, "acknowledged, and not in"),
        (WritesAgain, "written twice to"),
        (ReadsFromTheBatch, "the client read"),
        (ForgetsCommits, "is committed, not"),
        (SaysNonsense, "FetchRequest v4"),
    ],
)
def test_a_broken_promise_is_found(adapter: type[Adapter], said: str) -> None:
    many = settings(FEW, max_examples=500, stateful_step_count=12)
    with pytest.raises(Exception, match=said):
        run(adapter, many, release="2.8")


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
def test_a_fault_is_a_rule_of_the_broker(fault: Fault) -> None:
    with Broker() as broker:
        rule = fault.on(broker)
    assert rule.times == 1
    assert rule.said
    assert eval(repr(fault), {"Fault": Fault}) == fault
