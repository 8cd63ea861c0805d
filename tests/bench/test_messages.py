"""The pipe between child and runner: whole messages out of any pieces, and garbage refused."""

from __future__ import annotations

import itertools
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reportkit.bench.messages import Answer, GarbageError, Inbox, Phase, Refusal, send

MESSAGES = (
    Phase(case="a.b", phase="prepare"),
    Answer(case="a.b", status="complete"),
    Refusal(reason="\u4e2d\u6587 </script>"),
)


def stream() -> bytes:
    reader, writer = os.pipe()
    for message in MESSAGES:
        send(writer, message)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        return pipe.read()


@given(cuts=st.lists(st.integers(min_value=0, max_value=600), max_size=12))
def test_messages_survive_any_cut_of_the_stream(cuts: list[int]) -> None:
    data = stream()
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    inbox = Inbox()

    received = [message for start, end in itertools.pairwise(edges) for message in inbox.feed(data[start:end])]

    assert tuple(received) == MESSAGES


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x00",
        b"\x00\x00\x00\x02{}",
        b"\x00\x00\x00\x05hello",
        b'\x00\x00\x00\x20{"type":"phase","case":"../../a"}',
    ],
    ids=["length", "empty", "no tag", "no JSON", "no phase"],
)
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(GarbageError):
        Inbox().feed(data)


def test_a_name_that_is_a_path_is_refused() -> None:
    reader, writer = os.pipe()
    send(writer, Phase(case="../../etc", phase="prepare"))
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe, pytest.raises(GarbageError):
        Inbox().feed(pipe.read())
