"""Says what kind of data files hold, with the network of the package magika.

    pip install --no-deps magika==1.0.3
    python file_types.py FILE… [--device D]

The last line on stdout is one line of JSON: the type of each file.
"""
import argparse
import json
from importlib import metadata
from pathlib import Path

import numpy as np

import plugrad as pg

MODEL = "magika/models/standard_v3_3"


def file_of_package(package: str, name: str) -> Path:
    """Where pip put a file; the package itself is not imported."""
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        raise SystemExit(f"the package {package} is not installed; see --help") from None
    found = [file for file in files if str(file) == name]
    if not found:
        raise SystemExit(f"the package {package} has no file {name}")
    return Path(str(found[0].locate()))


def tokens(path: Path, config: dict[str, int]) -> np.ndarray:
    """The bytes at both ends of a file, without white space around them; padded."""
    block, begin, end = config["block_size"], config["beg_size"], config["end_size"]
    with path.open("rb") as file:
        head = file.read(block).lstrip()
        file.seek(max(0, path.stat().st_size - block))
        tail = file.read(block).rstrip()
    if path.stat().st_size <= block:
        head = tail = head.rstrip()
    row = np.full(begin + end, config["padding_token"], np.int32)
    row[:min(begin, len(head))] = list(head[:begin])
    row[begin + end - min(end, len(tail)):] = list(tail[-end:])
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--device", default=pg.default_device())
    given = parser.parse_args()
    config = json.loads(file_of_package("magika", f"{MODEL}/config.min.json").read_text())
    model = pg.onnx.load(file_of_package("magika", f"{MODEL}/model.onnx"), given.device)
    (scores,) = model(np.stack([tokens(path, config) for path in given.files]))
    best = scores.argmax(1).tolist()
    types = [config["target_labels_space"][index] for index in best]
    width = max(len(str(path)) for path in given.files)
    for path, name, score in zip(given.files, types, scores.max(1).tolist()):
        print(f"{path!s:{width}}  {name:12} {100 * score:5.1f}%")
    print(json.dumps(dict(zip(map(str, given.files), types))))


if __name__ == "__main__":
    main()
