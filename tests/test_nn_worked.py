"""Worked examples: an LSTM's two steps forward and back; convolution, ReLU, overlapping pooling and
softmax.

The LSTM was worked by hand: what is printed there follows, to all five decimals, from the rounded
numbers printed before it, and not from the exact ones (`test_the_example_is_hand_arithmetic`). So
its last digits are up to two units off those of double precision, and ours are held to that.
"""

import numpy as np

from blasx import nn
from blasx.nn.activations import softmax

# One unit; the columns are the input activation a, and the gates i, f, o.
W = np.array([[0.45, 0.95, 0.7, 0.6], [0.25, 0.8, 0.45, 0.4]])
U = np.array([[0.15, 0.8, 0.1, 0.25]])
B = np.array([0.2, 0.65, 0.15, 0.1])
OURS = [1, 2, 3, 0]  # i f o and then the input activation, as LSTMCell has them


def lstm():
    layer = nn.LSTM(2, 1, dtype="f8")
    cell = layer.cells[0]
    cell.W.value, cell.U.value, cell.b.value = W[:, OURS], U[:, OURS], B[OURS]
    return layer, cell


def printed(x, digits, *values):
    """That x is the example's number, but for two units of the last digit that it prints."""
    np.testing.assert_allclose(np.ravel(x), np.ravel(values), rtol=0, atol=2.2 * 10.0**-digits)


def test_the_example_is_hand_arithmetic():
    """dW, dU and db, to all digits, from dz and out as they are printed."""
    x, out0 = np.array([[1, 2], [0.5, 3]]), .53631
    dz = np.array([[-.01703, -.00165, 0, .00176], [-.01938, -.00112, -.00631, -.05538]])
    for got, wanted in (
            (dz.T @ x, [[-.02672, -.0922], [-.00221, -.00666], [-.00316, -.01893],
                        [-.02593, -.16262]]),
            (out0 * dz[1], [-.01039, -.00060, -.00338, -.02970]),
            (dz.sum(0), [-.03641, -.00277, -.00631, -.05362])):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=0.5001e-5)


def test_lstm():
    layer, cell = lstm()
    x = np.array([[[1.0, 2.0], [0.5, 3.0]]])
    y = layer.forward(x)
    _, before, steps, _ = cell._kept[1]
    gates = [z[0][[3, 0, 1, 2]] for z, _, _ in steps]
    printed(gates[0], 5, .81775, .96083, .85195, .81757)
    printed(gates[1], 5, .84980, .98118, .87030, .84993)
    printed(before[1][1], 5, .78572)
    printed(layer.last[0][1], 4, 1.5176)
    printed(y, 5, .53631, .77197)

    dy = y - np.array([[[0.5], [1.25]]])
    printed(dy[0, 1], 5, -.47803)
    dx = layer.backward(dy)
    printed(dx, 5, [-.00817, -.00487], [-.04743, -.03073])
    printed(layer.dstate[0][0], 5, -.00343)
    back = np.argsort(OURS)
    dW, dU, db = cell.W.grad[:, back].T, cell.U.grad[:, back], cell.b.grad[back]
    printed(dW, 5, [-.02672, -.0922], [-.00221, -.00666], [-.00316, -.01893], [-.02593, -.16262])
    printed(dU, 5, -.01039, -.00060, -.00338, -.02970)
    printed(db, 5, -.03641, -.00277, -.00631, -.05362)

    nn.SGD(layer, 0.1).step()
    printed(cell.W.value[:, back].T, 5, [.45267, .25922], [.95022, .80067], [.70031, .45189],
            [.60259, .41626])
    printed(cell.U.value[:, back], 5, .15104, .80006, .10034, .25297)
    printed(cell.b.value[back], 5, .20364, .65028, .15063, .10536)


