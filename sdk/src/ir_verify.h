// Verifies the rules between the instructions of a kernel IR block. Private to the SDK.
#pragma once

#include <string>
#include <vector>

#include "plugrad/sdk/ir_view.h"

namespace plugrad::sdk {

class IrVerifier {
 public:
  explicit IrVerifier(IrView& view) : ir_(view) {}

  // Checks everything, and fills the view's partners. Throws StatusError (INVALID_ARGUMENT).
  void run();

 private:
  void check_header() const;
  void check_params() const;
  void check_arrays() const;
  void check_sources(uint32_t number);
  void check_types(uint32_t number);
  void check_structure(uint32_t number);
  void check_const(uint32_t number) const;
  void check_memory(uint32_t number);
  void check_pointer_access(uint32_t number);
  void check_async_copy(uint32_t number);
  void check_gate(uint32_t number, uint32_t gate) const;
  void check_vector(uint32_t number);
  void check_alu(uint32_t number);
  void check_alu_dtypes(uint32_t number);
  void open_block(uint32_t number);
  void close_block(uint32_t number, uint16_t opener);

  const pgr_ir_inst& inst(uint32_t number) const { return ir_.insts_[number]; }
  const pgr_ir_inst& src(uint32_t number, uint32_t which) const {
    return inst(ir_.source(number, which));
  }
  void expect(uint32_t number, bool condition, const std::string& what) const {
    if (!condition) fail(number, what);
  }
  [[noreturn]] void fail(uint32_t number, const std::string& what) const;

  IrView& ir_;
  std::vector<uint32_t> open_;   // openers of the blocks that enclose the current instruction
  std::vector<uint32_t> block_;  // per instruction: the opener of its block, or kOutermost
  std::vector<char> is_closed_;  // per opener: its block has ended
};

}  // namespace plugrad::sdk
