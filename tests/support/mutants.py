"""Changes of the code that a test must notice, as data: ``python tests/support/mutants.py [words]``.

Each mutant once survived all tests, or is the same mistake in another of the implementations. Every one is applied to a
copy of the package, alone, and its tests are run there (without compiled kernels: it is the source that is changed).
One that still passes is printed, and the exit status is 1. ``words`` choose those whose file or test holds one of them.

``tests/unit/house/test_mutants.py`` holds the list against the sources, so that it does not grow old.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

CHECKOUT: Final = Path(__file__).resolve().parents[2]
_COPIED: Final = ("kwire", "schemas", "tests", "pyproject.toml")


SECONDS: Final = 1200
"""For the tests of a mutant, which may run for ever; on a busy machine all tests together take minutes."""


class Mutant(NamedTuple):
    """``old`` stands once in ``file`` (below ``kwire/``), ``new`` takes its place; a test of ``test`` must fail then:
    a file below ``tests/unit/``, and a name in it."""

    file: str
    old: str
    new: str
    test: str


_EDGES: Final = "codec/test_edges.py::"
_RECORDS: Final = "records/test_edges.py::"
_BITS: Final = _EDGES + "test_bits_of_a_varint_beyond_32_are_lost"
_TAG_BITS: Final = _EDGES + "test_bits_of_a_tag_beyond_32_are_lost"
_COUNT: Final = _EDGES + "test_a_count_that_a_tagged_field_cannot_hold_is_refused_there"
_ORDER: Final = _EDGES + "test_unknown_tags_are_written_in_ascending_order"
_AT_ONCE: Final = _EDGES + "test_tags_that_end_with_their_struct_are_read_at_once"
_ONE_SIZE: Final = _EDGES + "test_tags_in_elements_of_one_size_are_read_at_once"
_LONG_TAG: Final = _EDGES + "test_tags_longer_than_what_holds_them_are_not_counted_as_objects"
_ONE_TEXT: Final = "report/test_sums.py::test_equal_texts_of_a_table_are_one_object_however_they_are_stored"
_NULL: Final = _EDGES + "test_a_tagged_struct_may_be_null"
_BAD_BLOCK: Final = "capture/test_containers.py::test_a_damaged_pcapng_block_is_an_error_after_what_is_before"
_GOOD_BLOCK: Final = "capture/test_containers.py::test_a_pcapng_block_that_is_just_long_enough_is_none_of_these"
_COST: Final = "records/test_batching.py::test_no_part_costs_more_than_the_most"
_CUT: Final = "records/test_batching.py::test_record_sets_and_records_beyond_a_batch_are_cut"
_ROWS: Final = "records/test_batching.py::test_no_part_has_more_than_the_most_rows"

MUTANTS: Final = [
    # Varints of five bytes with bits beyond 32.
    Mutant("wire.py", "return value & 0xFFFFFFFF, pos", "return value, pos", _BITS),
    Mutant("wire.py", "return value & 0xFFFFFFFF, pos", "return value & 0x7FFFFFFF, pos", _BITS),
    Mutant("codec/tracked.py", "return value & 0xFFFFFFFF", "return value", _TAG_BITS),
    Mutant("codec/reference.py", "return value & 0xFFFF_FFFF", "return value", _TAG_BITS),
    Mutant(
        "kernels/numbers.py", "return value & 0xFFFFFFFF, int64(pos)", "return value, int64(pos)",
        "kernels/test_numbers.py::test_bits_of_a_varint_beyond_32_are_lost",
    ),
    Mutant("kernels/numbers.py", "                value &= _ONES\n", "                pass\n",
           "kernels/test_numbers.py::test_bits_of_a_varint_beyond_32_are_lost"),
    Mutant(
        "records/reader.py", "value &= 0xFFFFFFFF if most == 5 else 0xFFFFFFFFFFFFFFFF", "pass",
        _RECORDS + "test_bits_of_a_records_numbers_beyond_32_and_64_are_lost",
    ),
    # A count too large inside of a tagged field.
    Mutant("codec/tracked.py", "if count * element.min_size > self.limit - self.pos:",
           "if count * element.min_size > len(self.data) - self.pos:", _COUNT),
    Mutant("codec/reference.py", "stream.limit = content + size", "pass", _COUNT),
    Mutant("codec/decoder.py", "outer, self.end = self.end, end", "outer = self.end",
           "codec/test_edges.py::test_a_count_that_a_tagged_field_cannot_hold_is_not_counted_as_objects"),
    Mutant("codec/decoder.py", 'self.add(f"if pos != {end}: retry()")', "pass",
           "codec/test_edges.py::test_a_tagged_field_takes_all_of_its_bytes_and_no_more"),
    # Unknown tags given unordered.
    Mutant("codec/generated.py", "known = sorted([*known, *unknown.items()])", "known = [*known, *unknown.items()]",
           _ORDER),
    Mutant("codec/tracked.py", "for tag in sorted(contents):", "for tag in contents:", _ORDER),
    Mutant("codec/reference.py", "in sorted(contents.items()):", "in contents.items():", _ORDER),
    # Tags that nobody knows, and where they may end.
    Mutant("codec/generated.py", "        if end > last:\n", "        if end >= last:\n", _AT_ONCE),
    Mutant("codec/generated.py", "        if end > last:\n", "        if False:\n", _LONG_TAG),
    Mutant("codec/generated.py", "        if end > last:\n", "        if end > len(data):\n", _LONG_TAG),
    Mutant("codec/decoder.py", "f\"if {end} > {self.end if self.counted else 'len(data)'}: retry()\"",
           "f\"if {end} >= {self.end if self.counted else 'len(data)'}: retry()\"", _AT_ONCE),
    Mutant("codec/decoder.py", '        with self.block("else:"):\n            with self.rounds(element, one, items):',
           '        self.add("else: retry()")\n        with self.block("if 0:"):\n            with self.rounds('
           "element, one, items):", _ONE_SIZE),
    # Texts of a table, which are kept.
    Mutant("report/sums.py", "if pa.types.is_dictionary(column.type):", "if False:", _ONE_TEXT),
    Mutant("report/sums.py", "sys.intern(one) for one in values", "one for one in values", _ONE_TEXT),
    Mutant("report/sums.py", "column.cast(column.type.value_type)", "column.cast(pa.string())",
           "report/test_sums.py::test_values_of_a_dictionary_stay_what_they_are"),
    # Error 35 of another API than ApiVersions.
    Mutant(
        "protocol/headers.py",
        "fallback = api_key == API_VERSIONS and data[pos : pos + 2]", "fallback = data[pos : pos + 2]",
        "protocol/test_headers.py::test_error_35_falls_back_for_api_versions_and_nothing_else",
    ),
    Mutant(
        "kernels/judging.py",
        "response == 1 and api == ApiKey.API_VERSIONS and version > 0", "response == 1 and version > 0",
        "kernels/test_judging.py::test_error_35_of_another_api_is_no_reason_for_version_0",
    ),
    Mutant(
        "kernels/judging.py", "            and row.api == ApiKey.API_VERSIONS\n", "",
        "kernels/test_judging.py::test_error_35_of_another_api_is_no_reason_for_version_0",
    ),
    Mutant(
        "protocol/connection.py", "if key == ApiKey.API_VERSIONS and message.error_code == _UNSUPPORTED_VERSION:",
        "if getattr(message, 'error_code', 0) == _UNSUPPORTED_VERSION:",
        "protocol/test_connection.py::test_a_broker_says_error_35_in_version_0_for_api_versions_alone",
    ),
    # The header of ControlledShutdown v1 and later.
    Mutant(
        "protocol/headers.py", "if api_key == CONTROLLED_SHUTDOWN and api_version == 0:",
        "if api_key == CONTROLLED_SHUTDOWN:",
        "protocol/test_headers.py::test_controlled_shutdown_has_a_client_id_from_version_1_on",
    ),
    Mutant(
        "protocol/headers.py", "if api_key == CONTROLLED_SHUTDOWN and api_version == 0:", "if False:",
        "protocol/test_headers.py::test_controlled_shutdown_0_has_none",
    ),
    Mutant(
        "kernels/framing.py", "if row.api == ApiKey.CONTROLLED_SHUTDOWN and row.version == 0:",
        "if row.api == ApiKey.CONTROLLED_SHUTDOWN:",
        "tables/test_frames.py::test_controlled_shutdown_names_its_client_from_version_1_on",
    ),
    Mutant(
        "kernels/roles.py", "if api == ApiKey.CONTROLLED_SHUTDOWN and version == 0:",
        "if api == ApiKey.CONTROLLED_SHUTDOWN:",
        "kernels/test_roles.py::test_controlled_shutdown_has_a_client_id_from_version_1_on",
    ),
    # Frames of other protocols that are Produce requests by chance.
    Mutant("kernels/judging.py", "after < 0 or (-1 <= acks <= 1 and", "after < 0 or (",
           "capture/test_other_protocols.py::test_acks_that_brokers_refuse_do_not_tell_and_are_rows_where_something_else_does"),
    Mutant("kernels/roles.py", "if (named or unanswered) and plausible_request", "if plausible_request",
           "capture/test_other_protocols.py::test_protocols_that_nobody_has_designed_have_no_good_frame"),
    Mutant("kernels/confirming.py", "    return int64(NO) if _is_no_answer", "    return int64(YES) if _is_no_answer",
           "capture/test_other_protocols.py::test_a_protocol_that_spells_a_request_at_the_address_of_a_broker"),
    Mutant("kernels/framing.py", "        if ready and asked.unsure == 0:", "        if ready:",
           "capture/test_recognised.py::test_an_answer_is_not_passed_over_while_its_request_is_unsure"),
    # A last offset that wraps.
    Mutant("records/reader.py", "last_offset=wrapped64(base_offset + last_offset_delta)",
           "last_offset=base_offset + last_offset_delta", _RECORDS + "test_a_last_offset_wraps_as_kafkas_does"),
    Mutant("records/reader.py", "offset=wrapped64(batch.base_offset + wrapped32(offset_delta))",
           "offset=batch.base_offset + wrapped32(offset_delta)", _RECORDS + "test_a_last_offset_wraps_as_kafkas_does"),
    # Exactly ``limits.nesting`` levels.
    Mutant("records/reader.py", "if depth > self.limits.nesting:", "if depth >= self.limits.nesting:",
           _RECORDS + "test_as_many_wrappers_as_the_limit_are_opened"),
    Mutant("records/reader.py", "if depth > self.limits.nesting:", "if depth > self.limits.nesting + 1:",
           _RECORDS + "test_as_many_wrappers_as_the_limit_are_opened"),
    Mutant("records/window.py", "if len(tables) > self.limits.nesting and",
           "if len(tables) >= self.limits.nesting and", _RECORDS + "test_as_many_wrappers_as_the_limit_are_opened"),
    Mutant("records/window.py", "if len(tables) > self.limits.nesting and",
           "if len(tables) > self.limits.nesting + 1 and", _RECORDS + "test_as_many_wrappers_as_the_limit_are_opened"),
    # The base offset where the last message of a wrapper is bad.
    Mutant("records/reader.py", "                if not own_attributes & 7:\n                    last = own\n", "",
           _RECORDS + "test_the_base_offset_counts_from_the_last_message_although_it_is_bad"),
    Mutant("records/window.py", 'own[which[last]] - inner["last"][last]',
           'own[which[last]] - inner["last"][last] + 5',
           _RECORDS + "test_the_base_offset_counts_from_the_last_message_although_it_is_bad"),
    Mutant("records/window.py", "bases[(bases < 0) | ", "bases[",
           _RECORDS + "test_a_wrapper_whose_offset_the_broker_has_not_set_has_no_base"),
    Mutant("records/reader.py", "max(wrapped64(offset - last), 0) if magic", "wrapped64(offset - last) if magic",
           _RECORDS + "test_a_wrapper_whose_offset_the_broker_has_not_set_has_no_base"),
    # Offsets inside of a magic 1 wrapper that is written with a base above 0, and codec bits of inner messages.
    Mutant("records/writer.py", "            number - base,\n", "            number,\n",
           _RECORDS + "test_offsets_inside_of_a_wrapper_are_relative_to_its_base"),
    Mutant("records/writer.py", "record.attributes & ~CODEC,\n            number",
           "record.attributes,\n            number",
           _RECORDS + "test_messages_inside_of_a_wrapper_have_no_codec_of_their_own"),
    # Null in a tagged nullable struct.
    Mutant("codec/decoder.py", 'f"if 0 < n <= {wire.MOST_POSITIVE}:"', 'f"if 0 <= n <= {wire.MOST_POSITIVE}:"', _NULL),
    Mutant("codec/tracked.py", "if not 0 < self.uvarint(self.pos) <= wire.MOST_POSITIVE:",
           "if not 0 <= self.uvarint(self.pos) <= wire.MOST_POSITIVE:", _NULL),
    Mutant("codec/tracked.py", 'null = b"\\xff" if field.tag is None else b"\\x00"', 'null = b"\\xff"', _NULL),
    Mutant("codec/reference.py", "present = 0 < _uvarint._parse(stream, context, path)",
           "present = 0 <= _uvarint._parse(stream, context, path)", _NULL),
    Mutant("codec/reference.py", "_uvarint._build(0 if obj is None else 1, stream, context, path)",
           "_uvarint._build(1, stream, context, path)", _NULL),
    # Splitting beyond what an Arrow batch can hold.
    Mutant("records/batching.py", 'before[0] + most, "right"', 'most, "right"', _COST),
    Mutant("records/batching.py", 'before[0] + most, "right"', 'before[0] + most, "left"', _COST),
    Mutant("records/batching.py", 'before[1] + most_rows, "right"', 'before[1] + most_rows, "left"', _ROWS),
    Mutant("records/batching.py", 'before[1] + most_rows, "right"', 'before[1] + 2 * most_rows, "right"', _ROWS),
    Mutant("records/batching.py", "last = max(last, first + 1)", "last = max(last, first + 2)", _COST),
    Mutant("records/batching.py", "and costs.sum() <= most:", "and costs.sum() <= 2 * most:", _COST),
    Mutant("records/columns.py", "        return batch_ranges(costs)\n", "        return iter([(0, rows)])\n", _CUT),
    Mutant("records/columnar.py", "list(batch_ranges(*totals)) or [(0, 0)]", "[(0, sets)]", _CUT),
    # Damaged pcapng blocks.
    Mutant("kernels/packets.py", "if total < _ENHANCED_FRAME:", "if False:",
           "capture/test_containers.py::test_a_pcapng_block_that_is_too_short_may_stand_at_the_end"),
    Mutant("kernels/packets.py", "if total < _ENHANCED_FRAME:", "if total <= _ENHANCED_FRAME:", _GOOD_BLOCK),
    Mutant("kernels/packets.py", "if captured > total - _ENHANCED_FRAME:", "if captured > total:", _BAD_BLOCK),
    Mutant("kernels/packets.py", "if captured > total - _ENHANCED_FRAME:", "if captured >= total - _ENHANCED_FRAME:",
           _GOOD_BLOCK),
    Mutant("kernels/packets.py", "if total < _SIMPLE_FRAME:", "if total < _SIMPLE_FRAME - 4:", _BAD_BLOCK),
    Mutant("kernels/packets.py", "if total < _SIMPLE_FRAME:", "if total <= _SIMPLE_FRAME:", _GOOD_BLOCK),
    Mutant("kernels/packets.py", "total < _LEAST_BLOCK or total & 3 or", "total < _LEAST_BLOCK or", _BAD_BLOCK),
    Mutant("kernels/packets.py", "total < _LEAST_BLOCK or total & 3 or", "total < 8 or total & 3 or", _BAD_BLOCK),
    Mutant("kernels/packets.py", "total & 3 or total > MAX_PACKET:", "total & 3:", _BAD_BLOCK),
]  # fmt: skip


def run(checkout: Path, tests: list[str]) -> subprocess.CompletedProcess[str]:
    """Those tests, on the package in ``checkout``."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", "not machine"]
    paths = [f"tests/unit/{test}" for test in tests]
    environment = {**os.environ, "PYTHONPATH": str(checkout), "NUMBA_DISABLE_JIT": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [*command, *paths], cwd=checkout, env=environment, capture_output=True, text=True, timeout=SECONDS
    )


