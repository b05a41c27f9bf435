#include <algorithm>
#include <filesystem>
#include <memory>
#include <mutex>

#include "base/check.h"
#include "base/file.h"
#include "base/log.h"
#include "jit/calls.h"
#include "onnx/file/file_errors.h"
#include "onnx/file/graph_check.h"
#include "onnx/import/data.h"
#include "onnx/import/declared.h"
#include "onnx/import/graph_run.h"
#include "onnx/import/open_sizes.h"
#include "onnx/import/segments.h"
#include "onnx/release.h"
#include "plugrad/device.h"
#include "plugrad/jit.h"
#include "plugrad/onnx.h"
#include "tensor/variable_sizes.h"

namespace plugrad::onnx {
namespace {

std::string table_of_inputs(const std::vector<ValueInfo>& values) {
  std::string text;
  for (const ValueInfo& value : values) text += "\n  " + to_string(value);
  return text;
}

using Known = std::vector<std::optional<tensor::HostValues>>;  // by input

// The inputs of a call, without optional ones that are left out.
struct Given {
  std::vector<size_t> inputs;  // their numbers
  std::vector<Tensor> tensors;
  std::vector<SizeSum> sums = {};
};

bool is_omitted(const Data& data) {
  const auto* tensor = std::get_if<Tensor>(&data.value);
  return std::holds_alternative<std::monostate>(data.value) || (tensor && !tensor->defined());
}

constexpr size_t kMostRecordings = 64;  // with different elements

bool is_numbers(const ValueMessage& value) {
  return value.type.kind == TypeMessage::Kind::None ||
         (value.type.kind == TypeMessage::Kind::Tensor && value.type.element != DataType::String);
}

// Empty for a model in memory.
std::string model_folder(const std::string& path) {
  if (path.empty()) return "";
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// The device that is named, or the default one. Errors: User for a mesh.
std::string device_of(std::string_view name) {
  std::string device = name.empty() ? Device::default_device() : std::string(name);
  require(!device.starts_with("mesh "),
          "[onnx] a model runs on one device, not on {}: load it on one of these devices", device);
  return device;
}

// The result of `read`, whose errors get the file's name unless the model is in memory.
template <class Read>
auto of_path(const std::string& path, Read read) {
  return path.empty() ? read() : with_name(path, read);
}

ModelMessage read_checked(std::span<const std::byte> bytes, const std::string& path) {
  return of_path(path, [&] {
    ModelMessage message = read_model(bytes);
    require_operators(message);
    require_sound(message);
    return message;
  });
}

}  // namespace

struct Model::State {
  /// `owner` keeps the file's bytes. `path` is empty for a model in memory.
  State(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
        const std::string& path, std::string_view device_name, const SizeBounds& bounds)
      : device(device_of(device_name)),
        file_name(path.empty() ? "model" : std::filesystem::path(path).filename().string()),
        message(read_checked(bytes, path)),
        files(model_folder(path), std::move(owner)),
        declared(declared_inputs(message)),
        inputs(infos_of(declared)),
        optional(infos_of(defaulted_inputs(message))),
        outputs(outputs_of(message)) {
    for (const ValueMessage* input : defaulted_inputs(message)) declared.push_back(input);
    open_sizes.emplace(declared, bounds);
    const DeviceScope known_device(device);
    of_path(path, [&] { files.read_constants(message.graph); });
    has_only_numbers =
        std::ranges::all_of(declared, [](const auto* value) { return is_numbers(*value); }) &&
        std::ranges::all_of(message.graph.outputs, is_numbers);
    expected = table_of_inputs(inputs);
    for (const ValueInfo& input : optional) expected += "\n  " + to_string(input) + ", optional";
  }

  // The inputs on the model's device; optional ones that are left out give no value. Errors: User,
  // with a table of what the model expects.
  std::vector<Value> checked(const std::vector<Data>& given) const {
    require(given.size() >= inputs.size() && given.size() <= declared.size(),
            "[onnx] {} inputs are given, the model expects {}:{}", given.size(), inputs.size(),
            expected);
    std::vector<Value> there;
    for (size_t i = 0; i < given.size(); ++i) {
      if (i >= inputs.size() && is_omitted(given[i])) {
        there.emplace_back();
        continue;
      }
      const std::string what = mismatch(given[i], declared[i]->type);
      require(what.empty(), "[onnx] input \"{}\" {}, the model expects:{}", declared[i]->name, what,
              expected);
      there.push_back(value_of(given[i], declared[i]->type, device));
    }
    return there;
  }

