#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the valid seeds of the fuzz targets, field by field, into fuzz/corpus/<target>: fuzz/seeds.py [FOLDER].

Nothing of sotto is used for it: what these files hold follows from the formats alone.
"""
import os
import struct
import sys

FOLDER = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


def save(target, name, data):
    os.makedirs(os.path.join(FOLDER, target), exist_ok=True)
    with open(os.path.join(FOLDER, target, "seed-" + name), "wb") as file:
        file.write(data)


# ---- GGUF ----

U8, I8, U16, I16, U32, I32, F32, BOOL, STR, ARR, U64, I64, F64 = range(13)
CODES = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "B", U64: "Q", I64: "q", F64: "d"}


class Gguf:
    def __init__(self, order="<", version=3, align=32):
        self.order, self.version, self.align = order, version, align
        self.pairs, self.infos, self.data, self.n_pairs = b"", [], b"", 0

    def pack(self, code, *values):
        return struct.pack(self.order + code, *values)

    def text(self, text):
        data = text if isinstance(text, bytes) else text.encode()
        return self.pack("Q", len(data)) + data

    def value(self, kind, value):
        return self.text(value) if kind == STR else self.pack(CODES[kind], value)

    def pair(self, key, kind, value):
        self.pairs += self.text(key) + self.pack("I", kind) + self.value(kind, value)
        self.n_pairs += 1
        return self

    def array(self, key, kind, values):
        self.pairs += self.text(key) + self.pack("IIQ", ARR, kind, len(values))
        self.pairs += b"".join(self.value(kind, v) for v in values)
        self.n_pairs += 1
        return self

    def pad(self, data):
        return data + bytes(-len(data) % self.align)

    def tensor(self, name, kind, ne, data):
        info = self.text(name) + self.pack("I", len(ne)) + b"".join(self.pack("q", n) for n in ne)
        self.infos.append(info + self.pack("IQ", kind, len(self.data)))
        self.data = self.pad(self.data + data)
        return self

    def bytes(self):
        head = b"GGUF" + self.pack("IQQ", self.version, len(self.infos), self.n_pairs) + self.pairs
        return self.pad(head + b"".join(self.infos)) + self.data


# type: bytes of a block; one block each
BLOCKS = {0: 4, 1: 2, 2: 18, 3: 20, 6: 22, 7: 24, 8: 34, 9: 36, 10: 84, 11: 110, 12: 144, 13: 176, 14: 210, 15: 292,
          16: 66, 17: 74, 18: 98, 19: 50, 20: 18, 21: 110, 22: 82, 23: 136, 24: 1, 25: 2, 26: 4, 27: 8, 28: 8, 29: 56,
          30: 2, 34: 54, 35: 66, 39: 17, 40: 36, 41: 18, 42: 18}
ELEMENTS = {0: 1, 1: 1, 24: 1, 25: 1, 26: 1, 27: 1, 28: 1, 30: 1, 2: 32, 3: 32, 6: 32, 7: 32, 8: 32, 9: 32, 20: 32,
            39: 32, 40: 64, 41: 128, 42: 64}


def gguf_types(order, types):
    g = Gguf(order).pair("general.architecture", STR, "t")
    for kind in types:
        data = bytes(i * 37 & 0x3F for i in range(BLOCKS[kind]))
        g.tensor("t%d" % kind, kind, [ELEMENTS.get(kind, 256)], data)
    return g.bytes()


def gguf_seeds():
    scalars = Gguf()
    for kind in range(13):
        if kind not in (STR, ARR):
            scalars.pair("k.%d" % kind, kind, 1)
    save("gguf", "empty", Gguf().bytes()[:24])
    save("gguf", "scalars", scalars.pair("k.s", STR, "text").bytes())
    arrays = Gguf()
    for kind in range(13):
        if kind not in (STR, ARR):
            arrays.array("a.%d" % kind, kind, [0, 1, 1])
    save("gguf", "arrays", arrays.array("a.s", STR, ["", "b", "ccc"]).array("a.e", U8, []).bytes())
    floats = struct.pack("<6f", 0, 1, -1, 2.5, 1e30, 3)
    save("gguf", "tensors", Gguf().tensor("w", 0, [3, 2], floats).tensor("v", 0, [2, 1, 3], floats).bytes())
    save("gguf", "aligned", Gguf(align=8).pair("general.alignment", U32, 8).tensor("a", 24, [5], b"12345")
         .tensor("b", 24, [1], b"6").bytes())
    save("gguf", "version2", Gguf(version=2).pair("x", U8, 7).tensor("a", 1, [2], b"\0\x3c\0\x3c").bytes())
    save("gguf", "odd", Gguf().tensor("", 24, [], b"1").tensor("none", 0, [0, 4], b"").bytes() + b"more")
    save("gguf", "big", Gguf(">").array("a", U16, [1, 2]).pair("f", F64, 1.5).array("s", STR, ["x"])
         .tensor("w", 0, [2], struct.pack(">2f", 1, 2)).bytes())
    kinds = sorted(BLOCKS)
    save("gguf", "types-1", gguf_types("<", [k for k in kinds if k < 12]))
    save("gguf", "types-2", gguf_types("<", [k for k in kinds if 12 <= k < 22]))
    save("gguf", "types-3", gguf_types("<", [k for k in kinds if k >= 22]))
    save("gguf", "types-big", gguf_types(">", [0, 1, 8, 12, 15, 28, 30]))
    save("gguf", "unpadded", Gguf().tensor("w", 24, [3], b"abc").bytes()[:-29])


# ---- CTranslate2 and whisper.cpp's .bin: a model of width 2 with one layer in each stack ----

# How the targets write long files short: see fuzz/unpack.h.
ESCAPE = 0xEC


def plain(data):
    return data.replace(bytes([ESCAPE]), bytes([ESCAPE, ESCAPE]))


def packed(code, n):
    return struct.pack("<BBI", ESCAPE, code, n)


def zeros(n):
    return packed(0, n) if n > 16 else bytes(n)


VOCAB, WIDTH, MELS, AUDIO, TEXT = 51864, 2, 1, 3, 4
SIZE = {0: 4, 1: 2, 30: 2}


def bin_record(name, ne, kind):
    items = 1
    for n in ne:
        items *= n
    head = struct.pack("<iii", len(ne), len(name), kind) + struct.pack("<%di" % len(ne), *ne) + name.encode()
    return plain(head) + zeros(items * SIZE[kind] if kind in SIZE else items // ELEMENTS.get(kind, 256) * BLOCKS[kind])


def bin_model(kind=1, width=WIDTH, ftype=1):
    d = width
    out = plain(struct.pack("<12i", 0x67676d6c, VOCAB, AUDIO, d, 1, 1, TEXT, d, 1, 1, MELS, ftype))
    out += plain(struct.pack("<ii", MELS, 201)) + zeros(MELS * 201 * 4)
    out += plain(struct.pack("<i", 50256)) + zeros(50256 * 4)

    def vector(name, n):
        return bin_record(name + ".bias", [n], 0)

    def linear(name, rows, columns, bias=True):
        return bin_record(name + ".weight", [columns, rows], kind) + (vector(name, rows) if bias else b"")

    def norm(name):
        return bin_record(name + ".weight", [d], 0) + vector(name, d)

    def attention(name, norm_name):
        return (norm(norm_name) + linear(name + ".query", d, d) + linear(name + ".key", d, d, False)
                + linear(name + ".value", d, d) + linear(name + ".out", d, d))

    def layer(name, cross):
        data = attention(name + ".attn", name + ".attn_ln")
        if cross:
            data += attention(name + ".cross_attn", name + ".cross_attn_ln")
        return data + norm(name + ".mlp_ln") + linear(name + ".mlp.0", 4 * d, d) + linear(name + ".mlp.2", d, 4 * d)

    out += bin_record("encoder.conv1.weight", [3, MELS, d], 1) + bin_record("encoder.conv1.bias", [1, d], 0)
    out += bin_record("encoder.conv2.weight", [3, d, d], 1) + bin_record("encoder.conv2.bias", [d], 0)
    out += bin_record("encoder.positional_embedding", [d, AUDIO], 0)
    out += layer("encoder.blocks.0", False) + norm("encoder.ln_post")
    out += bin_record("decoder.token_embedding.weight", [d, VOCAB], kind)
    out += bin_record("decoder.positional_embedding", [d, TEXT], 0)
    return out + layer("decoder.blocks.0", True) + norm("decoder.ln")


def bin_seeds():
    save("bin", "f16", b"\1" + bin_model())
    save("bin", "f32-to-q8_0", b"\2" + bin_model(0, 32, 0))
    save("bin", "bf16", b"\0" + bin_model(30, 2, 24))
    for name, kind, ftype in (("q4_0", 2, 2), ("q4_1", 3, 3), ("q5_0", 6, 8), ("q5_1", 7, 9), ("q8_0", 8, 7),
                              ("q2_k", 10, 10), ("q3_k", 11, 11), ("q4_k", 12, 12), ("q5_k", 13, 13), ("q6_k", 14, 14)):
        save("bin", name, b"\0" + bin_model(kind, 256 if kind >= 10 else 32, 2000 + ftype))
    save("bin", "vad", b"\0" + plain(struct.pack("<ii", 0x67676d6c, 10) + b"silero-16k"))


CT2_SIZE = {0: 4, 1: 1, 2: 2, 3: 4, 4: 2, 5: 2}


def ct2_text(text):
    return struct.pack("<H", len(text) + 1) + text.encode() + b"\0"


def ct2_variable(name, dims, kind, value=None):
    items = 1
    for n in dims:
        items *= n
    size = items * CT2_SIZE[kind]
    head = ct2_text(name) + struct.pack("<B%dIBI" % len(dims), len(dims), *dims, kind, size)
    return plain(head) + (zeros(size) if value is None else plain(value))


def ct2_model(kind=4, encodings=True):
    d, parts = WIDTH, []

    def scalar(name, code, value):
        parts.append(ct2_variable(name, [], {"b": 1, "h": 2}[code], struct.pack("<" + code, value)))

    def linear(name, dims):
        parts.append(ct2_variable(name + "/weight", dims, kind))
        if kind == 1:
            parts.append(ct2_variable(name + "/weight_scale", dims[:1], 0, struct.pack("<%df" % dims[0],
                                                                                        *[16.0] * dims[0])))
        if kind == 2:
            parts.append(ct2_variable(name + "/weight_scale", [], 0, struct.pack("<f", 512.0)))

    def bias(name, n):
        parts.append(ct2_variable(name + "/bias", [n], 0 if kind < 4 else kind))

    def norm(name):
        for end in ("gamma", "beta"):
            parts.append(ct2_variable(name + "/layer_norm/" + end, [d], 0 if kind < 4 else kind))

    def both(name, dims):
        linear(name, dims)
        bias(name, dims[0])

    def layer(name, cross):
        norm(name + "/self_attention")
        both(name + "/self_attention/linear_0", [3 * d, d])
        both(name + "/self_attention/linear_1", [d, d])
        if cross:
            norm(name + "/attention")
            both(name + "/attention/linear_0", [d, d])
            both(name + "/attention/linear_1", [2 * d, d])
            both(name + "/attention/linear_2", [d, d])
        norm(name + "/ffn")
        both(name + "/ffn/linear_0", [4 * d, d])
        both(name + "/ffn/linear_1", [d, 4 * d])

    scalar("encoder/num_heads", "h", 1)
    scalar("decoder/num_heads", "h", 1)
    scalar("decoder/activation", "b", 3)
    scalar("decoder/pre_norm", "b", 1)
    both("encoder/conv1", [d, MELS, 3])
    both("encoder/conv2", [d, d, 3])
    if encodings:
        parts.append(ct2_variable("encoder/position_encodings/encodings", [AUDIO, d], 0))
    layer("encoder/layer_0", False)
    norm("encoder")
    # not i8: scales other than 0, one a row, cannot be written short
    parts.append(ct2_variable("decoder/embeddings/weight", [VOCAB, d], 4 if kind == 1 else kind))
    if kind == 2:
        parts.append(ct2_variable("decoder/embeddings/weight_scale", [], 0, struct.pack("<f", 512.0)))
    parts.append(ct2_variable("decoder/position_encodings/encodings", [TEXT, d], 0))
    layer("decoder/layer_0", True)
    norm("decoder")
    head = struct.pack("<I", 6) + ct2_text("WhisperSpec") + struct.pack("<II", 3, len(parts))
    alias = struct.pack("<I", 1) + ct2_text("decoder/projection/weight") + ct2_text("decoder/embeddings/weight")
    return plain(head) + b"".join(parts) + plain(alias)


def ct2_input(mode, model, config, vocabulary):
    return bytes([mode]) + bytes([ESCAPE, 3]).join([config, vocabulary, model])


def ct2_seeds():
    config = b'{"alignment_heads": [[0, 0]], "lang_ids": [50259], "suppress_ids": [1, 2], "suppress_ids_begin": [220]}'
    lines = packed(1, VOCAB)                       # that many empty lines
    words = b'["a", "\\u0120b"' + packed(2, VOCAB - 2) + b"]"  # that many entries
    save("ct2", "f16", ct2_input(0, ct2_model(), config, lines))
    save("ct2", "json", ct2_input(1, ct2_model(), b"{}", words))
    save("ct2", "i8", ct2_input(0, ct2_model(1), b'{"alignment_heads": null}', lines))
    save("ct2", "i16", ct2_input(2, ct2_model(2), b'{"suppress_ids": []}', lines))
    save("ct2", "f32-no-positions", ct2_input(4, ct2_model(0, False), config, lines))
    save("ct2", "bf16", ct2_input(6, ct2_model(5), b" [ ] ", lines))


# ---- vocabularies ----

def tokenizer_seeds():
    def save_as(name, mode, text, *files):
        text = text.encode()
        save("tokenizer_json", name, bytes([mode, len(text)]) + text + bytes([ESCAPE, 3]).join(files))

    added = b'{"<|endoftext|>": 50257, "<|startoftranscript|>": 50258}'
    more = b'[{"id": 50257, "content": "<|endoftext|>", "special": true}, {"id": 50258, "content": "<|x|>"}]'
    head = b'{"version": "1.0", "model": {"type": "BPE", "vocab": {'
    save_as("tokenizer", 4, "a rose is a rose", head + packed(4, 50257) + b'}, "merges": []}, "added_tokens": '
            + more + b"}")
    save_as("vocab", 5, "ab\n", b"{" + packed(4, 50257) + b"}", added)
    save_as("vocab-english", 1, "x", b"{" + packed(4, 50255) + b'"\\u0120zz": 50255}')
    save_as("few-words", 5, "the then hen \u00e4\U0001f642",
            '{"th": 256, "the": 257, "\u0120t": 258, "\u0120the": 259, "en": 260, "\u00c3\u00a4": 261}'.encode())
    save_as("array", 2, "\u0120a", b'["a", "\\u0120b", "\\ud83d\\ude42"' + packed(2, VOCAB - 3) + b"]")
    save_as("lines", 3, "abab", "a\nb\nab\nabab\n\u0120\n".encode() + packed(1, VOCAB - 5))
    save_as("lines-crlf", 3, "one", b"on\r\none\r\n")


# ---- blocks and numbers ----

def quant_seeds():
    noise = bytes((i * i * 31 + i * 7) % 251 for i in range(1024))
    for kind in sorted(BLOCKS):
        if kind not in (0, 24, 25, 26, 27, 28):
            save("quant", "type-%d" % kind, bytes([kind, 0x31]) + noise[:max(2 * BLOCKS[kind], ELEMENTS.get(kind, 256))])
    for kind in (2, 3, 6, 7, 8, 10, 12, 13, 14, 16, 17, 18, 20, 22, 29):  # with an importance matrix
        n = ELEMENTS.get(kind, 256)
        save("quant", "weighted-%d" % kind, bytes([kind, 0x13]) + bytes(x & 0x7F for x in noise[:n]) + noise[n:2 * n])
    floats = struct.pack("<64f", *[1.5 * i - 40 for i in range(64)])
    save("quant", "floats", bytes([0, 1]) + floats)
    save("quant", "halves", bytes([1, 1]) + floats)
    save("quant", "flat", bytes([19, 0x33]) + bytes(512))


# ---- changes to a small model (fuzz/fuzz_model.c) ----

def change(kind, index, data, offset=None):
    place = b"" if offset is None else struct.pack("<H", offset)
    return struct.pack("<BHB", kind, index, len(data) - 1) + place + data


def model_seeds():
    for i, name in enumerate(("f32", "f16", "q8_0", "q4_0")):
        save("model", name, bytes([8 | i]))
    nan, inf, most = (struct.pack("<I", bits) for bits in (0x7FC00000, 0x7F800000, 0x7F7FFFFF))
    save("model", "nan-seen", b"\4" + change(1, 5, nan, 64))
    save("model", "nan", b"\0" + change(1, 5, nan, 64))
    save("model", "inf", b"\10" + change(1, 9, inf, 0) + change(1, 40, inf, 128))
    save("model", "largest", b"\0" + change(1, 0, most, 0) + change(1, 12, most, 16))
    save("model", "scale-nan", b"\2" + change(1, 7, b"\0\x7e", 0))
    save("model", "scale-inf", b"\3" + change(1, 22, b"\0\x7c", 18))
    save("model", "token", b"\1" + change(2, 3, b"\xff"))
    save("model", "cut", b"\1" + change(3, 2000, b"x"))
    seven, zero = struct.pack("<I", 7), bytes(4)
    for pair in range(28):  # values that do not fit the others
        save("model", "value-%d" % pair, bytes([pair % 4]) + change(0, 0x8000 | pair, seven))
    for pair in (0, 4, 9, 20):
        save("model", "zero-%d" % pair, b"\1" + change(0, 0x8000 | pair, zero))
        save("model", "key-%d" % pair, b"\1" + change(0, 0x9000 | pair, b"none"))
    save("model", "bf16", b"\x28")
    save("model", "no-memory", b"\x11\x05")
    save("model", "no-positions", b"\2" + change(0, 0xB000 | 4, b"x"))
    save("model", "name", b"\0" + change(0, 0xB000 | 3, b"x"))
    save("model", "extent", b"\1" + change(0, 0xC000 | 9, struct.pack("<Q", 16)))
    save("model", "type-i32", b"\0" + change(0, 0xD000 | 9, struct.pack("<I", 26)))
    save("model", "type-i16", b"\1" + change(0, 0xD000 | 0, struct.pack("<I", 25)))


if __name__ == "__main__":
    gguf_seeds()
    bin_seeds()
    ct2_seeds()
    tokenizer_seeds()
    model_seeds()
    quant_seeds()
