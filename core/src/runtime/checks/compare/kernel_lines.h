// Kernel IR as a list of lines, for checks that edit a kernel: reads a block, writes a block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugrad/plugin_api/kernel_ir.h"

namespace plugrad::runtime {

struct KernelLines {
  struct Line {
    uint32_t op = PGR_OP_NOP, dtype = PGR_DTYPE_VOID, lanes = 1;
    uint64_t arg = 0;
    std::vector<uint32_t> sources;  // indices of earlier lines
  };
  std::string name;
  uint32_t flags = 0;
  std::array<uint64_t, 3> group_count{1, 1, 1};
  std::array<uint32_t, 3> local_size{1, 1, 1};
  std::vector<pgr_ir_param> params;
  std::vector<pgr_ir_array> arrays;
  std::vector<Line> lines;

  std::vector<std::byte> encode() const;

  bool has_value(uint32_t line) const { return lines[line].dtype != PGR_DTYPE_VOID; }
  bool writes(uint32_t line) const;      // STORE, ATOMIC_ADD
  bool is_pointer(uint32_t line) const;  // of a buffer or an array
  bool opens(uint32_t line) const;       // LOOP, IF
  /// The line that closes the LOOP or IF at `opener`.
  uint32_t closer(uint32_t opener) const;
  /// Whether the launch has more than one work-item.
  bool is_parallel() const;
  bool has_op(uint32_t op) const;

  /// Inserts a line before `at`.
  void insert(uint32_t at, Line line);
  /// Replaces the uses of `from` in later lines by `to`.
  void redirect(uint32_t from, uint32_t to);
  /// Restricts the launch to groups [first, first + count) of an axis, which keep their ids.
  void keep_groups(std::size_t axis, uint64_t first, uint64_t count);
  /// Removes lines; no remaining line may use them.
  void remove(const std::function<bool(uint32_t)>& goes);
  /// Removes values without a use. Parameters stay: their buffers are bound by number.
  void remove_unused();
};

/// Nothing if the bytes are no block of this major version.
std::optional<KernelLines> read_kernel_lines(std::span<const std::byte> block);

/// E.g. "IDIV", "i32"; "op 99" for unknown numbers.
std::string op_name(uint32_t op);
std::string dtype_name(uint32_t dtype);
uint32_t op_class(uint32_t op);
/// The dtype under which `op_dtypes` of the capabilities lists a line.
uint32_t claimed_dtype(const KernelLines& kernel, uint32_t line);
/// E.g. "IDIV i32", "CAST f32 bf16".
std::string operation_text(const KernelLines& kernel, uint32_t line);
/// One line for each line of the kernel, as `plugrad explain` prints a block.
std::string print(const KernelLines& kernel);

}  // namespace plugrad::runtime
