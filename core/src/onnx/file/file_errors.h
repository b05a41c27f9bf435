// Errors of reading a model's file: which file, and what it is where it is no model.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "plugrad/error.h"

namespace plugrad::onnx {

/// Recognises other formats by their first bytes, for errors: "the file is a Git LFS pointer; …".
/// Empty if the format is not known.
std::string foreign_format(std::span<const std::byte> file);

/// Throws the error with the file's name: "[onnx] NAME: what".
[[noreturn]] void throw_with_name(const std::string& name, const Error& error);

/// The result of `read`, whose errors get the file's name.
template <class Read>
auto with_name(const std::string& name, Read read) {
  try {
    return read();
  } catch (const Error& error) {
    throw_with_name(name, error);
  }
}

}  // namespace plugrad::onnx
