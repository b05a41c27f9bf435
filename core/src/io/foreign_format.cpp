#include "io/foreign_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace plugrad::io {
namespace {

using namespace std::string_view_literals;

/// A format, how to come from it to tensors, and to an ONNX model.
struct Format {
  const char* what;
  const char* to_tensors;
  const char* to_model;
};

/// A format with the bytes at a place that tell it.
struct Magic {
  std::string_view bytes;
  size_t at;
  Format format;
};

constexpr char kFromTorch[] =
    "read it with torch.load(path, weights_only=True), whose result plugrad.nn.load_state_dict "
    "takes, or convert it with safetensors.torch.save_file";
constexpr char kFetch[] = "fetch the file itself with git lfs pull";

constexpr Format kPyTorch = {"a PyTorch file", kFromTorch,
                             "export the model with torch.onnx.export"};
constexpr Format kPickle = {"a pickle of Python, such as an old PyTorch file", kFromTorch,
                            "export a PyTorch model with torch.onnx.export"};
constexpr Format kPage = {"an HTML or XML page, perhaps in place of a download",
                          "fetch the file again", "fetch the model again"};
constexpr Format kIndex = {"an index of safetensors files", "load each file that it names",
                           "export the model as ONNX"};
constexpr Format kSafetensors = {"a safetensors file", "plugrad.nn.safe_load and nn::load read it",
                                 "it has tensors alone: export the model as ONNX"};
constexpr Format kNpz = {"a .npz archive", "load_npz reads it",
                         "it has arrays alone: export the model as ONNX"};
constexpr Format kText = {"a text", "", ""};

constexpr Magic kMagics[] = {
    {"version https://git-lfs", 0, {"a Git LFS pointer", kFetch, kFetch}},
    {"PK\x03\x04",
     0,
     {"a zip archive", "unpack it",
      "unpack the .onnx file, or export a PyTorch file with torch.onnx.export"}},
    {"\x1f\x8b", 0, {"compressed by gzip", "unpack it", "unpack it"}},
    {"\x93NUMPY",
     0,
     {"a .npy file", "load_npy reads it", "it has an array alone: export the model as ONNX"}},
    {"GGUF",
     0,
     {"a GGUF file", "load the safetensors files that it was made of",
      "export the model that it was made of as ONNX"}},
    {"\x89HDF\r\n\x1a\n",
     0,
     {"an HDF5 file", "read its arrays with h5py; plugrad.nn.load_state_dict takes them by name",
      "export its model as ONNX"}},
    {"ORTM",
     4,
     {"an ORT model", "load the .onnx file that it was made of",
      "load the .onnx file that it was made of"}},
    {"TFL3", 4, {"a TensorFlow Lite model", "export it as ONNX", "export it as ONNX"}},
};

bool equals_without_case(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

bool is_text(std::string_view bytes) {
  return std::ranges::none_of(bytes, [](unsigned char c) {
    return c == 0x7f || (c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\f');
  });
}

const Format* format_of_text(std::string_view begin) {
  const size_t first = begin.find_first_not_of(" \t\r\n");
  const std::string_view text = begin.substr(std::min(first, begin.size()));
  for (const std::string_view page : {"<!doctype html"sv, "<html"sv, "<head"sv, "<?xml"sv})
    if (std::ranges::equal(text.substr(0, page.size()), page, equals_without_case)) return &kPage;
  const bool is_index = text.starts_with('{') && text.find(".safetensors\"") != text.npos;
  return is_index ? &kIndex : &kText;
}

const Format* format_of(std::string_view begin, Wanted wanted) {
  if (begin.substr(std::min<size_t>(begin.size(), 8)).starts_with("{\""))
    return wanted == Wanted::Safetensors ? nullptr : &kSafetensors;
  const bool is_zip = begin.starts_with("PK\x03\x04");
  if (is_zip && begin.find("/data.pkl") != begin.npos) return &kPyTorch;
  if (is_zip && wanted == Wanted::Npz) return nullptr;  // its reader names the file inside
  if (is_zip && begin.find(".npy") != begin.npos) return &kNpz;
  for (const Magic& magic : kMagics)
    if (begin.size() > magic.at && begin.substr(magic.at).starts_with(magic.bytes))
      return &magic.format;
  if (begin.size() > 2 && begin[0] == '\x80' && begin[1] >= 2 && begin[1] <= 5) return &kPickle;
  return is_text(begin) ? format_of_text(begin) : nullptr;
}

}  // namespace

std::string foreign_format(std::span<const std::byte> file, Wanted wanted) {
  constexpr size_t kLooked = 4096;  // bytes: an index names its metadata first
  constexpr const char* kNames[] = {"safetensors file", ".npy file", ".npz archive", "ONNX model"};
  if (file.empty()) return "";
  const std::string_view begin(reinterpret_cast<const char*>(file.data()),
                               std::min(file.size(), kLooked));
  const Format* format = format_of(begin, wanted);
  if (!format) return "";
  const std::string_view advice = wanted == Wanted::Onnx ? format->to_model : format->to_tensors;
  return fmt::format("the file is {}, no {}{}{}", format->what, kNames[static_cast<int>(wanted)],
                     advice.empty() ? "" : "; ", advice);
}

}  // namespace plugrad::io
