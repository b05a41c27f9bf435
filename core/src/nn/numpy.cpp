// Converts between tensors and NumPy's files.
#include "plugrad/numpy.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>

#include "base/check.h"
#include "base/file.h"
#include "io/foreign_format.h"
#include "io/npy.h"
#include "io/zip.h"
#include "tensor/sizes/sizes.h"

namespace plugrad {
namespace {

using io::NpyArray;
using Owner = std::shared_ptr<const void>;

bool is_aligned(const NpyArray& array) {
  return reinterpret_cast<uintptr_t>(array.bytes.data()) % size_of(array.dtype) == 0;
}

// A copy in native byte order. Any nonzero byte of a bool becomes 1.
std::shared_ptr<std::vector<std::byte>> in_order(const NpyArray& array) {
  tensor::require_host_memory("load_npy", array.shape, size_of(array.dtype));
  auto copy = std::make_shared<std::vector<std::byte>>(array.bytes.begin(), array.bytes.end());
  const size_t width = size_of(array.dtype);
  if (array.swapped)
    for (size_t at = 0; at + width <= copy->size(); at += width)
      std::reverse(copy->data() + at, copy->data() + at + width);
  if (array.dtype == DType::Bool)
    for (std::byte& value : *copy) value = std::byte(value != std::byte{0});
  return copy;
}

Tensor tensor_of(const NpyArray& array, const Owner& owner, std::string_view device) {
  std::vector<int64_t> shape = array.shape, order;
  if (array.fortran) {
    std::ranges::reverse(shape);
    for (size_t axis = shape.size(); axis-- > 0;) order.push_back(static_cast<int64_t>(axis));
  }
  Tensor tensor;
  if (array.swapped || array.dtype == DType::Bool || !is_aligned(array)) {
    const auto copy = in_order(array);
    tensor = Tensor::from_bytes(*copy, shape, array.dtype, device, copy);
  } else {
    tensor = Tensor::from_bytes(array.bytes, shape, array.dtype, device, owner);
  }
  return array.fortran ? tensor.permute(order) : tensor;
}

// Header and bytes of a tensor, in a dtype that NumPy has.
std::pair<std::string, std::vector<std::byte>> npy_parts(const Tensor& tensor) {
  DType dtype = strong(tensor.dtype());
  const bool lacks = is_float(dtype) && size_of(dtype) < 4 && dtype != DType::F16;
  if (lacks) dtype = DType::F32;
  const Tensor stored = tensor.detach().cast(dtype);
  return {io::npy_header(dtype, stored.bound_shape()), stored.to_bytes()};
}

void write(const char* function, const std::string& path,
           std::initializer_list<std::span<const std::byte>> parts) {
  const std::vector<std::span<const std::byte>> list(parts);
  const int error = replace_file(path, list);
  require(error == 0, "[{}] cannot write {}: {}; the file, if there was one, is as before",
          function, path, file_error_text(error));
}

constexpr std::string_view kEnding = ".npy";

/// Errors: User, where the file is of a known format other than .npz.
void refuse_foreign(const std::string& name, std::span<const std::byte> bytes) {
  const std::string foreign = io::foreign_format(bytes, io::Wanted::Npz);
  require(foreign.empty(), "{}: {}", name, foreign);
}

}  // namespace

Tensor load_npy(const std::string& path, std::string_view device) {
  const auto file = std::make_shared<MappedFile>(path, "load_npy");
  return tensor_of(io::parse_npy(file->bytes(), "[load_npy] " + path), file, device);
}

void save_npy(const Tensor& tensor, const std::string& path) {
  require(tensor.defined(), "[save_npy] the tensor is undefined");
  const auto [header, bytes] = npy_parts(tensor);
  write("save_npy", path, {std::as_bytes(std::span(header)), bytes});
}

nn::StateDict load_npz(const std::string& path, std::string_view device) {
  const auto file = std::make_shared<MappedFile>(path, "load_npz");
  const std::string name = "[load_npz] " + path;
  nn::StateDict arrays;
  std::set<std::string> names;
  const auto packed = file->bytes();
  if (packed.size() < 2 || std::memcmp(packed.data(), "PK", 2) != 0) refuse_foreign(name, packed);
  const io::ZipReader archive(packed, name);
  for (const io::ZipEntry& entry : archive.entries()) {
    if (!entry.name.ends_with(kEnding)) refuse_foreign(name, packed);
    require(entry.name.ends_with(kEnding), "{}: it holds \"{}\", which is no .npy array", name,
            entry.name);
    const std::string key = entry.name.substr(0, entry.name.size() - kEnding.size());
    require(names.insert(key).second, "{}: it holds \"{}\" twice", name, key);
    const auto bytes = std::make_shared<std::vector<std::byte>>(archive.unpack(entry));
    const std::string array_name = name + ": \"" + key + "\"";
    arrays.emplace_back(key, tensor_of(io::parse_npy(*bytes, array_name), bytes, device));
  }
  return arrays;
}

void save_npz(const nn::StateDict& arrays, const std::string& path, bool compressed) {
  io::ZipWriter archive;
  std::set<std::string> names;
  for (const auto& [name, tensor] : arrays) {
    require(tensor.defined(), "[save_npz] \"{}\" is undefined", name);
    require(
        !name.empty() && names.insert(name).second,
        "[save_npz] the name \"{}\" is empty or occurs twice; give each array a name of its own",
        name);
    auto [header, bytes] = npy_parts(tensor);
    const auto begin = std::as_bytes(std::span(header));
    bytes.insert(bytes.begin(), begin.begin(), begin.end());
    archive.add(name + std::string(kEnding), std::move(bytes), compressed);
  }
  write("save_npz", path, {archive.finish()});
}

}  // namespace plugrad
