#include "ir/facts.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace plugrad {
namespace {

using Groups = std::vector<std::array<size_t, 4>>;

Groups groups_of(std::vector<int64_t> to, std::vector<int64_t> from) {
  Groups groups;
  each_reshape_group(to, from, [&](size_t i, size_t i_end, size_t j, size_t j_end) {
    groups.push_back({i, i_end, j, j_end});
  });
  return groups;
}

TEST(ReshapeGroups, AxesThatAReshapeMixes) {
  EXPECT_EQ(groups_of({4, 6}, {4, 2, 3}), (Groups{{0, 1, 0, 1}, {1, 2, 1, 3}}));
  EXPECT_EQ(groups_of({2, 12}, {8, 3}), (Groups{{0, 2, 0, 2}}));
  EXPECT_EQ(groups_of({6, 1}, {1, 6}), (Groups{{0, 1, 0, 2}, {1, 2, 2, 2}}));
  EXPECT_EQ(groups_of({}, {}), Groups{});
  EXPECT_EQ(groups_of({1}, {}), (Groups{{0, 1, 0, 0}}));
}

TEST(ReshapeGroups, ShapesWithoutElementsAreOneGroup) {
  EXPECT_EQ(groups_of({0, 3}, {3, 0}), (Groups{{0, 2, 0, 2}}));
  EXPECT_EQ(groups_of({0, 3}, {0}), (Groups{{0, 2, 0, 1}}));
  EXPECT_EQ(groups_of({0}, {2, 0, 3}), (Groups{{0, 1, 0, 3}}));
}

}  // namespace
}  // namespace plugrad
