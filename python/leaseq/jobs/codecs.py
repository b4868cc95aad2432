"""Codecs of an App: its arguments and results are stored compressed, or encrypted.

    app = leaseq.jobs.App(codec=[Zlib(), Encrypted(key)])

`Encrypted` needs the extra `encryption`.
"""

import base64
import zlib
from collections.abc import Sequence
from itertools import combinations
from typing import Any, Final, Protocol, runtime_checkable

from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.jobs.serializer import CODECS, Format, Serializer

MAX_DECODED_BYTES: Final = 64 * 1024 * 1024
"""Bytes that compressed data may give: a few bytes can claim to be gigabytes."""

_AS_IT_IS: Final = b"\0"
"""In front of data that is not compressed. Compressed data starts with another byte."""


@runtime_checkable
class Codec(Protocol):
    """Changes data on its way to the server and back: an object with a `name` and these two methods.

    Attributes:
        name: at least one character, without "+". Each job carries it, so that an App without this codec raises BadEnvelopeError.
    """

    name: str

    def encode(self, data: bytes) -> bytes:
        """Return data as it is stored. If it raises, SerializationError is raised."""

    def decode(self, data: bytes) -> bytes:
        """Return what `encode` was given. If it raises, BadEnvelopeError is raised."""


class Zlib:
    """Compresses data of at least `least` bytes, 1024 by default; shorter data stays as it is. Raises BadArgumentError."""

    name = "zlib"

    def __init__(self, *, least: int = 1024) -> None:
        given: Any = least
        if not isinstance(given, int) or given < 0:
            raise BadArgumentError(f"least is a number of bytes from 0 on, not {least!r}")
        self._least = least

    def encode(self, data: bytes) -> bytes:
        """Return compressed data; as it is if it is short. Raises ValueError for more than 64 MiB, which could not be read again."""
        if len(data) > MAX_DECODED_BYTES:
            raise ValueError(f"it is longer than {MAX_DECODED_BYTES} bytes")
        return _AS_IT_IS + data if len(data) < self._least else zlib.compress(data)

    def decode(self, data: bytes) -> bytes:
        """Return the data. Raises ValueError if it is cut off, or longer than 64 MiB."""
        if data.startswith(_AS_IT_IS):
            return data[1:]
        stream = zlib.decompressobj()
        found = stream.decompress(data, MAX_DECODED_BYTES)
        if not stream.eof:
            raise ValueError(f"it is cut off, or would be longer than {MAX_DECODED_BYTES} bytes")
        return found


class Encrypted:
    """Encrypts with the first key (AES-128 and a signature, by Fernet), and reads what any of the keys has written.

    Make a key with `cryptography.fernet.Fernet.generate_key()`. To change it, give all programs both keys, the old one first;
    then all both, the new one first; then, when the old jobs and results are gone, the new one alone.

    Raises BadArgumentError, and ModuleNotFoundError without the extra `encryption`.
    """

    name = "fernet"

    def __init__(self, *keys: bytes | str) -> None:
        try:
            from cryptography.fernet import Fernet, MultiFernet
        except ModuleNotFoundError as error:
            from leaseq import extras

            raise extras.missing("encryption", "leaseq.jobs.codecs.Encrypted", error) from error
        if not keys:
            raise BadArgumentError("encryption takes at least one key: Encrypted(Fernet.generate_key())")
        try:
            self._keys = MultiFernet([Fernet(key) for key in keys])
        except (TypeError, ValueError) as error:
            raise BadArgumentError(
                "a key is 32 bytes in URL-safe base64, as cryptography.fernet.Fernet.generate_key() makes it"
            ) from error

    def encode(self, data: bytes) -> bytes:
        """Return encrypted data."""
        return base64.urlsafe_b64decode(self._keys.encrypt(data))

    def decode(self, data: bytes) -> bytes:
        """Return the data. Raises ValueError if no key fits, or if it was changed."""
        from cryptography.fernet import InvalidToken

        try:
            return self._keys.decrypt(base64.urlsafe_b64encode(data))
        except InvalidToken as error:
            raise ValueError("no key of this App fits, or the data was changed") from error


class CodedSerializer:
    """Writes values by a format or another serializer, and then by codecs, one after the other."""

    def __init__(self, form: Format, serializer: Serializer | None, codecs: Sequence[Codec]) -> None:
        own = CODECS[form]
        self._dumps = own.encode if serializer is None else serializer.dumps
        self._loads = own.decode if serializer is None else serializer.loads
        self._codecs = tuple(codecs)
        written_by = form if serializer is None else serializer.name
        self.name = "+".join([written_by, *(codec.name for codec in codecs)])

    def dumps(self, value: Any) -> bytes:
        """Return a value as it is stored."""
        data = self._dumps(value)
        for codec in self._codecs:
            encoded: Any = codec.encode(data)
            if not isinstance(encoded, bytes):
                raise TypeError(f"codec {codec.name!r} gives {type(encoded).__name__}, not bytes")
            data = encoded
        return data

    def loads(self, data: bytes) -> Any:
        """Return the value again."""
        for codec in reversed(self._codecs):
            data = codec.decode(data)
        return self._loads(data)


def readers(form: Format, serializer: Serializer | None, codecs: Sequence[Codec]) -> list[CodedSerializer]:
    """Return what reads what an App has written that had fewer of these codecs, or the other format. The last writes now."""
    forms: list[Format] = ["json", "msgpack"] if serializer is None else [form]
    some = [kept for count in range(1, len(codecs)) for kept in combinations(codecs, count)]
    kinds = [(each, kept) for each in forms for kept in [*some, codecs]]
    kinds.append((form, codecs))
    return [CodedSerializer(each, serializer, kept) for each, kept in kinds]


def checked(given: Codec | Sequence[Codec] | None) -> list[Codec]:
    """Return the codecs that are given. Raises BadTypeError, BadArgumentError."""
    codecs: list[Any] = [] if given is None else [given] if isinstance(given, Codec) else list(_listed(given))
    for codec in codecs:
        if isinstance(codec, type) or not isinstance(codec, Codec):
            what = f"the class {codec.__name__}" if isinstance(codec, type) else type(codec).__name__
            raise BadTypeError(
                f"a codec is an object with name, encode and decode, such as Zlib(); {what} is none"
            )
        name: Any = codec.name
        if not isinstance(name, str) or not name or "+" in name:
            raise BadArgumentError("a codec has a name, a str of at least one character, without +")
    if len({codec.name for codec in codecs}) < len(codecs):
        raise BadArgumentError(
            "two codecs of an App have the same name, so that no job says which of them wrote it"
        )
    return codecs


def _listed(given: Any) -> Sequence[Any]:
    return given if isinstance(given, list | tuple) else [given]
