# SPDX-License-Identifier: MIT
"""Whisper base converted by `sotto convert`, against numpy's own reading of model.bin.

Every tensor of the GGUF, as PyPI's gguf reads it, has to hold the values of its variable: bit for bit in f16, exactly
widened in f32. The merges have to be those of tokenizer.json and the one it lacks. Two conversions give the same bytes.
"""
import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np
from gguf import GGUFReader

MODELS = os.environ.get("SOTTO_MODELS") or os.path.expanduser("~/.cache/sotto/models")
FOLDER = os.path.join(MODELS, "base-ct2")
D, LAYERS, VOCAB = 512, 6, 51865
TYPES = {0: "<f4", 1: "<i1", 2: "<i2", 4: "<f2"}


def read_ct2(path):
    """name -> array"""
    variables = {}
    with open(path, "rb") as file:
        data = file.read()
    at = 0

    def number(form):
        nonlocal at
        value, = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize(form)
        return value

    def string():
        nonlocal at
        size = number("H")
        at += size
        return data[at - size:at - 1].decode()

    assert number("I") == 6 and string() == "WhisperSpec" and number("I") == 3
    for _ in range(number("I")):
        name = string()
        shape = [number("I") for _ in range(number("B"))]
        kind = number("B")
        size = number("I")
        variables[name] = np.frombuffer(data, TYPES[kind], size // np.dtype(TYPES[kind]).itemsize, at).reshape(shape)
        at += size
    return variables


def expected(variables):
    """GGUF name -> array, written down here independently of the C tables."""
    out = {}

    def put(name, array):
        out[name] = array

    def pair(gguf, ct2, names=("weight", "bias")):
        put(gguf + ".weight", variables[f"{ct2}/{names[0]}"])
        put(gguf + ".bias", variables[f"{ct2}/{names[1]}"])

    norm = ("gamma", "beta")
    for side, short in (("encoder", "enc"), ("decoder", "dec")):
        put(short + ".pos_embd.weight", variables[side + "/position_encodings/encodings"])
        pair(short + ".output_norm", side + "/layer_norm", norm)
        for i in range(LAYERS):
            blk, lay = f"{short}.blk.{i}", f"{side}/layer_{i}"
            pair(blk + ".attn_norm", lay + "/self_attention/layer_norm", norm)
            weight = variables[lay + "/self_attention/linear_0/weight"]
            bias = variables[lay + "/self_attention/linear_0/bias"]
            for k, letter in enumerate("qkv"):
                put(f"{blk}.attn_{letter}.weight", weight[k * D:(k + 1) * D])
                if letter != "k":
                    put(f"{blk}.attn_{letter}.bias", bias[k * D:(k + 1) * D])
            assert not bias[D:2 * D].any()
            pair(blk + ".attn_output", lay + "/self_attention/linear_1")
            if side == "decoder":
                pair(blk + ".cross_attn_norm", lay + "/attention/layer_norm", norm)
                pair(blk + ".cross_attn_q", lay + "/attention/linear_0")
                weight = variables[lay + "/attention/linear_1/weight"]
                bias = variables[lay + "/attention/linear_1/bias"]
                put(blk + ".cross_attn_k.weight", weight[:D])
                put(blk + ".cross_attn_v.weight", weight[D:])
                put(blk + ".cross_attn_v.bias", bias[D:])
                assert not bias[:D].any()
                pair(blk + ".cross_attn_output", lay + "/attention/linear_2")
            pair(blk + ".ffn_norm", lay + "/ffn/layer_norm", norm)
            pair(blk + ".ffn_up", lay + "/ffn/linear_0")
            pair(blk + ".ffn_down", lay + "/ffn/linear_1")
    pair("enc.conv1", "encoder/conv1")
    pair("enc.conv2", "encoder/conv2")
    put("dec.token_embd.weight", variables["decoder/embeddings/weight"])
    return out


def check_tensors(reader, wanted, dtype):
    assert {t.name for t in reader.tensors} == set(wanted) and len(reader.tensors) == len(wanted) == 245
    for t in reader.tensors:
        want = wanted[t.name]
        as_weight = want.ndim > 1 and "pos_embd" not in t.name
        assert t.data.dtype == (dtype if as_weight else np.float32), t.name
        assert t.data.shape == want.shape, (t.name, t.data.shape, want.shape)
        assert list(t.shape) == list(reversed(want.shape)), t.name
        assert np.array_equal(t.data, want.astype(t.data.dtype)), t.name
        assert np.array_equal(np.signbit(t.data), np.signbit(want)), t.name
    return len(wanted)


def value(reader, key):
    return reader.fields[key].contents()


def check_keys(reader, file_type):
    config = json.load(open(os.path.join(FOLDER, "config.json")))
    numbers = {
        "whisper.vocab_size": VOCAB, "whisper.mel_bands": 80,
        "whisper.encoder.context_length": 1500, "whisper.encoder.embedding_length": D,
        "whisper.encoder.feed_forward_length": 4 * D, "whisper.encoder.block_count": LAYERS,
        "whisper.encoder.attention.head_count": 8, "whisper.decoder.context_length": 448,
        "whisper.decoder.embedding_length": D, "whisper.decoder.feed_forward_length": 4 * D,
        "whisper.decoder.block_count": LAYERS, "whisper.decoder.attention.head_count": 8,
        "whisper.audio.sample_rate": 16000, "whisper.audio.n_fft": 400, "whisper.audio.hop_length": 160,
        "whisper.audio.chunk_seconds": 30, "whisper.language_count": 99, "general.file_type": file_type,
        "general.quantization_version": 2, "tokenizer.ggml.bos_token_id": 50258, "tokenizer.ggml.eos_token_id": 50257,
        "tokenizer.whisper.translate_token_id": 50358, "tokenizer.whisper.transcribe_token_id": 50359,
        "tokenizer.whisper.startoflm_token_id": 50360, "tokenizer.whisper.startofprev_token_id": 50361,
        "tokenizer.whisper.nospeech_token_id": 50362, "tokenizer.whisper.notimestamps_token_id": 50363,
        "tokenizer.whisper.timestamp_begin_token_id": 50364,
    }
    for key, want in numbers.items():
        assert value(reader, key) == want, (key, value(reader, key))
    assert value(reader, "general.architecture") == "whisper"
    assert value(reader, "tokenizer.ggml.model") == "gpt2" and value(reader, "tokenizer.ggml.pre") == "gpt-2"
    assert value(reader, "whisper.multilingual") is True and value(reader, "whisper.timestamps") is True
    assert value(reader, "whisper.speaker_turns") is False
    assert abs(value(reader, "whisper.attention.layer_norm_epsilon") - 1e-5) < 1e-12
    assert value(reader, "whisper.alignment_heads") == [x for pair in config["alignment_heads"] for x in pair]
    assert value(reader, "whisper.suppress_tokens") == config["suppress_ids"]
    assert value(reader, "whisper.suppress_tokens_begin") == config["suppress_ids_begin"]


def check_vocabulary(reader):
    lines = open(os.path.join(FOLDER, "vocabulary.txt"), encoding="utf-8", newline="\n").read().split("\n")[:-1]
    lines = [line.replace("<|nocaptions|>", "<|nospeech|>") for line in lines]
    tokens = value(reader, "tokenizer.ggml.tokens")
    assert len(lines) == len(tokens) == VOCAB and tokens == lines
    assert value(reader, "tokenizer.ggml.token_type") == [1] * 50257 + [3] * (VOCAB - 50257)
    codes = value(reader, "tokenizer.whisper.language_codes")
    assert [f"<|{code}|>" for code in codes] == tokens[50259:50358]
    merges = value(reader, "tokenizer.ggml.merges")
    theirs = json.load(open(os.path.join(FOLDER, "tokenizer.json"), encoding="utf-8"))["model"]["merges"]
    theirs = [m if isinstance(m, str) else " ".join(m) for m in theirs]
    assert len(merges) == 50000 and merges[0] == "\u0120 t" and merges[1:] == theirs
    assert all(m.replace(" ", "") == tokens[256 + i] for i, m in enumerate(merges))


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main():
    variables = read_ct2(os.path.join(FOLDER, "model.bin"))
    wanted = expected(variables)
    with tempfile.TemporaryDirectory() as work:
        for name, dtype, file_type in (("f16", np.float16, 1), ("f32", np.float32, 0)):
            out = os.path.join(work, name + ".gguf")
            subprocess.run([os.environ["SOTTO"], "convert", FOLDER, out, "--type", name], check=True)
            reader = GGUFReader(out)
            print(name, check_tensors(reader, wanted, dtype), "tensors equal")
            check_keys(reader, file_type)
            check_vocabulary(reader)
            again = os.path.join(work, "again.gguf")
            subprocess.run([os.environ["SOTTO"], "convert", FOLDER, again, "--type", name], check=True)
            assert digest(out) == digest(again)
            assert not [f for f in os.listdir(work) if ".tmp." in f]
            os.remove(out)
            os.remove(again)


if __name__ == "__main__":
    sys.exit(main())
