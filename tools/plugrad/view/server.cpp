#include "view/server.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <csignal>
#include <memory>

#include "base/check.h"

namespace plugrad::tools {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;

constexpr auto kTimeout = std::chrono::seconds(30);  // for a request, and for its response

struct Site {
  const std::string& page;
  std::string path;      // "/TOKEN/"
  std::string hosts[2];  // values of the header Host
};

// One request and its response.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, const Site& site) : stream_(std::move(socket)), site_(site) {}

  void start() {
    stream_.expires_after(kTimeout);
    parser_.body_limit(0);
    http::async_read(stream_, buffer_, parser_,
                     [self = shared_from_this()](ErrorCode error, size_t) {
                       if (!error) self->answer();
                     });
  }

 private:
  http::status judge() const {
    const auto& request = parser_.get();
    const auto host = request[http::field::host];
    if (host != site_.hosts[0] && host != site_.hosts[1]) return http::status::forbidden;
    if (request.method() != http::verb::get) return http::status::forbidden;
    return request.target() == site_.path ? http::status::ok : http::status::not_found;
  }

  void answer() {
    const http::status status = judge();
    response_.version(11);
    response_.result(status);
    response_.keep_alive(false);
    response_.set(http::field::cache_control, "no-store");
    response_.set("Cross-Origin-Resource-Policy", "same-origin");
    response_.set("Referrer-Policy", "no-referrer");
    response_.set("X-Content-Type-Options", "nosniff");
    response_.set("X-Frame-Options", "DENY");
    if (status == http::status::ok) {
      response_.set(http::field::content_type, "text/html; charset=utf-8");
      response_.body() = {site_.page.data(), site_.page.size()};
    }
    response_.prepare_payload();
    stream_.expires_after(kTimeout);
    http::async_write(stream_, response_, [self = shared_from_this()](ErrorCode, size_t) {
      ErrorCode ignored;
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    });
  }

  beast::tcp_stream stream_;
  const Site& site_;
  beast::flat_buffer buffer_;
  http::request_parser<http::empty_body> parser_;
  http::response<http::span_body<const char>> response_;
};

void accept_next(tcp::acceptor& acceptor, const Site& site) {
  acceptor.async_accept([&acceptor, &site](ErrorCode error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (!error) std::make_shared<Connection>(std::move(socket), site)->start();
    accept_next(acceptor, site);
  });
}

std::string random_token() {
  std::array<unsigned char, 16> bytes{};
  ensure(getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

void listen(tcp::acceptor& acceptor, uint16_t port) {
  try {
    acceptor.open(tcp::v4());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind({asio::ip::address_v4::loopback(), port});
    acceptor.listen();
  } catch (const boost::system::system_error& error) {
    fail(ErrorKind::User,
         "[view] 127.0.0.1:{} cannot be listened on: {}; name another port with --port, or none "
         "for any free one",
         port, error.code().message());
  }
}

}  // namespace

void serve_page(const std::string& page, uint16_t port,
                const std::function<void(const std::string& address)>& ready) {
  asio::io_context context(1);
  tcp::acceptor acceptor(context);
  listen(acceptor, port);
  const uint16_t actual = acceptor.local_endpoint().port();
  const Site site{page,
                  "/" + random_token() + "/",
                  {fmt::format("127.0.0.1:{}", actual), fmt::format("localhost:{}", actual)}};
  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&](ErrorCode, int) { context.stop(); });
  accept_next(acceptor, site);
  ready(fmt::format("http://{}{}", site.hosts[0], site.path));
  context.run();
}

}  // namespace plugrad::tools
