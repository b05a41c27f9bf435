#include "onnx/import/constants.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/check.h"
#include "ir/round.h"
#include "onnx/import/blocked_channels.h"
#include "onnx/import/emulated.h"

namespace plugrad::onnx {
namespace {

constexpr int64_t kMostKnown = 4096;  // elements of a constant that the host may compute with

// Errors: User for negative sizes and products beyond 2^62 bytes.
int64_t count_of(const TensorMessage& tensor) {
  int64_t count = 1;
  for (const int64_t size : tensor.dims)
    require(size >= 0 && !__builtin_mul_overflow(count, size, &count) && count < int64_t{1} << 59,
            "[onnx] tensor \"{}\" has the shape {}, which is negative or too large", tensor.name,
            to_string(tensor.dims));
  return count;
}

// The elements of a type that is emulated, the lowest bits of a byte first, in memory of the dtype.
std::vector<std::byte> unpacked_elements(std::span<const std::byte> packed, int64_t count,
                                         DataType type, DType dtype) {
  const int bits = bits_of(type), per_byte = 8 / bits;
  std::vector<std::byte> elements(static_cast<size_t>(count) * size_of(dtype));
  for (int64_t i = 0; i < count; ++i) {
    const auto byte = std::to_integer<unsigned>(packed[static_cast<size_t>(i / per_byte)]);
    const double value = decoded(byte >> (i % per_byte * bits) & ((1U << bits) - 1), type);
    std::byte* const to = elements.data() + static_cast<size_t>(i) * size_of(dtype);
    if (dtype == DType::F32) {
      const auto number = static_cast<float>(value);
      std::memcpy(to, &number, sizeof number);
    } else {
      *to = static_cast<std::byte>(static_cast<int>(value));
    }
  }
  return elements;
}

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

// The elements that the message has as numbers, in the form that raw bytes would have.
std::vector<std::byte> bytes_of_numbers(const TensorMessage& tensor, size_t element_bytes) {
  if (!tensor.floats.empty()) return bytes_of(tensor.floats);
  if (!tensor.doubles.empty()) return bytes_of(tensor.doubles);
  std::vector<std::byte> bytes(tensor.integers.size() * element_bytes);
  for (size_t i = 0; i < tensor.integers.size(); ++i)
    std::memcpy(bytes.data() + i * element_bytes, &tensor.integers[i], element_bytes);
  return bytes;
}

// Hugging Face's cache of a model has the files of a revision in snapshots/REVISION, as links to files
// of the folder blobs beside snapshots, which holds nothing but files of that model.
bool is_in_same_cache(const std::filesystem::path& folder, const std::filesystem::path& location,
                      const std::filesystem::path& target) {
  if (location.is_absolute() || *location.lexically_normal().begin() == "..") return false;
  for (auto at = folder; at.has_relative_path(); at = at.parent_path())
    if (at.filename() == "snapshots") return target.parent_path() == at.parent_path() / "blobs";
  return false;
}

}  // namespace

tensor::HostValues values_in_memory(std::span<const std::byte> bytes, Shape shape, DType dtype) {
  tensor::HostValues values{std::move(shape), dtype, {}};
  const size_t size = size_of(dtype);
  for (size_t at = 0; at + size <= bytes.size(); at += size)
    values.bits.push_back(tensor::bits_in_memory(bytes.data() + at, dtype));
  return values;
}

void ModelFiles::read_constants(const GraphMessage& graph) {
  channels_per_block_ = onnx::channels_per_block(graph);
  add_constants(graph);
}

void ModelFiles::add_constants(const GraphMessage& graph) {
  const auto add = [&](const auto& tensor) { constants_.emplace(&tensor, read(tensor)); };
  std::ranges::for_each(graph.constants, add);
  std::ranges::for_each(graph.sparse_constants, add);
  for (const auto& [tensor, node] : blocked_weights(graph)) {
    const std::vector<float> given = constants_.at(tensor).tensor().to_vector<float>();
    constants_[tensor] =
        Tensor::from(in_order(given, *tensor, *node, channels_per_block_), tensor->dims);
  }
  for (const NodeMessage& node : graph.nodes)
    for (const AttributeMessage& attribute : node.attributes) {
      std::ranges::for_each(attribute.tensors, add);
      std::ranges::for_each(attribute.sparse_tensors, add);
      for (const auto& inner : attribute.graphs) add_constants(*inner);
    }
}

Value ModelFiles::constant(const TensorMessage& tensor) {
  const auto known = constants_.find(&tensor);
  return known != constants_.end() ? known->second : read(tensor);
}

Value ModelFiles::constant(const SparseTensorMessage& tensor) {
  const auto known = constants_.find(&tensor);
  return known != constants_.end() ? known->second : read(tensor);
}

Value ModelFiles::read(const TensorMessage& tensor) {
  const int64_t count = count_of(tensor);
  if (tensor.type == DataType::String) {
    require(static_cast<int64_t>(tensor.strings.size()) == count,
            "[onnx] tensor \"{}\" has {} strings, its shape {} needs {}", tensor.name,
            tensor.strings.size(), to_string(tensor.dims), count);
    return Strings{tensor.dims, {tensor.strings.begin(), tensor.strings.end()}};
  }
  const auto dtype = dtype_of(tensor.type);
  if (!dtype)
    fail(ErrorKind::Unsupported, "[onnx] tensor \"{}\" is of type {}, which no dtype holds",
         tensor.name, name_of(tensor.type));
  const bool is_unpacked = is_emulated(tensor.type);
  const int bits = is_unpacked ? bits_of(tensor.type) : static_cast<int>(size_of(*dtype)) * 8;
  std::shared_ptr<const void> owner = owner_;
  std::vector<std::byte> made;
  std::span<const std::byte> bytes;
  if (tensor.external)
    bytes = external(tensor, owner);
  else if (tensor.raw)
    bytes = *tensor.raw;
  else
    bytes = made = bytes_of_numbers(tensor, std::max<size_t>(1, static_cast<size_t>(bits) / 8));
  const auto needed = static_cast<size_t>((count * bits + 7) / 8);
  require(bytes.size() == needed, "[onnx] tensor \"{}\" has {} bytes, {} elements of {} need {}",
          tensor.name, bytes.size(), count, name_of(tensor.type), needed);
  if (is_unpacked) bytes = made = unpacked_elements(bytes, count, tensor.type, *dtype);
  if (!made.empty()) owner = nullptr;
  Tensor whole = Tensor::from_bytes(bytes, tensor.dims, *dtype, {}, std::move(owner));
  if (count > kMostKnown) return Value(std::move(whole)).as(tensor.type);
  return Value::known(values_in_memory(bytes, tensor.dims, *dtype), std::move(whole))
      .as(tensor.type);
}

// Indices are places in the flat tensor, or one list of coordinates a value.
Value ModelFiles::read(const SparseTensorMessage& tensor) {
  const Value given = read(tensor.values), at = read(tensor.indices);
  const size_t rank = tensor.dims.size();
  const Shape places = at.tensor().shape();
  Tensor flat = at.tensor();
  if (places.size() == 2) {
    require(places[1] == static_cast<int64_t>(rank),
            "[onnx] sparse tensor \"{}\" of {} axes has indices of {} coordinates",
            tensor.values.name, rank, places[1]);
    std::vector<int64_t> strides(rank, 1);
    for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * tensor.dims[i];
    flat = (flat * Tensor::from(strides)).sum(1);
  }
  TensorMessage dense;
  dense.dims = tensor.dims;
  dense.name = tensor.values.name;
  const Tensor zeros = Tensor::zeros({count_of(dense)}, given.tensor().dtype());
  return zeros.scatter(0, flat, given.tensor()).reshape(tensor.dims);
}

std::span<const std::byte> ModelFiles::external(const TensorMessage& tensor,
                                                std::shared_ptr<const void>& owner) {
  namespace fs = std::filesystem;
  const std::string location(tensor.external->location);
  require(!folder_.empty(),
          "[onnx] tensor \"{}\" is in the file \"{}\", but the model was not loaded from a folder",
          tensor.name, location);
  auto known = files_.find(location);
  if (known == files_.end()) {
    std::error_code error;
    const fs::path folder = fs::canonical(folder_, error);
    const fs::path path = fs::weakly_canonical(folder / location, error);
    const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
    require(
        !location.empty() && ((end == folder.end() && rest != path.end()) ||
                              is_in_same_cache(folder, location, path)),
        "[onnx] tensor \"{}\" is in \"{}\", which is outside the model's folder {}; copy it there",
        tensor.name, location, folder_);
    known = files_.emplace(location, std::make_shared<MappedFile>(path.string(), "onnx")).first;
  }
  owner = known->second;
  const auto all = known->second->bytes();
  const auto offset = static_cast<size_t>(tensor.external->offset);
  require(offset <= all.size(), "[onnx] tensor \"{}\" begins at byte {} of \"{}\", which has {}",
          tensor.name, offset, location, all.size());
  const size_t length =
      tensor.external->length ? static_cast<size_t>(*tensor.external->length) : all.size() - offset;
  require(length <= all.size() - offset,
          "[onnx] tensor \"{}\" needs {} bytes from byte {} of \"{}\", which has {}", tensor.name,
          length, offset, location, all.size());
  return all.subspan(offset, length);
}

}  // namespace plugrad::onnx
