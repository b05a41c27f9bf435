"""melody.py FILE.wav: plucked strings of 22,050 Hz: C, E and G of the fourth octave one after another, then the three together."""
import sys
import wave

import numpy as np

RATE = 22050


def string(key: int, seconds: float) -> np.ndarray:
    """Overtones that fade, the higher the faster."""
    time = np.arange(int(RATE * seconds)) / RATE
    pitch = 440 * 2 ** ((key - 69) / 12)
    tones = [np.sin(2 * np.pi * n * pitch * time) / n**2 * np.exp(-(1 + n / 2) * time) for n in range(1, 9)]
    return np.sum(tones, axis=0) * np.minimum(1, time * 200) * np.minimum(1, (seconds - time) * 50)


parts = [np.zeros(RATE // 2), *(string(key, 0.7) for key in (60, 64, 67)), sum(string(key, 1.0) for key in (60, 64, 67)) / 2,
         np.zeros(RATE // 2)]
samples = np.concatenate(parts) * 0.4
with wave.open(sys.argv[1], "wb") as file:
    file.setnchannels(1)
    file.setsampwidth(2)
    file.setframerate(RATE)
    file.writeframes((samples * 32767).astype("<i2").tobytes())