def test_lstm_step_by_step():
    """What goes from one step to the other: the same, a step at a time."""
    layer, cell = lstm()
    y0 = layer.forward(np.array([[[1.0, 2.0]]]))
    state0 = layer.last
    y1 = layer.forward(np.array([[[0.5, 3.0]]]), state0)
    squashed, (z, _, _) = np.tanh(layer.last[0][1]), cell._kept[1][2][0]
    o = z[0, 2]
    dx1 = layer.backward(y1 - 1.25)
    printed(dx1, 5, -.04743, -.03073)
    printed((y1 - 1.25) * o * (1 - squashed**2), 5, -.07111)  # dstate at t = 1
    dz1 = cell.b.grad[np.argsort(OURS)]
    printed(dz1, 5, -.01938, -.00112, -.00631, -.05538)
    (dh, dc), = layer.dstate
    printed(dh, 5, -.01828)
    printed(dh + y0 - 0.5, 5, .01803)

    layer.forward(np.array([[[1.0, 2.0]]]))
    cell.b.grad = None
    layer.backward(y0 - 0.5, [(dh, dc)])
    printed(cell.b.grad[np.argsort(OURS)], 5, -.01703, -.00165, 0, .00176)
    c0, o0 = state0[0][1], cell._kept[1][2][0][0][0, 2]
    printed(dc + (dh + y0 - 0.5) * o0 * (1 - np.tanh(c0) ** 2), 5, -.05349)


CONVOLVED = np.array([[[-2, 7], [1, 1], [4, -7]], [[1, 6], [9, -8], [6, -6]],
                      [[2, -7], [1, -4], [2, -8]]], float)[None]


def test_convolution_relu_pool_softmax():
    conv = nn.Conv2d(3, 2, 3, stride=2, layout="NHWC", dtype="f8", rng=0)
    assert conv.forward(np.ones((1, 7, 7, 3))).shape == (1, 3, 3, 2)

    relu = nn.ReLU().forward(CONVOLVED)
    printed(relu, 0, [0, 7, 1, 1, 4, 0], [1, 6, 9, 0, 6, 0], [2, 0, 1, 0, 2, 0])
    pooled = nn.MaxPool(2, 1, layout="NHWC").forward(relu)
    printed(pooled, 0, [9, 7, 9, 1, 9, 6, 9, 0])
    flat = nn.Flatten().forward(pooled.transpose(0, 3, 1, 2))
    printed(flat, 0, [9, 9, 9, 9, 7, 1, 6, 0])
    p = softmax(flat)[0]
    printed(p[:4], 8, [.23891544] * 4)
    # printed in single precision
    np.testing.assert_allclose(p[4:], [.032333687, 8.0147205e-5, .011894900, 2.9484507e-5],
                               rtol=np.finfo("f4").eps)


def test_the_convolution_is_a_cross_correlation():
    conv = nn.Conv2d(1, 1, 3, bias=False, dtype="f8")
    conv.weight.value[...] = [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]
    assert conv.forward(np.array([[[[1.0, 4, 6], [5, 3, 8], [6, 7, 2]]]])) == 7


def test_shapes_of_the_digit_classifiers():
    from blasx.nn.examples import digits

    x = np.zeros((10, 28, 28, 1), "f4")
    assert digits.mlp(0).forward(x).shape == (10, 10)
    shapes = []
    for layer in digits.cnn(0).layers:
        x = layer.forward(x)
        shapes.append(x.shape[1:])
    assert [s for s in shapes if len(s) == 3][::2] == [(28, 28, 12), (14, 14, 24), (7, 7, 32)]
    assert (1568,) in shapes and (200,) in shapes and shapes[-1] == (10,)
    x, shapes = np.zeros((2, 32, 32, 1), "f4"), []
    for layer in digits.lenet(0).layers:
        x = layer.forward(x)
        shapes.append(x.shape[1:])
    for wanted in ((28, 28, 6), (14, 14, 6), (10, 10, 16), (5, 5, 16), (120,), (84,), (10,)):
        assert wanted in shapes
