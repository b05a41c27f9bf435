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
      case Request::Describe:
        return describe();
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

  void describe() {
    std::string text = plugin_->manifest().device_name;
    try {
      text += ": " + std::string(sdk::to_view(plugin_->shared_device().info().name));
    } catch (...) {
      // Why it does not open is for the tests to say.
    }
    channel_.put(text, {});
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
