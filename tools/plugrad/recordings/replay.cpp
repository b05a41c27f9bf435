// plugrad replay: repeats a recording on a device, without the program that was recorded.
#include <fmt/format.h>

#include "base/check.h"
#include "base/settings.h"
#include "command.h"
#include "recordings/recording_player.h"
#include "runtime/device/device_state.h"
#include "runtime/registry.h"

namespace plugrad::tools {
namespace {

std::string plugin_of(const std::string& device) {
  return device.substr(0, device.find(':'));
}

// What the layers around a device found.
std::vector<std::string> findings_of(runtime::Device& device) {
  std::vector<std::string> out;
  for (const auto& layer : device.state().layers)
    for (std::string& finding : layer->findings()) out.push_back(std::move(finding));
  return out;
}

nlohmann::ordered_json replay_document(const std::string& file, runtime::Device& device,
                                       const RecordingPlayer& player, bool is_cut_off,
                                       const std::vector<std::string>& findings) {
  auto reads = nlohmann::ordered_json::array();
  for (const PlayedRead& read : player.reads())
    reads.push_back({{"call", read.call},
                     {"buffer", read.buffer},
                     {"bytes", read.bytes},
                     {"hash", read.hash},
                     {"equal", read.is_equal},
                     {"difference", read.first_difference}});
  return {{"file", file},          {"device", device.name()},
          {"cut_off", is_cut_off}, {"launches", player.launches()},
          {"reads", reads},        {"moved_to_reference", player.moved()},
          {"findings", findings}};
}

void print_replay(runtime::Device& device, const RecordingPlayer& player) {
  uint64_t equal = 0;
  for (const PlayedRead& read : player.reads()) {
    equal += read.is_equal;
    if (!read.is_equal)
      fmt::print("call {}: the {} bytes read from buffer {} are not the recorded ones ({}): {}\n",
                 read.call, read.bytes, read.buffer, read.hash.substr(0, 16),
                 read.first_difference.empty() ? "their contents were not recorded"
                                               : read.first_difference);
  }
  for (const auto& [kernel, lacks] : player.moved())
    fmt::print("kernel {}: {} lacks {}, so REFERENCE ran it\n", kernel, device.name(), lacks);
  if (player.lacks_contents())
    fmt::print("contents that the recording left out were replaced by whatever the memory had\n");
  fmt::print("{}: {} launches; {} of {} reads gave the recorded bytes\n", device.name(),
             player.launches(), equal, player.reads().size());
}

}  // namespace

int run_replay(const Arguments& arguments) {
  const Syntax syntax = replay_syntax();
  const Parsed parsed = parse(arguments, syntax);
  if (parsed.help) return kSuccess;
  const auto words = parsed.has("file") ? parsed.get<Arguments>("file") : Arguments();
  if (words.size() != 1) throw UsageError("name one recording\nusage: " + syntax.usage);
  const auto device_name = parsed.get<std::string>("device");
  const auto other = parsed.get<std::string>("compare");
  if (!other.empty())
    change_settings([&](Settings& s) {
      const std::string only = device_name.empty() ? "" : ":device=" + plugin_of(device_name);
      s.layers =
          fmt::format("{}{}compare:with={}{}", s.layers, s.layers.empty() ? "" : ",", other, only);
    });
  runtime::RecordingReader reader(words[0]);
  choose_device(device_name);
  runtime::Device& device = runtime::Registry::instance().default_device();
  RecordingPlayer player(device);
  for (runtime::RecordedCall call; reader.next(call);) player.play(call);
  require(!reader.is_cut_off() || parsed.has("partial"),
          "[replay] {} was cut off after {} calls: its program was killed or the disk was full; "
          "--partial repeats what is there",
          words[0], reader.calls());
  device.synchronize();
  const std::vector<std::string> findings = findings_of(device);
  if (parsed.has("json"))
    print_json(replay_document(words[0], device, player, reader.is_cut_off(), findings));
  else
    print_replay(device, player);
  bool differs = !findings.empty();
  if (other.empty())
    for (const PlayedRead& read : player.reads()) differs |= !read.is_equal;
  return differs ? kFailure : kSuccess;
}

}  // namespace plugrad::tools
