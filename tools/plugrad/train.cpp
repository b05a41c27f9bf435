// plugrad train SET: trains a network, prints progress on stderr and one line of JSON on stdout.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/check.h"
#include "base/clock.h"
#include "command.h"
#include "data_sets.h"
#include "engine/session.h"
#include "interruption.h"
#include "mnist_networks.h"
#include "plugrad/plugrad.h"

namespace plugrad::tools {
namespace {

constexpr char kUsage[] =
    "plugrad train (mnist|fashion_mnist|cifar10) [--device D] [--model cnn|small] [--steps N] "
    "[--data DIR] [--save F] [--load F] [--plot FILE.(svg|html)] [--json]";

// Default hyperparameters of a network.
struct Recipe {
  const char* model;
  int64_t steps;
  double learning_rate;
};
constexpr Recipe kRecipes[] = {{"cnn", 120, 1e-3}, {"small", 200, 1e-2}};

struct Request {
  const DataSet* set = nullptr;
  std::string model, data, save, load, plot;
  int64_t steps = 0, batch = 0;
  double learning_rate = 0;
  uint64_t seed = 0;
  bool json = false;
};

struct Outcome {
  double seconds = 0, compile_seconds = 0, step_ms = 0, loss = 0, accuracy = 0;
  int64_t steps = 0;
  bool interrupted = false;
};

double seconds_since(uint64_t start_ns) {
  return static_cast<double>(monotonic_ns() - start_ns) * 1e-9;
}

double compile_seconds() {
  return static_cast<double>(engine::Session::current().statistics().compile_ns) * 1e-9;
}

// The first step compiles the kernels; the steady time is the median of the others.
double steady_ms(std::vector<double> step_ms) {
  if (step_ms.size() > 1) step_ms.erase(step_ms.begin());
  if (step_ms.empty()) return 0;
  auto middle = step_ms.begin() + static_cast<std::ptrdiff_t>(step_ms.size() / 2);
  std::nth_element(step_ms.begin(), middle, step_ms.end());
  return *middle;
}

// With a plot, a step also computes the accuracy of its batch: (loss, accuracy).
template <class Net>
void train_steps(Net& net, const data::Dataset& set, const Request& request,
                 optim::Progress& progress, Outcome& outcome) {
  if (request.steps == 0) return;
  optim::Adam opt(nn::parameters(net), {.lr = request.learning_rate});
  const bool has_plot = !request.plot.empty();
  std::vector<double> step_ms;
  uint64_t start = monotonic_ns(), step_start = start;
  double compiled_before = compile_seconds();
  const auto step = jit([&](const Tensor& x, const Tensor& y) {
    opt.zero_grad();
    const Tensor scores = net(x);
    Tensor loss = sparse_categorical_crossentropy(scores, y);
    Tensor measured = has_plot ? stack({loss, (scores.argmax(-1) == y).mean()}) : loss;
    loss.backward();
    opt.step();
    return measured;
  });
  for (auto [x, y] : set.batches(request.batch,
                                 {.shuffle = true, .seed = request.seed, .steps = request.steps})) {
    const auto measured = step(x, y).template to_vector<double>();
    outcome.loss = measured[0];
    // before the first step there is no result to lose
    if (outcome.steps == 0) catch_interruption();
    progress.update(outcome.loss, has_plot ? std::optional(measured[1]) : std::nullopt);
    require(std::isfinite(outcome.loss), "[train] the loss is {} after {} steps; lower --lr",
            outcome.loss, step_ms.size() + 1);
    uint64_t now = monotonic_ns();
    step_ms.push_back(static_cast<double>(now - step_start) * 1e-6);
    step_start = now;
    outcome.steps = static_cast<int64_t>(step_ms.size());
    if (is_interrupted()) break;
  }
  outcome.seconds = seconds_since(start);
  outcome.compile_seconds = compile_seconds() - compiled_before;
  outcome.step_ms = steady_ms(step_ms);
}

template <class Net>
Outcome run_network(const Request& request) {
  data::SourceOptions source;
  source.folder = request.data;
  auto [train, test] = request.set->load(source);
  Tensor::manual_seed(request.seed);
  const Shape sample = train.sample_shape();  // channels, height, width
  Net net(sample[0], sample[1]);
  if (!request.load.empty()) nn::load(net, request.load);
  Outcome outcome;
  optim::Progress progress(request.steps, {.title = request.set->name + (" " + request.model) +
                                                    " on " + Device::default_device(),
                                           .units_a_step = request.batch,
                                           .unit = "images",
                                           .plot = request.plot});
  train_steps(net, train, request, progress, outcome);
  if (!request.save.empty()) nn::save(net, request.save);
  release_interruption();  // all results are saved
  outcome.interrupted = is_interrupted();
  if (outcome.interrupted) return outcome;
  outcome.accuracy = nn::accuracy(net, test);
  progress.add_test_accuracy(outcome.accuracy);
  return outcome;
}

nlohmann::ordered_json training_json(const Request& request, const Outcome& outcome) {
  double rate =
      outcome.step_ms > 0 ? static_cast<double>(request.batch) * 1e3 / outcome.step_ms : 0;
  nlohmann::ordered_json json = {{"device", Device::default_device()},
                                 {"data", request.set->name},
                                 {"model", request.model},
                                 {"steps", outcome.steps},
                                 {"batch", request.batch},
                                 {"seconds", outcome.seconds},
                                 {"compile_seconds", outcome.compile_seconds},
                                 {"step_ms", outcome.step_ms},
                                 {"images_per_second", rate},
                                 {"loss", outcome.loss},
                                 {"test_accuracy", outcome.accuracy}};
  if (!request.plot.empty()) json["plot"] = request.plot;
  if (outcome.interrupted) {
    json["test_accuracy"] = nullptr;  // the test was not run
    json["interrupted"] = true;
  }
  return json;
}

void tell_interruption(const Request& request, const Outcome& outcome) {
  const std::string saved = request.save.empty() ? "nothing is saved without --save"
                                                 : "the network is saved in " + request.save;
  fmt::print(stderr, "plugrad train: interrupted after {} of {} steps; {}\n", outcome.steps,
             request.steps, saved);
}

Arguments model_names() {
  Arguments names;
  for (const Recipe& recipe : kRecipes) names.emplace_back(recipe.model);
  return names;
}

/// Reports before the training what would fail after it. Errors: User.
void require_writable(std::string_view option, const std::string& path) {
  if (path.empty()) return;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const char* const where = folder.empty() ? "." : folder.c_str();
  const int error = access(where, W_OK | X_OK) != 0       ? errno
                    : std::filesystem::is_directory(path) ? EISDIR
                                                          : 0;
  require(error == 0, "[train] --{} {} cannot be written: {}", option, path, std::strerror(error));
}

Request read_request(const Parsed& parsed) {
  Request request;
  request.set = &find_data_set(parsed.get<Arguments>("set"), kUsage);
  request.model = parsed.get<std::string>("model");
  request.data = parsed.get<std::string>("data");
  request.save = parsed.get<std::string>("save");
  request.load = parsed.get<std::string>("load");
  request.plot = parsed.get<std::string>("plot");
  require_choice("model", request.model, model_names(), kUsage);
  const auto recipe = std::ranges::find(kRecipes, request.model, &Recipe::model);
  request.steps = parsed.has("steps") ? parsed.get<int64_t>("steps") : recipe->steps;
  request.learning_rate = parsed.has("lr") ? parsed.get<double>("lr") : recipe->learning_rate;
  request.batch = parsed.get<int64_t>("batch");
  request.seed = parsed.get<uint64_t>("seed");
  request.json = parsed.has("json");
  if (request.steps < 0 || request.batch < 1)
    throw UsageError(
        fmt::format("--steps must be 0 or more and --batch 1 or more\nusage: {}", kUsage));
  if (!request.plot.empty() && !request.plot.ends_with(".svg") && !request.plot.ends_with(".html"))
    throw UsageError(
        fmt::format("--plot {} must end in .svg or .html\nusage: {}", request.plot, kUsage));
  require_writable("plot", request.plot);
  require_writable("save", request.save);
  return request;
}

}  // namespace

Syntax train_syntax() {
  namespace po = boost::program_options;
  Syntax syntax{.usage = kUsage,
                .words = "set",
                .choices = {{"set", data_set_names()}, {"model", model_names()}},
                .paths = {"data", "save", "load", "plot"}};
  auto text = [] { return po::value<std::string>()->default_value(""); };
  syntax.options.add_options()("device", text(),
                               "device to train on, such as CPU; default: as DEV says")  //
      ("model", po::value<std::string>()->default_value("cnn"), "cnn or small")          //
      ("steps", po::value<int64_t>(),
       "optimiser steps, 120 for cnn, 200 for small; 0: only measure accuracy")(
          "batch", po::value<int64_t>()->default_value(512), "images a step")                 //
      ("lr", po::value<double>(), "learning rate of Adam, 0.001 for cnn, 0.01 for small")     //
      ("seed", po::value<uint64_t>()->default_value(1), "of the weights and of the batches")  //
      ("data", text(), "folder that holds the files of the data set")                         //
      ("save", text(), "safetensors file to write the trained network to")                    //
      ("load", text(), "safetensors file to begin with")                                      //
      ("plot", text(),
       "file for a plot of loss, accuracy and images per second: .html, a page that reloads itself "
       "during the training, or .svg")  //
      ("json", "nothing but the JSON line on stdout");
  return syntax;
}

int run_train(const Arguments& arguments) {
  const Parsed parsed = parse(arguments, train_syntax());
  if (parsed.help) return kSuccess;
  Request request = read_request(parsed);
  choose_device(parsed.get<std::string>("device"));
  if (!request.json) fmt::print("training {} on {}\n", request.model, Device::default_device());
  std::fflush(stdout);
  Outcome outcome =
      request.model == "cnn" ? run_network<MnistCnn>(request) : run_network<MnistSmall>(request);
  if (outcome.interrupted)
    tell_interruption(request, outcome);
  else if (!request.json)
    fmt::print("test accuracy {:.2f}%\n", outcome.accuracy * 100);
  print_json(training_json(request, outcome));
  return outcome.interrupted ? interruption_exit_code() : kSuccess;
}

}  // namespace plugrad::tools
