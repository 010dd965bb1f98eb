# SPDX-License-Identifier: MIT
"""Quantised models of the tiny Whisper, for every type: what PyPI's gguf reads in them, and what `sotto quantize` refuses.

    test_quantize_long.py [TYPE...]

The peer decodes each tensor to the bits that `sotto convert --type f32` gives, and encodes to the same bytes where it
can encode. Any number of threads gives the same file.
"""
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np
from gguf import GGMLQuantizationType as T
from gguf import GGML_QUANT_SIZES, GGUFReader, GGUFWriter, quants

SOTTO, BUILD = os.environ["SOTTO"], os.environ["SOTTO_BUILD"]
FTYPES = {  # specification, core 5
    "f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q8_0": 7, "q5_0": 8, "q5_1": 9, "q2_K": 10, "q3_K": 11, "q4_K": 12,
    "q5_K": 13, "q6_K": 14, "iq2_xxs": 15, "iq2_xs": 16, "iq3_xxs": 17, "iq1_s": 18, "iq4_nl": 19, "iq3_s": 20,
    "iq2_s": 21, "iq4_xs": 22, "iq1_m": 23, "bf16": 24, "mxfp4": 25, "nvfp4": 26, "q1_0": 27, "q2_0": 28}
TYPES = ["tq1_0", "tq2_0"] + list(FTYPES)[:-2] + ["q1_0", "q2_0"]
FEW = ["q4_0", "q8_0", "q4_K", "iq4_xs", "iq2_xs"]  # under sanitizers, which take ten times as long
NEEDS_IMATRIX = ("iq2_xxs", "iq2_xs", "iq1_s")
PEER_LACKS = ("q1_0", "q2_0")
ENCODED_BY_PEER = ("bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "tq1_0", "tq2_0", "mxfp4")
SLOW = ("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s")  # searches over grids
BIN_TYPES = ("f32", "f16", "q4_0", "q4_1", "q8_0", "q5_0", "q5_1", "q2_K", "q3_K", "q4_K", "q5_K", "q6_K", "bf16")
EMBEDDING = "dec.token_embd.weight"
KINDS = {t.value: (t.name.lower().replace("_k", "_K"), *size) for t, size in GGML_QUANT_SIZES.items()}
KINDS[42] = ("q2_0", 64, 18)
checks = 0


def check(condition, text):
    global checks
    checks += 1
    if not condition:
        sys.exit("FAILED: " + text)


def run(*words, code=0, says=""):
    done = subprocess.run([SOTTO, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    error = done.stderr.decode(errors="replace")
    check(done.returncode == code, f"{words} gave {done.returncode}, not {code}: {error}")
    check(says in error, f"{words} did not say '{says}' but: {error}")
    return error


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Tensor:
    """As the peer's, whose reader takes seconds for a vocabulary."""

    def __init__(self, kind, shape, data):
        self.kind, block, unit = KINDS[kind]
        self.shape = shape  # fastest first
        self.n_bytes = int(np.prod(shape)) // block * unit
        plain = {"f32": "<f4", "f16": "<f2"}.get(self.kind)
        rows = data[:self.n_bytes].view(plain or np.uint8)
        self.data = rows.reshape(tuple(shape[:0:-1]) + (-1,))


SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


class File:
    def __init__(self, path):
        self.bytes = read(path)
        self.at = 8
        n_tensors, n_pairs = self.take("<Q"), self.take("<Q")
        self.fields = {}
        for _ in range(n_pairs):
            key = self.text()
            self.fields[key] = self.value(self.take("<I"))
        infos = []
        for _ in range(n_tensors):
            name = self.text()
            shape = [self.take("<Q") for _ in range(self.take("<I"))]
            infos.append((name, shape, self.take("<I"), self.take("<Q")))
        start = (self.at + 31) // 32 * 32
        data = np.frombuffer(self.bytes, np.uint8)
        self.tensors = {name: Tensor(kind, shape, data[start + at:]) for name, shape, kind, at in infos}

    def take(self, form):
        value, = struct.unpack_from(form, self.bytes, self.at)
        self.at += struct.calcsize(form)
        return value

    def text(self):
        size = self.take("<Q")
        self.at += size
        return self.bytes[self.at - size:self.at].decode()

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind != 9:
            return self.take(SCALARS[kind])
        kind, n = self.take("<I"), self.take("<Q")
        return [self.value(kind) for _ in range(n)]


def tensors(path):
    return File(path).tensors


def check_peer(path):
    """The peer's own reader finds the same."""
    theirs, own = GGUFReader(path), File(path)
    check([t.name for t in theirs.tensors] == list(own.tensors), "the peer finds other tensors")
    for t in theirs.tensors:
        mine = own.tensors[t.name]
        check(KINDS[t.tensor_type][0] == mine.kind and t.data.tobytes() == mine.data.tobytes(), f"the peer's {t.name}")
    for key, value in own.fields.items():
        check(theirs.fields[key].contents() == value, f"the peer's {key}")


def block(kind):
    return next(size for name, size, _ in KINDS.values() if name == kind)


def decode(t):
    return t.data if t.kind == "f32" else quants.dequantize(t.data, T[t.kind.upper()])


def expected_type(name, shape, kind):
    """shape slowest first"""
    if len(shape) == 1 or "pos_embd" in name:
        return "f32"
    if len(shape) == 3:
        return "f32" if kind == "f32" else "f16"
    if shape[-1] % block(kind) == 0:
        return kind
    return "q8_0"


def write_imatrix(path, source, scale=1.0, columns=None, drop=()):
    rng = np.random.default_rng(7)
    writer = GGUFWriter(path, "x")
    writer.add_string("general.type", "imatrix")
    for name, t in source.items():
        if len(t.shape) != 2 or "pos_embd" in name or name in drop:
            continue
        n = columns or int(t.shape[0])
        writer.add_tensor(name + ".in_sum2", (scale * rng.gamma(2.0, 3.0, n)).astype(np.float32).reshape(1, n))
        writer.add_tensor(name + ".counts", np.array([[3.0]], np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def check_type(folder, source, kind, imatrix):
    path, other, wide = (os.path.join(folder, name) for name in (kind + ".gguf", "other.gguf", "wide.gguf"))
    words = ["--imatrix", imatrix] if kind in NEEDS_IMATRIX else []
    if kind in SLOW:  # the vocabulary's 51,865 rows would take long
        words += ["--keep", EMBEDDING + "=q8_0"]
    run("quantize", os.path.join(folder, "tiny.gguf"), path, kind, "-t", "1", *words)
    for threads in ("2", "3"):
        run("quantize", os.path.join(folder, "tiny.gguf"), other, kind.upper(), "-t", threads, *words)
        check(read(path) == read(other), f"{kind}: {threads} threads give other bytes")
    run("convert", path, wide, "--type", "f32")
    floats = tensors(wide)
    quantised = tensors(path)
    check(list(quantised) == list(source), f"{kind}: other tensors")
    for name, t in quantised.items():
        shape = tuple(int(n) for n in t.shape[::-1])
        wanted = expected_type(name, shape, "q8_0" if kind in SLOW and name == EMBEDDING else kind)
        check(t.kind == wanted, f"{kind}: {name} is {t.kind}, not {wanted}")
        if wanted in PEER_LACKS:
            continue
        values = decode(t)
        own = floats[name].data
        check(np.array_equal(values.reshape(-1).astype(np.float32).view(np.uint32), own.reshape(-1).view(np.uint32)),
              f"{kind}: {name} is decoded otherwise")
        if wanted in ENCODED_BY_PEER:
            theirs = quants.quantize(source[name].data, T[wanted.upper()])
            check(theirs.tobytes() == t.data.tobytes(), f"{kind}: {name} is encoded otherwise")
    fields = File(path).fields
    check(fields["general.quantization_version"] == 2, "quantisation version")
    most = most_bytes(quantised)
    if most in FTYPES:
        check(fields["general.file_type"] == FTYPES[most], f"{kind}: file type")
    else:
        check("general.file_type" not in fields, f"{kind}: a file type that does not exist")


def most_bytes(quantised):
    sums = {}
    for name, t in quantised.items():
        if len(t.shape) > 1 and "pos_embd" not in name:
            sums[t.kind] = sums.get(t.kind, 0) + t.n_bytes
    return max(sums, key=sums.get)


def check_bin(folder, kind):
    base = os.path.join(folder, kind)
    run("quantize", os.path.join(folder, "tiny.gguf"), base + ".bin", kind)
    data = np.frombuffer(read(base + ".bin")[:48], "<i4")
    same = tensors(os.path.join(folder, kind + ".gguf"))
    most = FTYPES[most_bytes(same)]
    check(data[11] == most + (0 if most in (0, 1, 24) else 2000), f"{kind}: ftype of .bin is {data[11]}")
    run("convert", base + ".bin", base + "-back.gguf", *(["--type", kind] if kind == "bf16" else []))
    back = tensors(base + "-back.gguf")
    for name, t in same.items():
        check(back[name].kind == t.kind and back[name].data.tobytes() == t.data.tobytes(),
              f"{kind}: {name} is not the same in .bin")


def check_rules(folder):
    tiny, out = os.path.join(folder, "tiny.gguf"), os.path.join(folder, "rules.gguf")
    run("quantize", tiny, out, "q4_0", "--keep", "enc.blk.0.attn_q.weight=f16", "--keep", "enc.blk.*=Q5_1",
        "--keep", "decoder.blocks.0.mlp.[02].weight=f32", "--keep-embedding")
    kinds = {name: t.kind for name, t in tensors(out).items()}
    check(kinds["enc.blk.0.attn_q.weight"] == "f16" and kinds["enc.blk.0.attn_k.weight"] == "q5_1", "rules: order")
    check(kinds["dec.blk.0.ffn_up.weight"] == "f32" and kinds["dec.blk.0.attn_q.weight"] == "q4_0", "rules: .bin names")
    check(kinds[EMBEDDING] == "f16" and kinds["enc.blk.0.attn_q.bias"] == "f32", "rules: embedding")
    run("quantize", tiny, out, "q4_0", "--encoder-type", "q8_0")
    kinds = {name: t.kind for name, t in tensors(out).items()}
    check(kinds["enc.blk.0.attn_q.weight"] == "q8_0" and kinds["dec.blk.0.attn_q.weight"] == "q4_0", "encoder type")
    run("quantize", tiny, out, "2")  # whisper.cpp's number
    check({t.kind for t in tensors(out).values()} == {"f32", "f16", "q4_0"}, "types by number")
    says = run("quantize", tiny, out, "q4_k")
    check(says.count("rows of 64") == 1 and "q4_K (256)" in says and "q8_0" in says, "the fall-back is told once: " + says)
    run("quantize", out, os.path.join(folder, "again.gguf"), "q4_0", says="is quantised already")
    run("quantize", tiny, os.path.join(folder, "mixed.bin"), "q4_k", says="several types")
    for word in ("nothing.*=f16", "enc.blk.0.attn_q.bias=f16", "=f16", "enc*", "enc.*=", "enc.*=q9", "enc.*=i8",
                 "enc.*=q8_1"):
        run("quantize", tiny, out, "q4_0", "--keep", word, code=2)
    run("quantize", tiny, os.path.join(folder, "x.bin"), "iq4_nl", code=2, says=".bin has no iq4_nl")
    run("quantize", tiny, os.path.join(folder, "x.bin"), "q4_0", "--keep", "enc.*=mxfp4", code=2, says=".bin has no mxfp4")


def check_imatrix(folder, source):
    tiny, out, matrix = (os.path.join(folder, name) for name in ("tiny.gguf", "weighed.gguf", "matrix.gguf"))
    plain = tensors(os.path.join(folder, "q4_0.gguf"))
    write_imatrix(matrix, source)
    run("quantize", tiny, out, "q4_0", "--imatrix", matrix)
    weighed = tensors(out)
    name = "enc.blk.0.ffn_down.weight"
    check(weighed[name].data.tobytes() != plain[name].data.tobytes(), "the imatrix changes nothing")
    entries = tensors(matrix)
    importance = entries[name + ".in_sum2"].data.reshape(-1)
    errors = [float((importance * (decode(t[name]) - source[name].data) ** 2).sum())
              for t in (plain, weighed)]
    check(errors[1] < errors[0], f"what matters has become worse: {errors}")
    check(File(out).fields["quantize.imatrix.entries_count"] == len(entries) // 2, "number of entries")
    write_imatrix(matrix, source, scale=4.0)
    run("quantize", tiny, os.path.join(folder, "scaled.gguf"), "q4_0", "--imatrix", matrix)
    check(read(out) == read(os.path.join(folder, "scaled.gguf")), "a multiple of the imatrix gives another file")

    run("quantize", tiny, out, "iq2_xs", code=2, says="iq2_xs needs an imatrix")
    write_imatrix(matrix, source, drop=(name,))
    run("quantize", tiny, out, "iq2_xs", "--keep", EMBEDDING + "=f16", "--imatrix", matrix, code=2, says=name)
    run("quantize", tiny, out, "q4_0", "--imatrix", matrix, says="no entry for 1 of")
    write_imatrix(matrix, source, columns=32)
    run("quantize", tiny, out, "q4_0", "--imatrix", matrix, code=2, says="another model")
    write_imatrix(matrix, {"blk.0." + key: value for key, value in source.items()})
    run("quantize", tiny, out, "q4_0", "--imatrix", matrix, code=2, says="another model")
    run("quantize", tiny, out, "q4_0", "--imatrix", tiny, code=3, says="no imatrix")
    run("quantize", tiny, out, "q4_0", "--imatrix", "/nonexistent", code=3, says="SOTTO_E_IO")


def check_refused(folder):
    tiny, out = os.path.join(folder, "tiny.gguf"), os.path.join(folder, "refused.gguf")
    before = sorted(os.listdir(folder))
    run("quantize", "/nonexistent", out, "q4_0", code=3, says="/nonexistent")
    run("quantize", tiny, out, "q4_9", code=2, says="'q4_9' is no type of weights; there are f32 f16 q4_0")
    for kind in ("", "i8", "q8_1", "q8_K", "4", "999", "DEPRECATED", "f64"):
        run("quantize", tiny, out, kind, code=2, says="is no type of weights")
    run("quantize", tiny, tiny, "q4_0", code=2, says="same file")
    run("quantize", tiny, code=2)
    run("quantize", tiny, out, code=2, says="IN OUT TYPE")
    run("quantize", tiny, out, "q4_0", "more", code=2, says="IN OUT TYPE")
    run("quantize", tiny, "/dev/full", "q4_0", code=8, says="IO_WRITE")
    run("quantize", tiny, "/nonexistent/x.gguf", "q4_0", code=8, says="/nonexistent/x.gguf")
    run("quantize", tiny, "/nonexistent/x.bin", "q4_0", code=8, says="/nonexistent/x.bin")
    run("quantize", tiny, out, "q4_0", "-t", "0", code=2)
    with open(os.path.join(folder, "cut.gguf"), "wb") as file:
        file.write(read(tiny)[:-5000])
    run("quantize", os.path.join(folder, "cut.gguf"), out, "q4_0", code=3, says="SOTTO_E_MODEL_TRUNCATED")
    check_values(folder, np.nan)
    check_values(folder, 3e38)
    os.remove(os.path.join(folder, "cut.gguf"))
    check(sorted(os.listdir(folder)) == before, "something stays behind")


def check_values(folder, value):
    """One bad weight: refused by name, whichever thread finds it."""
    name = "enc.blk.0.attn_v.weight"
    data = read(os.path.join(folder, "tiny.gguf"))
    at = data.index(File(os.path.join(folder, "tiny.gguf")).tensors[name].data.tobytes()) + 4 * (3 * 64 + 5)
    with open(os.path.join(folder, "cut.gguf"), "wb") as file:
        file.write(data[:at] + struct.pack("<f", value) + data[at + 4:])
    for kind in ("q4_0", "q8_0", "f16"):
        if kind != "f16" or np.isfinite(value):
            run("quantize", os.path.join(folder, "cut.gguf"), os.path.join(folder, "refused.gguf"), kind, code=3,
                says="SOTTO_E_MODEL_NAN: sotto_convert: a weight of '" + name)


def check_kept(folder):
    """What a GGUF input says of itself stays."""
    path = os.path.join(folder, "said.gguf")
    run("convert", os.path.join(folder, "tiny.gguf"), path)
    data = read(path)
    key = b"whisper.speaker_turns" + (7).to_bytes(4, "little")
    at = data.index(key) + len(key)
    with open(path, "wb") as file:
        file.write(data[:at] + b"\1" + data[at + 1:])
    run("quantize", path, os.path.join(folder, "still.gguf"), "q4_0")
    fields = File(os.path.join(folder, "still.gguf")).fields
    check(fields["whisper.speaker_turns"] is True, "speaker turns are forgotten")
    check(set(fields) == set(File(path).fields), "other keys")


def main():
    with tempfile.TemporaryDirectory() as folder:
        tiny = os.path.join(folder, "tiny.gguf")
        subprocess.run([os.path.join(BUILD, "tests/write_tiny_model"), tiny], check=True)
        source = tensors(tiny)
        imatrix = os.path.join(folder, "imatrix.gguf")
        write_imatrix(imatrix, source)
        kinds = ["q4_0"] + sys.argv[1:] if sys.argv[1:] else FEW if "ASAN_OPTIONS" in os.environ else TYPES
        for kind in kinds:
            check_type(folder, source, kind, imatrix)
            if kind in BIN_TYPES:
                check_bin(folder, kind)
        check_peer(os.path.join(folder, "q4_0.gguf"))
        check_rules(folder)
        check_imatrix(folder, source)
        check_kept(folder)
        check_refused(folder)
    print(f"{checks} checks passed")


main()
