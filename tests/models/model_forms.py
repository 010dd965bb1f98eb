# SPDX-License-Identifier: MIT
"""Whisper base in other people's forms, made from its CTranslate2 folder by those people's own packages."""
import json
import os
import shutil

import ctranslate2
import numpy as np
from ctranslate2.specs.model_spec import index_spec
from safetensors.numpy import save_file

LAYERS, HEADS = 6, 8


def vocabulary(source):
    with open(os.path.join(source, "vocabulary.txt"), encoding="utf-8", newline="\n") as file:
        return file.read().split("\n")[:-1]


def write_ct2(variables, source, folder, quantization):
    """A CTranslate2 folder with weights as its converters quantise them: int8, int16, float32, ..."""
    spec = ctranslate2.specs.WhisperSpec(LAYERS, HEADS, LAYERS, HEADS)
    for name, array in variables.items():
        scope, attribute = name.rsplit("/", 1)
        if array.ndim > 0 and "alignment" not in name:
            setattr(index_spec(spec, scope), attribute, array.astype(np.float32))
    spec.decoder.projection.weight = variables["decoder/embeddings/weight"].astype(np.float32)
    spec.register_vocabulary(vocabulary(source))
    for key, value in json.load(open(os.path.join(source, "config.json"))).items():
        setattr(spec.config, key, value)
    spec.validate()
    spec.optimize(quantization)
    os.makedirs(folder)
    spec.save(folder)


HF_NAMES = [  # GGUF to Hugging Face, first match
    ("pos_embd", "embed_positions"), ("token_embd", "embed_tokens"), ("ffn_norm", "final_layer_norm"), ("ffn_up", "fc1"),
    ("ffn_down", "fc2"), ("cross_attn_norm", "encoder_attn_layer_norm"), ("attn_norm", "self_attn_layer_norm"),
    ("output_norm", "layer_norm"), ("cross_attn_q", "encoder_attn.q_proj"), ("cross_attn_k", "encoder_attn.k_proj"),
    ("cross_attn_v", "encoder_attn.v_proj"), ("cross_attn_output", "encoder_attn.out_proj"),
    ("attn_q", "self_attn.q_proj"), ("attn_k", "self_attn.k_proj"), ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.out_proj"),
]


def hf_name(name):
    name = name.replace("enc.", "model.encoder.").replace("dec.", "model.decoder.").replace("blk.", "layers.")
    for gguf, hf in HF_NAMES:
        if gguf in name:
            return name.replace(gguf, hf)
    return name


def hf_config(vocab, width):
    return {
        "model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"], "vocab_size": vocab,
        "num_mel_bins": 80, "d_model": width, "encoder_layers": LAYERS, "encoder_attention_heads": HEADS,
        "encoder_ffn_dim": 4 * width, "decoder_layers": LAYERS, "decoder_attention_heads": HEADS,
        "decoder_ffn_dim": 4 * width, "max_source_positions": 1500, "max_target_positions": 448,
        "activation_function": "gelu", "scale_embedding": False, "dropout": 0.0, "tie_word_embeddings": True,
        "suppress_tokens": [1], "begin_suppress_tokens": None, "torch_dtype": "float32",
    }


def write_hf(tensors, source, folder, dtype, shards=1, fast=True, prefix=True):
    """A Hugging Face folder with the tensors (GGUF name -> array), in one file or several."""
    os.makedirs(folder)

    def put(name, value):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(value, file)

    arrays = {hf_name(name): array.astype(dtype) for name, array in tensors.items()}
    if not prefix:
        arrays = {name.removeprefix("model."): array for name, array in arrays.items()}
    names = sorted(arrays)
    if shards == 1:
        save_file(arrays, os.path.join(folder, "model.safetensors"), metadata={"format": "pt", "odd": "\u20ac\"\\{"})
    else:
        files = {f"model-{i + 1:05}-of-{shards:05}.safetensors": names[i::shards] for i in range(shards)}
        for file, part in files.items():
            save_file({name: arrays[name] for name in part}, os.path.join(folder, file))
        put("model.safetensors.index.json", {
            "metadata": {"total_size": sum(a.nbytes for a in arrays.values())},
            "weight_map": {name: file for file, part in files.items() for name in part},
        })
    ct2 = json.load(open(os.path.join(source, "config.json")))
    lines = vocabulary(source)
    put("config.json", hf_config(*tensors["dec.token_embd.weight"].shape))
    put("generation_config.json", {
        "alignment_heads": ct2["alignment_heads"], "suppress_tokens": ct2["suppress_ids"],
        "begin_suppress_tokens": ct2["suppress_ids_begin"], "is_multilingual": True, "no_timestamps_token_id": 50363,
        "lang_to_id": {line: i for i, line in enumerate(lines) if 50258 < i < 50358}, "max_length": 448,
    })
    put("preprocessor_config.json", {"feature_size": 80, "sampling_rate": 16000, "hop_length": 160})
    if fast:
        shutil.copy(os.path.join(source, "tokenizer.json"), folder)
    else:
        put("vocab.json", {line: i for i, line in enumerate(lines[:50258])})
        put("added_tokens.json", {line: i for i, line in enumerate(lines[:50364]) if i > 50257})
