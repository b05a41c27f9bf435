#include "conformance/worker/serve.h"

#include <unistd.h>

#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "conformance/result_text.h"
#include "conformance/run_test.h"
#include "conformance/worker/launches.h"
#include "conformance/worker/output.h"
#include "plugrad/sdk/guard.h"

namespace plugrad::conformance {
namespace {

using nlohmann::json;

class Server {
 public:
  explicit Server(Channel& channel) : channel_(channel) {}

  void answer() {
    switch (channel_.kind()) {
      case Request::Open:
        return open();
      case Request::TryDevice:
        return try_device();
      case Request::RunTest:
        return run();
      case Request::LoadKernel:
        return load();
      case Request::Launch:
        return launches().launch(*reinterpret_cast<LaunchMessage*>(channel_.message_area()));
    }
  }

 private:
  void open() {
    const json request = json::parse(channel_.take().text);
    std::string refusal;
    try {
      using Texts = std::map<std::string, std::string>;
      plugin_ = Plugin::open(request["plugin"], request["device_index"],
                             request["device_options"].get<Texts>(),
                             request["plugin_options"].get<Texts>());
    } catch (const std::exception& error) {
      refusal = error.what();
    } catch (...) {
      refusal = "an exception of unknown type came out of a call";
    }
    std::fflush(nullptr);
    printed_while_opening_ = ::lseek(STDOUT_FILENO, 0, SEEK_CUR);
    channel_.put(refusal, {});
  }

  // A device that does not open as it is asked to would fail every test; what else is wrong with it
  // is for the tests to say.
  void try_device() {
    json reply = {{"device", plugin_->manifest().device_name}};
    try {
      const std::unique_ptr<Device> device = plugin_->open_device();
      reply["driver"] = std::string(sdk::to_view(device->info().driver));
      reply["device"] =
          plugin_->manifest().device_name + ": " + std::string(sdk::to_view(device->info().name));
    } catch (const Unsupported&) {
    } catch (const Failed& failed) {
      if (std::string_view(failed.what()).starts_with("plugin.device_open"))
        reply["refusal"] = failed.what();
    } catch (const std::exception& error) {
      reply["refusal"] = std::string("an exception came out of it: ") + error.what();
    } catch (...) {
      reply["refusal"] = "an exception of unknown type came out of it";
    }
    channel_.put(reply.dump(-1, ' ', false, json::error_handler_t::replace), {});
  }

  void run() {
    const Message request = channel_.take();
    const json head = json::parse(request.text);
    const Test* test = find_test(head["id"].get<std::string>());
    if (!test) throw std::runtime_error("this worker has no test " + head["id"].dump());
    std::fflush(nullptr);
    ::lseek(STDOUT_FILENO, printed_while_opening_, SEEK_SET);
    Context context(*plugin_, head["seed"], request.bytes, surroundings());
    const TestResult result = run_test(*test, context);
    std::fflush(nullptr);
    channel_.put(encode_result(result), {});
  }

  Surroundings surroundings() {
    return {[] {
              std::fflush(nullptr);
              return read_output(STDOUT_FILENO);
            },
            [this](std::span<const std::byte> ir) { channel_.set_kernel(ir); }};
  }

  Launches& launches() {
    if (!launches_) launches_.emplace(plugin_->shared_device(), channel_);
    return *launches_;
  }

  void load() {
    const Message request = channel_.take();
    json reply;
    try {
      reply["kernel"] = launches().load(request.bytes);
    } catch (const std::exception& error) {
      reply["error"] = error.what();
    }
    channel_.put(reply.dump(-1, ' ', false, json::error_handler_t::replace), {});
  }

  Channel& channel_;
  std::unique_ptr<Plugin> plugin_;
  std::optional<Launches> launches_;
  off_t printed_while_opening_ = 0;
};

}  // namespace

void serve(Channel& channel) {
  auto& server = *new Server(channel);  // the process ends without closing anything
  constexpr auto kForEver = std::chrono::hours(24);
  for (uint32_t seen = 0;;) {
    if (!channel.asked().wait(seen, kForEver)) continue;
    seen = channel.asked().value();
    server.answer();
    channel.answered().ring(seen);
  }
}

}  // namespace plugrad::conformance
