# SPDX-License-Identifier: MIT
"""The encoders of the iq types beside the slow ones of iq_reference.py, byte for byte."""
import os
import subprocess

import numpy as np

import iq_reference as reference

TOOL = os.path.join(os.environ["SOTTO_BUILD"], "tests", "quant_lines")
SEED = int(os.environ.get("SOTTO_SEED", "20252"))
F = np.float32
TYPES = {"iq2_xxs": 16, "iq2_xs": 17, "iq3_xxs": 18, "iq1_s": 19, "iq4_nl": 20, "iq3_s": 21, "iq2_s": 22, "iq4_xs": 23,
         "iq1_m": 29}
NEED_MATRIX = {"iq2_xxs", "iq2_xs", "iq1_s"}
NEED_TABLES = {"iq2_s", "iq3_xxs", "iq3_s"}
N, EACH = 512, 5     # width of rows, rows of each kind


def rows_to_encode(rng, n):
    """Of many kinds, all finite."""
    x = rng.standard_normal((EACH, n)).astype(F)
    outlier = x * F(0.01)
    outlier[np.arange(EACH), rng.integers(0, n, EACH)] = rng.standard_normal(EACH) * 100
    holes = x.copy()
    for row in holes:                        # sub-blocks of zeros beside others
        for at in rng.integers(0, n // 16, 12):
            row[16 * at:16 * at + rng.choice([16, 32])] = rng.choice([F(0), F(-0.0), F(1e-9)])
    alternating = np.where(np.arange(n) % 2, F(1), F(-1)) * np.abs(x[:, :1])
    sparse = np.where(rng.random(x.shape) < 0.05, x, F(0))
    kinds = [x, x ** 3, np.abs(x), -np.abs(x), np.round(x * 2), x * F(1e-6), x * F(1e-11), x * F(1e-20), x * F(1e-40),
             x * F(3e4), x * F(1e15), x * F(1e30), outlier, holes, alternating, sparse, np.repeat(x[:, :1], n, 1),
             x * 10.0 ** rng.integers(-5, 5, (EACH, n)), np.zeros((1, n))]
    return np.concatenate(kinds).astype(F)


def matrices(rng, n):
    sparse = np.where(rng.random(n) < 0.3, rng.random(n), 0)
    sparse[32:96] = 0
    return {"ones": np.ones(n, F), "random": (rng.random(n) ** 4 * 50).astype(F), "sparse": sparse.astype(F)}


def ask(what, name, data, n):
    done = subprocess.run([TOOL, what, str(TYPES[name]), str(n)], input=data.tobytes(), stdout=subprocess.PIPE,
                          check=True)
    return np.frombuffer(done.stdout, np.uint8)


def compare(got, want, x, what):
    got = got.reshape(want.shape)
    bad = np.flatnonzero((got != want).any(1))
    assert len(bad) == 0, (f"{what}: {len(bad)} of {len(x)} rows differ, first {bad[0]} at bytes "
                           f"{np.flatnonzero(got[bad[0]] != want[bad[0]])[:20]}")
    print(f"{what}: {len(x)} rows alike")


def main():
    rng = np.random.default_rng(SEED)
    n = N
    x = rows_to_encode(rng, n)
    for name in TYPES:
        if name not in NEED_MATRIX:
            want = reference.encode(name, x, None)
            compare(ask("encode", name, x, n), want, x, f"{name} without matrix")
            if name in NEED_TABLES:   # nobody made them there
                assert not ask("encode_row", name, x, n).any(), f"{name}: a row without tables"
            elif name == "iq4_xs":
                compare(ask("encode_row", name, x, n), want, x, f"{name} by rows")
        some = x[rng.permutation(len(x))[:40]]
        for kind, columns in matrices(rng, n).items():
            got = ask("encode_weighted", name, np.concatenate([columns[None], some]), n)
            compare(got, reference.encode(name, some, columns), some, f"{name} with a matrix: {kind}")
    with np.errstate(all="ignore"):
        want = reference.iq4_nl(x.reshape(-1, 32), None, -1).reshape(len(x), -1)
    compare(ask("encode_row", "iq4_nl", x, n), want, x, "iq4_nl by rows")


print(f"SOTTO_SEED={SEED}")
main()
