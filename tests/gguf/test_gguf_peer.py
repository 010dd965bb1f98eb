# SPDX-License-Identifier: MIT
"""Files both ways between sotto and PyPI's gguf, in both byte orders: what one writes the other reads, and both write
the same bytes. In the other order blocks are turned by the peer's own converter where it knows their type, and by the
specification's table of fields for the rest."""
import argparse
import builtins
import os
import subprocess
import tempfile

import numpy as np
from gguf import GGMLQuantizationType, GGUFEndian, GGUFReader, GGUFValueType, GGUFWriter
from gguf.constants import GGML_QUANT_SIZES
from gguf.scripts import gguf_convert_endian

TOOL = os.path.join(os.environ["SOTTO_BUILD"], "tests", "test_gguf_roundtrip")

T = GGUFValueType
K = GGMLQuantizationType
VALUES = [   # as test_gguf_roundtrip.c sets them, after general.architecture
    ("a.u8", 200, T.UINT8), ("a.i8", -100, T.INT8), ("a.u16", 65000, T.UINT16), ("a.i16", -30000, T.INT16),
    ("a.u32", 4000000000, T.UINT32), ("a.i32", -2000000000, T.INT32), ("a.f32", 0.25, T.FLOAT32),
    ("a.bool", True, T.BOOL), ("a.u64", 2**64 - 1, T.UINT64), ("a.i64", -2**63, T.INT64), ("a.f64", 1e-300, T.FLOAT64),
    ("b.str", ["", "one", "\u00e9\u4f60"], T.STRING), ("b.i8", [-128, 0, 127], T.INT8),
    ("b.bool", [True, False], T.BOOL), ("b.f64", [0.5, -1e300], T.FLOAT64), ("b.u64", [1, 2**64 - 1], T.UINT64),
    ("k" * 65535, 7, T.UINT16), ("c.long", "v" * 1000000, T.STRING),
]
TENSORS = [
    ("t.0", np.arange(30, dtype=np.float32).reshape(5, 3, 2) / 8),
    ("t.1", np.arange(-3, 4, dtype=np.float16)),
    ("t.2", np.array([-1, 2**63 - 1], dtype=np.int64)),
]
PLAIN = {K.F32: np.float32, K.F16: np.float16, K.F64: np.float64, K.I8: np.int8, K.I16: np.int16, K.I32: np.int32,
         K.I64: np.int64}

# All types that the peer knows, but q8_1: it never stands in files, and the peer counts its block as 40 bytes where the
# field's C code has 36.
KINDS = [k for k in K if k != K.Q8_1]
# gguf.md section 8: offset in the block, bytes, how many
FIELDS = {
    K.Q4_0: [(0, 2, 1)], K.Q8_0: [(0, 2, 1)], K.IQ4_NL: [(0, 2, 1)], K.Q4_1: [(0, 2, 1), (2, 2, 1)],
    K.Q2_K: [(80, 2, 1), (82, 2, 1)], K.Q3_K: [(108, 2, 1)], K.Q4_K: [(0, 2, 1), (2, 2, 1)],
    K.Q5_K: [(0, 2, 1), (2, 2, 1)], K.Q6_K: [(208, 2, 1)], K.Q8_K: [(0, 4, 1), (260, 2, 16)],
    K.TQ1_0: [(52, 2, 1)], K.TQ2_0: [(64, 2, 1)], K.MXFP4: [], K.NVFP4: [],
    K.Q1_0: [(0, 2, 1)], K.BF16: [(0, 2, 1)],
}
CONVERTED = [K.F32, K.F16, K.BF16, *gguf_convert_endian.byteswap_tensors]   # what the peer's converter knows


def run(*args):
    subprocess.run([TOOL, *map(str, args)], check=True)


