#include "codegen/analysis/same_program.h"

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "plugrad/plugin_api/kernel_ir.h"

namespace plugrad::codegen {
namespace {

template <class Row>
std::vector<Row> rows(std::span<const std::byte> ir, uint32_t offset, uint32_t stride,
                      uint32_t count) {
  std::vector<Row> out(count);
  for (uint32_t i = 0; i < count; ++i)
    std::memcpy(&out[i], ir.data() + offset + size_t{i} * stride, sizeof(Row));
  return out;
}

// The program in words that do not depend on where its numbers come from: constants, and parameters that
// have a number, take part as their bits in the instructions that use them.
class Program {
 public:
  Program(std::span<const std::byte> ir, std::span<const uint64_t> numbers) : numbers_(numbers) {
    pgr_ir_header header;
    std::memcpy(&header, ir.data(), sizeof header);
    operands_ = rows<uint32_t>(ir, header.operand_offset, sizeof(uint32_t), header.operand_count);
    put(header.flags, header.local_size, header.group_count);
    for (const auto& p :
         rows<pgr_ir_param>(ir, header.param_offset, header.param_stride, header.param_count)) {
      params_.push_back(p);
      if (p.kind == PGR_PARAM_BUFFER) put(p.dtype, p.flags, p.align_bytes, p.elem_count);
      buffers_ += p.kind == PGR_PARAM_BUFFER;
    }
    for (const auto& a :
         rows<pgr_ir_array>(ir, header.array_offset, header.array_stride, header.array_count))
      put(a.space, a.dtype, a.align_bytes, a.lanes, a.elem_count);
    const auto insts =
        rows<pgr_ir_inst>(ir, header.inst_offset, header.inst_stride, header.inst_count);
    for (const pgr_ir_inst& inst : insts) add(inst);
  }

  bool takes_each_number() const {
    return params_.size() == buffers_ + numbers_.size() && used_ == numbers_.size();
  }

  friend bool operator==(const Program& a, const Program& b) { return a.words_ == b.words_; }

 private:
  struct Value {
    bool is_number;
    uint64_t bits;  // of a Const node; else the place of the instruction among those of no number
    uint32_t dtype = 0;
  };

  void put(const auto&... values) {
    const auto one = [&](const auto& value) {
      if constexpr (std::is_array_v<std::remove_reference_t<decltype(value)>>)
        words_.insert(words_.end(), std::begin(value), std::end(value));
      else
        words_.push_back(static_cast<uint64_t>(value));
    };
    (one(values), ...);
  }

  std::span<const uint32_t> sources(const pgr_ir_inst& inst) const {
    if (inst.src_count <= 4) return std::span(inst.src).first(inst.src_count);
    return std::span(operands_).subspan(inst.src[0], inst.src_count);
  }

  void add(const pgr_ir_inst& inst) {
    const auto dtype = static_cast<DType>(inst.dtype);
    if (inst.op == PGR_OP_CONST) return add_number(constant_bits(inst.arg, dtype), dtype);
    if (inst.op == PGR_OP_PARAM && inst.arg >= buffers_ && inst.arg - buffers_ < numbers_.size()) {
      const uint64_t number = inst.arg - buffers_;
      used_ += params_[inst.arg].dtype == inst.dtype && is_first_use(number);
      return add_number(constant_bits(numbers_[number], dtype), dtype);
    }
    if (const auto number = of_number(inst)) return add_number(*number, dtype);
    put(inst.op, inst.dtype, inst.lanes, inst.src_count, inst.arg);
    for (const uint32_t source : sources(inst)) {
      const Value& value = values_[source];
      put(value.is_number, value.bits, value.dtype);
    }
    values_.push_back({false, count_++});
  }

  void add_number(uint64_t bits, DType dtype) {
    values_.push_back({true, bits, static_cast<uint32_t>(dtype)});
  }

  // A number in a wider dtype.
  std::optional<uint64_t> of_number(const pgr_ir_inst& inst) const {
    if (inst.op != PGR_OP_CAST || !values_[inst.src[0]].is_number) return std::nullopt;
    const Value& source = values_[inst.src[0]];
    const auto from = static_cast<DType>(source.dtype), to = static_cast<DType>(inst.dtype);
    const bool is_exact = is_float(from) && is_float(to) && size_of(from) < size_of(to);
    return is_exact ? std::optional(source.bits) : std::nullopt;
  }

  bool is_first_use(uint64_t number) {
    if (seen_.size() <= number) seen_.resize(number + 1);
    return !std::exchange(seen_[number], 1);
  }

  std::span<const uint64_t> numbers_;
  std::vector<pgr_ir_param> params_;
  std::vector<uint32_t> operands_;
  std::vector<Value> values_;  // by instruction
  std::vector<uint8_t> seen_;  // by number
  std::vector<uint64_t> words_;
  uint64_t buffers_ = 0, count_ = 0, used_ = 0;
};

}  // namespace

bool is_same_program(std::span<const std::byte> with_constants, std::span<const std::byte> taking,
                     std::span<const uint64_t> numbers) {
  const Program taker(taking, numbers);
  return taker.takes_each_number() && taker == Program(with_constants, {});
}

}  // namespace plugrad::codegen
