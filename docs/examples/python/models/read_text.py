"""Reads the text in a picture, with the networks of the package rapidocr: one finds lines, the other reads them.

    pip install --no-deps rapidocr==3.10.0 && pip install pillow
    python read_text.py PICTURE [--boxes FILE.png] [--device D]

Prints the lines from top to bottom, and --boxes draws them into the picture. The last line on stdout is one line of JSON: box
(left, top, right, bottom), text and probability of each. For upright text; the package itself also finds slanted lines.
"""
import argparse
import json
from pathlib import Path

import numpy as np
from file_types import file_of_package
from PIL import Image, ImageDraw

import plugrad as pg

MULTIPLE = 32           # of both sides of the picture that the first network sees
LONGEST = 1280          # pixels of its longer side
HEIGHT = 48             # pixels of a line that the second network sees
WIDTHS = 80             # its width is a multiple, so that few sizes are compiled
INK, LINE = 0.3, 0.5    # least probability of a pixel, and of a line on the average
GROWTH = 1.6            # the network marks the middle of a line; area over circumference times this is added around it

Box = tuple[int, int, int, int]


def as_input(picture: Image.Image, width: int, height: int) -> np.ndarray:
    """The pixels from -1 to 1, blue first: (3, height, width)."""
    pixels = np.asarray(picture.convert("RGB").resize((width, height), Image.Resampling.BILINEAR), np.float32)
    return pixels[:, :, ::-1].transpose(2, 0, 1) / 127.5 - 1


def islands(marked: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows and columns of each connected set of marked pixels."""
    left = {tuple(each) for each in np.argwhere(marked).tolist()}
    found = []
    while left:
        reached = [left.pop()]
        for row, column in reached:  # grows meanwhile
            for each in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
                if each in left:
                    left.remove(each)
                    reached.append(each)
        rows, columns = np.array(reached).T
        found.append((rows, columns))
    return found


def lines_in(model: pg.onnx.Model, picture: Image.Image) -> list[Box]:
    """Boxes of the lines of text, from top to bottom."""
    scale = min(1.0, LONGEST / max(picture.size))
    width, height = (max(MULTIPLE, round(side * scale / MULTIPLE) * MULTIPLE) for side in picture.size)
    (result,) = model(as_input(picture, width, height)[None])
    ink = result.numpy()[0, 0]
    boxes = []
    for rows, columns in islands(ink > INK):
        high, wide = np.ptp(rows) + 1, np.ptp(columns) + 1
        if min(high, wide) < 3 or ink[rows, columns].mean() < LINE:
            continue
        grown = GROWTH * high * wide / (2 * (high + wide))
        across, down = picture.width / width, picture.height / height
        left, top = max(0, round((columns.min() - grown) * across)), max(0, round((rows.min() - grown) * down))
        right = min(picture.width, round((columns.max() + 1 + grown) * across))
        bottom = min(picture.height, round((rows.max() + 1 + grown) * down))
        if left < right and top < bottom:
            boxes.append((left, top, right, bottom))
    return sorted(boxes, key=lambda box: (box[1], box[0]))


def read(model: pg.onnx.Model, line: Image.Image) -> tuple[str, float]:
    """The text of one line, and the mean probability of its characters."""
    characters = ["", *model.metadata["character"].split("\n"), " "]  # the first stands between characters
    wanted = max(1, round(line.width * HEIGHT / line.height))
    padded = np.zeros((1, 3, HEIGHT, -(-wanted // WIDTHS) * WIDTHS), np.float32)
    padded[0, :, :, :wanted] = as_input(line, wanted, HEIGHT)
    (result,) = model(padded)
    scores = result.numpy()[0]
    best = scores.argmax(1)
    kept = (best != 0) & (best != np.pad(best, (1, 0))[:-1])  # equal neighbours are one character
    text = "".join(characters[index] for index in best[kept])
    return text, float(scores.max(1)[kept].mean()) if kept.any() else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--boxes", type=Path, metavar="FILE.png")
    parser.add_argument("--device", default=pg.default_device())
    given = parser.parse_args()
    picture = Image.open(given.picture).convert("RGB")
    finder, reader = (pg.onnx.load(file_of_package("rapidocr", f"rapidocr/models/PP-OCRv6_{task}_small.onnx"), given.device)
                      for task in ("det", "rec"))
    found = [(box, *read(reader, picture.crop(box))) for box in lines_in(finder, picture)]
    for _, text, probability in found:
        print(f"{100 * probability:5.1f}%  {text}")
    if given.boxes:
        draw = ImageDraw.Draw(picture)
        for box, _, _ in found:
            draw.rectangle(box, outline=(220, 20, 60), width=2)
        picture.save(given.boxes)
    print(json.dumps([{"box": box, "text": text, "probability": round(probability, 3)} for box, text, probability in found]))


if __name__ == "__main__":
    main()
