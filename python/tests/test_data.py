"""Data sets, batches and progress bars."""
import gzip
import sys
import threading
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import plugrad as pg
from plugrad import data, nn, optim

IMAGES = np.arange(7 * 2 * 3, dtype=np.uint8).reshape(7, 2, 3)
LABELS = np.arange(7, dtype=np.uint8)


def dataset() -> data.Dataset:
    return data.Dataset(IMAGES, LABELS, (1, 2, 3))


def test_batches_are_images_in_0_to_1_and_labels():
    batch = dataset().gather([2, 5])
    assert isinstance(batch, data.Batch)
    assert batch.x.shape == (2, 1, 2, 3) and batch.x.dtype == pg.float32
    np.testing.assert_allclose(batch.x.numpy()[:, 0], IMAGES[[2, 5]] / np.float32(255), 1e-6)
    assert batch.y.dtype == pg.int32 and batch.y.tolist() == [2, 5]


def test_the_accuracy_of_fewer_samples_than_a_batch():
    def label(x):
        return (x[:, 0, 0, 0] * 255 / 6).round().cast("int32").one_hot(7)

    for sizes in ({}, {"batch_size": 3}, {"batch_size": 7}):
        assert nn.accuracy(label, dataset(), **sizes) == 1


def test_a_set_has_its_sizes_and_arrays():
    made = dataset()
    assert len(made) == 7 and made.sample_shape == (1, 2, 3)
    assert np.array_equal(made.images[:, 0], IMAGES) and np.array_equal(made.labels, LABELS)
    assert data.Dataset(IMAGES.tobytes(), LABELS.tobytes(), (1, 2, 3)).labels.tolist() == \
        LABELS.tolist()


def test_a_pass_leaves_out_or_keeps_the_last_batch():
    batches = dataset().batches(3)
    assert len(batches) == 2 and batches.batch_size == 3
    assert [y.tolist() for _, y in batches] == [[0, 1, 2], [3, 4, 5]]
    assert [y.tolist() for _, y in batches] == [[0, 1, 2], [3, 4, 5]]  # again
    kept = dataset().batches(3, keep_partial=True)
    assert [y.tolist() for _, y in kept] == [[0, 1, 2], [3, 4, 5], [6]] and len(kept) == 3


def test_orders_are_drawn_by_seed_for_each_pass():
    def orders(seed):
        batches = dataset().batches(7, shuffle=True, seed=seed, steps=2)
        return [y.tolist() for _, y in batches]

    first, second = orders(1)
    assert sorted(first) == sorted(second) == LABELS.tolist() and first != second
    assert orders(1) == [first, second] and orders(2) != [first, second]


def test_the_parts_of_all_ranks_are_the_batch_of_one():
    whole = [y.tolist() for _, y in dataset().batches(5, shuffle=True, seed=2, steps=3)]
    parts = [[y.tolist() for _, y in dataset().batches(5, shuffle=True, seed=2, steps=3, rank=rank,
                                                       ranks=2)] for rank in range(2)]
    assert [len(y) for y in parts[0]] == [2, 2, 2] and [len(y) for y in parts[1]] == [3, 3, 3]
    assert [a + b for a, b in zip(*parts)] == whole


def test_an_iteration_outlives_its_set_and_may_stop_early():
    iterator = iter(dataset().batches(2))
    assert iter(iterator) is iterator
    assert next(iterator).y.tolist() == [0, 1]
    assert [y.tolist() for _, y in iterator] == [[2, 3], [4, 5]]
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(iterator)


def test_threads_may_share_an_iterator():
    # Each step draws an order of all samples, which takes so long that the threads meet in it.
    labels = (np.arange(100_000) % 256).astype(np.uint8)
    batches = data.Dataset(labels, labels, (1, 1, 1)).batches(len(labels), shuffle=True, steps=80)
    iterator, start = iter(batches), threading.Barrier(4)

    def take(_):
        start.wait()
        return [y.numpy() for _, y in iterator]

    with ThreadPoolExecutor(4) as pool:
        taken = sum(pool.map(take, range(4)), [])
    assert len(taken) == 80
    for each in taken:  # every sample once
        assert np.array_equal(np.bincount(each), np.bincount(labels))
    assert len({each.tobytes() for each in taken}) == 80


@pytest.mark.parametrize(("make", "error"), [
    (lambda: data.Dataset(IMAGES, LABELS[:3], (1, 2, 3)), ValueError),
    (lambda: data.Dataset(IMAGES, LABELS, (2, 3)), ValueError),
    (lambda: data.Dataset(IMAGES.astype(np.float32), LABELS, (1, 2, 3)), TypeError),
    (lambda: data.Dataset("images", LABELS, (1, 2, 3)), TypeError),
    (lambda: data.Dataset(None, LABELS, (1, 2, 3)), TypeError),
    (lambda: dataset().batches(0), ValueError),
    (lambda: dataset().batches(8), ValueError),
    (lambda: dataset().batches(2.5), TypeError),
    (lambda: dataset().batches(2, seed=-1), TypeError),
    (lambda: dataset().batches(2, steps=-1), ValueError),
    (lambda: dataset().gather([7]), (IndexError, ValueError)),
    (lambda: data.mnist("/no/such/folder", download=False), ValueError)])
