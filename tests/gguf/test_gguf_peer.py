# SPDX-License-Identifier: MIT
"""Files both ways between sotto and PyPI's gguf: what one writes the other reads, and both write the same bytes."""
import os
import subprocess
import tempfile

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter

TOOL = os.path.join(os.environ["SOTTO_BUILD"], "tests", "test_gguf_roundtrip")

T = GGUFValueType
VALUES = [   # as test_gguf_roundtrip.c sets them, after general.architecture
    ("a.u8", 200, T.UINT8), ("a.i8", -100, T.INT8), ("a.u16", 65000, T.UINT16), ("a.i16", -30000, T.INT16),
    ("a.u32", 4000000000, T.UINT32), ("a.i32", -2000000000, T.INT32), ("a.f32", 0.25, T.FLOAT32),
    ("a.bool", True, T.BOOL), ("a.u64", 2**64 - 1, T.UINT64), ("a.i64", -2**63, T.INT64), ("a.f64", 1e-300, T.FLOAT64),
    ("b.str", ["", "one", "\u00e9\u4f60"], T.STRING), ("b.i8", [-128, 0, 127], T.INT8),
    ("b.bool", [True, False], T.BOOL), ("b.f64", [0.5, -1e300], T.FLOAT64), ("b.u64", [1, 2**64 - 1], T.UINT64),
]
TENSORS = [
    ("t.0", np.arange(30, dtype=np.float32).reshape(5, 3, 2) / 8),
    ("t.1", np.arange(-3, 4, dtype=np.float16)),
    ("t.2", np.array([-1, 2**63 - 1], dtype=np.int64)),
]


def run(*args):
    subprocess.run([TOOL, *args], check=True)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write_with_peer(path):
    writer = GGUFWriter(path, "test")
    for key, value, kind in VALUES:
        if isinstance(value, list):
            writer.add_key_value(key, value, T.ARRAY, sub_type=kind)
        else:
            writer.add_key_value(key, value, kind)
    writer.add_custom_alignment(64)
    for name, array in TENSORS:
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def check_with_peer(path):
    reader = GGUFReader(path)
    checks = 0
    for key, value, _ in VALUES:
        assert reader.fields[key].contents() == value, key
        checks += 1
    assert reader.fields["general.architecture"].contents() == "test" and reader.alignment == 64
    assert [t.name for t in reader.tensors] == [name for name, _ in TENSORS]
    for tensor, (_, array) in zip(reader.tensors, TENSORS):
        assert tensor.data.dtype == array.dtype and np.array_equal(tensor.data, array), tensor.name
        checks += 1
    return checks


def check_block_types(work):
    """Every block type of the peer, with arbitrary bytes, through sotto and back.

    But q8_1: it never stands in files, and the peer counts its block as 40 bytes where the field's C code has 36."""
    from gguf.constants import GGML_QUANT_SIZES
    path, out = os.path.join(work, "blocks.gguf"), os.path.join(work, "blocks-out.gguf")
    writer = GGUFWriter(path, "test")
    rng = np.random.default_rng(1)
    kinds = [k for k in GGMLQuantizationType if GGML_QUANT_SIZES[k][0] > 1 and k != GGMLQuantizationType.Q8_1]
    for kind in kinds:
        block, size = GGML_QUANT_SIZES[kind]
        data = rng.integers(0, 256, (3, 2 * size), dtype=np.uint8)
        writer.add_tensor("t." + kind.name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    run("copy", path, out)
    assert read(path) == read(out)
    return len(kinds)


def main():
    with tempfile.TemporaryDirectory() as work:
        ours, theirs, copied = (os.path.join(work, n + ".gguf") for n in ("ours", "theirs", "copied"))
        run("make", ours)
        print(check_with_peer(ours), "values and tensors read by the peer")
        write_with_peer(theirs)
        run("copy", theirs, copied)
        assert read(theirs) == read(copied)
        assert read(theirs) == read(ours)
        print(check_block_types(work), "block types copied")


main()
