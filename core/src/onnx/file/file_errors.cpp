#include "onnx/file/file_errors.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/check.h"

namespace plugrad::onnx {
namespace {

// The first bytes of a format, and how to come from it to an ONNX model.
struct Format {
  std::string_view begins;
  std::size_t at;
  const char* what;
};

using namespace std::string_view_literals;
constexpr Format kFormats[] = {
    {"version https://git-lfs", 0, "a Git LFS pointer; fetch the model itself with git lfs pull"},
    {"PK\x03\x04", 0,
     "a zip archive; unpack the .onnx file, or export a PyTorch file with torch.onnx.export"},
    {"\x1f\x8b", 0, "compressed by gzip; unpack it"},
    {"ORTM", 4, "an ORT model; load the .onnx file that it was made of"},
    {"TFL3", 4, "a TensorFlow Lite model; export it as ONNX"},
    {"\x89HDF\r\n\x1a\n", 0, "an HDF5 file; export its model as ONNX"},
};

bool equals_without_case(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

bool is_text(std::string_view bytes) {
  return std::ranges::none_of(bytes, [](unsigned char c) {
    return c == 0x7f || (c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\f');
  });
}

}  // namespace

std::string foreign_format(std::span<const std::byte> file) {
  if (file.empty()) return "the file is empty";
  const std::string_view begin(reinterpret_cast<const char*>(file.data()),
                               std::min<std::size_t>(file.size(), 512));
  for (const Format& format : kFormats)
    if (begin.size() > format.at && begin.substr(format.at).starts_with(format.begins))
      return fmt::format("the file is {}", format.what);
  if (!is_text(begin)) return "";
  const std::size_t first = begin.find_first_not_of(" \t\r\n");
  const std::string_view text = begin.substr(first == begin.npos ? begin.size() : first);
  for (const std::string_view page : {"<!doctype html"sv, "<html"sv, "<head"sv, "<?xml"sv})
    if (std::ranges::equal(text.substr(0, page.size()), page, equals_without_case))
      return "the file is an HTML or XML page, perhaps in place of a download; fetch the model "
             "again";
  return "the file is a text, no ONNX model";
}

void throw_with_name(const std::string& name, const Error& error) {
  std::string_view what = error.what();
  constexpr std::string_view kPrefix = "[onnx] ";
  if (what.starts_with(kPrefix)) what.remove_prefix(kPrefix.size());
  throw_error(error.kind(), fmt::format("[onnx] {}: {}", name, what), error.reason());
}

}  // namespace plugrad::onnx