def refuse(*args):
    done = subprocess.run([TOOL, *map(str, args)], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1, done
    return done.stderr


def read(path):
    with open(path, "rb") as file:
        return file.read()


def name_of(kind):
    return f"{int(kind):063d}"


def bytes_of(kind):
    """Two rows of two blocks, as add_type() of test_gguf_roundtrip.c fills them."""
    size = GGML_QUANT_SIZES[kind][1]
    return (np.arange(4 * size) * 7 + int(kind) * 13).astype(np.uint8).reshape(2, 2 * size)


def turned(kind, data):
    """The same blocks in the other byte order."""
    data = data.copy()
    blocks = data.reshape(-1, GGML_QUANT_SIZES[kind][1])
    for at, width, count in FIELDS[kind]:
        for i in range(at, at + width * count, width):
            blocks[:, i:i + width] = blocks[:, i:i + width][:, ::-1]
    return data


def add_kind(writer, kind, big):
    data = bytes_of(kind)
    if kind in PLAIN:
        writer.add_tensor(name_of(kind), data.view(PLAIN[kind]).copy())
    else:   # the peer's writer leaves the order of bytes to its caller
        writer.add_tensor(name_of(kind), turned(kind, data) if big else data, raw_dtype=kind)


def write_with_peer(path, big, alignment, kinds):
    writer = GGUFWriter(path, "test", endianess=GGUFEndian.BIG if big else GGUFEndian.LITTLE)
    for key, value, kind in VALUES:
        if isinstance(value, list):
            writer.add_key_value(key, value, T.ARRAY, sub_type=kind)
        else:
            writer.add_key_value(key, value, kind)
    writer.add_custom_alignment(alignment)
    for name, array in TENSORS:
        writer.add_tensor(name, array.copy())
    for kind in kinds:
        add_kind(writer, kind, big)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def check_with_peer(path, big, alignment, kinds):
    """Every value and every tensor, as the peer sees them."""
    reader = GGUFReader(path)
    assert (reader.endianess == GGUFEndian.BIG) == big and reader.alignment == alignment
    for key, value, _ in VALUES:
        assert reader.fields[key].contents() == value, key[:40]
    assert reader.fields["general.architecture"].contents() == "test"
    assert [t.name for t in reader.tensors] == [name for name, _ in TENSORS] + [name_of(k) for k in kinds]
    for tensor, (_, array) in zip(reader.tensors, TENSORS):
        assert tensor.data.dtype.newbyteorder("=") == array.dtype, tensor.name
        assert np.array_equal(tensor.data, array), tensor.name
    for tensor, kind in zip(reader.tensors[len(TENSORS):], kinds):
        assert tensor.tensor_type == kind
        data = bytes_of(kind)
        if kind in PLAIN:
            seen = tensor.data.astype(PLAIN[kind])   # into the order of the machine
            assert seen.tobytes() == data.tobytes(), kind
        else:
            assert np.array_equal(tensor.data, turned(kind, data) if big else data), kind
    return len(VALUES) + len(reader.tensors)


def both_ways(work, big, alignment, kinds):
    order = "big" if big else "little"
    ours, theirs, copied = (os.path.join(work, n + ".gguf") for n in ("ours", "theirs", "copied"))
    run("make", ours, order, alignment, *map(int, kinds))
    n = check_with_peer(ours, big, alignment, kinds)
    write_with_peer(theirs, big, alignment, kinds)
    assert read(theirs) == read(ours)
    run("copy", theirs, copied, order)
    assert read(theirs) == read(copied)
    if big:
        run("make", ours, "little", alignment, *map(int, kinds))
        run("copy", theirs, copied, "little")
        assert read(ours) == read(copied)
    return n


def against_the_converter(work):
    """A file that the peer has turned itself."""
    path, ours, back = (os.path.join(work, n) for n in ("turned.gguf", "ours.gguf", "back.gguf"))
    writer = GGUFWriter(path, "test")
    for kind in CONVERTED:
        data = bytes_of(kind)
        writer.add_tensor(kind.name, data.view(PLAIN[kind]) if kind in PLAIN else data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    before = read(path)
    run("copy", path, ours, "big")
    builtins.input = lambda *_: "YES"
    gguf_convert_endian.logger.disabled = True
    gguf_convert_endian.tqdm = lambda items, **_: Quiet(items)
    gguf_convert_endian.convert_byteorder(GGUFReader(path, "r+"), argparse.Namespace(order="big", dry_run=False))
    assert read(path) == read(ours) != before
    run("copy", path, back, "little")
    assert read(back) == before


class Quiet(list):
    """A progress bar that shows nothing."""

    def set_description(self, *_):
        pass


def main():
    form = [k for k in KINDS if k in FIELDS or k in PLAIN]
    formless = [k for k in KINDS if k not in form]
    assert len(formless) == 10
    with tempfile.TemporaryDirectory() as work:
        checks = 0
        for alignment in (1, 2, 8, 32, 64, 4096):
            checks += both_ways(work, False, alignment, KINDS)
            checks += both_ways(work, True, alignment, form)
        print(checks, "values and tensors the same on both sides")
        against_the_converter(work)
        for kind in formless:
            assert "ENDIAN" in refuse("make", os.path.join(work, "never.gguf"), "big", 32, int(kind)), kind
        print(len(formless), "types refused in the other byte order")


main()
