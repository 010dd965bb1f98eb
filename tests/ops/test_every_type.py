# SPDX-License-Identifier: MIT
"""Every quantised type in every op that takes it, against numpy and PyPI's gguf: writes cases of the op-vectors format
and lets op_vectors run them.

Operands are blocks of random bytes with sane scales, so all codes occur. gguf decodes them (q1_0 and q2_0, which it does
not know, are two lines here) and encodes what ops make of floats, where it has an encoder; products are float64. Results
that nothing rounds (get_rows, cast) and bytes must be equal; products with b in f32 are near; products as they are by
default may round b to 8 bits.
"""
import json
import math
import os
import subprocess
import sys

import gguf
import numpy as np

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 20261201
rng = np.random.default_rng(SEED)
cases = []

F32, PREC_F32 = 0, 10
EXACT, NEAR, ROUNDED = 0, 4e-6, 6e-2
# name: (id, elements, bytes, where the binary16 scales are)
TYPES = {
    "q4_0": (2, 32, 18, [0]), "q4_1": (3, 32, 20, [0, 2]), "q5_0": (6, 32, 22, [0]), "q5_1": (7, 32, 24, [0, 2]),
    "q8_0": (8, 32, 34, [0]), "q2_K": (10, 256, 84, [80, 82]), "q3_K": (11, 256, 110, [108]),
    "q4_K": (12, 256, 144, [0, 2]), "q5_K": (13, 256, 176, [0, 2]), "q6_K": (14, 256, 210, [208]),
    "iq2_xxs": (16, 256, 66, [0]), "iq2_xs": (17, 256, 74, [0]), "iq3_xxs": (18, 256, 98, [0]),
    "iq1_s": (19, 256, 50, [0]), "iq4_nl": (20, 32, 18, [0]), "iq3_s": (21, 256, 110, [0]),
    "iq2_s": (22, 256, 82, [0]), "iq4_xs": (23, 256, 136, [0]), "iq1_m": (29, 256, 56, []),
    "tq1_0": (34, 256, 54, [52]), "tq2_0": (35, 256, 66, [64]), "mxfp4": (39, 32, 17, []),
    "nvfp4": (40, 64, 36, []), "q1_0": (41, 128, 18, [0]), "q2_0": (42, 64, 18, [0]),
}
# types to which gguf encodes as the row reference does
ENCODED = ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "tq1_0", "tq2_0", "mxfp4"]


class Blocks:
    """A tensor of blocks: engine extents, bytes, and what they decode to as float64 with axes in numpy's order."""

    def __init__(self, t, *ne):
        self.t, self.ne = t, ne
        self.id, self.elements, size, scales = TYPES[t]
        n = math.prod(ne) // self.elements
        x = rng.integers(0, 256, (n, size), dtype=np.uint8)
        for at in scales:
            x[:, at:at + 2] = rng.uniform(-0.1, 0.1, (n, 1)).astype(np.float16).view(np.uint8)
        if t == "mxfp4":
            x[:, 0] = rng.integers(120, 130, n)
        if t == "nvfp4":  # 0x7f is no number: 0 here, 480 in gguf
            x[:, :4] = rng.integers(0, 0x7f, (n, 4))
        if t == "iq1_m":  # the highest nibble of four holds the exponent of the scale
            x[:, 55] = (x[:, 55] & 15) | 0x20
        self.bytes = x
        self.values = decode(t, x).reshape(ne[::-1])

    def operand(self):
        return {"t": self.t, "ne": list(self.ne), "hex": self.bytes.tobytes().hex()}


def decode(t, x):
    if t in ("q1_0", "q2_0"):
        d = x[:, :2].copy().view(np.float16).astype(np.float32)
        if t == "q1_0":
            bits = np.unpackbits(x[:, 2:], axis=1, bitorder="little")
            return np.where(bits == 1, d, -d).astype(np.float64)
        codes = (x[:, 2:, None] >> np.array([0, 2, 4, 6], np.uint8)) & 3
        return ((codes.reshape(len(x), -1).astype(np.float32) - 1) * d).astype(np.float64)
    return gguf.quants.dequantize(x, gguf.GGMLQuantizationType(TYPES[t][0])).astype(np.float64)


def encode(t, x):
    """Bytes of float rows."""
    rows = np.ascontiguousarray(x, np.float32).reshape(-1, x.shape[-1])
    return gguf.quants.quantize(rows, gguf.GGMLQuantizationType(TYPES[t][0])).tobytes().hex()


