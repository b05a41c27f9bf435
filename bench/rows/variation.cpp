// Rows whose numbers, lengths or indices are new in each call, programs whose parts repeat, and single operations of
// 4 x 4 elements: processor time of a call, in turns with bench/peers/variation.py.
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "bench/micro/empty_cache.h"
#include "bench/row.h"
#include "bench/rows/versus.h"
#include "engine/session.h"
#include "plugrad/jit.h"
#include "plugrad/onnx.h"
#include "plugrad/plugrad.h"
#include "runtime/device/device.h"
#include "runtime/registry.h"

namespace plugrad::bench {
namespace {

using Tensors = std::vector<Tensor>;
using Call = std::function<Tensor(int64_t number, const Tensors& inputs)>;
using RowSizes = std::vector<int64_t>;

// A process keeps its kernels: rows of another number of threads have other numbers and lengths.
constexpr int64_t kOtherNumbers = 2048, kPast = 64;
constexpr int64_t kMostGrown = 512;  // positions

struct Variation {
  const char* name;
  int calls;  // of a round
  std::vector<RowSizes> shapes;
  Call (*make)();
};

// Processor time of calls up to their values on the device. The first input is another tensor in each call: plugrad
// would compute an equal value once.
class VaryingRounds {
 public:
  VaryingRounds(const Case& row, Subject& subject, Call call)
      : calls_(row.calls),
        number_(row.options.at("start")),
        first_(subject.inputs[0]),
        shape_(row.shapes[0]),
        call_(std::move(call)) {
    for (size_t i = 0; i < row.shapes.size(); ++i)
      inputs_.push_back(Tensor::from(subject.inputs[i], Shape(row.shapes[i])).realize());
  }

  double round() {
    std::vector<Tensors> given(static_cast<size_t>(calls_), inputs_);
    for (Tensors& each : given) each[0] = Tensor::from(first_, Shape(shape_)).realize();
    runtime::Device& device = runtime::Registry::instance().default_device();
    const double seconds = processor_time_of([&] {
      for (const Tensors& each : given) next(each).realize();
      device.synchronize();  // realize returns after submission to the device
    });
    given.clear();
    engine::Session::current().collect();
    return seconds;
  }
  std::vector<float> result() { return next(inputs_).to_vector<float>(); }

 private:
  Tensor next(const Tensors& inputs) { return call_(number_++, inputs); }

