// Checks applied to every pattern.
#include "jit/patterns/replay_case.h"

using namespace plugrad;

TEST_P(Replays, GiveWhatTheFunctionGives) {
  expect_replays(GetParam());
}

TEST_P(Replays, AreWhatComparedCallsFind) {
  expect_no_difference(GetParam());
}
