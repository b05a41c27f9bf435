// Data sets in host memory and their batches: plugrad.data.
#include "plugrad/data.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/function.h>

#include <filesystem>
#include <mutex>

#include "arguments.h"
#include "bind.h"
#include "docs.h"
#include "place.h"

namespace plugrad::python {

namespace {

/// Bytes of a bytes object, or of an array of uint8.
std::vector<uint8_t> bytes_of_object(nb::handle object, const char* what) {
  const nb::object view = nb::module_::import_("builtins").attr("memoryview")(object);
  const std::string format = nb::cast<std::string>(view.attr("format"));
  if (format != "B")
    throw nb::type_error(
        (std::string(what) + " are bytes (uint8), not \"" + format + "\"").c_str());
  const nb::bytes all = nb::cast<nb::bytes>(view.attr("tobytes")());
  const auto* const first = static_cast<const uint8_t*>(all.data());
  return {first, first + all.size()};
}

nb::object array_of_bytes(const std::vector<uint8_t>& bytes, const std::vector<int64_t>& shape) {
  const nb::object numpy = nb::module_::import_("numpy");
  const nb::bytes all(bytes.data(), bytes.size());
  return numpy.attr("frombuffer")(all, numpy.attr("uint8")).attr("reshape")(nb::cast(shape));
}

/// The batches of one loop; it shares the data set's storage.
struct BatchIterator {
  explicit BatchIterator(const data::Batches& given) : batches(given), at(batches) {}
  BatchIterator(const BatchIterator&) = delete;  // `at` points to `batches`
  BatchIterator& operator=(const BatchIterator&) = delete;

