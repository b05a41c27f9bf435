// Errors of reading a model's file: which file.
#pragma once

#include <string>

#include "plugrad/error.h"

namespace plugrad::onnx {

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
