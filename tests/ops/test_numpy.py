# SPDX-License-Identifier: MIT
"""Ops against numpy in float64: writes cases of the op-vectors format and lets op_vectors run them.

Each function below states an op's formula in numpy on arrays whose axes are in the engine's order reversed (numpy's
last axis is dimension 0). Shapes are odd on purpose; operands also come as permuted, padded and offset views.
"""
import json
import math
import os
import subprocess
import sys

import numpy as np

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 20261130
rng = np.random.default_rng(SEED)
erf = np.vectorize(math.erf, otypes=[np.float64])
cases = []


def number(x):
    x = float(x)
    return x if math.isfinite(x) else ("nan" if math.isnan(x) else ("inf" if x > 0 else "-inf"))


def to_type(x, t):
    """What the engine stores for x, as float64."""
    x = np.asarray(x, np.float32)
    if t == "f16":
        x = x.astype(np.float16)
    if t == "bf16":
        bits = x.view(np.uint32).astype(np.uint64)
        bits = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32)
        x = bits.view(np.float32)
    return np.asarray(x, np.float64)


def operand(x, t="f32"):
    return {"t": t, "ne": list(x.shape[::-1]), "v": [number(v) for v in x.ravel()]}


def case(name, operands, prog, y, tol=2e-6, t="f32", cmp=None):
    one = {"name": name, "in": operands, "prog": prog, "tol": tol,
           "out": {"t": t, "ne": list(y.shape[::-1]), "v": [number(v) for v in y.ravel()], "composed": True}}
    if cmp:
        one["cmp"] = cmp
    cases.append(one)


def random(*ne, scale=1.0):
    """Random float64 array of engine extents ne, already rounded to f32."""
    return to_type(rng.uniform(-scale, scale, ne[::-1]), "f32")


