#include "base/trace/columns.h"

#include <fmt/format.h>

#include <iterator>

namespace plugrad::trace {
namespace {

template <class Event>
struct Column {
  const char* name;
  std::int64_t (*value)(const Event&);
};

template <auto member, class Event>
std::int64_t get(const Event& event) {
  return static_cast<std::int64_t>(event.*member);
}

void append(std::string& out, std::int64_t number) {
  const fmt::format_int text(number);
  out.append(text.data(), text.size());
}

template <class Event, std::size_t n>
void append(std::string& out, const char* kind, const std::vector<Event>& events,
            std::uint64_t epoch_ns, const Column<Event> (&columns)[n]) {
  auto to = std::back_inserter(out);
  fmt::format_to(to, R"({{"t":"events","kind":"{}","count":{},"columns":{{"start":[)", kind,
                 events.size());
  auto before = static_cast<std::int64_t>(epoch_ns);
  for (const Event& event : events) {
    const auto start = static_cast<std::int64_t>(event.start_ns);
    if (&event != events.data()) out += ',';
    append(out, start - before);
    before = start;
  }
  out += ']';
  for (const Column<Event>& column : columns) {
    fmt::format_to(to, ",\"{}\":[", column.name);
    for (const Event& event : events) {
      if (&event != events.data()) out += ',';
      append(out, column.value(event));
    }
    out += ']';
  }
  out += "}}\n";
}

std::int64_t submit(const Launch& event) {
  return event.submit_ns == 0 ? 0 : static_cast<std::int64_t>(event.start_ns - event.submit_ns);
}

}  // namespace

void append_columns(std::string& out, const std::vector<Launch>& events, std::uint64_t epoch_ns) {
  append<Launch>(out, "launch", events, epoch_ns,
                 {{"track", get<&Launch::track>},
                  {"kernel", get<&Launch::kernel>},
                  {"duration", get<&Launch::duration_ns>},
                  {"submit", submit},
                  {"plan", get<&Launch::plan>},
                  {"step", get<&Launch::step>}});
}

void append_columns(std::string& out, const std::vector<Copy>& events, std::uint64_t epoch_ns) {
  append<Copy>(out, "copy", events, epoch_ns,
               {{"track", get<&Copy::track>},
                {"direction", get<&Copy::direction>},
                {"bytes", get<&Copy::bytes>},
                {"duration", get<&Copy::duration_ns>}});
}

void append_columns(std::string& out, const std::vector<Wait>& events, std::uint64_t epoch_ns) {
  append<Wait>(out, "wait", events, epoch_ns,
               {{"track", get<&Wait::track>},
                {"device", get<&Wait::device>},
                {"duration", get<&Wait::duration_ns>}});
}

void append_columns(std::string& out, const std::vector<Collective>& events,
                    std::uint64_t epoch_ns) {
  append<Collective>(out, "collective", events, epoch_ns,
                     {{"track", get<&Collective::track>},
                      {"collective", get<&Collective::kind>},
                      {"bytes", get<&Collective::bytes>},
                      {"values", get<&Collective::values>},
                      {"duration", get<&Collective::duration_ns>},
                      {"waited", get<&Collective::waited_ns>},
                      {"plan", get<&Collective::plan>},
                      {"step", get<&Collective::step>}});
}

void append_columns(std::string& out, const std::vector<Span>& events, std::uint64_t epoch_ns) {
  append<Span>(out, "span", events, epoch_ns,
               {{"track", get<&Span::track>},
                {"category", get<&Span::category>},
                {"name", get<&Span::name>},
                {"duration", get<&Span::duration_ns>},
                {"value", get<&Span::value>}});
}

void append_columns(std::string& out, const std::vector<Memory>& events, std::uint64_t epoch_ns) {
  append<Memory>(out, "memory", events, epoch_ns,
                 {{"device", get<&Memory::device>},
                  {"used", get<&Memory::used_bytes>},
                  {"cached", get<&Memory::cached_bytes>},
                  {"change", get<&Memory::change_bytes>},
                  {"buffer", get<&Memory::buffer>}});
}

}  // namespace plugrad::trace
