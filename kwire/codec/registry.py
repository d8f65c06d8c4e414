"""Codecs and classes, made on first use and kept.

``codec(message, version)`` gives the codec of one layout; ``message_class`` and ``struct_class`` the message's classes.
Everything is keyed by the ``Message`` object itself, so a user's own schemas live beside the built-in ones.

A ``Codec`` is one of two implementations behind one interface. ``compiled`` is generated Python
(``kwire.codec.decoder`` and ``encoder``). ``reference`` uses ``construct`` (``kwire.codec.reference``). Tests and
fuzzers compare them. Everybody else uses the compiled one. Neither importing this module nor decoding with it imports
construct.

Rules: a codec takes ``bytes`` and raises ``DecodeError`` or ``EncodeError`` only. Generated source is registered with
``linecache``, so that tracebacks and debuggers show it.
"""

from __future__ import annotations

import linecache
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Final, Literal

from kwire import schema
from kwire.codec import costs, decoder, encoder, generated, spelling, tracked
from kwire.codec.objects import WireMessage, WireStruct, make_classes
from kwire.errors import EncodeError, UnsupportedVersionError
from kwire.limits import DEFAULT_LIMITS, Limits
from kwire.schema import model

__all__ = [
    "IMPLEMENTATIONS",
    "Codec",
    "FrameCodec",
    "Implementation",
    "codec",
    "message_class",
    "request_codec",
    "response_codec",
    "struct_class",
    "unknown_api",
]

Implementation = Literal["compiled", "reference"]
"""Name of a codec: generated source, or the slow reference that tests compare it with."""
IMPLEMENTATIONS: Final[tuple[Implementation, ...]] = ("compiled", "reference")
"""Names of both codecs (tuple of str), the usual one first."""


class Codec:
    """Encoder and decoder of one version of one message.

    ``message`` and ``version`` say which, ``layout`` how it is laid out, ``label`` names it in errors
    (``FetchResponse v4``).
    """

    __slots__ = ("label", "layout", "message", "version")

    def __init__(self, message: model.Message, version: int) -> None:
        self.message: model.Message = message
        self.version: int = version
        self.layout: model.StructLayout = model.layout(message, version)
        self.label: str = f"{message.name} v{version}"

    def decode(self, data: bytes, pos: int = 0, limits: Limits | None = None) -> Any:
        """The message that ``data`` holds from ``pos`` to its end. Raises ``DecodeError``.

        ``limits`` (None: ``DEFAULT_LIMITS``) bounds the objects that it becomes, by all of ``data``.
        """
        raise NotImplementedError

    def decode_prefix(self, data: bytes, pos: int = 0, limits: Limits | None = None) -> tuple[Any, int]:
        """The message that begins at ``pos``, and the position after it. Raises ``DecodeError``."""
        raise NotImplementedError

    def encode(self, value: object) -> bytes:
        """The canonical bytes of ``value``, or those that it keeps and that are still true.

        Raises ``EncodeError``.
        """
        raise NotImplementedError

    def keeping(self, made: Any, read: bytes, trailing: bytes = b"") -> Any:
        """``made``, which was decoded from all of ``read``; it keeps these bytes where it would be written otherwise.

        ``trailing`` are bytes that followed.
        """
        canonical = self.encode(made)
        if canonical == read and not trailing:
            return made
        return spelling.keep(made, spelling.Spelling(self.version, canonical, read, trailing))

    def _encode_kept(self, value: object) -> bytes:
        """Encode what is not of the message's very class: a message that keeps its bytes, or what is no such one."""
        if not isinstance(value, WireMessage) or value.__class__ is not message_class(self.message):
            given = type(value).__qualname__
            raise EncodeError(f"expected {self.message.name}, not {given}", layout=self.label)
        canonical = self.encode(spelling.plain(value))
        kept = spelling.spelling_of(value)
        return canonical if kept is None else kept.written(self.version, canonical)


