"""Products, convolutions, pools, normalisation, losses and decompositions."""
import numpy as np

from .harness import case, ints, torch, v

F = torch.nn.functional if torch else None
A, B = v(3, 4), v(4, 5, seed=1)
case("matmul", A, B, numpy=np.matmul, atol=1e-5)
case("matmul", v(2, 3, 4), B, "float64", atol=1e-5,
     numpy=lambda a, b: a.astype(np.float64) @ b.astype(np.float64))
case("dot", A, B, numpy=np.dot, atol=1e-5)
case("linear", v(2, 4), B, numpy=lambda x, w: x @ w, atol=1e-5)
case("linear", v(2, 4), B, v(5), numpy=lambda x, w, b: x @ w + b, atol=1e-5)
case("inner", A, v(2, 4, seed=2), numpy=np.inner, atol=1e-5)
case("outer", v(3), v(4), numpy=np.outer)
case("einsum", "ij,jk->ki", [A, B], numpy=lambda a, b: np.einsum("ij,jk->ki", a, b), atol=1e-5)
case("einsum", "ij,jk->ki", [A, B], "float64", atol=1e-5,
     numpy=lambda a, b: np.einsum("ij,jk->ki", a.astype(float), b.astype(float)))
case("tensordot", v(2, 3, 4), v(3, 4, 2, seed=1), 2, numpy=lambda a, b: np.tensordot(a, b, 2),
     atol=1e-5)
case("tensordot", v(2, 3), v(4, 3, seed=1), (1,), (1,), names=("a", "b", "axes_a", "axes_b"),
     numpy=lambda a, b: np.tensordot(a, b, ((1,), (1,))), atol=1e-5)
case("embedding", A, np.array([[0, 2], [1, 1]], np.int32), numpy=lambda t, i: t[i])

IMAGE = v(2, 4, 6, 5)
WEIGHT, BIAS = v(6, 2, 3, 2, low=-1, high=1, seed=4), v(6)
for name in ("conv2d", "conv"):
    case(name, IMAGE, WEIGHT, BIAS, (2, 1), (1, 0), 1, 2, atol=1e-5,
         torch=lambda x, w, b: F.conv2d(x, w, b, (2, 1), (1, 0), 1, 2))
case("conv2d", IMAGE, WEIGHT, None, 1, "same", 1, 2, atol=1e-5,
     torch=lambda x, w: F.conv2d(x, w, None, 1, "same", 1, 2))
case("conv1d", v(2, 3, 9), v(4, 3, 3, seed=1), v(4), 2, 1, atol=1e-5,
     torch=lambda x, w, b: F.conv1d(x, w, b, 2, 1))
case("conv3d", v(1, 2, 4, 4, 3), v(3, 2, 2, 2, 2, seed=1), None, 1, 1, 2, atol=1e-5,
     torch=lambda x, w: F.conv3d(x, w, None, 1, 1, 2))
TRANSPOSED = v(4, 3, 3, 2, low=-1, high=1)
for name in ("conv_transpose2d", "conv_transpose"):
    case(name, IMAGE, TRANSPOSED, v(6), 2, (1, 0), 1, 1, 2, atol=1e-5,
         torch=lambda x, w, b: F.conv_transpose2d(x, w, b, 2, (1, 0), 1, 2))
case("conv_transpose1d", v(2, 3, 5), v(3, 4, 3, seed=1), v(4), 2, 1, 1, atol=1e-5,
     torch=lambda x, w, b: F.conv_transpose1d(x, w, b, 2, 1, 1))
case("conv_transpose3d", v(1, 2, 3, 3, 2), v(2, 3, 2, 2, 2, seed=1), None, 1, 0, 0, 2, atol=1e-5,
     torch=lambda x, w: F.conv_transpose3d(x, w, None, 1, 0, 0, 1, 2))

