"""Finds speech in a WAV file of 16 kHz, with the network of the package silero-vad.

    pip install --no-deps silero-vad==6.2.3
    python speech.py AUDIO.wav [--plot FILE.svg] [--device D]

Prints the probability of speech over time as bars, and --plot draws it below the sound. The last line on stdout is one line of
JSON: begin and end of each stretch of speech in seconds.
"""
import argparse
import json
import wave
from pathlib import Path

import numpy as np
from file_types import file_of_package

import plugrad as pg

RATE = 16000
CHUNK = 512    # samples that the network judges at once
CONTEXT = 64   # samples before them that it sees too
BARS = " ▁▂▃▄▅▆▇█"


def read_wave(path: Path, rate: int) -> np.ndarray:
    """Samples from -1 to 1, the mean of the channels."""
    with wave.open(str(path)) as file:
        if file.getframerate() != rate or file.getsampwidth() != 2:
            raise SystemExit(f"{path}: {file.getframerate()} Hz of {8 * file.getsampwidth()} bits; it must be {rate} Hz of 16 bits")
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        channels = samples.reshape(-1, file.getnchannels())
    return np.asarray(channels.mean(1) / 32768, np.float32)


def probabilities(model: pg.onnx.Model, samples: np.ndarray) -> np.ndarray:
    """That each chunk is speech; the state of the recurrent network goes from call to call."""
    padded = np.pad(samples, (CONTEXT, -len(samples) % CHUNK))
    state = pg.Tensor.zeros((2, 1, 128))
    found = []
    for begin in range(0, len(padded) - CONTEXT, CHUNK):
        output, state = model(padded[None, begin:begin + CONTEXT + CHUNK], state, np.array(RATE))
        found.append(output.item())
    return np.array(found)


def stretches(speech: np.ndarray) -> list[tuple[float, float]]:
    """Begin and end in seconds of each run of chunks that are speech."""
    edges = np.flatnonzero(np.diff(np.pad(speech.astype(int), 1)))
    return [(round(begin * CHUNK / RATE, 3), round(end * CHUNK / RATE, 3)) for begin, end in edges.reshape(-1, 2).tolist()]


def plot(samples: np.ndarray, found: np.ndarray) -> str:
    """An SVG picture: the sound above, the probability below."""
    width, height = 800, 120
    columns = np.array_split(samples, min(width, len(samples)))
    sound = " ".join(f"M{x} {height / 2 * (1 - part.max()):.1f}V{height / 2 * (1 - part.min()):.1f}" for x, part in enumerate(columns))
    line = " ".join(f"{i * width / max(len(found) - 1, 1):.1f},{2 * height - 100 * p:.1f}" for i, p in enumerate(found))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {2 * height + 20}" font-family="sans-serif" font-size="12">'
            f'<path d="{sound}" stroke="gray"/><polyline points="{line}" fill="none" stroke="crimson" stroke-width="2"/>'
            f'<text x="0" y="{2 * height + 15}">probability of speech, {len(samples) / RATE:.1f} s</text></svg>\n')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("audio", type=Path)
    parser.add_argument("--plot", type=Path, metavar="FILE.svg")
    parser.add_argument("--device", default=pg.default_device())
    given = parser.parse_args()
    samples = read_wave(given.audio, RATE)
    model = pg.onnx.load(file_of_package("silero-vad", "silero_vad/data/silero_vad.onnx"), given.device)
    with pg.device(given.device):
        found = probabilities(model, samples)
    print("".join(BARS[round(p * (len(BARS) - 1))] for p in found))
    if given.plot:
        given.plot.write_text(plot(samples, found))
    print(json.dumps(stretches(found > 0.5)))


if __name__ == "__main__":
    main()
