"""syllables.py FILE.wav: a second of silence, two seconds that sound like a voice saying "ama ima", a second of silence."""
import sys
import wave

import numpy as np

RATE = 16000
FORMANTS = {"a": ((700, 110), (1220, 120), (2600, 160)), "i": ((300, 60), (2300, 110), (3000, 170)),
            "m": ((250, 60), (1100, 300), (2200, 300))}


def resonance(x: np.ndarray, hertz: float, bandwidth: float) -> np.ndarray:
    """A filter of two poles."""
    radius = np.exp(-np.pi * bandwidth / RATE)
    first, second = 2 * radius * np.cos(2 * np.pi * hertz / RATE), -radius * radius
    y = np.zeros(len(x) + 2)
    for i, value in enumerate(x):
        y[i + 2] = value + first * y[i + 1] + second * y[i]
    return y[2:]


def sound(letter: str, seconds: float) -> np.ndarray:
    """Pulses of about 120 Hz through the resonances of a mouth."""
    time = np.arange(int(RATE * seconds)) / RATE
    cycles = np.cumsum(120 * (1 + 0.08 * np.sin(2 * np.pi * 3 * time))) / RATE
    x = np.diff(np.floor(cycles), prepend=0)
    for hertz, bandwidth in FORMANTS[letter]:
        x = resonance(x, hertz, bandwidth)
    fade = np.minimum(1, np.minimum(time, seconds - time) * 40)
    return x / np.abs(x).max() * fade * (0.15 if letter == "m" else 0.5)


silence = np.zeros(RATE)
voice = np.concatenate([sound(letter, 0.3 if letter != "m" else 0.15) for letter in "amaimaama"])[:2 * RATE]
samples = np.concatenate([silence, voice, silence])
with wave.open(sys.argv[1], "wb") as file:
    file.setnchannels(1)
    file.setsampwidth(2)
    file.setframerate(RATE)
    file.writeframes((samples * 32767).astype("<i2").tobytes())
