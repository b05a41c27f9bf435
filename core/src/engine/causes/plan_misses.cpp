#include "engine/causes/plan_misses.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "base/binding.h"
#include "base/log.h"
#include "base/trace/json_line.h"
#include "base/trace/trace.h"
#include "engine/recording/call_observer.h"

namespace plugrad::engine {
namespace {

using Words = std::vector<uint64_t>;
constexpr size_t kRequestWords = 5;

void put_sized(Words& words, std::span<const int64_t> list) {
  words.push_back(list.size());
  words.insert(words.end(), list.begin(), list.end());
}

// The walked nodes in an order that depends on nothing but operations; the canonical order depends on
// sizes and dtypes too.
struct Operations {
  Hash128 key;
  std::vector<uint32_t> order;  // canonical numbers, readers first
};

Operations operations_of(const CanonicalGraph& walked, const Graph& graph) {
  Words hashes, own;  // by number: of the node and all that it reads
  const auto sources_of = [&](uint32_t number) {
    std::vector<uint32_t> sources;
    const Id id = walked.id(number);
    if (!walked.is_input(number))
      for (const Id source : graph.sources(id)) sources.push_back(walked.number(source));
    if (sources.size() == 2 && is_commutative(graph[id].op))
      std::ranges::stable_sort(sources, {}, [&](uint32_t source) { return hashes[source]; });
    return sources;
  };
  for (uint32_t number = 0; number < walked.size(); ++number) {
    own = {walked.is_input(number) ? 0 : static_cast<uint64_t>(graph[walked.id(number)].op)};
    for (const uint32_t source : sources_of(number)) own.push_back(hashes[source]);
    hashes.push_back(hash64(std::as_bytes(std::span(own))));
  }
  Operations found;
  std::vector<uint8_t> is_seen(walked.size());
  own = {walked.size()};
  std::vector<uint32_t> stack(walked.roots().rbegin(), walked.roots().rend());
  for (const uint32_t root : walked.roots()) own.push_back(hashes[root]);
  while (!stack.empty()) {
    const uint32_t number = stack.back();
    stack.pop_back();
    if (std::exchange(is_seen[number], 1) != 0) continue;
    found.order.push_back(number);
    const std::vector<uint32_t> sources = sources_of(number);
    stack.insert(stack.end(), sources.rbegin(), sources.rend());
  }
  found.key = hash128(std::as_bytes(std::span(own)));
  return found;
}

// First the request; then of each node its dtype and device, and its shape or numbers.
Words sample_of(const CanonicalGraph& walked, std::span<const uint32_t> order, const Graph& graph,
                Shapes& shapes, const PlanRequest& request) {
  Words words = {request.default_device, request.kernels.bits(), request.kernels.lists,
                 hash64(std::as_bytes(std::span(request.options.replaced))),
                 hash64(std::as_bytes(std::span(request.options.constants)))};
  std::vector<uint64_t> devices(walked.size());
  size_t inputs = 0;
  for (uint32_t number = 0; number < walked.size(); ++number)
    if (walked.is_input(number)) devices[number] = walked.inputs()[inputs++]->device;
  for (const uint32_t number : order) {
    const Id id = walked.id(number);
    const Node& node = graph[id];
    words.push_back(static_cast<uint64_t>(node.dtype) | devices[number] << 32);
    if (walked.is_input(number))
      put_sized(words, shapes[id]);
    else if (op_info(node.op).arg == ArgKind::List && node.op != Op::Collective)
      put_sized(words, graph.arg_list(id));
    else if (op_info(node.op).arg != ArgKind::None && node.op != Op::Contiguous)
      words.insert(words.end(), {1, node.arg});
    else
      words.push_back(0);
  }
  return words;
}

std::string text_of_shape(std::span<const uint64_t> shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

std::string text_of_list(Op op, std::span<const uint64_t> list) {
  if (op != Op::Shrink) return text_of_shape(list);
  std::string text;
  for (size_t i = 0; i + 1 < list.size(); i += 2)
    text += fmt::format("{}{}:{}", i == 0 ? "[" : ", ", list[i], list[i + 1]);
  return text + "]";
}

std::string text_of_number(DType dtype, uint64_t bits) {
  const double real = std::bit_cast<double>(bits);
  if (dtype == DType::F64) return fmt::format("{}", real);
  if (is_float(dtype)) return fmt::format("{}", static_cast<float>(real));
  return fmt::format("{}", static_cast<int64_t>(bits));
}

std::string text_of_device(const DeviceTable& devices, uint64_t number) {
  return number == 0 ? "any" : devices.name(static_cast<uint32_t>(number));
}

// Whether the lists cut out, or pad to, the same lengths.
bool have_equal_lengths(Op op, std::span<const uint64_t> a, std::span<const uint64_t> b) {
  if ((op != Op::Shrink && op != Op::Pad) || a.size() != b.size()) return false;
  for (size_t i = 0; i + 1 < a.size(); i += 2) {
    const bool is_pad = op == Op::Pad;
    if ((is_pad ? a[i] + a[i + 1] : a[i + 1] - a[i]) !=
        (is_pad ? b[i] + b[i + 1] : b[i + 1] - b[i]))
      return false;
  }
  return true;
}

/// A node's words in both samples.
struct Pair {
  Op op;
  bool is_input;
  uint64_t first_was, first_is;
  std::span<const uint64_t> was, is;
};

std::optional<Difference> difference_of(const Pair& pair, const DeviceTable& devices) {
  const auto dtype = [](uint64_t word) { return static_cast<DType>(word & 0xff); };
  const std::string name = pair.is_input ? "an operand" : std::string(op_info(pair.op).name);
  if (dtype(pair.first_was) != dtype(pair.first_is))
    return Difference{Cause::DType, "the dtype of " + name,
                      std::string(name_of(dtype(pair.first_was))),
                      std::string(name_of(dtype(pair.first_is)))};
  if (pair.first_was != pair.first_is)
    return Difference{Cause::Device, "the device of " + name,
                      text_of_device(devices, pair.first_was >> 32),
                      text_of_device(devices, pair.first_is >> 32)};
  if (std::ranges::equal(pair.was, pair.is)) return {};
  if (pair.op == Op::Const && !pair.is_input)
    return Difference{Cause::Number, "a number", text_of_number(dtype(pair.first_was), pair.was[0]),
                      text_of_number(dtype(pair.first_is), pair.is[0])};
  if (!pair.is_input && op_info(pair.op).arg != ArgKind::List)
    return Difference{Cause::Structure, "what " + name + " does differs", "", ""};
  const bool is_same_length = have_equal_lengths(pair.op, pair.was, pair.is);
  return Difference{is_same_length ? Cause::Number : Cause::Shape,
                    pair.op == Op::Shrink ? "a slice"
                    : pair.op == Op::Pad  ? "a padding"
                                          : "the shape of " + name,
                    text_of_list(pair.op, pair.was), text_of_list(pair.op, pair.is)};
}

Difference difference_of_requests(const Words& was, const Words& is, const DeviceTable& devices) {
  if (was[0] != is[0])
    return {Cause::Device, "the default device", text_of_device(devices, was[0]),
            text_of_device(devices, is[0])};
  if (was[1] != is[1] || was[2] != is[2])
    return {Cause::Settings, "a setting of kernels differs", "", ""};
  if (was[3] != is[3])
    return {Cause::Structure, "a result may now be written over an operand, or no longer", "", ""};
  if (was[4] != is[4])
    return {Cause::Structure, "other operands are constants of a recording", "", ""};
  return {Cause::Dropped, "an equal plan was dropped, or is recorded apart", "", ""};
}

// How many nodes differ, and the differences that explain the others: all numbers, or the one that is
// nearest to the operands.
std::pair<size_t, std::vector<Difference>> count_differences(const Words& was, const Words& is,
                                                             const CanonicalGraph& walked,
                                                             std::span<const uint32_t> order,
                                                             const Graph& graph,
                                                             const DeviceTable& devices) {
  std::vector<Difference> telling;
  size_t count = 0;
  size_t at_was = kRequestWords, at_is = kRequestWords;
  const auto take = [](const Words& words, size_t& at) {
    const std::span list = std::span(words).subspan(at + 2, words[at + 1]);
    at += 2 + list.size();
    return list;
  };
  for (const uint32_t number : order) {
    Pair pair{graph[walked.id(number)].op, walked.is_input(number), was[at_was], is[at_is], {}, {}};
    pair.was = take(was, at_was);
    pair.is = take(is, at_is);
    auto found = difference_of(pair, devices);
    if (!found) continue;
    ++count;
    if (!telling.empty() && found->cause > telling[0].cause) continue;
    if (found->cause != Cause::Number || (!telling.empty() && found->cause < telling[0].cause))
      telling.clear();
    telling.push_back(*std::move(found));
  }
  if (telling.empty()) telling = {difference_of_requests(was, is, devices)};
  return {count, std::move(telling)};
}

void trace_miss(const Miss& miss) {
  trace::JsonLine line("miss");
  line.add("cause", name_of_cause(miss.differences))
      .add("kernels", miss.kernels)
      .add("compile_ns", miss.compile_ns)
      .add("operation", miss.operation)
      .add("text", miss.differences.empty() ? "" : text_of(miss.differences));
  trace::define(line.str());
}

}  // namespace

void PlanMisses::note(const CanonicalGraph& walked, const Graph& graph, Shapes& shapes,
                      const DeviceTable& names, const PlanRequest& request, Miss miss) {
  const Id root = walked.id(walked.roots()[0]);
  const auto shape = shapes[root];
  miss.of =
      fmt::format("{} ({}{}){}", name_of(graph[root].dtype), fmt::join(shape, ", "),
                  shape.size() == 1 ? "," : "", CallObserver::active() ? " in a recording" : "");
  const auto [key, order] = operations_of(walked, graph);
  Words sample = sample_of(walked, order, graph, shapes, request);
  std::vector<Words> last;
  if (const std::vector<Words>* known = last_.find(key)) last = *known;
  size_t fewest = SIZE_MAX;
  for (auto was = last.rbegin(); was != last.rend(); ++was) {
    auto [count, telling] = count_differences(*was, sample, walked, order, graph, names);
    if (count >= fewest) continue;
    fewest = count;
    miss.differences = std::move(telling);
  }
  constexpr size_t kMostCompared = 4;
  if (last.size() == kMostCompared) last.erase(last.begin());
  const uint64_t bytes = (last.size() + 1) * sample.size() * sizeof(uint64_t);
  last.push_back(std::move(sample));
  last_.insert(key, std::move(last), bytes);
  if (tracing()) trace_miss(miss);
  misses_.add(miss);
  warn_if_repeated(miss.place != 0 ? miss.place : key.low, miss);
}

// A line that makes many parts at once, as the weights of a network, is one round: the program reads no
// value meanwhile.
void PlanMisses::warn_if_repeated(uint64_t line, const Miss& miss) {
  constexpr size_t kMostLines = 512;
  constexpr uint64_t kMany = 8;
  const auto explains = [](const Difference& each) { return each.cause <= Cause::Number; };
  // Of jitted functions, calls are explained.
  if (miss.kernels == 0 || CallObserver::active() ||
      std::ranges::none_of(miss.differences, explains))
    return;
  if (repeated_.size() >= kMostLines) repeated_.clear();
  Repeated& repeated = repeated_[line];
  repeated.kernels += miss.kernels;
  repeated.compile_ns += miss.compile_ns;
  if (repeated.rounds > 0 && repeated.reads == miss.reads) return;
  repeated.reads = miss.reads;
  if (++repeated.rounds != kMany) return;
  const std::string place = miss.place != 0 ? describe_place(miss.place) : miss.of;
  log_warning(
      "[compile] {}: {} times values were computed for which there were no kernels, {} kernels in "
      "{:.0f} ms. In the last one {}. explain() lists all",
      place, kMany, repeated.kernels, static_cast<double>(repeated.compile_ns) * 1e-6,
      misses_.last_text());
}

}  // namespace plugrad::engine
