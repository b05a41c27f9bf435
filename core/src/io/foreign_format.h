// Recognises the formats of files that a reader refuses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/internal.h"

namespace plugrad::io {

/// The format that the reader expects.
enum class Wanted : uint8_t { Safetensors, Npy, Npz, Onnx };

/// "the file is a PyTorch file, no safetensors file; …", with how to come from it to one, by the
/// first bytes of a refused file. Empty where they tell nothing, as in a damaged file of the format.
PLUGRAD_INTERNAL std::string foreign_format(std::span<const std::byte> file, Wanted wanted);

}  // namespace plugrad::io
