// Data sets and their batches.
#include "plugrad/data.h"

#include <numeric>
#include <random>

#include "base/check.h"

namespace plugrad::data {

struct Dataset::Storage {
  std::vector<uint8_t> images, labels;
  Shape sample;
};

Dataset::Dataset(std::vector<uint8_t> images, std::vector<uint8_t> labels, int64_t height,
                 int64_t width)
    : Dataset(std::move(images), std::move(labels), Shape{1, height, width}) {}

Dataset::Dataset(std::vector<uint8_t> images, std::vector<uint8_t> labels, const Shape& sample) {
  require(sample.size() == 3 && sample[0] > 0 && sample[1] > 0 && sample[2] > 0,
          "[Dataset] samples of shape {}; give (channels, height, width)", to_string(sample));
  const auto values = static_cast<size_t>(sample[0] * sample[1] * sample[2]);
  require(images.size() == labels.size() * values,
          "[Dataset] {} values are not {} images of {} x {} x {}", images.size(), labels.size(),
          sample[0], sample[1], sample[2]);
  storage_ = std::make_shared<Storage>(Storage{std::move(images), std::move(labels), sample});
}

const Shape& Dataset::sample_shape() const {
  return storage_->sample;
}
int64_t Dataset::size() const {
  return static_cast<int64_t>(storage_->labels.size());
}
const std::vector<uint8_t>& Dataset::images() const {
  return storage_->images;
}
const std::vector<uint8_t>& Dataset::labels() const {
  return storage_->labels;
}

Batch Dataset::gather(const std::vector<int64_t>& samples) const {
  const Shape& sample = storage_->sample;
  const auto pixels = static_cast<size_t>(sample[0] * sample[1] * sample[2]);
  std::vector<float> x(samples.size() * pixels);
  std::vector<int32_t> y(samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    require(samples[i] >= 0 && samples[i] < size(), "[Dataset] there is no sample {} of {}",
            samples[i], size());
    const uint8_t* image = &storage_->images[static_cast<size_t>(samples[i]) * pixels];
    for (size_t k = 0; k < pixels; ++k)
      x[i * pixels + k] = static_cast<float>(image[k]) * (1.0f / 255.0f);
    y[i] = storage_->labels[static_cast<size_t>(samples[i])];
  }
  auto count = static_cast<int64_t>(samples.size());
  return {Tensor::from(x, Shape{count, sample[0], sample[1], sample[2]}), Tensor::from(y)};
}

Batches Dataset::batches(int64_t batch_size, const BatchOptions& options) const {
  return Batches(*this, batch_size, options);
}

Batches::Batches(Dataset set, int64_t batch_size, const BatchOptions& options)
    : set_(std::move(set)), batch_size_(batch_size), options_(options) {
  require(batch_size >= 1 && batch_size <= set_.size(),
          "[batches] a batch of {} of {} samples; give 1 to {}", batch_size, set_.size(),
          set_.size());
  require(options.steps >= 0, "[batches] {} steps; give 0 for one pass, or more", options.steps);
  require(options.ranks >= 1 && options.ranks <= batch_size,
          "[batches] a batch of {} samples for {} ranks; give each rank 1 or more", batch_size,
          options.ranks);
  require(options.rank >= 0 && options.rank < options.ranks,
          "[batches] there is no rank {} of {}; they count from 0", options.rank, options.ranks);
}

int64_t Batches::batches_per_pass() const {
  int64_t whole = set_.size() / batch_size_;
  return whole + (options_.keep_partial && set_.size() % batch_size_ != 0);
}

int64_t Batches::size() const {
  return options_.steps > 0 ? options_.steps : batches_per_pass();
}

Batches::Iterator::Iterator(const Batches& batches) : batches_(&batches) {
  start_pass();
}

void Batches::Iterator::start_pass() {
  const BatchOptions& options = batches_->options_;
  order_.resize(static_cast<size_t>(batches_->set_.size()));
  std::iota(order_.begin(), order_.end(), int64_t{0});
  if (!options.shuffle) return;
  // std::shuffle differs between standard libraries; the generator does not.
  std::mt19937_64 random(options.seed + 0x9e3779b97f4a7c15u * static_cast<uint64_t>(pass_));
  for (size_t i = order_.size(); i > 1; --i) {
    __extension__ using Uint128 = unsigned __int128;
    auto j = static_cast<size_t>(static_cast<Uint128>(random()) * i >> 64);
    std::swap(order_[i - 1], order_[j]);
  }
}

Batch Batches::Iterator::operator*() const {
  const int64_t begin = within_pass_ * batches_->batch_size_;
  const int64_t count =
      std::min(batches_->batch_size_, static_cast<int64_t>(order_.size()) - begin);
  // Part i of n begins at count * i / n, as of a tensor that is cut over a mesh.
  const auto [rank, ranks] = std::pair(batches_->options_.rank, batches_->options_.ranks);
  const auto first = order_.begin() + begin;
  return batches_->set_.gather({first + count * rank / ranks, first + count * (rank + 1) / ranks});
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

}  // namespace plugrad::data