class CompiledCodec(Codec):
    """Runs generated source; decoder and encoder are each compiled when first called.

    Threads may share it. Guesses change under a lock, which decoding does not need. A decoder that was compiled before
    stays right, and its counts are ignored.
    """

    __slots__ = (
        "_generation",
        "_guesses",
        "_limits",
        "_lock",
        "_misses",
        "_plain",
        "_recompilations",
        "_structs",
        "_uncounted",
        "_variants",
        "read",
        "write",
    )

    read: Callable[..., Any]
    """The generated decoder, or what compiles it first. It may raise any of ``generated.FAILURES``."""
    write: Callable[..., bytes]
    """The generated encoder, likewise."""

    ENOUGH: ClassVar[int] = 64
    """A new guess is made after this many elements of a site.

    They were read without a guess or against a wrong one.
    """
    MOST_RECOMPILATIONS: ClassVar[int] = 4

    def __init__(self, message: model.Message, version: int) -> None:
        super().__init__(message, version)
        self._structs = _structs(message)
        self.read = self._first_decode
        self.write = self._first_encode
        self._guesses: decoder.Guesses = {}
        self._plain: dict[int, Counter[tuple[int, ...]]] = {}
        self._misses = 0
        self._recompilations = 0
        self._generation = 0
        self._lock = threading.Lock()
        self._uncounted = -1
        self._limits: tuple[Limits | None, int] = (None, -1)
        """Other limits than the default that were given last, and up to which length nothing is counted then."""
        self._variants: dict[decoder.Variant, Callable[[bytes, int, int], tuple[Any, int]]] = {}

    def _first_decode(self, *arguments: Any) -> Any:
        with self._lock:
            if self.read == self._first_decode:
                self._uncounted = costs.uncounted(self.layout, DEFAULT_LIMITS)
                self.read = self._compile("decode", self._decoder_source)
            decode = self.read
        return decode(*arguments)

    def _first_encode(self, *arguments: Any) -> bytes:
        self.write = self._compile("encode", self._encoder_source)
        return self.write(*arguments)

    def _decoder_source(self, globals_: dict[str, Any], variant: decoder.Variant = decoder.PLAIN) -> str:
        return decoder.decoder_source(self.layout, self._structs, globals_, self._guesses, variant)

    def _encoder_source(self, globals_: dict[str, Any]) -> str:
        return encoder.encoder_source(self.layout, self._structs, globals_)

    def _compile(self, name: str, generate: Callable[[dict[str, Any]], str], kind: str = "") -> Any:
        globals_ = generated.namespace(self._structs)
        if self._recompilations < self.MOST_RECOMPILATIONS:
            globals_["plain"] = partial(self._count_plain, self._generation)
        source = generate(globals_)
        file = f"<kwire {self.label} {name}{kind}>"
        exec(compile(source, file, "exec"), globals_)
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        return globals_[name]

    def _count_plain(self, generation: int, site: int, objects: Sequence[WireStruct]) -> None:
        """Generated code calls it with what it decoded without a guess, or against one that was wrong.

        ``generation`` is that of its source. One message can bring many arrays, and those after the one that made a new
        guess say nothing about it.
        """
        with self._lock:
            if generation != self._generation:
                return
            if site in self._guesses:
                self._misses += 1
                if self._misses >= self.ENOUGH:
                    # Perhaps the traffic has changed. Only a sample of all elements can tell, not the misses alone.
                    del self._guesses[site]
                    self._renew()
                return
            counter = self._plain.setdefault(site, Counter())
            fields = type(objects[0]).FIELDS
            arrays = [one.name for one in fields if isinstance(one.type, model.Array) and self.version in one.versions]
            counter.update(tuple([len(getattr(one, name)) for name in arrays]) for one in objects[: self.ENOUGH])
            if counter.total() >= self.ENOUGH:
                self._guess(site, counter)

    def _renew(self) -> None:
        self._misses = 0
        self._generation += 1
        self.read = self._first_decode
        self._variants = {}

    def _guess(self, site: int, counter: Counter[tuple[int, ...]]) -> None:
        common = [
            one for one in counter.most_common(decoder.MOST_SHAPES) if max(one[0], default=0) <= decoder.LONGEST_GUESS
        ]
        total = counter.total()
        counter.clear()
        # A guess that is wrong more often than right costs more than it saves. So do a rare one and a very long one.
        self._recompilations += 1
        kept = {shape: count for shape, count in common if count * 10 >= total}
        if sum(kept.values()) * 2 >= total:
            self._guesses[site] = list(kept)
        self._renew()

    def source(self) -> str:
        """The generated Python of both directions."""
        return "\n\n".join(
            make(generated.namespace(self._structs)) for make in (self._decoder_source, self._encoder_source)
        )

    def decode(self, data: bytes, pos: int = 0, limits: Limits | None = None) -> Any:
        size = len(data)
        try:
            if size <= self._uncounted and (limits is None or limits is DEFAULT_LIMITS):
                made, end = self.read(data, pos)
            else:
                made, end = self._counted(data, pos, limits)
            if end == size:
                return made
        except generated.FAILURES as failure:
            return self._again(failure, data, pos, limits, whole=True)[0]
        return self._again(None, data, pos, limits, whole=True)[0]

    def decode_prefix(self, data: bytes, pos: int = 0, limits: Limits | None = None) -> tuple[Any, int]:
        size = len(data)
        try:
            if size <= self._uncounted and (limits is None or limits is DEFAULT_LIMITS):
                made, end = self.read(data, pos)
            else:
                made, end = self._counted(data, pos, limits)
            if end <= size:
                return made, end
        except generated.FAILURES as failure:
            return self._again(failure, data, pos, limits, whole=False)
        return self._again(None, data, pos, limits, whole=False)

    def _counted(self, data: bytes, pos: int, limits: Limits | None, *, lenient: bool = False) -> tuple[Any, int]:
        """Decodes, and counts the objects where they could be too many."""
        if limits is None:
            limits = DEFAULT_LIMITS
        known = self._limits
        if limits is not known[0]:
            # A layout is found by all that it has: not for each message.
            known = self._limits = limits, costs.uncounted(self.layout, limits)
        if not lenient and len(data) <= known[1]:
            return self.read(data, pos)  # type: ignore[no-any-return]
        variant = decoder.Variant(counted=True, lenient=lenient)
        decode = self._variants.get(variant)
        if decode is None:
            with self._lock:
                kind = ", lenient" if lenient else ", counted"
                decode = self._compile("decode", partial(self._decoder_source, variant=variant), kind)
                self._variants[variant] = decode
        try:
            return decode(data, pos, limits.for_objects(len(data)))
        except generated.BeyondError as beyond:
            raise costs.exceeded(limits, len(data), self.label, beyond.path, beyond.offset) from None

    def _again(
        self, failure: Exception | None, data: bytes, pos: int, limits: Limits | None, *, whole: bool
    ) -> tuple[Any, int]:
        """What fast code could not read, or ended at the wrong place: the value after all, or the error."""
        if isinstance(failure, UnicodeDecodeError):
            try:
                made, end = self._counted(data, pos, limits, lenient=True)
                if end == len(data) or (end < len(data) and not whole):
                    return made, end
            except generated.FAILURES:
                pass
        known = DEFAULT_LIMITS if limits is None else limits
        return tracked.decode(self.layout, self.label, self._structs, data, pos, whole=whole, limits=known)

    def encode(self, value: object) -> bytes:
        if type(value) is not self._structs[self.message.name]:
            return self._encode_kept(value)
        try:
            return self.write(value)
        except generated.FAILURES:
            return tracked.encode(self.layout, self.label, value)


