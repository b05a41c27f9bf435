// An operation that fails when it is computed names the line of a binding's program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/session.h"
#include "plugrad/binding.h"
#include "plugrad/plugrad.h"
#include "tensor/handles.h"

namespace plugrad {
namespace {

uint32_t line = 0;

class Places : public testing::Test {
 protected:
  Places() {
    set_place_source(
        {[] { return line; }, [](uint32_t place) { return "program:" + std::to_string(place); }});
  }
  ~Places() override { set_place_source({}); }
  static uint32_t place_of(const Tensor& tensor) {
    return engine::Session::current().place(tensor::state_of(tensor)->node);
  }
};

TEST_F(Places, an_error_has_the_line_of_the_operation_and_keeps_its_class) {
  line = 3;
  const Tensor huge = Tensor::arange(int64_t{1} << 44);
  line = 4;
  const Tensor next = huge * 3;
  line = 5;
  try {
    next.realize();
    FAIL() << "no device has so much memory";
  } catch (const Error& error) {
    EXPECT_THAT(error.recorded_at(), testing::ElementsAre("program:4"));
    EXPECT_THAT(error.what(), testing::EndsWith("\n  recorded at program:4"));
  }
}

TEST_F(Places, a_gradient_has_the_line_of_its_forward) {
  Tensor w = Tensor::from({1.0F, 2.0F});
  w.requires_grad_();
  line = 7;
  const Tensor loss = w.exp().sum();
  line = 9;
  loss.backward();
  EXPECT_EQ(place_of(w.grad()), 7u);
}

TEST_F(Places, lines_stay_with_their_nodes_when_the_graph_is_renumbered) {
  line = 11;
  const Tensor kept = Tensor::full({8}, 1.5).contiguous() + 1;
  line = 12;
  for (int i = 0; i < 100; ++i) Tensor::full({8}, i).contiguous();
  engine::Session::current().collect();
  EXPECT_EQ(place_of(kept), 11u);
}

}  // namespace
}  // namespace plugrad
