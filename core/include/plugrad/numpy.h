/// NumPy's files: .npy (one array) and .npz (a zip archive of them), interchangeable with
/// numpy.load and numpy.savez.
///
/// bool, integers of 8 to 64 bits, f16, f32 and f64 are themselves. NumPy has no bf16 and no 8-bit
/// floats: they are written as f32, which holds them exactly, and read as what they were written
/// as; two-byte void ("V2"), as which the ml_dtypes package writes bf16, is read as bf16. Arrays of
/// either byte order, in C or Fortran order, are read. Complex numbers, texts, dates, records and
/// objects are errors.
#pragma once

#include <string>
#include <string_view>

#include "plugrad/nn/state.h"
#include "plugrad/tensor.h"

namespace plugrad {

/// The array of a .npy file (format 1.0 to 3.0); it stays mapped until its values are on the
/// device. Errors: User, naming the file and what is wrong (damaged, truncated, a dtype that
/// plugrad lacks).
PLUGRAD_API Tensor load_npy(const std::string& path, std::string_view device = {});
/// Writes one array, row-major; the file appears whole or not at all. Errors: User, with the file
/// and the reason.
PLUGRAD_API void save_npy(const Tensor& tensor, const std::string& path);

/// The arrays of a .npz file by name (without ".npy"), stored or deflated, checksums compared.
/// Errors: User, naming the file, the array and what is wrong; nothing is loaded then.
PLUGRAD_API nn::StateDict load_npz(const std::string& path, std::string_view device = {});
/// Writes arrays as numpy.savez does, or deflated as numpy.savez_compressed. Errors: User for a
/// name that occurs twice or is empty, and an archive of 4 GiB or more.
PLUGRAD_API void save_npz(const nn::StateDict& arrays, const std::string& path,
                          bool compressed = false);

}  // namespace plugrad