IMAGES = {1: v(2, 3, 9), 2: v(2, 3, 6, 5), 3: v(1, 2, 4, 4, 4)}
for axes, image in IMAGES.items():
    case(f"avg_pool{axes}d", image, 3, 2, 1, 1, True, False, atol=1e-5,
         torch=lambda x, n=axes: getattr(F, f"avg_pool{n}d")(x, 3, 2, 1, True, False))
    case(f"avg_pool{axes}d", image, torch=lambda x, n=axes: getattr(F, f"avg_pool{n}d")(x, 2))
    case(f"max_pool{axes}d", image, 3, 2, 1, 1, True,
         torch=lambda x, n=axes: getattr(F, f"max_pool{n}d")(x, 3, 2, 1, 1, True))
    case(f"max_pool{axes}d", image, (2,) * axes,
         torch=lambda x, n=axes: getattr(F, f"max_pool{n}d")(x, 2))
    case(f"max_pool{axes}d_with_places", image, 2, 2,
         torch=lambda x, n=axes: getattr(F, f"max_pool{n}d")(x, 2, 2, return_indices=True))
PLACES = {1: [1, 3, 5, 7], 2: [[1, 6], [13, 10]], 3: [[[0, 3], [8, 11]], [[33, 35], [41, 43]]]}
for axes, places in PLACES.items():
    shape = (1, 1) + np.shape(places)
    full = {1: (9,), 2: (4, 4), 3: (4, 4, 4)}[axes]
    case(f"max_unpool{axes}d", v(*shape), np.array(places, np.int32).reshape(shape), 2, 2, 0, full,
         torch=lambda x, i, n=axes, s=full: getattr(F, f"max_unpool{n}d")(x, i.long(), 2, 2, 0, s))

case("layernorm", A, -1, 1e-3, torch=lambda x: F.layer_norm(x, (4,), eps=1e-3), atol=1e-5)
case("layernorm", A, (0, 1), torch=lambda x: F.layer_norm(x, (3, 4)), atol=1e-5)
case("rmsnorm", A, v(4), 1e-3, -1, torch=lambda x, w: F.rms_norm(x, (4,), w, 1e-3), atol=1e-5)
case("rmsnorm", A, torch=lambda x: F.rms_norm(x, (4,), eps=1e-6), atol=1e-5)
case("groupnorm", IMAGE, 2, v(4), v(4, seed=1), 1e-3, atol=1e-5,
     torch=lambda x, w, b: F.group_norm(x, 2, w, b, 1e-3))
case("instancenorm", IMAGE, v(4), v(4, seed=1), atol=1e-5,
     torch=lambda x, w, b: F.instance_norm(x, weight=w, bias=b))
case("batchnorm", IMAGE, v(4), v(4, seed=1), v(4, seed=2), v(4, low=0.5, high=2.0), 1, atol=1e-5,
     numpy=lambda x, w, b, m, i: (x - m[:, None, None]) * (w * i)[:, None, None] + b[:, None, None])
case("interpolate", IMAGE, (8, 9), None, "nearest", torch=lambda x: F.interpolate(x, (8, 9)))
case("interpolate", IMAGE, None, (2.0, 1.5), "nearest_exact",
     torch=lambda x: F.interpolate(x, scale_factor=(2.0, 1.5), mode="nearest-exact"))
case("interpolate", IMAGE, (8, 9), None, "linear", True, atol=1e-5,
     torch=lambda x: F.interpolate(x, (8, 9), mode="bilinear", align_corners=True))
Q, K, V = v(2, 4, 3, 8), v(2, 2, 5, 8, seed=1), v(2, 2, 5, 8, seed=2)
case("scaled_dot_product_attention", Q, K, V, v(3, 5), False, 0.0, True, 0.5, atol=1e-5,
     torch=lambda q, k, w, m: F.scaled_dot_product_attention(q, k, w, m, 0.0, False, scale=0.5,
                                                             enable_gqa=True))
case("scaled_dot_product_attention", K, K, V, None, True, atol=1e-5,
     torch=lambda q, k, w: F.scaled_dot_product_attention(q, q, w, is_causal=True))

