// Gradients do not depend on when anything is read: random programs against derivatives that are
// carried along with each value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <random>
#include <string>

#include "engine/session.h"
#include "plugrad/plugrad.h"

namespace plugrad {
namespace {

using testing::ElementsAre;

Tensor leaf(std::initializer_list<double> values) {
  return Tensor::from<float>(std::vector<float>(values.begin(), values.end())).requires_grad_();
}
std::vector<float> floats(const Tensor& t) {
  return t.to_vector<float>();
}

TEST(Tape, AnAssignmentKeepsTheUsesBeforeIt) {
  Tensor w = leaf({1, 2});
  const Tensor a = (w * 2).sum();
  a.item<float>();
  {
    const NoGradScope scope;
    w.assign(w * 0.5);
  }
  (a + (w * 3).sum()).backward();
  EXPECT_THAT(floats(w.grad()), ElementsAre(5, 5));
}

TEST(Tape, ALeafThatIsComputedLaterKeepsItsUses) {
  Tensor w = (Tensor::arange(2).cast(DType::F32) + 1).requires_grad_();
  const Tensor a = (w * 2).sum();
  EXPECT_THAT(floats(w), ElementsAre(1, 2));
  (a + (w * 3).sum()).backward();
  EXPECT_THAT(floats(w.grad()), ElementsAre(5, 5));
}

TEST(Tape, DescentByHandMayPrintPartsOfItsLoss) {
  Tensor w = (Tensor::arange(2).cast(DType::F32)).requires_grad_();
  std::vector<double> exact = {0, 1};
  for (int step = 0; step < 3; ++step) {
    w.zero_grad();
    const Tensor fit = ((w - 1) * (w - 1)).sum(), weight = (w * w).sum();
    fit.item<float>();
    const Tensor loss = fit + weight;
    loss.item<float>();
    loss.backward();
    const NoGradScope scope;
    w -= w.grad() * 0.125;
    for (double& x : exact) x -= 0.125 * (2 * (x - 1) + 2 * x);
    EXPECT_THAT(floats(w), ElementsAre(exact[0], exact[1]));
  }
}

TEST(Tape, OnlyUsesAfterTheMarkCount) {
  for (const bool is_stored : {false, true}) {
    Tensor w = Tensor::arange(2).cast(DType::F32);
    if (is_stored) w.realize();
    const Tensor before = (w * 2).sum();
    w.requires_grad_();
    (before + (w * 3).sum()).backward();
    EXPECT_THAT(floats(w.grad()), ElementsAre(3, 3));
  }
}

TEST(Tape, AResultOfWhichBackwardWasCalledIsRefused) {
  for (const bool is_read : {false, true}) {
    const Tensor w = leaf({1, 2}), a = (w * 2).sum();
    a.backward();
    if (is_read) a.item<float>();
    EXPECT_THROW((a + (w * 3).sum()).backward(), Error);
    (a.detach() + (w * 3).sum()).backward();
    EXPECT_THAT(floats(w.grad()), ElementsAre(5, 5));
  }
}

// A program that adds up its losses, or carries a state, must not keep the graphs of all steps.
TEST(Tape, MemoryStaysFlatWhereLossesAreAddedUp) {
  Tensor w = leaf({1, 2});
  Tensor total = Tensor::from<float>({0}), state = Tensor::from<float>({0, 0});
  engine::Session& session = engine::Session::current();
  uint64_t early = 0;
  for (int step = 0; step < 300; ++step) {
    w.zero_grad();
    state = state * 0.5 + w;
    const Tensor loss = (state * state).sum();
    total = total + loss;
    loss.backward();
    const NoGradScope scope;
    w -= w.grad() * 0.001;
    w.realize();
    state.realize();
    total.realize();
    if (step % 100 != 99) continue;
    session.collect();
    if (step == 99) early = session.statistics().live_values;
  }
  EXPECT_LE(session.statistics().live_values, early + 4);
  EXPECT_LE(session.statistics().graph_nodes, 200u);
}

/// A recorded value and, by leaf and element, its derivative; all operations are elementwise.
struct Known {
  Tensor tensor;
  std::array<double, 2> value{};
  std::map<size_t, std::array<double, 2>> by;
  std::vector<size_t> made_of;  // numbers of values
  bool is_spent = false;        // a backward() has used its graph
};

class Program {
 public:
  explicit Program(uint32_t seed) : random_(seed) {}

  void run() {
    for (int i = 0; i < 2; ++i) add_leaf();
    try {
      for (int i = 0; i < 12; ++i) act();
      for (size_t i = 0; i < leaves_.size(); ++i) expect_gradient(i);
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
    if (testing::Test::HasFailure()) std::cerr << said_;
  }

 private:
  struct Leaf {
    Tensor tensor;
    std::array<double, 2> value{}, gradient{};
    bool is_marked = false, has_gradient = false;
  };

  int pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }

  void act() {
    switch (pick(9)) {
      case 0:
        return assign(pick_leaf());
      case 1:
        return mark(pick_leaf());
      case 2:
        return backward();
      case 3:
        return read();
      case 4:
        say("collect");
        engine::Session::current().collect();
        return;
      case 5:
        return combine();
      default:
        return use(pick_leaf());
    }
  }

  size_t pick_leaf() { return static_cast<size_t>(pick(static_cast<int>(leaves_.size()))); }

