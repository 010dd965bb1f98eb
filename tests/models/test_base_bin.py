# SPDX-License-Identifier: MIT
"""Whisper base as whisper.cpp's .bin.

The file is read here by numpy, independently of the C code: every tensor has to hold the bits of its variable in
CTranslate2's model.bin, in the place and type that whisper.cpp expects. .bin to GGUF and back gives the same bytes,
f16 and f32. And whisper.cpp itself (PyPI's pywhispercpp) opens the file and understands the jfk recording.
"""
import os
import re
import struct
import subprocess
import sys
import tempfile

import numpy as np
from gguf import GGUFReader
from pywhispercpp.model import Model

from test_base_convert import FOLDER, VOCAB, check_tensors, digest, expected, read_ct2

AUDIO = os.environ.get("SOTTO_AUDIO") or os.path.expanduser("~/.cache/sotto/audio")
RULES = [  # GGUF to .bin
    (r"^enc\.", "encoder."), (r"^dec\.", "decoder."), (r"blk\.", "blocks."), (r"token_embd", "token_embedding"),
    (r"pos_embd\.weight", "positional_embedding"), (r"^encoder\.output_norm", "encoder.ln_post"),
    (r"^decoder\.output_norm", "decoder.ln"), (r"attn_norm", "attn_ln"), (r"attn_output", "attn.out"),
    (r"attn_q", "attn.query"), (r"attn_k", "attn.key"), (r"attn_v", "attn.value"), (r"ffn_norm", "mlp_ln"),
    (r"ffn_up", "mlp.0"), (r"ffn_down", "mlp.2"),
]


def bin_name(name):
    for pattern, replacement in RULES:
        name = re.sub(pattern, replacement, name)
    return name


class Bin:
    """A .bin file: header, filters, words, and tensors as name -> (type, axes as stored, array slowest first)."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.at = 0
        self.header = self.numbers(12)
        bands, bins = self.numbers(2)
        self.filters = self.array("<f4", bands * bins).reshape(bands, bins)
        self.words = []
        for _ in range(self.numbers(1)[0]):
            size, = self.numbers(1)
            self.words.append(self.data[self.at:self.at + size])
            self.at += size
        self.tensors = {}
        while self.at < len(self.data):
            rank, size, kind = self.numbers(3)
            axes = self.numbers(rank)
            name = self.data[self.at:self.at + size].decode()
            self.at += size
            assert name not in self.tensors
            values = self.array({0: "<f4", 1: "<f2"}[kind], int(np.prod(axes)))
            self.tensors[name] = (kind, axes, values.reshape(axes[::-1]))

    def numbers(self, n):
        self.at += 4 * n
        return struct.unpack_from(f"<{n}i", self.data, self.at - 4 * n)

    def array(self, dtype, n):
        size = n * np.dtype(dtype).itemsize
        self.at += size
        return np.frombuffer(self.data, dtype, n, self.at - size)


def check_bin(path, wanted, kind):
    model = Bin(path)
    assert model.header == (0x67676d6c, VOCAB, 1500, 512, 8, 6, 448, 512, 8, 6, 80, kind), model.header
    assert model.tensors.keys() == {bin_name(name) for name in wanted} and len(wanted) == 245
    for name, want in wanted.items():
        found_kind, axes, found = model.tensors[bin_name(name)]
        vector = want.ndim == 1 or "pos_embd" in name
        assert found_kind == (0 if vector else kind), name
        assert list(axes) == ([1] if re.match(r"enc\.conv.*bias", name) else []) + list(want.shape[::-1]), (name, axes)
        bits = want.astype(found.dtype).reshape(found.shape)
        assert found.tobytes() == bits.tobytes(), name
    return model


def check_words(model):
    lines = open(os.path.join(FOLDER, "vocabulary.txt"), encoding="utf-8", newline="\n").read().split("\n")
    printing = [*range(33, 127), *range(161, 173), *range(174, 256)]
    alphabet = {chr(b): b for b in printing}
    alphabet.update((chr(256 + i), b) for i, b in enumerate(b for b in range(256) if b not in printing))
    assert model.words == [bytes(alphabet[c] for c in line) for line in lines[:50257]]
    assert model.words[0] == b"!" and model.words[220] == b" " and model.words[256] == b" t"


def check_filters(model):
    """Slaney's filters once more, in numpy."""
    def hertz(mel):
        return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * np.log(6.4) / 27))

    corners = hertz(np.linspace(0, 15 + 27 * np.log(8) / np.log(6.4), 82))
    bins = np.arange(201) * 40.0
    for band, row in enumerate(model.filters):
        low, middle, high = corners[band:band + 3]
        want = np.maximum(0, np.minimum((bins - low) / (middle - low), (high - bins) / (high - middle))) * 2 / (high - low)
        assert np.abs(row - want).max() < 1e-8, band


def convert(*args):
    subprocess.run([os.environ["SOTTO"], "convert", *args], check=True)


def transcribe(path):
    """What whisper.cpp hears."""
    model = Model(path, n_threads=2, print_progress=False, print_realtime=False)
    segments = model.transcribe(os.path.join(AUDIO, "jfk.wav"), language="en")
    return re.sub(r"[^a-z ]", "", " ".join(s.text for s in segments).lower()).split()


def main():
    wanted = expected(read_ct2(os.path.join(FOLDER, "model.bin")))
    with tempfile.TemporaryDirectory() as work:
        for name, kind, dtype in (("f16", 1, np.float16), ("f32", 0, np.float32)):
            first, gguf, second = (os.path.join(work, f"{name}{end}") for end in (".bin", ".gguf", "-2.bin"))
            convert(FOLDER, first, "--type", name)
            model = check_bin(first, wanted, kind)
            check_words(model)
            check_filters(model)
            convert(first, gguf)  # keeps the type
            check_tensors(GGUFReader(gguf), wanted, dtype)
            convert(gguf, second)
            assert digest(first) == digest(second)
            print(name, len(model.tensors), "tensors and", len(model.words), "words equal, back to the same bytes")
            os.remove(gguf)
            os.remove(second)
        words = transcribe(os.path.join(work, "f16.bin"))
        print("whisper.cpp:", *words)
        text = "and so my fellow americans ask not what your country can do for you ask what you can do for your country"
        assert words == text.split()
        assert sorted(os.listdir(work)) == ["f16.bin", "f32.bin"]


if __name__ == "__main__":
    sys.exit(main())
