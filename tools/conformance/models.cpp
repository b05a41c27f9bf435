#include "models.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/settings.h"
#include "child_process.h"
#include "command.h"

extern char** environ;

namespace plugrad::tools {
namespace {

using conformance::ExtraTest;
using conformance::Level;
using conformance::Status;
using conformance::TestResult;

constexpr double kModelSeconds = 60;

// A private cache, so that no kernel comes from another build of the plugin.
class ScratchCache {
 public:
  ScratchCache() {
    std::error_code error;
    std::string name =
        (std::filesystem::temp_directory_path(error) / "plugrad-models-XXXXXX").string();
    if (error) throw std::runtime_error("there is no temporary directory: " + error.message());
    if (!mkdtemp(name.data()))
      throw std::runtime_error(name + " cannot be made: " + std::strerror(errno));
    path_ = name;
  }
  ~ScratchCache() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchCache(const ScratchCache&) = delete;
  ScratchCache& operator=(const ScratchCache&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

TestResult result_of(const ChildOutcome& child, double seconds) {
  TestResult result;
  result.status = Status::Crash;
  result.stack = child.errors;
  if (child.end == ChildOutcome::End::TimedOut) {
    result.status = Status::Timeout;
    result.message = fmt::format("the training did not end within {} s", seconds);
    return result;
  }
  if (child.end == ChildOutcome::End::Signalled) {
    result.message =
        fmt::format("the process ended by signal {} ({})", child.code, strsignal(child.code));
    return result;
  }
  const auto json = nlohmann::json::parse(child.output, nullptr, false);
  if (json.is_discarded() || !json.is_object()) {
    result.message =
        fmt::format("the process ended with code {} before the training did", child.code);
    return result;
  }
  result.stack.clear();
  result.status = json.value("supported", true) ? Status::Fail : Status::Unsupported;
  result.message = json.value("message", "");
  if (result.message.empty()) result.status = Status::Pass;
  result.metric = json.value("metric", "");
  result.worst = json["worst"].is_number() ? json["worst"].get<double>() : INFINITY;
  result.worst_input = json.value("worst_input", "");
  return result;
}

TestResult run_isolated(const std::string& model, const ModelTarget& target) {
  const auto start = std::chrono::steady_clock::now();
  const double seconds = kModelSeconds * target.time_limit_factor;
  TestResult result;
  try {
    const ScratchCache cache;
    result = result_of(run_child(arguments_of({"conformance-model", model}, target),
                                 clean_environment(cache.path().string()), seconds),
                       seconds);
  } catch (const std::exception& error) {
    result.status = Status::Fail;
    result.message = fmt::format("no process for the training: {}", error.what());
  }
  result.milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return result;
}

void write_result(const TestResult& result) {
  const nlohmann::json json = {{"supported", result.status != Status::Unsupported},
                               {"message", result.message},
                               {"metric", result.metric},
                               {"worst", result.worst},
                               {"worst_input", result.worst_input}};
  write_to_parent(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

std::vector<std::string> clean_environment(const std::string& cache) {
  std::vector<std::string> kept;
  for (char** at = environ; *at; ++at) {
    const std::string_view text(*at), name = text.substr(0, text.find('='));
    bool is_setting = false;
    for (const SettingRow& row : setting_rows())
      is_setting |= name == row.name && name != "PLUGRAD_THREADS";
    if (!is_setting) kept.emplace_back(text);
  }
  kept.push_back("PLUGRAD_CACHE_DIR=" + cache);
  return kept;
}

void write_to_parent(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = write(kChildResult, text.data() + at, text.size() - at);
    if (written <= 0) throw std::runtime_error("the result has nobody who reads it");
    at += static_cast<size_t>(written);
  }
}

ModelTarget read_target(const Parsed& parsed) {
  ModelTarget target;
  target.plugin_path = parsed.get<std::string>("plugin");
  target.device_index = parsed.get<uint32_t>("index");
  for (const std::string& option : parsed.get<std::vector<std::string>>("option")) {
    const size_t equals = option.find('=');
    if (equals == option.npos)
      throw UsageError(fmt::format("--option {} is not KEY=VALUE", option));
    target.device_options[option.substr(0, equals)] = option.substr(equals + 1);
  }
  return target;
}

std::vector<std::string> arguments_of(std::vector<std::string> words, const ModelTarget& target) {
  words.insert(words.end(),
               {"--plugin", target.plugin_path, "--index", fmt::to_string(target.device_index)});
  for (const auto& [key, value] : target.device_options)
    words.insert(words.end(), {"--option", fmt::format("{}={}", key, value)});
  return words;
}

std::vector<ExtraTest> model_tests(const ModelTarget& target) {
  std::vector<ExtraTest> tests;
  for (const std::string& name : model_names()) {
    ExtraTest test;
    test.described.id = "l2.models." + name;
    test.described.level = Level::L2;
    test.run = [name, target] { return run_isolated(name, target); };
    tests.push_back(std::move(test));
  }
  return tests;
}

int train_alone(const Arguments& arguments) {
  namespace po = boost::program_options;
  Syntax syntax{.usage = "plugrad-conformance conformance-model MODEL --plugin PATH",
                .words = "model"};
  syntax.options.add_options()("plugin", po::value<std::string>()->required(),
                               "library of the plugin")                           //
      ("index", po::value<uint32_t>()->default_value(0), "number of its device")  //
      ("option", po::value<std::vector<std::string>>()->default_value({}, ""),
       "KEY=VALUE of the device");
  const Parsed parsed = parse(arguments, syntax);
  if (parsed.help) return kSuccess;
  const auto models = parsed.get<std::vector<std::string>>("model");
  const std::vector<std::string> known = model_names();
  if (models.size() != 1 || std::find(known.begin(), known.end(), models[0]) == known.end())
    throw UsageError("conformance-model trains mlp, convnet or transformer");
  write_result(train_model(models[0], read_target(parsed)));
  return kSuccess;
}

}  // namespace plugrad::tools