def test_misuses_have_pythons_classes(make, error):
    with pytest.raises(error):
        make()


def write_idx(path, array: np.ndarray) -> None:
    header = bytes([0, 0, 8, array.ndim]) + b"".join(
        size.to_bytes(4, "big") for size in array.shape)
    path.write_bytes(gzip.compress(header + array.tobytes()))


def test_damaged_files_are_named(tmp_path):
    for name in ("train-images-idx3", "t10k-images-idx3"):
        write_idx(tmp_path / f"{name}-ubyte.gz", np.zeros((2, 28, 28), np.uint8))
    for name in ("train-labels-idx1", "t10k-labels-idx1"):
        write_idx(tmp_path / f"{name}-ubyte.gz", np.zeros(2, np.uint8))
    with pytest.raises(ValueError, match="idx"):
        data.mnist(tmp_path, download=False, say=lambda line: None)


# ---- Progress ----


def test_progress_passes_items_and_shows_their_number(capfd):
    items = list(pg.progress([10, 20, 30], label="train", unit="items"))
    assert items == [10, 20, 30]
    text = capfd.readouterr().err
    assert "train" in text and "3/3" in text and "items/s" in text


def test_progress_ends_its_line_when_a_loop_stops(capfd):
    loop = pg.progress(range(100))
    for i in loop:
        loop.note(f"loss {i}.5")
        if i == 3:
            break
    assert len(loop) == 100
    assert capfd.readouterr().err.endswith("\n")


def test_progress_without_a_length_or_quiet_shows_nothing(capfd):
    assert list(pg.progress(iter([1, 2]))) == list(pg.progress([1, 2], quiet=True)) == [1, 2]
    assert capfd.readouterr().err == ""
    assert list(pg.progress(iter([1, 2]), total=2)) == [1, 2]
    assert "2/2" in capfd.readouterr().err


@pytest.fixture
def pages(monkeypatch):
    """What a notebook's page shows, one after the other."""
    pages = []

    class Shell:
        pass

    Shell.__name__ = "ZMQInteractiveShell"

    class Handle:
        def update(self, page):
            pages.append(page)

    ipython, shown = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = Shell
    shown.HTML = str

    def display(page, display_id):
        assert display_id
        pages.append(page)
        return Handle()

    shown.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    return pages


def test_progress_in_a_notebook_is_an_element_of_the_page(pages, capfd):
    assert list(pg.progress([1, 2], label="<b>", unit="items")) == [1, 2]
    assert pages[0].startswith("&lt;b&gt; <progress value='0' max='2'>")
    assert "2/2" in pages[-1] and "items/s" in pages[-1]
    assert capfd.readouterr().err == ""


def test_a_training_in_a_notebook_is_an_element_of_the_page(pages, capfd, tmp_path):
    with optim.Progress(2, title="<tiny>", units_a_step=8, plot=tmp_path / "train.svg") as progress:
        assert pages == [pages[0]] and pages[0].startswith("&lt;tiny&gt; <progress value='0' max='2'>")
        progress.update(0.5)
        progress.update()
        assert "2/2" in pages[-1] and "loss 0.5000" in pages[-1] and "images/s" in pages[-1]
        count = len(pages)
    assert len(pages) == count + 1 and "tiny" in (tmp_path / "train.svg").read_text()
    for quiet in (optim.Progress(2, quiet=True), optim.Progress(0)):
        quiet.update(0.5)
        quiet.close()
    with pytest.raises(ValueError):
        optim.Progress(2, units_a_step=0)
    assert len(pages) == count + 1 and capfd.readouterr().err == ""


def test_bars_are_closed_by_their_scope(capfd):
    with pg.ProgressBar(4, label="load") as bar:
        bar.update(4, note="loss 0.5")
    assert "loss 0.5" in capfd.readouterr().err
    with pytest.raises(ValueError, match="closed"):
        bar.update(1)


def test_a_plot_is_written(tmp_path):
    path = tmp_path / "train.svg"
    with optim.Progress(3, title="tiny", plot=path, quiet=True) as progress:
        for loss in (3.0, float("nan"), 1.0):
            progress.update(loss, accuracy=0.5)
        progress.update()
        progress.add_test_accuracy(0.75)
    text = path.read_text()
    assert text.lstrip().startswith("<") and "tiny" in text
    with pytest.raises(ValueError):
        optim.Progress(3, plot=tmp_path / "train.txt")
    with pytest.raises(ValueError):
        optim.Progress(-1)
