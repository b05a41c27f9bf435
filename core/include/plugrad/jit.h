/// jit(): records a function of tensors at its second call and replays the recording from then on.
/// A replay launches the recorded kernels on the new arguments and does not run the function;
/// docs/jit.md: consequences for tensors, random and host numbers. JIT=0 always runs the function.
///   auto step = jit([&](const Tensor& x, const Tensor& y) {
///     opt.zero_grad();
///     Tensor loss = sparse_categorical_crossentropy(net(x), y);
///     return loss.backward(), opt.step(), loss;
///   });
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "plugrad/nn/state.h"
#include "plugrad/tensor.h"

namespace plugrad {

namespace jit_detail {

class JitCalls;

/// Tensors in order, and the words between them: sizes of vectors, numbers, hashes of strings.
struct Flat {
  std::vector<Tensor> tensors;
  std::vector<uint64_t> words;
};

/// An argument for explanations: its name, its value if that is a number or a string, and how many
/// tensors and words of Flat it has.
struct Argument {
  std::string name{}, value{};
  size_t tensors = 0, words = 0;
};

/// "0.3".
PLUGRAD_API std::string text_of(double value);
/// Replaces a string in the key of a call.
PLUGRAD_API uint64_t hash_of(std::string_view text);

template <class T>
concept Container = requires(const T& t) {
  t.begin();
  t.end();
  t.size();
};
template <class T>
concept TupleLike = requires { std::tuple_size<T>::value; };
template <class T>
concept Module = requires(const T& t, nn::StateVisitor& visitor) { t.visit_fields(visitor); };
template <class T>
concept Number = std::is_arithmetic_v<T> || std::is_enum_v<T>;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

/// True if the check holds for every type in a tuple.
template <class T, template <class> class Check>
inline constexpr bool each_of = false;
template <template <class...> class List, class... Each, template <class> class Check>
inline constexpr bool each_of<List<Each...>, Check> = (Check<std::decay_t<Each>>::value && ...);
template <class T, size_t n, template <class> class Check>
inline constexpr bool each_of<std::array<T, n>, Check> = Check<T>::value;

/// A type that put_result takes.
template <class T>
struct IsResult {
  static constexpr bool find() {
    if constexpr (std::same_as<T, Tensor>)
      return true;
    else if constexpr (TupleLike<T>)
      return each_of<T, IsResult>;
    else if constexpr (Container<T>)
      return IsResult<typename T::value_type>::value;
    else
      return false;
  }
  static constexpr bool value = find();
};

/// A type that put_argument takes.
template <class T>
struct IsArgument {
  static constexpr bool find() {
    if constexpr (std::same_as<T, Tensor> || Number<T> || Module<T> ||
                  std::convertible_to<const T&, std::string_view>)
      return true;
    else if constexpr (is_optional<T>)
      return IsArgument<typename T::value_type>::value;
    else if constexpr (TupleLike<T>)
      return each_of<T, IsArgument>;
    else if constexpr (Container<T>)
      return IsArgument<std::decay_t<decltype(*std::declval<const T&>().begin())>>::value;
    else
      return false;
  }
  static constexpr bool value = find();
};

template <class T>
void put_argument(Flat& flat, const T& value) {
  if constexpr (std::same_as<T, Tensor>) {
    flat.tensors.push_back(value);
  } else if constexpr (Number<T>) {
    uint64_t bits = 0;
    static_assert(sizeof value <= sizeof bits);
    std::memcpy(&bits, &value, sizeof value);
    flat.words.push_back(bits);
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    flat.words.push_back(hash_of(value));
  } else if constexpr (Module<T>) {
    const nn::StateDict state = nn::state_dict(value);
    flat.words.push_back(state.size());
    for (const auto& [name, tensor] : state) flat.tensors.push_back(tensor);
  } else if constexpr (is_optional<T>) {
    flat.words.push_back(value.has_value());
    if (value) put_argument(flat, *value);
  } else if constexpr (TupleLike<T>) {
    std::apply([&](const auto&... each) { (put_argument(flat, each), ...); }, value);
  } else {
    flat.words.push_back(value.size());
    for (const auto& each : value) put_argument(flat, each);
  }
}

template <class T>
Argument describe(const T& value) {
  Flat flat;
  put_argument(flat, value);
  Argument made{.tensors = flat.tensors.size(), .words = flat.words.size()};
  if constexpr (std::is_floating_point_v<T>)
    made.value = text_of(static_cast<double>(value));
  else if constexpr (std::is_integral_v<T>)
    made.value = std::to_string(value);
  else if constexpr (std::convertible_to<const T&, std::string_view>)
    made.value = std::string(std::string_view(value).substr(0, 60));
  return made;
}

template <class T>
void put_result(Flat& flat, const T& value) {
  if constexpr (std::same_as<T, Tensor>) {
    flat.tensors.push_back(value);
  } else if constexpr (TupleLike<T>) {
    std::apply([&](const auto&... each) { (put_result(flat, each), ...); }, value);
  } else {
    flat.words.push_back(value.size());
    for (const auto& each : value) put_result(flat, each);
  }
}

/// Rebuilds a result from its flat form.
struct Reader {
  const Flat& flat;
  size_t tensor = 0, word = 0;

