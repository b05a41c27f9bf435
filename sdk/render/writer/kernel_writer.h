// Renders one kernel as statements of a dialect, instruction by instruction.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "plugrad/sdk/ir_view.h"
#include "render/dialects/dialect.h"
#include "render/dialects/prelude.h"
#include "render/writer/integer_ranges.h"
#include "render/writer/loop_plan.h"

namespace plugrad::render {

class KernelWriter {
 public:
  KernelWriter(const sdk::IrView& ir, const Dialect& dialect);
  // The whole source. Throws StatusError if the dialect lacks a feature of the kernel.
  std::string write();

  // The handlers of the ops; kWriters in kernel_writer.cpp maps ops to them.
  void write_nothing(uint32_t number);
  void write_param(uint32_t number);
  void write_array(uint32_t number);
  void write_const(uint32_t number);
  void write_group_id(uint32_t number);
  void write_local_id(uint32_t number);
  void write_loop(uint32_t number);
  void write_if(uint32_t number);
  void write_end(uint32_t number);
  void write_load(uint32_t number);
  void write_store(uint32_t number);
  void write_atomic_add(uint32_t number);
  void write_barrier(uint32_t number);
  void write_async_copy(uint32_t number);
  void write_async_commit(uint32_t number);
  void write_async_wait(uint32_t number);
  void write_vector(uint32_t number);
  std::vector<uint32_t> vectors_of(std::span<const uint32_t> lanes) const;
  bool can_shuffle(std::span<const uint32_t> lanes) const;
  std::string shuffle_of(std::span<const uint32_t> lanes);
  bool write_shuffle(uint32_t number);
  void write_lane(uint32_t number);
  void write_wmma(uint32_t number);
  void write_alu(uint32_t number);
  void write_where(uint32_t number);
  void write_cast(uint32_t number);
  void write_bitcast(uint32_t number);

 private:
  // An instruction's value: a name, or an expression emitted at its use.
  struct Value {
    std::string text;
    Prec prec = Prec::Atom;
    uint16_t mask_bits = 0;       // width of a lane of a bool vector, whose lanes are 0 and -1
    bool is_pending = false;      // not yet emitted
    std::vector<uint32_t> reads;  // memories that a pending expression reads
  };
  struct Access {  // address of a LOAD, STORE or ATOMIC_ADD
    uint32_t memory;
    std::string pointer, index;
    std::string element;  // set for strict languages
    bool is_variable;     // the memory is a named variable
    Space space = Space::Global;
  };

  struct OpenLoop {
    uint32_t number = 0;
    std::string name, type, begin, end;
    size_t body_at = 0;  // offset of the body's text
  };

  const pgr_ir_inst& inst(uint32_t number) const { return ir_.inst(number); }
  const pgr_ir_inst& source(uint32_t number, uint32_t which) const {
    return ir_.inst(ir_.source(number, which));
  }
  Type type_of(uint32_t number) const { return {inst(number).dtype, inst(number).lanes}; }
  bool is_mask(uint32_t number) const {
    return inst(number).dtype == PGR_DTYPE_BOOL && inst(number).lanes > 1;
  }

  // values (kernel_writer.cpp)
  std::string use(uint32_t number, Prec loosest);
  std::string use_name(uint32_t number);
  std::string use_index(uint32_t number, Prec loosest);
  std::string wide_sum(uint32_t number, Prec loosest);
  void define(uint32_t number, std::string text, Prec prec);
  void settle(uint32_t number);
  void settle_all();
  void settle_readers(uint32_t memory);
  std::string value_type(uint32_t number);
  // The source with `lanes` lanes: a scalar is splatted, a mask converted to mask_bits.
  std::string operand(uint32_t number, uint32_t lanes, uint32_t mask_bits, Prec loosest);
  std::string mask_operand(uint32_t number, uint32_t lanes, uint32_t mask_bits, Prec loosest);
  uint32_t mask_bits_for(uint32_t number) const;
  std::string convert(std::string text, Type from, Type to);
  std::string splat(Type type, const std::string& text);
  // `yes` in lanes where the mask `gate` is set; `prec` becomes the precedence of the result.
  std::string select(Type type, const std::string& gate, const std::string& yes,
                     const std::string& no, Prec& prec);
  void line(const std::string& text);
  void require_lanes() const;  // checks the current instruction

  // memory (write_memory.cpp)
  Access access(uint32_t number, uint32_t pointer = 0);
  std::string element(const Access& at);
  std::string load_text(uint32_t number, const Access& at, Prec& prec);
  std::string gated_load_text(uint32_t number, const Access& at, Prec& prec);
  void store_to(uint32_t number, const Access& at, Type type, const std::string& value);
  void masked_store(uint32_t number, const Access& at, Type type, const std::string& value);
  void require_masks() const;
  uint64_t known_divisor(uint32_t number, uint32_t depth) const;
  bool is_aligned(uint32_t number, Type moved) const;
  bool is_variable(const pgr_ir_array& array) const;
  bool may_overlap(uint32_t one, uint32_t other) const;
  void declare_array(uint32_t index);
  const AtomicRow& atomic_row(uint32_t dtype) const;
  void require_async_copies() const;
  std::string lane_text(std::string_view vector, uint32_t lane) const;

  // casts (write_cast.cpp)
  std::string cast_text(std::string text, Type from, Type to, Prec& prec);
  bool is_lane(uint32_t number) const;
  void cast_to_bool(uint32_t number, uint32_t source);
  void cast_from_bool(uint32_t number, uint32_t source);

  // ALU (write_alu.cpp)
  const AluRow& row_for(uint32_t number) const;
  bool has_zero(uint32_t number) const;
  bool fits(const AluRow& row, uint32_t number) const;
  void find_mul_adds();
  void write_mul_add(uint32_t number, uint32_t product);
  bool is_repeated_by_language(const AluRow& row, uint32_t number, uint32_t which) const;
  bool is_plain_literal(uint32_t number, uint32_t which) const;

  // loops (write_loop.cpp)
  void write_loop_head(const OpenLoop& loop, const std::string& counter, const std::string& step);
  void write_turns(const OpenLoop& loop, const std::string& first);
  void write_loop_end();

  // around the kernel (write_entry.cpp)
  std::string param_name(uint32_t index) const;
  std::string param_text(uint32_t index);
  uint32_t count_params(uint32_t kind, size_t before) const;
  std::string slot_value(uint32_t index);
  uint64_t local_bytes() const;
  std::string array_declarations(bool of_group, bool of_item);
  std::string work_item_function();
  std::string group_function();
  std::string fewer_groups(const std::string& call);
  std::string entry_function();
  std::string group_id_text(uint32_t axis) const;
  void write_id(uint32_t number, const char* kind, std::string_view pattern);
  std::string assumptions();

  const sdk::IrView& ir_;
  const Dialect& dialect_;
  Prelude prelude_;
  std::vector<Value> values_;
  std::vector<uint32_t> use_counts_;
  std::vector<bool> never_overflows_;
  std::map<uint32_t, uint32_t> products_;  // by a sum's number: the product fused into it
  std::set<uint32_t> written_by_sums_;
  std::vector<uint32_t> pending_;  // numbers of pending values, ascending
  std::vector<uint32_t> reads_;    // memories read by the expressions used since the last define
  std::set<std::string> id_names_;
  LoopPlan loops_;
  std::vector<OpenLoop> open_loops_;
  std::string body_;
  uint32_t depth_ = 1;
  uint32_t next_val_ = 0, next_alu_ = 0, next_loop_ = 0;
  uint32_t current_ = 0;
};

}  // namespace plugrad::render
