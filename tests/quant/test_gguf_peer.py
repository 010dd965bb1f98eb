# SPDX-License-Identifier: MIT
"""Every type beside PyPI's gguf: what it encodes, byte for byte; what it decodes, bit for bit. Types that it does not
know are decoded by a slow reading of the format in this file."""
import os
import subprocess

import numpy as np
from gguf import GGMLQuantizationType as K, quants

TOOL = os.path.join(os.environ["SOTTO_BUILD"], "tests", "quant_lines")
SEED = int(os.environ.get("SOTTO_SEED", "20251"))

ENCODED = [K.BF16, K.Q4_0, K.Q4_1, K.Q5_0, K.Q5_1, K.Q8_0, K.TQ1_0, K.TQ2_0, K.MXFP4]
DECODED = ENCODED + [K.Q2_K, K.Q3_K, K.Q4_K, K.Q5_K, K.Q6_K, K.NVFP4, K.IQ2_XXS, K.IQ2_XS, K.IQ2_S, K.IQ3_XXS, K.IQ3_S,
                     K.IQ1_S, K.IQ1_M, K.IQ4_NL, K.IQ4_XS]
SIZES = {k: (quants._type_traits[k].block_size, quants._type_traits[k].type_size) for k in DECODED}
Q1_0, Q2_0, Q8_1, Q8_K = 41, 42, 9, 15
SIZES |= {Q1_0: (128, 18), Q2_0: (64, 18), Q8_1: (32, 36), Q8_K: (256, 292)}
# where a block holds binary16 scales, quant.md section 3
HALVES = {K.Q4_0: [0], K.Q4_1: [0, 2], K.Q5_0: [0], K.Q5_1: [0, 2], K.Q8_0: [0], K.Q2_K: [80, 82], K.Q3_K: [108],
          K.Q4_K: [0, 2], K.Q5_K: [0, 2], K.Q6_K: [208], K.IQ2_XXS: [0], K.IQ2_XS: [0], K.IQ2_S: [0], K.IQ3_XXS: [0],
          K.IQ3_S: [0], K.IQ1_S: [0], K.IQ4_NL: [0], K.IQ4_XS: [0], K.TQ1_0: [52], K.TQ2_0: [64],
          Q1_0: [0], Q2_0: [0], Q8_1: [0, 2]}


def name(kind):
    return getattr(kind, "name", f"type {kind}")


def ask(what, kind, n, data):
    done = subprocess.run([TOOL, what, str(int(kind)), str(n)], input=data.tobytes(), stdout=subprocess.PIPE, check=True)
    return np.frombuffer(done.stdout, np.uint8)


def rows_to_encode(rng, n):
    """Several thousand rows of all kinds that are finite."""
    x = rng.standard_normal((400, n)).astype(np.float32)
    kinds = [x, x ** 5, np.abs(x), -np.abs(x), x * np.float32(1e-30), x * np.float32(3e4), x * np.float32(1e30),
             np.round(x * 2), np.round(x * 3) / 2]
    outlier = x * np.float32(0.01)
    outlier[np.arange(400), rng.integers(0, n, 400)] = rng.standard_normal(400) * 100
    alternating = np.where(np.arange(n) % 2, 1, -1).astype(np.float32) * np.abs(x[:, :1])
    sparse = np.where(rng.random(x.shape) < 0.05, x, np.float32(0))
    return np.concatenate(kinds + [outlier, alternating, sparse, np.repeat(x[:, :1], n, 1)]).astype(np.float32)


def check_encoding(rng):
    for kind in ENCODED:
        n = max(SIZES[kind][0], 64)
        x = rows_to_encode(rng, n)
        if kind == K.MXFP4:
            x = x[(np.abs(x).max(1) < 1e30) & (np.abs(x).max(1) > 1e-27)]   # beyond, the peer's exponent leaves its byte
        with np.errstate(all="ignore"):
            want = quants.quantize(x, kind).reshape(len(x), -1).view(np.uint8)
        got = ask("encode", kind, n, x).reshape(want.shape)
        bad = np.flatnonzero((got != want).any(1))
        assert len(bad) == 0, f"{kind.name}: {len(bad)} of {len(x)} rows differ, first {bad[0]}: {x[bad[0]]}"
        print(f"{kind.name}: {len(x)} rows encoded alike")


