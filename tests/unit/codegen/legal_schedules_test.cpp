// Every legal schedule gives the same numbers: kernels of random graphs are changed by random
// schedules and run on the interpreter beside the unscheduled kernel.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "codegen/kernel.h"
#include "codegen/passes/passes.h"
#include "codegen/search/search.h"
#include "gpu.h"
#include "ir/kernel_ast.h"
#include "ir/text/printer.h"
#include "kernels.h"
#include "oracle/array.h"
#include "plugrad/error.h"
#include "random_tensors.h"
#include "run.h"
#include "schedule/schedule.h"

namespace plugrad::test {
namespace {

using codegen::KernelSchedule;
using codegen::ScheduleStep;
using Kind = ScheduleStep::Kind;
using Memory = std::vector<std::vector<std::byte>>;

// All kinds of schedule steps except tensor_core and keep (compute_at), which few random kernels
// can use. ahead (software pipelining) is chosen together with stage (cache_read).
constexpr uint64_t kKinds = 10;

pgr_device_caps with_local(uint32_t lanes) {
  return with_async_copies(with_groups(256, 64 << 10, lanes));
}

// Small groups, little local memory, and few groups along an axis.
pgr_device_caps with_tiny_limits() {
  pgr_device_caps caps = with_local(1);
  for (uint32_t axis = 0; axis < 3; ++axis) {
    caps.max_local_size[axis] = 16u >> axis;
    caps.max_groups[axis] = axis == 0 ? 40 : 7;
  }
  caps.max_local_total = 24;
  caps.local_bytes = 256;
  return caps;
}

class Lists {
 public:
  explicit Lists(uint64_t seed) : random_(seed), seed_(seed) {}

  // The number of legal changes of each kind.
  std::map<Kind, int> legal;
  int kernels = 0, climbed = 0, barriers = 0, shared_copies = 0, asynchronous = 0;

  // A kernel whose masks let the index of one loop bound another loop.
  void run_bounded() {
    const auto size = [&](uint64_t below) { return 1 + static_cast<int64_t>(pick(below)); };
    const ConvShape conv{size(5), size(4), size(6), size(6), size(20), size(4)};
    const int64_t m = size(20), n = size(40), k = 1 + size(20);
    const int64_t below = size(4) - 1, above = size(4) - 1;
    Ast ast = seed_ % 2 == 0 ? padded_conv2d(conv, conv.k - 1) : band_matmul(m, n, k, below, above);
    KernelAst kernel;
    kernel.graph = std::move(ast.graph);
    kernel.sink = ast.sink;
    kernel.param_count = 3;
    check(kernel);
  }

  // A product that computes the rows of another product's operand, with row reductions in between,
  // all in integers.
  void run_rows() {
    kinds_ = kKinds + 1;
    const auto size = [&](uint64_t below) { return 1 + static_cast<int64_t>(pick(below)); };
    const int64_t heads = size(2), rows = 18 + size(12), keys = 18 + size(12);
    Tensors t;
    const Id a = t.buffer({heads, rows, 2}), b = t.buffer({heads, 2, keys}),
             v = t.buffer({heads, keys, 1 + size(3)});
    const Id scores = t.matmul(a, b), below_top = t.sub(scores, t.max(scores, {2}));
    const Id weights = t.add(t.times(t.relu(t.plus(below_top, 5)), 2), t.sum(below_top, {2}));
    const schedule::Plan plan = schedule::make_plan(t.g, std::vector{t.matmul(weights, v)},
                                                    t.inputs, 1, {.scratch_bytes = 1 << 16});
    ASSERT_EQ(plan.asts.size(), 1u);
    check(*plan.asts[0]);
  }