  template <class T>
  T take() {
    if constexpr (std::same_as<T, Tensor>) {
      return flat.tensors[tensor++];
    } else if constexpr (TupleLike<T>) {
      T value;
      std::apply([&](auto&... each) { ((each = take<std::decay_t<decltype(each)>>()), ...); },
                 value);
      return value;
    } else {
      T value;
      for (uint64_t left = flat.words[word++]; left > 0; --left)
        value.insert(value.end(), take<typename T::value_type>());
      return value;
    }
  }
};

/// Turns x[0] into a plain tensor, so that the function and its recording get the same type.
template <class T>
decltype(auto) as_argument(T&& value) {
  if constexpr (std::is_same_v<std::decay_t<T>, IndexedTensor>)
    return Tensor(value);
  else
    return std::forward<T>(value);
}

/// The recordings of one function.
class PLUGRAD_API Calls {
 public:
  /// `is_pure`: a call depends on nothing but its arguments, and changes nothing, so that the first
  /// one is recorded; otherwise the second one is, if it did the same. `has_cuts`: JitOptions::cuts.
  explicit Calls(bool is_pure = false, bool has_cuts = false);
  ~Calls();
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  /// Describes the arguments in order; called where the call is no replay.
  using Describe = std::function<std::vector<Argument>()>;
  Flat call(const Flat& arguments, const std::function<Flat()>& function,
            const Describe& describe = {});
  size_t recordings() const;
  std::string explain() const;

 private:
  std::unique_ptr<JitCalls> calls_;
};

}  // namespace jit_detail

/// A host integer, such as a length or a position, that may differ in every call of a jitted
/// function, within bounds. Bound as a tensor, it needs no recording for each value.
///
///   const Variable length("length", 1, 4096);
///   step(x, length.bind(17));
///
/// Bound, it is a size wherever an integer is: x[{Slice(0, n)}], Tensor::zeros({n + 1, 3}). One
/// recording then serves all of its values. See docs/variable-sizes.md.
///
///   for (const Tensor& x : sentences) step(length.fit(x, 0));  // (length, 256)
class PLUGRAD_API Variable {
 public:
  /// Errors: User for low > high, or bounds that i32 does not hold.
  Variable(std::string name, int64_t low, int64_t high);
  const std::string& name() const { return name_; }
  int64_t low() const { return low_; }
  int64_t high() const { return high_; }
  /// The value as a tensor, i32 of shape (), and as a size. Errors: User, with the name, outside
  /// [low, high].
  Tensor bind(int64_t value, std::string_view device = {}) const;
  /// A view of the first `value` elements of the axis (`value`: i32 of shape ()). No copy. Errors:
  /// User where the axis is shorter than high(), or has a variable size already. A computed value
  /// out of bounds is an error when the result is read.
  Tensor limit(const Tensor& x, int64_t axis, const Tensor& value) const;
  Tensor limit(const Tensor& x, int64_t axis, int64_t value) const;
  /// Copies `x` to memory for high() elements of the axis and binds the size of the axis as the
  /// value. The copy goes through the host and has no gradient. Errors: User where the size is out
  /// of bounds.
  Tensor fit(const Tensor& x, int64_t axis) const;

