#include "claims.h"

#include <algorithm>

#include "plugrad/sdk/guard.h"
#include "plugrad/sdk/tensor_core.h"

namespace plugrad::reference {
namespace {

constexpr uint32_t bit(uint32_t dtype) {
  return 1u << dtype;
}
constexpr uint32_t kAll = 0xfffeu;  // every dtype but void
constexpr uint32_t kBool = bit(PGR_DTYPE_BOOL);
constexpr uint32_t kInts = bit(PGR_DTYPE_U64 + 1) - bit(PGR_DTYPE_I8);
constexpr uint32_t kFloats =
    bit(PGR_DTYPE_F16) | bit(PGR_DTYPE_BF16) | bit(PGR_DTYPE_F32) | bit(PGR_DTYPE_F64);
constexpr uint32_t kIndex = bit(PGR_DTYPE_I32) | bit(PGR_DTYPE_I64);

uint32_t alu_dtypes(uint32_t op) {
  switch (op) {
    case PGR_OP_ADD:
    case PGR_OP_SUB:
    case PGR_OP_MUL:
    case PGR_OP_NEG:
      return kInts | kFloats;
    case PGR_OP_IDIV:
    case PGR_OP_MOD:
    case PGR_OP_SHL:
    case PGR_OP_SHR:
      return kInts;
    case PGR_OP_AND:
    case PGR_OP_OR:
    case PGR_OP_XOR:
      return kBool | kInts;
    case PGR_OP_MAX:
    case PGR_OP_CMPLT:
    case PGR_OP_CMPEQ:
    case PGR_OP_CMPNE:
      return kBool | kInts | kFloats;
    case PGR_OP_WHERE:
    case PGR_OP_CAST:
      return kAll;
    case PGR_OP_BITCAST:
      return kAll & ~kBool;
    default:
      return kFloats;  // recip, fdiv, sqrt, fma, trunc, exp2, log2, sin
  }
}

uint32_t claimed_dtypes(const sdk::OpInfo& op) {
  if (op.op_class == PGR_OP_CLASS_ALU) return alu_dtypes(op.number);
  switch (op.number) {
    case PGR_OP_GROUP_ID:
    case PGR_OP_LOCAL_ID:
    case PGR_OP_LOOP:
    case PGR_OP_END_LOOP:
      return kIndex;
    case PGR_OP_IF:
    case PGR_OP_END_IF:
    case PGR_OP_BARRIER:
    case PGR_OP_ASYNC_COMMIT:
    case PGR_OP_ASYNC_WAIT:
      return kBool;
    case PGR_OP_ATOMIC_ADD:
      return kInts | kFloats;
    case PGR_OP_WMMA:
      return bit(PGR_DTYPE_F16) | bit(PGR_DTYPE_BF16) | bit(PGR_DTYPE_F32);
    case PGR_OP_NOP:
      return 0;
    default:
      return kAll;
  }
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

const sdk::OpInfo* find_op(std::string_view word) {
  for (const sdk::OpInfo& op : sdk::all_ops())
    if (lower(op.name) == word) return &op;
  return nullptr;
}

uint32_t find_dtype(std::string_view word) {
  for (uint32_t d = PGR_DTYPE_BOOL; d < PGR_DTYPE_COUNT; ++d)
    if (sdk::dtype_name(d) == word) return d;
  return PGR_DTYPE_VOID;
}

// Moves remain possible for a dtype without arithmetic: its bits can be processed as integers.
void withdraw_dtype(Claims& claims, uint32_t dtype) {
  for (const sdk::OpInfo& op : sdk::all_ops())
    if ((op.op_class == PGR_OP_CLASS_ALU && op.number != PGR_OP_BITCAST) ||
        op.number == PGR_OP_ATOMIC_ADD || op.number == PGR_OP_LOOP ||
        op.number == PGR_OP_GROUP_ID || op.number == PGR_OP_LOCAL_ID)
      claims.op_dtypes[op.number] &= ~bit(dtype);
}

[[noreturn]] void refuse(const std::string& word) {
  throw sdk::StatusError(
      PGR_STATUS_INVALID_ARGUMENT,
      "withdraw: \"" + word +
          "\" is not an op (exp2), a dtype (f16), a pair (sqrt:f64), lanes, local, queue, graph, "
          "profile or synchrony");
}

void withdraw(Claims& claims, const std::string& word) {
  const size_t colon = word.find(':');
  const sdk::OpInfo* op = find_op(word.substr(0, colon));
  if (colon != std::string::npos) {
    const uint32_t dtype = find_dtype(word.substr(colon + 1));
    if (!op || dtype == PGR_DTYPE_VOID) refuse(word);
    claims.op_dtypes[op->number] &= ~bit(dtype);
  } else if (word == "lanes") {
    claims.lanes_bytes = 1;
  } else if (word == "local") {
    claims.has_local = false;
    for (uint32_t gone : {PGR_OP_LOCAL_ID, PGR_OP_BARRIER, PGR_OP_ASYNC_COPY, PGR_OP_ASYNC_COMMIT,
                          PGR_OP_ASYNC_WAIT})
      claims.op_dtypes[gone] = 0;
  } else if (word == "queue") {
    claims.has_queue = false;
  } else if (word == "graph") {
    claims.has_graph = false;
  } else if (word == "profile") {
    claims.has_profile = false;
  } else if (word == "synchrony") {
    claims.is_synchronous = false;
  } else if (op && op->number == PGR_OP_ASYNC_COPY) {
    for (uint32_t gone : {PGR_OP_ASYNC_COPY, PGR_OP_ASYNC_COMMIT, PGR_OP_ASYNC_WAIT})
      claims.op_dtypes[gone] = 0;
  } else if (op) {
    claims.op_dtypes[op->number] = 0;
  } else if (const uint32_t dtype = find_dtype(word)) {
    withdraw_dtype(claims, dtype);
  } else {
    refuse(word);
  }
}

}  // namespace

void require_interface(bool is_claimed, std::string_view name) {
  sdk::require(is_claimed, PGR_STATUS_UNSUPPORTED,
               "this device was opened without " + std::string(name));
}

Claims make_claims(std::string_view text) {
  Claims claims;
  for (const sdk::OpInfo& op : sdk::all_ops()) claims.op_dtypes[op.number] = claimed_dtypes(op);
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string word = lower(text.substr(0, comma));
    if (!word.empty()) withdraw(claims, word);
    text.remove_prefix(std::min(comma + 1, text.size()));
    claims.withdrawn += (claims.withdrawn.empty() || word.empty() ? "" : ",") + word;
  }
  return claims;
}

std::vector<pgr_tensor_core> tensor_cores_of(const Claims& claims) {
  std::vector<pgr_tensor_core> cores;
  for (uint32_t dtype : {PGR_DTYPE_F16, PGR_DTYPE_BF16, PGR_DTYPE_F32})
    if (claims.dtypes_of(PGR_OP_WMMA) & bit(dtype)) cores.push_back(sdk::make_warp_core(dtype));
  return cores;
}

void take_shape(Claims& claims, std::string_view shape) {
  sdk::require(shape == "cpu" || shape == "gpu", PGR_STATUS_INVALID_ARGUMENT,
               "shape: \"" + std::string(shape) + "\" is not cpu or gpu");
  claims.is_gpu = shape == "gpu";
  if (claims.is_gpu) claims.lanes_bytes = 1;
}

namespace {

void require_bit(const Claims& claims, const sdk::IrView& ir, uint32_t number, uint32_t dtype) {
  const uint16_t op = ir.inst(number).op;
  if (claims.dtypes_of(op) & bit(dtype)) return;
  throw sdk::StatusError(PGR_STATUS_UNSUPPORTED,
                         "kernel " + ir.name() + ", instruction " + std::to_string(number) + ": " +
                             std::string(sdk::op_info(op)->name) + " on " +
                             std::string(sdk::dtype_name(dtype)) + " is not claimed");
}

}  // namespace

void require_claimed(const Claims& claims, const sdk::IrView& ir) {
  for (uint32_t i = 0; i < ir.insts().size(); ++i) {
    const pgr_ir_inst& inst = ir.inst(i);
    const uint8_t op_class = sdk::op_info(inst.op)->op_class;
    if (inst.op == PGR_OP_NOP) continue;
    if (op_class == PGR_OP_CLASS_ALU) {
      const uint32_t operand = inst.op == PGR_OP_WHERE ? 1 : 0;
      require_bit(claims, ir, i, ir.inst(ir.source(i, operand)).dtype);
      if (inst.op == PGR_OP_CAST) require_bit(claims, ir, i, inst.dtype);
    } else if (inst.op == PGR_OP_WMMA || inst.op == PGR_OP_ASYNC_COPY) {
      require_bit(claims, ir, i, ir.inst(ir.source(i, 0)).dtype);
    } else if (inst.dtype != PGR_DTYPE_VOID) {
      require_bit(claims, ir, i, inst.dtype);
    } else if (inst.op == PGR_OP_BARRIER || inst.op == PGR_OP_ASYNC_COMMIT ||
               inst.op == PGR_OP_ASYNC_WAIT) {
      require_bit(claims, ir, i, PGR_DTYPE_BOOL);
    } else if (inst.op == PGR_OP_ATOMIC_ADD || inst.op == PGR_OP_STORE) {
      require_bit(claims, ir, i, ir.inst(ir.source(i, 2)).dtype);
    }
  }
}

}  // namespace plugrad::reference