  // Terms stored by an index, compared with the same kernel in which every row reads all terms.
  void run_indexed() {
    const auto size = [&](uint64_t below) { return 1 + static_cast<int64_t>(pick(below)); };
    const int64_t a = size(3), count = 1 + size(12), rows = 1 + size(20), b = size(40);
    Tensors t;
    const Id places = t.buffer({pick(2) == 0 ? a : 1, count, 1, pick(4) == 0 ? b : 1}, DType::I32),
             hit = t.op(Op::CmpEq, places, t.reshape(t.iota(rows), {1, 1, rows, 1}));
    const Dims all = {a, count, rows, b};
    const bool is_max = pick(3) == 0;
    const Id term = t.relu(t.buffer({a, count, 1, b})),
             none = t.number(is_max ? -std::numeric_limits<double>::infinity() : 0);
    const Id chosen =
        t.g.where(t.shape(hit) == all ? hit : t.expand(hit, all), t.expand(term, all), none);
    const Id root =
        t.reduce(is_max ? Op::Max : Op::Add, chosen, pick(3) == 0 ? Dims{0, 1} : Dims{1});
    const schedule::Plan plan = schedule::make_plan(t.g, std::vector{root}, t.inputs, 1, {});
    ASSERT_EQ(plan.asts.size(), 1u);
    KernelAst marked;
    Graph& g = marked.graph;
    marked.sink = codegen::copy_into(g, plan.asts[0]->graph, plan.asts[0]->sink);
    marked.param_count = plan.asts[0]->param_count;
    const auto store = g.sources(g.sources(marked.sink)[0]);
    if (g[store[2]].op != Op::Reduce) return;  // one term, or one row
    const Id reduce = g.add(Op::Reduce, g[store[2]].dtype, g.sources(store[2]),
                            g.list(std::vector<int64_t>{g.arg_list(store[2])[0], kIndexed}));
    marked.sink =
        g.add(Op::Sink, DType::Void, {g.add(Op::Store, DType::Void, {store[0], store[1], reduce})});
    check(marked, *plan.asts[0]);
  }

  // NaN, infinities, -0 and wrapping integers as inputs, with odd shapes.
  void run_odd() {
    odd_ = true;
    run();
  }

  void run() {
    Tensors t;
    const std::vector<Id> roots = RandomTensors(t, seed_, odd_).build(10);
    const schedule::Plan plan = schedule::make_plan(t.g, roots, t.inputs, 1, {});
    for (const auto& ast : plan.asts) {
      check(*ast);
      if (testing::Test::HasFailure()) return;
    }
  }

 private:
  uint64_t pick(uint64_t below) { return random_() % below; }

  uint64_t odd_element(DType dtype, bool may_wrap) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    static constexpr double numbers[] = {inf, -inf, std::numeric_limits<double>::quiet_NaN(), -0.0};
    if (is_float(dtype)) return bits_of(numbers[pick(std::size(numbers))], dtype);
    return bits_of(static_cast<int64_t>(dtype == DType::Bool || !may_wrap ? pick(2) : random_()),
                   dtype);
  }

  // Large integers cast to floats would make sums order-dependent.
  static bool makes_floats_of_integers(const KernelAst& ast) {
    for (Id id = 0; id < ast.graph.size(); ++id)
      if (ast.graph[id].op == Op::Cast && is_float(ast.graph[id].dtype) &&
          !is_float(ast.graph[ast.graph[id].src[0]].dtype))
        return true;
    return false;
  }

  Memory contents(const KernelAst& ast) {
    Memory memory(ast.param_count);
    const bool may_wrap = odd_ && !makes_floats_of_integers(ast);
    const uint64_t rarity = odd_ ? 2 + pick(40) : 0;
    for (Id id = 0; id < ast.graph.size(); ++id) {
      if (ast.graph[id].op != Op::Param) continue;
      const ParamInfo info = param_info(ast.graph, id);
      oracle::Array array{ast.graph[id].dtype, {info.elem_count}, {}};
      const int low = is_unsigned(array.dtype) ? 0 : -3, count = array.dtype == DType::Bool ? 2
                                                                 : is_unsigned(array.dtype) ? 4
                                                                                            : 7;
      for (int64_t i = 0; i < info.elem_count; ++i)
        array.bits.push_back(
            odd_ && pick(rarity) == 0
                ? odd_element(array.dtype, may_wrap)
                : bits_of(static_cast<int64_t>(
                              low + static_cast<int>(pick(static_cast<uint64_t>(count)))),
                          array.dtype));
      memory[info.slot] = oracle::to_bytes(array);
    }
    return memory;
  }

