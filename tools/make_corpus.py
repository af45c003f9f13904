#!/usr/bin/env python3
"""Writes the seed corpora of the safetensors, JSON, packed weights and cache fuzz targets.

Each seed is one named way for a file to be right (ok_*) or wrong (bad_*); the tests list the expected
result of each. Binary seeds are made here so that code explains their bytes.

    tools/make_corpus.py           write tests/corpus/{safetensors,json,packed,cache}
    tools/make_corpus.py --check   exit 1 unless they hold exactly what this script would write
"""

import hashlib
import json
import struct
import sys
from pathlib import Path

CORPUS = Path(__file__).resolve().parent.parent / "tests" / "corpus"


def container(header, data=b"", length=None):
    """The length, the header, the data. `header` is a dict or raw bytes; `length` may lie."""
    if isinstance(header, dict):
        header = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def tensor(begin, end, shape, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def one(data=bytes(8), **changes):
    """A file with one F32 tensor of two elements, its entry changed as told (None: left out)."""
    entry = {**tensor(0, 8, [2]), **changes}
    return container({"a": {key: value for key, value in entry.items() if value is not None}}, data)


def all_types():
    sizes = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1}
    sizes |= {"U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1}
    header, end = {}, 0
    for dtype, size in sizes.items():
        header[f"t.{dtype}"] = tensor(end, end + 2 * size, [2, 1], dtype)
        end += 2 * size
    return container(header, bytes(end))


def safetensors_seeds():
    entry = b'{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
    deep = b'{"a":' * 70 + b"1" + b"}" * 70
    return {
        "ok_no_tensors": container({}),
        "ok_one": one(struct.pack("<2f", 1.5, -2.0)),
        "ok_all_types": all_types(),
        "ok_scalar": one(bytes(4), shape=[], data_offsets=[0, 4]),
        "ok_zero_size": container(
            {"a": tensor(0, 4, [1]), "z": tensor(4, 4, [3, 0]), "b": tensor(4, 8, [1])}, bytes(8)),
        "ok_header_not_in_file_order": container(
            {"b": tensor(4, 8, [1]), "a": tensor(0, 4, [1])}, struct.pack("<2f", 1.0, 2.0)),
        "ok_metadata": container(
            {"__metadata__": {"format": "pt", "note": "\u00fc\n"}, "a": tensor(0, 4, [1])},
            bytes(4)),
        "ok_padded_header": container(b'{"a":' + entry + b"}" + b" " * 7, bytes(4)),
        "ok_name_needs_escapes": container(
            {'q"\\\u0001\u00fc\U0001f600': tensor(0, 4, [1])}, bytes(4)),
        "ok_f16": one(struct.pack("<2H", 0x3C00, 0x0001), dtype="F16", data_offsets=[0, 4]),
        "ok_bf16": one(struct.pack("<2H", 0x3F80, 0x0001), dtype="BF16", data_offsets=[0, 4]),
        "bad_empty_file": b"",
        "bad_five_bytes": b"\x02\0\0\0\0",
        "bad_length_0": container(b"{}", length=0),
        "bad_length_past_end": container(b"{}", length=3),
        "bad_length_2_63": container(b"{}", length=2**63),
        "bad_length_2_64_minus_1": container(b"{}", length=2**64 - 1),
        "bad_length_2_64_minus_4": container(b"{}", length=2**64 - 4),
        "bad_git_lfs_pointer":
            b"version https://git-lfs.example/spec/v1\noid sha256:4d7a\nsize 9\n",
        "bad_pytorch_zip": b"PK\x03\x04\0\0\x08\x08" + bytes(40),
        "bad_header_is_array": container(b"[]"),
        "bad_header_begins_with_space": container(b" {}"),
        "bad_header_truncated": container(b'{"a":{"dtype":"F32"'),
        "bad_header_zero_padded": container(b"{}\0\0"),
        "bad_bytes_after_json": container(b"{}{}"),
        "bad_bytes_after_data": one(bytes(11)),
        "bad_truncated_by_one": one(bytes(7)),
        "bad_utf8": container(b'{"a\xff":' + entry + b"}", bytes(4)),
        "bad_depth": container(deep),
        "bad_duplicate_name": container(b'{"a":' + entry + b',"a":' + entry + b"}", bytes(4)),
        "bad_duplicate_escaped_name": container(
            b'{"a":' + entry + b',"\\u0061":' + entry + b"}", bytes(4)),
        "bad_metadata_number": container({"__metadata__": {"layers": 12}}),
        "bad_metadata_array": container({"__metadata__": ["pt"]}),
        "bad_name_too_long": container({"n" * 5000: tensor(0, 4, [1])}, bytes(4)),
        "bad_entry_not_object": container({"a": [1]}),
        "bad_entry_unknown_field": one(strides=[1]),
        "bad_entry_without_dtype": one(dtype=None),
        "bad_entry_without_shape": one(shape=None),
        "bad_entry_without_offsets": one(data_offsets=None),
        "bad_dtype_unknown": one(dtype="F33"),
        "bad_dtype_lower_case": one(dtype="f32"),
        "bad_dtype_number": one(dtype=32),
        "bad_dtype_f8_e4m3": one(bytes(2), dtype="F8_E4M3", data_offsets=[0, 2]),
        "bad_dtype_f8_e5m2": one(bytes(2), dtype="F8_E5M2", data_offsets=[0, 2]),
        "bad_dtype_f4": one(bytes(1), dtype="F4", data_offsets=[0, 1]),
        "bad_dtype_c64": one(bytes(16), dtype="C64", data_offsets=[0, 16]),
        "bad_shape_wraps": one(b"", shape=[2**32, 2**32], data_offsets=[0, 0]),
        "bad_shape_wraps_in_bytes": one(b"", shape=[2**62], data_offsets=[0, 0]),
        "bad_shape_wraps_beside_zero": one(b"", shape=[2**40, 2**40, 0], data_offsets=[0, 0]),
        "bad_shape_zero_with_data": one(shape=[0, 2]),
        "bad_shape_65_dimensions": one(shape=[1] * 64 + [2]),
        "bad_shape_number": one(shape=2),
        "bad_dimension_negative": one(shape=[-2]),
        "bad_dimension_float": one(shape=[2.0]),
        "bad_dimension_string": one(shape=["2"]),
        "bad_dimension_2_64": one(shape=[2**64]),
        "bad_offsets_reversed": one(data_offsets=[8, 0]),
        "bad_offsets_negative": one(data_offsets=[-8, 0]),
        "bad_offsets_one": one(data_offsets=[8]),
        "bad_offsets_three": one(data_offsets=[0, 8, 8]),
        "bad_offsets_number": one(data_offsets=8),
        "bad_offsets_float": one(data_offsets=[0, 8.5]),
        "bad_offsets_past_end": one(shape=[3], data_offsets=[0, 12]),
        "bad_offsets_2_64_minus_1": one(data_offsets=[0, 2**64 - 1]),
        "bad_offsets_overlap": container(
            {"a": tensor(0, 8, [2]), "b": tensor(4, 12, [2])}, bytes(12)),
        "bad_offsets_same_data_twice": container(
            {"a": tensor(0, 8, [2]), "b": tensor(0, 8, [2])}, bytes(8)),
        "bad_offsets_empty_inside": container(
            {"a": tensor(0, 8, [2]), "z": tensor(4, 4, [0])}, bytes(8)),
        "bad_offsets_hole": container({"a": tensor(0, 4, [1]), "b": tensor(8, 12, [1])}, bytes(12)),
        "bad_offsets_hole_at_start": one(bytes(12), data_offsets=[4, 12]),
        "bad_span_unequal_shape": one(shape=[3]),
        "bad_span_unequal_dtype": one(dtype="F64"),
    }


def json_seeds():
    return {
        "ok_object":
            b'{"patch_size": 64, "dropout": 0.1, "list": ["a", null, true, false], "n": {}}',
        "ok_array": b"[1, -2, 3.5, 1e-3, 1E+2, -0, -0.0, []]",
        "ok_string": b' "alone" \n',
        "ok_number": b"\t-12.5e3\r\n",
        "ok_true": b"true",
        "ok_null": b" null ",
        "ok_byte_order_mark": b'\xef\xbb\xbf{"a": 1}',
        "ok_escapes": b'["\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u00fc \\ud83d\\ude00 \\u0000", '
                      b'"\xc3\xbc\xf0\x9f\x98\x80"]',
        "ok_integers": b"[9223372036854775807, -9223372036854775808, 9223372036854775808, 1"
                       + b"0" * 30 + b"]",
        "ok_reals": b"[1.7976931348623157e308, 5e-324, 2.2250738585072014e-308, 1e-400, "
                    b"-1e-99999999999999999999]",
        "ok_long_zero": b"[0." + b"0" * 400 + b"1, 1" + b"0" * 400
                        + b"e-400, 0e999999999999999999999]",
        "ok_depth_64": b"[" * 64 + b"]" * 64,
        "ok_same_key_in_different_objects": b'[{"a": 1}, {"a": 2}]',
        "bad_empty": b"",
        "bad_blank": b" \n\t ",
        "bad_only_byte_order_mark": b"\xef\xbb\xbf",
        "bad_utf16": '{"a": 1}'.encode("utf-16"),
        "bad_utf8_in_string": b'{"a":\n "x\xc3("}',
        "bad_utf8_overlong": b'["\xc0\xaf"]',
        "bad_utf8_surrogate": b'["\xed\xa0\x80"]',
        "bad_zero_byte": b'{"a": 1}\0',
        "bad_control_in_string": b'{"a": "line\nbreak"}',
        "bad_unclosed_string": b'{"a": "b}',
        "bad_unclosed_object": b'{"a": 1',
        "bad_unclosed_array": b"[1, 2",
        "bad_unclosed_inner": b'{"a": [1, 2}',
        "bad_unclosed_empty_inner": b'{"a": {}',
        "bad_mismatched": b'{"a": 1]',
        "bad_trailing_comma": b'{"a": 1,\n}',
        "bad_trailing_comma_array": b"[1, 2, ]",
        "bad_missing_comma": b"[1 2]",
        "bad_missing_colon": b'{"a" 1}',
        "bad_missing_value": b'{"a": }',
        "bad_key_not_string": b"{1: 2}",
        "bad_single_quotes": b"{'a': 1}",
        "bad_comment": b"{} // no comments",
        "bad_two_documents": b"{}\n{}",
        "bad_two_scalars": b"1 2",
        "bad_bracket_after_end": b"[]]",
        "bad_escape": b'["\\x"]',
        "bad_lone_high_surrogate": b'["\\ud83d"]',
        "bad_lone_low_surrogate": b'["\\ude00"]',
        "bad_literal_nan": b'{"a": NaN}',
        "bad_literal_infinity": b"[-Infinity]",
        "bad_literal_upper_case": b"[True]",
        "bad_literal_cut": b"[nul]",
        "bad_number_leading_zero": b"[01]",
        "bad_number_leading_plus": b"[+1]",
        "bad_number_no_fraction": b"[1.]",
        "bad_number_no_whole": b"[.5]",
        "bad_number_no_exponent": b"[1e]",
        "bad_number_hex": b"[0x10]",
        "bad_number_only_minus": b"[-]",
        "bad_number_too_large": b'{"scale": 1e400}',
        "bad_number_too_large_negative_exponent": b"[1" + b"0" * 700 + b"e-300]",
        "bad_duplicate_key": b'{"dim": 1,\n "dim": 2}',
        "bad_duplicate_escaped_key": b'{"a": 1, "\\u0061": 2}',
        "bad_duplicate_inner_key": b'{"a": [{"b": 1, "b": 1}]}',
        "bad_depth_65": b"[" * 65 + b"]" * 65,
        "bad_depth_mixed": b'[{"a":' * 33 + b"1" + b"}]" * 33,
    }


def sha256(data):
    return hashlib.sha256(data).digest()


def entry(sections, key=b"1", magic=b"totopack", version=2, size=None, trailer=None):
    """src/cache/packed_file.h. Both checksums are right, whatever else is not."""
    body = b"".join(section.ljust((len(section) + 4095) // 4096 * 4096, b"\0") for section in sections)
    size = 4096 + len(body) + 32 if size is None else size
    header = struct.pack("<8s2IQ64s64s", magic, version, len(sections), size, key * 64, b"a" * 64)
    table = b"".join(struct.pack("<Q", len(section)) for section in sections)
    start = (header + sha256(header) + table).ljust(4096, b"\0")
    total = sha256(sha256(start + body)) if trailer is None else trailer  # one chunk of 1 MB
    return start + body + total


def packed_seeds():
    sections = [bytes(range(100)), b"", bytes(5000)]
    good = entry(sections)
    return {
        "ok_entry": good,
        "bad_empty": b"",
        "bad_header_only": good[:184],
        "bad_one_page": good[:4096],
        "bad_truncated_by_one": good[:-1],
        "bad_extended": good + b"\0",
        "bad_magic": entry(sections, magic=b"otherpak"),
        "bad_format": entry(sections, version=1),
        "bad_header_checksum": good[:152] + bytes([good[152] ^ 1]) + good[153:],
        "bad_size": entry(sections, size=2**64 - 1),
        "bad_trailer": entry(sections, trailer=bytes(32)),
        "bad_contents": good[:5000] + b"\x01" + good[5001:],
        "bad_section_sizes": entry([bytes(99), b"", bytes(5000)]),
        "bad_number_of_sections": entry(sections + [b""]),
        "stale_key": entry(sections, key=b"2"),
    }


def cache_seeds():
    """src/backtest/forecast_cache.cc and src/cache/text_entry.cc; the first byte tells which."""
    header = b"TOTOFC02" + hashlib.sha256(b"setting").hexdigest().encode()
    body = struct.pack("<2Q10f", 1, 2, 3.0, *[0.0] * 9)
    record = body + sha256(header + body)[:16]
    first = b"toto cache 1 " + hashlib.sha256(b"key").hexdigest().encode() + b"\n"

    def text(contents):
        return b"t" + contents + hashlib.sha256(contents).hexdigest().encode() + b"\n"

    return {
        "ok_forecasts": b"f" + header + record,
        "ok_two_records": b"h" + record + record,
        "bad_record": b"h" + body + bytes(16),
        "bad_torn_record": b"h" + record + record[:-1],
        "bad_shifted_record": b"h\0" + record,
        "bad_header": b"fTOTOFC01" + header[8:] + record,
        "bad_empty_forecasts": b"f",
        "ok_text": text(first + b"qkv 8 2 0\n"),
        "bad_text_checksum": text(first + b"qkv 8 2 0\n")[:-2] + b"0\n",
        "bad_empty_text": b"t",
        "bad_no_digest": b"t" + first,
    }


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    wrong = 0
    for name, suffix, seeds in (("safetensors", ".safetensors", safetensors_seeds()),
                                ("json", ".json", json_seeds()),
                                ("packed", ".packed", packed_seeds()),
                                ("cache", ".cache", cache_seeds())):
        folder = CORPUS / name
        wanted = {seed + suffix: content for seed, content in seeds.items()}
        found = {path.name: path.read_bytes() for path in folder.glob("*")}
        if check:
            differing = sorted(key for key in wanted.keys() | found.keys()
                               if wanted.get(key) != found.get(key))
            wrong += len(differing)
            for key in differing:
                print(f"{folder / key}: differs from what this script writes", file=sys.stderr)
            continue
        folder.mkdir(parents=True, exist_ok=True)
        for key in found.keys() - wanted.keys():
            (folder / key).unlink()
        for key, content in wanted.items():
            (folder / key).write_bytes(content)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
