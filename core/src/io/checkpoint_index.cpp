#include "io/checkpoint_index.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/file.h"
#include "io/safetensors.h"
#include "io/unique_keys.h"

namespace plugrad::io {
namespace {

using nlohmann::json;

constexpr std::string_view kFormat = "plugrad-sharded-checkpoint";
constexpr uint64_t kVersion = 1;
constexpr int kMostIndexDepth = 8;  // nesting levels of the JSON text; the format has 6
constexpr std::string_view kPrefix = "part-", kEnding = ".safetensors";
constexpr size_t kSaveDigits = 16;

// Reads one index. Errors contain its path.
class IndexReader {
 public:
  explicit IndexReader(const std::string& folder)
      : path_(fmt::format("{}/{}", folder, kIndexName)) {}

  CheckpointIndex read() {
    const json text = parse();
    if (!text.is_object() || text.value("format", json()) != json(kFormat))
      refuse("it is no index of a sharded checkpoint");
    const json version = text.value("version", json());
    require(version == json(kVersion),
            "[load] {}: the checkpoint is of format version {}, this plugrad reads version {}",
            path_, version.dump(), kVersion);
    CheckpointIndex index;
    index.save = text_of(text, "save");
    for (const json& file : field(text, "files", json::value_t::array))
      index.files.push_back(file_of(file, index.save));
    for (const auto& [name, entry] : field(text, "tensors", json::value_t::object).items())
      index.tensors.push_back(tensor_of(name, entry, index.files.size()));
    return index;
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::User, "[load] {}: {}; the index is damaged", path_,
         fmt::format(format, std::forward<Args>(args)...));
  }

  json parse() {
    const auto bytes = read_file(path_);
    require(bytes.has_value(), "[load] cannot read {}: {}{}", path_, file_error_text(errno),
            errno == ENOENT    ? "; there is no complete sharded checkpoint in this folder"
            : errno == ENOTDIR ? "; nn::load reads a checkpoint that is a single file"
                               : "");
    const char* const text = reinterpret_cast<const char*>(bytes->data());
    UniqueKeys keys;
    const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
      if (depth > kMostIndexDepth) refuse("it nests too deeply");
      if (!keys.add(event, parsed))
        refuse("the name \"{}\" occurs twice", parsed.get<std::string>());
      return true;
    };
    try {
      return json::parse(text, text + bytes->size(), check);
    } catch (const json::exception& error) {
      refuse("it is not valid JSON ({})", error.what());
    }
  }

  const json& field(const json& entry, const char* name, json::value_t type) const {
    const auto found = entry.is_object() ? entry.find(name) : entry.end();
    if (found == entry.end() || found->type() != type)
      refuse("\"{}\" is missing, or is no {}", name, json(type).type_name());
    return *found;
  }

  std::string text_of(const json& entry, const char* name) const {
    return field(entry, name, json::value_t::string).get<std::string>();
  }

  uint64_t number_of(const json& entry, const char* name) const {
    return field(entry, name, json::value_t::number_unsigned).get<uint64_t>();
  }

  std::vector<int64_t> sizes_of(const json& entry, const char* name) const {
    std::vector<int64_t> sizes;
    for (const json& size : field(entry, name, json::value_t::array)) {
      if (!size.is_number_unsigned() || size.get<uint64_t>() > INT64_MAX)
        refuse("\"{}\" is {}, not a list of sizes", name, entry[name].dump());
      sizes.push_back(size.get<int64_t>());
    }
    return sizes;
  }

  StoredFile file_of(const json& entry, const std::string& save) const {
    StoredFile file{text_of(entry, "name"), number_of(entry, "size")};
    if (save.empty() || save_of(file.name) != save || !file.name.ends_with(kEnding))
      refuse("the file \"{}\" is no part of the save \"{}\"", file.name, save);
    return file;
  }

  StoredTensor tensor_of(const std::string& name, const json& entry, size_t files) const {
    const std::string dtype = text_of(entry, "dtype");
    StoredTensor tensor{name, dtype_from_safetensors(dtype), sizes_of(entry, "shape"), {}};
    if (tensor.dtype == DType::Void)
      refuse("tensor \"{}\" is of the dtype \"{}\", which is not known", name, dtype);
    int64_t elements = size_of(tensor.dtype);
    for (const int64_t size : tensor.shape)
      if (__builtin_mul_overflow(elements, size, &elements))
        refuse("tensor \"{}\" has the impossible shape {}", name, entry["shape"].dump());
    for (const json& part : field(entry, "parts", json::value_t::array))
      tensor.parts.push_back(part_of(tensor, part, files));
    check_coverage(tensor);
    return tensor;
  }

