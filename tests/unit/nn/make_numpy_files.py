#!/usr/bin/env python3
"""Writes numpy_files.h: small files as NumPy writes them, in hexadecimal. make_numpy_files.py > numpy_files.h"""
import io
import numpy as np


def text(write, *arrays, **named):
    file = io.BytesIO()
    write(file, *arrays, **named)
    return file.getvalue().hex()


def show(name, content):
    lines = [content[i:i + 110] for i in range(0, len(content), 110)]
    print(f"constexpr char {name}[] =\n    " + "\n    ".join(f'"{line}"' for line in lines) + ";")


wave = (np.arange(6) * 1.5 - 4).reshape(2, 3)
print("// Made by make_numpy_files.py with NumPy " + np.__version__ + ".")
print("// clang-format off")
show("kFloats", text(np.save, wave.astype("<f4")))
show("kBigFortran", text(np.save, np.asfortranarray(wave.astype(">i2"))))
show("kTruth", text(np.save, np.array(True)))
show("kEmptyHalves", text(np.save, np.zeros((0, 3), "<f2")))
show("kOneAxis", text(np.save, np.arange(3, dtype="<u8") + 2 ** 63))
show("kStored", text(np.savez, a=wave.astype("<f8"), b=np.arange(3, dtype="i1")))
show("kDeflated", text(np.savez_compressed, zeros=np.zeros((20, 30), "<i4"), b=np.arange(3, dtype="<i8")))
show("kComplex", text(np.save, np.zeros(1, "<c8")))
show("kRecords", text(np.save, np.zeros(1, [("a", "<f4"), ("b", "<i4")])))