  static Memory result_of(const codegen::KernelCode& code, Memory memory) {
    std::vector<sdk::InterpreterBuffer> buffers;
    for (auto& bytes : memory) buffers.push_back({bytes.data(), bytes.size()});
    buffers.resize(sdk::decode_ir(code.ir).params().size());  // the last may be unused
    run_buffers(code, buffers);
    return memory;
  }

  ScheduleStep change() {
    static constexpr int64_t amounts[] = {1, 2, 2, 3, 4, 4, 5, 7, 8, 16, 35};
    if (staged_ && pick(3) == 0)
      return {Kind::Pipeline, *staged_, 1 + static_cast<int64_t>(pick(3))};
    const uint64_t number = pick(kinds_);
    const auto kind =
        static_cast<Kind>(number < static_cast<uint64_t>(Kind::TensorCore) ? number : number + 1);
    if (kind == Kind::CacheRead)
      return {kind, static_cast<uint32_t>(pick(4)), static_cast<int64_t>(pick(5))};
    if (kind == Kind::ComputeAt)
      return {kind, static_cast<uint32_t>(pick(9)), static_cast<int64_t>(pick(4))};
    const bool place = kind == Kind::Swap || kind == Kind::Thread || kind == Kind::SplitK;
    return {kind, static_cast<uint32_t>(pick(5)),
            place ? static_cast<int64_t>(pick(5)) : amounts[pick(std::size(amounts))]};
  }

  void check(const KernelAst& ast) { check(ast, ast); }

  // Checks that every schedule gives the values of the unscheduled kernel `meant`.
  void check(const KernelAst& ast, const KernelAst& meant) {
    pgr_device_caps caps = pick(3) == 0 ? with_tiny_limits() : with_local(1u << pick(4));
    caps.subgroup_size = 1u << pick(6);  // from 2 on: the heuristic for GPU-like devices
    const Memory before = contents(ast);
    const codegen::KernelCode plain = codegen::generate(meant.graph, meant.sink, small_cpu(),
                                                        {.no_opt = true, .contract = false});
    const Memory expected = result_of(plain, before);
    const codegen::KernelCode chosen =
        codegen::generate(ast.graph, ast.sink, caps, {.contract = false});
    expect_same(ast, chosen, before, expected);
    if (testing::Test::HasFailure()) return;
    check_limits(chosen, caps);
    check_climb(ast, caps, before, expected);
    ++kernels;
    for (int attempt = 0; attempt < 3; ++attempt) {
      KernelSchedule list;
      int64_t copies = 1;
      staged_.reset();
      for (int i = 0; i < 12 && list.size() < 5; ++i) {
        const ScheduleStep next = change();
        if (copies * std::max<int64_t>(next.amount, 1) > 300) continue;
        list.push_back(next);
        codegen::KernelCode code;
        try {
          code =
              codegen::generate(ast.graph, ast.sink, caps, {.contract = false, .schedule = &list});
        } catch (const Error& e) {
          ASSERT_EQ(e.kind(), ErrorKind::User) << describe(ast, list) << e.what();
          list.pop_back();
          continue;
        }
        copies *= std::max<int64_t>(next.amount, 1);
        ++legal[next.kind];
        if (next.kind == Kind::CacheRead && caps.subgroup_size > 1) {
          ++shared_copies;
          staged_ = next.axis;
        }
        ASSERT_EQ(codegen::to_string(code.schedule), codegen::to_string(list));
        expect_same(ast, code, before, expected);
        if (testing::Test::HasFailure()) return;
        check_limits(code, caps);
      }
    }
  }

  // Checks the cost model's search, starting from the loops of the plan.
  void check_climb(const KernelAst& ast, const pgr_device_caps& caps, const Memory& before,
                   const Memory& expected) {
    const codegen::SearchSpace space(ast.graph, ast.sink, caps, {.contract = false});
    const codegen::Climb found = codegen::climb(space, space.predicted({}));
    climbed += found.best.list.empty() ? 0 : 1;
    const codegen::Options options{.contract = false, .schedule = &found.best.list};
    expect_same(ast, codegen::generate(ast.graph, ast.sink, caps, options), before, expected);
  }

