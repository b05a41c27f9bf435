// Data sets and their batches.
#include "plugrad/data.h"

#include <fmt/format.h>

#include <numeric>
#include <random>

#include "base/check.h"
#include "base/log.h"
#include "base/settings.h"
#include "nn/mnist_files.h"

namespace plugrad::data {

struct Dataset::Storage {
  std::vector<uint8_t> images, labels;
  int64_t height, width;
};

Dataset::Dataset(std::vector<uint8_t> images, std::vector<uint8_t> labels, int64_t height, int64_t width) {
  require(height > 0 && width > 0 && images.size() == labels.size() * static_cast<size_t>(height * width),
          "[Dataset] {} values are not {} images of {} x {}", images.size(), labels.size(), height, width);
  storage_ = std::make_shared<Storage>(Storage{std::move(images), std::move(labels), height, width});
}

int64_t Dataset::size() const { return static_cast<int64_t>(storage_->labels.size()); }
const std::vector<uint8_t>& Dataset::images() const { return storage_->images; }
const std::vector<uint8_t>& Dataset::labels() const { return storage_->labels; }

Batch Dataset::gather(const std::vector<int64_t>& samples) const {
  auto pixels = static_cast<size_t>(storage_->height * storage_->width);
  std::vector<float> x(samples.size() * pixels);
  std::vector<int32_t> y(samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    require(samples[i] >= 0 && samples[i] < size(), "[Dataset] there is no sample {} of {}", samples[i], size());
    const uint8_t* image = &storage_->images[static_cast<size_t>(samples[i]) * pixels];
    for (size_t k = 0; k < pixels; ++k) x[i * pixels + k] = static_cast<float>(image[k]) * (1.0f / 255.0f);
    y[i] = storage_->labels[static_cast<size_t>(samples[i])];
  }
  auto count = static_cast<int64_t>(samples.size());
  return {Tensor::from(x, Shape{count, 1, storage_->height, storage_->width}), Tensor::from(y)};
}

Batches Dataset::batches(int64_t batch_size, const BatchOptions& options) const {
  return Batches(*this, batch_size, options);
}

Batches::Batches(Dataset set, int64_t batch_size, const BatchOptions& options)
    : set_(std::move(set)), batch_size_(batch_size), options_(options) {
  require(batch_size >= 1 && batch_size <= set_.size(), "[batches] a batch of {} of {} samples; give 1 to {}",
          batch_size, set_.size(), set_.size());
  require(options.steps >= 0, "[batches] {} steps; give 0 for one pass, or more", options.steps);
}

int64_t Batches::batches_per_pass() const {
  int64_t whole = set_.size() / batch_size_;
  return whole + (options_.keep_partial && set_.size() % batch_size_ != 0);
}

int64_t Batches::size() const { return options_.steps > 0 ? options_.steps : batches_per_pass(); }

Batches::Iterator::Iterator(const Batches& batches) : batches_(&batches) { start_pass(); }

void Batches::Iterator::start_pass() {
  const BatchOptions& options = batches_->options_;
  order_.resize(static_cast<size_t>(batches_->set_.size()));
  std::iota(order_.begin(), order_.end(), int64_t{0});
  if (!options.shuffle) return;
  // std::shuffle differs between standard libraries; the generator does not.
  std::mt19937_64 random(options.seed + 0x9e3779b97f4a7c15u * static_cast<uint64_t>(pass_));
  for (size_t i = order_.size(); i > 1; --i) {
    auto j = static_cast<size_t>(static_cast<unsigned __int128>(random()) * i >> 64);
    std::swap(order_[i - 1], order_[j]);
  }
}

Batch Batches::Iterator::operator*() const {
  auto begin = static_cast<size_t>(within_pass_ * batches_->batch_size_);
  size_t end = std::min(begin + static_cast<size_t>(batches_->batch_size_), order_.size());
  return batches_->set_.gather({order_.begin() + static_cast<std::ptrdiff_t>(begin),
                                order_.begin() + static_cast<std::ptrdiff_t>(end)});
}

Batches::Iterator& Batches::Iterator::operator++() {
  ++step_;
  if (++within_pass_ == batches_->batches_per_pass()) {
    within_pass_ = 0;
    ++pass_;
    start_pass();
  }
  return *this;
}

Mnist mnist(const SourceOptions& options) {
  nn::MnistSources sources{.given = options.folder, .data_dir = settings().data_dir};
  sources.cache = nn::mnist_cache_folder();
  if (options.download) sources.mirrors = nn::mnist_mirrors();
  nn::Say say = options.say ? nn::Say(options.say) : [](std::string_view line) { fmt::print(stderr, "{}\n", line); };
  std::vector<nn::IdxArray> arrays = nn::load_mnist(nn::mnist_files(), sources, say);
  return {Dataset(std::move(arrays[0].values), std::move(arrays[1].values), 28, 28),
          Dataset(std::move(arrays[2].values), std::move(arrays[3].values), 28, 28)};
}

std::string mnist_cache_folder() { return nn::mnist_cache_folder().string(); }

}  // namespace plugrad::data