  // The elements of small inputs of integers, which may decide about shapes and branches.
  static Known known_of(const std::vector<Tensor>& given) {
    Known known;
    for (const Tensor& x : given) {
      const bool may_decide =
          !is_float(x.dtype()) && x.numel() <= kMostDeciding && !tensor::has_variable_size(x);
      known.push_back(may_decide
                          ? std::optional(values_in_memory(x.to_bytes(), x.shape(), x.dtype()))
                          : std::nullopt);
    }
    return known;
  }

  std::vector<Value> record(std::vector<Value> given, bool is_jitted,
                            const std::vector<SizeSum>& sums = {}) {
    tensor::SizeArithmetic sizes;
    bool has_variable_sizes = false;
    for (const Value& value : given) {
      if (!value.is_tensor() || !tensor::has_variable_size(value.tensor())) continue;
      sizes.add(value.tensor());
      has_variable_sizes = true;
    }
    for (const SizeSum& sum : sums) given[sum.axis.first] = with_sum(given, sum, sizes);
    std::map<std::string_view, Value> values;
    for (size_t i = 0; i < given.size(); ++i) values.emplace(declared[i]->name, given[i]);
    GraphRun run(message, files, is_jitted, file_name, has_variable_sizes ? &sizes : nullptr,
                 has_variable_sizes && open_sizes->are_inferred());
    return run.outputs_of_model(values);
  }

  // The input whose axis has a sum as its size: that of the sizes of others.
  static Value with_sum(const std::vector<Value>& given, const SizeSum& sum,
                        tensor::SizeArithmetic& sizes) {
    Tensor total = Tensor(sum.number).cast(DType::I64);
    for (const auto& [input, axis] : sum.of) {
      const auto size = tensor::axis_size(given[input].tensor(), static_cast<int64_t>(axis));
      total = total + size.count.cast(DType::I64);
    }
    const auto [input, axis] = sum.axis;
    const auto size = sizes.elements(total);
    ensure(size.has_value(), "the sum of the sizes of inputs is no size");
    return Value(sizes.limited(given[input].tensor(), static_cast<int64_t>(axis), size->front()))
        .as(given[input].emulated());
  }

  // The call of a jitted function.
  std::vector<Tensor> record_numbers(const Given& given, const Known& known) {
    std::vector<Value> values(declared.size());
    for (size_t i = 0; i < given.tensors.size(); ++i) {
      const bool is_known = i < known.size() && known[i];
      const Tensor& tensor = given.tensors[i];
      const size_t input = given.inputs[i];
      values[input] = (is_known ? Value::known(*known[i], tensor) : Value(tensor))
                          .as(declared[input]->type.element);
    }
    const std::vector<Value> results = record(std::move(values), true, given.sums);
    // Outputs without a declared type may be strings and sequences.
    if (!std::ranges::all_of(results, &Value::is_tensor)) throw NeedsHostValues();
    return numbers_of(results);
  }

  std::vector<Tensor> numbers_of(const std::vector<Value>& results) const {
    std::vector<Tensor> tensors;
    for (const Value& value : results) {
      if (!value.is_tensor())
        fail(ErrorKind::Unsupported,
             "[onnx] output \"{}\" is no tensor of numbers; call the model with run()",
             outputs[tensors.size()].name);
      tensors.push_back(value.tensor());
    }
    return tensors;
  }

  // Replays the recording for these elements of the inputs.
  std::vector<Tensor> replay(const Given& given, const Known& known) {
    std::vector<uint64_t> key(given.inputs.begin() + std::ssize(inputs), given.inputs.end());
    key.push_back(declared.size());  // ends the list of optional inputs
    for (const SizeSum& sum : given.sums) {
      key.insert(key.end(), {sum.axis.first, sum.axis.second, sum.of.size()});
      for (const auto& [input, axis] : sum.of) key.insert(key.end(), {input, axis});
      key.push_back(static_cast<uint64_t>(sum.number));
    }
    key.push_back(given.sums.size());
    for (const auto& values : known) {
      if (!values) continue;
      key.insert(key.end(), values->shape.begin(), values->shape.end());
      key.insert(key.end(), values->bits.begin(), values->bits.end());
    }
    if (recordings.size() == kMostRecordings && !recordings.contains(key)) recordings.clear();
    auto& calls = recordings[key];
    if (!calls) calls = std::make_unique<jit_detail::Calls>(/*is_pure=*/true);
    return calls
        ->call({given.tensors, {}},
               [&] { return jit_detail::Flat{record_numbers(given, known), {}}; })
        .tensors;
  }

