"""Compares models that skl2onnx writes of scikit-learn's with ONNX Runtime.

    sklearn_models.py [--device D] [--filter TEXT]

Each is fitted to data made here, and written with its default options, which give probabilities as maps (ZipMap). Prints how many
agree and a line for each that does not. Needs the packages onnxruntime, scikit-learn and skl2onnx.
"""
from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator

import numpy as np
import onnxruntime
import skl2onnx
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
from sklearn import ensemble, feature_extraction, linear_model, naive_bayes, neighbors, neural_network, pipeline, preprocessing, svm, tree
from sklearn.base import BaseEstimator
from sklearn.datasets import make_classification, make_regression

import plugrad as pg

Array = np.ndarray
NAMES = np.array(["ant", "bee", "cat", "dog"])
TEXTS = ["Plugins for chips, and chips for plugins", "one small library", "", "a chip runs one kernel of the library", "Zwölf Äpfel, 12 für einen"]


def fitted() -> Iterator[tuple[str, BaseEstimator, Array]]:
    """A name, a model and the inputs that it is compared on."""
    for classes in (2, 3, 4):
        x, y = make_classification(120, 6, n_informative=5, n_redundant=0, n_classes=classes, random_state=classes)
        x = x.astype(np.float32)
        for kernel in ("rbf", "linear", "poly", "sigmoid"):
            yield f"SVC {kernel} {classes}", svm.SVC(kernel=kernel).fit(x, y), x[:30]
        for name, model in (("NuSVC", svm.NuSVC(nu=0.3)), ("LogisticRegression", linear_model.LogisticRegression()), ("LinearSVC", svm.LinearSVC()),
                            ("forest", ensemble.RandomForestClassifier(8, random_state=1)), ("tree", tree.DecisionTreeClassifier(max_depth=4)),
                            ("boosting", ensemble.GradientBoostingClassifier(n_estimators=6)), ("GaussianNB", naive_bayes.GaussianNB()),
                            ("MLP", neural_network.MLPClassifier((7,), max_iter=60)), ("neighbors", neighbors.KNeighborsClassifier(3)),
                            ("SVC with probabilities", svm.SVC(probability=True))):
            yield f"{name} {classes}", model.fit(x, y), x[:30]
            yield f"{name} {classes} names", model.fit(x, NAMES[y]), x[:30]
    x, y = make_regression(80, 5, noise=3, random_state=2)
    x, y = x.astype(np.float32), y / 50
    for name, model in (("SVR", svm.SVR()), ("SVR poly", svm.SVR(kernel="poly", degree=2)), ("NuSVR", svm.NuSVR()), ("LinearSVR", svm.LinearSVR()),
                        ("OneClassSVM", svm.OneClassSVM(nu=0.2)), ("forest regressor", ensemble.RandomForestRegressor(6, random_state=3)),
                        ("scaled ridge", pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.Ridge()))):
        yield name, model.fit(x, y), x[:30]
    numbers = np.random.default_rng(4).integers(0, 4, (20, 3))
    yield "one hot", preprocessing.OneHotEncoder(sparse_output=False).fit(numbers), numbers
    yield "one hot ignoring", preprocessing.OneHotEncoder(sparse_output=False, handle_unknown="ignore").fit(numbers), numbers + 1
    yield "one hot names", preprocessing.OneHotEncoder(sparse_output=False).fit(NAMES[numbers]), NAMES[numbers].astype(object)
    texts = np.array(TEXTS, object).reshape(-1, 1)
    for name, model in (("CountVectorizer", feature_extraction.text.CountVectorizer()),
                        ("TfidfVectorizer", feature_extraction.text.TfidfVectorizer(ngram_range=(1, 2))),
                        ("characters", feature_extraction.text.CountVectorizer(analyzer="char"))):
        yield name, model.fit(TEXTS), texts
    words = pipeline.make_pipeline(feature_extraction.text.TfidfVectorizer(), linear_model.LogisticRegression())
    yield "texts to classes", words.fit(TEXTS, [0, 1, 0, 1, 0]), texts


def written(model: BaseEstimator, x: Array) -> bytes:
    """With a locale that ONNX Runtime finds on every system."""
    steps = getattr(model, "named_steps", {"": model}).values()
    options = {id(step): {"locale": "C.UTF-8"} for step in steps if hasattr(step, "ngram_range")}
    kind = {"f": FloatTensorType, "i": Int64TensorType, "O": StringTensorType}[x.dtype.kind]
    types = [("x", kind([None, x.shape[1]]))]
    return skl2onnx.to_onnx(model, initial_types=types, target_opset={"": 17, "ai.onnx.ml": 3}, options=options).SerializeToString()


def require_equal(got: object, wanted: object) -> None:
    if isinstance(wanted, list):  # of maps
        assert isinstance(got, list) and [list(each) for each in got] == [list(each) for each in wanted], f"{got} instead of {wanted}"
        got, wanted = (np.array([list(each.values()) for each in maps]) for maps in (got, wanted))
    got = got.numpy() if isinstance(got, pg.Tensor) else np.asarray(got)
    wanted = np.asarray(wanted)
    assert got.shape == wanted.shape, f"shape {got.shape}, wanted {wanted.shape}"
    if wanted.dtype.kind in "OU":
        assert got.tolist() == wanted.tolist(), f"{got} instead of {wanted}"
    else:
        np.testing.assert_allclose(got.astype(float), wanted.astype(float), rtol=1e-4, atol=1e-5)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares models of scikit-learn with ONNX Runtime.")
    parser.add_argument("--device", default=pg.default_device())
    parser.add_argument("--filter", default="")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    start, passed, count = time.time(), 0, 0
    for name, model, x in fitted():
        if given.filter not in name:
            continue
        count += 1
        try:
            file = written(model, x)
            wanted = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"]).run(None, {"x": x})
            got = pg.onnx.load(file, given.device)(x)
            assert len(got) == len(wanted), f"{len(got)} outputs, wanted {len(wanted)}"
            for g, w in zip(got, wanted):
                require_equal(g, w)
            passed += 1
        except Exception as error:  # noqa: BLE001: each outcome is shown
            print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
    print(f"{passed} of {count} models agree on {given.device}, {time.time() - start:.0f} s")
    return 0 if 0 < passed == count else 1


if __name__ == "__main__":
    sys.exit(main())
