/// Reads and writes NumPy's files: .npy (one array) and .npz (a zip archive of arrays).
///
/// bool, integers of 8 to 64 bits, f16, f32 and f64 keep their dtype. NumPy lacks bf16 and 8-bit
/// floats: they are written as f32, which holds them exactly, and a read returns f32. The ml_dtypes
/// package writes bf16 as two-byte void ("V2"), which is read as bf16. Arrays of either byte order,
/// in C or Fortran order, are read. Complex numbers, texts, dates, records and objects are errors.
#pragma once

#include <string>
#include <string_view>

#include "plugrad/nn/state.h"
#include "plugrad/tensor.h"

namespace plugrad {

/// Reads a .npy file (format 1.0 to 3.0), which stays mapped until its values are on the device.
/// Errors: User, with the file and the reason (damaged, truncated, a dtype that plugrad lacks).
PLUGRAD_API Tensor load_npy(const std::string& path, std::string_view device = {});
/// Writes one array, row-major. The file is replaced atomically. Errors: User, with the file and
/// the reason.
PLUGRAD_API void save_npy(const Tensor& tensor, const std::string& path);

/// Reads the arrays of a .npz file by name (without ".npy"), stored or deflated, and verifies
/// checksums. Errors: User, with the file, the array and the reason; then nothing is loaded.
PLUGRAD_API nn::StateDict load_npz(const std::string& path, std::string_view device = {});
/// Writes arrays like numpy.savez, or deflated like numpy.savez_compressed. Errors: User for a name
/// that is empty or occurs twice, and an archive of 4 GiB or more.
PLUGRAD_API void save_npz(const nn::StateDict& arrays, const std::string& path,
                          bool compressed = false);

}  // namespace plugrad
