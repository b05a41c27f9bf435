// Layout of an entry: the fields of Program in order; texts, lists and bytes behind their length.
#include "engine/program_cache.h"

#include <cstring>
#include <type_traits>

#include "base/disk_cache.h"
#include "base/hash.h"
#include "base/log.h"
#include "plugrad/error.h"
#include "plugrad/plugin_api/kernel_ir.h"

namespace plugrad::engine {
namespace {

constexpr int kFormat = 1;  // raised when the layout changes

class Writer {
 public:
  template <class T>
    requires std::is_arithmetic_v<T>
  void operator()(const T& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void operator()(std::span<const std::byte> bytes) {
    (*this)(uint64_t{bytes.size()});
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void operator()(std::string_view text) { (*this)(as_bytes(text)); }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Throws std::out_of_range where the bytes end too early.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  void operator()(T& value) {
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
  }
  void operator()(std::vector<std::byte>& out) {
    const auto bytes = sized();
    out.assign(bytes.begin(), bytes.end());
  }
  void operator()(std::string& out) {
    const auto bytes = sized();
    out.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::span<const std::byte> sized() {
    uint64_t size = 0;
    (*this)(size);
    return take(size);
  }
  std::span<const std::byte> take(uint64_t size) {
    if (size > rest_.size()) throw std::out_of_range("a program ends too early");
    const auto taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }
  std::span<const std::byte> rest_;
};

// The one list of fields, for both directions.
template <class Visit, class SomeProgram>
void each_field(Visit& visit, SomeProgram& program, auto& optimisations) {
  auto& code = program.code;
  visit(code.name);
  visit(code.colored_name);
  visit(code.ir);
  for (auto& count : code.group_count) visit(count);
  for (auto& size : code.local_size) visit(size);
  visit(optimisations);
  visit(code.estimates.flops);
  visit(code.estimates.bytes);
  visit(program.source);
}

bool is_ir(std::span<const std::byte> ir) {
  pgr_ir_header header;
  if (ir.size() < sizeof header) return false;
  std::memcpy(&header, ir.data(), sizeof header);
  return header.magic == PGR_IR_MAGIC;
}

}  // namespace

std::string program_key(const uint64_t (&ast_hash)[2], std::string_view options,
                        runtime::Device& device) {
  return fmt::format("program {}/{:016x}{:016x}/{}/{}", kFormat, ast_hash[0], ast_hash[1], options,
                     device.code_identity());
}

std::optional<Program> find_program(const std::string& key) {
  const auto found = disk_cache().get(as_bytes(key));
  if (!found) return std::nullopt;
  try {
    Program program;
    std::string optimisations;
    Reader read(*found);
    each_field(read, program, optimisations);
    if (!read.at_end() || !is_ir(program.code.ir)) throw std::out_of_range("no kernel IR");
    program.code.optimisations = codegen::parse_optimisations(optimisations);
    return program;
  } catch (const std::exception& e) {  // its checksum was right: it was written so
    log_line(LogLevel::Info, fmt::format("a cached program is not usable: {}", e.what()));
    disk_cache().remove(as_bytes(key));
    return std::nullopt;
  }
}

void keep_program(const std::string& key, const Program& program) {
  Writer write;
  const std::string optimisations = codegen::to_string(program.code.optimisations);
  each_field(write, program, optimisations);
  disk_cache().put(as_bytes(key), write.bytes());
}

}  // namespace plugrad::engine
