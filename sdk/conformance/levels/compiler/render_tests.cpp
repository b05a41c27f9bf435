// L2 compile: rendering is deterministic, on every thread.
#include <malloc.h>

#include <set>

#include "conformance/levels/compiler/compile_calls.h"

namespace plugrad::conformance {
namespace {

void check_render_repeats(Context& context) {
  const pgr_renderer_api& renderer = renderer_of(context);
  for (const Bytes& block : several_blocks()) {
    const std::string source = render(renderer, context.device().handle(), block);
    expect(!source.empty(), "the rendered source is empty");
    for (int i = 0; i < 5; ++i) {
      const Bytes elsewhere = block;  // same bytes at another address
      expect(render(renderer, context.device().handle(), elsewhere) == source,
             "the same block was rendered differently the second time");
    }
  }
}

void check_render_depends_on_input(Context& context) {
  const pgr_renderer_api& renderer = renderer_of(context);
  std::set<std::string> sources;
  for (int64_t factor : {2, 3, 5})
    sources.insert(render(renderer, context.device().handle(), scaled_kernel(factor)));
  sources.insert(render(renderer, context.device().handle(), scaled_kernel(2, "other_name")));
  expect(sources.size() == 4, "kernels that differ were rendered to the same source");
}

void check_render_threads(Context& context) {
  const pgr_renderer_api& renderer = renderer_of(context);
  pgr_device* device = context.device().handle();
  std::vector<std::string> wanted;
  for (const Bytes& block : several_blocks()) wanted.push_back(render(renderer, device, block));
  on_threads(8, [&](int number) {
    for (int i = 0; i < 40; ++i) {
      const size_t which = static_cast<size_t>(number + i) % wanted.size();
      expect(render(renderer, device, several_blocks()[which]) == wanted[which],
             "a block was rendered differently on one of 8 threads");
    }
  });
}

void check_render_leak(Context& context) {
  const pgr_renderer_api& renderer = renderer_of(context);
  const Bytes block = spread_kernel(10);
  auto round = [&] { render(renderer, context.device().handle(), block); };
  for (int i = 0; i < 50; ++i) round();
  const struct mallinfo2 before = ::mallinfo2();
  for (int i = 0; i < 500; ++i) round();
  const struct mallinfo2 after = ::mallinfo2();
  expect(after.uordblks <= before.uordblks + 500 * 8,
         "rendering 500 times left " + std::to_string(after.uordblks - before.uordblks) +
             " bytes of the heap behind");
}

}  // namespace

void add_render_tests(Tests& tests) {
  auto add = [&](const std::string& id, std::function<void(Context&)> run,
                 const char* unlocked_by = "") {
    Test& test = add_test(tests, Level::L2, "l2.compile." + id, std::move(run));
    test.claim = "pgr.renderer";
    test.unlocked_by = unlocked_by;
    test.alone = id == "render.leak";
  };
  add("render.repeats", check_render_repeats);
  add("render.depends_on_input", check_render_depends_on_input);
  add("render.threads", check_render_threads);
  add("render.leak", check_render_leak);
}

}  // namespace plugrad::conformance