  int calls_;
  int64_t number_;
  std::vector<float> first_;
  RowSizes shape_;
  Call call_;
  Tensors inputs_;
};

double changing(int64_t number) {
  return 0.3 + 1e-4 * static_cast<double>(number);
}

int64_t index_below(int64_t size, int64_t number) {
  return 37 * number % size;
}

Tensor indices(int64_t count, int64_t step, int64_t size) {
  return (Tensor::arange(count, DType::I32) * step % size).contiguous().realize();
}

Call growing_attention() {
  return [context = Tensor()](int64_t number, const Tensors& in) mutable {
    if (number % kMostGrown == 0) context = in[1];
    context = cat({context, in[0]}, 1);
    return scaled_dot_product_attention(in[0], context, context);
  };
}

Call table_gradient() {
  constexpr int64_t kEdges = 12000, kNodes = 2000;
  return [first = indices(kEdges, 7919, kNodes), second = indices(kEdges, 104729, kNodes)](
             int64_t, const Tensors& in) {
    Tensor table = in[0].detach().requires_grad_();
    const Tensor loss = (table[first] - table[second]).square().sum();
    return gradient(loss, {table})[0];
  };
}

Call products() {
  return [](int64_t, const Tensors& in) {
    Tensors parts;
    for (int64_t i = 0; i < in[0].size(0); ++i) parts.push_back(matmul(in[0][i], in[1]));
    return cat(parts);
  };
}

Call unrolled_steps() {
  return [](int64_t, const Tensors& in) {
    Tensor h = Tensor::zeros({32, 64});
    Tensors states;
    for (int64_t i = 0; i < in[0].size(0); ++i) states.push_back(h = (h * in[1] + in[0][i]).tanh());
    return stack(states);
  };
}

// A jitted function whose second argument is made from a number.
template <class Make>
Call scaled(Make make) {
  const auto step = jit([](const Tensor& x, const Tensor& k) { return (x * k).sin() + k; });
  return [=](int64_t number, const Tensors& in) { return step(in[0], make(changing(number))); };
}

// One operation and the read of its result.
template <class Operation>
Call small(Operation operation) {
  return [=](int64_t number, const Tensors& in) {
    const Tensor made = operation(number, in);
    made.to_bytes();
    return made;
  };
}

std::vector<Variation> varying_calls(int threads) {
  constexpr int kMany = 4;
  return {
      {"x * k",
       kMany,
       {{64}},
       [] { return Call([](int64_t n, const Tensors& in) { return in[0] * changing(n); }); }},
      {"x[:n].sum()",
       kMany,
       {{4096}},
       [] {
         return Call([](int64_t n, const Tensors& in) {
           return in[0].slice(0, Slice(0, 1 + index_below(4096, n))).sum();
         });
       }},
      {"x[i]",
       kMany,
       {{4096}},
       [] {
         return small([](int64_t n, const Tensors& in) { return in[0][index_below(4096, n)]; });
       }},
      {"x[i] = v",
       kMany,
       {{4096}},
       [] {
         return Call([](int64_t n, const Tensors& in) {
           Tensor x = in[0];
           x[index_below(4096, n)] = 2.0;
           return x;
         });
       }},
      {"attention over a growing context",
       1,
       {{4, 1, 32}, {4, kPast * threads, 32}},
       growing_attention},
      {"jit: Tensor(k)", kMany, {{4}}, [] { return scaled([](double k) { return Tensor(k); }); }},
      {"jit: full((), k)",
       kMany,
       {{4}},
       [] { return scaled([](double k) { return Tensor::full({}, k); }); }},
      {"jit: ones(4) * k",
       kMany,
       {{4}},
       [] { return scaled([](double k) { return Tensor::ones({4}) * k; }); }},
  };
}

std::vector<Variation> repeated_parts() {
  return {
      {"gradient of a table at two index tensors", 1, {{2000, 64}}, table_gradient},
      {"cat of 21 products of slices", 1, {{21, 25, 200}, {200, 5}}, products},
      {"10 steps of a recurrence", 1, {{10, 32, 64}, {64}}, unrolled_steps},
      {"20 steps of a recurrence", 1, {{20, 32, 64}, {64}}, unrolled_steps},
      {"40 steps of a recurrence", 1, {{40, 32, 64}, {64}}, unrolled_steps},
  };
}

std::vector<Variation> small_operations() {
  constexpr int kSmall = 50;
  const std::vector<RowSizes> squares = {{4, 4}, {4, 4}};
  return {
      {"4 x 4: x + 1", kSmall, squares,
       [] { return small([](int64_t, const Tensors& in) { return in[0] + 1.0; }); }},
      {"4 x 4: matmul", kSmall, squares,
       [] { return small([](int64_t, const Tensors& in) { return matmul(in[0], in[1]); }); }},
      {"4 x 4: relu(x @ y + 1)", kSmall, squares,
       [] {
         return small(
             [](int64_t, const Tensors& in) { return (matmul(in[0], in[1]) + 1.0).relu(); });
       }},
      {"4 x 4: cat", kSmall, squares,
       [] { return small([](int64_t, const Tensors& in) { return cat(in); }); }},
      {"4 x 4: x[i] = 1", kSmall, squares,
       [] {
         return small([](int64_t n, const Tensors& in) {
           Tensor x = in[0];
           x[n % 4] = 1.0;
           return x;
         });
       }},
      {"4 x 4: sort", kSmall, squares,
       [] { return small([](int64_t, const Tensors& in) { return in[0].sort().first; }); }},
      {"4 x 4: randn", kSmall, squares,
       [] { return small([](int64_t, const Tensors&) { return Tensor::randn({4, 4}); }); }},
      {"4 x 4: multinomial", kSmall, squares,
       [] {
         return small([](int64_t, const Tensors& in) { return in[0].square().multinomial(2); });
       }},
  };
}

Case case_of(const std::string& row, int calls, const std::vector<RowSizes>& shapes, int threads,
             const char* judge) {
  return {.name = fmt::format("{}/threads:{}", row, threads),
          .kind = "variation",
          .shapes = shapes,
          .options = {{"row", row}, {"start", kOtherNumbers * (threads - 1)}},
          .threads = threads,
          .unit = "us",
          .judges = {judge},
          .calls = calls,
          .is_processor_time = true};
}

Subject subject_of(const Case& row, Call call) {
  Subject subject{.shapes = row.shapes, .inputs = random_inputs(row.shapes), .result = {}};
  const auto rounds = std::make_shared<VaryingRounds>(row, subject, std::move(call));
  subject.round = [rounds] { return rounds->round(); };
  subject.result = [rounds] { return rounds->result(); };
  return subject;
}

Row row_of(const Case& one, std::function<std::optional<Call>(Peers&)> make) {
  return {{one.name}, one.threads, [=](Peers& peers, const Report& report) {
            const EmptyCache cache;  // a number is new in the process and on disk
            const std::optional<Call> call = make(peers);
            if (!call) return true;
            const auto result =
                measure_case(one, peers, [&](const Case& row) { return subject_of(row, *call); });
            if (result) report(*result);
            return result.has_value();
          }};
}

// The model of bench/peers/decoder.py, which that peer writes.
std::vector<std::byte> decoder_model(Peers& peers, int threads) {
  const std::string file =
      (std::filesystem::temp_directory_path() / fmt::format("plugrad-bench-{}", getpid())).string();
  for (const PeerProgram& program : peer_programs()) {
    if (std::strcmp(program.name, "onnxruntime") != 0) continue;
    PeerProcess* process = peers.open(program, threads, true);
    if (!process) continue;
    process->ask({{"do", "setup"}, {"kind", "decoder model"}, {"output", file}});
  }
  const auto model = read_file(file + ".0");
  std::filesystem::remove(file + ".0");
  return model.value_or(std::vector<std::byte>());
}

std::optional<Call> decoder(Peers& peers, int threads) {
  const std::vector<std::byte> file = decoder_model(peers, threads);
  if (file.empty()) {
    fmt::print(stderr, "bench: no ONNX Runtime to write the decoder: no row\n");
    return {};
  }
  return [model = onnx::Model::from_bytes(file), given = Tensors()](int64_t number,
                                                                    const Tensors& in) mutable {
    if (number % kMostGrown == 0) given = in;
    given[0] = in[0];
    const Tensors made = model(given);
    Tensor::realize(made);
    given = made;  // the state's caches follow the result, as they follow the input
    return made[0];
  };
}

Row decoder_row(int threads) {
  const RowSizes cache = {1, 2, kPast * threads, 16};
  return row_of(case_of("ONNX decoder with a growing cache", 1,
                        {{1, 1, 64}, cache, cache, cache, cache}, threads, "onnxruntime"),
                [threads](Peers& peers) { return decoder(peers, threads); });
}

}  // namespace

std::vector<Row> variation_rows() {
  std::vector<Row> rows;
  for (const int threads : {1, 2}) {
    for (const auto& group : {varying_calls(threads), repeated_parts(), small_operations()})
      for (const Variation& each : group)
        rows.push_back(row_of(case_of(each.name, each.calls, each.shapes, threads, "pytorch"),
                              [make = each.make](Peers&) { return make(); }));
    rows.push_back(decoder_row(threads));
  }
  return rows;
}

}  // namespace plugrad::bench