  std::vector<Value> call(const std::vector<Data>& given) {
    const std::lock_guard lock(mutex);
    const DeviceScope scope(device);
    const std::vector<Value> there = checked(given);
    Given numbers;
    for (size_t i = 0; i < there.size(); ++i) {
      if (!there[i].is_given() || !there[i].is_tensor()) continue;
      numbers.inputs.push_back(i);
      numbers.tensors.push_back(there[i].tensor());
    }
    try {
      return has_only_numbers ? computed(numbers, there) : record(there, false);
    } catch (const Error& error) {
      const std::string what = error.what();
      const std::string hint = open_sizes->contradiction(numbers.inputs, numbers.tensors);
      if (hint.empty() || what.find(hint) != what.npos) throw;
      throw_error(error.kind(), fmt::format("{}\n{}", what, hint), error.reason());
    }
  }

  // First a call is recorded for any elements of its inputs, then for those of its small inputs of
  // integers; a model that needs others on the host is recorded at each call.
  std::vector<Value> computed(const Given& numbers, const std::vector<Value>& there) {
    if (!jit_detail::is_part_of_recording()) {
      auto varied = open_sizes->varied(numbers.inputs, numbers.tensors);
      for (; varied; varied = open_sizes->varied_again(numbers.inputs, numbers.tensors))
        if (auto results = call_for_all_sizes(
                {numbers.inputs, std::move(varied->tensors), std::move(varied->sums)}))
          return values_of(*std::move(results));
    }
    while (reads != Reads::Everything) try {
        return values_of(replay(numbers, known_for(reads, numbers)));
      } catch (const NeedsHostValues&) {
        reads = reads == Reads::Nothing ? Reads::SmallInputs : Reads::Everything;
        recordings.clear();
      } catch (const NeedsExactSizes& needs) {
        fail(ErrorKind::Unsupported, "[onnx] an input has a variable size, but {}", needs.reason);
      }
    if (auto results = call_in_segments(there)) return *std::move(results);
    return record(there, false);
  }

  // Nothing if the model cannot be cut where it needs elements on the host.
  std::optional<std::vector<Value>> call_in_segments(const std::vector<Value>& there) {
    if (jit_detail::is_part_of_recording()) return {};
    std::map<std::string_view, Value> values;
    for (size_t i = 0; i < there.size(); ++i) {
      if (!there[i].is_given()) continue;
      if (tensor::has_variable_size(there[i].tensor())) return {};
      values.emplace(declared[i]->name, there[i]);
    }
    if (!segments) segments.emplace(message, files, file_name);
    return segments->call(std::move(values));
  }

  std::vector<Value> values_of(std::vector<Tensor> results) const {
    std::vector<Value> values;
    for (Tensor& result : results) {
      const DataType type = message.graph.outputs[values.size()].type.element;
      values.push_back(Value(std::move(result)).as(type));
    }
    return values;
  }

  enum class Reads : uint8_t { Nothing, SmallInputs, Everything };

  static Known known_for(Reads reads, const Given& given) {
    return reads == Reads::Nothing ? Known() : known_of(given.tensors);
  }

