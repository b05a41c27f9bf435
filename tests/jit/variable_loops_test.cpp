// Long loops whose steps compute sizes use constant memory.
#include "jit/variable_cases.h"
#include "runtime/registry.h"

using namespace plugrad;
using testing::HasSubstr;

namespace {

struct Held {
  uint64_t bytes, values, nodes;  // bytes: of all that the device holds, by whomever
};

Held held() {
  engine::Session& session = engine::Session::current();
  session.collect();
  const auto now = session.statistics();
  return {runtime::Registry::instance().default_device().memory_stats().used_bytes, now.live_values,
          now.graph_nodes};
}

/// Decodes with key-value caches in layers, at a position that the step itself increments; at the
/// end the position restarts.
class Decoder {
 public:
  explicit Decoder(int32_t place) : place_(Tensor::from<int32_t>({place}, Shape{}).realize()) {
    for (int i = 0; i < 3; ++i) {
      keys_.push_back(Tensor::zeros({kMost, 4}).contiguous().realize());
      values_.push_back(Tensor::zeros({kMost, 4}).contiguous().realize());
    }
  }

  void step() { run_(x_); }
  const Tensor& result() const { return x_; }
  const Tensor& place() const { return place_; }

 private:
  Tensor decode(const Tensor& x) {
    const Tensor here = Tensor::arange(kMost).reshape({kMost, 1}) == place_ - 1;
    Tensor y = x;
    for (size_t i = 0; i < keys_.size(); ++i) {
      keys_[i].assign(where(here, y, keys_[i]));
      values_[i].assign(where(here, y + 1, values_[i]));
      y = scaled_dot_product_attention(y, length().limit(keys_[i], 0, place_),
                                       length().limit(values_[i], 0, place_)) *
          0.5;
    }
    place_.assign(place_ % kMost + 1);
    return y;
  }

  Tensor x_ = numbers({1, 4}).realize(), place_;
  std::vector<Tensor> keys_, values_;
  std::function<Tensor(const Tensor&)> run_ =
      [this, jitted = jit([this](const Tensor& x) { return decode(x); })](const Tensor& x) mutable {
        return x_ = jitted(x);
      };
};

// Each step's result and caches depend on all sizes before.
TEST(VariableLoops, TenThousandStepsThatNobodyReadsHoldWhatAThousandDo) {
  Decoder decoder(1);
  for (int i = 0; i < 1000; ++i) decoder.step();
  const Held before = held();
  for (int i = 0; i < 9000; ++i) decoder.step();
  const Held after = held();
  EXPECT_EQ(after.bytes, before.bytes);
  EXPECT_EQ(after.values, before.values);
  EXPECT_LE(after.nodes, before.nodes + 16);
  EXPECT_EQ(decoder.place().item<int32_t>(), 10000 % kMost + 1);
  for (float v : floats(decoder.result())) EXPECT_TRUE(std::isfinite(v));
}

}  // namespace
