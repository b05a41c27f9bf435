// An editable kernel: a list of lines instead of a block.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "plugrad/sdk/ir_view.h"

namespace plugrad::conformance {

struct EditableIr {
  struct Line {
    uint32_t op, dtype, lanes;
    uint64_t arg;
    std::vector<uint32_t> sources;  // indices of lines
    bool stays = false;             // kept even if unused
  };
  std::string name;
  bool contract = false;
  std::array<uint64_t, 3> group_count{1, 1, 1};
  std::array<uint32_t, 3> local_size{1, 1, 1};
  std::vector<pgr_ir_param> params;
  std::vector<pgr_ir_array> arrays;
  std::vector<Line> lines;

  explicit EditableIr(const sdk::IrView& ir);
  std::vector<std::byte> encode() const;

  bool has_value(uint32_t line) const { return lines[line].dtype != PGR_DTYPE_VOID; }
  bool writes(uint32_t line) const;      // STORE, ATOMIC_ADD
  bool is_pointer(uint32_t line) const;  // of a buffer or an array
  // The line that closes the LOOP or IF at `opener`.
  uint32_t closer(uint32_t opener) const;
  // True if the launch has more than one work-item.
  bool is_parallel() const;

  // Removes the lines for which `goes(number)` is true; no remaining line may use them.
  void remove(const std::function<bool(uint32_t)>& goes);
  // Inserts a line before `at`.
  void insert(uint32_t at, Line line);
  // Replaces all uses of `from` by `to`.
  void redirect(uint32_t from, uint32_t to);
  // Removes unused values that need not stay, and unreferenced parameters and arrays.
  void tidy();
};

}  // namespace plugrad::conformance