  // Replays the recording for all sizes, and copies the results at their sizes. Nothing if the
  // model cannot be recorded for these; an error if the caller gave the sizes bounds.
  std::optional<std::vector<Tensor>> call_for_all_sizes(const Given& given) {
    constexpr const char* kReads = "a shape or a branch depends on elements";
    std::string reason = kReads;
    for (Reads with = reads; with != Reads::Everything;) try {
        std::vector<Tensor> results = replay(given, known_for(with, given));
        for (Tensor& result : results)
          if (tensor::has_variable_size(result)) result = tensor::actual_part(result);
        reads = with;
        serves_all_sizes = true;
        open_sizes->succeeded();
        return results;
      } catch (const NeedsHostValues&) {
        with = with == Reads::Nothing ? Reads::SmallInputs : Reads::Everything;
      } catch (const NeedsExactSizes& needs) {
        reason = needs.reason;
        break;
      } catch (const Error& error) {
        if (serves_all_sizes && open_sizes->has_bounds()) throw;  // of the device, not the model
        reason = error.what();
        break;
      }
    if (open_sizes->has_bounds())
      fail(ErrorKind::Unsupported,
           "[onnx] one recording cannot serve all sizes of the bounds; load the model without "
           "them: {}",
           reason);
    if (reason == kReads)
      open_sizes->give_up_all(reason);
    else
      open_sizes->give_up(reason);
    if (debugging(1)) debug_write(fmt::format("onnx: recorded for each size: {}\n", reason));
    return {};
  }

  std::string device;
  std::string file_name;  // without its folder
  ModelMessage message;
  ModelFiles files;
  std::vector<const ValueMessage*> declared;  // the inputs, then the optional ones
  std::vector<ValueInfo> inputs, optional, outputs;
  std::string expected;           // the inputs as a table, for errors
  bool has_only_numbers = false;  // all inputs and outputs are tensors of numbers
  std::mutex mutex;
  Reads reads = Reads::Nothing;
  std::optional<Segments> segments;  // of a model that needs computed elements on the host
  std::optional<OpenSizes> open_sizes;
  bool serves_all_sizes = false;  // a recording with variable sizes has run
  // By the elements that they hold for.
  std::map<std::vector<uint64_t>, std::unique_ptr<jit_detail::Calls>> recordings;
};

Model Model::load(const std::string& path, std::string_view device, const SizeBounds& bounds) {
  require_release();
  const auto copy =
      std::make_shared<CopiedFile>(path, "onnx");  // it may be written again meanwhile
  return Model(std::make_shared<State>(copy->bytes(), copy, path, device, bounds));
}

Model Model::from_bytes(std::span<const std::byte> file, std::string_view device,
                        const SizeBounds& bounds) {
  require_release();
  const auto copy = std::make_shared<std::vector<std::byte>>(file.begin(), file.end());
  return Model(std::make_shared<State>(*copy, copy, "", device, bounds));
}

const std::vector<ValueInfo>& Model::inputs() const {
  return state_->inputs;
}
const std::vector<ValueInfo>& Model::optional_inputs() const {
  return state_->optional;
}
const std::vector<ValueInfo>& Model::outputs() const {
  return state_->outputs;
}

std::map<std::string, std::string> Model::metadata() const {
  std::map<std::string, std::string> entries;
  for (const EntryMessage& entry : state_->message.metadata)
    entries.insert_or_assign(std::string(entry.key), std::string(entry.value));
  return entries;
}

std::vector<Tensor> Model::operator()(const std::vector<Tensor>& inputs) const {
  return state_->numbers_of(state_->call({inputs.begin(), inputs.end()}));
}

std::vector<Data> Model::run(const std::vector<Data>& inputs) const {
  std::vector<Data> results;
  for (const Value& value : state_->call(inputs)) results.push_back(data_of(value));
  return results;
}

std::map<std::string, Tensor> Model::operator()(const std::map<std::string, Tensor>& inputs) const {
  std::vector<Tensor> in_order;
  for (const ValueInfo& input : state_->inputs) {
    const auto at = inputs.find(input.name);
    require(at != inputs.end(), "[onnx] input \"{}\" is not given; the model expects:{}",
            input.name, state_->expected);
    in_order.push_back(at->second);
  }
  for (const ValueInfo& input : state_->optional) {
    const auto at = inputs.find(input.name);
    in_order.push_back(at == inputs.end() ? Tensor() : at->second);
  }
  for (const auto& [name, tensor] : inputs)
    require(
        std::ranges::find(state_->declared, name, &ValueMessage::name) != state_->declared.end(),
        "[onnx] the model has no input \"{}\"; it expects:{}", name, state_->expected);
  const std::vector<Tensor> results = (*this)(in_order);
  std::map<std::string, Tensor> named;
  for (size_t i = 0; i < results.size(); ++i) named.emplace(state_->outputs[i].name, results[i]);
  return named;
}

}  // namespace plugrad::onnx