class Wave:
    """A tensor of floats that the runner calculates itself (formula of the op-vectors format)."""

    count = 0

    def __init__(self, *ne, kind="f32", mul=1.0):
        Wave.count += 1
        self.kind, self.ne, self.k, self.mul = kind, ne, Wave.count, mul
        i = np.arange(math.prod(ne))
        x = mul * np.sin(0.37 * i + 0.11 * self.k) * (1 + 0.1 * (i % 7))
        x = x.astype(np.float32).astype(np.float16 if kind == "f16" else np.float32)
        self.values = x.astype(np.float64).reshape(ne[::-1])

    def operand(self):
        return {"t": self.kind, "ne": list(self.ne), "k": self.k, "mul": self.mul}


def operand(x, t="f32"):
    return {"t": t, "ne": list(x.shape[::-1]), "v": [float(v) for v in x.ravel()]}


def case(name, operands, prog, y, tol, t="f32", hex_=None):
    out = {"t": t, "ne": list(y.shape[::-1]), "v": [float(v) for v in y.ravel()], "composed": True}
    if hex_:
        out["hex"] = hex_
    cases.append({"name": name, "in": operands, "prog": prog, "tol": tol, "out": out,
                  **({"cmp": "bytes"} if hex_ else {})})


def width(t, least):
    """Smallest multiple of the block that is at least `least`."""
    each = TYPES[t][1]
    return (least + each - 1) // each * each


def reading(t):
    a, n = Blocks(t, width(t, 96), 7, 2), width(t, 96)
    ids = rng.integers(0, 7, (2, 4))
    case(f"get_rows/{t}", {"a": a.operand(), "i": operand(ids, "i32")}, [["y", "get_rows", "a", "i"]],
         np.stack([a.values[c][ids[c]] for c in range(2)]), EXACT)
    case(f"cast/{t}", {"a": a.operand()}, [["y", "cast", "a", F32]], a.values, EXACT)
    turned = a.values.swapaxes(0, 1)[None]
    case(f"cast/{t}/permuted", {"a": a.operand()}, [["p", "permute", "a", 0, 2, 1, 3], ["y", "cast", "p", F32]],
         turned, EXACT)
    flat = Wave(a.values.size)
    case(f"cpy/{t}/reshaped", {"a": a.operand(), "b": flat.operand()}, [["y", "cpy", "a", "b"]], a.values.ravel(), EXACT)
    case(f"cont/{t}/permuted", {"a": a.operand()}, [["p", "permute", "a", 0, 2, 1, 3], ["q", "cont", "p"],
                                                    ["y", "cast", "q", F32]], turned, EXACT)
    case(f"dup/{t}", {"a": a.operand()}, [["y", "dup", "a"]], a.values, EXACT, t, a.bytes.tobytes().hex())
    b = Wave(n, 7)
    case(f"add_cast/{t}", {"a": a.operand(), "b": b.operand()}, [["y", "add_cast", "a", "b", F32]],
         a.values + b.values, 1e-6)


def products(t):
    def both(name, a, b, prog, y):
        operands = {"a": a.operand(), "b": b.operand()}
        case(f"{name}/default", operands, prog, y, ROUNDED)
        case(f"{name}/f32", operands, prog + [["", "mul_mat_set_prec", "y", PREC_F32]], y, NEAR)

    for k, n, m in [(width(t, 1), 1, 1), (width(t, 96), 17, 5), (width(t, 300), 35, 13), (width(t, 520), 16, 1)]:
        a, b = Blocks(t, k, n), Wave(k, m)
        both(f"mul_mat/{t}/k{k}n{n}m{m}", a, b, [["y", "mul_mat", "a", "b"]], b.values @ a.values.T)
    k = width(t, 64)
    a, b = Blocks(t, k, 9, 2, 3), Wave(k, 5, 4, 3)
    both(f"mul_mat/{t}/batches", a, b, [["y", "mul_mat", "a", "b"]],
         b.values @ np.repeat(a.values, 2, 1).swapaxes(-1, -2))
    b = Wave(k, 2, 9, 3)  # rows of a are far apart
    both(f"mul_mat/{t}/permuted", a, b, [["p", "permute", "a", 0, 2, 1, 3], ["y", "mul_mat", "p", "b"]],
         b.values @ a.values.swapaxes(1, 2).swapaxes(-1, -2))
    for used, given, tokens, kind in [(4, 1, 3, "f32"), (3, 3, 5, "f16"), (1, 1, 1, "f32")]:
        a, b = Blocks(t, k, 19, 5), Wave(k, given, tokens, kind=kind)
        ids = rng.integers(0, 5, (tokens, used))
        y = np.array([[a.values[ids[c, e]] @ b.values[c, e % given] for e in range(used)] for c in range(tokens)])
        case(f"mul_mat_id/{t}/U{used}", {"a": a.operand(), "b": b.operand(), "i": operand(ids, "i32")},
             [["y", "mul_mat_id", "a", "b", "i"]], y, ROUNDED)