  StoredPart part_of(const StoredTensor& tensor, const json& entry, size_t files) const {
    StoredPart part{number_of(entry, "file"),
                    text_of(entry, "key"),
                    {sizes_of(entry, "offset"), sizes_of(entry, "shape")}};
    const Box& box = part.box;
    bool is_inside = part.file < files && box.offset.size() == tensor.shape.size() &&
                     box.shape.size() == tensor.shape.size();
    for (size_t d = 0; is_inside && d < tensor.shape.size(); ++d)
      is_inside = box.offset[d] <= tensor.shape[d] &&
                  box.shape[d] <= tensor.shape[d] - box.offset[d] && box.shape[d] > 0;
    if (!is_inside)
      refuse("tensor \"{}\" of shape {} has the impossible part {}", tensor.name,
             json(tensor.shape).dump(), entry.dump());
    return part;
  }

  // Parts that are inside, do not overlap, and have as many elements as the tensor, cover it.
  void check_coverage(const StoredTensor& tensor) const {
    int64_t elements = 0;
    std::vector<const Box*> order;
    for (const StoredPart& part : tensor.parts) order.push_back(&part.box);
    std::ranges::sort(order, {}, [](const Box* box) { return box->offset; });
    for (size_t i = 0; i < order.size(); ++i) {
      if (__builtin_add_overflow(elements, order[i]->elements(), &elements)) elements = INT64_MAX;
      // Later parts begin at or behind this one's begin along the first dimension.
      for (size_t j = i + 1; j < order.size() && begins_within(*order[j], *order[i]); ++j)
        if (overlap(*order[i], *order[j])) refuse("parts of tensor \"{}\" overlap", tensor.name);
    }
    if (elements != Box{{}, tensor.shape}.elements())
      refuse("the parts of tensor \"{}\" have {} elements, its shape {} has {}", tensor.name,
             elements, json(tensor.shape).dump(), Box{{}, tensor.shape}.elements());
  }

  static bool begins_within(const Box& later, const Box& box) {
    return box.offset.empty() || later.offset[0] < box.offset[0] + box.shape[0];
  }

  std::string path_;
};

}  // namespace

int64_t Box::elements() const {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

Box intersect(const Box& a, const Box& b) {
  Box both = a;
  for (size_t d = 0; d < a.shape.size(); ++d) {
    both.offset[d] = std::max(a.offset[d], b.offset[d]);
    const int64_t end = std::min(a.offset[d] + a.shape[d], b.offset[d] + b.shape[d]);
    both.shape[d] = std::max<int64_t>(end - both.offset[d], 0);
  }
  return both;
}

bool overlap(const Box& a, const Box& b) {
  for (size_t d = 0; d < a.shape.size(); ++d)
    if (std::max(a.offset[d], b.offset[d]) >=
        std::min(a.offset[d] + a.shape[d], b.offset[d] + b.shape[d]))
      return false;
  return true;
}

CheckpointIndex read_checkpoint_index(const std::string& folder) {
  return IndexReader(folder).read();
}

std::string to_text(const CheckpointIndex& index) {
  json files = json::array(), tensors = json::object();
  for (const StoredFile& file : index.files)
    files.push_back({{"name", file.name}, {"size", file.size_bytes}});
  for (const StoredTensor& tensor : index.tensors) {
    json parts = json::array();
    for (const StoredPart& part : tensor.parts)
      parts.push_back({{"file", part.file},
                       {"key", part.key},
                       {"offset", part.box.offset},
                       {"shape", part.box.shape}});
    tensors[tensor.name] = {
        {"dtype", safetensors_name(tensor.dtype)}, {"shape", tensor.shape}, {"parts", parts}};
  }
  const json text = {{"format", kFormat},
                     {"version", kVersion},
                     {"save", index.save},
                     {"files", files},
                     {"tensors", tensors}};
  try {
    return text.dump() + "\n";
  } catch (const json::exception& error) {
    fail(ErrorKind::User, "[save] a name is not UTF-8 ({})", error.what());
  }
}

std::string part_name(size_t rank, size_t ranks, std::string_view save) {
  return fmt::format("{}{:05}-of-{:05}-{}{}", kPrefix, rank, ranks, save, kEnding);
}

std::string_view save_of(std::string_view file_name) {
  const size_t end = file_name.find(kEnding);
  if (!file_name.starts_with(kPrefix) || end == file_name.npos || end < kSaveDigits) return {};
  const std::string_view save = file_name.substr(end - kSaveDigits, kSaveDigits);
  const std::string_view before = file_name.substr(0, end - kSaveDigits);
  const bool is_part =
      before.find("-of-") != before.npos &&
      before.substr(kPrefix.size()).find_first_not_of("0123456789-of") == before.npos &&
      save.find_first_not_of("0123456789abcdef") == save.npos;
  return is_part ? save : std::string_view();
}

}  // namespace plugrad::io
