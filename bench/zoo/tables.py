"""Models of tables: trees, linear models, scalers, embeddings of categories."""
import numpy as np

from net import Net, Value
from registry import network

ML = "ai.onnx.ml"


def tree_attributes(n: Net, trees: int, depth: int, features: int) -> tuple[dict[str, list], np.ndarray]:
    """Of trees of uneven depth: a node below the third level may be a leaf. Also the trees and numbers of the leaves."""
    rows: list[tuple] = []
    for tree in range(trees):
        count, open_nodes = 1, [(0, 0)]
        while open_nodes:
            node, level = open_nodes.pop()
            draw = n.integers(100, 3)
            if level == depth or (level > 2 and draw[0] < 25):
                rows.append((tree, node, 0, 0.0, "LEAF", 0, 0))
                continue
            threshold = float(n.uniform(1)[0])
            rows.append((tree, node, int(draw[1]) % features, threshold, "BRANCH_LEQ", count, count + 1))
            open_nodes += [(count, level + 1), (count + 1, level + 1)]
            count += 2
    rows.sort(key=lambda row: row[:2])
    names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    columns = {f"nodes_{name}": list(column) for name, column in zip(names, zip(*rows))}
    return columns, np.array([row[:2] for row in rows if row[4] == "LEAF"])


@network(opset=15, tolerance=1e-5)
def trees(n: Net) -> None:
    """A regressor of 20 trees."""
    columns, leaves = tree_attributes(n, 20, 8, 12)
    count = len(leaves)
    n.output(n.TreeEnsembleRegressor(n.input("x", "batch=16", 12), domain=ML, n_targets=1, target_treeids=leaves[:, 0].tolist(),
                                     target_nodeids=leaves[:, 1].tolist(), target_ids=[0] * count,
                                     target_weights=n.uniform(count).tolist(), **columns), rank=2)


@network(opset=15, tolerance=1e-5)
def forest(n: Net) -> None:
    """A classifier of 40 trees with 3 classes."""
    columns, leaves = tree_attributes(n, 40, 6, 10)
    ids = [np.repeat(leaves[:, axis], 3).tolist() for axis in (0, 1)]
    weights = np.abs(n.uniform(len(leaves), 3))
    weights = weights / weights.sum(1, keepdims=True) / np.float32(40)
    label, share = n.TreeEnsembleClassifier(n.input("x", "batch=8", 10), outputs=2, domain=ML, classlabels_int64s=[0, 1, 2],
                                            class_treeids=ids[0], class_nodeids=ids[1], class_ids=[0, 1, 2] * len(leaves),
                                            class_weights=weights.ravel().tolist(), **columns)
    n.output(label, dtype=7, rank=1)
    n.output(share, rank=2)


@network(opset=15)
def boosting(n: Net) -> None:
    """Scaled features, 60 shallow trees, and a logistic function."""
    x = n.Scaler(n.input("x", "batch=4", 20), domain=ML, offset=n.uniform(20).tolist(), scale=(1.5 + n.uniform(20)).tolist())
    columns, leaves = tree_attributes(n, 60, 4, 20)
    y = n.TreeEnsembleRegressor(x, domain=ML, n_targets=1, base_values=[0.1], target_treeids=leaves[:, 0].tolist(),
                                target_nodeids=leaves[:, 1].tolist(), target_ids=[0] * len(leaves),
                                target_weights=(0.1 * n.uniform(len(leaves))).tolist(), **columns)
    n.output(n.Sigmoid(y), rank=2)


@network(opset=15)
def logistic(n: Net) -> None:
    x = n.Imputer(n.input("x", "batch=32", 30), domain=ML, imputed_value_floats=[0.0] * 30, replaced_value_float=float("nan"))
    x = n.Scaler(x, domain=ML, offset=n.uniform(30).tolist(), scale=(1.5 + n.uniform(30)).tolist())
    label, score = n.LinearClassifier(x, outputs=2, domain=ML, classlabels_ints=[0, 1, 2, 3], coefficients=n.uniform(120).tolist(),
                                      intercepts=n.uniform(4).tolist(), post_transform="SOFTMAX")
    n.output(label, dtype=7, rank=1)
    n.output(n.Normalizer(score, domain=ML, norm="L1"), rank=2)


@network(opset=15)
def support_vectors(n: Net) -> None:
    label, score = n.SVMClassifier(n.input("x", "batch=16", 8), outputs=2, domain=ML, classlabels_ints=[0, 1, 2], kernel_type="RBF",
                                   kernel_params=[0.1, 0.0, 3.0], vectors_per_class=[20, 25, 15],
                                   support_vectors=n.uniform(60 * 8).tolist(), coefficients=n.uniform(120).tolist(),
                                   rho=n.uniform(3).tolist(), post_transform="NONE")
    n.output(label, dtype=7, rank=1)
    n.output(score, rank=2)


@network()
def table_layers(n: Net) -> None:
    x = n.batch_norm(n.input("x", "batch=64", 40))
    for width in (128, 64, 32):
        x = n.batch_norm(n.gemm(x, width, "Selu"))
    n.output(n.gemm(x, 1, "Sigmoid"))


@network(opset=13)
def categories(n: Net) -> None:
    """As DLRM: 20 embeddings, their products by pairs, layers before and after."""
    ids, rows = n.input("ids", "batch=4", 20, high=50), [n.gemm(n.gemm(n.input("numbers", "batch=4", 13), 64, "Relu"), 16, "Relu")]
    for field in range(20):
        rows.append(n.embedding(n.Squeeze(n.Slice(ids, [field], [field + 1], [1]), [1]), 50 + 10 * field, 16))
    stack = n.Reshape(n.Concat(*rows, axis=1), [-1, 21, 16])
    products = n.Reshape(n.MatMul(stack, n.Transpose(stack, perm=[0, 2, 1])), [-1, 441])
    pairs = n.Gather(products, np.array([21 * i + j for i in range(21) for j in range(i)], np.int64), axis=1)
    x = n.Concat(rows[0], pairs, axis=1)
    x.width = 16 + 210
    n.output(n.gemm(n.gemm(n.gemm(x, 128, "Relu"), 64, "Relu"), 1, "Sigmoid"))


@network(opset=13)
def neighbours(n: Net) -> None:
    """The 5 nearest of 500 points, and the mean of their values."""
    x, points = n.input("x", "batch=10", 6), n.weight(500, 6, fan=1)
    distance = n.Sub(n.Add(n.ReduceSum(n.Mul(x, x), [1]), n.Transpose(n.ReduceSum(n.Mul(points, points), [1]), perm=[1, 0])),
                     n.Mul(n.MatMul(x, n.Transpose(points, perm=[1, 0])), 2.0))
    near, places = n.TopK(distance, [5], outputs=2, axis=1, largest=0)
    n.output(n.ReduceMean(n.Gather(n.weight(500, fan=1), places), axes=[1], keepdims=0))
    n.output(places, dtype=7)
