#include "bench/peers/library_peer.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "base/check.h"
#include "base/file.h"
#include "bench/harness.h"
#include "bench/isa.h"
#include "bench/peers/hand_kernels.h"
#include "bench/peers/huge_array.h"
#include "bench/peers/workers.h"

namespace plugrad::bench {
namespace {

using nlohmann::json;

// One case from the parent, with its inputs in memory.
struct Problem {
  std::string kind, transpose;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<HugeArray> inputs;
  int threads = 1;
  bool has_gradients = false;

  size_t size(size_t input, size_t axis) const {
    return static_cast<size_t>(shapes.at(input).at(axis));
  }
};

Problem read_problem(const json& request) {
  Problem problem{.kind = request.at("kind"),
                  .transpose = request.value("transpose", ""),
                  .shapes = request.at("shapes"),
                  .inputs = {},
                  .threads = request.at("threads"),
                  .has_gradients = request.value("gradients", false)};
  std::ifstream file(std::string(request.at("input")), std::ios::binary);
  for (const auto& shape : problem.shapes) {
    size_t count = 1;
    for (int64_t size : shape) count *= static_cast<size_t>(size);
    HugeArray& array = problem.inputs.emplace_back(count);
    file.read(reinterpret_cast<char*>(array.data()), static_cast<std::streamsize>(count * 4));
  }
  return problem;
}

// A timed computation and its output.
struct Variant {
  std::string name;
  std::function<void()> run;
  const HugeArray* output;  // null: not compared
};

/// c = op(a) op(b), row-major.
using Sgemm = std::function<void(bool ta, bool tb, int m, int n, int k, const float* a, int lda,
                                 const float* b, int ldb, float* c)>;

Sgemm cblas(void* library) {
  using Call = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int,
                        float, float*, int);
  const auto call = symbol<Call>(library, "cblas_sgemm");
  if (!call) return {};
  return [call](bool ta, bool tb, int m, int n, int k, const float* a, int lda, const float* b,
                int ldb, float* c) {
    call(101, ta ? 112 : 111, tb ? 112 : 111, m, n, k, 1.0f, a, lda, b, ldb, 0.0f, c, n);
  };
}

Sgemm onednn(void* library) {
  using Call = int (*)(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t,
                       const float*, int64_t, float, float*, int64_t);
  const auto call = symbol<Call>(library, "dnnl_sgemm");
  if (!call) return {};
  return [call](bool ta, bool tb, int m, int n, int k, const float* a, int lda, const float* b,
                int ldb, float* c) {
    if (call(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1.0f, a, lda, b, ldb, 0.0f, c, n) != 0)
      throw std::runtime_error("dnnl_sgemm failed");
  };
}

struct Library {
  const char* name;
  const char* title;
  const char* file;
  Sgemm (*sgemm)(void* library);
};
constexpr Library kLibraries[] = {
    {"openblas", "OpenBLAS", "libopenblas.so.0", cblas},
    {"blis", "BLIS", "libblis.so.4", cblas},
    {"onednn", "oneDNN", "libdnnl.so.2", onednn},
};

class LocalPeer {
 public:
  virtual ~LocalPeer() = default;
  /// Empty if the peer does not support the problem.
  virtual std::vector<Variant> prepare(Problem& problem) = 0;
  virtual RunningIsa isa() const = 0;
};

// The library reads its number of threads from the environment that the parent set.
class LibraryPeer : public LocalPeer {
 public:
  LibraryPeer(const Library& library, void* handle, Sgemm sgemm)
      : title_(library.title),
        isa_(isa_of_library(library.name, handle)),
        sgemm_(std::move(sgemm)) {}

  RunningIsa isa() const override { return isa_; }

  std::vector<Variant> prepare(Problem& p) override {
    if (p.kind != "matmul" || p.has_gradients) return {};
    const bool ta = p.transpose.find('a') != std::string::npos;
    const bool tb = p.transpose.find('b') != std::string::npos;
    const size_t rank = p.shapes[0].size(), batch = rank == 3 ? p.size(0, 0) : 1;
    const size_t rows = p.size(0, rank - 2), columns = p.size(0, rank - 1);
    const size_t m = ta ? columns : rows, k = ta ? rows : columns;
    const size_t n = p.size(1, p.shapes[1].size() - (tb ? 2 : 1));
    output_.emplace(batch * m * n);
    auto run = [this, &p, ta, tb, batch, m, n, k, columns] {
      const auto i = [](size_t v) { return static_cast<int>(v); };
      for (size_t part = 0; part < batch; ++part)
        sgemm_(ta, tb, i(m), i(n), i(k), p.inputs[0].data() + part * m * k, i(columns),
               p.inputs[1].data() + part * k * n, i(tb ? k : n), output_->data() + part * m * n);
    };
    return {{title_, run, &*output_}};
  }

 private:
  std::string title_;
  RunningIsa isa_;
  Sgemm sgemm_;
  std::optional<HugeArray> output_;
};

class HandPeer : public LocalPeer {
 public:
  explicit HandPeer(int threads) : workers_(threads), sums_(static_cast<size_t>(threads) * 16) {}

  RunningIsa isa() const override {
    const int lanes = hand_kernels().lanes;
    if (lanes == 16) return {"x86-64-v4", 4};
    return lanes == 8 ? RunningIsa{"x86-64-v3", 3} : RunningIsa{"x86-64", 1};
  }

