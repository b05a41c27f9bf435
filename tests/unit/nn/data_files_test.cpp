#include "nn/data/data_files.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "base/settings.h"
#include "io/fetch.h"
#include "nn/data/image_sets.h"
#include "plugrad/data.h"
#include "scratch_folder.h"

using namespace plugrad;
using namespace plugrad::nn;
using testing::HasSubstr;

namespace {

const std::string kThree(
    "\0\0\x08\x01\0\0\0\x03"
    "xyz",
    11);

// Two idx files of three bytes.
struct TwoFiles {
  std::vector<IdxArray> arrays = std::vector<IdxArray>(2);
  std::vector<IdxArray> load(const DataPlaces& places, const Say& say,
                             std::vector<std::string> mirrors = {}) {
    DataFiles set{"mnist", {}, std::move(mirrors)};
    for (size_t i = 0; i < 2; ++i) {
      const std::string name = i == 0 ? "first" : "second";
      set.files.push_back({name + ".gz", {name}, [this, i](const auto& path) {
                             arrays[i] = read_idx(path, {{3}, ""});
                           }});
    }
    load_files(set, places, say);
    return arrays;
  }
};

struct Said {
  std::string text;
  Say say() {
    return [this](std::string_view line) { text.append(line).append("\n"); };
  }
};

}  // namespace

// Serves one request on a free port: bytes without an announced size, until the client disconnects.
class EndlessServer {
 public:
  EndlessServer() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(socket_, 1) != 0 ||
        ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw std::runtime_error("no socket");
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~EndlessServer() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/endless"; }
  std::size_t sent_bytes() const { return sent_bytes_; }

 private:
  void serve() {
    const int caller = ::accept(socket_, nullptr, nullptr);
    if (caller < 0) return;
    const std::string head = "HTTP/1.0 200 OK\r\n\r\n", part(1 << 16, 'x');
    ::send(caller, head.data(), head.size(), MSG_NOSIGNAL);
    for (ssize_t sent = 0; sent >= 0 && sent_bytes_ < (64u << 20); sent_bytes_ += part.size())
      sent = ::send(caller, part.data(), part.size(), MSG_NOSIGNAL);
    ::close(caller);
  }

  int socket_;
  uint16_t port_ = 0;
  std::atomic<std::size_t> sent_bytes_ = 0;
  std::thread thread_;
};

TEST(Fetch, MoreThanTheLimitIsRefusedAndNothingIsLeft) {
  const ScratchFolder folder;
  EndlessServer server;
  const std::string failure =
      io::fetch(server.url(), folder.path / "file", {.size_bytes = 1 << 20});
  EXPECT_THAT(failure, HasSubstr("more than 1048576 bytes came"));
  EXPECT_EQ(folder.file_count(), 0u);
  EXPECT_LT(server.sent_bytes(), 64u << 20) << "all of it was taken";
}

TEST(DataFiles, AGivenFolderOrItsMnistFolderIsRead) {
  ScratchFolder folder;
  Said said;
  folder.write("first", kThree);
  folder.write("second", kThree);
  EXPECT_EQ(TwoFiles().load({.given = folder.path}, said.say()).size(), 2u);
  std::filesystem::create_directory(folder.path / "mnist");
  for (const char* name : {"first", "second"})
    std::filesystem::rename(folder.path / name, folder.path / "mnist" / name);
  EXPECT_EQ(TwoFiles().load({.data_dir = folder.path}, said.say())[1].values[2], 'z');
  EXPECT_THAT(said.text, HasSubstr("read from"));
}

TEST(DataFiles, AGivenFolderWithoutThemIsAnErrorThatSaysWhatToDo) {
  ScratchFolder folder;
  Said said;
  EXPECT_THAT(user_error([&] { TwoFiles().load({.given = folder.path}, said.say()); }),
              HasSubstr("holds first.gz; name a folder with the files"));
  folder.write("first", kThree);
  EXPECT_THAT(user_error([&] { TwoFiles().load({.given = folder.path}, said.say()); }),
              HasSubstr("lacks second.gz"));
}

TEST(DataFiles, WithoutAnySourceEveryPlaceIsNamed) {
  ScratchFolder folder;
  Said said;
  DataPlaces places{.data_dir = folder.path / "none", .cache = folder.path};
  std::string message =
      user_error([&] { TwoFiles().load(places, said.say(), {"http://127.0.0.1:1/"}); });
  EXPECT_THAT(message, HasSubstr("http://127.0.0.1:1/first.gz"));
  EXPECT_THAT(message, HasSubstr("--data or PLUGRAD_DATA"));
  EXPECT_THAT(said.text, HasSubstr("PLUGRAD_DATA is"));
  EXPECT_EQ(folder.file_count(), 0u) << "a failed download leaves nothing";
}

TEST(DataFiles, ADamagedCachedFileIsRemovedNotTrusted) {
  ScratchFolder folder;
  Said said;
  folder.write("first.gz", "damaged");
  folder.write("second", kThree);
  user_error([&] { TwoFiles().load({.cache = folder.path}, said.say()); });
  EXPECT_THAT(said.text, HasSubstr("first.gz: truncated"));
  EXPECT_FALSE(std::filesystem::exists(folder.path / "first.gz"));
  folder.write("first.gz", kThree);
  EXPECT_EQ(TwoFiles().load({.cache = folder.path}, said.say()).size(), 2u);
}

TEST(DataFiles, TheRealFilesHaveTheChecksumsOfThisTable) {
  if (settings().data_dir.empty()) GTEST_SKIP() << "PLUGRAD_DATA is not set";
  Said said;
  auto arrays = load_idx_set(mnist_set(), {.data_dir = settings().data_dir}, said.say());
  ASSERT_EQ(arrays.size(), 4u);
  EXPECT_EQ(arrays[0].values.size(), 60000u * 784u);
  EXPECT_EQ(arrays[1].values[0], 5);
  EXPECT_EQ(arrays[3].values[0], 7);
}

TEST(DataFiles, TheSetsOwnFolderComesFirst) {
  ScratchFolder folder;
  Said said;
  std::filesystem::create_directory(folder.path / "mnist");
  for (const char* name : {"first", "second"}) {
    folder.write(name, "of another set");
    folder.write(std::string("mnist/") + name, kThree);
  }
  EXPECT_EQ(TwoFiles().load({.data_dir = folder.path}, said.say())[0].values[0], 'x');
}

TEST(DataFiles, APackedFileHasAChecksumOfItsOwn) {
  ScratchFolder folder;
  const auto path = folder.write("plain", kThree);
  EXPECT_EQ(read_idx(path, {{3}, "", "not compared: the file is not packed"}).values.size(), 3u);
  const std::string packed(
      "\x1f\x8b\x08\0\0\0\0\0\0\x03\x63\x60\xe0\x60\x64\x60\x60\x60\xae\xa8\xac\x02\0", 23);
  EXPECT_THAT(user_error([&] { read_idx(folder.write("packed.gz", packed), {{3}, "", "00"}); }),
              HasSubstr("packed.gz"));
}

TEST(DataFiles, SetsThatAreNowhereSayWhereTheyWereLookedFor) {
  ScratchFolder folder;
  data::SourceOptions options{.folder = folder.path, .download = false};
  EXPECT_THAT(user_error([&] { data::fashion_mnist(options); }),
              HasSubstr("[fashion-mnist] neither " + folder.path.string()));
  EXPECT_THAT(user_error([&] { data::cifar10(options); }),
              HasSubstr("its cifar-10/ holds cifar-10-binary.tar.gz"));
}
