"""A call of each method of tinygrad's Tensor, with arguments in the forms that its signature has.

The expressions are our own. They are evaluated with tinygrad and with the adapter; compare.py holds
the results, and the gradients of their squares for x and y, against each other.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np


def values(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = 0) -> np.ndarray:
    steps = (np.arange(math.prod(shape)) * 61 + 17 * seed) % 97
    return (low + (high - low) * steps / 96).astype(np.float32).reshape(shape)


def inputs(Tensor: Any, dtypes: Any) -> dict[str, Any]:
    """The names that the expressions use, as new tensors."""
    arrays = {
        "x": values(3, 4), "y": values(3, 4, low=0.2, high=2.0, seed=3), "row": values(4, seed=2),
        "unit": values(3, 4, low=-0.9, high=0.9), "above": values(3, 4, low=1.1, high=4.0),
        "m": values(4, 5, seed=1), "square": values(4, 4, seed=5), "tall": values(5, 3),
        "cube": values(2, 3, 4), "image": values(2, 4, 6, 5), "line": values(2, 4, 9),
        "volume": values(1, 2, 4, 4, 4),
        "ties": np.array([[3, 1, 3, 0, 1], [2, 2, 0, 3, 3]], np.int32),
        "k2": values(6, 2, 3, 2, low=-1, high=1, seed=4), "k1": values(6, 4, 3, seed=1),
        "k3": values(3, 2, 2, 2, 2, seed=1), "t2": values(4, 3, 3, 2, low=-1, high=1),
        "q": values(2, 2, 3, 8), "kv": values(2, 2, 5, 8, seed=1),
        "weights": values(5, low=0.5, high=1.5),
        "logits": values(4, 5), "p": values(4, 5, low=0.05, high=0.95, seed=1),
        "i": np.array([[1, -2, 3, 0], [4, 5, -6, 7], [2, 3, 1, 9]], np.int32),
        "j": np.array([[2, 1, 1, 3], [1, 2, 3, 1], [3, 1, 2, 2]], np.int32),
        "index": np.array([[0, 2, 1, 0], [1, 1, 0, 2]], np.int32),
        "unique": np.array([[0, 2, 1, 0], [1, 0, 2, 2]], np.int32),
        "src": values(2, 4, seed=6), "labels": np.array([0, 3, 1, 4], np.int32),
        "mask": values(3, 4) > 0,
        "special": np.array([0, 1.5, -2.5, np.inf, -np.inf, np.nan], np.float32),
    }
    names = {name: Tensor(array) for name, array in arrays.items()}
    return {**names, "T": Tensor, "dt": dtypes, "np": np, "math": math, "arrays": arrays}


FLOATS = """abs ceil cos cosh exp exp2 floor neg relu relu6 round sigmoid sign silu sin sinh softsign
    square swish tan tanh trunc asinh atan erf gelu quick_gelu hardswish hardsigmoid hardtanh
    leaky_relu elu celu selu logsigmoid mish softplus contiguous contiguous_backward detach
    clone isnan isinf isfinite float half double int long short bool bfloat16 softmax
    log_softmax softmin logsumexp sum mean max min var std cumsum logcumsumexp flatten numel
    element_size nbytes max_numel tolist numpy data is_floating_point realize zeros_like
    ones_like""".split()

CASES: dict[str, list[str]] = {name: [f"x.{name}()"] for name in FLOATS}


def add(name: str, *expressions: str) -> None:
    CASES.setdefault(name, []).extend(expressions)


for name in ("log", "log2", "log10", "sqrt", "rsqrt", "reciprocal"):
    add(name, f"y.{name}()", f"x.{name}()")
for name in ("asin", "acos", "atanh"):
    add(name, f"unit.{name}()")
add("acosh", "above.acosh()")
add("log", "i.log()")
for name in ("isnan", "isinf", "isfinite"):
    add(name, f"special.{name}()")
add("isinf", "special.isinf(False, True)", "special.isinf(detect_negative=False)")
for name in ("abs", "neg", "sign", "square", "exp", "sum", "max", "min", "mean", "relu", "cumsum"):
    add(name, f"i.{name}()")
for name in ("add", "sub", "mul", "pow", "maximum", "minimum", "copysign", "logaddexp"):
    add(name, f"y.{name}(above)", f"above.{name}(y[:1])", f"y.{name}(2)",
        f"i.cast('float').{name}(2.5)")
for name in ("add", "sub", "mul", "mod", "pow", "bitwise_and", "bitwise_or", "bitwise_xor",
             "maximum", "minimum"):
    add(name, f"i.{name}(j)", f"i.{name}(2)")
for name in ("add", "sub", "mul", "mod", "pow"):
    add(name, f"j.{name}(3, reverse=True)", f"y.{name}(3.0, reverse=True)")
for symbol, name in (("+", "add"), ("-", "sub"), ("*", "mul"), ("/", "div"), ("**", "pow"),
                     ("%", "mod")):
    add(name, f"above {symbol} y", f"2 {symbol} y", f"y {symbol} 2", f"above {symbol} row.abs()")
for symbol in ("//", "%", "&", "|", "^", "==", "!=", "<", "<=", ">", ">="):
    add({"//": "div", "%": "mod", "&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor",
         "==": "eq"}.get(symbol, "ne"), f"i {symbol} j", f"i {symbol} 2")
add("lshift", "j.lshift(2)", "j << 2")
add("rshift", "i.rshift(1)", "i >> 1")
add("bitwise_not", "i.bitwise_not()", "~mask")
add("neg", "-x", "-i")
add("eq", "i.eq(j)", "x == x", "x.eq(0.5)")
add("ne", "i.ne(j)", "x != y")
add("logical_not", "i.logical_not()", "mask.logical_not()")
add("div", "x.div(y)", "i.div(j)", "i.div(j, rounding_mode='trunc')",
    "i.div(j, rounding_mode='floor')", "x.div(2, rounding_mode='floor')",
    "y.div(3.0, reverse=True)")
add("fmod", "i.fmod(j)", "x.fmod(0.75)", "x.fmod(y)")
add("mod", "x.mod(y)", "x % 0.75")
add("where", "mask.where(x, y)", "mask.where(x, 0)", "mask.where(1.0, y)", "(x > y).where(i, 2)")
add("masked_fill", "x.masked_fill(mask, -1.0)", "x.masked_fill(row > 0, 5)")
add("masked_select", "x.masked_select(mask)", "x.masked_select(mask, size=20, fill_value=7)",
    "x.masked_select(row > 0)")
add("nonzero", "i.nonzero()", "(x > 0).nonzero(size=14, fill_value=-1)")
add("lerp", "x.lerp(y, 0.25)", "x.lerp(y, unit)")
add("clamp", "x.clamp(-0.5, 0.75)", "x.clamp(min_=0)", "x.clamp(max_=0.5)", "i.clamp(0, 4)",
    "x.clamp(y, 1.0)")
add("clip", "x.clip(-0.5, 0.75)", "x.clip(max_=0)")
add("isclose", "x.isclose(x + 1e-7)", "special.isclose(special, equal_nan=True)",
    "x.isclose(y, atol=1.0)")
add("allclose", "x.allclose(x + 1e-7)", "x.allclose(y)")
add("gelu", "x.gelu(approximate='none')")
add("hardsigmoid", "x.hardsigmoid(0.2, beta=0.4)")
add("hardtanh", "x.hardtanh(-0.5, 0.75)")
add("leaky_relu", "x.leaky_relu(0.2)", "x.leaky_relu(neg_slope=0.3)")
add("elu", "x.elu(1.5)")
add("celu", "x.celu(alpha=1.5)")
add("selu", "x.selu(1.5, 1.2)")
add("softplus", "x.softplus(beta=2.0)")
for name in ("sum", "mean", "max", "min", "var", "std", "logsumexp"):
    add(name, f"cube.{name}(1)", f"cube.{name}(axis=(0, 2), keepdim=True)",
        f"cube.{name}(-1, True)")
add("sum", "i.cast('uchar').sum()", "mask.sum()", "i.sum(0, dtype='float')",
    "i.cast('char').sum(1)")
add("prod", "y.prod()", "y.prod(axis=1)", "i.prod(0, True)", "i.prod(dtype='float')")
add("var", "cube.var(1, correction=0)")
add("std", "cube.std(axis=1, correction=0, keepdim=True)")
add("var_mean", "cube.var_mean(1)", "cube.var_mean(keepdim=True, correction=0)")
add("std_mean", "cube.std_mean(1)", "cube.std_mean()")
for name in ("any", "all"):
    add(name, f"i.{name}()", f"(i > 0).{name}(1)", f"i.{name}(axis=0, keepdim=True)")
for name in ("argmax", "argmin"):
    add(name, f"x.{name}()", f"ties.{name}(1)", f"ties.{name}(axis=0, keepdim=True)")
for name in ("softmax", "log_softmax", "softmin"):
    add(name, f"cube.{name}(1)", f"cube.{name}(axis=0, dtype='double')")
for name in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"):
    add(name, f"y.{name}(0)", f"y.{name}(axis=1)", f"y.{name}(-1)")
add("cumsum", "i.cumsum(1)", "T(3.0).cumsum()")
add("cummax", "ties.cummax(1)", "y.cummax()")
add("cummin", "ties.cummin(1)")
add("sort", "x.sort()", "ties.sort(descending=True)", "x.sort(dim=0)")
add("argsort", "x.argsort()", "ties.argsort(dim=1)", "x.argsort(0, True)")
add("topk", "x.topk(2)", "cube.topk(2, dim=1)", "cube.topk(1, dim=0, largest=False)")
add("normalize", "x.normalize()", "cube.normalize(p=1.0, dim=2)", "x.normalize(3.0, 0)")
add("layernorm", "x.layernorm()", "cube.layernorm(axis=(1, 2), eps=1e-3)")
add("batchnorm", "image.batchnorm(row, row + 1, row * 2, row.abs() + 0.5)",
    "image.batchnorm(None, None, row, row.abs() + 0.5)",
    "x.batchnorm(row, row, row, row.abs(), axis=1)")

for name in ("reshape", "view"):
    add(name, f"x.{name}(2, 6)", f"x.{name}((4, -1))", f"x.{name}(-1)")
add("permute", "cube.permute(2, 0, 1)", "cube.permute((1, 0, 2))", "cube.permute(-1, 0, 1)")
add("transpose", "x.transpose()", "cube.transpose(0, 2)", "cube.transpose(dim0=-1, dim1=1)")
add("T", "x.T")
add("expand", "row.expand(3, 4)", "row.reshape(4, 1).expand((4, 5))",
    "x.reshape(3, 1, 4).expand(-1, 2, -1)")
add("flatten", "cube.flatten(1)", "cube.flatten(start_dim=0, end_dim=1)")
add("unflatten", "x.unflatten(1, (2, 2))", "x.unflatten(dim=-1, sizes=(2, -1))")
add("flip", "x.flip(0)", "cube.flip((0, 2))", "cube.flip(0, 1)")
add("squeeze", "x.reshape(1, 3, 1, 4).squeeze()", "x.reshape(1, 3, 4).squeeze(0)", "x.squeeze(0)")
add("unsqueeze", "x.unsqueeze(0)", "x.unsqueeze(dim=-1)")
add("pad", "x.pad((1, 2, 0, 1))", "x.pad(((1, 0), None))", "x.pad((1, 1), value=3.0)",
    "x.pad((1, 2), mode='reflect')", "image.pad((1, 1, 2, 0), mode='replicate')",
    "x.pad((-1, 1, 0, 0))", "image.pad((1, 1, 2, 0), mode='circular')")
add("pad_to", "x.pad_to(4, 6)", "x.pad_to((None, 5))")
add("shrink", "x.shrink(((0, 2), (1, 3)))", "x.shrink((None, (0, 2)))")
add("shrink_to", "x.shrink_to(2, 3)", "x.shrink_to((None, 2))")
add("split", "x.split(3)", "x.split(3, dim=1)", "x.split((1, 3), dim=1)")
add("chunk", "x.chunk(2)", "x.chunk(3, dim=1)")
add("repeat", "x.repeat(2, 1)", "x.repeat((2, 1, 3))")
add("repeat_interleave", "x.repeat_interleave(2)", "x.repeat_interleave(3, dim=1)")
add("roll", "x.roll(1)", "x.roll(1, 0)", "cube.roll((1, -1), dims=(0, 2))",
    "x.roll(shifts=-5, dims=1)")
add("unfold", "x.unfold(1, 2, 1)", "cube.unfold(-1, 3, 1)")
add("diag", "row.diag()")
add("diagonal", "x.diagonal()", "cube.diagonal(offset=1, dim1=1, dim2=2)", "x.diagonal(-1)")
add("tril", "x.tril()", "cube.tril(diagonal=1)", "x.tril(-1)")
add("triu", "x.triu()", "cube.triu(diagonal=1)", "x.triu(-1)")
add("rearrange", "x.rearrange('a b -> b a')", "x.rearrange('a (b c) -> (a c) b', c=2)",
    "cube.rearrange('... c -> c ...')")
add("cat", "x.cat(y)", "x.cat(y, x, dim=1)", "T.cat(x, y, dim=-1)")
add("stack", "x.stack(y)", "T.stack(x, y, dim=2)", "x.stack(y, dim=-1)")
add("meshgrid", "row.meshgrid(m[0])", "row.meshgrid(m[0], indexing='xy')")
add("gather", "x.gather(0, index)", "x.gather(dim=1, index=index)")
add("scatter", "x.scatter(0, unique, src)", "x.scatter(1, unique, 2.5)",
    "x.scatter(0, index, src, reduce='add')",
    "x.scatter(dim=0, index=index, src=src, reduce='multiply')")
for reduce in ("sum", "prod", "mean", "amax", "amin"):
    add("scatter_reduce", f"x.scatter_reduce(0, index, src, '{reduce}')",
        f"x.scatter_reduce(0, index, src, reduce='{reduce}', include_self=False)")
add("one_hot", "labels.one_hot(5)")
INDICES = ("0", "-1", "1:", "::2", "::-1", "1, 2", ":, 1", "..., 0", "None", "[0, 2]",
           "[0, 2], [1, 3]",
           ":, [0, 3]", "index[:, 0]", "None, 1:, None", "labels[1:2], 2", "1:1")
add("getitem", *(f"x[{each}]" for each in INDICES), "cube[:, [0, 2], 1:]", "cube[0, :, [1, 2]]")
add("setitem", *(f"[z := x.clone().realize(), z.__setitem__({each}, 5.0), z][2]" for each in (
    "0", "(slice(None), 1)", "(1, 2)", "slice(0, 2)", "[0, 2]")))

add("matmul", "x.matmul(m)", "x @ m", "cube @ square", "cube.matmul(row)", "row @ m",
    "row.matmul(row)", "m.matmul(x, reverse=True)")
add("dot", "x.dot(m)", "row.dot(row)", "cube.dot(square)")
add("linear", "x.linear(m)", "x.linear(m, weights)", "x.linear(row)", "x.linear(m, dtype='double')")
add("einsum", "T.einsum('ij,jk->ik', x, m)", "T.einsum('ij->ji', x)", "T.einsum('ij,ij', x, y)",
    "T.einsum('...ij,jk->...ik', cube, square)", "T.einsum('bij,bij->b', cube, cube)")
add("conv2d", "image.conv2d(k2, groups=2)",
    "image.conv2d(k2, row.repeat(2)[:6], 2, (2, 1), 1, (1, 0))",
    "image.conv2d(k2, groups=2, padding=(1, 0, 2, 1))", "line.conv2d(k1, stride=2, padding=1)",
    "volume.conv2d(k3)", "image.conv2d(k2, groups=2, dilation=2)",
    "x.reshape(1, 1, 3, 4).conv2d(y.reshape(1, 1, 3, 4))")
add("conv_transpose2d", "image.conv_transpose2d(t2, groups=2)",
    "image.conv_transpose2d(t2, stride=2, padding=(1, 0))",
    "image.conv_transpose2d(t2, stride=2, output_padding=1)",
    "line.conv_transpose2d(k1.permute(1, 0, 2))")
add("avg_pool2d", "image.avg_pool2d()",
    "image.avg_pool2d(3, 2, padding=1, count_include_pad=False)",
    "image.avg_pool2d((3, 2), ceil_mode=True)", "line.avg_pool2d((3,))",
    "volume.avg_pool2d((2, 2, 2))")
add("max_pool2d", "image.max_pool2d()", "image.max_pool2d(3, 2, padding=1, dilation=1)",
    "image.max_pool2d((3, 2), ceil_mode=True)", "line.max_pool2d((3,), stride=2)",
    "image.max_pool2d(2, return_indices=True)", "image.max_pool2d(2, padding=(1, 0, 0, 1))")
add("max_unpool2d", "image.max_pool2d(2, return_indices=True)[0].max_unpool2d("
    "image.max_pool2d(2, return_indices=True)[1])",
    "image.max_pool2d(2, return_indices=True)[0].max_unpool2d("
    "image.max_pool2d(2, return_indices=True)[1], output_size=(6, 5))")
add("interpolate", "image.interpolate((8, 9))", "image.interpolate((8, 9), mode='nearest')",
    "image.interpolate((3, 9), align_corners=True)",
    "image.interpolate(size=(3, 2), mode='nearest-exact')", "line.interpolate((5,))")
add("scaled_dot_product_attention", "q.scaled_dot_product_attention(kv, kv)",
    "q.scaled_dot_product_attention(q, q, is_causal=True)",
    "q.scaled_dot_product_attention(kv, kv, attn_mask=m[:3, :5])")
for reduction in ("mean", "sum", "none"):
    add("binary_crossentropy", f"p.binary_crossentropy(p.flip(0), reduction='{reduction}')")
    add("binary_crossentropy_logits", f"logits.binary_crossentropy_logits(p, '{reduction}')")
    add("cross_entropy",
        f"logits.cross_entropy(labels, reduction='{reduction}', label_smoothing=0.1)")
    add("sparse_categorical_crossentropy",
        f"logits.sparse_categorical_crossentropy(labels, reduction='{reduction}')")
    add("nll_loss",
        f"logits.log_softmax(1).nll_loss(labels, weight=weights, reduction='{reduction}')")
add("binary_crossentropy_logits", "logits.binary_crossentropy_logits(p, pos_weight=weights)")
add("cross_entropy", "logits.cross_entropy(p)", "logits.cross_entropy(labels)")
add("sparse_categorical_crossentropy",
    "logits.sparse_categorical_crossentropy(labels, ignore_index=3)",
    "logits.sparse_categorical_crossentropy(labels, label_smoothing=0.2)")
add("nll_loss", "logits.log_softmax(1).nll_loss(labels, ignore_index=3)")
add("newton_schulz", "x.newton_schulz(2, (3.4445, -4.775, 2.0315))",
    "tall.newton_schulz(steps=1, params=(2, -1.5, 0.5))")
add("qr", "[q_ @ r_ for q_, r_ in [tall.qr()]][0]", "[each.shape for each in tall.qr()]")
add("svd", "tall.svd()[1]", "[each.shape for each in tall.svd()]",
    "[each.shape for each in tall.svd(full_matrices=False)]")
add("sequential", "x.sequential([T.relu, lambda t: t + 1, T.square])")
add("dropout", "x.dropout(0.5)")

add("cast", "x.cast('int')", "i.cast(dt.float)", "i.cast(dt.bool)", "x.cast(dt.half)",
    "i.cast('short')")
add("bitcast", "x.bitcast(dt.int)", "x.bitcast('uint')")
add("zeros", "T.zeros(2, 3)", "T.zeros((2, 3), dtype='int')", "T.zeros(())")
add("ones", "T.ones(2, 3)", "T.ones((4,), dtype=dt.half)")
add("empty", "T.empty(2, 3).shape")
add("empty_like", "x.empty_like().shape", "x.empty_like(dtype='int').shape")
add("full", "T.full((2, 3), 7)", "T.full((2,), 1.5)", "T.full((2,), True)",
    "T.full((2,), 3, dtype='float')")
add("full_like", "x.full_like(2)", "i.full_like(3, dtype='float')")
add("const", "T.const(2.5)")
add("const_like", "x.const_like(2)", "i.const_like(3)")
add("ufix", "x.ufix(2)")
add("zeros_like", "i.zeros_like()", "x.zeros_like(dtype='int')")
add("ones_like", "i.ones_like()", "x.ones_like(dtype='int')")
add("arange", "T.arange(5)", "T.arange(1, 10, 3)", "T.arange(5.5)", "T.arange(3, -2, -1)",
    "T.arange(0, 1, 0.25)", "T.arange(5, dtype='float')")
add("linspace", "T.linspace(0, 1, 5)", "T.linspace(5, -3, 4)", "T.linspace(1, 2, steps=1)")
add("eye", "T.eye(3)", "T.eye(2, 4)", "T.eye(3, dtype='int')")
for name in ("rand", "randn", "kaiming_uniform", "kaiming_normal", "glorot_uniform",
             "scaled_uniform"):
    add(name, f"T.{name}(2, 3).shape", f"T.{name}((4,)).shape",
        f"T.{name}(2, 3).dtype.name == x.dtype.name")
add("uniform", "T.uniform(2, 3, low=1.0, high=2.0).shape",
    "(T.uniform(50, low=1.0, high=2.0) >= 1).all()")
add("normal", "T.normal(2, 3, mean=1.0, std=2.0).shape",
    "(T.normal(50, mean=100.0, std=1.0) > 50).all()")
add("randint", "T.randint(2, 3, low=1, high=4).shape", "(T.randint(50, low=1, high=4) < 4).all()")
add("randperm", "T.randperm(7).sort()[0]")
add("rand_like", "x.rand_like().shape", "x.rand_like(dtype='half').dtype.itemsize")
add("randn_like", "x.randn_like().shape")
add("random_seed",
    "[T.manual_seed(3), T.rand(3).tolist()][1] == [T.manual_seed(3), T.rand(3).tolist()][1]")
add("manual_seed", "T.manual_seed(5)")
add("multinomial", "T([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]).multinomial(4, replacement=True)",
    "T([0.0, 1.0]).multinomial(1)")
add("usum", "x.usum(y, unit)")
add("uprod", "x.uprod(y, unit)")
add("assign", "x.clone().realize().assign(y)", "x.clone().realize().assign(2 * y)")
add("replace", "[z := x.clone().realize(), z.replace(y.contiguous().realize()), z][2]")
add("size", "cube.size()", "cube.size(1)")
add("shape", "cube.shape", "T(3).shape")
add("ndim", "cube.ndim")
add("item", "T([3.5]).item()", "T(4).item()", "T([[True]]).item()")
add("dtype", "x.dtype.itemsize", "T([1, 2]).dtype.itemsize", "T([True]).dtype.itemsize")
add("device", "isinstance(x.device, str)")
add("to", "x.to(x.device)", "x.to(None)")
add("to_", "[z := x.clone(), z.to_(x.device), z][2]")
add("is_param_", "x.is_param_().is_param")
add("is_param", "T([1.0]).is_param_(False).is_param")
add("max_shape", "cube.max_shape")
add("grad", "[z := T([1.0, 2.0]), (z * z).sum().backward(), z.grad][2]")
add("backward", "[z := x.clone().realize().is_param_(), (z * y).sum().backward(), z.grad][2]",
    "[z := T([1.0, 2.0]), (z * 3).backward(gradient=T([1.0, 0.5])), z.grad][2]")
add("gradient", "(x * y).sum().gradient(x, y)", "(x * y).gradient(x, gradient=y)[0]")
add("init", "T(3)", "T(2.5)", "T(True)", "T([1, 2])", "T([[1.5], [2]])", "T(())", "T(arrays['i'])",
    "T([1, 2], dtype='float')", "T([1.5], dtype=dt.int)", "T(b'ab', dtype=dt.uint8)", "T((1, 2))",
    "T([True, False])", "T(arrays['x'], dtype='double')")
add("len", "len(x)", "len(cube)")
add("dtypes", "(i + 1.5).numpy()", "(i.cast('uchar') + i.cast('char'))", "(i.cast('half') + i)",
    "i / j", "i // j", "i ** 2", "2 ** j", "i + True", "x + i", "x.cast('half') * 2.5",
    "i.cast('long') + j")

# Calls that both refuse.
ERRORS = """
x.reshape(5) | x.reshape(-1, -1) | x.sum(5) | x.sum(-3) | x + T([1.0, 2.0, 3.0]) | x @ x
T([[1], [2, 3]]) | x[5] | x[0, 0, 0] | x.nosuch | x.squeeze(4) | x.cast('nosuch') | T('a') | bool(x)
x.permute(0, 0) | x.permute(0) | x.expand(2, 4) | x.expand(4) | x.transpose(0, 5) | x.unsqueeze(5)
x.flip(5) | x.item() | x.gather(5, index) | x.cat(cube) | x.stack(row) | x.split((1, 1))
x.reshape(7) | x.pad((1, 2, 3)) | x.pad((9, 9), mode='reflect') | x.pad((1, 1), mode='nosuch')
x.shrink(((0, 9), None)) | x.topk(9) | x.argmax(7) | x.softmax(7) | x.cumsum(7) | x.sort(7)
x.unflatten(1, (3, 3)) | x.diagonal(0, 1, 1) | x.diag() | x.meshgrid(x) | x.clamp()
x.gelu(approximate='nosuch') | x.scatter(0, index, src, reduce='nosuch')
x.scatter_reduce(0, index, src, 'nosuch') | image.conv2d(k1) | image.conv2d(k2)
T.einsum('ij,jk', x) | T.einsum('ij->k', x) | T.arange(3).one_hot() | x.rearrange('a b ->')
x.rearrange('a -> a') | x.unfold(1, 9, 1) | x.interpolate((2, 2), mode='nosuch')
x.cross_entropy(labels, reduction='nosuch') | x.masked_fill(x, 'a') | x.where(x, 'a') | T.zeros(-1)
T.eye(-1) | T.linspace(0, 1, -1) | x[1.5] | x['a'] | x[:, :, :] | len(T(1.0)) | x.max_pool2d(9)
x.add('a') | x.chunk(0) | T.full((2,), 'a') | x[7:8, 5]
"""
ERROR_CASES = [each.strip() for line in ERRORS.strip().splitlines() for each in line.split(" | ")]