class FrameCodec(CompiledCodec):
    """Reads and writes a header and its message by one generated function, where nothing is odd.

    ``read(data)`` gives an object of the class ``made``. It has ``header``, ``body`` and
    ``attributes``, which are set as they are. ``write(message, *rest)`` gives a frame of ``message``, which must be of
    its class.
    ``constants`` are the fields of the header that are the same in all these frames, ``rest`` are the others, in wire
    order.

    Both raise any of ``generated.FAILURES`` for what they leave to the codecs of header and message. These word the
    errors, read strings that are not UTF-8 and tags in headers, and count objects where there may be too many.
    """

    __slots__ = ("_frame", "_made", "_parts")

    def __init__(
        self,
        message: model.Message,
        version: int,
        header: Codec,
        made: type,
        *,
        constants: dict[str, int],
        attributes: dict[str, int],
    ) -> None:
        super().__init__(message, version)
        self._made = made
        self._parts = {**_structs(message), **_structs(header.message)}
        most = min(costs.uncounted(one, DEFAULT_LIMITS) for one in (header.layout, self.layout))
        self._frame = decoder.Frame(header.layout, constants, attributes, most)

    def _compile(self, name: str, generate: Callable[[dict[str, Any]], str], kind: str = "") -> Any:
        return super()._compile(name, generate, f"{kind}, whole frame")

    def _decoder_source(self, globals_: dict[str, Any], variant: decoder.Variant = decoder.PLAIN) -> str:
        globals_ |= {**generated.namespace(self._parts), "C_frame": self._made, "plain": globals_["plain"]}
        return decoder.decoder_source(self.layout, self._parts, globals_, self._guesses, variant, self._frame)

    def _encoder_source(self, globals_: dict[str, Any]) -> str:
        return encoder.encoder_source(self.layout, self._structs, globals_, self._frame)


