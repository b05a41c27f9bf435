// What sharded tensors refuse, and what the messages say.
#include "sharding/meshes.h"

namespace plugrad {
namespace {

using testing::HasSubstr;

TEST(ShardingErrors, Meshes) {
  EXPECT_THAT(error_of([] { Mesh({{"data", 2}, {"data", 2}}, {"CPU", "CPU", "CPU", "CPU"}); }),
              HasSubstr("two axes are named data"));
  EXPECT_THAT(error_of([] { Mesh({{"data", 3}}, {"CPU", "CPU"}); }),
              HasSubstr("2 devices are given for 3 positions"));
  EXPECT_THAT(error_of([] { Mesh({{"data", 64}}); }),
              HasSubstr("Name the device of each position"));
  EXPECT_THAT(error_of([] { Mesh({{"data", 0}}, {"CPU"}); }), HasSubstr("sizes are at least 1"));
  EXPECT_THAT(error_of([] { Mesh({}); }), HasSubstr("at least one axis"));
}

TEST(ShardingErrors, Specs) {
  const Mesh mesh = two_by_two();
  const Tensor x = counting({4, 4});
  EXPECT_THAT(error_of([&] { x.shard(mesh, {"rows"}); }), HasSubstr("no axis \"rows\""));
  EXPECT_THAT(error_of([&] { x.shard(mesh, {"data", "data"}); }), HasSubstr("twice"));
  EXPECT_THAT(error_of([&] { x.shard(mesh, {"model+data"}); }), HasSubstr("order of the mesh"));
  EXPECT_THAT(error_of([&] { x.shard(mesh, {"", "", "data"}); }), HasSubstr("has 3 dimensions"));
}

TEST(ShardingErrors, TensorsOfTwoPlaces) {
  const Tensor x = counting({4, 4}).shard(two(), {"data"});
  EXPECT_THAT(error_of([&] { x + counting({4, 4}); }), HasSubstr("; x.shard(mesh) puts"));
  EXPECT_THAT(error_of([&] { x + counting({4, 4}).shard(four()); }), HasSubstr("x.unshard()"));
}

}  // namespace
}  // namespace plugrad
