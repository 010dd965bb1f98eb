# SPDX-License-Identifier: MIT
"""Every quantised type of whisper.cpp's .bin: a small model whose matrices are random blocks, written here.

Its blocks have to arrive in GGUF unchanged, as PyPI's gguf reads them, and come back as the same .bin.
"""
import hashlib
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np
from gguf import GGUFReader

D, MELS, AUDIO, TEXT, VOCAB, WORDS = 256, 3, 5, 6, 51865, 50257
TYPES = {  # name: number, number of the file, elements and bytes of a block
    "q4_0": (2, 2, 32, 18), "q4_1": (3, 3, 32, 20), "q5_0": (6, 8, 32, 22), "q5_1": (7, 9, 32, 24), "q8_0": (8, 7, 32, 34),
    "q2_k": (10, 10, 256, 84), "q3_k": (11, 11, 256, 110), "q4_k": (12, 12, 256, 144), "q5_k": (13, 13, 256, 176),
    "q6_k": (14, 14, 256, 210), "bf16": (30, 24, 1, 2),
}


def layer(prefix, cross):
    """Names and axes, slowest first, in the order of sotto's writer."""
    def linear(name, out, into, bias=True):
        return [(f"{prefix}{name}.weight", (out, into))] + ([(f"{prefix}{name}.bias", (out,))] if bias else [])

    def norm(name):
        return [(f"{prefix}{name}.weight", (D,)), (f"{prefix}{name}.bias", (D,))]

    def attention(name):
        parts = [norm(name + "_ln")] + [linear(f"{name}.{p}", D, D, p != "key") for p in ("query", "key", "value", "out")]
        return sum(parts, [])

    rows = attention("attn") + (attention("cross_attn") if cross else [])
    return rows + norm("mlp_ln") + linear("mlp.0", 4 * D, D) + linear("mlp.2", D, 4 * D)


def tensors():
    rows = [("encoder.conv1.weight", (D, MELS, 3)), ("encoder.conv1.bias", (D, 1)), ("encoder.conv2.weight", (D, D, 3)),
            ("encoder.conv2.bias", (D, 1)), ("encoder.positional_embedding", (AUDIO, D))]
    rows += layer("encoder.blocks.0.", False) + [("encoder.ln_post.weight", (D,)), ("encoder.ln_post.bias", (D,))]
    rows += [("decoder.token_embedding.weight", (VOCAB, D)), ("decoder.positional_embedding", (TEXT, D))]
    return rows + layer("decoder.blocks.0.", True) + [("decoder.ln.weight", (D,)), ("decoder.ln.bias", (D,))]


def words():
    printing = [*range(33, 127), *range(161, 173), *range(174, 256)]
    single = [bytes([b]) for b in printing + [b for b in range(256) if b not in printing]]
    return single + [bytes([k // 256, k % 256]) for k in range(50000)] + [b""]


def filters():
    """Slaney's, as the writer puts them."""
    def hertz(mel):
        return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * np.log(6.4) / 27))

    corners = hertz(np.linspace(0, 15 + 27 * np.log(8) / np.log(6.4), MELS + 2))
    bins = np.arange(201) * 40.0
    return np.array([np.maximum(0, np.minimum((bins - a) / (b - a), (c - bins) / (c - b))) * 2 / (c - a)
                     for a, b, c in zip(corners, corners[1:], corners[2:])], np.float32)


VOCABULARY = struct.pack("<i", WORDS) + b"".join(struct.pack("<I", len(w)) + w for w in words())


def write(path, name, random):
    """The file, and the blocks of its matrices by name."""
    number, file, elements, size = TYPES[name]
    blocks = {}
    out = [struct.pack("<12i", 0x67676d6c, VOCAB, AUDIO, D, 4, 1, TEXT, D, 4, 1, MELS,
                       file + (0 if name == "bf16" else 2000)),
           struct.pack("<2i", MELS, 201), filters().tobytes(), VOCABULARY]
    for tensor, shape in tensors():
        matrix = len(shape) == 2 and shape[1] > 1 and "positional" not in tensor
        kind = number if matrix else 1 if len(shape) == 3 else 0
        axes = [n for n in reversed(shape)]
        out.append(struct.pack(f"<{3 + len(axes)}i", len(axes), len(tensor), kind, *axes) + tensor.encode())
        count = int(np.prod(shape))
        if matrix:
            blocks[tensor] = random.bytes(count // elements * size)
            out.append(blocks[tensor])
        else:
            out.append(random.normal(0, 1, count).astype("<f2" if kind == 1 else "<f4").tobytes())
    with open(path, "wb") as f:
        f.write(b"".join(out))
    return blocks


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main():
    random = np.random.default_rng(11)
    with tempfile.TemporaryDirectory() as work:
        first, gguf, second = (os.path.join(work, f) for f in ("a.bin", "b.gguf", "c.bin"))
        for name in TYPES:
            blocks = write(first, name, random)
            # floats have no type to keep but f16 and f32
            kept = ["--type", "bf16"] if name == "bf16" else []
            subprocess.run([os.environ["SOTTO"], "convert", first, gguf, *kept], check=True)
            reader = {t.name: t for t in GGUFReader(gguf).tensors}
            found = {n.replace(".weight", ""): t for n, t in reader.items() if t.tensor_type.name.lower() == name}
            assert len(found) == len(blocks) == 17, (name, len(found))
            assert found["dec.token_embd"].data.tobytes() == blocks["decoder.token_embedding.weight"]
            assert sorted(t.data.tobytes() for t in found.values()) == sorted(blocks.values())
            subprocess.run([os.environ["SOTTO"], "convert", gguf, second, *kept], check=True)
            assert digest(first) == digest(second), name
            print(name, len(found), "matrices unchanged, back to the same file")


if __name__ == "__main__":
    sys.exit(main())