  std::mutex mutex;  // of threads that share the loop; taken without Python's lock
  data::Batches batches;
  data::Batches::Iterator at;
  bool is_first = true;
};

nb::object batch_object(const data::Batch& batch) {
  static const nb::handle type =
      nb::object(nb::module_::import_("plugrad.data").attr("Batch")).release();  // never freed
  return type(batch.x, batch.y);
}

nb::object next_batch(BatchIterator& self) {
  data::Batch batch;
  {
    const Released released;
    const std::lock_guard lock(self.mutex);
    if (!self.is_first && self.at != std::default_sentinel) ++self.at;
    self.is_first = false;
    if (self.at == std::default_sentinel) throw nb::stop_iteration();
    batch = *self.at;
  }
  return batch_object(batch);
}

void bind_batches(nb::module_& module) {
  nb::class_<BatchIterator>(module, "BatchIterator", "The batches of one loop.")
      .def(
          "__iter__", [](nb::handle self) { return self; },
          nb::sig("def __iter__(self) -> BatchIterator"))
      .def("__next__", next_batch, nb::sig("def __next__(self) -> Batch"));
  nb::class_<data::Batches>(module, "Batches",
                            "The batches of a data set, for any number of loops over them.")
      .def("__len__", &data::Batches::size)
      .def_prop_ro("batch_size", &data::Batches::batch_size, "Samples of a batch.")
      .def(
          "__iter__", [](const data::Batches& self) { return new BatchIterator(self); },
          nb::rv_policy::take_ownership, nb::sig("def __iter__(self) -> Iterator[Batch]"));
}

void bind_dataset(nb::module_& module) {
  nb::class_<data::Dataset> made(module, "Dataset", doc("Dataset"));
  made.def(
      "__init__",
      [](data::Dataset* self, nb::handle images, nb::handle labels,
         const std::vector<int64_t>& sample) {
        new (self) data::Dataset(bytes_of_object(images, "images"),
                                 bytes_of_object(labels, "labels"), sample);
      },
      "images"_a, "labels"_a, "sample"_a,
      nb::sig("def __init__(self, images: bytes | numpy.typing.NDArray[numpy.uint8], labels: bytes "
              "| numpy.typing.NDArray[numpy.uint8], sample: ShapeLike) -> None"),
      "images: bytes, or an array of uint8, the samples one after another\n"
      "labels: one byte each\n"
      "sample: (channels, height, width), the width innermost\n"
      "Errors: ValueError unless the number of values is the number of labels times the size of "
      "`sample`.");
  made.def("__len__", &data::Dataset::size);
  made.def_prop_ro("sample_shape", &data::Dataset::sample_shape,
                   nb::sig("def sample_shape(self, /) -> tuple[int, ...]"),
                   doc("Dataset::sample_shape"));
  made.def_prop_ro(
      "images",
      [](const data::Dataset& self) {
        std::vector<int64_t> shape = self.sample_shape();
        shape.insert(shape.begin(), self.size());
        return array_of_bytes(self.images(), shape);
      },
      nb::sig("def images(self, /) -> numpy.typing.NDArray[numpy.uint8]"),
      "All images as an array of uint8, copied.");
  made.def_prop_ro(
      "labels",
      [](const data::Dataset& self) { return array_of_bytes(self.labels(), {self.size()}); },
      nb::sig("def labels(self, /) -> numpy.typing.NDArray[numpy.uint8]"),
      "All labels as an array of uint8, copied.");
  made.def(
      "gather",
      [](const data::Dataset& self, const std::vector<int64_t>& samples) {
        data::Batch batch;
        {
          const Released released;
          batch = self.gather(samples);
        }
        return batch_object(batch);
      },
      "samples"_a, nb::sig("def gather(self, samples: Sequence[int]) -> Batch"),
      doc("Dataset::gather"));
  made.def(
      "batches",
      [](const data::Dataset& self, int64_t batch_size, bool shuffle, uint64_t seed, int64_t steps,
         bool keep_partial, int64_t rank, int64_t ranks) {
        return self.batches(batch_size, {shuffle, seed, steps, keep_partial, rank, ranks});
      },
      "batch_size"_a, "shuffle"_a = false, "seed"_a = 0, "steps"_a = 0, "keep_partial"_a = false,
      "rank"_a = 0, "ranks"_a = 1,
      "The batches of a pass, for a loop: `for x, y in set.batches(512, shuffle=True):`.\n"
      "shuffle: draw a new order for each pass over the data\n"
      "seed: of the orders; equal seeds give equal batches on every device\n"
      "steps: number of batches, over as many passes as needed; 0: one pass\n"
      "keep_partial: yield the smaller last batch of a pass too\n"
      "rank, ranks: yield rank's part of each batch; the parts of all ranks, in order, are the "
      "batch of one process\n"
      "Errors: ValueError unless 1 <= batch_size <= len(self), ranks <= batch_size and 0 <= rank < "
      "ranks.");
}

using Say = std::function<void(std::string)>;

/// Binds a data set's function: mnist(folder=None, download=True, say=None).
void def_split(nb::module_& module, const char* name,
               data::Split (*load)(const data::SourceOptions&), const char* docstring) {
  module.def(
      name,
      [load](const std::optional<std::filesystem::path>& folder, bool download,
             const std::optional<Say>& say) {
        data::SourceOptions options;
        if (folder) options.folder = folder->string();
        options.download = download;
        if (say) options.say = [say](std::string_view line) { (*say)(std::string(line)); };
        std::optional<data::Split> split;
        {
          const Released released;
          split = load(options);
        }
        return nb::module_::import_("plugrad.data").attr("Split")(split->train, split->test);
      },
      "folder"_a = nb::none(), "download"_a = true, "say"_a = nb::none(),
      nb::sig(("def " + std::string(name) +
               "(folder: str | os.PathLike[str] | None = None, download: bool = True, say: "
               "Callable[[str], None] | None = None) -> Split")
                  .c_str()),
      docstring);
}

}  // namespace

void bind_data(nb::module_& module) {
  nb::module_ made = module.def_submodule("_data", "Data sets and their batches.");
  bind_batches(made);
  bind_dataset(made);
  def_split(made, "mnist", &data::mnist, doc("mnist"));
  def_split(made, "fashion_mnist", &data::fashion_mnist, doc("fashion_mnist"));
  def_split(made, "cifar10", &data::cifar10, doc("cifar10"));
  made.def("mnist_cache_folder", &data::mnist_cache_folder, doc("mnist_cache_folder"));
}

}  // namespace plugrad::python