  void add_leaf() {
    Leaf leaf;
    const int base = pick(4);
    leaf.value = {base - 1.0, base + 1.0};
    const bool is_lazy = pick(2) == 0;
    leaf.tensor =
        is_lazy ? Tensor::arange(2).cast(DType::F32) * 2 + (base - 1)
                : Tensor::from<float>({static_cast<float>(base - 1), static_cast<float>(base + 1)});
    leaves_.push_back(leaf);
    if (pick(4) != 0) mark(leaves_.size() - 1);
  }

  template <class... Words>
  void say(const Words&... words) {
    ((said_ += std::string(words) + " "), ...);
    said_ += "\n";
  }

  void mark(size_t i) {
    if (leaves_[i].is_marked) return;
    say("mark leaf", std::to_string(i));
    leaves_[i].tensor.requires_grad_();
    leaves_[i].is_marked = true;
  }

  void assign(size_t i) {
    Leaf& leaf = leaves_[i];
    const NoGradScope scope;
    const int by = pick(3) + 1;
    say("leaf", std::to_string(i), "-=", std::to_string(by));
    if (pick(2) == 0)
      leaf.tensor -= by;
    else
      leaf.tensor.assign(leaf.tensor - by);
    for (double& x : leaf.value) x -= by;
  }

  void use(size_t i) {
    Leaf& leaf = leaves_[i];
    const int factor = pick(3) + 1;
    const bool is_square = pick(2) == 0;
    say("value", std::to_string(values_.size()), is_square ? "= square of leaf" : "= 1 + leaf",
        std::to_string(i), "times", std::to_string(factor));
    Known known;
    known.tensor = (is_square ? leaf.tensor * leaf.tensor : leaf.tensor + 1) * factor;
    for (size_t e = 0; e < 2; ++e)
      known.value[e] = (is_square ? leaf.value[e] * leaf.value[e] : leaf.value[e] + 1) * factor;
    if (leaf.is_marked)
      for (size_t e = 0; e < 2; ++e)
        known.by[i][e] = is_square ? 2 * leaf.value[e] * factor : factor;
    values_.push_back(known);
  }

  bool is_spent(size_t number) const {
    if (values_[number].is_spent) return true;
    for (const size_t part : values_[number].made_of)
      if (is_spent(part)) return true;
    return false;
  }

  std::vector<size_t> unspent() const {
    std::vector<size_t> numbers;
    for (size_t i = 0; i < values_.size(); ++i)
      if (!is_spent(i)) numbers.push_back(i);
    return numbers;
  }

  void combine() {
    const std::vector<size_t> numbers = unspent();
    if (numbers.size() < 2) return;
    const size_t a = numbers[static_cast<size_t>(pick(static_cast<int>(numbers.size())))];
    const size_t b = numbers[static_cast<size_t>(pick(static_cast<int>(numbers.size())))];
    Known known;
    known.made_of = {a, b};
    say("value", std::to_string(values_.size()), "= values", std::to_string(a), "+",
        std::to_string(b));
    known.tensor = values_[a].tensor + values_[b].tensor;
    known.by = values_[a].by;
    for (size_t e = 0; e < 2; ++e) known.value[e] = values_[a].value[e] + values_[b].value[e];
    for (const auto& [leaf, slopes] : values_[b].by)
      for (size_t e = 0; e < 2; ++e) known.by[leaf][e] += slopes[e];
    values_.push_back(known);
  }

  void spend(size_t number) {
    values_[number].is_spent = true;
    for (const size_t part : values_[number].made_of) spend(part);
  }

  void backward() {
    const std::vector<size_t> numbers = unspent();
    if (numbers.empty()) return;
    const size_t number = numbers[static_cast<size_t>(pick(static_cast<int>(numbers.size())))];
    if (values_[number].by.empty()) return;
    const bool retains = pick(2) == 0;
    say("backward of value", std::to_string(number), retains ? "again" : "");
    values_[number].tensor.sum().backward(retains);
    if (!retains) spend(number);
    for (const auto& [i, slopes] : values_[number].by) {
      leaves_[i].has_gradient = true;
      for (size_t e = 0; e < 2; ++e) leaves_[i].gradient[e] += slopes[e];
    }
  }

  void read() {
    const size_t number =
        static_cast<size_t>(pick(static_cast<int>(values_.size() + leaves_.size())));
    say("read", number < leaves_.size() ? "leaf" : "value",
        std::to_string(number < leaves_.size() ? number : number - leaves_.size()));
    if (number < leaves_.size()) {
      EXPECT_THAT(floats(leaves_[number].tensor),
                  ElementsAre(leaves_[number].value[0], leaves_[number].value[1]));
      return;
    }
    const Known& known = values_[number - leaves_.size()];
    EXPECT_THAT(floats(known.tensor), ElementsAre(known.value[0], known.value[1]));
  }

  void expect_gradient(size_t i) {
    const Leaf& leaf = leaves_[i];
    ASSERT_EQ(leaf.tensor.grad().defined(), leaf.has_gradient);
    if (!leaf.has_gradient) return;
    EXPECT_THAT(floats(leaf.tensor.grad()), ElementsAre(leaf.gradient[0], leaf.gradient[1]));
  }

  std::mt19937 random_;
  std::string said_;  // the program
  std::vector<Leaf> leaves_;
  std::vector<Known> values_;
};

TEST(Tape, RandomProgramsHaveTheGradientsOfTheirOperations) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Program(seed).run();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace plugrad
