// plugrad tune: lists, exports and imports the database of search results.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <filesystem>

#include "base/check.h"
#include "base/file.h"
#include "base/log.h"
#include "command.h"
#include "tuning/schedule_database.h"

namespace plugrad::tools {
namespace {

using tuning::ScheduleDatabase;
using tuning::ScheduleRecord;

constexpr uint64_t kLargestText = uint64_t{256} << 20;

void export_to(const std::vector<ScheduleRecord>& records, const std::string& path) {
  std::string text;
  for (const ScheduleRecord& record : records) text += tuning::to_line(record) + '\n';
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(text))};
  if (const int failed = replace_file(path, parts))
    fail(ErrorKind::User, "[tune] {} cannot be written: {}", path, file_error_text(failed));
}

uint64_t import_from(const std::string& path, ScheduleDatabase& db) {
  const auto bytes = read_file(path, kLargestText);
  require(bytes.has_value(), "[tune] {} cannot be read: {}", path, file_error_text(errno));
  const tuning::ScheduleText text =
      tuning::parse_records({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  if (text.damaged > 0)
    log_warning(
        "{}: {} lines are damaged or of another version of plugrad and are ignored, the "
        "first is line {}",
        path, text.damaged, text.first_damaged);
  uint64_t added = 0;
  for (const ScheduleRecord& record : text.records) {
    const auto known = db.find(record);
    const bool is_there = known && known->list == record.list && known->seconds == record.seconds;
    if (!is_there && db.add(record)) ++added;
  }
  return added;
}

// The result of an interrupted search is used, and the next search continues it.
std::string as_text(const ScheduleRecord& r) {
  const std::string how = r.width > 0 ? fmt::format("beam {}", r.width) : "unfinished";
  const std::string tried = r.tried > 0 ? fmt::format("{} tried", r.tried) : "";
  return fmt::format("{:9.3f} ms {:6.2f}x  {:<10}  {:>10}  ({})  {}", r.seconds * 1e3,
                     r.first_seconds / r.seconds, how, tried, fmt::join(r.sizes, ", "), r.list);
}

std::string say_empty(const ScheduleDatabase& db) {
  if (db.path().empty()) return "there is no database of searches: the cache is switched off";
  return fmt::format("no search has found anything yet: {} {}; BEAM=2 before a program searches",
                     db.path(),
                     std::filesystem::exists(db.path()) ? "holds no record" : "is not there");
}

nlohmann::ordered_json as_json(const ScheduleDatabase& db,
                               const std::vector<ScheduleRecord>& records) {
  auto list = nlohmann::ordered_json::array();
  for (const ScheduleRecord& r : records)
    list.push_back({{"device", r.device},
                    {"kernel", r.kernel},
                    {"sizes", r.sizes},
                    {"beam", r.width},
                    {"finished", r.width > 0},
                    {"tried", r.tried},
                    {"seconds", r.seconds},
                    {"heuristic_seconds", r.first_seconds},
                    {"optimisations", r.list}});
  return {{"path", db.path()}, {"records", list}};
}

}  // namespace

Syntax tune_syntax() {
  Syntax syntax{.usage = "plugrad tune (show | export FILE | import FILE) [--json]",
                .words = "action",
                .choices = {{"action", {"show", "export", "import"}}},
                .paths = {"action"}};
  syntax.options.add_options()("json", "one JSON document");
  return syntax;
}

int run_tune(const Arguments& arguments) {
  const Syntax syntax = tune_syntax();
  const Parsed parsed = parse(arguments, syntax);
  if (parsed.help) return kSuccess;
  const auto words = parsed.get<Arguments>("action");
  if (!words.empty()) require_choice("action", words[0], syntax.choices.at("action"), syntax.usage);
  const bool shows = words.size() == 1 && words[0] == "show";
  if (!shows && (words.size() != 2 || words[0] == "show"))
    throw UsageError("say show, export FILE or import FILE\nusage: " + syntax.usage);

  ScheduleDatabase& db = tuning::schedule_database();
  if (!shows && words[0] == "import") {
    const uint64_t added = import_from(words[1], db);
    if (!parsed.has("json")) fmt::print("added {} records to {}\n", added, db.path());
  }
  const std::vector<ScheduleRecord> records = db.all();
  if (!shows && words[0] == "export") {
    export_to(records, words[1]);
    if (!parsed.has("json")) fmt::print("wrote {} records to {}\n", records.size(), words[1]);
  }
  if (parsed.has("json"))
    print_json(as_json(db, records));
  else if (shows && records.empty())
    fmt::print("{}\n", say_empty(db));
  else if (shows)
    for (const ScheduleRecord& r : records) fmt::print("{}\n", as_text(r));
  return kSuccess;
}

}  // namespace plugrad::tools
