# SPDX-License-Identifier: MIT
"""One model in every form that sotto reads: its tensors have to come out the same, bit for bit.

Forms of other people are written by their own packages (safetensors, ctranslate2) from the arrays that numpy reads.
CTranslate2's int8 and int16 have to give numpy's q / scale, and what its own library computes from such a folder: the
encoder's output for the same sound.
"""
import os
import subprocess
import sys
import tempfile

import ctranslate2
import numpy as np
from gguf import GGUFReader
from safetensors.numpy import load_file

from model_forms import hf_name, write_ct2, write_hf
from test_base_convert import FOLDER, check_tensors, digest, expected, read_ct2, value

BUILD = os.environ["SOTTO_BUILD"]


def convert(*args):
    subprocess.run([os.environ["SOTTO"], "convert", *args], check=True)


def same_bits(path, other):
    """All tensors of two GGUF files: names, types, shapes, bytes. How many."""
    a, b = ({t.name: t for t in GGUFReader(p).tensors} for p in (path, other))
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].tensor_type == b[name].tensor_type and list(a[name].shape) == list(b[name].shape), name
        assert a[name].data.tobytes() == b[name].data.tobytes(), name
    return len(a)


def check_floats(work, wanted, name, dtype):
    """f16 or f32: Hugging Face in three shapes, and .bin, against what CTranslate2's folder gives."""
    first, out, back = (os.path.join(work, f"{name}{end}") for end in (".gguf", "-2.gguf", ".bin"))
    convert(FOLDER, first, "--type", name)
    check_tensors(GGUFReader(first), wanted, dtype)
    convert(FOLDER, back, "--type", name)
    convert(back, out)
    print(name, ".bin:", same_bits(first, out), "tensors equal")
    os.remove(back)
    kinds = {"one file": {}, "shards": {"shards": 3, "fast": False}, "no prefix": {"prefix": False}}
    for kind, options in kinds.items():
        if name == "f32" and kind != "shards":
            continue
        folder = os.path.join(work, kind)
        write_hf(wanted, FOLDER, folder, dtype, **options)
        convert(folder, out)
        assert digest(out) == digest(first), kind  # the lists and the vocabulary as well
        print(name, f"Hugging Face, {kind}: the same file")
        if kind == "one file":
            convert(os.path.join(folder, "model.safetensors"), out)
            assert digest(out) == digest(first)
        subprocess.run(["rm", "-r", folder], check=True)
    folder = os.path.join(work, "written") + "/"
    convert(first, folder)
    arrays = load_file(folder + "model.safetensors")
    assert arrays.keys() == {hf_name(n) for n in wanted} and len(arrays) == 245
    for n, array in wanted.items():
        assert np.array_equal(arrays[hf_name(n)], array), n
    convert(folder, out)
    assert digest(out) == digest(first)
    print(name, "a folder of ours: safetensors reads the same, and so do we")
    subprocess.run(["rm", "-r", folder], check=True)
    os.remove(out)


def dequantised(folder):
    """The variables of a quantised folder as numbers, aliases left out."""
    variables = read_ct2(os.path.join(folder, "model.bin"))
    numbers = {}
    for name, array in variables.items():
        scale = variables.get(name + "_scale")
        if scale is not None:
            scale = scale.reshape((-1,) + (1,) * (array.ndim - 1)) if scale.ndim else scale
            array = array.astype(np.float32) / scale
        if not name.endswith("_scale"):
            numbers[name] = array
    return numbers


def hear(folder, path, mel):
    """Largest difference between the encoders of CTranslate2 on a folder and of sotto on a file."""
    model = ctranslate2.models.Whisper(folder, compute_type="float32", intra_threads=2)
    theirs = np.asarray(model.encode(ctranslate2.StorageView.from_array(mel[None])))[0]
    ours = subprocess.run([os.path.join(BUILD, "tests", "encoder_lines"), path], input=mel.tobytes(),
                          stdout=subprocess.PIPE, check=True).stdout
    return np.abs(theirs - np.frombuffer(ours, np.float32).reshape(theirs.shape)).max()


def check_integers(work, variables, quantization, most, listen):
    """A quantised export: numbers as f32, what they are by default, and what is heard."""
    folder, out = os.path.join(work, quantization), os.path.join(work, quantization + ".gguf")
    write_ct2(variables, FOLDER, folder, quantization)
    assert len(read_ct2(os.path.join(folder, "model.bin"))) > len(variables)  # scales
    numbers = expected(dequantised(folder))
    convert(folder, out, "--type", "f32")
    print(quantization, check_tensors(GGUFReader(out), numbers, np.float32), "tensors equal")
    if listen:
        mel = np.random.default_rng(5).normal(0, 0.5, (80, 3000)).astype(np.float32)
        difference = hear(folder, out, mel)
        print(quantization, "encoder differs by", difference)
        assert difference < 5e-3
    convert(folder, out)
    worst = 0
    for t in GGUFReader(out).tensors:
        want = numbers[t.name]
        if want.ndim != 2 or "pos_embd" in t.name:
            assert t.tensor_type.name == ("F16" if want.ndim == 3 else "F32")
            continue
        assert t.tensor_type.name == most
        step = np.abs(want).max(axis=1, keepdims=True) / 127
        worst = max(worst, (np.abs(unpacked(t) - want) / step).max())
    print(quantization, most, "off by", worst, "steps at most")
    assert worst <= 1
    subprocess.run(["rm", "-r", folder], check=True)
    os.remove(out)


def unpacked(tensor):
    if tensor.tensor_type.name == "F16":
        return tensor.data.astype(np.float32)
    blocks = tensor.data.reshape(tensor.data.shape[0], -1, 34)
    scales = np.ascontiguousarray(blocks[..., :2]).view(np.float16).astype(np.float32)
    return (blocks[..., 2:].view(np.int8) * scales).reshape(tensor.data.shape[0], -1)


def main():
    variables = read_ct2(os.path.join(FOLDER, "model.bin"))
    wanted = expected(variables)
    with tempfile.TemporaryDirectory() as work:
        check_floats(work, wanted, "f16", np.float16)
        check_floats(work, wanted, "f32", np.float32)
        check_integers(work, variables, "int8", "Q8_0", True)
        check_integers(work, variables, "int8_float16", "Q8_0", False)
        check_integers(work, variables, "int16", "F16", True)


if __name__ == "__main__":
    sys.exit(main())