LOGITS, LABELS = v(4, 5), np.array([0, 3, 1, 4], np.int32)
TARGETS, CLASSES = v(4, 5, low=0.05, high=0.95, seed=1), v(5, low=0.5, high=1.5)
LOG = np.log(TARGETS)
for reduction in ("mean", "sum", "none"):
    for name, theirs in (("mse_loss", "mse_loss"), ("l1_loss", "l1_loss")):
        case(name, LOGITS, TARGETS, reduction,
             torch=lambda x, y, f=theirs, r=reduction: getattr(F, f)(x, y, reduction=r))
    case("huber_loss", LOGITS, TARGETS, 0.7, reduction,
         torch=lambda x, y, r=reduction: F.huber_loss(x, y, r, 0.7))
    case("smooth_l1_loss", LOGITS, TARGETS, 0.7, reduction,
         torch=lambda x, y, r=reduction: F.smooth_l1_loss(x, y, reduction=r, beta=0.7))
    case("kl_div", LOG, TARGETS, reduction,
         torch=lambda x, y, r=reduction: F.kl_div(x, y, reduction=r))
    case("binary_crossentropy", TARGETS, TARGETS[::-1].copy(), reduction,
         names=("x", "target", "reduction"),
         torch=lambda x, y, r=reduction: F.binary_cross_entropy(x, y, reduction=r))
    case("binary_crossentropy_logits", LOGITS, TARGETS, reduction,
         names=("logits", "target", "reduction"),
         torch=lambda x, y, r=reduction: F.binary_cross_entropy_with_logits(x, y, reduction=r))
    case("cross_entropy", LOGITS, LABELS, 0.1, 3, reduction, CLASSES, atol=1e-5,
         torch=lambda x, y, w, r=reduction: F.cross_entropy(
             x, y.long(), w, ignore_index=3, reduction=r, label_smoothing=0.1))
    case("sparse_categorical_crossentropy", LOGITS, LABELS, 0.1, None, reduction, atol=1e-5,
         torch=lambda x, y, r=reduction: F.cross_entropy(
             x, y.long(), reduction=r, label_smoothing=0.1))
    case("nll_loss", LOG, LABELS, 0.0, None, reduction, CLASSES, atol=1e-5,
         torch=lambda x, y, w, r=reduction: F.nll_loss(x, y.long(), w, reduction=r))
case("kl_div", LOG, LOG[::-1].copy(), "sum", True,
     torch=lambda x, y: F.kl_div(x, y, reduction="sum", log_target=True))
case("binary_crossentropy", TARGETS, TARGETS[::-1].copy(), CLASSES, None, "sum",
     names=("x", "target", "weight", "pos_weight", "reduction"),
     torch=lambda x, y, w: F.binary_cross_entropy(x, y, w, reduction="sum"))
case("binary_crossentropy_logits", LOGITS, TARGETS, CLASSES, CLASSES, "mean",
     names=("logits", "target", "weight", "pos_weight", "reduction"),
     torch=lambda x, y, w, p: F.binary_cross_entropy_with_logits(x, y, w, pos_weight=p))
SIDES = np.where(ints(4, 5) > 0, 1, -1).astype(np.float32)
case("margin_ranking_loss", LOGITS, TARGETS, SIDES, 0.3, "mean",
     torch=lambda a, b, y: F.margin_ranking_loss(a, b, y, 0.3))
case("hinge_embedding_loss", LOGITS, SIDES, 0.8, "sum",
     torch=lambda x, y: F.hinge_embedding_loss(x, y, 0.8, reduction="sum"))
case("cosine_similarity", LOGITS, TARGETS, 1, 1e-8, torch=lambda a, b: F.cosine_similarity(a, b))


def restored(result: object, expected: np.ndarray) -> None:
    np.testing.assert_allclose(result, expected, 1e-4, 1e-4)


TALL = v(5, 3)


def check_qr(result: tuple) -> None:
    q, r = (each.numpy() for each in result)
    assert q.shape == (5, 3) and r.shape == (3, 3) and np.allclose(np.tril(r, -1), 0, atol=1e-5)
    restored(q @ r, TALL)
    restored(q.T @ q, np.eye(3))


def check_svd(result: tuple) -> None:
    u, s, vt = (each.numpy() for each in result)
    restored(s, np.linalg.svd(TALL)[1])
    restored(u[:, :3] * s @ vt, TALL)


case("qr", TALL, check=check_qr)
case("svd", TALL, check=check_svd)


def steps(x: np.ndarray) -> np.ndarray:
    """Newton and Schulz's iteration as the header defines it, two steps."""
    a, b, c = 3.4445, -4.775, 2.0315
    x = x / (np.linalg.norm(x) + 1e-7)
    for _ in range(2):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x


case("newton_schulz", v(3, 5), 2, numpy=steps, atol=1e-4)
