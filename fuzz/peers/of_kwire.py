"""kwire itself: ``kwire fuzz run --lines --cmd 'python -m fuzz.peers.of_kwire'``."""

from __future__ import annotations

import kwire.records
from fuzz.peers import SkipError, serve


def read(role: str, api_key: int, version: int, at: int | None, frame: bytes) -> bytes | None:
    """Header and body of a frame, or a record set."""
    if role == "capture":
        raise SkipError
    if role == "records":
        list(kwire.records.decode(frame))
        return None
    if role == "request":
        request = kwire.decode_request(frame)
        return kwire.encode_body(request.body, api_version=version)
    response = kwire.decode_response(frame, api_key=api_key, api_version=version)
    return kwire.encode_body(response.body, api_version=response.api_version)


if __name__ == "__main__":
    serve(read)
