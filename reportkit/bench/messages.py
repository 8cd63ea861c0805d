"""What a measured child tells the runner: length-limited JSON over a descriptor of its own.

Never pickle, and never the standard streams: a workload may print what it likes.
"""

from __future__ import annotations

import os
from typing import Literal

import msgspec
from msgspec import Struct

from reportkit.records import (
    LARGEST_FILE,
    Correctness,
    Environment,
    Finding,
    Measurement,
    Name,
    Scalar,
    Scale,
    Status,
    Telemetry,
)

HEADER = 4
"""Bytes of the length that goes before each message, big-endian."""


Only = Literal["first-call", "memory-eager", "memory-compiled"]


class GarbageError(ValueError):
    """The child sent something that is no message."""


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the child is asked to do, over its standard input: one line of JSON.

    The runner adds an empty line for each answer that is on file; only then the next case begins.
    """

    lane: Name
    torch: str | None
    """The version that the lane pins, to be found in the torch imported; None for any."""
    scale: Scale | None
    """None asks for the environment alone."""
    cases: list[str]
    only: Only | None = None
    """The part of each case to do instead of the whole: the first compiled call, which fills the caches for
    a warm process, or the peak memory of one side."""


class Hello(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="hello"):
    """Torch is imported and is the lane's."""

    environment: Environment


class Phase(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="phase"):
    """A case entered a phase."""

    case: Name
    phase: Name


class Answer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="answer"):
    """All there is to know of a case."""

    case: Name
    status: Status
    reason: str | None = None
    traceback: str | None = None
    settings: dict[str, Scalar | None] = {}
    counters: dict[str, int | None] = {}
    correctness: Correctness | None = None
    measurements: dict[str, Measurement] = {}
    findings: dict[str, Finding] = {}
    telemetry: Telemetry = Telemetry()
    phases: dict[str, float] = {}
    launches: dict[str, int] | None = None
    memory: dict[str, int] | None = None
    energy: dict[str, float] | None = None


class Spent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="spent"):
    """A case left something behind in the process, so that those after it need another."""

    reason: str


class Refusal(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="refusal"):
    """The child can't begin: the wrong torch, or none."""

    reason: str


Message = Hello | Phase | Answer | Spent | Refusal
_DECODER = msgspec.json.Decoder(Message)


def send(descriptor: int, message: Message) -> None:
    """Write one message whole. Raises OSError where the runner is gone."""
    data = msgspec.json.encode(message)
    data = len(data).to_bytes(HEADER, "big") + data
    while data:
        data = data[os.write(descriptor, data) :]


class Inbox:
    """The messages in a stream of bytes that arrives in pieces."""

    def __init__(self) -> None:
        """Begin empty."""
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages that `data` completes.

        Raises:
            GarbageError: a length or a body that no child of ours sends.
        """
        self._buffer += data
        messages: list[Message] = []
        while len(self._buffer) >= HEADER:
            length = int.from_bytes(self._buffer[:HEADER], "big")
            if not 0 < length <= LARGEST_FILE:
                message = f"a message of {length} bytes"
                raise GarbageError(message)
            if len(self._buffer) < HEADER + length:
                break
            body = bytes(self._buffer[HEADER : HEADER + length])
            del self._buffer[: HEADER + length]
            try:
                messages.append(_DECODER.decode(body))
            except msgspec.DecodeError as error:
                raise GarbageError(str(error)) from error
        return messages
