"""What framing is told about APIs is what the schemas say that are loaded, whenever they were."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kwire
from kwire import schema
from kwire.codec import registry
from kwire.kernels import cache
from kwire.kernels.programs import compile_program
from kwire.protocol import api_table as module
from kwire.protocol.api_table import api_table
from kwire.protocol.headers import request_header_version, response_header_version
from kwire.schema.keys import ApiKey
from kwire.schema.model import layout

LATER = """\
request Later key 200 versions 0-3 flexible none
  name string

response Later key 200 versions 0-3 flexible none
  error_code int16
"""


def test_every_api_has_its_latest_version_and_its_shortest_response() -> None:
    apis = api_table().apis
    for key in schema.api_keys():
        request, response = schema.request(key), schema.response(key)
        assert request is not None
        assert apis["latest"][key] == request.versions.high
        assert response is None or apis["least_response"][key] >= 4
    # An error code behind the correlation id; a flexible header would have one byte more.
    assert apis["least_response"][ApiKey.HEARTBEAT] == 6
    # A flexible one has a byte more in its header, but for ApiVersions.
    for key in (ApiKey.DESCRIBE_CLUSTER, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE, ApiKey.API_VERSIONS):
        response = schema.response(key)
        assert response is not None
        empty = registry.message_class(response)()
        least = min(len(kwire.encode_response(empty, api_version=one, correlation_id=1)) for one in response.versions)
        assert apis["least_response"][key] == least
    assert set(np.flatnonzero(apis["latest"] >= 0)) == set(schema.api_keys())


def test_the_table_is_made_once_and_again_when_a_folder_was_loaded(tmp_path: Path) -> None:
    (tmp_path / "later.kwire").write_text(LATER)
    program = (
        "import sys\n"
        "from kwire import schema\n"
        "from kwire.protocol.api_table import api_table\n"
        "before = api_table()\n"
        "assert api_table() is before\n"
        "schema.load_folder(sys.argv[1])\n"
        "after = api_table().apis\n"
        "print(len(before.apis), len(after), after['latest'][200], after['least_response'][200])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    before, *after = map(int, done.stdout.split())
    assert before == max(schema.api_keys()) + 1
    assert after == [201, 3, 6]


@pytest.mark.parametrize("damage", ["", "garbage", "cut", "one bit", "other types", "unsigned", "no arrays", "nothing"])
def test_a_kept_table_is_that_of_the_schemas_whatever_became_of_the_file(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "folder", lambda: tmp_path)
    of_schemas = module._made.__wrapped__
    made = of_schemas(0)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    if damage == "garbage":
        file.write_bytes(b"garbage" * 100)
    elif damage == "cut":
        file.write_bytes(whole[:-1])
    elif damage == "one bit":
        file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    elif damage == "other types":
        packed = io.BytesIO()
        for _ in made:
            np.save(packed, np.zeros(3))
        data = packed.getvalue()
        file.write_bytes(hashlib.sha256(data).digest() + data)
    elif damage == "unsigned":
        packed = io.BytesIO()
        for one in made:
            np.save(packed, one.view(module._plain(one.dtype) if one.dtype.names else np.uint64))
        data = packed.getvalue()
        file.write_bytes(hashlib.sha256(data).digest() + data)
    elif damage == "no arrays":
        file.write_bytes(hashlib.sha256(b"no arrays").digest() + b"no arrays")
    elif damage == "nothing":
        file.unlink()
    parsed = count_programs(monkeypatch)
    again = of_schemas(0)
    for one, other in zip(made, again, strict=True):
        assert one.dtype == other.dtype
        assert one.dtype.type is other.dtype.type
        assert other.flags.writeable
        assert np.array_equal(one, other)
    assert bool(parsed) == bool(damage), "programs are made only where the file is not as it was"
    assert file.read_bytes() == whole
    assert list(tmp_path.iterdir()) == [file]


def count_programs(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """A list that grows with each program that is made."""
    made: list[object] = []

    def counted(*arguments: object, **options: object) -> object:
        made.append(arguments)
        return compile_program(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "compile_program", counted)
    return made


def test_the_table_of_a_loaded_folder_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "folder", lambda: tmp_path)
    module._made.__wrapped__(1)
    assert not list(tmp_path.iterdir())


def test_a_change_of_a_schema_is_another_file(monkeypatch: pytest.MonkeyPatch) -> None:
    before = module._digest()
    texts = schema.texts()
    assert len(texts) > 90
    monkeypatch.setattr(schema, "texts", lambda: [(texts[0][0], texts[0][1] + b"\n"), *texts[1:]])
    assert module._digest() != before


def test_each_version_of_each_message_has_the_program_of_its_frame() -> None:
    keys = [ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.HEARTBEAT, ApiKey.CONTROLLED_SHUTDOWN]
    code, starts = module._layout_programs(keys)
    heads = schema.message("RequestHeader"), schema.message("ResponseHeader")
    versions = request_header_version, response_header_version
    for key in range(max(keys) + 1):
        for response, find in enumerate((schema.request, schema.response)):
            message = find(key) if key in keys else None
            first = starts[2 * key + response]
            there = () if message is None else message.versions
            assert set(np.flatnonzero(first >= 0)) == set(there)
            for version in there:
                assert message is not None
                header = layout(heads[response], versions[response](key, version))
                made = compile_program([header, layout(message, version)], [], errors=bool(response)).code
                assert code["op"][first[version] :][: len(made)].tolist() == made["op"].tolist()


def test_what_stands_before_acks_is_known_by_version() -> None:
    _, starts, before = module._acks_programs()
    produce = schema.request(ApiKey.PRODUCE)
    assert produce is not None
    assert set(np.flatnonzero(starts >= 0)) == set(produce.versions)
    # Nothing; a transactional id that is null; the tags of the header, and a compact one.
    for version in produce.versions:
        assert before[version].tolist() == ([0, 0] if version < 3 else [2, 0xFFFF] if version < 9 else [2, 0])
