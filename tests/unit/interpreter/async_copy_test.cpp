// Asynchronous copies into local memory arrive at the wait, and the destination is overwritten when
// the copy starts: a kernel with a missing wait or barrier gives wrong values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugrad/sdk/guard.h"
#include "run_op.h"

namespace plugrad::sdk {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Value = IrBuilder::Value;

constexpr int32_t kUnset = -1;  // all bits, as the interpreter fills arrays

// A work-item with a local array of 16 i32, which is copied to the output at the end.
struct Copies {
  IrBuilder b{"k"};
  Value out = b.buffer(I32, 16, PGR_PARAM_WRITE), in = b.buffer(I32, 16, PGR_PARAM_READ, 16);
  Value array = b.array(PGR_SPACE_LOCAL, I32, 16, 1, 16);
  Value at(int64_t index) { return b.constant_int(I32, index); }
  void copy(int64_t to, int64_t from) { b.async_copy(array, at(to), in, at(from), 4); }

  std::vector<int32_t> run() {
    const Value i = b.loop(at(0), at(16));
    b.store(out, i, b.load(array, i));
    b.end_loop(i);
    std::vector<int32_t> stored(16), values(16);
    for (int32_t k = 0; k < 16; ++k) values[static_cast<size_t>(k)] = 100 + k;
    run_kernel(b, {{stored.data(), 64}, {values.data(), 64}});
    return stored;
  }
  std::vector<int32_t> first_of_fours() {
    const std::vector<int32_t> all = run();
    return {all[0], all[4], all[8], all[12]};
  }
  std::string error() {
    try {
      run();
    } catch (const StatusError& e) {
      return e.what();
    }
    return "no error";
  }
};

TEST(AsyncCopy, ArrivesWithTheWaitForItsGroup) {
  Copies k;
  for (int64_t group = 0; group < 3; ++group) {
    k.copy(4 * group, 4 * group);
    k.b.async_commit();
  }
  k.b.async_wait(1);
  EXPECT_THAT(k.first_of_fours(), ElementsAre(100, 104, kUnset, kUnset));
}

TEST(AsyncCopy, WithoutAWaitNeverArrives) {
  Copies k;
  k.copy(0, 8);
  k.b.async_commit();
  k.copy(4, 8);
  k.b.async_wait(0);  // does not wait for uncommitted copies
  k.copy(8, 8);
  k.b.async_commit();
  EXPECT_THAT(k.first_of_fours(), ElementsAre(108, kUnset, kUnset, kUnset));
}

TEST(AsyncCopy, TakesItsPlaceAtOnce) {
  Copies k;
  k.b.store(k.array, k.at(0), k.at(7));
  k.b.store(k.array, k.at(8), k.at(9));
  k.copy(0, 0);
  k.b.async_commit();
  EXPECT_THAT(k.first_of_fours(), ElementsAre(kUnset, kUnset, 9, kUnset));
}

TEST(AsyncCopy, OfAnEmptyGroupIsWaitedForToo) {
  Copies k;
  k.copy(0, 0);
  k.b.async_commit();
  k.b.async_commit();  // an empty group
  k.b.async_wait(1);
  EXPECT_EQ(k.first_of_fours()[0], 100);
}

TEST(AsyncCopy, WithAClosedGateReadsNothingAndGivesZeros) {
  Copies k;
  const Value no = k.b.constant_int(PGR_DTYPE_BOOL, 0), yes = k.b.constant_int(PGR_DTYPE_BOOL, 1);
  k.b.async_copy_gated(k.array, k.at(0), k.in, k.at(-4000), no, 4);
  k.b.async_copy_gated(k.array, k.at(4), k.in, k.at(12), yes, 4);
  k.b.async_commit();
  k.b.async_wait(0);
  EXPECT_THAT(k.run(), ElementsAre(0, 0, 0, 0, 112, 113, 114, 115, -1, -1, -1, -1, -1, -1, -1, -1));
}

TEST(AsyncCopy, OutsideOrAtAnOddPlaceIsAnError) {
  Copies outside;
  outside.copy(0, 16);
  EXPECT_THAT(outside.error(),
              HasSubstr("(ASYNC_COPY): index 16 + lane 3 is outside [0, 16) of parameter 1"));
  Copies behind;
  behind.copy(16, 0);
  EXPECT_THAT(behind.error(), HasSubstr("is outside [0, 16) of array 0"));
  Copies odd;
  odd.copy(0, 2);
  EXPECT_THAT(odd.error(), HasSubstr("index 2 is not a multiple of the copy's 4 lanes"));
}

}  // namespace
}  // namespace plugrad::sdk
