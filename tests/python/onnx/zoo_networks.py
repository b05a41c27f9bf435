"""Networks of bench/zoo: two processes write the same bytes, onnx's checker accepts them, and plugrad agrees with ONNX Runtime.

Needs the packages onnx and onnxruntime; all of them are compared by bench/zoo/build.py FOLDER --check.
"""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx

ZOO = Path(__file__).resolve().parents[3] / "bench/zoo"
CHECKED = ("trees", "experts", "converging", "graph_convolution", "time_distributed", "qoperator_residual")
WRITTEN = (*CHECKED, "lenet", "yolo_nms", "decoder_cache", "greedy", "voice", "logistic", "dynamic_encoder", "masked_pixels")


def write(folder: str, seed: int, names: tuple[str, ...], *options: str) -> None:
    command = [sys.executable, "-W", "ignore", str(ZOO / "build.py"), folder, "--filter", *names, *options]
    environment = os.environ | {"PYTHONHASHSEED": str(seed), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def main() -> int:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        write(one, 1, WRITTEN)
        write(other, 2, WRITTEN)
        write(other, 3, CHECKED, "--check")
        files = sorted(path.relative_to(one) for path in Path(one).rglob("*") if path.is_file())
        assert len(files) > 2 * len(WRITTEN), files
        assert files == sorted(path.relative_to(other) for path in Path(other).rglob("*") if path.is_file())
        for file in files:
            assert (Path(one) / file).read_bytes() == (Path(other) / file).read_bytes(), file
            if file.suffix == ".onnx":
                onnx.checker.check_model(str(Path(one) / file))
        print(f"{len(files)} files of bench/zoo are the same twice; {len(CHECKED)} networks agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
