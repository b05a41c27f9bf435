// An arbitrary kernel IR block is refused with INVALID_ARGUMENT, or prints and runs in the
// interpreter to its end or to a status. Header and strides are repaired after a mutation, so that
// the verifier is reached.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "plugrad/sdk/guard.h"
#include "plugrad/sdk/interpreter.h"
#include "plugrad/sdk/ir_builder.h"
#include "plugrad/sdk/ir_view.h"
#include "plugrad/sdk/op_info.h"

using namespace plugrad::sdk;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

constexpr uint64_t kMostElements = 4096;
constexpr uint64_t kMostIterations = 2000;

std::vector<std::byte> add_with_gate() {
  IrBuilder b("add");
  b.set_groups(8);
  auto out = b.buffer(PGR_DTYPE_F32, 32), x = b.buffer(PGR_DTYPE_F32, 32, PGR_PARAM_READ);
  auto n = b.scalar(PGR_DTYPE_I32, 0, 32);
  auto at = b.alu(PGR_OP_MUL, {b.group_id(0), b.constant_int(PGR_DTYPE_I32, 4)});
  auto gate = b.alu(PGR_OP_CMPLT, {at, n});
  auto zero = b.splat(b.constant_float(PGR_DTYPE_F32, 0), 4);
  auto value = b.load_gated(x, at, gate, zero, 4);
  b.store_gated(out, at, b.alu(PGR_OP_ADD, {value, value}), gate);
  return b.finish();
}

std::vector<std::byte> sum_in_a_group() {
  IrBuilder b("sum");
  b.set_local(4);
  auto out = b.buffer(PGR_DTYPE_I32, 1), x = b.buffer(PGR_DTYPE_I32, 16, PGR_PARAM_READ);
  auto shared = b.array(PGR_SPACE_LOCAL, PGR_DTYPE_I32, 4);
  auto own = b.array(PGR_SPACE_PRIVATE, PGR_DTYPE_I32, 1);
  auto zero = b.constant_int(PGR_DTYPE_I32, 0), four = b.constant_int(PGR_DTYPE_I32, 4);
  auto me = b.local_id(0);
  b.store(own, zero, zero);
  auto i = b.loop(zero, four);
  auto at = b.alu(PGR_OP_ADD, {b.alu(PGR_OP_MUL, {me, four}), i});
  b.store(own, zero, b.alu(PGR_OP_ADD, {b.load(own, zero), b.load(x, at)}));
  b.end_loop(i);
  b.store(shared, me, b.load(own, zero));
  b.barrier();
  auto first = b.begin_if(b.alu(PGR_OP_CMPLT, {me, b.constant_int(PGR_DTYPE_I32, 1)}));
  b.atomic_add(out, zero, b.load(shared, zero));
  b.end_if(first);
  return b.finish();
}

std::vector<std::byte> casts() {
  IrBuilder b("casts");
  auto out = b.buffer(PGR_DTYPE_U8, 8), x = b.buffer(PGR_DTYPE_F16, 8, PGR_PARAM_READ);
  auto zero = b.constant_int(PGR_DTYPE_I64, 0);
  auto wide = b.cast(b.load(x, zero, 8), PGR_DTYPE_F64);
  auto big = b.alu(PGR_OP_MAX, {wide, b.alu(PGR_OP_SQRT, {wide})});
  b.store(out, zero, b.cast(b.cast(big, PGR_DTYPE_I32), PGR_DTYPE_U8));
  return b.finish();
}

template <class T>
void put(uint8_t* block, size_t offset, T value) {
  std::memcpy(block + offset, &value, sizeof value);
}

void mend(uint8_t* block, size_t size) {
  if (size < sizeof(pgr_ir_header)) return;
  put(block, offsetof(pgr_ir_header, magic), PGR_IR_MAGIC);
  put(block, offsetof(pgr_ir_header, version), PGR_IR_VERSION);
  put(block, offsetof(pgr_ir_header, header_bytes), uint32_t{sizeof(pgr_ir_header)});
  put(block, offsetof(pgr_ir_header, total_bytes), uint64_t{size});
  put(block, offsetof(pgr_ir_header, param_stride), uint32_t{sizeof(pgr_ir_param)});
  put(block, offsetof(pgr_ir_header, array_stride), uint32_t{sizeof(pgr_ir_array)});
  put(block, offsetof(pgr_ir_header, inst_stride), uint32_t{sizeof(pgr_ir_inst)});
}

bool is_small(const IrView& ir) {
  uint64_t items = 1, elements = 0;
  for (uint32_t size : ir.header().local_size) items *= std::min(size, 65536u);
  auto count = [&](uint64_t more) { elements += std::min<uint64_t>(more, kMostElements + 1); };
  for (const pgr_ir_param& p : ir.params()) count(p.kind == PGR_PARAM_BUFFER ? p.elem_count : 0);
  for (const pgr_ir_array& a : ir.arrays()) count(a.elem_count);
  return items <= 64 && elements <= kMostElements;
}

void run(IrView ir) {
  std::vector<std::vector<uint64_t>> memory;
  std::vector<InterpreterBuffer> buffers;
  std::vector<uint64_t> scalars;
  for (const pgr_ir_param& p : ir.params()) {
    if (p.kind == PGR_PARAM_SCALAR) {
      scalars.push_back(static_cast<uint64_t>(p.min));
      continue;
    }
    memory.emplace_back(p.elem_count + 1);  // as of 8 bytes each
    buffers.push_back({memory.back().data(), p.elem_count * dtype_size(p.dtype)});
  }
  InterpreterLaunch launch;
  launch.buffers = buffers;
  launch.scalars = scalars;
  for (int axis = 0; axis < 3; ++axis) {
    launch.local_size[axis] = ir.header().local_size[axis];
    launch.group_count[axis] = std::min<uint64_t>(ir.header().group_count[axis], 2);
  }
  launch.iteration_limit = kMostIterations;
  Interpreter(std::move(ir)).run(launch);
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  if (size < sizeof(pgr_ir_header)) {
    const std::vector<std::byte> block = seed % 3 == 0   ? add_with_gate()
                                         : seed % 3 == 1 ? sum_in_a_group()
                                                         : casts();
    if (block.size() > max_size) return size;
    std::memcpy(data, block.data(), block.size());
    return block.size();
  }
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 8 != 0) mend(data, size);
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    IrView ir = decode_ir(data, size);
    if (print_ir(ir).empty()) __builtin_trap();
    if (is_small(ir)) run(std::move(ir));
  } catch (const StatusError& error) {
    if (error.status() == PGR_STATUS_INTERNAL) __builtin_trap();
  }
  return 0;
}
