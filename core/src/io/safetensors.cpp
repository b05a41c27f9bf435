#include "io/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/check.h"
#include "io/foreign_format.h"
#include "io/unique_keys.h"

namespace plugrad::io {
namespace {

using nlohmann::json;
static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // bytes; the format's own limit
constexpr int kMostDepth = 3;                      // nesting levels: file, tensor, shape
constexpr size_t kMostNumbers = 64;                // numbers in a shape or in offsets
constexpr char kMetadataKey[] = "__metadata__";

struct DTypeName {
  DType dtype;
  const char* name;
};
constexpr DTypeName kDTypeNames[] = {
    {DType::Bool, "BOOL"}, {DType::I8, "I8"},          {DType::U8, "U8"},
    {DType::I16, "I16"},   {DType::U16, "U16"},        {DType::I32, "I32"},
    {DType::U32, "U32"},   {DType::I64, "I64"},        {DType::U64, "U64"},
    {DType::F16, "F16"},   {DType::BF16, "BF16"},      {DType::F32, "F32"},
    {DType::F64, "F64"},   {DType::F8E4M3, "F8_E4M3"}, {DType::F8E5M2, "F8_E5M2"},
};

// Reads one file. Errors contain its path.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& path)
      : path_(path.string()), mapping_(std::make_shared<MappedFile>(path_, "load")) {}

  SafetensorsFile read() {
    json header = parse_header();
    SafetensorsFile file{.arrays = {}, .metadata = {}, .mapping = mapping_};
    for (const auto& [name, entry] : header.items()) {
      if (name == kMetadataKey)
        file.metadata = read_metadata(entry);
      else
        file.arrays.push_back(read_array(name, entry));
    }
    check_coverage(file.arrays);
    return file;
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    const std::string foreign = foreign_format(mapping_->bytes(), Wanted::Safetensors);
    require(foreign.empty(), "[load] {}: {}", path_, foreign);
    fail(ErrorKind::User, "[load] {}: {}; the file is damaged or is no safetensors file", path_,
         fmt::format(format, std::forward<Args>(args)...));
  }

  json parse_header() {
    auto bytes = mapping_->bytes();
    if (bytes.size() < 8) refuse("{} bytes are too few for a header", bytes.size());
    uint64_t size = 0;
    std::memcpy(&size, bytes.data(), 8);
    if (size > kMaxHeaderBytes)
      refuse("a header of {} bytes is announced, at most {} are allowed", size, kMaxHeaderBytes);
    if (size > bytes.size() - 8)
      refuse("truncated: a header of {} bytes is announced, {} follow", size, bytes.size() - 8);
    const char* text = reinterpret_cast<const char*>(bytes.data()) + 8;
    if (size == 0 || text[0] != '{') refuse("the header does not begin with '{{'");
    data_ = bytes.subspan(8 + size);
    try {
      return json::parse(text, text + size, structure_check());
    } catch (const json::exception& error) {
      refuse("the header is not valid JSON ({})", error.what());
    }
  }

  // Refuses equal keys, of which the parser would silently keep the last, and deep nesting and long
  // lists, which need many times their text in memory.
  json::parser_callback_t structure_check() {
    return [this](int depth, json::parse_event_t event, json& parsed) {
      const bool is_start =
          event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
      if (is_start && depth >= kMostDepth) refuse("the header nests too deeply");
      if (event == json::parse_event_t::array_start) numbers_ = 0;
      if (event == json::parse_event_t::value && depth == kMostDepth && ++numbers_ > kMostNumbers)
        refuse("the header lists more than {} numbers in one place", kMostNumbers);
      if (!keys_.add(event, parsed))
        refuse("the name \"{}\" occurs twice in the header", parsed.get<std::string>());
      return true;
    };
  }