def same(a, b):
    return ((a.view(np.uint32) == b.view(np.uint32)) | (np.isnan(a) & np.isnan(b))).all(1)


def slow_decode(kind, blocks):
    """quant.md section 3, an element at a time."""
    def half(b, at):
        return b[at:at + 2].copy().view(np.float16)[0].astype(np.float32)
    size = SIZES[kind][0]
    y = np.zeros((len(blocks), size), np.float32)
    for b, out in zip(blocks, y):
        for e in range(size):
            if kind == Q1_0:
                d = half(b, 0)
                out[e] = d if b[2 + e // 8] >> (e % 8) & 1 else -d
            elif kind == Q2_0:
                out[e] = np.float32((int(b[2 + e // 4]) >> 2 * (e % 4) & 3) - 1) * half(b, 0)
            elif kind == Q8_1:
                out[e] = np.float32(b[4 + e].view(np.int8)) * half(b, 0)
            else:
                out[e] = b[:4].copy().view(np.float32)[0] * np.float32(b[4 + e].view(np.int8))
    return y


def peer_decode(kind, blocks):
    with np.errstate(all="ignore"):
        if kind in (Q1_0, Q2_0, Q8_1, Q8_K):
            return slow_decode(kind, blocks)
        return quants.dequantize(blocks, kind).reshape(len(blocks), -1)


def every_byte(kind):
    """Blocks of zeros with scales of 0.5 where each byte in turn takes all its values."""
    size = SIZES[kind][1]
    block = np.zeros(size, np.uint8)
    for at in HALVES.get(kind, []):
        block[at:at + 2] = 0, 0x38
    if kind == Q8_K:
        block[3] = 0x3F
    if kind == K.IQ1_M:
        block[[53, 55]] = 0x80, 0x30
    blocks = np.repeat(block[None], 256 * size, 0)
    blocks[np.arange(256 * size), np.repeat(np.arange(size), 256)] = np.tile(np.arange(256), size)
    return blocks


def check_decoding(rng):
    for kind, (size, bytes_) in SIZES.items():
        slow = kind in (Q1_0, Q2_0, Q8_1, Q8_K)
        random = rng.integers(0, 256, (100 if slow else 3000, bytes_), dtype=np.uint8)
        each = every_byte(kind) if not slow else every_byte(kind)[:: 16 if kind == Q8_K else 4]
        blocks = np.concatenate([random, each])
        want = peer_decode(kind, blocks)
        got = ask("decode", kind, size, blocks).view(np.float32).reshape(want.shape)
        bad = np.flatnonzero(~same(got, want))
        assert len(bad) == 0, f"{name(kind)}: {len(bad)} of {len(blocks)} blocks differ, first {blocks[bad[0]]}"
        print(f"{name(kind)}: {len(blocks)} blocks decoded alike")


def check_again(rng):
    """Of the plain types: what was decoded is encoded to the same bytes."""
    for kind in (K.Q4_0, K.Q4_1, K.Q5_0, K.Q5_1, K.Q8_0, K.TQ1_0, K.TQ2_0, K.MXFP4, Q1_0, Q2_0):
        size = SIZES[kind][0]
        x = rng.standard_normal((500, size)).astype(np.float32)
        first = ask("encode", kind, size, x)
        second = ask("encode", kind, size, ask("decode", kind, size, first))
        bad = (first != second).reshape(len(x), -1).any(1).sum()
        assert bad == 0, f"{name(kind)}: {bad} of {len(x)} rows change when encoded again"


def main():
    rng = np.random.default_rng(SEED)
    check_encoding(rng)
    check_decoding(rng)
    check_again(rng)


print(f"SOTTO_SEED={SEED}")
main()