def tile(b, shape):
    for axis in range(b.ndim):
        b = np.concatenate([b] * (shape[axis] // b.shape[axis]), axis) if b.shape[axis] else np.zeros(shape)
    return b


def views():
    """(name, operand array, program that makes tensor p from it, array that p must show) for one base array."""
    for ne in [(7, 5, 3, 2), (33, 3, 1, 2), (1, 1, 1, 1), (129, 2, 1, 1)]:
        x = random(*ne)
        yield f"plain{ne}", x, [["p", "view_4d", "a", *ne, *[4 * int(np.prod(ne[:d])) for d in (1, 2, 3)], 0]], x
        for axes in [(0, 2, 1, 3), (1, 0, 2, 3), (3, 2, 1, 0), (0, 3, 1, 2)]:
            # engine: y.ne[axis_i] = a.ne[i]; numpy axes are reversed
            order = [0] * 4
            for i, axis in enumerate(axes):
                order[3 - axis] = 3 - i
            yield f"permuted{axes}{ne}", x, [["p", "permute", "a", *axes]], x.transpose(order)
        if ne[0] > 2:
            cut = ne[0] - 2
            nb = [4 * int(np.prod(ne[:d])) for d in (1, 2, 3)]
            yield (f"padded{ne}", x, [["p", "view_4d", "a", cut, *ne[1:], *nb, 4]], x[..., 1:1 + cut])


def elementwise():
    for name, x, prog, shown in views():
        case(f"dup/{name}", {"a": operand(x)}, prog + [["y", "dup", "p"]], shown, 0)
        case(f"cont/{name}", {"a": operand(x)}, prog + [["y", "cont", "p"]], shown, 0)
        case(f"scale/{name}", {"a": operand(x)}, prog + [["y", "scale_bias", "p", -1.5, 0.25]], shown * -1.5 + 0.25)
        mean = shown.mean(-1, keepdims=True)
        var = ((shown - mean) ** 2).mean(-1, keepdims=True)
        case(f"norm/{name}", {"a": operand(x)}, prog + [["y", "norm", "p", 1e-5]], (shown - mean) / np.sqrt(var + 1e-5),
             2e-5)
        case(f"sum_rows/{name}", {"a": operand(x)}, prog + [["y", "sum_rows", "p"]], shown.sum(-1, keepdims=True))
        for op in ("add", "mul"):
            for factor in [(1, 1, 1, 1), (1, 2, 1, 1), (2, 1, 3, 1), (1, 1, 1, 2)]:
                ne = shown.shape[::-1]
                if any(ne[d] % factor[d] for d in range(4)):
                    continue
                b = random(*[ne[d] // factor[d] for d in range(4)])
                full = tile(b, shown.shape)
                y = shown + full if op == "add" else shown * full
                case(f"{op}{factor}/{name}", {"a": operand(x), "b": operand(b)}, prog + [["y", op, "p", "b"]], y)
        flat = random(shown.size)
        case(f"cpy/{name}", {"a": operand(x), "b": operand(flat)}, prog + [["y", "cpy", "p", "b"]], shown.reshape(-1), 0)
    for ne in [(5, 7, 3, 2), (64, 1, 1, 1), (1000, 3, 1, 1)]:
        for t, tol in [("f32", 1e-6), ("f16", 1e-3), ("bf16", 8e-3)]:
            x = to_type(random(*ne, scale=6), t)
            tanh = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * x * (1 + 0.044715 * x * x)))
            case(f"gelu/{t}{ne}", {"a": operand(x, t)}, [["y", "gelu", "a"]], tanh, tol, t)
            case(f"gelu_erf/{t}{ne}", {"a": operand(x, t)}, [["y", "gelu_erf", "a"]],
                 0.5 * x * (1 + erf(x / math.sqrt(2))), tol, t)
            for to in ("f32", "f16", "bf16"):
                number_of = {"f32": 0, "f16": 1, "bf16": 30}[to]
                case(f"cast/{t}-{to}{ne}", {"a": operand(x, t)}, [["y", "cast", "a", number_of]], to_type(x, to), 0, to,
                     "exact")
    for ne, factor in [((3, 2, 1, 5), (2, 3, 4, 1)), ((1, 7, 2, 1), (9, 1, 1, 3))]:
        x = random(*ne)
        ne2 = [ne[d] * factor[d] for d in range(4)]
        case(f"repeat/{ne}", {"a": operand(x)}, [["y", "repeat_4d", "a", *ne2]], np.tile(x, factor[::-1]), 0)
    case("add/empty", {"a": operand(np.zeros((2, 0, 3))), "b": operand(np.zeros((1, 0, 3)))}, [["y", "add", "a", "b"]],
         np.zeros((2, 0, 3)))


def products():
    for k in (1, 3, 31, 33, 64, 255, 256, 257, 512, 700):
        for n, m in [(1, 1), (16, 1), (17, 5), (33, 13), (5, 26), (70, 3)]:
            a, b = random(k, n), random(k, m)
            case(f"mul_mat/k{k}n{n}m{m}", {"a": operand(a), "b": operand(b)}, [["y", "mul_mat", "a", "b"]], b @ a.T)
    for ta in ("f32", "f16", "bf16"):
        for tb in {"f32", ta}:
            a, b = to_type(random(96, 19), ta), to_type(random(96, 7), tb)
            case(f"mul_mat/{ta}-{tb}", {"a": operand(a, ta), "b": operand(b, tb)}, [["y", "mul_mat", "a", "b"]], b @ a.T)
    for a2, a3, r2, r3 in [(1, 1, 1, 1), (3, 1, 2, 1), (2, 3, 2, 2), (1, 2, 4, 1), (3, 2, 1, 2)]:
        a, b = random(40, 9, a2, a3), random(40, 5, a2 * r2, a3 * r3)
        full = np.repeat(np.repeat(a, r2, 1), r3, 0)
        y = b @ full.swapaxes(-1, -2)
        case(f"mul_mat/batch{a2},{a3}x{r2},{r3}", {"a": operand(a), "b": operand(b)}, [["y", "mul_mat", "a", "b"]], y)
        # heads side by side, as a projection leaves them: [k, batch, n] seen as [k, n, batch]
        pa, pb = a.transpose(0, 2, 1, 3), b.transpose(0, 2, 1, 3)
        case(f"mul_mat/permuted{a2},{a3}x{r2},{r3}", {"a": operand(pa), "b": operand(pb)},
             [["p", "permute", "a", 0, 2, 1, 3], ["q", "permute", "b", 0, 2, 1, 3], ["y", "mul_mat", "p", "q"]], y)
    case("mul_mat/k0", {"a": operand(np.zeros((3, 0))), "b": operand(np.zeros((2, 0)))}, [["y", "mul_mat", "a", "b"]],
         np.zeros((2, 3)))
    for K, IC, OC, L, N, s, p, d in [(3, 4, 5, 20, 1, 1, 1, 1), (3, 80, 16, 50, 1, 2, 1, 1), (5, 3, 2, 31, 2, 2, 4, 3),
                                     (1, 7, 3, 9, 3, 1, 0, 1)]:
        w, x = random(K, IC, OC), random(L, IC, N)
        padded = np.pad(x, ((0, 0), (0, 0), (p, p)))
        OL = (L + 2 * p - d * (K - 1) - 1) // s + 1
        cols = np.stack([padded[:, :, k * d:k * d + s * (OL - 1) + 1:s] for k in range(K)], 2)  # [N, IC, K, OL]
        y = np.einsum("nikl,oik->nol", cols, w)
        for t in ("f32", "f16"):
            wt = to_type(w, t)
            case(f"conv_1d/{t}K{K}N{N}s{s}", {"a": operand(wt, t), "b": operand(x)},
                 [["y", "conv_1d", "a", "b", s, p, d]], np.einsum("nikl,oik->nol", cols, wt))
        case(f"im2col/K{K}N{N}s{s}", {"a": operand(w), "b": operand(x)},
             [["y", "im2col", "a", "b", s, 0, p, 0, d, 0, False, 0]],
             cols.transpose(0, 3, 1, 2).reshape(N, OL, IC * K), 0)
        assert y.shape[-1] == OL


def softmax(z):
    top = z.max(-1, keepdims=True)
    e = np.exp(z - np.where(np.isfinite(top), top, 0))
    total = e.sum(-1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)


def slopes(heads, bias):
    if bias <= 0:
        return np.ones(heads)
    n = 2 ** int(math.floor(math.log2(heads)))
    return np.array([(2 ** (-bias / n)) ** (s + 1) if s < n else (2 ** (-bias / 2 / n)) ** (2 * (s - n) + 1)
                     for s in range(heads)])


def rows():
    for n, r, h, t, bias in [(15, 4, 3, 2, 0.0), (1023, 2, 6, 1, 8.0), (4097, 1, 1, 1, 0.0), (1, 3, 1, 1, 0.0)]:
        x, mask = random(n, r, h, t, scale=8), random(n, r, 1, t)
        mask[rng.uniform(size=mask.shape) < 0.3] = -np.inf
        mask[..., 0, :] = -np.inf  # fully masked rows give zeros
        z = 0.5 * x + slopes(h, bias)[None, :, None, None] * np.broadcast_to(mask, x.shape)
        case(f"soft_max/{n}", {"a": operand(x), "m": operand(mask)}, [["y", "soft_max_ext", "a", "m", 0.5, bias]],
             softmax(z))
        case(f"soft_max/plain{n}", {"a": operand(x)}, [["y", "soft_max", "a"]], softmax(x))
    for t in ("f32", "f16", "bf16"):
        table = to_type(random(37, 11, 2), t)
        ids = rng.integers(0, 11, (2, 6))
        case(f"get_rows/{t}", {"a": operand(table, t), "i": operand(ids, "i32")}, [["y", "get_rows", "a", "i"]],
             np.stack([table[c][ids[c]] for c in range(2)]), 0)
        for index in ("i32", "i64"):
            fresh, order = random(37, 4, 2), rng.permutation(11)[:4]
            y = table.copy()
            y[:, order] = to_type(fresh, t)
            case(f"set_rows/{t}{index}", {"a": operand(table, t), "b": operand(fresh), "c": operand(order, index)},
                 [["y", "set_rows", "a", "b", "c"]], y, 0, t)
    for n, k in [(7, 3), (1000, 1), (1501, 5), (64, 64), (33, 32)]:
        x = random(n, 3)
        x[0, : n // 2] = 0.5  # ties: the lower index wins
        y = np.argsort(-x, -1, kind="stable")[:, :k]
        case(f"top_k/{n},{k}", {"a": operand(x)}, [["y", "top_k", "a", k]], y.astype(np.float64), 0, "i32")


def attention():
    for D, Dv, nq, nk, Hq, Hk, t, kind in [(64, 64, 5, 70, 2, 2, 1, "f32"), (40, 72, 3, 113, 4, 2, 2, "f32"),
                                           (64, 64, 33, 129, 2, 1, 1, "f16"), (300, 16, 1, 65, 1, 1, 1, "f32")]:
        q, k, v = random(D, nq, Hq, t), to_type(random(D, nk, Hk, t), kind), to_type(random(Dv, nk, Hk, t), kind)
        mask = np.where(rng.uniform(size=(1, 1, nq, nk)) < 0.4, -np.inf, 0.0)
        mask[0, 0, nq - 1] = -np.inf
        kk, vv = np.repeat(k, Hq // Hk, 1), np.repeat(v, Hq // Hk, 1)
        scores = q @ kk.swapaxes(-1, -2) / math.sqrt(D)
        for masked, cap in [(False, 0.0), (True, 0.0), (True, 10.0)]:
            z = cap * np.tanh(scores / cap) if cap else scores
            y = softmax(z + mask if masked else z) @ vv
            case(f"flash_attn_ext/{D},{nk},{kind},{masked},{cap}",
                 {"q": operand(q), "k": operand(k, kind), "v": operand(v, kind), "m": operand(mask, "f16")},
                 [["y", "flash_attn_ext", "q", "k", "v", "m" if masked else None, 1 / math.sqrt(D), 0.0, cap]],
                 y.transpose(0, 2, 1, 3), 4e-6)


def main():
    elementwise()
    products()
    rows()
    attention()
    build = os.environ["SOTTO_BUILD"]
    path = os.path.join(build, "tests", "numpy-cases.json")
    with open(path, "w") as file:
        json.dump({"cases": cases}, file)
    print(f"seed {SEED}, {len(cases)} cases")
    sys.exit(subprocess.call([os.path.join(build, "tests", "op_vectors"), path]))


main()