  void check_limits(const codegen::KernelCode& code, const pgr_device_caps& caps) {
    uint64_t local_bytes = 0;
    const sdk::IrView ir = sdk::decode_ir(code.ir);
    for (const pgr_ir_array& array : ir.arrays())
      if (array.space == PGR_SPACE_LOCAL)
        local_bytes += array.elem_count * sdk::dtype_size(array.dtype);
    for (const pgr_ir_inst& inst : ir.insts()) {
      barriers += inst.op == PGR_OP_BARRIER ? 1 : 0;
      asynchronous += inst.op == PGR_OP_ASYNC_COPY ? 1 : 0;
      ASSERT_LE(inst.lanes, caps.vector_lanes[PGR_DTYPE_F32]);
    }
    EXPECT_LE(local_bytes, caps.local_bytes);
    for (size_t axis = 0; axis < 3; ++axis) {
      EXPECT_LE(code.local_size[axis], caps.max_local_size[axis]);
      if (caps.max_groups[axis] != 0) {
        EXPECT_LE(code.group_count[axis], caps.max_groups[axis]);
      }
    }
  }

  static bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

  void expect_same(const KernelAst& ast, const codegen::KernelCode& code, const Memory& before,
                   const Memory& expected) {
    Memory got;
    try {
      got = result_of(code, before);
    } catch (const std::exception& e) {
      FAIL() << describe(ast, code.schedule) << e.what();
    }
    for (Id id = 0; id < ast.graph.size(); ++id) {
      if (ast.graph[id].op != Op::Param) continue;
      const ParamInfo info = param_info(ast.graph, id);
      const oracle::Array have =
          oracle::from_bytes(ast.graph[id].dtype, {info.elem_count}, got[info.slot]);
      const oracle::Array want =
          oracle::from_bytes(ast.graph[id].dtype, {info.elem_count}, expected[info.slot]);
      for (size_t i = 0; i < have.size(); ++i)  // max(-0, +0) may be either
        ASSERT_TRUE(is_float(have.dtype) ? same_number(have.real(i), want.real(i))
                                         : have.bits[i] == want.bits[i])
            << "buffer " << info.slot << ", element " << i << ": " << have.real(i) << ", should be "
            << want.real(i) << describe(ast, code.schedule);
    }
  }

  std::string describe(const KernelAst& ast, const KernelSchedule& list) const {
    return fmt::format("\nPLUGRAD_TEST_SEED={} repeats this: {}\n{}\n", seed_,
                       codegen::to_string(list), print(ast.graph, ast.sink));
  }