def main(words: list[str]) -> int:
    chosen = [one for one in MUTANTS if not words or any(word in one.file + one.test for word in words)]
    survived = 0
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder)
        for name in _COPIED:
            target = checkout / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (CHECKOUT / name).is_dir():
                shutil.copytree(CHECKOUT / name, target, ignore=shutil.ignore_patterns("__pycache__", "golden"))
            else:
                shutil.copy(CHECKOUT / name, target)
        (checkout / "tests" / "golden").symlink_to(CHECKOUT / "tests" / "golden")
        plain = run(checkout, sorted({one.test for one in chosen}))
        if plain.returncode:
            print(plain.stdout[-3000:], plain.stderr[-1000:], "the tests fail without any mutant", file=sys.stderr)
            return 2
        for one in chosen:
            path = checkout / "kwire" / one.file
            text = path.read_text()
            path.write_text(text.replace(one.old, one.new))
            # 1: tests failed. Anything else says that they could not be run, or passed. To run for ever is to fail.
            try:
                noticed = run(checkout, [one.test]).returncode == 1
            except subprocess.TimeoutExpired:
                noticed = True
            path.write_text(text)
            survived += not noticed
            print(
                f"{'noticed ' if noticed else 'SURVIVED'} {one.file}: {one.old.strip()} -> {one.new.strip()}",
                flush=True,
            )
    print(f"{len(chosen)} mutants, {survived} survived")
    return int(survived > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
