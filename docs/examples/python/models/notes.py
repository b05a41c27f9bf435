"""Writes down the notes of a WAV file as MIDI, with the network of the package basic-pitch.

    pip install --no-deps basic-pitch==0.4.0
    python notes.py AUDIO.wav [--midi FILE.mid] [--device D]

Prints the notes as a piano roll. The last line on stdout is one line of JSON: begin and end in seconds and MIDI number of each note.
"""
import argparse
import json
import struct
from pathlib import Path

import numpy as np
from file_types import file_of_package
from speech import read_wave

import plugrad as pg

RATE = 22050
HOP = 256                # samples of a frame
WINDOW = 2 * RATE - HOP  # samples that the network hears at once
EDGE = 15                # frames that are dropped at both ends of a window
KEPT = WINDOW // HOP - 2 * EDGE
LOWEST = 21              # MIDI number of the lowest key of a piano
LIKELY_BEGIN, LIKELY = 0.5, 0.3
SHORTEST, GAP = 11, 11   # frames of a note, and of silence that ends it
TICKS = 480              # of a second
NAMES = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"]

Note = tuple[float, float, int]


def probabilities(model: pg.onnx.Model, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """That each key sounds, and begins to sound, in each frame: (frames, 88)."""
    names = [value.name for value in model.outputs]
    frames = len(samples) // HOP
    padded = np.pad(samples, (EDGE * HOP, WINDOW))
    windows = []
    for begin in range(0, frames * HOP, KEPT * HOP):
        results = model(padded[None, begin:begin + WINDOW, None])
        windows.append({name: result.numpy()[0, EDGE:EDGE + KEPT] for name, result in zip(names, results)})

    def joined(name: str) -> np.ndarray:
        return np.concatenate([window[name] for window in windows])[:frames]

    return joined("StatefulPartitionedCall:1"), joined("StatefulPartitionedCall:2")


def notes_of(sounds: np.ndarray, begins: np.ndarray) -> list[Note]:
    """A note begins at a peak of its onset, and ends where its key is silent for some frames or begins again."""
    notes = []
    for key in range(sounds.shape[1]):
        onset = np.pad(begins[:, key], 1)
        peaks = np.flatnonzero((onset[1:-1] >= LIKELY_BEGIN) & (onset[1:-1] > onset[:-2]) & (onset[1:-1] >= onset[2:]))
        for peak, next_peak in zip(peaks, [*peaks[1:], len(sounds)]):
            heard = np.flatnonzero(sounds[peak:next_peak, key] >= LIKELY)
            breaks = np.flatnonzero(np.diff(heard) > GAP)
            if len(heard) == 0 or heard[0] > GAP:
                continue
            length = int(heard[breaks[0]] if len(breaks) else heard[-1]) + 1
            if length >= SHORTEST:
                notes.append((float(peak) * HOP / RATE, float(peak + length) * HOP / RATE, LOWEST + key))
    return sorted(notes)


def midi_of(notes: list[Note]) -> bytes:
    """A MIDI file of one track at 60 beats a minute."""
    events = sorted([(round(begin * TICKS), bytes([0x90, key, 90])) for begin, _, key in notes]
                    + [(round(end * TICKS), bytes([0x80, key, 0])) for _, end, key in notes])
    track, now = b"\x00\xff\x51\x03" + (1_000_000).to_bytes(3, "big"), 0
    for tick, event in events:
        track += variable_length(tick - now) + event
        now = tick
    track += b"\x00\xff\x2f\x00"
    return struct.pack(">4sIHHH", b"MThd", 6, 0, 1, TICKS) + struct.pack(">4sI", b"MTrk", len(track)) + track


def variable_length(number: int) -> bytes:
    """Seven bits a byte, the highest first; all but the last have the eighth bit."""
    digits = [number & 127]
    while number := number >> 7:
        digits.append(number & 127 | 128)
    return bytes(reversed(digits))


def piano_roll(notes: list[Note], seconds: float) -> str:
    """A line for each key that sounds, the highest first; ten characters a second."""
    lines = []
    for key in sorted({key for _, _, key in notes}, reverse=True):
        line = [" "] * (int(seconds * 10) + 1)
        for begin, end, of in notes:
            if of == key:
                line[int(begin * 10):int(end * 10) + 1] = "━" * (int(end * 10) - int(begin * 10) + 1)
        lines.append(f"{NAMES[key % 12] + str(key // 12 - 1):4}{''.join(line)}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("audio", type=Path)
    parser.add_argument("--midi", type=Path, metavar="FILE.mid")
    parser.add_argument("--device", default=pg.default_device())
    given = parser.parse_args()
    samples = read_wave(given.audio, RATE)
    model = pg.onnx.load(file_of_package("basic-pitch", "basic_pitch/saved_models/icassp_2022/nmp.onnx"), given.device)
    notes = notes_of(*probabilities(model, samples))
    print(piano_roll(notes, len(samples) / RATE))
    if given.midi:
        given.midi.write_bytes(midi_of(notes))
    print(json.dumps([(round(begin, 2), round(end, 2), key) for begin, end, key in notes]))


if __name__ == "__main__":
    main()
