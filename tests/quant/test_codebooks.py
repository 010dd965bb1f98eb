# SPDX-License-Identifier: MIT
"""The committed codebooks are what tools/gen-codebooks makes of the package gguf, and hash to what quant.md section 4
names. test_iq_tables.c hashes what the compiler made of them."""
import hashlib
import os
import re
import subprocess
import sys

ROOT = os.environ.get("SOTTO_SOURCE") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# name -> digits, bits, values of the digits, hash of the rows as signed bytes, hash of the codes as little-endian words
TABLES = {
    "IQ2_XXS": (8, 2, [8, 25, 43], "05826b5d3e472a3a78f196be62ac78acf81df0f909626e12ab9fa2a5d490dd54",
                "915952ebc4af8ddba8113583ca1316fc818843f7b825bbf1a25ae1c39bf0e16d"),
    "IQ2_XS": (8, 2, [8, 25, 43], "06e47aaca60b4dc1d9b5a3f34540437058a6b142b4d7a59d5ded769b4d1bf1de",
               "f66435966ca8d64e9e4a6e3c91e64afcf9015e700ec85962f527283ebae207b9"),
    "IQ2_S": (8, 2, [8, 25, 43], "e1aa1473412b0552c2174c30ef22ab4073f6a181b85a17056e8249bd2932fd88",
              "e6e75e121b65e8afa5c1f92b71463cfbe217b83893f438acde22fd5db06a43f7"),
    "IQ3_XXS": (4, 3, [4, 12, 20, 28, 36, 44, 52, 62],
                "46e35f5a997efdee6c99ce57854c8a0d4f0ff8ca57e5e8a60c0793ea580acf5d",
                "c9678803c61b2210fbd8cbbb3f965a835409cd7d88a04d086d236261bd221d11"),
    "IQ3_S": (4, 3, [1, 3, 5, 7, 9, 11, 13, 15], "bd1af4945a1717c65610b0284e4628b9a1ba3b306fae3a06f6e5f597356e349f",
              "353274c58dd7d8dc5ee960dc8fc54ff9164eaf2b49206b841cd49415cf393f81"),
    "IQ1_S": (8, 2, [-1, 0, 1], "07540ffc1aeaf6ad4d97e96b0fcc765aae39671d4ae4a27bbd0e796fde167c6a",
              "e9ffebfc997ad6023063a667c0bf4eedd8ebf7f56b3da399cbc7d1b1f7ea52c6"),
}


def sha(data):
    return hashlib.sha256(data).hexdigest()


def main():
    with open(os.path.join(ROOT, "src/quant/codebooks.def"), encoding="utf-8") as file:
        committed = file.read()
    made = subprocess.run([sys.executable, os.path.join(ROOT, "tools/gen-codebooks")], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    assert committed == made, "src/quant/codebooks.def is not what tools/gen-codebooks prints"
    for name, (digits, bits, values, rows_hash, codes_hash) in TABLES.items():
        codes = [int(code) for code in re.findall(rf"\b{name}\((\d+)\)", committed)]
        assert codes == sorted(set(codes)), f"{name}: codes do not ascend"
        rows = [values[code >> bits * i & (1 << bits) - 1] for code in codes for i in range(digits)]
        assert sha(b"".join(code.to_bytes(2, "little") for code in codes)) == codes_hash, f"{name}: other codes"
        assert sha(bytes(value & 255 for value in rows)) == rows_hash, f"{name}: other rows"
        print(f"{name}: {len(codes)} rows as they should be")


main()