 private:
  struct Bound;
  std::string name_;
  int64_t low_, high_;
  std::shared_ptr<Bound> bound_;  // recently bound values, one tensor each
};

/// How jit() runs a function.
struct JitOptions {
  /// The function may read values (item(), masks, printing). It then runs in each call, and what it
  /// computes between two reads, a part, runs as in the last call that computed the same.
  bool cuts = false;
};

/// The callable that jit() returns. Copies share their recordings; a move copies, so that the
/// moved-from object stays callable. Calls from several threads run one after another.
template <class Function>
class Jit {
 public:
  explicit Jit(Function function, const JitOptions& options = {})
      : shared_(std::make_shared<Shared>(std::move(function), options)) {}
  Jit(const Jit&) = default;
  Jit& operator=(const Jit&) = default;

  /// The result of the function. Errors: User for operations that a replay cannot repeat (see
  /// docs/jit.md); exceptions of the function.
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) const {
    return call(jit_detail::as_argument(std::forward<Arguments>(arguments))...);
  }

  /// The number of signatures (shapes, dtypes, devices and numbers of the arguments) that calls
  /// replay; with JitOptions::cuts, the number of parts that were computed again.
  size_t recordings() const { return shared_->calls.recordings(); }

  /// Text for people: how many calls were replayed, and for each of the last 256 that were not, why:
  /// what differed, what it was and is, and what to write so that it does not. With JitOptions::cuts:
  /// how many values a call reads, and in Python at which lines.
  std::string explain() const { return shared_->calls.explain(); }

 private:
  template <class... Arguments>
  auto call(Arguments&&... arguments) const {
    constexpr bool is_callable = std::is_invocable_v<Function&, Arguments...>;
    static_assert(
        is_callable,
        "the jitted function does not take these arguments, in number or type, or its body "
        "does not compile with them");
    constexpr bool are_arguments = (jit_detail::IsArgument<std::decay_t<Arguments>>::value && ...);
    static_assert(!is_callable || are_arguments,
                  "arguments of a jitted function are tensors, numbers, strings, structs with "
                  "PLUGRAD_FIELDS, and vectors, tuples and optionals of these");
    if constexpr (is_callable && are_arguments)
      return record(std::forward<Arguments>(arguments)...);
  }

  template <class... Arguments>
  auto record(Arguments&&... arguments) const {
    using Result = std::decay_t<std::invoke_result_t<Function&, Arguments...>>;
    constexpr bool is_result = std::is_void_v<Result> || jit_detail::IsResult<Result>::value;
    static_assert(is_result,
                  "a jitted function returns tensors, vectors and tuples of them, or nothing: a "
                  "number would be that of the recorded call for ever; return the Tensor and call "
                  "item() on what the call gives");
    if constexpr (is_result) return record_as<Result>(std::forward<Arguments>(arguments)...);
  }

  template <class Result, class... Arguments>
  Result record_as(Arguments&&... arguments) const {
    jit_detail::Flat given;
    (jit_detail::put_argument(given, std::as_const(arguments)), ...);
    const auto invoke = [&]() -> decltype(auto) {
      return std::invoke(shared_->function, std::forward<Arguments>(arguments)...);
    };
    const auto describe = [&] {
      return std::vector<jit_detail::Argument>{jit_detail::describe(std::as_const(arguments))...};
    };
    if constexpr (std::is_void_v<Result>) {
      shared_->calls.call(
          given, [&] { return invoke(), jit_detail::Flat(); }, [&] { return describe(); });
    } else {
      std::optional<Result> direct;  // the result of a call that ran the function
      const jit_detail::Flat results = shared_->calls.call(
          given,
          [&] {
            jit_detail::Flat flat;
            jit_detail::put_result(flat, direct.emplace(invoke()));
            return flat;
          },
          [&] { return describe(); });
      return direct ? std::move(*direct) : jit_detail::Reader{results}.template take<Result>();
    }
  }

  struct Shared {
    Shared(Function f, const JitOptions& options)
        : function(std::move(f)), calls(false, options.cuts) {}
    Function function;
    jit_detail::Calls calls;
  };
  std::shared_ptr<Shared> shared_;
};

/// Wraps the function. The second call with a signature is recorded; later calls replay it.
template <class Function>
Jit<std::decay_t<Function>> jit(Function&& function, const JitOptions& options = {}) {
  return Jit<std::decay_t<Function>>(std::forward<Function>(function), options);
}

}  // namespace plugrad
