// The search for a schedule by the cost model.
#include <gtest/gtest.h>

#include "base/settings.h"
#include "codegen/search/search.h"
#include "kernels.h"
#include "run.h"

namespace plugrad::test {
namespace {

using codegen::Candidate;
using codegen::Climb;
using codegen::SearchSpace;

pgr_device_caps cpu() {
  pgr_device_caps caps = small_cpu(8);
  caps.vector_registers = 16;
  caps.contract_supported = 1;
  caps.threads = 2;
  caps.private_bytes = 64 << 10;
  return caps;
}

struct Searched {
  explicit Searched(Ast&& made) : ast(std::move(made)) {}
  Climb from(const char* list, size_t most = codegen::kMostLooks) const {
    return codegen::climb(space, space.predicted(codegen::parse_schedule(list)), most);
  }
  std::string chosen() const {
    return codegen::to_string(codegen::generate(ast.graph, ast.sink, caps, {}).schedule);
  }
  Ast ast;
  pgr_device_caps caps = cpu();
  SearchSpace space{ast.graph, ast.sink, caps, {}};
};

TEST(Climb, IsNeverDearerThanItsStart) {
  for (const char* start : {"", "upcast(0, 4)", "vectorize(1, 8)", "vectorize(0, 8)"}) {
    const Climb found = Searched(matmul(96, 96, 96)).from(start);
    EXPECT_LE(found.best.cost(), found.first.cost()) << start;
    EXPECT_EQ(codegen::to_string(found.first.list), start);
  }
}

TEST(Climb, FindsARegisterTileWhereThereIsNone) {
  const Climb found = Searched(matmul(96, 96, 96)).from("vectorize(1, 8)");
  EXPECT_LT(found.best.cost(), 0.5 * found.first.cost());
  EXPECT_TRUE(found.best.prediction.is_trusted);
  EXPECT_NE(codegen::to_string(found.best.list).find("upcast(0"), std::string::npos);
}

TEST(Climb, LooksAtNoMoreSchedulesThanItIsGiven) {
  const Searched product(matmul(96, 96, 96));
  for (const size_t most : {0, 1, 5, 24}) {
    const Climb found = product.from("", most);
    EXPECT_LE(found.looks, most);
  }
  EXPECT_EQ(codegen::to_string(product.from("", 0).best.list), "");
  EXPECT_GT(product.from("", 24).looks, 0u);
}

TEST(Climb, LeavesAloneWhatComputesAllOfTheTime) {
  auto slow = std::make_shared<cost::Machine>();
  slow->lanes = 8, slow->multiply_adds = 0.25;
  Ast ast = matmul(96, 96, 96);
  const pgr_device_caps caps = cpu();
  const SearchSpace space(ast.graph, ast.sink, caps, {.machine = slow});
  const Candidate tile = space.predicted(codegen::parse_schedule("upcast(0, 4) vectorize(1, 16)"));
  const Climb found = codegen::climb(space, tile);
  EXPECT_GT(found.first.prediction.cycles.arithmetic, 0.6 * found.first.prediction.cycles.all);
  EXPECT_EQ(found.looks, 0u);
}

TEST(Climb, DoesNotDependOnTheThreadsThatPlan) {
  std::string lists[2], schedules[2];
  for (const uint32_t threads : {1, 2}) {
    const SettingScope scope([&](Settings& s) { s.threads = threads; });
    lists[threads - 1] = codegen::to_string(Searched(matmul(96, 96, 96)).from("").best.list);
    schedules[threads - 1] = Searched(softmax2(512, 512)).chosen();
  }
  EXPECT_EQ(lists[0], lists[1]);
  EXPECT_EQ(schedules[0], schedules[1]);
  EXPECT_NE(lists[0], "");
}

}  // namespace
}  // namespace plugrad::test