def convolution(t):
    k = width(t, 32)
    for n in (1, 2):
        w, x = Blocks(t, k, 2, 3), Wave(k + 9, 2, n)
        padded = np.pad(x.values, ((0, 0), (0, 0), (1, 1)))
        steps = [padded[:, :, at:at + k] for at in range(0, padded.shape[-1] - k + 1, 2)]
        y = np.stack([np.einsum("nik,oik->no", part, w.values) for part in steps], -1)
        case(f"conv_1d/{t}/N{n}", {"a": w.operand(), "b": x.operand()}, [["y", "conv_1d", "a", "b", 2, 1, 1]], y,
             ROUNDED)


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(t):
    d = width(t, 64)
    blocks, wave = Blocks(t, d, 70, 2), Wave(d, 70, 2)
    q = Wave(d, 3, 4, mul=1 / np.abs(blocks.values).max())
    for name, k, v in [("k", blocks, wave), ("v", wave, blocks), ("kv", blocks, Blocks(t, d, 70, 2))]:
        kk, vv = [np.repeat(x.values, 2, 0) for x in (k, v)]
        y = softmax(q.values @ kk.swapaxes(-1, -2) / math.sqrt(d)) @ vv
        case(f"flash_attn_ext/{t}/{name}", {"q": q.operand(), "k": k.operand(), "v": v.operand()},
             [["y", "flash_attn_ext", "q", "k", "v", None, 1 / math.sqrt(d), 0.0, 0.0]], y.transpose(1, 0, 2), 1e-4)


def writing(t):
    n, code = width(t, 96), TYPES[t][0]

    def written(name, operands, prog, shape, hex_):
        raw = np.frombuffer(bytes.fromhex(hex_), np.uint8).reshape(-1, TYPES[t][2])
        case(name, operands, prog, decode(t, raw).reshape(shape), EXACT, t, hex_)

    for kind in ("f32", "f16"):
        x = Wave(n, 5, 3, kind=kind)
        written(f"cast/{kind}-{t}", {"a": x.operand()}, [["y", "cast", "a", code]], x.values.shape, encode(t, x.values))
    turned = x.values.swapaxes(0, 1)[None]
    written(f"cast/{t}/permuted", {"a": x.operand()}, [["p", "permute", "a", 0, 2, 1, 3], ["y", "cast", "p", code]],
            turned.shape, encode(t, turned))
    written(f"cpy/{t}/reshaped", {"a": x.operand(), "b": Blocks(t, n * 3, 5).operand()}, [["y", "cpy", "a", "b"]],
            (5, n * 3), encode(t, x.values.reshape(5, -1)))
    table, order = Blocks(t, n, 11, 3), rng.permutation(11)[:4]
    for kind in ("f32", "f16"):
        rows = Wave(n, 4, 3, kind=kind)
        raw = table.bytes.reshape(3, 11, -1).copy()
        raw[:, order] = np.frombuffer(bytes.fromhex(encode(t, rows.values)), np.uint8).reshape(3, 4, -1)
        written(f"set_rows/{t}/{kind}",
                {"a": table.operand(), "b": rows.operand(), "c": operand(order, "i64" if kind == "f32" else "i32")},
                [["y", "set_rows", "a", "b", "c"]], table.values.shape, raw.tobytes().hex())
    b = Wave(n, 11, 3)
    total = table.values.astype(np.float32) + b.values.astype(np.float32)
    for builder in ("add", "add_inplace"):
        written(f"{builder}/{t}", {"a": table.operand(), "b": b.operand()}, [["y", builder, "a", "b"]], total.shape,
                encode(t, total))


def main():
    for t in TYPES:
        reading(t)
        products(t)
        convolution(t)
        attention(t)
    for t in ENCODED:
        writing(t)
    build = os.environ["SOTTO_BUILD"]
    path = os.path.join(build, "tests", "every-type-cases.json")
    with open(path, "w") as file:
        json.dump({"cases": cases}, file)
    print(f"seed {SEED}, {len(cases)} cases")
    sys.exit(subprocess.call([os.path.join(build, "tests", "op_vectors"), path]))


main()
