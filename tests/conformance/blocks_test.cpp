// Compares the suite's fused kernels with the compiler's output for a device with only the
// mandatory ops. With UPDATE_BLOCKS set, writes them instead: see tools/update-blocks.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "codegen/codegen.h"
#include "conformance/kernels/mandatory/core.h"
#include "engine/session.h"
#include "ir/text/parser.h"
#include "plugrad/plugrad.h"
#include "plugrad/sdk/ir_view.h"
#include "tensor/handles.h"

namespace plugrad {
namespace {

using Bytes = std::vector<std::byte>;
using Blocks = std::map<std::string, Bytes>;

// A value given by the host, so that nothing runs before the program.
Tensor leaf(const Shape& shape) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 13) / 8;
  return Tensor::from(values, shape);
}
Tensor places(int64_t count) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i * 5 % 8);
  return Tensor::from(values);
}

// 1 where an element equals the column's index: devices without 64-bit integers gather by it.
Tensor one_hot(int64_t rows, int64_t columns) {
  return (places(rows).reshape({rows, 1}) == Tensor::arange(columns, DType::I32)).cast(DType::F32);
}

std::vector<Tensor> adam() {
  const Tensor weight = leaf({37}), gradient = leaf({37}), first = leaf({37}), second = leaf({37});
  const Tensor m = first * 0.9 + gradient * 0.1;
  const Tensor v = second * 0.999 + gradient * gradient * 0.001;
  return {m, v, weight - m / (v.sqrt() + 1e-8) * 0.001};
}

struct Program {
  const char* name;
  std::vector<Tensor> (*make)();
};

const Program kPrograms[] = {
    {"softmax", [] { return std::vector{leaf({8, 24}).softmax()}; }},
    {"layernorm", [] { return std::vector{layernorm(leaf({6, 20}))}; }},
    {"matmul_bias_relu",
     [] { return std::vector{relu(matmul(leaf({12, 16}), leaf({16, 10})) + leaf({10}))}; }},
    {"convolution",
     [] { return std::vector{conv2d(leaf({2, 3, 9, 9}), leaf({4, 3, 3, 3}), leaf({4}))}; }},
    {"sum", [] { return std::vector{(leaf({1003}) * leaf({1003})).sum()}; }},
    {"attention",
     [] {
       return std::vector{scaled_dot_product_attention(leaf({1, 2, 8, 4}), leaf({1, 2, 8, 4}),
                                                       leaf({1, 2, 8, 4}))};
     }},
    {"embedding", [] { return std::vector{matmul(one_hot(9, 12), leaf({12, 6}))}; }},
    {"where",
     [] {
       const Tensor a = leaf({5, 31}), b = leaf({5, 31});
       return std::vector{where(a < b, a * 2, b - 1)};
     }},
    {"cross_entropy",
     [] { return std::vector{(leaf({8, 10}).log_softmax() * one_hot(8, 10)).sum() / -8}; }},
    {"adam", adam},
    {"transpose", [] { return std::vector{leaf({17, 23}).permute({1, 0}) + leaf({23, 17})}; }},
    {"max_pool", [] { return std::vector{max_pool2d(leaf({2, 3, 8, 8}))}; }},
    {"logarithm", [] { return std::vector{leaf({67}).log()}; }},
};

// A device with only the mandatory claims.
pgr_device_caps mandatory_caps() {
  pgr_device_caps caps;
  PGR_INIT(caps, DEVICE_CAPS);
  for (uint32_t op = 0; op < 64; ++op)
    for (uint32_t dtype = 0; dtype < PGR_DTYPE_COUNT; ++dtype)
      if (conformance::is_mandatory(op, dtype)) caps.op_dtypes[op] |= 1u << dtype;
  caps.op_dtypes[PGR_OP_END_LOOP] = 1u << PGR_DTYPE_I32;
  caps.op_dtypes[PGR_OP_END_IF] = 1u << PGR_DTYPE_BOOL;
  caps.storage_dtypes = 1u << PGR_DTYPE_BOOL | 1u << PGR_DTYPE_I32 | 1u << PGR_DTYPE_F32;
  for (uint32_t& lanes : caps.vector_lanes) lanes = 1;
  caps.vector_registers = 16;
  caps.threads = caps.subgroup_size = caps.max_local_total = 1;
  for (uint32_t& size : caps.max_local_size) size = 1;
  for (uint64_t& count : caps.max_groups) count = uint64_t{1} << 31;
  caps.private_bytes = 16384;
  caps.max_buffer_bytes = uint64_t{1} << 31;
  caps.max_params = 32;
  caps.buffer_align_bytes = 16;
  return caps;
}

