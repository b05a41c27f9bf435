#include "onnx/file/file_errors.h"

#include <string_view>

#include "base/check.h"

namespace plugrad::onnx {

void throw_with_name(const std::string& name, const Error& error) {
  std::string_view what = error.what();
  constexpr std::string_view kPrefix = "[onnx] ";
  if (what.starts_with(kPrefix)) what.remove_prefix(kPrefix.size());
  throw_error(error.kind(), fmt::format("[onnx] {}: {}", name, what), error.reason());
}

}  // namespace plugrad::onnx
