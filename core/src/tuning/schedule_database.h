// What searches found, in a database that any number of processes share. Nothing in it is trusted:
// a schedule is used where it is legal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/storage/database.h"
#include "tuning/schedule_record.h"

namespace plugrad::tuning {

class ScheduleDatabase {
 public:
  /// `text`: a file of lines (tuning/schedule_record.h) that is imported once; empty: none.
  explicit ScheduleDatabase(std::string path, std::string text = "", bool is_in_cache = false);

  const std::string& path() const { return database_.path(); }
  /// The record with the key of `wanted`: the last that was added.
  std::optional<ScheduleRecord> find(const ScheduleRecord& wanted);
  /// Of the same family, those of the nearest sizes first, other devices' after this one's; at most
  /// `most`.
  std::vector<ScheduleRecord> near(const ScheduleRecord& wanted, size_t most);
  /// Whether it is kept. One warning where the file cannot be written.
  bool add(const ScheduleRecord& record);
  /// Without the warning.
  bool add_quietly(const ScheduleRecord& record);
  /// Whether there is nothing to look up.
  bool is_empty();
  /// One record a key, in the order of their first appearance.
  std::vector<ScheduleRecord> all();

 private:
  void import_once();

  Database database_;
  const std::string text_;
  std::once_flag imported_;
};

/// That of PLUGRAD_SEARCH_DB, else search.db in the cache directory; switched off where there is
/// none. A text file of plugrad 1.0 (search.tsv in the cache directory, or what the setting names)
/// is imported once; of FILE, the database is FILE.db.
ScheduleDatabase& schedule_database();

}  // namespace plugrad::tuning