  std::vector<Variant> prepare(Problem& p) override {
    const HandKernels& hand = hand_kernels();
    if (p.kind == "map_reduce") {
      output_.emplace(1);
      return {{"C",
               [this, &p, &hand] {
                 add_up(p.inputs[0].size(), [&](size_t begin, size_t end) {
                   return hand.map_reduce(p.inputs[0].data(), p.inputs[1].data(),
                                          p.inputs[2].data(), begin, end);
                 });
               },
               &*output_}};
    }
    if (p.kind == "softmax") return {rows(p, "C", hand.softmax)};
    if (p.kind == "layernorm" && p.shapes.size() == 1) return {rows(p, "C", hand.layernorm)};
    if (p.kind == "matvec") return matvec(p);
    if (p.kind == "attention") return attention(p);
    return {};
  }

 private:
  void add_up(size_t count, const std::function<float(size_t, size_t)>& part) {
    workers_.split(count, 4096, [&](int t, size_t begin, size_t end) {
      sums_[static_cast<size_t>(t) * 16] = part(begin, end);
    });
    float total = 0;
    for (size_t t = 0; t < sums_.size(); t += 16) total += sums_[t];
    output_->data()[0] = total;
  }

  Variant rows(Problem& p, const char* name,
               void (*kernel)(const float*, float*, size_t, size_t, size_t)) {
    output_.emplace(p.inputs[0].size());
    return {name,
            [this, &p, kernel] {
              workers_.split(p.size(0, 0), 1, [&](int, size_t begin, size_t end) {
                kernel(p.inputs[0].data(), output_->data(), p.size(0, 1), begin, end);
              });
            },
            &*output_};
  }

  std::vector<Variant> attention(Problem& p) {
    output_.emplace(p.inputs[0].size());
    const auto run = [this, &p] {
      const HandKernels& hand = hand_kernels();
      const size_t queries = p.size(0, 1), keys = p.size(1, 1);
      workers_.split(p.size(0, 0) * queries, hand.attention_rows,
                     [&](int, size_t begin, size_t end) {
                       hand.attention(p.inputs[0].data(), p.inputs[1].data(), p.inputs[2].data(),
                                      output_->data(), queries, keys, begin, end);
                     });
    };
    return {{"C", run, &*output_}};
  }

  std::vector<Variant> matvec(Problem& p) {
    output_.emplace(p.size(0, 0));
    return {{"C",
             [this, &p] {
               workers_.split(p.size(0, 0), 4, [&](int, size_t begin, size_t end) {
                 hand_kernels().matvec(p.inputs[0].data(), p.inputs[1].data(), output_->data(),
                                       p.size(0, 1), begin, end);
               });
             },
             &*output_},
            {"C read loop",
             [this, &p] {
               workers_.split(p.inputs[0].size(), 4096, [&](int t, size_t begin, size_t end) {
                 sums_[static_cast<size_t>(t) * 16] =
                     hand_kernels().read(p.inputs[0].data(), begin, end);
               });
             },
             nullptr}};
  }

  Workers workers_;
  std::vector<float> sums_;  // each on a separate cache line
  std::optional<HugeArray> output_;
};

std::unique_ptr<LocalPeer> open_peer(const std::string& name, int threads) {
  if (name == "c") return std::make_unique<HandPeer>(threads);
  for (const Library& library : kLibraries)
    if (name == library.name) {
      void* handle = dlopen(library.file, RTLD_NOW | RTLD_LOCAL);
      if (!handle) return nullptr;
      Sgemm sgemm = library.sgemm(handle);
      return sgemm ? std::make_unique<LibraryPeer>(library, handle, std::move(sgemm)) : nullptr;
    }
  return nullptr;
}

std::vector<double> take_turn(const Variant& variant, double seconds) {
  std::vector<double> times;
  variant.run();
  double total = 0;
  while (times.size() < 2 || total < seconds) {
    times.push_back(time_of(variant.run));
    total += times.back();
  }
  return times;
}

void write_floats(const std::string& path, const HugeArray& values) {
  const std::span<const float> all(values.data(), values.size());
  const std::span<const std::byte> parts[] = {std::as_bytes(all)};
  const int error = replace_file(path, parts, {.sync = false});
  require(error == 0, "[bench] {} cannot be written: {}", path, file_error_text(error));
}

// Runs each variant once and writes its output to the file "PREFIX.number".
json answer_setup(const std::vector<Variant>& variants, const std::string& prefix) {
  json names = json::array();
  for (size_t i = 0; i < variants.size(); ++i) {
    variants[i].run();
    names.push_back(variants[i].name);
    if (const HugeArray* output = variants[i].output)
      write_floats(prefix + "." + std::to_string(i), *output);
  }
  return {{"variants", names}};
}

}  // namespace

int run_library_peer(const std::string& name) {
  const char* count = std::getenv("OMP_NUM_THREADS");
  const std::unique_ptr<LocalPeer> peer = open_peer(name, count ? std::atoi(count) : 1);
  json greeting = {{"found", peer != nullptr}};
  if (peer) greeting.update({{"isa", peer->isa().name}, {"level", peer->isa().level}});
  std::cout << greeting << std::endl;
  if (!peer) return 0;
  Problem problem;
  std::vector<Variant> variants;
  for (std::string line; std::getline(std::cin, line);) {
    const json request = json::parse(line);
    if (request.at("do") == "setup") {
      variants.clear();
      problem = read_problem(request);
      variants = peer->prepare(problem);
      std::cout << answer_setup(variants, request.at("output")) << std::endl;
    } else {
      const Variant& variant = variants.at(request.at("variant"));
      std::cout << json{{"times", take_turn(variant, request.at("seconds"))}} << std::endl;
    }
  }
  return 0;
}

}  // namespace plugrad::bench
