"""The examples of blasx.nn, shortened: they run, learn, and say what they found."""

import gzip
import re

import numpy as np
import pytest

from blasx.nn.examples import __main__, dates, digits, fibonacci, language
from tests import gradients


def run(capsys, *arguments):
    """The lines that an example prints."""
    assert __main__.main([*arguments, "--quiet"]) == 0
    return capsys.readouterr().out.strip().splitlines()


def test_names(capsys):
    assert __main__.main([]) == 2 and __main__.main(["--help"]) == 0
    listed = capsys.readouterr().out
    assert all(f"    {name} " in listed for name in __main__.NAMES)


def test_mlp_on_digits(capsys):
    pytest.importorskip("sklearn")
    lines = run(capsys, "digits-mlp", "--folds", "1", "--epochs", "8")
    assert float(re.search(r"mean test accuracy (\S+) %", lines[-1])[1]) > 85


@pytest.mark.parametrize("name", ["digits-cnn", "lenet"])
def test_convolutions_on_mnist_files(name, capsys, tmp_path):
    """On files in MNIST's format: of two kinds of pictures, bright above and below."""
    labels = np.arange(96, dtype="u1") % 2
    images = np.random.default_rng(0).integers(0, 50, (96, 28, 28)).astype("u1")
    for image, label in zip(images, labels):
        image[14 * label:14 * label + 14] += 200
    for kind, packed in (("train", True), ("t10k", False)):
        for x, what in ((images, "images-idx3"), (labels, "labels-idx1")):
            data = bytes([0, 0, 8, x.ndim]) + np.array(x.shape, ">i4").tobytes() + x.tobytes()
            path = tmp_path / f"{kind}-{what}-ubyte{'.gz' * packed}"
            path.write_bytes(gzip.compress(data) if packed else data)
    lines = run(capsys, name, "--mnist", str(tmp_path), "--epochs", "12")
    assert "mean test accuracy 100.00 %" in lines[-1]
    path.write_bytes(data[:-1])
    with pytest.raises(ValueError, match="t10k-labels.*not a whole IDX file"):
        digits.mnist(tmp_path, 28)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="no t10k-labels"):
        digits.mnist(tmp_path, 28)


def test_folds_are_stratified():
    pytest.importorskip("sklearn")
    seen = 0
    for x, y, x_test, y_test in digits.folds(28):
        counts = np.bincount(y_test)
        assert len(x) + len(x_test) == 1797 and x.shape[1:] == (28, 28, 1)
        assert (abs(counts / len(y_test) - np.bincount(y) / len(y)) < 0.005).all()
        seen += len(y_test)
    assert seen == 1797 and 0 <= x.min() and x.max() <= 1


def test_fibonacci(capsys):
    lines = run(capsys, "fibonacci", "--epochs", "12")
    assert float(re.search(r"off by (\S+) %", lines[-1])[1]) < 10
    f = fibonacci.sequences([[1, 1]])[0, :, 0] * 987
    np.testing.assert_allclose(f[:8], [1, 1, 2, 3, 5, 8, 13, 21], rtol=1e-6)


@pytest.mark.parametrize("name", ["char-lstm", "transformer-lm"])
def test_language_models(name, capsys):
    lines = run(capsys, name, "--characters", "12000", "--epochs", "1", "--batch", "8",
                "--sample", "40")
    loss = float(re.search(r"test loss (\S+) nats", lines[-1])[1])
    assert loss < np.log(len(language.CHARACTERS)) - 1


@pytest.mark.parametrize("model", [language.CharacterLSTM(16),
                                   language.CharacterTransformer(16, 2, 2)])
def test_sampling_follows_the_model(model):
    """Character by character from a state or a cache, what the model says of the whole."""
    text = model.scores([5, 6, 7], 40, lambda scores: int(scores.argmax()))
    whole = model.forward(np.array([text]))[0].argmax(-1)
    assert text[3:] == whole[2:-1].tolist()


def test_dates(capsys):
    lines = run(capsys, "dates", "--pairs", "300", "--epochs", "1")
    assert re.fullmatch(r"dates: \S+ % of 500 dates right, in \d+ s", lines[-1])


class OfLetters(dates.Translator):
    """Its gradients alone: a batch is no array."""

    def forward(self, x):
        return super().forward(self.batch)

    def backward(self, dy):
        super().backward(dy)
        return None


def test_gradients_of_the_translator():
    (source, before, mask), _ = dates.data(2, 0)[0]
    model = OfLetters(3, 2, dtype="f8", seed=1)
    model.batch = source[:, :18], before[:, :4], mask[:, :18]
    gradients.check(model, np.array([0]))