class ReferenceCodec(Codec):
    """Runs ``construct`` declarations."""

    __slots__ = ()

    def decode(self, data: bytes, pos: int = 0, limits: Limits | None = None) -> Any:
        from kwire.codec import reference

        return reference.decode(self.message, self.version, data, pos, limits or DEFAULT_LIMITS)

    def decode_prefix(self, data: bytes, pos: int = 0, limits: Limits | None = None) -> tuple[Any, int]:
        from kwire.codec import reference

        return reference.decode_prefix(self.message, self.version, data, pos, limits or DEFAULT_LIMITS)

    def encode(self, value: object) -> bytes:
        from kwire.codec import reference

        if spelling.spelling_of(value) is not None:
            return self._encode_kept(value)
        return reference.encode(self.message, self.version, value)


_MAKERS: Final[dict[str, type[Codec]]] = {"compiled": CompiledCodec, "reference": ReferenceCodec}

# The Message is kept in the value, so that its id stays its own.
_CODECS: Final[dict[tuple[int, int, str], Codec]] = {}
_CLASSES: Final[dict[int, tuple[model.Message, type[WireMessage], dict[str, type[WireStruct]]]]] = {}


def _classes(message: model.Message) -> tuple[model.Message, type[WireMessage], dict[str, type[WireStruct]]]:
    found = _CLASSES.get(id(message))
    if found is None:
        found = (message, *make_classes(message))
        _CLASSES[id(message)] = found
    return found


def message_class(message: model.Message) -> type[WireMessage]:
    """The class of ``message``'s objects."""
    return _classes(message)[1]


def struct_class(message: model.Message, name: str) -> type[WireStruct]:
    """The class of a nested struct of ``message``."""
    return _classes(message)[2][name]


def _structs(message: model.Message) -> dict[str, type[WireStruct]]:
    _, whole, structs = _classes(message)
    return {**structs, message.name: whole}


def codec(message: model.Message, version: int, implementation: Implementation = "compiled") -> Codec:
    """The codec of ``message`` in ``version``.

    Raises ``UnsupportedVersionError``, which names the known range.
    """
    found = _CODECS.get((id(message), version, implementation))
    if found is None:
        if version not in message.versions:
            raise UnsupportedVersionError(
                f"version {version} is not known, versions {message.versions} are", layout=message.name
            )
        found = _MAKERS[implementation](message, version)
        _CODECS[id(message), version, implementation] = found
    return found


def request_codec(api_key: int, version: int, implementation: Implementation = "compiled") -> Codec:
    """The codec of a request. Raises ``UnsupportedVersionError`` for an unknown API key or version."""
    message = schema.request(api_key)
    if message is None:
        raise unknown_api(api_key)
    return codec(message, version, implementation)


def response_codec(api_key: int, version: int, implementation: Implementation = "compiled") -> Codec:
    """The codec of a response. Raises ``UnsupportedVersionError`` for an unknown API key or version."""
    message = schema.response(api_key)
    if message is None:
        raise unknown_api(api_key)
    return codec(message, version, implementation)


def unknown_api(api_key: int) -> UnsupportedVersionError:
    """The error for an API key that no schema has."""
    known = schema.api_keys()
    return UnsupportedVersionError(f"API key {api_key} is not known, {min(known)} to {max(known)} are")