  uint64_t kinds_ = kKinds;
  bool odd_ = false;
  std::optional<uint32_t> staged_;  // a parameter in local memory
  std::mt19937_64 random_;
  uint64_t seed_;
};

void check_seeds(uint64_t first, uint64_t count) {
  std::map<Kind, int> legal;
  int barriers = 0, shared_copies = 0, asynchronous = 0, climbed = 0;
  for (uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed) {
    Lists lists(seed);
    try {
      lists.run();
    } catch (const std::exception& e) {
      FAIL() << "PLUGRAD_TEST_SEED=" << seed << " repeats this: " << e.what();
    }
    for (const auto& [kind, times] : lists.legal) legal[kind] += times;
    barriers += lists.barriers;
    climbed += lists.climbed;
    shared_copies += lists.shared_copies;
    asynchronous += lists.asynchronous;
  }
  for (const auto& [kind, times] : legal)
    testing::Test::RecordProperty(
        fmt::format("legal_{}", codegen::to_string({{kind}}).substr(0, 5)), times);
  if (count < 100) return;
  EXPECT_EQ(legal.size(), static_cast<size_t>(kKinds + 1)) << "a kind of change was never legal";
  EXPECT_GT(climbed, 50) << "the search hardly ever leaves its start";
  EXPECT_GT(barriers, 100) << "hardly any reduction over a group";
  EXPECT_GT(shared_copies, 50) << "hardly any copy in local memory";
  EXPECT_GT(asynchronous, 0) << "no asynchronous copy";
}

TEST(LegalLists, give_the_same_numbers_for_fixed_seeds) {
  check_seeds(1, 300);
}

TEST(LegalLists, give_the_same_numbers_where_a_loop_bounds_another) {
  std::map<Kind, int> legal;
  for (uint64_t seed = 1; seed <= 60 && !testing::Test::HasFailure(); ++seed) {
    Lists lists(seed);
    lists.run_bounded();
    for (const auto& [kind, times] : lists.legal) legal[kind] += times;
  }
  for (Kind kind : {Kind::Upcast, Kind::Vectorize, Kind::Thread, Kind::Swap, Kind::CacheRead})
    EXPECT_GT(legal[kind], 0) << codegen::to_string({{kind}});
}

TEST(LegalLists, give_the_same_numbers_where_terms_are_stored_by_an_index) {
  std::map<Kind, int> legal;
  int kernels = 0;
  for (uint64_t seed = 1; seed <= 120 && !testing::Test::HasFailure(); ++seed) {
    Lists lists(seed);
    lists.run_indexed();
    kernels += lists.kernels;
    for (const auto& [kind, times] : lists.legal) legal[kind] += times;
  }
  EXPECT_GT(kernels, 90);
  for (Kind kind : {Kind::Upcast, Kind::Vectorize, Kind::Thread, Kind::Swap, Kind::Local})
    EXPECT_GT(legal[kind], 0) << codegen::to_string({{kind}});
}

TEST(LegalLists, give_the_same_numbers_where_rows_of_one_product_wait_for_another) {
  std::map<Kind, int> legal;
  for (uint64_t seed = 1; seed <= 24 && !testing::Test::HasFailure(); ++seed) {
    Lists lists(seed);
    lists.run_rows();
    for (const auto& [kind, times] : lists.legal) legal[kind] += times;
  }
  for (Kind kind : {Kind::Upcast, Kind::Vectorize, Kind::Thread, Kind::Swap, Kind::CacheRead,
                    Kind::Block, Kind::ComputeAt})
    EXPECT_GT(legal[kind], 0) << codegen::to_string({{kind}});
}

TEST(LegalLists, give_the_same_numbers_for_what_is_no_number_and_for_odd_shapes) {
  int kernels = 0;
  for (uint64_t seed = 1; seed <= 150 && !testing::Test::HasFailure(); ++seed) {
    Lists lists(seed);
    lists.run_odd();
    kernels += lists.kernels;
  }
  EXPECT_GT(kernels, 100);
}

// Random kernels reach all rules of the passes, and each kernel's result is compared. Only the
// rules for tensor cores, and for copies into local memory that whole groups skip, need other
// kernels.
TEST(LegalLists, reach_every_rule_of_the_passes) {
  std::set<std::string> missing;
  for (const auto rules :
       {codegen::expansion_rules(), codegen::predication_rules(), codegen::loop_bound_rules(),
        codegen::closing_rules(), codegen::keep_mark_rules(), codegen::pipelining_rules()})
    for (const Rule& rule : rules) missing.insert(rule.name);
  missing.erase("keep-wmma-operands");
  for (uint64_t seed = 1; seed <= 300 && !missing.empty() && !testing::Test::HasFailure(); ++seed) {
    RewriteTrace trace;
    const TraceScope scope(trace);
    Lists(seed).run();
    Lists(seed).run_bounded();
    if (seed <= 24) Lists(seed).run_rows();
    for (const TraceEvent& event : trace.events) missing.erase(event.rule->name);
  }
  EXPECT_THAT(missing, testing::IsEmpty());
}

TEST(LegalLists, give_the_same_numbers_for_a_given_seed) {
  const char* given = std::getenv("PLUGRAD_TEST_SEED");
  if (given == nullptr)
    GTEST_SKIP() << "PLUGRAD_TEST_SEED names one, PLUGRAD_TEST_COUNT how many from it on";
  const char* count = std::getenv("PLUGRAD_TEST_COUNT");
  const uint64_t first = std::strtoull(given, nullptr, 10),
                 many = count ? std::strtoull(count, nullptr, 10) : 1;
  check_seeds(first, many);
  for (uint64_t seed = first; seed < first + many && !testing::Test::HasFailure(); ++seed)
    Lists(seed).run_odd();
}

}  // namespace
}  // namespace plugrad::test
