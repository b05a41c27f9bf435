// A graph that is written and read again has the same structure.
#include "engine/plan/graph_bytes.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

#include "ir/structural_hash.h"
#include "ir/text/printer.h"
#include "ir/uop.h"

namespace plugrad::engine {
namespace {

std::vector<std::byte> bytes_of(const Graph& g, Id root) {
  ByteWriter to;
  put_graph(to, g, root);
  return {to.bytes().begin(), to.bytes().end()};
}

// Constants that compare equal or unequal to themselves, lists, a node with more than three sources.
Id example(Graph& g) {
  const Id param = g.add(Op::Param, DType::F32, {}, g.list({0, 0, 64, 1}));
  std::vector<Id> stores;
  for (const double value : {0.0, -0.0, std::numeric_limits<double>::quiet_NaN(), 1e300}) {
    const UOp i = uop_range(g, 8, static_cast<uint32_t>(stores.size()));
    g.index(1000 + static_cast<int64_t>(stores.size()));  // not reached
    const Id sum = g.binary(Op::Add, g.constant(DType::F64, value), g.cast(i, DType::F64));
    stores.push_back(g.add(Op::Store, DType::Void, {param, i * 8, g.cast(sum, DType::F32)}));
  }
  return g.add(Op::Sink, DType::Void, stores);
}

TEST(GraphBytes, KeepTheStructure) {
  Graph g, read;
  const Id root = example(g);
  const std::vector<std::byte> bytes = bytes_of(g, root);
  ByteReader from(bytes);
  const Id read_root = get_graph(from, read);
  EXPECT_TRUE(from.is_whole() && from.is_at_end());
  EXPECT_EQ(structural_hash(read, read_root), structural_hash(g, root));
  EXPECT_EQ(print(read, read_root, Numbering::FromZero), print(g, root, Numbering::FromZero));
  EXPECT_LT(read.size(), g.size());  // without what the root does not reach
}

TEST(GraphBytes, BytesThatEndAnywhere_AreRefused) {
  Graph g;
  const std::vector<std::byte> bytes = bytes_of(g, example(g));
  for (size_t size = 0; size < bytes.size(); ++size) {
    Graph read;
    ByteReader from{std::span(bytes).first(size)};
    EXPECT_THROW(get_graph(from, read), std::out_of_range) << size << " bytes";
  }
}

// Whatever the bytes are, each source is an earlier node, and each op and dtype exists.
TEST(GraphBytes, DamagedBytes_GiveAGraphOrAreRefused) {
  Graph g;
  const std::vector<std::byte> bytes = bytes_of(g, example(g));
  size_t refused = 0;
  for (size_t at = 0; at < bytes.size(); ++at)
    for (const std::byte flip : {std::byte{1}, std::byte{0x80}, std::byte{0xff}}) {
      std::vector<std::byte> damaged = bytes;
      damaged[at] ^= flip;
      Graph read;
      ByteReader from(damaged);
      try {
        const Id root = get_graph(from, read);
        ASSERT_LT(root, read.size());
        for (Id id = 0; id < read.size(); ++id) {
          ASSERT_TRUE(op_info(read[id].op).known);
          for (const Id source : read.sources(id)) ASSERT_LT(source, id);
        }
      } catch (const std::out_of_range&) {
        ++refused;
      }
    }
  EXPECT_GT(refused, bytes.size() / 2);
}

}  // namespace
}  // namespace plugrad::engine
