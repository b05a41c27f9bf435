// SQLite files that any number of processes and threads share. Nothing depends on one: where a file
// cannot be used a call returns false, and one warning says why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace plugrad {

/// What SQLite reports; leaves Database::read and write as false.
struct DatabaseError {
  int code;  // SQLITE_…
  std::string text;
};

/// One statement while it runs. Parameters and columns count from 1 and 0, as SQLite's do.
class Statement {
 public:
  Statement(sqlite3* connection, std::string_view sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  /// Binds the parameters in order. Blobs and texts must outlive the statement.
  template <class... Values>
  Statement& bind(const Values&... values) {
    int number = 0;
    (set(++number, values), ...);
    return *this;
  }
  /// Whether there is a row.
  bool step();
  int64_t integer(int column) const;
  double real(int column) const;
  std::string_view text(int column) const;            ///< until the next step
  std::span<const std::byte> blob(int column) const;  ///< until the next step

 private:
  void set(int number, int64_t value);
  void set(int number, uint64_t value) { set(number, static_cast<int64_t>(value)); }
  void set(int number, uint32_t value) { set(number, static_cast<int64_t>(value)); }
  void set(int number, double value);
  void set(int number, std::string_view value);
  void set(int number, const std::string& value) { set(number, std::string_view(value)); }
  void set(int number, std::span<const std::byte> value);
  [[noreturn]] void fail(int code) const;

  sqlite3* connection_;
  sqlite3_stmt* statement_ = nullptr;
};

class Database {
 public:
  struct Description {
    std::string purpose;  // "kernel cache", for messages
    std::string without;  // what follows when it cannot be used, for messages
    std::string schema;   // statements that create its tables where they are missing
    int version;          // of the schema: another one's file is left alone
    bool is_trusted;      // its contents are run: a file that others may write is not used
  };

  /// The file is opened on first use. Empty: switched off. In the cache directory a missing folder
  /// is made, and a damaged file set aside whatever it was; elsewhere, only what was a database.
  Database(std::string path, const Description& description, bool is_in_cache = true);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const std::string& path() const { return path_; }

  /// work(connection), which reads. A damaged file is set aside, and the work done again on a new
  /// one.
  template <class Work>
  bool read(Work work) {
    return run(
        [](void* context, sqlite3* connection) { (*static_cast<Work*>(context))(connection); },
        &work, Access::Read);
  }
  /// The same in a transaction: all that the work writes, or nothing.
  template <class Work>
  bool write(Work work) {
    return run(
        [](void* context, sqlite3* connection) { (*static_cast<Work*>(context))(connection); },
        &work, Access::Write);
  }
  /// As write(), without a warning where the file cannot be written.
  template <class Work>
  bool write_quietly(Work work) {
    return run(
        [](void* context, sqlite3* connection) { (*static_cast<Work*>(context))(connection); },
        &work, Access::WriteQuietly);
  }
  /// As write_quietly(), but gives up at once while another process writes.
  template <class Work>
  bool write_if_idle(Work work) {
    return run(
        [](void* context, sqlite3* connection) { (*static_cast<Work*>(context))(connection); },
        &work, Access::WriteIfIdle);
  }

 private:
  enum class Access { Read, Write, WriteQuietly, WriteIfIdle };
  using Call = void (*)(void* context, sqlite3* connection);
  friend void close_all_before_fork();
  friend void unlock_all_after_fork();

  bool run(Call call, void* context, Access access);
  bool run_once(Call call, void* context, Access access);
  bool is_usable(Access access);
  bool is_still_there() const;
  void open();
  void prepare_schema();
  void close();
  bool set_aside();
  void warn_once(std::string_view text);

  const std::string path_;
  const Description description_;
  const bool is_in_cache_;
  std::mutex mutex_;
  sqlite3* connection_ = nullptr;
  uint64_t file_ = 0;  // inode of what is open
  bool is_read_only_ = false;
  bool was_warned_ = false;
};

}  // namespace plugrad