  Metadata read_metadata(const json& entry) {
    if (!entry.is_object()) refuse("{} is not an object", kMetadataKey);
    Metadata metadata;
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) refuse("the metadata \"{}\" is not a text", key);
      metadata[key] = value.get<std::string>();
    }
    return metadata;
  }

  NamedArray read_array(const std::string& name, const json& entry) {
    if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") ||
        !entry.contains("data_offsets"))
      refuse("tensor \"{}\" lacks dtype, shape or data_offsets", name);
    NamedArray array{
        .name = name, .dtype = read_dtype(name, entry["dtype"]), .shape = {}, .bytes = {}};
    uint64_t size_bytes = read_shape(name, entry["shape"], size_of(array.dtype), array.shape);
    auto [begin, end] = read_offsets(name, entry["data_offsets"]);
    if (begin > end || end > data_.size())
      refuse("tensor \"{}\" lies at bytes {} to {}, outside the {} bytes of data", name, begin, end,
             data_.size());
    if (end - begin != size_bytes)
      refuse("tensor \"{}\" has {} bytes, but its shape and dtype need {}", name, end - begin,
             size_bytes);
    array.bytes = data_.subspan(begin, size_bytes);
    return array;
  }

  DType read_dtype(const std::string& name, const json& value) {
    if (value.is_string())
      if (const DType dtype = dtype_from_safetensors(value.get_ref<const std::string&>());
          dtype != DType::Void)
        return dtype;
    refuse("tensor \"{}\" has the dtype {}, which is not known", name, value.dump());
  }

  // Fills `shape`; returns the size in bytes.
  uint64_t read_shape(const std::string& name, const json& value, uint64_t element_bytes,
                      std::vector<int64_t>& shape) {
    if (!value.is_array()) refuse("tensor \"{}\" has the shape {}, not a list", name, value.dump());
    uint64_t size_bytes = element_bytes;
    for (const json& size : value) {
      uint64_t extent = size.is_number_unsigned() ? size.get<uint64_t>() : UINT64_MAX;
      if (extent > INT64_MAX || __builtin_mul_overflow(size_bytes, extent, &size_bytes))
        refuse("tensor \"{}\" has the impossible shape {}", name, value.dump());
      shape.push_back(static_cast<int64_t>(extent));
    }
    return size_bytes;
  }

  std::pair<uint64_t, uint64_t> read_offsets(const std::string& name, const json& value) {
    if (!value.is_array() || value.size() != 2 || !value[0].is_number_unsigned() ||
        !value[1].is_number_unsigned())
      refuse("tensor \"{}\" has the data_offsets {}, not two offsets", name, value.dump());
    return {value[0].get<uint64_t>(), value[1].get<uint64_t>()};
  }

  // Checks that the arrays cover the data exactly, one after another.
  void check_coverage(const std::vector<NamedArray>& arrays) {
    std::vector<const NamedArray*> order;
    for (const NamedArray& array : arrays) order.push_back(&array);
    auto begin_of = [&](const NamedArray* a) { return a->bytes.data() - data_.data(); };
    std::sort(order.begin(), order.end(), [&](auto* a, auto* b) {
      return std::pair(begin_of(a), a->bytes.size()) < std::pair(begin_of(b), b->bytes.size());
    });
    int64_t end = 0;
    const NamedArray* before = nullptr;
    for (const NamedArray* array : order) {
      if (begin_of(array) < end)
        refuse("tensors \"{}\" and \"{}\" overlap", before->name, array->name);
      if (begin_of(array) > end)
        refuse("bytes {} to {} of the data belong to no tensor", end, begin_of(array));
      end = begin_of(array) + static_cast<int64_t>(array->bytes.size());
      before = array;
    }
    if (static_cast<uint64_t>(end) != data_.size())
      refuse("{} bytes follow the last tensor", data_.size() - static_cast<uint64_t>(end));
  }

  std::string path_;
  std::shared_ptr<const MappedFile> mapping_;
  std::span<const std::byte> data_;
  UniqueKeys keys_;
  size_t numbers_ = 0;  // numbers so far in the list being parsed
};

std::string_view name_of_dtype(const NamedArray& array) {
  const std::string_view name = safetensors_name(array.dtype);
  require(!name.empty(), "[save] tensor \"{}\" is of dtype {}, which the safetensors format lacks",
          array.name, plugrad::name_of(array.dtype));
  return name;
}

void check_size(const NamedArray& array) {
  uint64_t size_bytes = size_of(array.dtype);
  for (int64_t extent : array.shape) size_bytes *= static_cast<uint64_t>(extent);
  ensure(size_bytes == array.bytes.size(), "tensor \"{}\" has {} bytes, its shape needs {}",
         array.name, array.bytes.size(), size_bytes);
}

std::vector<const NamedArray*> order_in_file(std::span<const NamedArray> arrays) {
  std::vector<const NamedArray*> order;
  std::set<std::string_view> names;
  for (const NamedArray& array : arrays) {
    require(array.name != kMetadataKey && names.insert(array.name).second,
            "[save] the name \"{}\" {}; give each tensor a name of its own", array.name,
            array.name == kMetadataKey ? "is reserved by the format" : "occurs twice");
    check_size(array);
    order.push_back(&array);
  }
  std::sort(order.begin(), order.end(), [](const NamedArray* a, const NamedArray* b) {
    return std::pair(size_of(b->dtype), std::string_view(a->name)) <
           std::pair(size_of(a->dtype), std::string_view(b->name));
  });
  return order;
}

}  // namespace

std::string_view safetensors_name(DType dtype) {
  for (const DTypeName& row : kDTypeNames)
    if (row.dtype == dtype) return row.name;
  return {};
}

DType dtype_from_safetensors(std::string_view name) {
  for (const DTypeName& row : kDTypeNames)
    if (row.name == name) return row.dtype;
  return DType::Void;
}

SafetensorsFile read_safetensors(const std::filesystem::path& path) {
  return Reader(path).read();
}

void write_safetensors(const std::filesystem::path& path, std::span<const NamedArray> arrays,
                       const Metadata& metadata) {
  json header = json::object();
  if (!metadata.empty()) header[kMetadataKey] = metadata;
  std::vector<const NamedArray*> order = order_in_file(arrays);
  uint64_t offset = 0;
  for (const NamedArray* array : order) {
    uint64_t end = offset + array->bytes.size();
    header[array->name] = {
        {"dtype", name_of_dtype(*array)}, {"shape", array->shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception& error) {
    fail(ErrorKind::User, "[save] a name or metadata is not UTF-8 ({})", error.what());
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');  // aligns the data for every dtype
  uint64_t size = text.size();
  require(size <= kMaxHeaderBytes,
          "[save] {}: the names and shapes need a header of {} bytes, at most {} "
          "are allowed",
          path.string(), size, kMaxHeaderBytes);
  std::vector<std::span<const std::byte>> parts = {std::as_bytes(std::span(&size, 1)),
                                                   std::as_bytes(std::span(text))};
  for (const NamedArray* array : order) parts.push_back(array->bytes);
  int error = replace_file(path.string(), parts);
  require(error == 0, "[save] cannot write {}: {}; the file, if there was one, is as before",
          path.string(), file_error_text(error));
}

}  // namespace plugrad::io
