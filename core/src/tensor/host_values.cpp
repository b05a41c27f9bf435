#include "tensor/host_values.h"

#include <bit>
#include <cstring>

#include "ir/fold.h"
#include "ir/round.h"
#include "tensor/handles.h"
#include "tensor/host_evaluator.h"

namespace plugrad::tensor {
namespace {

class Numbers {
 public:
  using Element = uint64_t;  // a constant's bits
  static constexpr bool kTakesResults = true;

  static Element number(uint64_t bits, DType) { return bits; }
  static std::optional<Element> given(Id) { return {}; }

  Element apply(Op op, DType dtype, std::initializer_list<std::pair<DType, Element>> operands) {
    if (scratch_.size() > kMostHostElements) scratch_ = Graph();
    std::vector<Id> constants;
    for (const auto& [of, bits] : operands)
      constants.push_back(scratch_.add(Op::Const, of, {}, bits));
    const auto folded = fold(scratch_, op, dtype, constants);
    if (!folded) throw NotOnHost();
    return *folded;
  }

 private:
  Graph scratch_;
};

}  // namespace

uint64_t bits_in_memory(const std::byte* memory, DType dtype) {
  uint64_t stored = 0;
  std::memcpy(&stored, memory, size_of(dtype));
  if (dtype == DType::F64) return stored;
  if (dtype == DType::F32)
    return std::bit_cast<uint64_t>(
        static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(stored))));
  if (is_float(dtype))
    return std::bit_cast<uint64_t>(decode_small_float(static_cast<uint16_t>(stored), dtype));
  return static_cast<uint64_t>(round_int(static_cast<int64_t>(stored), dtype));
}

std::optional<HostValues> host_values(const Tensor& tensor) {
  engine::Session& session = engine::Session::current();
  const engine::Session::Lock lock(session);
  const Id node = state_of(tensor)->node;
  try {
    HostValues values{tensor.shape(), session.graph()[node].dtype, {}};
    Numbers numbers;
    values.bits = HostEvaluator(session, numbers).of(node);
    return values;
  } catch (const NotOnHost&) {
    return {};
  }
}

}  // namespace plugrad::tensor
