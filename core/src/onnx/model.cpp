#include <algorithm>
#include <filesystem>
#include <memory>
#include <mutex>

#include "base/check.h"
#include "base/file.h"
#include "onnx/file/file_errors.h"
#include "onnx/file/graph_check.h"
#include "onnx/import/data.h"
#include "onnx/import/declared.h"
#include "onnx/import/graph_run.h"
#include "onnx/release.h"
#include "onnx/segments/segments.h"
#include "plugrad/device.h"
#include "plugrad/onnx.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad::onnx {
namespace {

std::string table_of_inputs(const std::vector<ValueInfo>& values) {
  std::string text;
  for (const ValueInfo& value : values) text += "\n  " + to_string(value);
  return text;
}

bool is_omitted(const Data& data) {
  const auto* tensor = std::get_if<Tensor>(&data.value);
  return std::holds_alternative<std::monostate>(data.value) || (tensor && !tensor->defined());
}

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
    const DeviceScope known_device(device);
    of_path(path, [&] { files.read_constants(message.graph); });
    segments.emplace(message, files, file_name, declared, bounds);
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

  // The whole call, without a recording that later calls replay.
  std::vector<Value> record(const std::vector<Value>& given) {
    tensor::SizeArithmetic sizes;
    bool has_variable_sizes = false;
    std::map<std::string_view, Value> values;
    for (size_t i = 0; i < given.size(); ++i) {
      values.emplace(declared[i]->name, given[i]);
      if (!given[i].is_tensor() || !tensor::has_variable_size(given[i].tensor())) continue;
      sizes.add(given[i].tensor());
      has_variable_sizes = true;
    }
    GraphRun run(message, files, false, file_name, has_variable_sizes ? &sizes : nullptr,
                 has_variable_sizes);
    return run.outputs_of_model(values);
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

  std::vector<Value> call(const std::vector<Data>& given) {
    const std::lock_guard lock(mutex);
    const DeviceScope scope(device);
    ++calls;
    const std::vector<Value> there = checked(given);
    try {
      auto results = has_only_numbers ? segments->call(there) : std::nullopt;
      return results ? *std::move(results) : record(there);
    } catch (const Error& error) {
      const std::string what = error.what();
      const std::string hint = segments->contradiction(there);
      if (hint.empty() || what.find(hint) != what.npos) throw;
      throw_error(error.kind(), fmt::format("{}\n{}", what, hint), error.reason());
    }
  }

  std::string explain() {
    const std::lock_guard lock(mutex);
    if (has_only_numbers) return segments->explain();
    return fmt::format(
        "{} calls, each recorded anew: an input or output of the model is no tensor of numbers\n",
        calls);
  }

  std::string device;
  std::string file_name;  // without its folder
  ModelMessage message;
  ModelFiles files;
  std::vector<const ValueMessage*> declared;  // the inputs, then the optional ones
  std::vector<ValueInfo> inputs, optional, outputs;
  std::string expected;           // the inputs as a table, for errors
  bool has_only_numbers = false;  // all inputs and outputs are tensors of numbers
  uint64_t calls = 0;
  std::mutex mutex;
  std::optional<Segments> segments;
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

std::string Model::explain() const {
  return state_->explain();
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
