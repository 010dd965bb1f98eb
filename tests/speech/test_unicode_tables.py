# SPDX-License-Identifier: MIT
"""The committed table of character classes is what tools/gen-unicode-tables makes of the Unicode data at hand.

Where the interpreter has another Unicode version than the table was made from, characters that the older of the two does
not know are left out of the comparison, and a few that changed their class are allowed for.
"""
import os
import re
import subprocess
import sys
import unicodedata

ROOT = os.environ.get("SOTTO_SOURCE") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def classes(text):
    """{code point: class} of a table."""
    table = {}
    last_end = -1
    for first, last, name in re.findall(r"RANGE\(0x([0-9a-f]+), 0x([0-9a-f]+), ([A-Z]+)\)", text):
        first, last = int(first, 16), int(last, 16)
        assert last_end < first <= last <= 0x10FFFF, f"range {first:x}..{last:x} is out of order"
        last_end = last
        for point in range(first, last + 1):
            table[point] = name
    return table


def compare_eval():
    """The tables of the normalisers, where the interpreter has their version; tests/eval tries them in any case."""
    with open(os.path.join(ROOT, "src/speech/eval_unicode.def"), encoding="utf-8") as file:
        committed = file.read()
    made = subprocess.run([sys.executable, os.path.join(ROOT, "tools/gen-unicode-tables"), "eval"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    sections = re.findall(r"#ifdef ([A-Z]+)", committed)
    assert sections == re.findall(r"#ifdef ([A-Z]+)", made) and len(sections) == 9
    if f"data of Unicode {unicodedata.unidata_version} by" in committed:
        assert committed == made, "src/speech/eval_unicode.def is not what tools/gen-unicode-tables eval prints"
        print("eval_unicode.def is the same")


def main():
    compare_eval()
    with open(os.path.join(ROOT, "src/speech/unicode.def"), encoding="utf-8") as file:
        committed = file.read()
    made = subprocess.run([sys.executable, os.path.join(ROOT, "tools/gen-unicode-tables")], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    version = re.search(r"data of Unicode (\S+) by", committed).group(1)
    old, new = classes(committed), classes(made)
    assert len(old) > 100_000 and {"LETTER", "NUMBER", "SPACE"} == set(old.values())
    if version == unicodedata.unidata_version:
        assert committed == made, "src/speech/unicode.def is not what tools/gen-unicode-tables prints"
        print(f"unicode.def equals the data of Unicode {version}")
        return
    both = [p for p in range(0x110000) if p in old and p in new]
    moved = [p for p in both if old[p] != new[p]]
    lost = [p for p in old if p not in new and unicodedata.category(chr(p)) != "Cn"]
    assert len(moved) + len(lost) < 20, f"{len(moved)} characters have another class, {len(lost)} have none"
    print(f"table of Unicode {version}, interpreter of {unicodedata.unidata_version}: {len(both)} characters compared")


main()
