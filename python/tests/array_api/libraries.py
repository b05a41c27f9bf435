"""Functions of SciPy and scikit-learn, called with tensors and with arrays of NumPy.

    SCIPY_ARRAY_API=1 python libraries.py scipy|sklearn

prints a line for each: its name and "agrees", or what went wrong.
"""
from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import plugrad as pg
import plugrad.array_api as xp

random = np.random.default_rng(0)
X = random.random((20, 5))
Y = random.random((20, 5))
V = random.random(20)
W = np.roll(V, 3) * 2
LABELS = (X[:, 0] > 0.5).astype(np.int64)
GUESSES = (V > 0.5).astype(np.int64)
TARGETS = X @ np.arange(5.0) + 0.1 * V

SCIPY: dict[str, dict[str, tuple[Any, ...]]] = {
    "special": {**dict.fromkeys("expit logit erf ndtr gammaln i0 i0e entr log_ndtr logsumexp "
                                "softmax log_softmax".split(), (X,)),
                **dict.fromkeys("xlogy rel_entr stdtr".split(), (X, Y))},
    "stats": {**dict.fromkeys("skew kurtosis variation gmean hmean sem zscore describe moment kstat "
                              "kstatvar circmean circvar circstd tmean tvar tstd tsem tmin tmax "
                              "entropy skewtest kurtosistest normaltest jarque_bera rankdata "
                              "lmoment".split(), (V,)),
              **dict.fromkeys("pearsonr ttest_ind ttest_rel bartlett f_oneway mannwhitneyu levene "
                              "kruskal".split(), (V, W)),
              "ttest_1samp": (V, 0.5), "combine_pvalues": (V / 2,), "pmean": (V, 2),
              "quantile": (V, np.array([0.25, 0.5]))},
    "cluster.vq": {"whiten": (X,), "vq": (X, Y)},
    "signal": {"detrend": (X,), "convolve": (V, W[:3]), "savgol_filter": (V, 5, 2),
               "lfilter": (np.array([1.0, 2.0]), np.array([1.0, 0.5]), V)},
    "ndimage": {"gaussian_filter": (X, 1.0), "uniform_filter": (X, 3), "sobel": (X,)},
    "integrate": {"trapezoid": (X,), "simpson": (V,), "cumulative_trapezoid": (X,),
                  "cumulative_simpson": (V,)},
    "optimize": {"rosen": (V,), "rosen_der": (V,)},
    "constants": {"convert_temperature": (V, "Celsius", "Kelvin")},
}
SKLEARN: dict[str, dict[str, tuple[Any, ...]]] = {
    "metrics": {**dict.fromkeys("accuracy_score zero_one_loss f1_score precision_score recall_score "
                                "jaccard_score hamming_loss balanced_accuracy_score "
                                "confusion_matrix".split(), (LABELS, GUESSES)),
                **dict.fromkeys("r2_score mean_squared_error mean_absolute_error max_error "
                                "mean_squared_log_error explained_variance_score "
                                "d2_tweedie_score mean_pinball_loss".split(), (TARGETS, V)),
                **dict.fromkeys("log_loss brier_score_loss precision_recall_curve "
                                "average_precision_score".split(), (LABELS, V))},
    "metrics.pairwise": dict.fromkeys(
        "euclidean_distances cosine_similarity linear_kernel polynomial_kernel rbf_kernel "
        "sigmoid_kernel paired_euclidean_distances".split(), (X, Y)),
}


def rotated(q: Any) -> Any:
    return importlib.import_module("scipy.spatial.transform").Rotation.from_quat(q).as_matrix()


def derivative(x: Any) -> Any:
    return importlib.import_module("scipy.differentiate").derivative(lambda t: t**3, x).df


def root(x: Any) -> Any:
    module = importlib.import_module("scipy.optimize.elementwise")
    return module.find_root(lambda t: t**2 - 2, (x, x + 2.0)).x


def divided(x: Any) -> Any:
    return importlib.import_module("sklearn.model_selection").train_test_split(x, random_state=0)


def fitted(module: str, name: str, method: str, *targets: Any, **options: Any) -> Callable[[Any], Any]:
    """An estimator, fitted to an array and applied to it."""
    def apply(x: Any) -> Any:
        model = getattr(importlib.import_module(f"sklearn.{module}"), name)(**options)
        others = [converted(each) if isinstance(x, pg.Tensor) else each for each in targets]
        return getattr(model.fit(x, *others), method)(x)
    return apply


SCIPY_CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "spatial.transform.Rotation": (rotated, (X[:, :4],)),
    "differentiate.derivative": (derivative, (V,)),
    "optimize.elementwise.find_root": (root, (np.zeros(2),)),
}
SKLEARN_CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "model_selection.train_test_split": (divided, (X,)),
    **{f"preprocessing.{name}": (fitted("preprocessing", name, "transform"), (X,))
       for name in ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "Normalizer", "Binarizer",
                    "PolynomialFeatures")},
    "preprocessing.LabelEncoder": (fitted("preprocessing", "LabelEncoder", "transform"), (LABELS,)),
    "decomposition.PCA": (fitted("decomposition", "PCA", "inverse_transform", n_components=5,
                                 svd_solver="full"), (X,)),
    "linear_model.Ridge": (fitted("linear_model", "Ridge", "predict", TARGETS, solver="svd"), (X,)),
    "linear_model.RidgeClassifier": (fitted("linear_model", "RidgeClassifier", "predict", LABELS,
                                            solver="svd"), (X,)),
    "linear_model.LogisticRegression": (fitted("linear_model", "LogisticRegression",
                                               "predict_proba", LABELS, solver="lbfgs"), (X,)),
    "discriminant_analysis.LinearDiscriminantAnalysis": (
        fitted("discriminant_analysis", "LinearDiscriminantAnalysis", "predict", LABELS), (X,)),
    "naive_bayes.GaussianNB": (fitted("naive_bayes", "GaussianNB", "predict_proba", LABELS), (X,)),
    "mixture.GaussianMixture": (fitted("mixture", "GaussianMixture", "predict",
                                       n_components=2, init_params="random", random_state=0,
                                       max_iter=3, tol=0.5), (X,)),
}


def converted(value: Any) -> Any:
    return xp.asarray(value, copy=True) if isinstance(value, np.ndarray) else value


def parts(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [part for each in result for part in parts(each)]
    is_test = not isinstance(result, (pg.Tensor, np.ndarray, np.generic)) and \
        hasattr(result, "statistic")
    return [result.statistic, result.pvalue] if is_test else [result]


def outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    expected = parts(function(*arguments))
    try:
        found = parts(function(*map(converted, arguments)))
        if any(isinstance(each, np.ndarray) for each in found):
            return "gives an array of NumPy"
        for ours, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(ours), np.asarray(other), 1e-4, 1e-6)
    except Exception as error:  # any failure of the library is an outcome
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return "agrees"


def calls(library: str) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    for module, functions in (SCIPY if library == "scipy" else SKLEARN).items():
        for name, arguments in functions.items():
            loaded = importlib.import_module(f"{library}.{module}")
            yield f"{module}.{name}", getattr(loaded, name), arguments
    for name, (function, arguments) in (
            SCIPY_CALLS if library == "scipy" else SKLEARN_CALLS).items():
        yield name, function, arguments


def main(library: str) -> None:
    if library == "sklearn":
        importlib.import_module("sklearn").set_config(array_api_dispatch=True)
    for name, function, arguments in calls(library):
        print(f"{name}: {outcome(function, arguments)}")


if __name__ == "__main__":
    main(sys.argv[1])
