#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# sotto inspect: the tiny model in two containers, JSON that Python reads strictly, hashes as hashlib has them, hostile
# names, values that are not valid, files that are cut off or none.
source "$(dirname "$0")/lib.sh"

python=$SOTTO_SOURCE/.venv/bin/python
tiny=$work/tiny.gguf
"$SOTTO_BUILD/tests/write_tiny_model" "$tiny"

code 2 "$SOTTO" inspect
says "arguments are missing"
code 2 "$SOTTO" inspect a b
code 3 "$SOTTO" inspect /nonexistent
says "SOTTO_E_IO"
code 3 "$SOTTO" inspect "$work"
says "SOTTO_E_MODEL_FORMAT"
code 3 "$SOTTO" inspect /dev/null
says "SOTTO_E_MODEL_FORMAT"

code 0 "$SOTTO" inspect "$tiny"
empty "$work/err"
says "container  GGUF, version 3, aligned to 32, $(stat -c %s "$tiny") bytes" "$work/out"
says '  general.architecture  str  "whisper"' "$work/out"
says '  tokenizer.ggml.tokens  51865 str  ["!", ' "$work/out"
says '  whisper.encoder.embedding_length  u32  64' "$work/out"
if grep -q "enc.conv1.weight" "$work/out"; then
    echo "FAILED: tensors are listed without --tensors" >&2
    exit 1
fi
code 0 "$SOTTO" inspect --tensors "$tiny"
says "  enc.conv1.weight  f32  [64, 80, 3]  61440 bytes at " "$work/out"
code 0 "$SOTTO" convert "$tiny" "$work/tiny.bin"
code 0 "$SOTTO" inspect "$work/tiny.bin" --tensors
says "container  .bin, $(stat -c %s "$work/tiny.bin") bytes" "$work/out"
says "  vocab_size  51865" "$work/out"
says "  encoder.conv1.weight  f32  [64, 80, 3]  61440 bytes at " "$work/out"
code 8 bash -c "'$SOTTO' inspect '$tiny' --json >/dev/full"
says "standard output"

# values where they are said to be, hashes of them, and the same ones in both containers
code 0 "$SOTTO" inspect "$tiny" --tensors --verify
says "verified   all values are valid" "$work/out"
for container in gguf bin; do
    code 0 "$SOTTO" inspect --json --tensors --verify "$work/tiny.$container"
    cp "$work/out" "$work/$container.json"
done
"$python" - "$work" <<'PY'
import hashlib, json, sys

def strictly(path):
    def refuse(word):
        raise ValueError(word)
    with open(path, encoding="utf-8") as file:
        return json.load(file, parse_constant=refuse)

hashes = []
for container in "gguf", "bin":
    told = strictly(f"{sys.argv[1]}/{container}.json")
    with open(f"{sys.argv[1]}/tiny.{container}", "rb") as file:
        data = file.read()
    assert told["bytes"] == len(data) and told["invalid_tensors"] == 0 and told["tensor_count"] == len(told["tensors"])
    assert told["tensor_bytes"] == sum(t["bytes"] for t in told["tensors"])
    assert sum(kind["bytes"] for kind in told["types"].values()) == told["tensor_bytes"]
    for t in told["tensors"]:
        assert t["valid"] and t["sha256"] == hashlib.sha256(data[t["offset"]:t["offset"] + t["bytes"]]).hexdigest(), t
    hashes.append(sorted(t["sha256"] for t in told["tensors"] if "pos_embd" not in t["name"] and "positional" not in t["name"]))
assert hashes[0] == hashes[1] and len(hashes[0]) > 40
pairs = {pair["key"]: pair for pair in strictly(f"{sys.argv[1]}/gguf.json")["pairs"]}
assert pairs["whisper.vocab_size"] == {"key": "whisper.vocab_size", "type": "u32", "value": 51865}
tokens = pairs["tokenizer.ggml.tokens"]
assert tokens["type"] == "arr" and tokens["element"] == "str" and len(tokens["first"]) == 8 < tokens["count"]
PY
checks=$((checks + 1))

