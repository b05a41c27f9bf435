// Values of sharded tensors: parts, movements between specs, functions, assignment.
#include <cmath>
#include <set>

#include "base/settings.h"
#include "engine/recording/recorded_functions.h"
#include "plugrad/host_view.h"
#include "sharding/meshes.h"

namespace plugrad {
namespace {

using testing::ElementsAre;

TEST(ShardedValues, PartsOfADimensionDifferByAtMostOne) {
  const Tensor x = counting({5, 2}, 0.0, 1.0).shard(four(), {"data"});
  const std::vector<Tensor> parts = x.shards();
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_THAT(parts[0].to_vector<int>(), ElementsAre(0, 1));
  EXPECT_THAT(parts[1].to_vector<int>(), ElementsAre(2, 3));
  EXPECT_THAT(parts[3].to_vector<int>(), ElementsAre(6, 7, 8, 9));
  EXPECT_EQ(parts[3].device(), "REFERENCE");
  EXPECT_THAT(x.to_vector<int>(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST(ShardedValues, AMatrixProductOfCutRowsAndColumns) {
  const Mesh mesh = two_by_two();
  const Tensor x = counting({4, 3}).shard(mesh, {"data"});
  const Tensor w = counting({3, 6}).shard(mesh, {"", "model"});
  const Tensor y = x.matmul(w);
  EXPECT_EQ(y.shard_spec().to_string(), "[data, model]");
  expect_as_evaluated(y);
  EXPECT_EQ(y.shards()[0].shape(), (Shape{2, 3}));
}

TEST(ShardedValues, AProductOverACutDimensionLeavesTerms) {
  const Mesh mesh = two_by_two();
  const Tensor x = counting({4, 6}).shard(mesh, {"data", "model"});
  const Tensor w = counting({6, 5}).shard(mesh, {"model"});
  const Tensor y = x.matmul(w);
  EXPECT_EQ(y.shard_spec().to_string(), "[data, -] partial add(model)");
  expect_as_evaluated(y);
  expect_as_evaluated(y.relu());
  EXPECT_EQ(y.relu().shard_spec().to_string(), "[data, -]");
}

TEST(ShardedValues, RandomNumbersAreThoseOfOneDevice) {
  for (const ShardSpec& spec : {ShardSpec(), ShardSpec({"data"}), ShardSpec({"", "data"})}) {
    const Mesh mesh = two();
    const Tensor ones = Tensor::full({5, 7}, 1.0F).contiguous().realize();
    const auto drawn = [&](const Tensor& x) {
      Tensor::manual_seed(3);
      const Tensor all = x.dropout(0.4) + x.rand_like();
      EXPECT_EQ(all.is_sharded(), x.is_sharded());
      return all.to_vector<float>();
    };
    EXPECT_EQ(drawn(ones.shard(mesh, spec)), drawn(ones));
    Tensor::manual_seed(4);
    const Tensor x = Tensor::rand({5, 7}, DType::F32, mesh.device());
    EXPECT_EQ(x.device(), mesh.device());
    Tensor::manual_seed(4);
    EXPECT_EQ(x.to_vector<float>(), Tensor::rand({5, 7}).to_vector<float>());
  }
}

TEST(ShardedValues, AScanIsThatOfOneDevice) {
  const Tensor x = counting({4, 6}, -1, 0.1), first = counting({6}), w = counting({6}, 0.1, 0.2);
  const auto run = [](const Tensor& in, const Tensor& state, const Tensor& by, bool reverse) {
    return scan(
        [&](const std::vector<Tensor>& s, const std::vector<Tensor>& one) {
          const Tensor next = (s[0] * by + one[0]).tanh();
          return ScanResult{{next}, {next * 2, one[0].sum()}};
        },
        {state}, {in}, reverse);
  };
  for (const bool reverse : {false, true})
    for (const ShardSpec& spec : {ShardSpec(), ShardSpec({"data"}), ShardSpec({"", "data"})}) {
      const Mesh mesh = two();
      const ScanResult one = run(x, first, w, reverse);
      const ScanResult many = run(x.shard(mesh, spec), first.shard(mesh), w.shard(mesh), reverse);
      EXPECT_THAT(many.state[0].to_vector<float>(),
                  testing::Pointwise(testing::FloatNear(1e-6F), one.state[0].to_vector<float>()));
      for (size_t i = 0; i < 2; ++i)
        EXPECT_THAT(
            many.outputs[i].to_vector<float>(),
            testing::Pointwise(testing::FloatNear(1e-5F), one.outputs[i].to_vector<float>()));
    }
  const Mesh mesh = two();
  const ScanResult none =
      run(x.shrink({{0, 0}, {0, 6}}).shard(mesh), first.shard(mesh), w.shard(mesh), false);
  EXPECT_EQ(none.outputs[0].shape(), (Shape{0, 6}));
  EXPECT_EQ(none.state[0].to_vector<float>(), first.to_vector<float>());
}

TEST(ShardedValues, JittedDropoutDrawsInEachCall) {
  const Tensor x = Tensor::full({64, 8}, 1.0F).shard(two(), {"data"}).realize();
  const auto step = jit([](const Tensor& in) { return in.dropout(0.5).sum(); });
  std::set<float> sums;
  for (int i = 0; i < 6; ++i) sums.insert(step(x).item<float>());
  EXPECT_GT(sums.size(), 3u);
}

TEST(ShardedValues, PartsAreNoHostView) {
  const Tensor x = counting({4, 6}).shard(two(), {"data"}).realize();
  EXPECT_FALSE(host_view(x).has_value());
  EXPECT_TRUE(host_view(x.shards()[0]).has_value());
}

TEST(ShardedValues, ConstantsOfAMeshAreAsOthers) {
  const Tensor s = counting({4, 3}).shard(two(), {"data"}).realize();
  const auto is_all = [](const Tensor& x, float wanted) {
    for (const float value : x.to_vector<float>()) EXPECT_EQ(value, wanted);
    EXPECT_FALSE(host_view(x));
    for (const float value : x.to_vector<float>()) EXPECT_EQ(value, wanted);  // once computed
  };
  is_all(s.ones_like(), 1);
  is_all(s.ones_like() + 1, 2);
  is_all(s.ones_like().exp2(), 2);
  is_all((s.ones_like() * 3).sum(0), 12);
  is_all((s.ones_like() + 1).contiguous(), 2);
  is_all(Tensor::zeros({3}, DType::F32, s.device()) + 1, 1);
  is_all(Tensor::arange(3, DType::F32, s.device()) * 0 + 1, 1);
  is_all((s.ones_like() + 1).realize() + s * 0, 2);
  Tensor x = counting({4, 3}).shard(two(), {"data"}).realize().requires_grad_();
  x.sum().backward();
  x.sum().backward();
  is_all(x.grad(), 2);
  is_all(x.grad() * 0.5 + 1, 2);
}

TEST(ShardedValues, ADescriptionNamesSpecsAndCollectives) {
  const Mesh mesh = two_by_two();
  const Tensor x = counting({4, 6}).shard(mesh, {"data", "model"}).realize();
  const Tensor w = counting({6, 5}).shard(mesh, {"model"}).realize();
  const std::string text = describe_sharding(x.matmul(w).exp2());
  EXPECT_THAT(text, testing::HasSubstr("mesh data=2 model=2"));
  EXPECT_THAT(text,
              testing::ContainsRegex("all-reduce %[0-9]+ along model: 80 bytes\n +%[0-9]+ Exp2"));
  EXPECT_THAT(text, testing::HasSubstr("(4, 5) [data, -]"));
  EXPECT_EQ(describe_sharding(counting({2})), "");
}

TEST(ShardedValues, ADescriptionHasEachMovementOnce) {
  const Mesh mesh = two_by_two();
  const Tensor x = counting({4, 6}).shard(mesh, {"data"}).realize();
  const Tensor sum = x.sum(0);  // a view of the terms, which two functions read
  const std::string text = describe_sharding(sum.exp2() + sum.reshape({1, 6}).sqrt());
  const size_t first = text.find("all-reduce");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("all-reduce", first + 1), std::string::npos) << text;
  EXPECT_THAT(text, testing::ContainsRegex("%[0-9]+ Reduce f32 \\(1, 6\\) \\[-, -\\] partial "
                                           "add\\(data\\)\n"));
}

TEST(ShardedValues, EverySpecLeadsToEveryOther) {
  const Mesh mesh = two_by_two();
  const std::vector<ShardSpec> specs = {{},
                                        {"data"},
                                        {"model"},
                                        {"", "data"},
                                        {"data", "model"},
                                        {"model", "data"},
                                        {"data+model"},
                                        {"", "data+model"},
                                        ShardSpec({"data"}).with_partial_sum("model"),
                                        ShardSpec().with_partial_sum("data+model")};
  for (const Shape& shape : {Shape{8, 4}, Shape{5, 3}, Shape{1, 2}, Shape{0, 3}})
    for (const ShardSpec& from : specs)
      for (const ShardSpec& to : specs) {
        const Tensor x = counting(shape).shard(mesh, from);
        const Tensor y = x.shard(mesh, to);
        EXPECT_EQ(y.shard_spec(), ShardSpec(to.dims().size() == 2 ? to.dims() : [&] {
                    auto dims = to.dims();
                    dims.resize(2);
                    return dims;
                  }()).with_partial_sum(to.partial_sum()));
        EXPECT_EQ(y.to_vector<float>(), counting(shape).to_vector<float>())
            << from.to_string() << " to " << to.to_string() << " of " << to_string(shape);
      }
}

TEST(ShardedValues, TermsOfAProductAreNoTermsOfASum) {
  const Mesh mesh = two();
  const Tensor product = counting({4}, 1.0, 1.0).shard(mesh, {"data"}).prod();
  EXPECT_EQ(product.shard(mesh, ShardSpec().with_partial_sum("data")).item<float>(), 24.F);
}

// 1 + -1 is 0, and negated -0; of the negated terms, -1 + 1, it would be 0.
TEST(ShardedValues, ANegatedSumOfZeroIsMinusZero) {
  const Tensor terms = Tensor::from(std::vector<float>{1, -1}, {2}).shard(two(), {"data"});
  EXPECT_TRUE(std::signbit((-terms.sum()).item<float>()));
  const Tensor zero = Tensor::from(std::vector<float>{0}, {1}).realize();
  const ShardSpec partial = ShardSpec().with_partial_sum("data");
  EXPECT_TRUE(std::signbit((-zero.shard(two(), partial)).item<float>()));
  EXPECT_TRUE(std::signbit((-zero).realize().shard(two(), partial).item<float>()));
  EXPECT_EQ((-terms.cast(DType::I32).sum()).shard_spec().to_string(), "[] partial add(data)");
}

TEST(ShardedValues, ATensorThatIsChangedInPartKeepsItsSpec) {
  const Mesh mesh = two();
  const auto changed = [&](auto change) {
    Tensor plain = counting({4, 3}), sharded = counting({4, 3}).shard(mesh, {"data"}).realize();
    change(plain);
    change(sharded);
    EXPECT_EQ(sharded.shard_spec().to_string(), "[data, -]");
    EXPECT_EQ(sharded.to_vector<float>(), plain.to_vector<float>());
  };
  changed([](Tensor& x) { x[{1}] = 5; });
  changed([](Tensor& x) { x[{Slice()}] = 1; });
  changed([](Tensor& x) { x[{Tensor::from({0, 3}, x.device())}] = -1; });
  changed([](Tensor& x) { x[{Slice(), 2}] = Tensor::from({1, 2, 3, 4}, x.device()); });
}

TEST(ShardedValues, ResizeAsOnOneDevice) {
  const Tensor x = counting({2, 3, 5, 4});
  for (const auto mode : {Interpolation::Nearest, Interpolation::Linear}) {
    const auto resized = [&](const Tensor& image) {
      InterpolateOptions options;
      options.size = {8, 7};
      options.mode = mode;
      return interpolate(image, options);
    };
    EXPECT_THAT(resized(x.shard(two(), {"data"})).to_vector<float>(),
                testing::Pointwise(testing::FloatNear(1e-5F), resized(x).to_vector<float>()));
  }
}

// Ranks that cut a tensor in other ways, or cut other ones, are told so at the next collective.
TEST(ShardedValues, ARecordedFunctionHasAShapeASpecAndNumbers) {
  engine::RecordedFunctions& recorded = engine::RecordedFunctions::of_this_thread();
  const engine::RecordedFunctions before = recorded;
  const auto text = [&](const Shape& shape, const ShardSpec& spec, double number = 2) {
    recorded = before;
    (counting(shape).shard(two(), spec) * number).sum();
    return std::exchange(recorded, before).text();
  };
  EXPECT_EQ(text({8, 2}, {"data"}), text({8, 2}, {"data"}));
  EXPECT_NE(text({8, 2}, {"data"}), text({7, 2}, {"data"}));
  EXPECT_NE(text({8, 2}, {"data"}), text({8, 2}, {"", "data"}));
  EXPECT_NE(text({8, 2}, {"data"}), text({8, 2}, {"data"}, 3));
}

TEST(ShardedValues, IndicesOutOfRangeAreFound) {
  const Mesh mesh = two();
  const Tensor x = counting({4, 3}).shard(mesh, {"data"});
  const auto cut = [&](int32_t last) {
    return Tensor::from<int32_t>({0, 1, 2, last}, "CPU").shard(mesh, {"data"});
  };
  const std::string rows = " (element 3) is out of range for size 4: allowed are -4 to 3";
  const std::string labels =
      "[cross_entropy] label 3 (element 3) is out of range for size 3: allowed are 0 to 2";
  EXPECT_EQ(error_of([&] { x.index_select(0, cut(7)); }), "[index_select] index 7" + rows);
  EXPECT_EQ(error_of([&] { cross_entropy(x, cut(3)); }), labels);

  const SettingScope on{[](Settings& s) { s.check_indices = true; }};
  const auto computed = [&](int32_t last) { return (cut(last).realize() * 1).realize(); };
  EXPECT_EQ(x.index_select(0, computed(3)).to_vector<float>(), x.to_vector<float>());
  const Tensor y = x.index_select(0, computed(-5));
  EXPECT_EQ(error_of([&] { y.to_vector<float>(); }), "[index_select] index -5" + rows);
  EXPECT_EQ(error_of([&] { (y * 2).sum().item<float>(); }), "[index_select] index -5" + rows);
  const Tensor loss = cross_entropy(x, computed(3));
  EXPECT_EQ(error_of([&] { loss.item<float>(); }), labels);
}

TEST(ShardedValues, TheDefaultDeviceMayBeAMesh) {
  const Mesh mesh = two();
  const DeviceScope scope(mesh.device());
  const Tensor x = Tensor::from({1, 2, 3});
  EXPECT_EQ(x.device(), mesh.device());
  EXPECT_THAT((x + Tensor::ones({3})).to_vector<float>(), ElementsAre(2, 3, 4));
  const nn::BatchNorm norm(3);
  EXPECT_THAT(norm.running_mean.to_vector<float>(), ElementsAre(0, 0, 0));
}

TEST(ShardedValues, AnAssignedTensorKeepsItsSpec) {
  const Mesh mesh = two();
  Tensor x = counting({4, 2}, 0.0, 1.0).shard(mesh, {"data"}).realize();
  const Tensor before = x + 1;
  x.assign(x * 2);
  x += counting({4, 2}, 1.0, 0.0).shard(mesh);
  EXPECT_EQ(x.shard_spec().to_string(), "[data, -]");
  EXPECT_THAT(x.to_vector<int>(), ElementsAre(1, 3, 5, 7, 9, 11, 13, 15));
  EXPECT_THAT(before.to_vector<int>(), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_EQ(x.shard_spec().to_string(), "[data, -]");
}

TEST(ShardedValues, ConstantsAndRandomNumbersAreThoseOfOneDevice) {
  const Mesh mesh = two();
  Tensor::manual_seed(5);
  const Tensor one = Tensor::rand({6, 4}, DType::F32, "CPU");
  Tensor::manual_seed(5);
  const Tensor sharded = Tensor::rand({6, 4}, DType::F32, "CPU").shard(mesh, {"data"});
  EXPECT_EQ(one.to_vector<float>(), sharded.to_vector<float>());
  EXPECT_THAT(Tensor::arange(5).shard(mesh, {"data"}).to_vector<int>(), ElementsAre(0, 1, 2, 3, 4));
  const Tensor ones = one.shard(mesh, {"data"}).ones_like();
  EXPECT_TRUE(ones.is_realized() || ones.device() == mesh.device());
  EXPECT_EQ((one.shard(mesh, {"data"}) * 0 + ones).to_vector<float>(), std::vector<float>(24, 1.F));
}

TEST(ShardedValues, MoveToOtherMeshes) {
  const Tensor plain = counting({6, 3}), x = plain.shard(two(), {"data"});
  EXPECT_EQ(x.shard(four(), {"", "data"}).to_vector<float>(), plain.to_vector<float>());
  const Mesh other({{"data", 2}}, {"REFERENCE", "REFERENCE"});
  const Tensor y = (x * 2.0).to(other.device());
  EXPECT_EQ(y.shard_spec(), (ShardSpec{"data", ""}));
  EXPECT_EQ(y.shards()[1].device(), "REFERENCE");
  expect_as_evaluated(y.sum(0).to(two().device()) + counting({3}).shard(two()));
  Tensor w = counting({6, 3}).shard(two(), {"data"}).realize();
  w.requires_grad_();
  w.to(other.device()).square().sum().to(two().device()).backward();
  EXPECT_EQ(w.grad().mesh(), two());
  EXPECT_EQ(w.grad().to_vector<float>(), (plain * 2.0).to_vector<float>());
}

}  // namespace
}  // namespace plugrad