// The kernels of a program in execution order.
void add_kernels(const Program& program, Blocks& blocks) {
  std::vector<Tensor> outputs = program.make();
  std::vector<engine::TensorState*> states;
  for (const Tensor& output : outputs) states.push_back(tensor::state_of(output).get());
  const auto planned = engine::Session::current().planned_kernels_of(states);
  ASSERT_FALSE(planned.empty()) << program.name;
  const pgr_device_caps caps = mandatory_caps();
  for (size_t i = 0; i < planned.size(); ++i) {
    Graph graph;
    const std::vector<Id> roots = parse(graph, planned[i].ast);
    ASSERT_EQ(roots.size(), 1u) << planned[i].ast;
    const std::string name =
        planned.size() == 1 ? std::string(program.name) : program.name + ("_" + std::to_string(i));
    codegen::Options options;
    options.contract = false;
    // Unrolling would repeat integer divisions of hundreds of lines.
    options.no_opt = std::string_view(program.name) != "matmul_bias_relu" &&
                     std::string_view(program.name) != "convolution";
    options.name = name;
    try {
      blocks[name] = codegen::generate(graph, roots[0], caps, options).ir;
    } catch (const std::exception& error) {
      ADD_FAILURE() << name << ": " << error.what();
    }
  }
}

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

void update(const Blocks& blocks, const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".pgir") std::filesystem::remove(entry.path());
  for (const auto& [name, bytes] : blocks)
    std::ofstream(folder / (name + ".pgir"), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
}

TEST(FusedBlocks, AreWhatTheCompilerMakes) {
  Blocks blocks;
  for (const Program& program : kPrograms) add_kernels(program, blocks);
  const std::filesystem::path folder = PLUGRAD_BLOCKS_FOLDER;
  if (std::getenv("UPDATE_BLOCKS")) return update(blocks, folder);
  size_t kept = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    kept += entry.path().extension() == ".pgir";
  EXPECT_EQ(kept, blocks.size()) << "run tools/update-blocks";
  for (const auto& [name, bytes] : blocks)
    EXPECT_TRUE(read_file(folder / (name + ".pgir")) == bytes)
        << name << ".pgir is not what the compiler makes; run tools/update-blocks and look at "
        << "what changed. Today:\n"
        << sdk::print_ir(sdk::decode_ir(bytes));
}

// Every value of a block uses only the mandatory set.
TEST(FusedBlocks, NeedTheMandatorySetAlone) {
  size_t checked = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PLUGRAD_BLOCKS_FOLDER)) {
    if (entry.path().extension() != ".pgir") continue;
    const sdk::IrView ir = sdk::decode_ir(read_file(entry.path()));
    for (uint32_t i = 0; i < ir.insts().size(); ++i, ++checked) {
      const pgr_ir_inst& inst = ir.inst(i);
      if (inst.dtype == PGR_DTYPE_VOID || inst.op == PGR_OP_END_LOOP) continue;
      const bool is_compare = inst.op >= PGR_OP_CMPLT && inst.op <= PGR_OP_CMPNE;
      const uint32_t dtype = is_compare ? ir.inst(ir.source(i, 0)).dtype : uint32_t{inst.dtype};
      EXPECT_TRUE(conformance::is_mandatory(inst.op, dtype) && inst.lanes == 1)
          << entry.path().filename() << ", instruction " << i;
    }
  }
  EXPECT_GT(checked, 500u);
}

}  // namespace
}  // namespace plugrad