# names and values of a file that wishes us ill
"$python" - "$work/odd.gguf" <<'PY'
import struct, sys
def text(b): return struct.pack("<Q", len(b)) + b
pairs = [(b'quote"\\\x1b[2Jkey', 8, text(b'\xff\xfe"\n\x00\x1b]0;x\x07' + "é".encode() * 200)),
         (b"nan", 6, struct.pack("<f", float("nan"))), (b"inf", 12, struct.pack("<d", float("-inf"))),
         (b"half", 6, struct.pack("<f", 0.5)), (b"big", 10, struct.pack("<Q", 2**64 - 1)),
         (b"small", 11, struct.pack("<q", -2**63)), (b"yes", 7, b"\1"), (b"byte", 1, b"\xff"),
         (b"none", 9, struct.pack("<IQ", 8, 0)), (b"floats", 9, struct.pack("<IQ3f", 6, 3, 1, float("inf"), -2)),
         (b"many", 9, struct.pack("<IQ", 3, 1000) + struct.pack("<h", -7) * 1000)]
infos = [(b'a"b\x1b[31m\n', [4], 0, 0), (b"\xc3\x28", [32, 2], 8, 32), (b"good", [32, 1], 8, 128)]
out = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(pairs))
for key, kind, value in pairs:
    out += text(key) + struct.pack("<I", kind) + value
for name, ne, kind, at in infos:
    out += text(name) + struct.pack("<I", len(ne)) + struct.pack(f"<{len(ne)}Q", *ne) + struct.pack("<IQ", kind, at)
out += bytes(-len(out) % 32)
data = struct.pack("<4f", 1, 2, float("nan"), 3) + bytes(16)
data += bytes(34) + struct.pack("<e", float("inf")) + bytes(32) + bytes(28)
data += bytes(34) + bytes(30)
open(sys.argv[1], "wb").write(out + data)
PY
code 0 "$SOTTO" inspect "$work/odd.gguf" --tensors
if grep -q $'\x1b' "$work/out"; then
    echo "FAILED: an escape sequence came through" >&2
    exit 1
fi
says '"a\"b\u001b[31m\n"  f32  [4]  16 bytes at ' "$work/out"
code 0 "$SOTTO" inspect "$work/odd.gguf" --tensors --json
"$python" - "$work/out" <<'PY'
import json, sys
def refuse(word):
    raise ValueError(word)
with open(sys.argv[1], encoding="utf-8") as file:
    told = json.load(file, parse_constant=refuse)
pairs = {pair["key"]: pair for pair in told["pairs"]}
odd = pairs['quote"\\\x1b[2Jkey']["value"]
assert odd.startswith('\ufffd\ufffd"\n\x00\x1b]0;x\x07é') and odd.endswith("é") and len(odd.encode()) <= 264, odd
assert pairs["nan"]["value"] is None and pairs["inf"]["value"] is None and pairs["half"]["value"] == 0.5
assert pairs["big"]["value"] == 2**64 - 1 and pairs["small"]["value"] == -2**63
assert pairs["yes"]["value"] is True and pairs["byte"]["value"] == -1
assert pairs["none"]["count"] == 0 and pairs["none"]["first"] == []
assert pairs["floats"]["first"] == [1, None, -2] and pairs["many"]["first"] == [-7] * 8 and pairs["many"]["count"] == 1000
assert [t["name"] for t in told["tensors"]] == ['a"b\x1b[31m\n', "\ufffd(", "good"]
assert "valid" not in told["tensors"][0]
PY
checks=$((checks + 1))
code 3 "$SOTTO" inspect "$work/odd.gguf" --verify --json --tensors
says '"a\"b\u001b[31m\n" row 0 at byte '
says ' row 1 at byte '
says "PARAM"
"$python" -c 'import json, sys; t = json.load(open(sys.argv[1])); assert [x["valid"] for x in t["tensors"]] == [False, False, True] and t["invalid_tensors"] == 2' "$work/out"
code 3 "$SOTTO" inspect "$work/odd.gguf" --verify
says "verified   2 of 3 tensors hold values that are not valid" "$work/out"

# containers that are damaged: the error's name and the place
cut() {
    head -c "$1" "$tiny" >"$work/cut.gguf"
    code 3 "$SOTTO" inspect "$work/cut.gguf"
    says "$2"
    says " byte "
    empty "$work/out"
}
cut 20 "TRUNCATED: "
cut 40 "COUNT_KV: "
cut 100000 "ARRAY_LENGTH: "
cut "$(($(stat -c %s "$tiny") - 100))" "DATA_EXTENT: "
printf 'GGUF\1\0\0\0' >"$work/cut.gguf"
code 3 "$SOTTO" inspect "$work/cut.gguf"
head -c 100000 "$work/tiny.bin" >"$work/cut.bin"
code 3 "$SOTTO" inspect "$work/cut.bin"
says "SOTTO_E_MODEL_TRUNCATED"
says " byte "
finish
