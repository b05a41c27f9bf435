#include "networks/stages.h"

#include <fmt/format.h>
#include <sys/time.h>

#include <cmath>

#include "command.h"
#include "plugrad/error.h"

namespace plugrad::tools {
namespace {

void set_alarm(double seconds) {
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(seconds);
  timer.it_value.tv_usec = static_cast<suseconds_t>(std::fmod(seconds, 1) * 1e6);
  setitimer(ITIMER_REAL, &timer, nullptr);
}

Syntax stage_syntax() {
  namespace po = boost::program_options;
  const auto text = [] { return po::value<std::string>()->default_value(""); };
  const auto texts = [] { return po::value<Arguments>()->default_value({}, ""); };
  Syntax syntax{.usage = "plugrad-conformance conformance-network STAGE --plugin PATH",
                .words = "stage"};
  syntax.options.add_options()("plugin", po::value<std::string>()->required(), "library")  //
      ("index", po::value<uint32_t>()->default_value(0), "number of its device")           //
      ("option", texts(), "KEY=VALUE of the device")                                       //
      ("model", text(), "ONNX file")                                                       //
      ("folder", text(), "that the stages share")                                          //
      ("expected", text(), "device of the expected values")                                //
      ("keep", text(), "folder for launches that differ")                                  //
      ("size", texts(), "NAME=N")                                                          //
      ("input", texts(), "NAME=NUMBER")                                                    //
      ("seed", po::value<uint64_t>()->default_value(0), "of the inputs")                   //
      ("time-limit-factor", po::value<double>()->default_value(1), "of the limits")        //
      ("leave-out", po::value<std::vector<uint64_t>>()->default_value({}, ""), "a kernel");
  return syntax;
}

}  // namespace

TimeLimit::TimeLimit(double seconds) {
  set_alarm(seconds);
}
TimeLimit::~TimeLimit() {
  set_alarm(0);
}

void tell(const nlohmann::json& line) {
  write_to_parent(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::vector<std::string> stage_arguments(const char* stage, const NetworkTarget& target) {
  std::vector<std::string> words = {"conformance-network",
                                    stage,
                                    "--model",
                                    target.model,
                                    "--folder",
                                    target.folder,
                                    "--expected",
                                    target.expected,
                                    "--keep",
                                    target.keep,
                                    "--seed",
                                    fmt::to_string(target.seed),
                                    "--time-limit-factor",
                                    fmt::to_string(target.device.time_limit_factor)};
  for (const auto& [name, size] : target.sizes)
    words.insert(words.end(), {"--size", fmt::format("{}={}", name, size)});
  for (const auto& [name, number] : target.inputs)
    words.insert(words.end(), {"--input", fmt::format("{}={}", name, number)});
  for (const uint64_t kernel : target.left_out)
    words.insert(words.end(), {"--leave-out", fmt::to_string(kernel)});
  return arguments_of(std::move(words), target.device);
}

int run_stage(const Arguments& arguments) {
  const Parsed parsed = parse(arguments, stage_syntax());
  if (parsed.help) return kSuccess;
  NetworkTarget target;
  target.device = read_target(parsed);
  target.device.time_limit_factor = parsed.get<double>("time-limit-factor");
  target.model = parsed.get<std::string>("model");
  target.folder = parsed.get<std::string>("folder");
  target.expected = parsed.get<std::string>("expected");
  target.keep = parsed.get<std::string>("keep");
  target.sizes = parse_key_values(parsed.get<Arguments>("size"), "size");
  target.inputs = parse_key_values(parsed.get<Arguments>("input"), "input");
  target.seed = parsed.get<uint64_t>("seed");
  for (const uint64_t kernel : parsed.get<std::vector<uint64_t>>("leave-out"))
    target.left_out.insert(kernel);
  const auto stage = parsed.get<Arguments>("stage").at(0);
  try {
    if (stage == kStages[0]) record_network(target);
    if (stage == kStages[1]) judge_launches(target);
    if (stage == kStages[2]) compare_outputs(target);
  } catch (const Error& error) {
    tell({{"error", error.what()}, {"unsupported", error.kind() == ErrorKind::Unsupported}});
  } catch (const std::exception& error) {
    tell({{"error", error.what()}, {"unsupported", false}});
  }
  return kSuccess;
}

}  // namespace plugrad::tools
