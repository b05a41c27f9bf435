// Layout of an entry: the fields of Program in order; texts, lists and bytes have a length prefix.
#include "engine/kernels/program_cache.h"

#include <cstring>
#include <type_traits>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/storage/disk_cache.h"
#include "plugrad/error.h"
#include "plugrad/plugin_api/kernel_ir.h"

namespace plugrad::engine {
namespace {

constexpr int kProgramFormat = 3;  // increase when the layout changes

struct PutProgram {
  ByteWriter bytes;
  void operator()(const std::string& text) { bytes.put_text(text); }
  void operator()(const std::vector<std::byte>& from) { bytes.put_bytes(from); }
  void operator()(const auto& number) { bytes.put(number); }
};

struct GetProgram {
  ByteReader bytes;
  void operator()(std::string& text) { text = bytes.get_text(); }
  void operator()(std::vector<std::byte>& to) {
    const auto from = bytes.get_bytes();
    to.assign(from.begin(), from.end());
  }
  void operator()(auto& number) { number = bytes.get<std::remove_reference_t<decltype(number)>>(); }
};

// Visits the fields in file order, for reading and writing alike.
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
  visit(code.work.operations);
  visit(code.work.bytes);
  visit(code.seconds);
  visit(code.is_frugal);
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
  return fmt::format("program {}/{:016x}{:016x}/{}/{}", kProgramFormat, ast_hash[0], ast_hash[1],
                     options, device.code_identity());
}

std::optional<Program> find_program(const std::string& key) {
  const auto found = disk_cache().get(as_bytes(key));
  if (!found) return std::nullopt;
  try {
    Program program;
    std::string optimisations;
    GetProgram get{ByteReader(*found)};
    each_field(get, program, optimisations);
    if (!get.bytes.is_whole() || !get.bytes.is_at_end() || !is_ir(program.code.ir))
      throw std::out_of_range("no kernel IR");
    program.code.schedule = codegen::parse_schedule(optimisations);
    return program;
  } catch (const std::exception& e) {  // the checksum was right: a faulty writer
    log_line(LogLevel::Info, fmt::format("a cached program is not usable: {}", e.what()));
    disk_cache().remove(as_bytes(key));
    return std::nullopt;
  }
}

void keep_program(const std::string& key, const Program& program) {
  PutProgram put;
  const std::string optimisations = codegen::to_string(program.code.schedule);
  each_field(put, program, optimisations);
  disk_cache().put(as_bytes(key), put.bytes.bytes());
}

}  // namespace plugrad::engine
